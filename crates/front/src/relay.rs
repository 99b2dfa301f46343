//! Step 10: the reply's head out of the slot, and its body as hyper wants it.

use crate::admit::Ticket;
use crate::aside::Aside;
use crate::body::Stop;
use crate::file::FilePart;
use crate::here;
use crate::proxy;
use crate::pump;
use crate::refuse::{Refusal, log};
use crate::stats::Answer;
use crate::stream::{CutShort, Reader, Stream, wrong_length};
use crate::until_close;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::header::{CONTENT_LENGTH, HeaderName, HeaderValue, TRANSFER_ENCODING};
use hyper::{Response, StatusCode, Version};
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use wire::frame::{self, Malformed};

/// What hyper sends as the response's body.
pub enum ReplyBody {
    /// All of it is known.
    Full(Option<Bytes>),
    /// The worker is still writing, or its client has not taken all.
    Stream(Reader),
    /// A backend's, which the client has not taken all of.
    Proxied(proxy::Reader),
    /// A file; the worker is through.
    File(Box<FilePart>),
}

impl ReplyBody {
    /// A body that is all there.
    pub fn full(bytes: Bytes) -> ReplyBody {
        ReplyBody::Full((!bytes.is_empty()).then_some(bytes))
    }
}

/// The same as `relay`, counted.
pub async fn reply(
    ticket: Ticket,
    beside: Option<(&Aside, Version)>,
) -> Result<Response<ReplyBody>, Stop> {
    let to_come = Answer::to_come(ticket.mount);
    let answer = relay(ticket, beside).await;
    to_come.is(&answer);
    answer
}

/// Waits for the reply's head, and relays the rest. Interim responses, which HTTP/1.0 does not know,
/// go out by `beside`, and so does the connection when the app takes it. None: the connection is not
/// the client's.
async fn relay(
    ticket: Ticket,
    beside: Option<(&Aside, Version)>,
) -> Result<Response<ReplyBody>, Stop> {
    let (mount, wants_body) = (ticket.mount, ticket.wants_body);
    let mut stream = Stream::new(ticket);
    let mut head = None;
    let mut read = Ok(false);
    let arrived = poll_fn(|context| {
        stream.wait(context);
        // No further than the head: what comes before it may have to wait for its client.
        if read.is_ok() && head.is_none() {
            read = stream.read(&mut |payload| head = Some(build(payload)));
        }
        if let Some(before) = &mut stream.before
            && !before.interim.is_empty()
        {
            let interim = std::mem::take(&mut before.interim);
            if let Some((aside, Version::HTTP_11)) = beside {
                aside.say(&interim);
            }
        }
        match read {
            // This task is woken when it is out.
            _ if beside.is_some_and(|(aside, _)| aside.is_saying()) => Poll::Pending,
            Err(Malformed) => Poll::Ready(Err(Refusal::BadReply)),
            Ok(_) if head.is_some() || stream.is_hijacked() => Poll::Ready(Ok(())),
            Ok(_) if stream.shed => Poll::Ready(Err(Refusal::WaitedTooLong)),
            Ok(_) if stream.overdue => Poll::Ready(Err(Refusal::RanTooLong)),
            Ok(_) if stream.cut || stream.ended => Poll::Ready(Err(Refusal::WorkerDied)),
            // A head longer than one look.
            Ok(true) => {
                context.waker().wake_by_ref();
                Poll::Pending
            }
            Ok(false) => Poll::Pending,
        }
    });
    arrived.await?;
    let Some((aside, version)) = beside else { return Ok(respond(stream, head, wants_body)) };
    if let Some((status, hijack)) = stream.hijack() {
        aside.give(hijack);
        return Err(Stop::Given(status));
    }
    let mut response = respond(stream, head, wants_body);
    if wants_body {
        until_close::prepare(&mut response, aside, version, mount).await;
    }
    Ok(response)
}

/// The response whose head has come.
fn respond(mut stream: Stream, head: Option<Built>, wants_body: bool) -> Response<ReplyBody> {
    let Some(Ok((mut response, declared))) = head else {
        let tag = here::tag(stream.mount);
        log(&format!("{tag}the app's reply has a header that HTTP does not allow"));
        return Refusal::BadReply.response();
    };
    // HEAD and 304 name the length of a body that is not there (RFC 9110, section 8.6).
    if wants_body && response.status() != StatusCode::NOT_MODIFIED {
        stream.declared = declared;
    }
    if stream.ended && stream.declared.is_some_and(|declared| declared != stream.length) {
        wrong_length(stream.mount, stream.length);
        return Refusal::BadReply.response();
    }
    *response.body_mut() = body(stream);
    response
}

fn body(mut stream: Stream) -> ReplyBody {
    if let Some(file) = stream.file.take() {
        return ReplyBody::File(Box::new(file));
    }
    match stream.ready.len() {
        0 if stream.ended => return ReplyBody::Full(None),
        1 if stream.ended => return ReplyBody::Full(stream.ready.pop_front()),
        _ => {}
    }
    stream.check_excess();
    let ended = stream.is_over();
    let stream = Arc::new(Mutex::new(stream));
    if !ended {
        pump::watch(&stream);
    }
    ReplyBody::Stream(Reader(stream))
}

type Built = Result<(Response<ReplyBody>, Option<u64>), Malformed>;

/// Status and headers of a HEAD payload, and the body's length if the app has declared it.
fn build(payload: &[u8]) -> Built {
    let head = frame::Head::parse(payload)?;
    let mut response = Response::new(ReplyBody::Full(None));
    let mut declared = None;
    *response.status_mut() = head.status.try_into().map_err(|_| Malformed)?;
    for field in head {
        let (name, value) = field?;
        let name = HeaderName::from_bytes(name).map_err(|_| Malformed)?;
        let value = HeaderValue::from_bytes(value).map_err(|_| Malformed)?;
        if name == CONTENT_LENGTH && declared.replace(digits(&value)?).is_some() {
            return Err(Malformed);
        }
        // Framing is the front's.
        if name != TRANSFER_ENCODING {
            response.headers_mut().append(name, value);
        }
    }
    Ok((response, declared))
}

fn digits(value: &HeaderValue) -> Result<u64, Malformed> {
    let digits = value.to_str().ok().filter(|text| text.bytes().all(|c| c.is_ascii_digit()));
    digits.and_then(|text| text.parse().ok()).ok_or(Malformed)
}

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = CutShort;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, CutShort>>> {
        match self.get_mut() {
            ReplyBody::Full(bytes) => Poll::Ready(bytes.take().map(|b| Ok(Frame::data(b)))),
            ReplyBody::Stream(reader) => {
                reader.poll_part(context).map(|part| part.map(|part| part.map(Frame::data)))
            }
            ReplyBody::Proxied(reader) => {
                reader.poll_part(context).map(|part| part.map(|part| part.map(Frame::data)))
            }
            ReplyBody::File(file) => file
                .poll_part(context)
                .map(|part| part.map(|part| part.map(Frame::data).map_err(|_| CutShort))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            ReplyBody::Full(bytes) => bytes.is_none(),
            ReplyBody::Stream(reader) => reader.left().0,
            ReplyBody::Proxied(reader) => reader.left().0,
            ReplyBody::File(file) => file.left() == 0,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            ReplyBody::Full(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |b| b.len() as u64))
            }
            ReplyBody::Stream(reader) => {
                reader.left().1.map_or_else(SizeHint::default, SizeHint::with_exact)
            }
            ReplyBody::Proxied(reader) => {
                reader.left().1.map_or_else(SizeHint::default, SizeHint::with_exact)
            }
            ReplyBody::File(file) => SizeHint::with_exact(file.left()),
        }
    }
}
