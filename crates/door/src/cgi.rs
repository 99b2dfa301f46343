//! What a web server says of a request in the variables of CGI (RFC 3875), over FastCGI, SCGI or
//! CGI itself, and what Rack is told of it.

mod place;

use crate::Fault;
use crate::host::{self, Authority};
use crate::http::read_length;
use crate::mounts::Mounts;
use place::{Split, Told};
use std::borrow::Cow;
use std::net::{IpAddr, Ipv6Addr};

/// The variables that are read here; the app gets what comes of them, in `Request`.
#[derive(Clone, Copy)]
enum Meta {
    Method,
    ScriptName,
    PathInfo,
    Query,
    Uri,
    DocumentUri,
    Protocol,
    Https,
    Scheme,
    RemoteAddr,
    RemotePort,
    ServerName,
    ServerPort,
    Length,
}
/// How many of them there are.
const METAS: usize = Meta::Length as usize + 1;

impl Meta {
    fn of(name: &[u8]) -> Option<Meta> {
        Some(match name {
            b"REQUEST_METHOD" => Meta::Method,
            b"SCRIPT_NAME" => Meta::ScriptName,
            b"PATH_INFO" => Meta::PathInfo,
            b"QUERY_STRING" => Meta::Query,
            b"REQUEST_URI" => Meta::Uri,
            b"DOCUMENT_URI" => Meta::DocumentUri,
            b"SERVER_PROTOCOL" => Meta::Protocol,
            b"HTTPS" => Meta::Https,
            b"REQUEST_SCHEME" => Meta::Scheme,
            b"REMOTE_ADDR" => Meta::RemoteAddr,
            b"REMOTE_PORT" => Meta::RemotePort,
            b"SERVER_NAME" => Meta::ServerName,
            b"SERVER_PORT" => Meta::ServerPort,
            b"CONTENT_LENGTH" => Meta::Length,
            _ => return None,
        })
    }
}

/// The variables of one request.
#[derive(Clone, Debug, Default)]
pub struct Variables<'a> {
    metas: [Option<&'a [u8]>; METAS],
    /// All others that the app gets.
    others: Vec<(&'a [u8], Cow<'a, [u8]>)>,
}

/// So many names are looked through for one that comes again; of more, a sorted list.
const FEW: usize = 64;

impl<'a> Variables<'a> {
    /// Gathers the variables. Headers that came several times are joined, as they would be in HTTP
    /// (RFC 9110, section 5.3). Of other variables the last counts: who includes a web server's stock
    /// parameters and then says something else means that. The length of the body is said once.
    pub fn read(
        pairs: impl Iterator<Item = Result<(&'a [u8], &'a [u8]), Fault>>,
    ) -> Result<Variables<'a>, Fault> {
        let mut these = Variables { others: Vec::with_capacity(24), ..Variables::default() };
        for pair in pairs {
            let (name, value) = pair?;
            if name.starts_with(b"HTTP_") {
                these.header(name, value)?;
            } else if let Some(meta) = Meta::of(name) {
                let before = these.metas[meta as usize].replace(value);
                if matches!(meta, Meta::Length) && before.is_some_and(|before| before != value) {
                    return Err(Fault::Lengths);
                }
            } else if name == b"CONTENT_TYPE" {
                // RFC 3875, section 4.1.3: empty is as good as none.
                if !value.is_empty() {
                    these.add(name, checked(value)?);
                }
            } else if is_name(name) {
                these.add(name, value);
            }
        }
        if these.others.len() > FEW {
            these.join();
        }
        Ok(these)
    }

    fn header(&mut self, name: &'a [u8], value: &'a [u8]) -> Result<(), Fault> {
        // HTTP_PROXY would be obeyed by programs (CVE-2016-5385); the next two have names of their
        // own in CGI; the web server has undone the coding of the body; and HTTP_VERSION is Rack's.
        let drop = matches!(
            name,
            b"HTTP_PROXY"
                | b"HTTP_CONTENT_LENGTH"
                | b"HTTP_CONTENT_TYPE"
                | b"HTTP_TRANSFER_ENCODING"
                | b"HTTP_VERSION"
        );
        // A host that nobody has named, as Debian's nginx says it.
        let nobody = name == b"HTTP_HOST" && value == b"_";
        if !drop && !nobody && is_name(name) {
            self.add(name, checked(value)?);
        }
        Ok(())
    }

    fn add(&mut self, name: &'a [u8], value: &'a [u8]) {
        if self.others.len() < FEW
            && let Some((_, before)) = self.others.iter_mut().find(|other| other.0 == name)
        {
            return add_to(before, name, value);
        }
        self.others.push((name, Cow::Borrowed(value)));
    }

    /// Joins those of the same name.
    fn join(&mut self) {
        self.others.sort_by_key(|(name, _)| *name);
        self.others.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            if same {
                add_to(&mut kept.1, next.0, &next.1);
            }
            same
        });
    }

    /// What the app gets as it is: headers, and whatever else the web server says.
    pub fn others(&self) -> impl Iterator<Item = (&'a [u8], &[u8])> {
        self.others.iter().map(|(name, value)| (*name, &**value))
    }

    /// Whether there are more headers than this.
    pub fn has_more_headers_than(&self, count: usize) -> bool {
        let are_headers = self.others.iter().filter(|(name, _)| name.starts_with(b"HTTP_"));
        self.others.len() > count && are_headers.count() > count
    }

    /// CONTENT_LENGTH in bytes, if it is there and not empty.
    pub fn length(&self) -> Result<Option<u64>, Fault> {
        let said = self.said(Meta::Length);
        said.map(|digits| read_length(digits).ok_or(Fault::BadLength)).transpose()
    }

    fn meta(&self, meta: Meta) -> Option<&'a [u8]> {
        self.metas[meta as usize]
    }

    /// A variable of which empty means that there is none.
    fn said(&self, meta: Meta) -> Option<&'a [u8]> {
        self.meta(meta).filter(|value| !value.is_empty())
    }

    /// What the variables say, for an app that lies under `prefix`. Empty: wherever the web server
    /// says; `/`: SCRIPT_NAME is empty whatever it says.
    pub fn judge(&self, prefix: &str) -> Result<Request<'a>, Fault> {
        self.judge_at(|usual, raw, told| match prefix {
            "" => Some(usual),
            _ => place::under(usual, raw, told, prefix),
        })
    }

    /// What the variables say, and which mount is asked. `claimed` is called if hosts matter, with
    /// the client's address: the host that a trusted proxy claims for it. Without one it is Host's, or
    /// what the web server calls itself.
    pub fn judge_among<T: Copy + PartialEq>(
        &self,
        mounts: &Mounts<T>,
        claimed: impl FnOnce(Option<IpAddr>) -> Option<String>,
    ) -> Result<(Request<'a>, T), Fault> {
        let host = match mounts.has_hosts() {
            true => claimed(self.client()).or(self.host()?),
            false => None,
        };
        let mut found = None;
        let request = self.judge_at(|usual, raw, told| {
            let (mount, split) = place::among(usual, raw, told, mounts, host.as_deref())?;
            found = Some(mount);
            Some(split)
        })?;
        // `OPTIONS *` asks for no path.
        let mount = found.or_else(|| mounts.of_server(host.as_deref()));
        Ok((request, mount.ok_or(Fault::NotHere)?))
    }

    fn client(&self) -> Option<IpAddr> {
        self.said(Meta::RemoteAddr).and_then(address)
    }

    fn host(&self) -> Result<Option<String>, Fault> {
        let name = || host::read(self.said(Meta::ServerName)?);
        Ok(self.authority()?.or_else(name).map(|found| found.host.to_string()))
    }

    fn judge_at(
        &self,
        find: impl FnOnce(Split<'a>, Option<&'a [u8]>, Told<'a>) -> Option<Split<'a>>,
    ) -> Result<Request<'a>, Fault> {
        let method = self.said(Meta::Method).ok_or(Fault::NoMethod)?;
        let method = token(method).ok_or(Fault::BadMethod)?;
        if method == "CONNECT" {
            return Err(Fault::Connect);
        }
        let length = self.length()?;
        let place = self.place(method, find)?;
        Ok(Request {
            method,
            script_name: place.script_name,
            path_info: place.path_info,
            query: place.query,
            uri: place.uri,
            protocol: self.said(Meta::Protocol).filter(|said| is_protocol(said)).unwrap_or(HTTP),
            https: self.is_https(),
            remote_addr: self.client(),
            remote_port: self.port(Meta::RemotePort),
            authority: self.authority()?,
            server_name: self.server_name(),
            server_port: self.port(Meta::ServerPort),
            length,
        })
    }

    fn is_https(&self) -> bool {
        match self.said(Meta::Https) {
            // IIS, and those who follow it, say `off`.
            Some(said) => !said.eq_ignore_ascii_case(b"off") && said != b"0",
            None => self.said(Meta::Scheme).is_some_and(|s| s.eq_ignore_ascii_case(b"https")),
        }
    }

    fn port(&self, meta: Meta) -> &'a [u8] {
        let is_port = |said: &&[u8]| std::str::from_utf8(said).is_ok_and(host::is_port);
        self.said(meta).filter(is_port).unwrap_or_default()
    }

    /// Host, unless it is empty. One that came twice is none.
    fn authority(&self) -> Result<Option<Authority<'a>>, Fault> {
        match self.others.iter().find(|(name, _)| *name == b"HTTP_HOST") {
            None | Some((_, Cow::Borrowed(b""))) => Ok(None),
            Some((_, Cow::Borrowed(text))) => host::read(text).map(Some).ok_or(Fault::BadHost),
            Some((_, Cow::Owned(_))) => Err(Fault::Hosts),
        }
    }

    /// An IPv6 address in brackets. Nothing for nginx's `_`, which is no name but a place for one.
    fn server_name(&self) -> Cow<'a, [u8]> {
        let said = self.said(Meta::ServerName).unwrap_or_default();
        match host::read(said) {
            Some(name) if name.port.is_none() && said != b"_" => {
                Cow::Borrowed(name.host.as_bytes())
            }
            _ => match std::str::from_utf8(said).map(str::parse::<Ipv6Addr>) {
                Ok(Ok(address)) => Cow::Owned(format!("[{address}]").into_bytes()),
                _ => Cow::Borrowed(b""),
            },
        }
    }
}

/// The protocol of a request of which nothing is said.
const HTTP: &[u8] = b"HTTP/1.1";

/// A request as Rack sees it.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// REQUEST_METHOD, a token.
    pub method: &'a str,
    /// SCRIPT_NAME, percent-encoded: empty, or beginning with a slash and not ending with one.
    pub script_name: Cow<'a, [u8]>,
    /// PATH_INFO, percent-encoded: beginning with a slash, or empty if SCRIPT_NAME is not; `*` for
    /// `OPTIONS *`.
    pub path_info: Cow<'a, [u8]>,
    /// QUERY_STRING.
    pub query: &'a [u8],
    /// REQUEST_URI, as the client sent it.
    pub uri: Cow<'a, [u8]>,
    /// SERVER_PROTOCOL, such as `HTTP/1.1`.
    pub protocol: &'a [u8],
    /// Whether the client speaks HTTPS.
    pub https: bool,
    /// The client's address; None if there is none, as for a unix socket.
    pub remote_addr: Option<IpAddr>,
    /// The client's port, or empty.
    pub remote_port: &'a [u8],
    /// Host, unless it is empty or missing.
    pub authority: Option<Authority<'a>>,
    /// SERVER_NAME if it is a name or address, or empty.
    pub server_name: Cow<'a, [u8]>,
    /// SERVER_PORT if it is a port, or empty.
    pub server_port: &'a [u8],
    /// CONTENT_LENGTH in bytes, if it is there and not empty.
    pub length: Option<u64>,
}

/// Adds what came again under the same name.
fn add_to(before: &mut Cow<[u8]>, name: &[u8], value: &[u8]) {
    if !name.starts_with(b"HTTP_") {
        *before = Cow::Owned(value.into());
        return;
    }
    // RFC 6265, section 5.4.
    let separator: &[u8] = if name == b"HTTP_COOKIE" { b"; " } else { b", " };
    let before = before.to_mut();
    before.extend_from_slice(separator);
    before.extend_from_slice(value);
}

/// Bytes of names that the app may have: no dot, for `rack.input` and its like are not the web
/// server's, and nothing that no environment could hold.
const NAME: [bool; 256] = {
    let mut table = [true; 256];
    let mut c = 0;
    while c < 256 {
        table[c] = !matches!(c as u8, b'.' | b'=' | 0..=32 | 127);
        c += 1;
    }
    table
};
/// Bytes of what could be a header's value (RFC 9110, section 5.5).
const VALUE: [bool; 256] = {
    let mut table = [true; 256];
    let mut c = 0;
    while c < 256 {
        table[c] = !matches!(c as u8, 0..=8 | 10..=31 | 127);
        c += 1;
    }
    table
};

fn is_name(name: &[u8]) -> bool {
    !name.is_empty() && name.iter().all(|c| NAME[usize::from(*c)])
}

fn checked(value: &[u8]) -> Result<&[u8], Fault> {
    match value.iter().all(|c| VALUE[usize::from(*c)]) {
        true => Ok(value),
        false => Err(Fault::Control),
    }
}

/// RFC 9110, section 5.6.2.
fn token(text: &[u8]) -> Option<&str> {
    let fits = |c: &u8| c.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(c);
    text.iter().all(fits).then(|| std::str::from_utf8(text).ok()).flatten()
}

/// `HTTP/` and a version of one or two digits.
fn is_protocol(text: &[u8]) -> bool {
    match text.strip_prefix(b"HTTP/") {
        Some([major, b'.', minor]) => major.is_ascii_digit() && minor.is_ascii_digit(),
        Some([major]) => major.is_ascii_digit(),
        _ => false,
    }
}

/// An address, be it in brackets or with a zone.
fn address(text: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(text).ok()?;
    let text = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let text = text.split_once('%').map_or(text, |(address, _zone)| address);
    text.parse().ok().map(|address: IpAddr| address.to_canonical())
}

#[cfg(test)]
mod tests;
