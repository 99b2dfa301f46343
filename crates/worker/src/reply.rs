//! From taking a request to completing it: begin, frames into the reply window, the end.

use crate::seat::Seat;
use wire::slot::SlotHead;
use wire::sync::Ordering::*;
use wire::{Claim, REPLY_SHOWN, frame};

impl Seat {
    pub(crate) fn held(&self) -> Option<(Claim, &'static SlotHead)> {
        self.claim.map(|claim| (claim, &self.board().slots[claim.slot as usize]))
    }

    /// The request's record: pairs for `wire::request::Pairs`. Empty when nothing is held.
    pub fn record(&self) -> &[u8] {
        self.claim.map_or(&[], |claim| self.segment.record(claim.slot))
    }

    /// Which door the request came through: a number of `wire::slot::door`.
    pub fn door(&self) -> u32 {
        self.held().map_or(0, |(_, slot)| slot.door.load(Relaxed))
    }

    /// The request body's length in bytes.
    pub fn body_len(&self) -> usize {
        self.held().map_or(0, |(_, slot)| slot.body_len.load(Relaxed) as usize)
    }

    /// The request body's parts, in order.
    pub fn body_parts(&self) -> impl Iterator<Item = &[u8]> {
        self.claim.into_iter().flat_map(|claim| self.segment.body_parts(claim.slot))
    }

    /// Nanoseconds the request has waited in the queue.
    pub fn queue_ns(&self) -> u64 {
        let (taken, queued) = self.held().map_or((0, 0), |(_, slot)| {
            (slot.taken_ns.load(Relaxed), slot.queued_ns.load(Relaxed))
        });
        taken.saturating_sub(queued)
    }

    /// To be called just before the app. False: the client has gone, the request is already
    /// completed, the app must not be called.
    pub fn begin(&mut self) -> bool {
        let Some((claim, _)) = self.held() else { return false };
        let wanted = self.board().begin(claim);
        if wanted {
            self.start_clock();
        } else {
            self.decline();
        }
        wanted
    }

    /// True when nobody wants the rest of the reply.
    pub fn cancelled(&self) -> bool {
        self.held().is_none_or(|(_, slot)| slot.cancelled.load(Acquire) != 0)
    }

    /// True once a part of the final reply has been published: it can then not be replaced any
    /// more.
    pub fn reply_started(&self) -> bool {
        self.held().is_none_or(|(_, slot)| slot.written.load(Relaxed) != self.interim)
    }

    /// Starts a reply head in the seat's own memory.
    pub fn start_head(&mut self, status: u16) {
        self.forget();
        frame::start_head(&mut self.head, status);
    }

    /// Forgets what was written of the final reply. The front has seen none of it.
    pub fn forget(&mut self) {
        self.written = self.interim;
    }

    /// Adds a header; false when it is too long.
    pub fn push_field(&mut self, name: &[u8], value: &[u8]) -> bool {
        frame::push_field(&mut self.head, name, value)
    }

    /// Bytes of the head prepared by `start_head` and `push_field`.
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// Writes of `bytes` what the reply window has room for, `REPLY_SHOWN` bytes at most. What was
    /// written is published when that many bytes are unpublished, so that the front takes them
    /// while the worker writes on. 0: publish, then `wait_for_room`.
    pub fn write(&mut self, bytes: &[u8]) -> usize {
        let Some((claim, slot)) = self.held() else { return bytes.len() };
        let room = (slot.room_beyond(self.written) as usize).min(REPLY_SHOWN);
        let count = bytes.len().min(room);
        self.segment.write_reply(claim.slot, self.written, &bytes[..count]);
        self.written = self.written.wrapping_add(count as u32);
        if self.written.wrapping_sub(self.published) as usize >= REPLY_SHOWN {
            self.publish();
        }
        count
    }

    /// Whether the reply window has room for so many bytes.
    pub fn has_room(&self, bytes: usize) -> bool {
        self.held().is_some_and(|(_, slot)| slot.room_beyond(self.written) as usize >= bytes)
    }

    /// Like `write`, for the prepared head from byte `from`.
    pub fn write_head(&mut self, from: usize) -> usize {
        let head = std::mem::take(&mut self.head);
        let count = self.write(&head[from..]);
        self.head = head;
        count
    }

    /// Shows the front what was written so far.
    pub fn publish(&mut self) {
        let Some((claim, slot)) = self.held() else { return };
        if self.written != self.published {
            self.published = self.written;
            slot.written.store(self.written, Release);
            let front = slot.front.load(Relaxed) as usize;
            self.board().fronts[front].note(claim.slot);
            self.ring_front(front);
        }
    }

    /// Shows the front an interim response; the final one has not begun.
    pub fn publish_interim(&mut self) {
        self.publish();
        self.interim = self.written;
    }

    /// Lets the front see what was written so far whenever it looks, or when this process has died,
    /// but does not wake it.
    pub fn show(&mut self) {
        if let Some((_, slot)) = self.held() {
            slot.written.store(self.written, Release);
        }
    }

    /// The same; the final reply has not begun.
    pub fn show_interim(&mut self) {
        self.show();
        self.interim = self.written;
    }

    /// Sleeps until the window has room or the request is cancelled. Without the interpreter
    /// lock; may return early.
    pub fn wait_for_room(&self) {
        if let Some((_, slot)) = self.held() {
            slot.wait_for_room(self.written);
        }
    }

    /// Ends `wait_for_room` early. Safe from any thread and from a signal handler.
    pub fn stop_waiting_for_room(&self) {
        if let Some((_, slot)) = self.held() {
            slot.room.fetch_add(1, Release);
            wire::sync::futex_wake(&slot.room);
        }
    }

    /// Completes the request with what was written. Without an END frame before it the front
    /// treats the reply as cut short.
    pub fn finish(&mut self) {
        if let Some((claim, slot)) = self.held() {
            slot.written.store(self.written, Release);
            self.complete(claim);
        }
    }

    fn complete(&mut self, claim: Claim) {
        let slot = &self.board().slots[claim.slot as usize];
        let front = slot.front.load(Relaxed) as usize;
        self.board().seats[claim.owner as usize].count_served();
        self.claim = None;
        self.board().complete(claim);
        self.ring_front(front);
    }
}
