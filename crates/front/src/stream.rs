//! A reply that is not whole at the first look: frames out of the slot's window, and what was read
//! of them and not sent yet.

use crate::admit::Ticket;
use crate::aside::{self, Before, Hijack, goes_to_app};
use crate::buffers;
use crate::errors::{self, Outlet};
use crate::file::FilePart;
use crate::here;
use crate::pump::Pumped;
use crate::refuse::log;
use crate::stats;
use crate::table;
use crate::view;
use bytes::Bytes;
use std::collections::VecDeque;
use std::fmt;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use wire::control::MountId;
use wire::exchange::Kind;
use wire::frame::{Decoder, Event, Malformed};
use wire::sync::Ordering::*;
use wire::{REPLY_BYTES, State};

/// The reply ended before it was whole; hyper cuts the connection, so that the client sees it.
#[derive(Debug)]
pub struct CutShort;

impl fmt::Display for CutShort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the worker's reply was cut short")
    }
}

impl std::error::Error for CutShort {}

/// Most bytes taken out of a window at a time: the worker goes on meanwhile. More than an answer of
/// 64 KiB with its head, so that one is whole at the first look.
const LOOK: u32 = 128 * 1024;

/// A reply being read from its slot.
pub struct Stream {
    /// None once the slot was given back.
    pub(crate) ticket: Option<Ticket>,
    pub(crate) mount: MountId,
    pub(crate) decoder: Decoder,
    /// The head has been read.
    headed: bool,
    /// Read and not sent yet.
    pub(crate) ready: VecDeque<Bytes>,
    /// The last part of the body ends where what was read of the window ends.
    pub(crate) reaches_end: bool,
    /// The file that is the body.
    pub(crate) file: Option<FilePart>,
    /// What comes before the reply, or instead of it.
    pub(crate) before: Option<Box<Before>>,
    /// The app's Content-Length, where the reply has a body to be held to it.
    pub(crate) declared: Option<u64>,
    /// Bytes of the body read so far.
    pub(crate) length: u64,
    pub(crate) ended: bool,
    /// It ends before it is whole.
    pub(crate) cut: bool,
    /// It waited in the queue for too long; no worker has seen it.
    pub(crate) shed: bool,
    /// It ran for too long, and its worker was killed for it.
    pub(crate) overdue: bool,
    /// hyper has had a turn to send what came before the cut.
    flushed: bool,
    /// `poll_part` has said Pending and not been called since.
    pending: bool,
    /// hyper has asked since the pump last looked.
    pub(crate) asked: bool,
    /// How often the pump saw that the client does not keep up.
    pub(crate) lag: u32,
    pub(crate) pumped: Option<Pumped>,
    /// Where the app's `rack.errors` go.
    pub(crate) errors: Option<Arc<Outlet>>,
}

impl Stream {
    /// Nothing read yet.
    pub fn new(mut ticket: Ticket) -> Stream {
        let (errors, mount) = (ticket.errors.take(), ticket.mount);
        Stream {
            ticket: Some(ticket),
            mount,
            decoder: Decoder::default(),
            headed: false,
            ready: VecDeque::new(),
            reaches_end: false,
            file: None,
            before: None,
            declared: None,
            length: 0,
            ended: false,
            cut: false,
            shed: false,
            overdue: false,
            flushed: false,
            pending: false,
            asked: false,
            lag: 0,
            pumped: None,
            errors,
        }
    }

    /// Reads what the worker has published, `LOOK` bytes at most; calls `on_head` with the head
    /// when it comes. Gives the slot back as soon as all of it was read. True if more is there.
    pub fn read(&mut self, on_head: &mut dyn FnMut(&[u8])) -> Result<bool, Malformed> {
        let Some(ticket) = &self.ticket else { return Ok(false) };
        ticket.lend();
        // Who pumps reads on, whatever becomes of the errors: the worker is to be free.
        let wait_for_errors = self.pumped.is_none();
        if wait_for_errors && self.errors.as_ref().is_some_and(|outlet| outlet.is_full()) {
            return Ok(false);
        }
        let (mount, slot, position) = (ticket.mount, ticket.slot, ticket.position);
        let mut passed = |kind| {
            table::with(mount, |table| table.exchange.borrow_mut().fetch(slot, position, kind))
        };
        let (state, more, rest, overdue) = table::with(mount, |table| {
            let shared = &table.board().slots[slot as usize];
            // The state first: what is written before DONE is then surely seen.
            let state = shared.word().state;
            let overdue = shared.is_overdue(position);
            let read = shared.read.load(Relaxed);
            // A worker may have written anything here; more than a window is never read.
            let there = shared.written.load(Acquire).wrapping_sub(read).min(REPLY_BYTES as u32);
            let rest = if state == State::Done && read == 0 && there >= view::LEAST {
                let room = self.errors.is_none() || there as usize <= errors::MOST;
                (room && view::allowed(table, there)).then_some(there)
            } else {
                None
            };
            let length = if rest.is_some() { buffers::SMALL } else { there.min(LOOK) };
            let mut look = Look { on_head, passed: &mut passed };
            if length > buffers::SMALL {
                let window = buffers::fill(length as usize, |buffer| {
                    table.segment.append_reply(slot, read, length as usize, buffer);
                });
                shared.consumed(length);
                self.decode(&window, |part| window.slice_ref(part), &mut look)?;
            } else if length > 0 {
                buffers::briefly(|buffer| {
                    table.segment.append_reply(slot, read, length as usize, buffer);
                    shared.consumed(length);
                    self.decode(buffer, Bytes::copy_from_slice, &mut look)
                })?;
            }
            Ok((state, there > length, rest, overdue))
        })?;
        // Its worker need not be dead yet.
        self.overdue = overdue && !self.headed;
        // Whose errors have a way may still say that the body is a file, unless that has begun.
        if let Some(written) = rest
            && self.headed
            && self.before.is_none()
            && (self.errors.is_none() || self.reaches_end)
            && let Some(ticket) = self.ticket.take()
        {
            self.view_rest(ticket, buffers::SMALL as usize, written as usize)?;
            self.check_end();
            return Ok(false);
        }
        let done = matches!(state, State::Done | State::Filling) && !more;
        if (done || self.ended)
            && let Some(ticket) = self.ticket.take()
        {
            // Not quite through: it is freed when its worker is.
            if done {
                ticket.settle();
            }
            self.shed = state == State::Filling;
            self.cut |= !self.ended;
            self.check_end();
        }
        Ok(more)
    }

    fn decode(
        &mut self,
        mut input: &[u8],
        keep: impl Fn(&[u8]) -> Bytes,
        look: &mut Look<'_>,
    ) -> Result<(), Malformed> {
        let end = input.as_ptr_range().end;
        while let Some(event) = self.decoder.next(&mut input)? {
            match event {
                Event::End if self.file.is_some() || goes_to_app(&self.before) => {}
                // A file's app may have something to say when it is closed.
                Event::Errors(part) if !self.ended || self.file.is_some() => {
                    self.errors.iter().for_each(|outlet| outlet.push(part))
                }
                _ if self.ended => return Err(Malformed),
                Event::Head(head) => {
                    self.headed = true;
                    (look.on_head)(head);
                }
                Event::Body(part) => {
                    self.length += part.len() as u64;
                    stats::sends(self.mount, part.len() as u64);
                    self.reaches_end = part.as_ptr_range().end == end;
                    self.ready.push_back(keep(part));
                }
                Event::End => self.ended = true,
                Event::File { offset, length } if self.length == 0 => {
                    let file: File = (look.passed)(Kind::File).ok_or(Malformed)?.into();
                    (self.length, self.ended) = (length, true);
                    stats::sends(self.mount, length);
                    self.file = Some(FilePart::new(file, offset, length));
                }
                Event::File { .. } | Event::Errors(_) => return Err(Malformed),
                Event::Interim(payload) => {
                    self.before.get_or_insert_default().add(aside::head(payload)?);
                }
                Event::Hijack => {
                    let app = (look.passed)(Kind::Hijack).ok_or(Malformed)?;
                    self.before.get_or_insert_default().app = Some(app);
                    self.ended = true;
                }
            }
        }
        Ok(())
    }

    /// The app takes the connection: the status that its client gets first, and what it takes.
    /// Without a head of ours it may be any; it counts as 101.
    pub fn hijack(&mut self) -> Option<(u16, Hijack)> {
        let before = self.before.as_mut()?;
        let (status, head) = before.head.take().unwrap_or((101, Vec::new()));
        before.app.take().map(|app| (status, Hijack { head, app, held: None }))
    }

    /// The connection goes to the app.
    pub fn is_hijacked(&self) -> bool {
        goes_to_app(&self.before)
    }

    /// A stream that is shorter than was declared must not look whole.
    fn check_end(&mut self) {
        if self.ended && self.declared.is_some_and(|declared| self.length < declared) {
            self.cut = true;
            wrong_length(self.mount, self.length);
        }
    }

    /// What goes beyond the declared length is not sent. The client has what it was promised.
    pub(crate) fn check_excess(&mut self) {
        let Some(declared) = self.declared else { return };
        if self.length <= declared || self.cut {
            return;
        }
        let mut excess = self.length - declared;
        while let Some(last) = self.ready.back_mut()
            && excess > 0
        {
            let dropped = excess.min(last.len() as u64);
            excess -= dropped;
            last.truncate(last.len() - dropped as usize);
            if last.is_empty() {
                self.ready.pop_back();
            }
        }
        self.cut = true;
        // The worker is told by the ticket's end that nobody wants the rest.
        self.ticket = None;
        wrong_length(self.mount, self.length);
    }

    /// True: was waiting already, and nothing has woken it.
    pub fn wait(&self, context: &Context<'_>) -> bool {
        self.errors.iter().for_each(|outlet| outlet.wait_for_room(context.waker()));
        match &self.ticket {
            Some(ticket) => {
                table::with(ticket.mount, |table| table.wait(ticket.slot, context.waker()))
            }
            None => false,
        }
    }

    fn poll_part(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, CutShort>>> {
        self.asked = true;
        if self.pumped.is_some() {
            return self.poll_pumped(context);
        }
        if let Some(part) = self.ready.pop_front() {
            return Poll::Ready(Some(Ok(part)));
        }
        // Announced before looking, so that nothing that comes in between is missed.
        let asked_again = self.wait(context) && self.pending;
        self.pending = false;
        if self.read_on().is_err() {
            return Poll::Ready(Some(Err(CutShort)));
        }
        if asked_again && self.ended {
            // hyper 1.12 asks twice in one go, and if a body ends the second time it forgets to
            // look for a request that it has read already.
            context.waker().wake_by_ref();
        }
        self.pending = self.ready.is_empty() && !self.is_over();
        match self.ready.pop_front() {
            Some(part) => Poll::Ready(Some(Ok(part))),
            None if self.is_over() => self.poll_end(context),
            None => Poll::Pending,
        }
    }

    /// Reads on behind the head, until there is something of the body or nothing more to read.
    pub(crate) fn read_on(&mut self) -> Result<(), Malformed> {
        let mut second_head = false;
        while self.ready.is_empty() && self.read(&mut |_| second_head = true)? {}
        self.check_excess();
        if second_head { Err(Malformed) } else { Ok(()) }
    }

    /// Nothing more comes out of the slot.
    pub(crate) fn is_over(&self) -> bool {
        self.ticket.is_none()
    }

    /// How it ends, once everything was handed over.
    pub(crate) fn poll_end(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, CutShort>>> {
        match self.cut {
            false => Poll::Ready(None),
            true if self.flushed => Poll::Ready(Some(Err(CutShort))),
            true => {
                // An error makes hyper drop what it has not sent yet.
                self.flushed = true;
                context.waker().wake_by_ref();
                Poll::Pending
            }
        }
    }
}

/// What a look at the frames needs besides the bytes.
struct Look<'a> {
    on_head: &'a mut dyn FnMut(&[u8]),
    /// Fetches the fd of this kind that the worker has passed.
    passed: &'a mut dyn FnMut(Kind) -> Option<OwnedFd>,
}

/// Says that the app's Content-Length is not the body's.
pub fn wrong_length(mount: MountId, length: u64) {
    let tag = here::tag(mount);
    log(&format!("{tag}the app's Content-Length is wrong: the body is {length} bytes long"));
}

/// hyper's side of a stream, which the pump may share.
pub struct Reader(pub(crate) Arc<Mutex<Stream>>);

/// Nothing panics while it holds the lock; if it did, the reply would be cut, not the thread.
pub(crate) fn lock(stream: &Mutex<Stream>) -> MutexGuard<'_, Stream> {
    stream.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Reader {
    /// The next part of the body.
    pub fn poll_part(&self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, CutShort>>> {
        lock(&self.0).poll_part(context)
    }

    /// Whether everything was handed over, and the length of what is left if it is known.
    pub fn left(&self) -> (bool, Option<u64>) {
        let stream = lock(&self.0);
        if stream.pumped.is_some() || !stream.is_over() || stream.cut {
            return (false, None);
        }
        let left = stream.ready.iter().map(|part| part.len() as u64).sum();
        (left == 0, Some(left))
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        lock(&self.0).leave();
    }
}

#[cfg(test)]
mod tests;
