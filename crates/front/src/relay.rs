//! Step 10: reply frames out of the slot, to the client.

use crate::admit::Ticket;
use crate::refuse::{Refusal, log};
use crate::table;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::Response;
use hyper::header::{CONTENT_LENGTH, HeaderName, HeaderValue, TRANSFER_ENCODING};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};
use wire::frame::{self, Decoder, Event, Malformed};
use wire::sync::Ordering::*;
use wire::{REPLY_BYTES, State};

/// What hyper sends as the response's body.
pub enum ReplyBody {
    /// All of it is known.
    Full(Option<Bytes>),
    /// The worker is still writing.
    Stream(Box<Stream>),
}

impl ReplyBody {
    /// A body that is all there.
    pub fn full(bytes: Bytes) -> ReplyBody {
        ReplyBody::Full((!bytes.is_empty()).then_some(bytes))
    }
}

/// The reply ended before it was whole; hyper cuts the connection, so that the client sees it.
#[derive(Debug)]
pub struct CutShort;

impl fmt::Display for CutShort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the worker's reply was cut short")
    }
}

impl std::error::Error for CutShort {}

/// A reply being read from its slot.
pub struct Stream {
    /// None once the slot was given back.
    ticket: Option<Ticket>,
    decoder: Decoder,
    ready: VecDeque<Bytes>,
    ended: bool,
    cut: bool,
    /// It waited in the queue for too long; no worker has seen it.
    shed: bool,
    /// hyper has had a turn to send what came before the cut.
    flushed: bool,
    /// `poll_part` has said Pending and not been called since.
    pending: bool,
}

thread_local! {
    static WINDOW: RefCell<[u8; SMALL as usize]> = const { RefCell::new([0; SMALL as usize]) };
}

/// Up to so many bytes are copied once more, out of memory that is used again and again; more than
/// that gets memory of its own.
const SMALL: u32 = 4096;

impl Stream {
    fn new(ticket: Ticket) -> Stream {
        Stream {
            ticket: Some(ticket),
            decoder: Decoder::default(),
            ready: VecDeque::new(),
            ended: false,
            cut: false,
            shed: false,
            flushed: false,
            pending: false,
        }
    }

    /// Reads what the worker has published; calls `on_head` with the head when it comes. Gives the
    /// slot back as soon as the worker is through with it.
    fn read(&mut self, on_head: &mut dyn FnMut(&[u8])) -> Result<(), Malformed> {
        let Some(ticket) = &self.ticket else { return Ok(()) };
        ticket.lend();
        let slot = ticket.slot;
        let state = table::with(|table| {
            let shared = &table.board().slots[slot as usize];
            // The state first: what is written before DONE is then surely seen.
            let state = shared.word().state;
            let read = shared.read.load(Relaxed);
            // A worker may have written anything here; more than a window is never read.
            let length = shared.written.load(Acquire).wrapping_sub(read).min(REPLY_BYTES as u32);
            if length > SMALL {
                let mut window = vec![0; length as usize];
                table.segment.read_reply(slot, read, &mut window);
                shared.consumed(length);
                let window = Bytes::from(window);
                self.decode(&window, |part| window.slice_ref(part), on_head)?;
            } else if length > 0 {
                WINDOW.with_borrow_mut(|window| {
                    let window = &mut window[..length as usize];
                    table.segment.read_reply(slot, read, window);
                    shared.consumed(length);
                    self.decode(window, Bytes::copy_from_slice, on_head)
                })?;
            }
            Ok(state)
        })?;
        if matches!(state, State::Done | State::Filling)
            && let Some(ticket) = self.ticket.take()
        {
            ticket.settle();
            self.shed = state == State::Filling;
            self.cut = !self.ended;
        }
        Ok(())
    }

    fn decode(
        &mut self,
        mut input: &[u8],
        keep: impl Fn(&[u8]) -> Bytes,
        on_head: &mut dyn FnMut(&[u8]),
    ) -> Result<(), Malformed> {
        while let Some(event) = self.decoder.next(&mut input)? {
            match event {
                _ if self.ended => return Err(Malformed),
                Event::Head(head) => on_head(head),
                Event::Body(part) => self.ready.push_back(keep(part)),
                Event::End => self.ended = true,
                Event::File { .. } | Event::Hijack | Event::Interim(_) => return Err(Malformed),
            }
        }
        Ok(())
    }

    /// True: was waiting already, and nothing has woken it.
    fn wait(&self, context: &Context<'_>) -> bool {
        match &self.ticket {
            Some(ticket) => table::with(|table| table.wait(ticket.slot, context.waker())),
            None => false,
        }
    }

    fn poll_part(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, CutShort>>> {
        if let Some(part) = self.ready.pop_front() {
            return Poll::Ready(Some(Ok(part)));
        }
        // Announced before looking, so that nothing that comes in between is missed.
        let asked_again = self.wait(context) && self.pending;
        self.pending = false;
        let mut second_head = false;
        if self.read(&mut |_| second_head = true).is_err() || second_head {
            return Poll::Ready(Some(Err(CutShort)));
        }
        if asked_again && self.ended {
            // hyper 1.12 asks twice in one go, and if a body ends the second time it forgets to
            // look for a request that it has read already.
            context.waker().wake_by_ref();
        }
        self.pending = self.ready.is_empty() && !self.ended && !self.cut;
        match self.ready.pop_front() {
            Some(part) => Poll::Ready(Some(Ok(part))),
            None if self.cut && self.flushed => Poll::Ready(Some(Err(CutShort))),
            None if self.cut => {
                // An error makes hyper drop what it has not sent yet.
                self.flushed = true;
                context.waker().wake_by_ref();
                Poll::Pending
            }
            None if self.ended => Poll::Ready(None),
            None => Poll::Pending,
        }
    }
}

/// Waits for the reply's head, and relays the rest.
pub async fn reply(ticket: Ticket) -> Response<ReplyBody> {
    let mut stream = Stream::new(ticket);
    let mut head = None;
    let arrived = poll_fn(|context| {
        stream.wait(context);
        let read = stream.read(&mut |payload| head = Some(build(payload)));
        match read {
            Err(Malformed) => Poll::Ready(Err(Refusal::BadReply)),
            Ok(()) if head.is_some() => Poll::Ready(Ok(())),
            Ok(()) if stream.shed => Poll::Ready(Err(Refusal::WaitedTooLong)),
            Ok(()) if stream.cut || stream.ended => Poll::Ready(Err(Refusal::WorkerDied)),
            Ok(()) => Poll::Pending,
        }
    });
    if let Err(refusal) = arrived.await {
        return refusal.response();
    }
    let Some(Ok((mut response, declared))) = head else {
        log("the app's reply has a header that HTTP does not allow");
        return Refusal::BadReply.response();
    };
    let length = stream.ready.iter().map(|part| part.len() as u64).sum();
    // Empty is right for HEAD and 304. Of a stream hyper sends as much as was declared, or cuts.
    if stream.ended && length > 0 && declared.is_some_and(|declared| declared != length) {
        log(&format!("the app's Content-Length is wrong: the body is {length} bytes long"));
        return Refusal::BadReply.response();
    }
    *response.body_mut() = match stream.ready.len() {
        0 if stream.ended => ReplyBody::Full(None),
        1 if stream.ended => ReplyBody::Full(stream.ready.pop_front()),
        _ => ReplyBody::Stream(Box::new(stream)),
    };
    response
}

/// Status and headers of a HEAD payload, and the body's length if the app has declared it.
fn build(payload: &[u8]) -> Result<(Response<ReplyBody>, Option<u64>), Malformed> {
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
            ReplyBody::Stream(stream) => {
                stream.poll_part(context).map(|part| part.map(|part| part.map(Frame::data)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            ReplyBody::Full(bytes) => bytes.is_none(),
            ReplyBody::Stream(stream) => {
                stream.ended && stream.ready.is_empty() && stream.ticket.is_none()
            }
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            ReplyBody::Full(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |b| b.len() as u64))
            }
            ReplyBody::Stream(stream) if stream.ended => {
                SizeHint::with_exact(stream.ready.iter().map(|part| part.len() as u64).sum())
            }
            ReplyBody::Stream(_) => SizeHint::default(),
        }
    }
}
