//! Answers of the front's own: what it refuses, and why, in one line of plain text.

use crate::relay::ReplyBody;
use hyper::header::{CONNECTION, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use hyper::{Response, StatusCode};

/// A refusal the client gets instead of the app's reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The request body is longer than slots and chunks hold.
    BodyTooLarge,
    /// The request's head is longer than a chunk.
    HeadTooLarge,
    /// No slot, no chunk or no place in the queue.
    Overloaded,
    /// It was in the queue longer than `queue_timeout`.
    WaitedTooLong,
    /// The worker died before the reply was whole.
    WorkerDied,
    /// The worker's reply makes no sense.
    BadReply,
}

impl Refusal {
    fn status(self) -> StatusCode {
        match self {
            Refusal::BodyTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Refusal::HeadTooLarge => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            Refusal::Overloaded | Refusal::WaitedTooLong => StatusCode::SERVICE_UNAVAILABLE,
            Refusal::WorkerDied => StatusCode::BAD_GATEWAY,
            Refusal::BadReply => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    fn text(self) -> &'static str {
        match self {
            Refusal::BodyTooLarge => "The request body is too large.\n",
            Refusal::HeadTooLarge => "The request's headers are too large.\n",
            Refusal::Overloaded => "Too many requests are waiting. Try again shortly.\n",
            Refusal::WaitedTooLong => {
                "The request waited longer than queue_timeout allows. Try again shortly.\n"
            }
            Refusal::WorkerDied => "The process that ran this request has died.\n",
            Refusal::BadReply => "The application's reply is not valid.\n",
        }
    }

    /// The refusal as a response.
    pub fn response(self) -> Response<ReplyBody> {
        let mut response = Response::new(ReplyBody::full(self.text().into()));
        *response.status_mut() = self.status();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
        match self {
            Refusal::Overloaded | Refusal::WaitedTooLong => {
                headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
            }
            // Part of the request was not read, so the connection cannot go on.
            Refusal::BodyTooLarge => {
                headers.insert(CONNECTION, HeaderValue::from_static("close"));
            }
            _ => {}
        }
        response
    }
}

/// A line in the front's log.
pub fn log(line: &str) {
    eprintln!("oribi: front: {line}");
}
