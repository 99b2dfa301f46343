//! A host with an optional port, as Host and absolute targets have it (RFC 9110, section 7.2;
//! RFC 3986, sections 3.2.2 and 3.2.3).

use std::net::Ipv6Addr;

/// A host and its port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Authority<'a> {
    /// Both, as sent.
    pub text: &'a str,
    /// The host, an IPv6 address in its brackets.
    pub host: &'a str,
    /// The port, if there is one.
    pub port: Option<&'a str>,
}

/// Bytes of a host name: letters, digits and what RFC 3986 calls unreserved and sub-delims. No `%`:
/// names in the DNS have none, and the HTTP library takes none in a target.
const NAME: [bool; 256] = {
    let mut table = [false; 256];
    let mut c = 0;
    while c < 128 {
        table[c] = matches!(c as u8, b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_'
            | b'~' | b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*' | b'+' | b',' | b';' | b'=');
        c += 1;
    }
    table
};

/// Reads `HOST` or `HOST:PORT`. An empty host is none, nor is one with user information.
pub fn read(text: &[u8]) -> Option<Authority<'_>> {
    let length = match text.first()? {
        b'[' => {
            let end = text.iter().position(|c| *c == b']')?;
            // Neither zones nor the addresses of a future version.
            std::str::from_utf8(&text[1..end]).ok()?.parse::<Ipv6Addr>().ok()?;
            end + 1
        }
        _ => text.iter().position(|c| !NAME[usize::from(*c)]).unwrap_or(text.len()),
    };
    let text = std::str::from_utf8(text).ok()?;
    let (host, rest) = text.split_at_checked(length)?;
    if host.is_empty() {
        return None;
    }
    let port = match rest.strip_prefix(':') {
        None if rest.is_empty() => None,
        // The grammar allows a colon without a port.
        Some("") => None,
        Some(port) if is_port(port) => Some(port),
        _ => return None,
    };
    Some(Authority { text, host, port })
}

/// A decimal number that fits a port.
pub fn is_port(text: &str) -> bool {
    text.bytes().all(|c| c.is_ascii_digit()) && text.len() <= 5 && text.parse::<u16>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn split(text: &str) -> Option<(&str, Option<&str>)> {
        read(text.as_bytes()).map(|authority| (authority.host, authority.port))
    }

    #[test]
    fn hosts_are_split_at_their_port() {
        assert_eq!(split("example.org:8080"), Some(("example.org", Some("8080"))));
        assert_eq!(split("example.org"), Some(("example.org", None)));
        assert_eq!(split("example.org:"), Some(("example.org", None)));
        assert_eq!(split("[::1]:9292"), Some(("[::1]", Some("9292"))));
        assert_eq!(split("[::ffff:1.2.3.4]"), Some(("[::ffff:1.2.3.4]", None)));
        assert_eq!(split("my_host.internal"), Some(("my_host.internal", None)));
    }

    #[test]
    fn what_is_no_host() {
        for text in [
            "",
            ":80",
            "a b",
            "a@b",
            "u:p@b",
            "a:b",
            "a:80:80",
            "a:65536",
            "a:+1",
            "a: 80",
            "[::1",
            "[::1]x",
            "[]",
            "[1.2.3.4]",
            "[::1%25eth0]",
            "[v1.x]",
            "::1",
            "a/b",
            "a?b",
            "a#b",
            "a\\b",
            "a%20b",
            "\u{e9}",
            "a\0",
            "http://a",
            "a:80/",
            "a, b",
        ] {
            assert_eq!(split(text), None, "{text:?}");
        }
        assert_eq!(read(b"\xff"), None);
    }

    proptest! {
        #[test]
        fn what_is_read_is_all_there_was(text in prop::collection::vec(any::<u8>(), 0..40)) {
            if let Some(authority) = read(&text) {
                prop_assert_eq!(authority.text.as_bytes(), &text[..]);
                let port = authority.port.map_or(String::new(), |port| format!(":{port}"));
                let again = format!("{}{port}", authority.host);
                prop_assert_eq!(again, authority.text.trim_end_matches(':'));
                prop_assert!(!authority.host.contains(['@', '/', ' ', '?', '#', '%', '\\']));
            }
        }
    }
}
