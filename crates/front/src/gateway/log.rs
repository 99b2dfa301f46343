//! The access log's view of a request that is CGI variables.

use super::record;
use crate::access_log::{self, Entry};
use crate::peer::Peer;
use door::cgi::{Request, Variables};
use hyper::header::HeaderValue;
use hyper::http::request::Parts;
use hyper::{Method, Uri, Version};
use std::sync::Arc;

/// Begins an entry where there is a log, and gives the request its id.
pub fn begin(
    variables: &Variables<'_>,
    request: &Request<'_>,
    peer: &Arc<Peer>,
) -> Option<(Box<Entry>, Parts)> {
    if !access_log::is_open() {
        return None;
    }
    let mut like = hyper::Request::new(());
    *like.method_mut() = Method::from_bytes(request.method.as_bytes()).unwrap_or_default();
    *like.uri_mut() = Uri::try_from(&*request.uri).unwrap_or_default();
    *like.version_mut() = match request.protocol {
        b"HTTP/1.0" => Version::HTTP_10,
        b"HTTP/2.0" | b"HTTP/2" => Version::HTTP_2,
        b"HTTP/3.0" | b"HTTP/3" => Version::HTTP_3,
        _ => Version::HTTP_11,
    };
    *like.headers_mut() = record::headers(variables);
    let entry = access_log::begin(&mut like, peer)?;
    let (head, ()) = like.into_parts();
    access_log::speaks_for(&head, request.remote_addr);
    Some((entry, head))
}

/// The id it was given, or had.
pub fn id(head: &Parts) -> Option<&HeaderValue> {
    head.headers.get("x-request-id")
}
