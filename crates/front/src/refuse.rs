//! Answers of the front's own: what it refuses, and why, in one line of plain text.

use crate::relay::ReplyBody;
use bytes::Bytes;
use door::Fault;
use hyper::header::{CONNECTION, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use hyper::{Response, StatusCode};
use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use wire::now_ns;

/// A refusal the client gets instead of the app's reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The request breaks a rule of HTTP.
    Fault(Fault),
    /// The request body is longer than `body_limit`.
    BodyTooLarge,
    /// The client has paused within the body for longer than `body_timeout`.
    BodyTooSlow,
    /// The request body is not what its framing says.
    BadBody,
    /// The request body is not as long as a web server's CONTENT_LENGTH says.
    BadLength,
    /// The disk does not take the request body.
    NotStored,
    /// The client expects what is not known here.
    BadExpectation,
    /// The request's head is longer than `head_limit` or a chunk, or has too many fields.
    HeadTooLarge,
    /// The request's target is longer than `uri_limit`.
    TargetTooLong,
    /// The request is not HTTP.
    Malformed,
    /// The client took longer than `head_timeout` for a head.
    HeadTooSlow,
    /// The listener has as many connections as `connections` allows.
    TooManyConnections,
    /// The client has as many connections as `connections_per_peer` allows.
    TooManyOfClient,
    /// No slot, no chunk or no place in the queue.
    Overloaded,
    /// It was in the queue longer than `queue_timeout`.
    WaitedTooLong,
    /// The worker died before the reply was whole.
    WorkerDied,
    /// It ran longer than `request_timeout`.
    RanTooLong,
    /// The worker's reply makes no sense.
    BadReply,
    /// No server of a proxy mount can be reached.
    NoBackend,
    /// A server of a proxy mount has closed the connection instead of answering.
    BackendLost,
    /// What a server of a proxy mount has answered is not HTTP.
    BadBackend,
}

impl Refusal {
    /// The status it is answered with.
    pub fn status(self) -> StatusCode {
        match self {
            Refusal::Fault(fault) => {
                StatusCode::from_u16(fault.status()).unwrap_or(StatusCode::BAD_REQUEST)
            }
            Refusal::BodyTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Refusal::BodyTooSlow => StatusCode::REQUEST_TIMEOUT,
            Refusal::BadBody | Refusal::BadLength => StatusCode::BAD_REQUEST,
            Refusal::BadExpectation => StatusCode::EXPECTATION_FAILED,
            Refusal::HeadTooLarge => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            Refusal::TargetTooLong => StatusCode::URI_TOO_LONG,
            Refusal::Malformed => StatusCode::BAD_REQUEST,
            Refusal::HeadTooSlow => StatusCode::REQUEST_TIMEOUT,
            Refusal::TooManyOfClient => StatusCode::TOO_MANY_REQUESTS,
            Refusal::TooManyConnections | Refusal::Overloaded | Refusal::WaitedTooLong => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            Refusal::WorkerDied
            | Refusal::NoBackend
            | Refusal::BackendLost
            | Refusal::BadBackend => StatusCode::BAD_GATEWAY,
            Refusal::RanTooLong => StatusCode::GATEWAY_TIMEOUT,
            Refusal::BadReply | Refusal::NotStored => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    fn text(self) -> &'static str {
        match self {
            Refusal::Fault(fault) => fault.text(),
            Refusal::BodyTooLarge => "The request body is too large.\n",
            Refusal::BodyTooSlow => "The request body did not come in time.\n",
            Refusal::BadBody => "The request body is not chunked as HTTP says.\n",
            Refusal::BadLength => "The request body is not as long as CONTENT_LENGTH says.\n",
            Refusal::NotStored => "The server could not store the request body.\n",
            Refusal::BadExpectation => "No expectation but 100-continue can be met.\n",
            Refusal::HeadTooLarge => "The request's headers are too large.\n",
            Refusal::TargetTooLong => "The request's target is too long.\n",
            Refusal::Malformed => "The request is not valid HTTP.\n",
            Refusal::HeadTooSlow => "The request's head did not come in time.\n",
            Refusal::TooManyConnections => "Too many connections. Try again shortly.\n",
            Refusal::TooManyOfClient => "Too many connections from this address.\n",
            Refusal::Overloaded => "Too many requests are waiting. Try again shortly.\n",
            Refusal::WaitedTooLong => {
                "The request waited longer than queue_timeout allows. Try again shortly.\n"
            }
            Refusal::WorkerDied => "The process that ran this request has died.\n",
            Refusal::RanTooLong => "The request ran longer than it may.\n",
            Refusal::BadReply => "The application's reply is not valid.\n",
            Refusal::NoBackend => "The application cannot be reached. Try again shortly.\n",
            Refusal::BackendLost => "The application has closed the connection unanswered.\n",
            Refusal::BadBackend => "The application's reply is not valid HTTP.\n",
        }
    }

    /// What became of the request in its mount; there is nothing wrong with it.
    pub fn is_of_mount(self) -> bool {
        use Refusal::*;
        matches!(
            self,
            Overloaded
                | WaitedTooLong
                | WorkerDied
                | RanTooLong
                | BadReply
                | NoBackend
                | BackendLost
                | BadBackend
        )
    }

    /// The connection cannot go on: what comes next on it is not known to be a request.
    pub fn closes(self) -> bool {
        !self.is_of_mount() && self != Refusal::Fault(door::Fault::NotHere)
    }

    /// There is more to do than can be done.
    pub fn sheds(self) -> bool {
        matches!(self, Refusal::Overloaded | Refusal::WaitedTooLong | Refusal::TooManyConnections)
    }

    /// It may be better in a moment.
    fn asks_again(self) -> bool {
        use Refusal::*;
        matches!(
            self,
            Overloaded | WaitedTooLong | TooManyConnections | TooManyOfClient | NoBackend
        )
    }

    /// The refusal as the bytes of a last response, for where hyper has no say.
    pub fn bytes(self) -> Bytes {
        let (status, text) = (self.status(), self.text());
        let length = text.len();
        let again = if self.asks_again() { "retry-after: 1\r\n" } else { "" };
        let head = "content-type: text/plain\r\nconnection: close\r\ncontent-length:";
        format!("HTTP/1.1 {status}\r\n{again}{head} {length}\r\n\r\n{text}").into()
    }

    /// The refusal as a response.
    pub fn response(self) -> Response<ReplyBody> {
        let mut response = Response::new(ReplyBody::full(self.text().into()));
        *response.status_mut() = self.status();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
        if self.asks_again() {
            headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        if self.closes() {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}

/// A line in the front's log, in one write, so that no other process's line gets into it.
pub fn log(line: &str) {
    let _ = std::io::stderr().write_all(format!("oribi: front: {line}\n").as_bytes());
}

/// A kind of line that comes at most once a second: when a disk is full they are thousands.
pub struct Seldom(AtomicU64);

impl Seldom {
    /// Nothing said yet.
    pub const fn new() -> Seldom {
        Seldom(AtomicU64::new(0))
    }

    /// A line in the front's log, unless there was one within the last second.
    pub fn say(&self, line: &str) {
        const EVERY_NS: u64 = 1_000_000_000;
        let now = now_ns();
        let next = self.0.load(Relaxed);
        if now >= next && self.0.compare_exchange(next, now + EVERY_NS, Relaxed, Relaxed).is_ok() {
            log(line);
        }
    }
}
