//! Where a request goes: SCRIPT_NAME and PATH_INFO. Web servers send both decoded and resolved, and
//! each in its own way; the app gets them as the client sent them, as over HTTP.

use super::{Meta, Variables};
use crate::Fault;
use crate::mounts::Mounts;
use crate::path::{self, Letters};
use memchr::{memchr, memmem, memrchr};
use std::borrow::Cow;

/// What the variables say about the target.
pub struct Place<'a> {
    pub script_name: Cow<'a, [u8]>,
    pub path_info: Cow<'a, [u8]>,
    pub query: &'a [u8],
    pub uri: Cow<'a, [u8]>,
}

/// The path as the web server sees it, decoded.
#[derive(Clone, Copy)]
pub(super) struct Told<'a> {
    script: &'a [u8],
    info: &'a [u8],
}

/// A path, percent-encoded, and where in it SCRIPT_NAME ends.
pub(super) type Split<'a> = (Cow<'a, [u8]>, usize);

impl<'a> Variables<'a> {
    /// The path is REQUEST_URI's, as the client sent it, where that is what the web server has looked
    /// at. Where it is not (it was rewritten, or had dots or repeated slashes in it) the path is what
    /// the web server says, for that is what its rules of access have judged.
    /// `find` says where in the path SCRIPT_NAME ends; it gets the path where the web server has it
    /// end, the client's path, and what the web server says. None: the path lies nowhere here.
    pub(super) fn place(
        &self,
        method: &str,
        find: impl FnOnce(Split<'a>, Option<&'a [u8]>, Told<'a>) -> Option<Split<'a>>,
    ) -> Result<Place<'a>, Fault> {
        let uri = self.said(Meta::Uri);
        let (raw, asked) = match uri {
            Some(uri) => read(uri)?,
            None => (None, &b""[..]),
        };
        let query = super::checked(self.meta(Meta::Query).unwrap_or(asked))?;
        let (script_name, path_info) = match raw {
            Some(b"*") if method == "OPTIONS" => (b"".into(), b"*".into()),
            Some(b"*") => return Err(Fault::BadTarget),
            raw => {
                let told = self.told()?;
                let usual = usual(raw, told).ok_or(Fault::BadPath)?;
                cut(find(usual, raw, told).ok_or(Fault::NotHere)?)
            }
        };
        let uri = match uri {
            Some(uri) => Cow::Borrowed(uri),
            None => written(&script_name, &path_info, query),
        };
        Ok(Place { script_name, path_info, query, uri })
    }

    /// SCRIPT_NAME and PATH_INFO; where there is neither, nginx's DOCUMENT_URI. A slash at the end
    /// of SCRIPT_NAME is PATH_INFO's.
    fn told(&self) -> Result<Told<'a>, Fault> {
        let (script, info) = (self.meta(Meta::ScriptName), self.meta(Meta::PathInfo));
        let told = match (script, info) {
            (None, None) => {
                Told { script: b"", info: self.meta(Meta::DocumentUri).unwrap_or_default() }
            }
            // As nginx and Apache have it: SCRIPT_NAME is all of the path.
            (Some(info), None) if !self.is_of_lighttpd() => Told { script: b"", info },
            (script, info) => {
                let (script, info) = (script.unwrap_or_default(), info.unwrap_or_default());
                match script.strip_suffix(b"/") {
                    Some(script) if info.is_empty() => Told { script, info: b"/" },
                    Some(script) => Told { script, info },
                    None => Told { script, info },
                }
            }
        };
        for part in [told.script, told.info] {
            if !matches!(part.first(), None | Some(b'/')) {
                return Err(Fault::BadPath);
            }
            if part.contains(&0) {
                return Err(Fault::Nul);
            }
        }
        Ok(told)
    }

    /// Whether PATH_INFO is left out where it is empty, and only there.
    fn is_of_lighttpd(&self) -> bool {
        let software = self.others().find(|(name, _)| *name == b"SERVER_SOFTWARE");
        software.is_some_and(|(_, value)| value.starts_with(b"lighttpd"))
    }
}

/// The path of a target as it was sent, and the query.
fn read(uri: &[u8]) -> Result<(Option<&[u8]>, &[u8]), Fault> {
    super::checked(uri)?;
    if memchr(b'#', uri).is_some() {
        return Err(Fault::Fragment);
    }
    let (target, query) = match memchr(b'?', uri) {
        Some(mark) => (&uri[..mark], &uri[mark + 1..]),
        None => (uri, &b""[..]),
    };
    // Absolute-form (RFC 9112, section 3.2.2).
    let path = match target {
        [b'/', ..] | b"*" => target,
        _ => {
            let scheme = memmem::find(target, b"://").ok_or(Fault::BadTarget)?;
            let rest = &target[scheme + 3..];
            &rest[memchr(b'/', rest).unwrap_or(rest.len())..]
        }
    };
    match memchr(b'%', path) {
        None if path.is_empty() => Ok((Some(b"/"), query)),
        Some(_) if Letters(path).any(|letter| matches!(letter, Some((0, _)))) => Err(Fault::Nul),
        _ => Ok((Some(path), query)),
    }
}

/// How much of `raw` spells `script`, if all of it spells `script` and `info`.
fn agrees(raw: &[u8], script: &[u8], info: &[u8]) -> Option<usize> {
    let whole = script.len() + info.len();
    if raw.len() == whole && raw.starts_with(script) && raw.ends_with(info) && !raw.contains(&b'%')
    {
        return Some(script.len());
    }
    let mut letters = Letters(raw);
    let mut spells = |text: &[u8]| {
        let same = text.iter().all(|c| letters.next().flatten().is_some_and(|(l, _)| l == *c));
        same.then(|| raw.len() - letters.0.len())
    };
    let end = spells(script)?;
    (spells(info)? == raw.len()).then_some(end)
}

/// The path, and SCRIPT_NAME as the web server says. None: neither it nor the client says any.
fn usual<'a>(raw: Option<&'a [u8]>, told: Told<'a>) -> Option<Split<'a>> {
    let said = |told: Told| {
        let script = path::encode(told.script);
        let end = script.len();
        (Cow::Owned([script, path::encode(told.info)].concat()), end)
    };
    let Told { script, info } = told;
    let nothing = script.is_empty() && info.is_empty();
    let Some(raw) = raw else { return (!nothing).then(|| said(told)) };
    if nothing {
        return Some((Cow::Borrowed(raw), 0));
    }
    let agreed = agrees(raw, script, info)
        // PATH_INFO may be all of the path whatever SCRIPT_NAME is.
        .or_else(|| agrees(raw, b"", info))
        // Apache gives `/` to a path that ends with SCRIPT_NAME.
        .or_else(|| agrees(raw, script, b"").filter(|_| info == b"/"));
    if let Some(end) = agreed {
        return Some((Cow::Borrowed(raw), end));
    }
    if let Some(told) = untangled(told) {
        let end = agrees(raw, told.script, told.info);
        return Some(end.map_or_else(|| said(told), |end| (Cow::Borrowed(raw), end)));
    }
    Some(directory(raw, told).unwrap_or_else(|| said(told)))
}

/// Apache with `proxy-fcgi-pathinfo` or `proxy-scgi-pathinfo` leaves PATH_INFO encoded, and takes it
/// from SCRIPT_NAME only where encoding has changed nothing. Both as they are meant.
fn untangled<'a>(told: Told<'a>) -> Option<Told<'a>> {
    memchr(b'%', told.info)?;
    let info: Option<Vec<u8>> = Letters(told.info).map(|letter| Some(letter?.0)).collect();
    let end = told.script.strip_suffix(&info?[..])?.len();
    let (script, info) = told.script.split_at(end);
    Some(Told { script, info })
}

/// For a script that the path need not name: the index of its directory, or what answers for all that
/// is in it. Then the directory is SCRIPT_NAME.
fn directory<'a>(raw: &'a [u8], told: Told) -> Option<Split<'a>> {
    let (directory, file) = told.script.split_at(memrchr(b'/', told.script)?);
    if !file.contains(&b'.') {
        return None;
    }
    // What nobody has resolved might mean another directory.
    let clean = path::clean(raw)?;
    let path = match agrees(raw, b"", &clean) {
        Some(_) => Cow::Borrowed(raw),
        None => Cow::Owned(path::encode(&clean).into_owned()),
    };
    let fits =
        |end: &usize| told.info.is_empty() || agrees(&path[*end..], b"", told.info).is_some();
    let end = [told.script, directory]
        .iter()
        .find_map(|place| path::boundary(&path, place).filter(fits))?;
    Some((path, end))
}

/// The path, and a SCRIPT_NAME that is the prefix. None: the path does not lie under it.
pub(super) fn under<'a>(
    (path, _): Split<'a>,
    raw: Option<&'a [u8]>,
    told: Told,
    prefix: &str,
) -> Option<Split<'a>> {
    let prefix = prefix.trim_end_matches('/').as_bytes();
    if let Some(end) = path::boundary(&path, prefix) {
        return Some((path, end));
    }
    // The web server may have taken the prefix away.
    let raw = raw?;
    let end = path::boundary(raw, prefix)?;
    agrees(&raw[end..], told.script, told.info)?;
    Some((Cow::Borrowed(raw), end))
}

/// The mount of a path, which is then SCRIPT_NAME. Where only the root's takes what the web server
/// says, it may have taken the path of another one away.
pub(super) fn among<'a, T: Copy + PartialEq>(
    (path, _): Split<'a>,
    raw: Option<&'a [u8]>,
    told: Told,
    mounts: &Mounts<T>,
    host: Option<&str>,
) -> Option<(T, Split<'a>)> {
    let usual = mounts.find(host, &path);
    let taken_away = || {
        let raw = raw?;
        let (mount, end) = mounts.find(host, raw).filter(|(_, end)| *end > 0)?;
        agrees(&raw[end..], told.script, told.info)?;
        Some((mount, (Cow::Borrowed(raw), end)))
    };
    match usual {
        Some((mount, end)) if end > 0 => Some((mount, (path, end))),
        _ => taken_away().or_else(|| usual.map(|(mount, end)| (mount, (path, end)))),
    }
}

/// SCRIPT_NAME and PATH_INFO, one of which is not empty.
fn cut<'a>((path, end): Split<'a>) -> (Cow<'a, [u8]>, Cow<'a, [u8]>) {
    match path {
        Cow::Borrowed(path) => (path[..end].into(), path[end..].into()),
        Cow::Owned(mut path) => {
            let info = path.split_off(end);
            (path.into(), info.into())
        }
    }
}

/// A target for a web server that has sent none.
fn written<'a>(script: &[u8], info: &[u8], query: &[u8]) -> Cow<'a, [u8]> {
    let mark: &[u8] = if query.is_empty() { b"" } else { b"?" };
    Cow::Owned([script, info, mark, query].concat())
}

#[cfg(test)]
mod tests;
