//! Where a request goes: SCRIPT_NAME and PATH_INFO. Web servers send both decoded and resolved, and
//! each in its own way; the app gets them as the client sent them, as over HTTP.

use super::{Meta, Variables};
use crate::Fault;
use crate::path::{self, Letters};
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
struct Told<'a> {
    script: &'a [u8],
    info: &'a [u8],
}

type Split<'a> = (Cow<'a, [u8]>, Cow<'a, [u8]>);

impl<'a> Variables<'a> {
    /// The path is REQUEST_URI's, as the client sent it, where that is what the web server has
    /// looked at; if it is not (it was rewritten, or had dots in it) what the web server says, for
    /// its rules of access have judged that.
    pub(super) fn place(&self, method: &str, prefix: &str) -> Result<Place<'a>, Fault> {
        let uri = self.said(Meta::Uri);
        let (raw, asked) = match uri {
            Some(uri) => read(uri)?,
            None => (None, &b""[..]),
        };
        let query = super::checked(self.meta(Meta::Query).unwrap_or(asked))?;
        if raw == Some(b"*") && method == "OPTIONS" {
            let (script_name, path_info) = (b"".into(), b"*".into());
            let uri = b"*".into();
            return Ok(Place { script_name, path_info, query, uri });
        }
        let told = self.told()?;
        let split = match prefix {
            "" => usual(raw, told, self.meta(Meta::PathInfo).is_some()),
            prefix => under(raw, told, prefix),
        };
        let (script_name, path_info) = split?;
        let uri = match uri {
            Some(uri) => Cow::Borrowed(uri),
            None => written(&script_name, &path_info, query),
        };
        Ok(Place { script_name, path_info, query, uri })
    }

    /// SCRIPT_NAME and PATH_INFO; where there is neither, nginx's DOCUMENT_URI. A slash at the end
    /// of SCRIPT_NAME is PATH_INFO's. None if the web server says nothing of it.
    fn told(&self) -> Result<Option<Told<'a>>, Fault> {
        let (script, info) = (self.meta(Meta::ScriptName), self.meta(Meta::PathInfo));
        let told = match (script, info) {
            (None, None) => match self.said(Meta::DocumentUri) {
                Some(path) => Told { script: b"", info: path },
                None => return Ok(None),
            },
            // As nginx and Apache have it: SCRIPT_NAME is all of the path.
            (Some(path), None) => Told { script: b"", info: path },
            (script, Some(info)) => match script.unwrap_or_default().split_last() {
                Some((b'/', script)) if info.is_empty() => Told { script, info: b"/" },
                Some((b'/', script)) => Told { script, info },
                Some(_) => Told { script: script.unwrap_or_default(), info },
                None => Told { script: b"", info },
            },
        };
        for part in [told.script, told.info] {
            if !matches!(part.first(), None | Some(b'/')) {
                return Err(Fault::BadPath);
            }
            if part.contains(&0) {
                return Err(Fault::Nul);
            }
        }
        let nothing = told.script.is_empty() && told.info.is_empty();
        Ok((!nothing).then_some(told))
    }
}

/// The path of a target as it was sent, and the query.
fn read(uri: &[u8]) -> Result<(Option<&[u8]>, &[u8]), Fault> {
    super::checked(uri)?;
    let (target, query) = match memchr::memchr(b'?', uri) {
        Some(mark) => (&uri[..mark], &uri[mark + 1..]),
        None => (uri, &b""[..]),
    };
    if memchr::memchr(b'#', uri).is_some() {
        return Err(Fault::Fragment);
    }
    // Absolute-form (RFC 9112, section 3.2.2).
    let path = match target.first() {
        Some(b'/' | b'*') | None => target,
        _ => match memchr::memmem::find(target, b"://") {
            Some(scheme) => {
                let rest = &target[scheme + 3..];
                &rest[memchr::memchr(b'/', rest).unwrap_or(rest.len())..]
            }
            None => return Err(Fault::BadTarget),
        },
    };
    let path = if path.is_empty() { b"/" } else { path };
    match path {
        b"*" => Ok((Some(path), query)),
        _ if Letters(path).any(|letter| matches!(letter, Some((0, _)))) => Err(Fault::Nul),
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

/// For an app that lies where the web server says. `sent` is whether that has sent a PATH_INFO.
fn usual<'a>(
    raw: Option<&'a [u8]>,
    told: Option<Told<'a>>,
    sent: bool,
) -> Result<Split<'a>, Fault> {
    let cut = |raw: &'a [u8], end| {
        let (script, info) = raw.split_at(end);
        Ok(whole(Cow::Borrowed(script), Cow::Borrowed(info)))
    };
    let Some(Told { script, info }) = told else {
        return cut(raw.ok_or(Fault::BadPath)?, 0);
    };
    if let Some(raw) = raw {
        if let Some(end) = agrees(raw, script, info) {
            return cut(raw, end);
        }
        // PATH_INFO may be all of the path whatever SCRIPT_NAME is.
        if !info.is_empty() && agrees(raw, b"", info).is_some() {
            return cut(raw, 0);
        }
        if let Some(end) = sent.then(|| directory(raw, script, info)).flatten() {
            return cut(raw, end);
        }
    }
    Ok(whole(path::encode(script), path::encode(info)))
}

/// Where the directory of a script ends in a path that does not name the script: it is the
/// directory's index, or what answers for everything in it.
fn directory(raw: &[u8], script: &[u8], info: &[u8]) -> Option<usize> {
    let slash = memchr::memrchr(b'/', script)?;
    let (directory, file) = script.split_at(slash);
    if !file.contains(&b'.') {
        return None;
    }
    let end = path::boundary(raw, directory)?;
    let rest = &raw[end..];
    if info.is_empty() {
        // Nobody has looked at it, so it is to mean what it says.
        let plain = path::clean(rest).is_some_and(|clean| agrees(rest, b"", &clean).is_some());
        return (rest.is_empty() || plain).then_some(end);
    }
    agrees(rest, b"", info).map(|_| end)
}

/// For an app that lies under a prefix.
fn under<'a>(
    raw: Option<&'a [u8]>,
    told: Option<Told<'a>>,
    prefix: &str,
) -> Result<Split<'a>, Fault> {
    let prefix = prefix.as_bytes();
    let of = |raw: &'a [u8], end: usize| {
        let (script, info) = raw.split_at(end);
        (Cow::Borrowed(script), Cow::Borrowed(info))
    };
    let end = raw.and_then(|raw| path::boundary(raw, prefix));
    let Some(Told { script, info }) = told else {
        let (raw, end) = raw.zip(end).ok_or(Fault::NotHere)?;
        return Ok(of(raw, end));
    };
    if let (Some(raw), Some(end)) = (raw, end) {
        // All of the path, or what is left when the web server has taken the prefix away.
        let rest = &raw[end..];
        if agrees(raw, script, info).is_some() || agrees(rest, script, info).is_some() {
            return Ok(of(raw, end));
        }
    }
    let path = [script, info].concat();
    let end = path::boundary_of_plain(&path, prefix).ok_or(Fault::NotHere)?;
    let rest = path::encode(&path[end..]).into_owned();
    Ok((Cow::Owned(prefix.into()), Cow::Owned(rest)))
}

/// One of the two is not empty.
fn whole<'a>(script: Cow<'a, [u8]>, info: Cow<'a, [u8]>) -> Split<'a> {
    match script.is_empty() && info.is_empty() {
        true => (script, Cow::Borrowed(b"/")),
        false => (script, info),
    }
}

/// A target for a web server that has sent none.
fn written<'a>(script: &[u8], info: &[u8], query: &[u8]) -> Cow<'a, [u8]> {
    let mark: &[u8] = if query.is_empty() { b"" } else { b"?" };
    Cow::Owned([script, info, mark, query].concat())
}
