//! The request record: what the front tells a worker about a request, as (env key, value) pairs.
//!
//! Keys that every server meets are numbers, so that a worker neither upper-cases nor hashes a
//! header name; all others travel by their env name, already in upper case.

/// The env keys that travel as numbers. Their order is part of the layout.
#[rustfmt::skip]
pub const KEYS: [&str; 64] = [
    "REQUEST_METHOD",
    "SCRIPT_NAME",
    "PATH_INFO",
    "QUERY_STRING",
    "REQUEST_URI",
    "SERVER_NAME",
    "SERVER_PORT",
    "SERVER_PROTOCOL",
    "HTTP_VERSION",
    "REMOTE_ADDR",
    "REMOTE_PORT",
    "rack.url_scheme",
    "CONTENT_TYPE",
    "CONTENT_LENGTH",
    "HTTP_HOST",
    "HTTP_USER_AGENT",
    "HTTP_ACCEPT",
    "HTTP_ACCEPT_ENCODING",
    "HTTP_ACCEPT_LANGUAGE",
    "HTTP_ACCEPT_CHARSET",
    "HTTP_COOKIE",
    "HTTP_REFERER",
    "HTTP_CONNECTION",
    "HTTP_CACHE_CONTROL",
    "HTTP_PRAGMA",
    "HTTP_AUTHORIZATION",
    "HTTP_ORIGIN",
    "HTTP_DATE",
    "HTTP_EXPECT",
    "HTTP_FORWARDED",
    "HTTP_X_FORWARDED_FOR",
    "HTTP_X_FORWARDED_PROTO",
    "HTTP_X_FORWARDED_HOST",
    "HTTP_X_FORWARDED_PORT",
    "HTTP_X_REAL_IP",
    "HTTP_X_REQUEST_ID",
    "HTTP_X_REQUEST_START",
    "HTTP_X_REQUESTED_WITH",
    "HTTP_X_CSRF_TOKEN",
    "HTTP_IF_MODIFIED_SINCE",
    "HTTP_IF_NONE_MATCH",
    "HTTP_IF_MATCH",
    "HTTP_RANGE",
    "HTTP_UPGRADE",
    "HTTP_UPGRADE_INSECURE_REQUESTS",
    "HTTP_DNT",
    "HTTP_TE",
    "HTTP_VIA",
    "HTTP_SEC_FETCH_SITE",
    "HTTP_SEC_FETCH_MODE",
    "HTTP_SEC_FETCH_DEST",
    "HTTP_SEC_FETCH_USER",
    // What only web servers say.
    "GATEWAY_INTERFACE",
    "SERVER_SOFTWARE",
    "SERVER_ADDR",
    "DOCUMENT_ROOT",
    "REDIRECT_STATUS",
    "SCRIPT_FILENAME",
    "PATH_TRANSLATED",
    "HTTPS",
    "SERVER_ADMIN",
    "SERVER_SIGNATURE",
    "CONTEXT_PREFIX",
    "CONTEXT_DOCUMENT_ROOT",
];

/// Numbers of the keys the front sets itself.
pub mod key {
    #![allow(missing_docs)]
    pub const REQUEST_METHOD: u8 = 0;
    pub const SCRIPT_NAME: u8 = 1;
    pub const PATH_INFO: u8 = 2;
    pub const QUERY_STRING: u8 = 3;
    pub const REQUEST_URI: u8 = 4;
    pub const SERVER_NAME: u8 = 5;
    pub const SERVER_PORT: u8 = 6;
    pub const SERVER_PROTOCOL: u8 = 7;
    pub const HTTP_VERSION: u8 = 8;
    pub const REMOTE_ADDR: u8 = 9;
    pub const REMOTE_PORT: u8 = 10;
    pub const URL_SCHEME: u8 = 11;
    pub const CONTENT_TYPE: u8 = 12;
    pub const CONTENT_LENGTH: u8 = 13;
    pub const HTTP_HOST: u8 = 14;
    pub const HTTP_UPGRADE: u8 = 43;
    /// The pair carries its name.
    pub const NAMED: u8 = 255;
}

/// Longest env name that can travel.
pub const NAME_MAX: usize = u16::MAX as usize;

/// The number of a known header (its name in lower case), if it has one.
#[rustfmt::skip]
pub fn known_header(name: &str) -> Option<u8> {
    Some(match name {
        "content-type" => 12,
        "content-length" => 13,
        "host" => 14,
        "user-agent" => 15,
        "accept" => 16,
        "accept-encoding" => 17,
        "accept-language" => 18,
        "accept-charset" => 19,
        "cookie" => 20,
        "referer" => 21,
        "connection" => 22,
        "cache-control" => 23,
        "pragma" => 24,
        "authorization" => 25,
        "origin" => 26,
        "date" => 27,
        "expect" => 28,
        "forwarded" => 29,
        "x-forwarded-for" => 30,
        "x-forwarded-proto" => 31,
        "x-forwarded-host" => 32,
        "x-forwarded-port" => 33,
        "x-real-ip" => 34,
        "x-request-id" => 35,
        "x-request-start" => 36,
        "x-requested-with" => 37,
        "x-csrf-token" => 38,
        "if-modified-since" => 39,
        "if-none-match" => 40,
        "if-match" => 41,
        "range" => 42,
        "upgrade" => 43,
        "upgrade-insecure-requests" => 44,
        "dnt" => 45,
        "te" => 46,
        "via" => 47,
        "sec-fetch-site" => 48,
        "sec-fetch-mode" => 49,
        "sec-fetch-dest" => 50,
        "sec-fetch-user" => 51,
        _ => return None,
    })
}

/// Where a variable's name, of two bytes at least, lies in `VARIABLES`. Found by trial: no two of
/// the keys share a place.
const fn place(name: &[u8]) -> usize {
    let length = name.len();
    (226 * length + 70 * name[length - 2] as usize + 165 * name[length / 2] as usize) % 256
}

/// Each key's number at its place, and `NAMED` elsewhere.
static VARIABLES: [u8; 256] = {
    let mut table = [key::NAMED; 256];
    let mut number = 0;
    while number < KEYS.len() {
        let place = place(KEYS[number].as_bytes());
        // No web server may say what is Rack's own.
        if number != key::URL_SCHEME as usize {
            assert!(table[place] == key::NAMED, "two keys share a place: find other factors");
            table[place] = number as u8;
        }
        number += 1;
    }
    table
};

/// The number of a variable that a web server sends (its env name), if it has one.
pub fn known_variable(name: &[u8]) -> Option<u8> {
    if name.len() < 2 {
        return None;
    }
    let number = VARIABLES[place(name)];
    (KEYS.get(usize::from(number))?.as_bytes() == name).then_some(number)
}

/// Appends a pair for a variable: by number, or by its name. One whose name is too long to travel is
/// left out.
pub fn push_variable(record: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    match known_variable(name) {
        Some(key) => push(record, key, value),
        None if name.len() <= NAME_MAX => push_named(record, name, value),
        None => {}
    }
}

/// Appends a pair under a numbered key.
pub fn push(record: &mut Vec<u8>, key: u8, value: &[u8]) {
    record.push(key);
    record.extend_from_slice(&(value.len() as u32).to_le_bytes());
    record.extend_from_slice(value);
}

/// Appends a pair under an env name that has no number; it is shorter than `NAME_MAX`.
pub fn push_named(record: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    record.push(key::NAMED);
    record.extend_from_slice(&(name.len() as u16).to_le_bytes());
    record.extend_from_slice(name);
    record.extend_from_slice(&(value.len() as u32).to_le_bytes());
    record.extend_from_slice(value);
}

/// Appends a pair for header `name` (lower case): by number, or by its `HTTP_` name.
pub fn push_header(record: &mut Vec<u8>, name: &str, value: &[u8]) {
    if let Some(key) = known_header(name) {
        return push(record, key, value);
    }
    let length = name.len().min(NAME_MAX - 5);
    record.push(key::NAMED);
    record.extend_from_slice(&(length as u16 + 5).to_le_bytes());
    record.extend_from_slice(b"HTTP_");
    let upper = |c: &u8| if *c == b'-' { b'_' } else { c.to_ascii_uppercase() };
    record.extend(name.as_bytes()[..length].iter().map(upper));
    record.extend_from_slice(&(value.len() as u32).to_le_bytes());
    record.extend_from_slice(value);
}

/// A pair's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key<'a> {
    /// Index into `KEYS`.
    Known(u8),
    /// The env name itself.
    Named(&'a [u8]),
}

/// Reads a record pair by pair; ends at the first thing that is not a whole pair.
pub struct Pairs<'a>(pub &'a [u8]);

impl<'a> Pairs<'a> {
    fn cut(&mut self, length: usize) -> Option<&'a [u8]> {
        let (part, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(part)
    }
}

impl<'a> Iterator for Pairs<'a> {
    type Item = (Key<'a>, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let key = match self.cut(1)?[0] {
            key::NAMED => {
                let length = u16::from_le_bytes(self.cut(2)?.try_into().ok()?);
                Key::Named(self.cut(length as usize)?)
            }
            key if (key as usize) < KEYS.len() => Key::Known(key),
            _ => return None,
        };
        let length = u32::from_le_bytes(self.cut(4)?.try_into().ok()?);
        Some((key, self.cut(length as usize)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_known_by_its_name() {
        for (number, name) in KEYS.iter().enumerate() {
            let known = (number != usize::from(key::URL_SCHEME)).then_some(number as u8);
            assert_eq!(known_variable(name.as_bytes()), known, "{name}");
        }
        for name in ["", "H", "HTTP_", "http_host", "HTTP_HOS", "HTTP_HOST ", "UNIQUE_ID"] {
            assert_eq!(known_variable(name.as_bytes()), None, "{name}");
        }
    }

    #[test]
    fn headers_and_variables_have_the_same_numbers() {
        for name in KEYS {
            let header = name.strip_prefix("HTTP_").unwrap_or(name);
            let header = header.to_ascii_lowercase().replace('_', "-");
            if let Some(number) = known_header(&header) {
                assert_eq!(known_variable(name.as_bytes()), Some(number), "{name}");
            }
        }
    }

    #[test]
    fn variables_travel_by_number_or_name() {
        let mut record = Vec::new();
        push_variable(&mut record, b"HTTP_USER_AGENT", b"curl");
        push_variable(&mut record, b"UNIQUE_ID", b"/srv");
        push_variable(&mut record, &[b'A'; NAME_MAX + 1], b"");
        let pairs: Vec<_> = Pairs(&record).collect();
        let named = Key::Named(b"UNIQUE_ID");
        assert_eq!(pairs, [(Key::Known(15), &b"curl"[..]), (named, &b"/srv"[..])]);
    }
}
