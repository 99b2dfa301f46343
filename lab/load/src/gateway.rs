//! A request as a web server passes it on: CGI variables (RFC 3875), in FastCGI's records or SCGI's
//! netstring.

use crate::door::Door;
use crate::plan::Request;

/// The length of a record's header.
pub const HEADER: usize = 8;
/// Every request is this one: a connection carries one at a time.
pub const ID: u16 = 1;
/// The content of a record of a long body: such that no padding is needed.
pub const BLOCK: usize = 32 * 1024;

const BEGIN_REQUEST: u8 = 1;
const PARAMS: u8 = 4;
const STDIN: u8 = 5;
const CONTENT_MAX: usize = 65_535;

/// Everything before the body: SCGI's netstring, FastCGI's BEGIN_REQUEST and PARAMS. `keep` asks a
/// FastCGI server to keep the connection.
pub fn head(door: Door, request: &Request, host: &str, keep: bool) -> Vec<u8> {
    let variables = variables(request, host);
    let mut out = Vec::with_capacity(1024);
    if door == Door::Scgi {
        let mut block = Vec::with_capacity(1024);
        let length = request.body_bytes.to_string();
        let first = [("CONTENT_LENGTH".into(), length), ("SCGI".into(), "1".into())];
        for (name, value) in first.into_iter().chain(variables) {
            for text in [name, value] {
                block.extend_from_slice(text.as_bytes());
                block.push(0);
            }
        }
        out.extend_from_slice(format!("{}:", block.len()).as_bytes());
        out.extend_from_slice(&block);
        out.push(b',');
        return out;
    }
    out.extend_from_slice(&header(BEGIN_REQUEST, 8));
    // A responder (role 1).
    out.extend_from_slice(&[0, 1, u8::from(keep), 0, 0, 0, 0, 0]);
    let mut pairs = Vec::with_capacity(1024);
    let length = (request.body_bytes > 0).then(|| request.body_bytes.to_string());
    let length = ("CONTENT_LENGTH".into(), length.unwrap_or_default());
    for (name, value) in [length].into_iter().chain(variables) {
        put_length(&mut pairs, name.len());
        put_length(&mut pairs, value.len());
        pairs.extend_from_slice(name.as_bytes());
        pairs.extend_from_slice(value.as_bytes());
    }
    for part in pairs.chunks(CONTENT_MAX) {
        out.extend_from_slice(&header(PARAMS, part.len()));
        out.extend_from_slice(part);
    }
    out.extend_from_slice(&header(PARAMS, 0));
    out
}

/// The header of a record of the body; an empty one ends it.
pub fn body_header(length: usize) -> [u8; HEADER] {
    header(STDIN, length)
}

fn header(kind: u8, length: usize) -> [u8; HEADER] {
    let ([id1, id0], [length1, length0]) = (ID.to_be_bytes(), (length as u16).to_be_bytes());
    [1, kind, id1, id0, length1, length0, 0, 0]
}

/// Section 3.4: one byte, or four with the first bit set.
fn put_length(out: &mut Vec<u8>, length: usize) {
    match u8::try_from(length) {
        Ok(short) if short < 128 => out.push(short),
        _ => out.extend_from_slice(&(length as u32 | 1 << 31).to_be_bytes()),
    }
}

/// Those that nginx's own parameter files name, and the split of the path that lighttpd makes.
fn variables(request: &Request, host: &str) -> Vec<(String, String)> {
    let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
    let (name, port) = host.rsplit_once(':').unwrap_or((host, "80"));
    let mut all: Vec<(String, String)> = [
        ("QUERY_STRING", query),
        ("REQUEST_METHOD", &request.method),
        ("SCRIPT_NAME", ""),
        ("PATH_INFO", &decoded(path)),
        ("REQUEST_URI", &request.path),
        ("DOCUMENT_URI", path),
        ("DOCUMENT_ROOT", "/var/www"),
        ("SERVER_PROTOCOL", "HTTP/1.1"),
        ("REQUEST_SCHEME", "http"),
        ("GATEWAY_INTERFACE", "CGI/1.1"),
        ("SERVER_SOFTWARE", "oribi-lab"),
        ("REMOTE_ADDR", "127.0.0.1"),
        ("REMOTE_PORT", "40000"),
        ("SERVER_ADDR", "127.0.0.1"),
        ("SERVER_PORT", port),
        ("SERVER_NAME", name),
        ("REDIRECT_STATUS", "200"),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .collect();
    if !request.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
        all.push(("HTTP_HOST".into(), host.into()));
    }
    for (name, value) in &request.headers {
        let name = name.to_ascii_uppercase().replace('-', "_");
        match name.as_str() {
            "CONTENT_TYPE" => all.push((name, value.clone())),
            _ => all.push((format!("HTTP_{name}"), value.clone())),
        }
    }
    all
}

fn decoded(path: &str) -> String {
    let mut out = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let [byte, after @ ..] = rest {
        let code = match after {
            [high, low, ..] if *byte == b'%' => std::str::from_utf8(&[*high, *low])
                .ok()
                .and_then(|digits| u8::from_str_radix(digits, 16).ok()),
            _ => None,
        };
        out.push(code.unwrap_or(*byte));
        rest = if code.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::{decoded, head};
    use crate::door::Door;
    use crate::plan::Request;

    fn upload() -> Request {
        let headers = vec![("Content-Type".into(), "a/b".into()), ("X-Y".into(), "1".into())];
        Request {
            method: "POST".into(),
            path: "/a%20b?c=d".into(),
            headers,
            body_bytes: 27,
            ..Request::default()
        }
    }

    #[test]
    fn scgi_is_a_netstring_that_begins_with_the_length() {
        let bytes = head(Door::Scgi, &upload(), "h:81", false);
        let text = String::from_utf8(bytes).expect("text");
        let (length, rest) = text.split_once(':').expect("a netstring");
        assert_eq!(rest.len(), length.parse::<usize>().expect("a number") + 1);
        let block = rest.strip_suffix("\0,").expect("its end");
        assert!(block.starts_with("CONTENT_LENGTH\x0027\0SCGI\x001\0"), "{block:?}");
        let parts: Vec<&str> = block.split('\0').collect();
        let value = |name: &str| {
            parts.chunks(2).find(|pair| pair[0] == name).map(|pair| pair[1]).unwrap_or("none")
        };
        for (name, expected) in [
            ("PATH_INFO", "/a b"),
            ("REQUEST_URI", "/a%20b?c=d"),
            ("QUERY_STRING", "c=d"),
            ("SERVER_PORT", "81"),
            ("CONTENT_TYPE", "a/b"),
            ("HTTP_X_Y", "1"),
            ("HTTP_HOST", "h:81"),
        ] {
            assert_eq!(value(name), expected, "{name}");
        }
        let plain = head(Door::Scgi, &Request::default(), "h", false);
        assert!(String::from_utf8_lossy(&plain).contains("CONTENT_LENGTH\x000\0SCGI"));
    }

    #[test]
    fn fastcgi_is_records() {
        let bytes = head(Door::FastCgi, &upload(), "h", true);
        assert_eq!(bytes[..16], [1, 1, 0, 1, 0, 8, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0]);
        assert_eq!(bytes[16..20], [1, 4, 0, 1]);
        assert_eq!(bytes[bytes.len() - 8..], [1, 4, 0, 1, 0, 0, 0, 0]);
        let length = usize::from(u16::from_be_bytes([bytes[20], bytes[21]]));
        assert_eq!(bytes.len(), 24 + length + 8);
        assert_eq!(bytes[24..42], *b"\x0e\x02CONTENT_LENGTH27");
        assert_eq!(head(Door::FastCgi, &upload(), "h", false)[10], 0);
        let long = vec![("x".into(), "y".repeat(70_000))];
        let long = Request { headers: long, ..Request::default() };
        let bytes = head(Door::FastCgi, &long, "h", true);
        let value = bytes.windows(5).any(|five| five == [6, 0x80, 1, 0x11, 0x70]);
        assert!(value, "four bytes for a long value");
        assert_eq!(bytes[20..22], [255, 255], "as many records as it takes");
    }

    #[test]
    fn a_path_is_decoded_as_web_servers_do() {
        assert_eq!(decoded("/a%20b%2f%zz%4"), "/a b/%zz%4");
    }
}
