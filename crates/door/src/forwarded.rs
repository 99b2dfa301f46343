//! For whom a proxy speaks: `Forwarded` (RFC 7239) and `X-Forwarded-*`.
//!
//! Both are lists to which each proxy appends at the right, so they are read from there: what is
//! left of the first address that is not trusted may be invented. Garbage ends the reading and is
//! never an error.

use crate::host::{self, Authority, is_port};
use http::{HeaderMap, HeaderValue};
use std::net::{IpAddr, SocketAddr};

/// Whose word is taken.
#[derive(Clone, Debug, Default)]
pub struct Trust {
    /// Addresses and prefix lengths.
    pub networks: Vec<(IpAddr, u8)>,
    /// Whether every client of a unix socket is trusted.
    pub unix: bool,
}

impl Trust {
    /// Whether anybody is trusted at all.
    pub fn is_declared(&self) -> bool {
        self.unix || !self.networks.is_empty()
    }

    /// Whether this client is trusted; None is one of a unix socket.
    pub fn covers(&self, client: Option<IpAddr>) -> bool {
        let Some(client) = client else { return self.unix };
        let client = client.to_canonical();
        self.networks.iter().any(|(network, prefix)| match (network, client) {
            (IpAddr::V4(network), IpAddr::V4(client)) => {
                let differ = network.to_bits() ^ client.to_bits();
                differ.leading_zeros() >= u32::from(*prefix)
            }
            (IpAddr::V6(network), IpAddr::V6(client)) => {
                let differ = network.to_bits() ^ client.to_bits();
                differ.leading_zeros() >= u32::from(*prefix)
            }
            _ => false,
        })
    }
}

/// The header that trusted proxies set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// `X-Forwarded-For`, `-Proto`, `-Host` and `-Port`.
    XForwarded,
    /// `Forwarded`.
    Forwarded,
    /// None of them.
    Neither,
}

impl Field {
    /// Whether this is the field that a header (its name in lower case) belongs to; None for
    /// headers that say nothing about clients.
    pub fn owns(self, name: &str) -> Option<bool> {
        match name {
            "forwarded" => Some(self == Field::Forwarded),
            "x-real-ip" => Some(self == Field::XForwarded),
            _ if name.starts_with("x-forwarded-") => Some(self == Field::XForwarded),
            _ => None,
        }
    }
}

/// What trusted proxies say of a request. What they do not say, or not legibly, is None.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Claims<'a> {
    /// The client's address: the right-most one that is not trusted, else the left-most.
    pub client: Option<IpAddr>,
    /// The client's port.
    pub client_port: Option<u16>,
    /// Whether the client speaks TLS.
    pub https: Option<bool>,
    /// Whom the client asked.
    pub host: Option<Authority<'a>>,
    /// The port that the client asked.
    pub port: Option<&'a str>,
}

/// Reads what a trusted client's headers say.
pub fn read<'a>(headers: &'a HeaderMap, field: Field, trust: &Trust) -> Claims<'a> {
    match field {
        Field::XForwarded => x_forwarded(headers, trust),
        Field::Forwarded => forwarded(headers, trust),
        Field::Neither => Claims::default(),
    }
}

fn x_forwarded<'a>(headers: &'a HeaderMap, trust: &Trust) -> Claims<'a> {
    let mut claims = Claims::default();
    let mut hops = 0;
    for item in items(headers, "x-forwarded-for") {
        let Some((client, port)) = node(item) else { break };
        (claims.client, claims.client_port) = (Some(client), port);
        hops += 1;
        if !trust.covers(Some(client)) {
            break;
        }
    }
    let all = items(headers, "x-forwarded-for").count();
    // A list of the same length was appended to by the same proxies; of another, the nearest
    // proxy's word is all that is sure.
    let pick = |name| {
        let aligned = hops > 0 && items(headers, name).count() == all;
        items(headers, name).nth(if aligned { hops - 1 } else { 0 })
    };
    claims.https = pick("x-forwarded-proto").and_then(is_https);
    claims.host = pick("x-forwarded-host").and_then(|host| host::read(host.as_bytes()));
    claims.port = pick("x-forwarded-port").filter(|port| is_port(port) && *port != "0");
    claims
}

/// The items of a list, from the right.
fn items<'a>(headers: &'a HeaderMap, name: &str) -> impl Iterator<Item = &'a str> {
    lines(headers, name)
        .flat_map(|line| line.rsplit(',').map(|item| item.trim_matches([' ', '\t'])))
}

/// The lines of a field, from the last; an empty one in place of what is not ASCII.
fn lines<'a>(headers: &'a HeaderMap, name: &str) -> impl Iterator<Item = &'a str> {
    let text = |value: &'a HeaderValue| value.to_str().unwrap_or_default();
    headers.get_all(name).iter().rev().map(text)
}

fn forwarded<'a>(headers: &'a HeaderMap, trust: &Trust) -> Claims<'a> {
    let mut claims = Claims::default();
    for element in lines(headers, "forwarded").flat_map(Elements::of) {
        let Some(element) = Element::read(element) else { break };
        claims.https = element.proto.and_then(is_https);
        claims.host = element.host.and_then(|host| host::read(host.as_bytes()));
        let Some((client, port)) = element.node.and_then(node) else { break };
        (claims.client, claims.client_port) = (Some(client), port);
        if !trust.covers(Some(client)) {
            break;
        }
    }
    claims
}

/// The elements of a `Forwarded` line, from the right: a quote that a client has opened and not
/// closed swallows nothing of what a proxy has appended.
struct Elements<'a>(Option<&'a str>);

impl<'a> Elements<'a> {
    fn of(line: &'a str) -> Elements<'a> {
        Elements(Some(line))
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let line = self.0.take()?;
        let mut quoted = false;
        for (at, byte) in line.bytes().enumerate().rev() {
            quoted ^= byte == b'"';
            if byte == b',' && !quoted {
                self.0 = Some(&line[..at]);
                return Some(&line[at + 1..]);
            }
        }
        Some(line)
    }
}

/// What one proxy said.
#[derive(Default)]
struct Element<'a> {
    node: Option<&'a str>,
    proto: Option<&'a str>,
    host: Option<&'a str>,
}

impl<'a> Element<'a> {
    /// None for what does not follow the grammar or says something twice. Values with escapes or
    /// semicolons in their quotes are taken for such: no address, scheme or host has any.
    fn read(text: &'a str) -> Option<Element<'a>> {
        let mut element = Element::default();
        for pair in text.split(';').map(|pair| pair.trim_matches([' ', '\t'])) {
            if pair.is_empty() {
                continue;
            }
            let (name, value) = pair.split_once('=')?;
            let value = match value.strip_prefix('"') {
                Some(quoted) => quoted.strip_suffix('"')?,
                None => value,
            };
            if value.is_empty() || value.contains(['"', '\\', ' ', '\t']) {
                return None;
            }
            let known = match name.to_ascii_lowercase().as_str() {
                "for" => &mut element.node,
                "proto" => &mut element.proto,
                "host" => &mut element.host,
                _ => continue,
            };
            if known.replace(value).is_some() {
                return None;
            }
        }
        Some(element)
    }
}

/// An address, IPv6 with or without brackets, with or without a port.
fn node(text: &str) -> Option<(IpAddr, Option<u16>)> {
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    if let Ok(address) = bare.parse::<IpAddr>() {
        return Some((address.to_canonical(), None));
    }
    let whole = text.parse::<SocketAddr>().ok()?;
    Some((whole.ip().to_canonical(), Some(whole.port())))
}

fn is_https(scheme: &str) -> Option<bool> {
    match scheme.to_ascii_lowercase().as_str() {
        "https" | "wss" => Some(true),
        "http" | "ws" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderName;
    use proptest::prelude::*;

    fn trust() -> Trust {
        let network = |text: &str, prefix| (text.parse().unwrap(), prefix);
        let networks = vec![network("10.0.0.0", 8), network("127.0.0.1", 32), network("fd00::", 8)];
        Trust { networks, unix: false }
    }

    fn headers(lines: &[(&str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            let name: HeaderName = name.parse().unwrap();
            headers.append(name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        headers
    }

    fn client(field: Field, lines: &[(&str, &str)]) -> Option<String> {
        let headers = headers(lines);
        let claims = read(&headers, field, &trust());
        let port = claims.client_port.map_or(String::new(), |port| format!(" {port}"));
        claims.client.map(|client| format!("{client}{port}"))
    }

    #[test]
    fn trust_is_by_network() {
        let trust = trust();
        let covers = |text: &str| trust.covers(Some(text.parse().unwrap()));
        for inside in ["10.0.0.0", "10.255.1.2", "127.0.0.1", "fdff::1", "::ffff:10.1.2.3"] {
            assert!(covers(inside), "{inside}");
        }
        for outside in
            ["11.0.0.0", "9.255.255.255", "127.0.0.2", "fe00::1", "::1", "::ffff:11.0.0.1"]
        {
            assert!(!covers(outside), "{outside}");
        }
        assert!(!trust.covers(None));
        assert!(trust.is_declared() && !Trust::default().is_declared());
        let unix = Trust { unix: true, ..Trust::default() };
        assert!(unix.is_declared() && unix.covers(None) && !unix.covers("10.0.0.1".parse().ok()));
        let all = Trust { networks: vec![("0.0.0.0".parse().unwrap(), 0)], unix: false };
        assert!(all.covers("1.2.3.4".parse().ok()) && !all.covers("::1".parse().ok()));
    }

    #[test]
    fn the_right_most_untrusted_address_is_the_client() {
        let ask = |lists: &[&str]| {
            let lines: Vec<_> = lists.iter().map(|list| ("x-forwarded-for", *list)).collect();
            client(Field::XForwarded, &lines)
        };
        let found = |text: &str| Some(text.to_owned());
        assert_eq!(ask(&["192.0.2.1"]), found("192.0.2.1"));
        assert_eq!(ask(&["6.6.6.6, 192.0.2.1, 10.1.1.1"]), found("192.0.2.1"));
        assert_eq!(ask(&["6.6.6.6", "192.0.2.1,10.1.1.1", "10.2.2.2"]), found("192.0.2.1"));
        assert_eq!(ask(&["10.3.3.3, 10.1.1.1"]), found("10.3.3.3"));
        assert_eq!(ask(&["192.0.2.1:99"]), found("192.0.2.1 99"));
        assert_eq!(ask(&["[2001:db8::1]:99"]), found("2001:db8::1 99"));
        assert_eq!(ask(&["[2001:db8::1]"]), found("2001:db8::1"));
        assert_eq!(ask(&["2001:db8::1"]), found("2001:db8::1"));
        assert_eq!(ask(&["::ffff:192.0.2.1"]), found("192.0.2.1"));
        assert_eq!(ask(&["garbage, 192.0.2.1"]), found("192.0.2.1"));
        assert_eq!(ask(&["192.0.2.1, unknown, 10.1.1.1"]), found("10.1.1.1"));
        for garbage in ["", ",", "unknown", "192.0.2.1,", "192.0.2.1 x", "192.0.2.256", "\u{e9}"] {
            assert_eq!(ask(&[garbage]), None, "{garbage:?}");
        }
        assert_eq!(ask(&[]), None);
    }

    #[test]
    fn x_forwarded_says_scheme_host_and_port() {
        let ask = |lines: &[(&str, &str)]| {
            let headers = headers(lines);
            let claims = read(&headers, Field::XForwarded, &trust());
            let host = claims.host.map(|host| host.text.to_owned());
            (claims.https, host, claims.port.map(str::to_owned))
        };
        let (list, proto) = ("x-forwarded-for", "x-forwarded-proto");
        assert_eq!(
            ask(&[(proto, "HTTPS"), ("x-forwarded-host", "a:1"), ("x-forwarded-port", "2")]),
            (Some(true), Some("a:1".into()), Some("2".into()))
        );
        // Appended to by the same proxies: the one that saw the client counts.
        let lines = [(list, "6.6.6.6, 192.0.2.1, 10.0.0.1"), (proto, "http, https, http")];
        assert_eq!(ask(&lines).0, Some(true));
        assert_eq!(ask(&[(list, "192.0.2.1, 10.0.0.1"), (proto, "https")]).0, Some(true));
        assert_eq!(ask(&[(list, "192.0.2.1"), (proto, "https, http")]).0, Some(false));
        let garbage = [(proto, "gopher"), ("x-forwarded-host", "a b"), ("x-forwarded-port", "0")];
        assert_eq!(ask(&garbage), (None, None, None));
    }

    #[test]
    fn forwarded_elements() {
        let ask = |lists: &[&str]| {
            let lines: Vec<_> = lists.iter().map(|list| ("forwarded", *list)).collect();
            client(Field::Forwarded, &lines)
        };
        let found = |text: &str| Some(text.to_owned());
        assert_eq!(ask(&["for=192.0.2.1"]), found("192.0.2.1"));
        assert_eq!(ask(&["For=\"[2001:db8::1]:4711\""]), found("2001:db8::1 4711"));
        assert_eq!(
            ask(&["for=6.6.6.6, for=192.0.2.1;proto=http;by=1.1.1.1, for=10.0.0.1"]),
            found("192.0.2.1")
        );
        assert_eq!(ask(&["for=6.6.6.6", "for=192.0.2.1", ";;for=10.0.0.1;"]), found("192.0.2.1"));
        // What a client has written must not hide what a proxy has appended.
        assert_eq!(ask(&["for=\"6.6.6.6, for=192.0.2.1"]), found("192.0.2.1"));
        assert_eq!(ask(&["for=\"a\\\", for=192.0.2.1;host=\"b\""]), found("192.0.2.1"));
        for garbage in [
            "",
            "for",
            "for=",
            "for=unknown",
            "for=_x",
            "for= 192.0.2.1",
            "for=\"192.0.2.1",
            "for=192.0.2.1;for=192.0.2.1",
            "for=192.0.2.1:_p",
            "for=192.0.2.1,",
        ] {
            assert_eq!(ask(&[garbage]), None, "{garbage:?}");
        }
    }

    #[test]
    fn forwarded_says_scheme_and_host_of_the_clients_hop() {
        let lines = [(
            "forwarded",
            "for=6.6.6.6;proto=http;host=evil, \
                       for=192.0.2.1;proto=https;host=\"a:81\", for=10.0.0.1;proto=http;host=b",
        )];
        let headers = headers(&lines);
        let claims = read(&headers, Field::Forwarded, &trust());
        assert_eq!(claims.https, Some(true));
        assert_eq!(claims.host.map(|host| host.text), Some("a:81"));
        assert_eq!(read(&headers, Field::XForwarded, &trust()), Claims::default());
        assert_eq!(read(&headers, Field::Neither, &trust()), Claims::default());
    }

    #[test]
    fn families() {
        assert_eq!(Field::XForwarded.owns("x-forwarded-for"), Some(true));
        assert_eq!(Field::XForwarded.owns("forwarded"), Some(false));
        assert_eq!(Field::Forwarded.owns("x-real-ip"), Some(false));
        assert_eq!(Field::Neither.owns("forwarded"), Some(false));
        assert_eq!(Field::Neither.owns("x-request-id"), None);
    }

    proptest! {
        /// Whatever a client sends, a proxy's own word behind it is what counts.
        #[test]
        fn a_client_cannot_hide(garbage in "[ -~]{0,40}", known in "(for=|\"|,|;|10\\.0\\.0\\.1| ){0,9}") {
            for sent in [garbage, known] {
                let list = format!("{sent}, 192.0.2.1");
                let found = client(Field::XForwarded, &[("x-forwarded-for", &list)]);
                prop_assert_eq!(found.as_deref(), Some("192.0.2.1"));
                let list = format!("{sent}, for=192.0.2.1;proto=https");
                let found = client(Field::Forwarded, &[("forwarded", &list)]);
                prop_assert_eq!(found.as_deref(), Some("192.0.2.1"));
            }
        }
    }
}
