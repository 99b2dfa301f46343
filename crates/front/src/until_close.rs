//! Replies of unknown length that the connection's end ends: for clients of HTTP/1.0, and for all
//! where `chunked_transfer` is off.
//!
//! hyper ends a reply so if it is one of HTTP/1.0. Where the client speaks HTTP/1.1 so does the
//! reply: our version goes out beside hyper's reply, whose first word is left out.

use crate::aside::Aside;
use crate::here;
use crate::relay::ReplyBody;
use http_body::Body;
use hyper::header::{CONNECTION, CONTENT_LENGTH, HeaderValue};
use hyper::{Response, StatusCode, Version};
use std::future::poll_fn;
use std::task::Poll;
use wire::control::MountId;

const OURS: &[u8] = b"HTTP/1.1 ";
const HYPERS: &[u8] = b"HTTP/1.0 ";

/// Makes the connection's end the reply's, where nothing else can be.
pub async fn prepare(
    response: &mut Response<ReplyBody>,
    aside: &Aside,
    version: Version,
    mount: MountId,
) {
    if response.body().size_hint().exact().is_some() || !is_unknown(response) {
        return;
    }
    if version >= Version::HTTP_11 {
        if here::mount_options(mount).chunked_transfer {
            return;
        }
        *response.version_mut() = Version::HTTP_10;
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        aside.say(OURS);
        // This task is woken when it is out.
        poll_fn(|_| if aside.is_saying() { Poll::Pending } else { Poll::Ready(()) }).await;
        aside.leave_out(HYPERS.len());
    }
    aside.ends_reply_by_closing();
}

fn is_unknown(response: &Response<ReplyBody>) -> bool {
    let has_body = ![StatusCode::NO_CONTENT, StatusCode::NOT_MODIFIED].contains(&response.status());
    has_body && !response.headers().contains_key(CONTENT_LENGTH)
}
