//! A slot's life: FREE → FILLING → QUEUED → TAKEN → BEGUN → DONE → FREE.
//!
//! One 64-bit word says all of it: queue position, owner and state. Claim and ownership are one
//! compare-and-swap on that word, so a worker that dies at any instant leaves a slot whose word
//! says exactly how far it came (`settle` reads it), and so does the front when it cancels.

use crate::layout::{BODY_CHUNKS, Board, REPLY_BYTES, REPLY_ROOM};
use crate::sync::{AtomicU32, AtomicU64, Ordering::*, fence, futex_wait, futex_wake};

/// How far the request in a slot has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum State {
    /// Nobody's.
    Free = 0,
    /// The front writes the request.
    Filling = 1,
    /// In the queue; the front may cancel it, a worker may take it.
    Queued = 2,
    /// A worker has it but has not called the app.
    Taken = 3,
    /// The app runs, or has run up to an unknown point.
    Begun = 4,
    /// The reply is complete, or will never be; the front reads and frees.
    Done = 5,
}

/// The state word taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word {
    /// How far.
    pub state: State,
    /// The seat that has it (meaningful from `Taken` to `Done`).
    pub owner: u16,
    /// Its place in the queue, counted from the segment's first request.
    pub position: u64,
}

impl Word {
    /// Packs the word: position above bit 20, owner in bits 8 to 19, state below.
    pub fn pack(self) -> u64 {
        self.position << 20 | u64::from(self.owner) << 8 | self.state as u64
    }

    /// The inverse of `pack`. A state nobody ever writes reads as `Free`: it can then be neither
    /// taken nor settled, and costs one slot at the most.
    pub fn unpack(word: u64) -> Word {
        let state = match word as u8 {
            1 => State::Filling,
            2 => State::Queued,
            3 => State::Taken,
            4 => State::Begun,
            5 => State::Done,
            _ => State::Free,
        };
        Word { state, owner: (word >> 8 & 0xfff) as u16, position: word >> 20 }
    }

    /// The word of a request waiting at `position`.
    pub fn queued(position: u64) -> Word {
        Word { state: State::Queued, owner: 0, position }
    }
}

/// What a worker must know of the door that a request came through.
pub mod door {
    /// HTTP: everything Rack knows is possible.
    pub const HTTP: u32 = 0;
    /// The connection is not the client's: no hijack and no interim responses.
    pub const GATEWAY: u32 = 1;
    /// The same, and `rack.errors` travels beside the reply, as ERRORS frames.
    pub const GATEWAY_WITH_ERRORS: u32 = 2;
}

/// How often a request may go back into the queue because its worker died.
pub const RETURNS_MAX: u32 = 1;

/// The shared head of a slot. Everything but `state`, `cancelled` and the reply indices is written
/// by the front while the slot is FILLING and published by the state word.
#[repr(C, align(128))]
#[derive(Default)]
pub struct SlotHead {
    /// The packed `Word`.
    pub state: AtomicU64,
    /// The front that filled it.
    pub incarnation: AtomicU32,
    /// The front thread that waits for the reply.
    pub front: AtomicU32,
    /// Not zero: nobody wants the reply any more.
    pub cancelled: AtomicU32,
    /// How often a dead worker's claim was undone.
    pub returns: AtomicU32,
    /// Not zero: the method may be run twice (GET, HEAD, OPTIONS).
    pub idempotent: AtomicU32,
    /// Bytes of the request record.
    pub head_len: AtomicU32,
    /// Bytes of the request body.
    pub body_len: AtomicU32,
    /// One more than the chunk that holds the record, 0 when it is in the slot itself.
    pub head_chunk: AtomicU32,
    /// The chunks that hold the body, one more than the index each, 16 bits each; 0 when the body
    /// follows the record in the slot.
    pub body_chunks: AtomicU64,
    /// Not zero: the body lies in a file that the front has; `body_len` is then 0. The worker asks
    /// for it over the exchange.
    pub spooled: AtomicU32,
    /// One more than the position of the last request here whose worker was killed because it had
    /// run for too long.
    pub overdue: AtomicU64,
    /// Not zero: the worker has passed a socket to send the spool file to, and waits.
    pub asks: AtomicU32,
    /// Which door the request came through: a `door::` number.
    pub door: AtomicU32,

    /// Bytes of the reply published so far by the worker; wraps.
    pub written: AtomicU32,
    /// Bytes of the reply taken so far by the front; wraps.
    pub read: AtomicU32,
    /// Not zero: the worker sleeps on `room` until there is room in the reply window.
    pub wants_room: AtomicU32,
    /// Changes whenever a sleeping worker should look again.
    pub room: AtomicU32,

    /// When the connection was accepted, ns.
    pub accepted_ns: AtomicU64,
    /// When the request's head was complete, ns.
    pub head_ns: AtomicU64,
    /// When it was put into the queue, ns.
    pub queued_ns: AtomicU64,
    /// When a worker took it, ns.
    pub taken_ns: AtomicU64,
}

impl SlotHead {
    /// The state word as it is now.
    pub fn word(&self) -> Word {
        Word::unpack(self.state.load(Acquire))
    }

    /// One step of the slot's life; false when somebody else was faster.
    pub fn swap(&self, from: Word, to: Word) -> bool {
        self.state.compare_exchange(from.pack(), to.pack(), AcqRel, Relaxed).is_ok()
    }

    /// Front: gives `bytes` of the reply window back to the worker, who is woken when there is room
    /// worth it. A worker that waits has published all it wrote, and the front reads all of that.
    pub fn consumed(&self, bytes: u32) {
        let read = self.read.load(Relaxed).wrapping_add(bytes);
        self.read.store(read, Release);
        if self.room_beyond(self.written.load(Relaxed)) >= REPLY_ROOM as u32 {
            self.wake_writer();
        }
    }

    /// Wakes the worker if it waits for room, after `read` or `cancelled` has changed.
    pub fn wake_writer(&self) {
        fence(SeqCst);
        if self.wants_room.load(Relaxed) != 0 {
            self.room.fetch_add(1, Release);
            futex_wake(&self.room);
        }
    }

    /// Worker: sleeps until the window has room worth it beyond `written`, or the request is
    /// cancelled; may return early.
    pub fn wait_for_room(&self, written: u32) {
        let seen = self.room.load(Acquire);
        self.wants_room.store(1, Relaxed);
        fence(SeqCst);
        if self.room_beyond(written) < REPLY_ROOM as u32 && self.cancelled.load(Acquire) == 0 {
            futex_wait(&self.room, seen, None);
        }
        self.wants_room.store(0, Relaxed);
    }

    /// Bytes that fit into the reply window when `written` bytes have been written so far.
    pub fn room_beyond(&self, written: u32) -> u32 {
        let unread = written.wrapping_sub(self.read.load(Acquire));
        (REPLY_BYTES as u32).saturating_sub(unread)
    }

    /// The chunks that hold the request: the record's first, then the body's.
    pub fn chunks(&self) -> impl Iterator<Item = usize> + use<> {
        let head = u64::from(self.head_chunk.load(Relaxed));
        let body = self.body_chunks.load(Relaxed);
        std::iter::once(head)
            .chain((0..BODY_CHUNKS).map(move |i| body >> (16 * i) & 0xffff))
            .filter(|c| *c != 0)
            .map(|c| c as usize - 1)
    }
}

/// A worker's right to one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Index of the slot.
    pub slot: u32,
    /// The seat that took it.
    pub owner: u16,
    /// Its place in the queue.
    pub position: u64,
}

impl Claim {
    fn word(self, state: State) -> Word {
        Word { state, owner: self.owner, position: self.position }
    }
}

impl Board {
    /// TAKEN → BEGUN, just before the app is called. False when the client has gone meanwhile:
    /// the claim must then be completed without calling the app.
    pub fn begin(&self, claim: Claim) -> bool {
        let slot = &self.slots[claim.slot as usize];
        if slot.cancelled.load(Relaxed) != 0 {
            return false;
        }
        slot.swap(claim.word(State::Taken), claim.word(State::Begun))
    }

    /// → DONE, and the note for the front thread that waits. Whether that thread must be rung is
    /// `FrontBell::must_ring`'s to say. Idempotent.
    pub fn complete(&self, claim: Claim) {
        let slot = &self.slots[claim.slot as usize];
        let front = slot.front.load(Relaxed) as usize;
        slot.state.store(claim.word(State::Done).pack(), Release);
        self.fronts[front].note(claim.slot);
    }

    /// QUEUED → FILLING, by the front whose client has gone or that sheds the request. False: a
    /// worker has it, or had it.
    pub fn cancel(&self, slot: u32, position: u64) -> bool {
        let filling = Word { state: State::Filling, owner: 0, position };
        let slot = &self.slots[slot as usize];
        slot.swap(Word::queued(position), filling)
    }

    /// Tells the worker that has the slot that nobody wants the reply, and wakes it if it waits
    /// for room.
    pub fn abandon(&self, slot: u32) {
        let slot = &self.slots[slot as usize];
        slot.cancelled.store(1, Release);
        slot.wake_writer();
    }
}
