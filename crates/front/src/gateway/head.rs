//! A reply's head as CGI writes it (RFC 3875, section 6.2): `Status` and the fields.

use crate::relay::ReplyBody;
use http_body::Body;
use hyper::header::{CONNECTION, CONTENT_LENGTH, HeaderName};
use hyper::{Response, StatusCode};

/// What the app says of its end as a process, for those who started it as one.
const EXIT_STATUS: HeaderName = HeaderName::from_static("oribi-exit-status");

/// Takes the exit status that is to be reported instead of 0.
pub fn exit_status(response: &mut Response<ReplyBody>) -> u32 {
    let said = response.headers_mut().remove(EXIT_STATUS);
    said.and_then(|value| value.to_str().ok()?.trim().parse().ok()).unwrap_or(0)
}

/// Appends the head, with the body's length where that is known.
pub fn write(out: &mut Vec<u8>, response: &Response<ReplyBody>, wants_body: bool) {
    let status = response.status();
    out.extend_from_slice(b"Status: ");
    out.extend_from_slice(status.as_str().as_bytes());
    out.extend_from_slice(b" ");
    out.extend_from_slice(status.canonical_reason().unwrap_or("Unknown").as_bytes());
    out.extend_from_slice(b"\r\n");
    // Connections are between the client and its web server.
    for (name, value) in response.headers().iter().filter(|(name, _)| *name != CONNECTION) {
        out.extend_from_slice(name.as_str().as_bytes());
        out.extend_from_slice(b": ");
        out.extend_from_slice(value.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
    if wants_body
        && has_body(status)
        && !response.headers().contains_key(CONTENT_LENGTH)
        && let Some(length) = response.body().size_hint().exact()
    {
        out.extend_from_slice(b"content-length: ");
        out.extend_from_slice(length.to_string().as_bytes());
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"\r\n");
}

/// Replies of these have none (RFC 9110, sections 15.3.5, 15.3.6 and 15.4.5).
pub fn has_body(status: StatusCode) -> bool {
    use StatusCode as S;
    !matches!(status, S::NO_CONTENT | S::RESET_CONTENT | S::NOT_MODIFIED)
}
