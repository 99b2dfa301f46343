//! A request of CGI variables as what its worker is told: env pairs, those that say where it lies and
//! whose it is put right.

use crate::peer::Peer;
use crate::rules::{self, Word};
use door::cgi::{Request, Variables};
use door::forwarded::{self, Claims, Field};
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use std::fmt::Display;
use std::io::Write as _;
use std::net::IpAddr;
use wire::request::{key, push, push_named, push_variable};

/// The name under which the access log's id of a request travels.
const REQUEST_ID: &[u8] = b"HTTP_X_REQUEST_ID";

/// Writes the record. `length` is the body's, `id` the request's own if it has been given one.
pub fn write(
    record: &mut Vec<u8>,
    variables: &Variables<'_>,
    request: &Request<'_>,
    length: u64,
    id: Option<&HeaderValue>,
    peer: &Peer,
) {
    if request.method != "GET" {
        push(record, key::REQUEST_METHOD, request.method.as_bytes());
    }
    if !request.script_name.is_empty() {
        push(record, key::SCRIPT_NAME, &request.script_name);
    }
    // `OPTIONS *` asks about no path: what stands for that, the worker's Rack says.
    if *request.path_info != *b"*" {
        push(record, key::PATH_INFO, &request.path_info);
    }
    if !request.query.is_empty() {
        push(record, key::QUERY_STRING, request.query);
    }
    push(record, key::REQUEST_URI, &request.uri);
    if !matches!(request.protocol, b"HTTP/1.1" | b"") {
        push(record, key::SERVER_PROTOCOL, request.protocol);
        push(record, key::HTTP_VERSION, request.protocol);
    }
    // Some web servers say 0 where there is no body; only these methods always have one.
    let empty = request.length == Some(0) && matches!(request.method, "POST" | "PUT" | "PATCH");
    if length > 0 || empty {
        push(record, key::CONTENT_LENGTH, length.to_string().as_bytes());
    }
    if let Some(id) = id {
        push_variable(record, REQUEST_ID, id.as_bytes());
    }
    write_others(record, variables, request, id.is_some(), peer);
}

/// The host that a proxy claims for this client, if it may.
pub fn host(variables: &Variables<'_>, client: Option<IpAddr>) -> Option<String> {
    let word = Word::of(client);
    let headers = claiming(variables, word);
    claims(&headers, word).host.map(|authority| authority.host.to_string())
}

/// The headers in which somebody may claim something.
fn claiming(variables: &Variables<'_>, word: Word) -> HeaderMap {
    match word {
        Word::Taken(Field::Neither) | Word::Unjudged => HeaderMap::new(),
        Word::Taken(_) => headers(variables),
    }
}

fn claims(headers: &HeaderMap, word: Word) -> Claims<'_> {
    match word {
        Word::Taken(field) => forwarded::read(headers, field, rules::trust()),
        Word::Unjudged => Claims::default(),
    }
}

/// What proxies in front of the web server say, and all the rest.
fn write_others(
    record: &mut Vec<u8>,
    variables: &Variables<'_>,
    request: &Request<'_>,
    has_id: bool,
    peer: &Peer,
) {
    let word = Word::of(request.remote_addr);
    let headers = claiming(variables, word);
    let claims = claims(&headers, word);
    write_ends(record, request, &claims, peer);
    let passes = |name: &[u8]| match name {
        b"HTTP_HOST" => claims.host.is_none(),
        REQUEST_ID => !has_id,
        _ if word == Word::Unjudged => true,
        _ => header(name).is_none_or(|name| word.passes(&name)),
    };
    if let Some(host) = claims.host {
        push(record, key::HTTP_HOST, host.text.as_bytes());
    }
    for (name, value) in variables.others().filter(|(name, _)| passes(name)) {
        push_variable(record, name, value);
    }
}

/// Both ends of the client's connection, as the web server says, or a trusted proxy in front of it.
fn write_ends(record: &mut Vec<u8>, request: &Request<'_>, claims: &Claims<'_>, peer: &Peer) {
    match (claims.client, request.remote_addr) {
        (Some(client), _) => {
            let port = claims.client_port.map_or(String::new(), |port| port.to_string());
            write_client(record, client, port.as_bytes());
        }
        (None, Some(client)) => write_client(record, client, request.remote_port),
        // The web server's own client has no address: a unix socket.
        (None, None) => write_client(record, "", b""),
    }
    let https = claims.https.unwrap_or(request.https);
    if https {
        push(record, key::URL_SCHEME, b"https");
        push_named(record, b"HTTPS", b"on");
    }
    let usual = if https { "443" } else { "80" };
    let (name, port) = match claims.host.or(request.authority) {
        Some(asked) => (asked.host.as_bytes(), asked.port.unwrap_or(usual).as_bytes()),
        None => (
            or_else(&request.server_name, peer.home.name.as_bytes()),
            or_else(request.server_port, usual.as_bytes()),
        ),
    };
    push(record, key::SERVER_NAME, name);
    push(record, key::SERVER_PORT, claims.port.map_or(port, str::as_bytes));
}

fn or_else<'a>(said: &'a [u8], otherwise: &'a [u8]) -> &'a [u8] {
    if said.is_empty() { otherwise } else { said }
}

fn write_client(record: &mut Vec<u8>, client: impl Display, port: &[u8]) {
    // Longer than any address as text, an IPv4 one in an IPv6 one included (RFC 4291, section 2.2).
    let mut text = [0; 48];
    let mut rest = &mut text[..];
    let _ = write!(rest, "{client}");
    let length = 48 - rest.len();
    push(record, key::REMOTE_ADDR, &text[..length]);
    push(record, key::REMOTE_PORT, port);
}

/// The header that a variable stands for, in lower case.
fn header(variable: &[u8]) -> Option<String> {
    let name = std::str::from_utf8(variable.strip_prefix(b"HTTP_")?).ok()?;
    Some(name.to_ascii_lowercase().replace('_', "-"))
}

/// The variables that stand for headers, as these.
pub fn headers(variables: &Variables<'_>) -> HeaderMap {
    let one = |(name, value)| {
        let name = HeaderName::try_from(header(name)?).ok()?;
        Some((name, HeaderValue::from_bytes(value).ok()?))
    };
    variables.others().filter_map(one).collect()
}
