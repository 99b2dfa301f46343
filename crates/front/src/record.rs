//! A request head of HTTP as what its worker is told: env pairs.

use crate::peer::Peer;
use crate::rules::{Asked, Place};
use hyper::Method;
use hyper::Version;
use hyper::header::{CONTENT_LENGTH, COOKIE, HOST, HeaderName, TRANSFER_ENCODING};
use hyper::http::request::Parts;
use wire::request::{key, push, push_header, push_named};

/// The request as env pairs. What the worker's template already says is left out: GET, HTTP/1.1,
/// http, an empty SCRIPT_NAME, an empty QUERY_STRING, the PATH_INFO of `OPTIONS *`.
pub fn write(
    record: &mut Vec<u8>,
    head: &Parts,
    asked: &Asked,
    place: &Place,
    length: u64,
    peer: &Peer,
) {
    if head.method != Method::GET {
        push(record, key::REQUEST_METHOD, head.method.as_str().as_bytes());
    }
    // `OPTIONS *` asks about no path: what stands for that, the worker's Rack says.
    if head.uri.path() != "*" {
        if !place.script_name.is_empty() {
            push(record, key::SCRIPT_NAME, place.script_name.as_bytes());
        }
        push(record, key::PATH_INFO, place.path_info.as_bytes());
    }
    match head.uri.query() {
        Some(query) if !query.is_empty() => push(record, key::QUERY_STRING, query.as_bytes()),
        _ => {}
    }
    match head.uri.path_and_query() {
        Some(target) if head.uri.scheme().is_none() => {
            push(record, key::REQUEST_URI, target.as_str().as_bytes());
        }
        _ => push(record, key::REQUEST_URI, head.uri.to_string().as_bytes()),
    }
    if head.version != Version::HTTP_11 {
        push(record, key::SERVER_PROTOCOL, b"HTTP/1.0");
        push(record, key::HTTP_VERSION, b"HTTP/1.0");
    }
    write_ends(record, asked, peer);
    write_headers(record, head, asked, length, peer);
}

/// Both ends of the connection: the client's, or whom a trusted proxy speaks for; and the server's
/// that was asked for, or the listener's own.
fn write_ends(record: &mut Vec<u8>, asked: &Asked, peer: &Peer) {
    let claims = &asked.claims;
    match claims.client {
        Some(client) => {
            let port = claims.client_port.map_or(String::new(), |port| port.to_string());
            push(record, key::REMOTE_ADDR, client.to_string().as_bytes());
            push(record, key::REMOTE_PORT, port.as_bytes());
        }
        None => {
            push(record, key::REMOTE_ADDR, peer.address.as_bytes());
            push(record, key::REMOTE_PORT, peer.port.as_bytes());
        }
    }
    let https = claims.https == Some(true);
    if https {
        push(record, key::URL_SCHEME, b"https");
        push_named(record, b"HTTPS", b"on");
    }
    let usual = if https { "443" } else { "80" };
    let (name, port) = match asked.authority {
        Some(asked) => (asked.host, asked.port.unwrap_or(usual)),
        None => (peer.home.name.as_str(), peer.home.port.as_str()),
    };
    push(record, key::SERVER_NAME, name.as_bytes());
    push(record, key::SERVER_PORT, claims.port.unwrap_or(port).as_bytes());
}

fn write_headers(record: &mut Vec<u8>, head: &Parts, asked: &Asked, length: u64, peer: &Peer) {
    let chunked = head.headers.contains_key(TRANSFER_ENCODING);
    let passes = |name: &HeaderName| match *name {
        HOST => !asked.instead_of_host,
        TRANSFER_ENCODING | CONTENT_LENGTH => !chunked,
        _ => is_for_apps(name.as_str()) && peer.word.passes(name.as_str()),
    };
    if let (true, Some(authority)) = (asked.instead_of_host, asked.authority) {
        push_header(record, HOST.as_str(), authority.text.as_bytes());
    }
    let all_once = head.headers.len() == head.headers.keys_len();
    if all_once {
        for (name, value) in head.headers.iter().filter(|(name, _)| passes(name)) {
            push_header(record, name.as_str(), value.as_bytes());
        }
    } else {
        for name in head.headers.keys().filter(|name| passes(name)) {
            // RFC 9110, section 5.3; RFC 6265, section 5.4 for cookies.
            let separator: &[u8] = if *name == COOKIE { b"; " } else { b", " };
            let values: Vec<&[u8]> =
                head.headers.get_all(name).iter().map(|value| value.as_bytes()).collect();
            push_header(record, name.as_str(), &values.join(separator));
        }
    }
    if chunked {
        // The app gets the body whole and decoded, so it is told its length.
        push_header(record, CONTENT_LENGTH.as_str(), length.to_string().as_bytes());
    }
}

/// Headers the app gets. `Proxy` would become HTTP_PROXY, which programs obey, `Version` would be
/// HTTP_VERSION, which is Rack's own; an underscore would make a name pass as its dashed twin.
fn is_for_apps(name: &str) -> bool {
    !matches!(name, "proxy" | "version") && !name.contains('_')
}
