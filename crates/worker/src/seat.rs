//! One worker thread's place at the queue: take, sleep, wake, leave.

use crate::crew::{Crew, Wear};
use crate::timeout::Timeouts;
use rustix::io::write;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use wire::doorbell::{SHUT, SPENT, WORN};
use wire::sync::Ordering::*;
use wire::{Board, Claim, Segment, doorbell, now_ns};

/// What a worker thread is to do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// A request was taken: read its record, `begin` it, reply.
    Request,
    /// Nothing to do: call `sleep` without the interpreter lock, then `turn` again.
    Sleep,
    /// The seat is to be given up.
    Leave,
}

/// How to reach the front threads, by their number.
#[derive(Clone, Copy, Debug)]
pub struct Fronts {
    /// Their eventfds.
    pub bells: &'static [OwnedFd],
    /// The workers' ends of the sockets that fds are passed over.
    pub exchanges: &'static [OwnedFd],
    /// The supervisor's eventfd, which makes it look at the seats.
    pub supervisor: &'static OwnedFd,
}

/// A worker thread's seat. `turn` and the replies are called with the interpreter lock held,
/// `sleep` and `wait_for_room` without it.
pub struct Seat {
    pub(crate) segment: &'static Segment,
    bells: &'static [OwnedFd],
    pub(crate) exchanges: &'static [OwnedFd],
    supervisor: &'static OwnedFd,
    pub(crate) crew: Arc<Crew>,
    pub(crate) index: u16,
    generation: u64,
    /// Lying down: announced, or waiting behind an announced sibling.
    resting: bool,
    /// Has had a request since it last lay down.
    busy: bool,
    pub(crate) claim: Option<Claim>,
    /// Bytes of the present reply written, and published, so far.
    pub(crate) written: u32,
    pub(crate) published: u32,
    /// Bytes of it that come before the final reply: interim responses, and what the app wrote to
    /// its errors.
    pub(crate) interim: u32,
    pub(crate) head: Vec<u8>,
    pub(crate) timeouts: Timeouts,
}

impl Seat {
    /// Takes seat `index` for workers of `generation`.
    pub fn new(
        segment: &'static Segment,
        fronts: Fronts,
        crew: Arc<Crew>,
        index: u16,
        generation: u64,
    ) -> Seat {
        Seat {
            segment,
            bells: fronts.bells,
            exchanges: fronts.exchanges,
            supervisor: fronts.supervisor,
            crew,
            index,
            generation,
            resting: false,
            busy: false,
            claim: None,
            written: 0,
            published: 0,
            interim: 0,
            head: Vec::with_capacity(1024),
            timeouts: Timeouts::default(),
        }
    }

    pub(crate) fn board(&self) -> &'static Board {
        self.segment.board()
    }

    /// What the seat shares with the others.
    pub(crate) fn line(&self) -> &'static doorbell::Seat {
        &self.board().seats[self.index as usize]
    }

    /// Decides what to do now; takes the oldest request if there is one.
    pub fn turn(&mut self) -> Next {
        let owes_wake = self.get_up();
        let leaving = self.retired() || self.crew.is_used();
        if !leaving && self.try_take(owes_wake) {
            return Next::Request;
        }
        self.pass_wake_on(owes_wake);
        self.stop_being_busy();
        if leaving {
            return Next::Leave;
        }
        // Whoever is about to put something gets the processor first: a sleep that is not slept
        // is the cheapest one.
        std::thread::yield_now();
        if self.try_take(false) {
            return Next::Request;
        }
        self.lie_down();
        // What was written before an earlier ring, which lying down forgets, is seen from here on.
        let leaving = self.retired();
        if !leaving && self.try_take(false) {
            return Next::Request;
        }
        if leaving {
            let owes_wake = self.get_up();
            self.pass_wake_on(owes_wake);
            return Next::Leave;
        }
        Next::Sleep
    }

    /// Sleeps until rung. Without the interpreter lock; may return early.
    pub fn sleep(&self) {
        self.board().seats[self.index as usize].sleep(None);
    }

    /// Ends the present or next `sleep`. Safe from any thread and from a signal handler.
    pub fn ring(&self) {
        self.board().seats[self.index as usize].ring();
    }

    /// After the present request, leave.
    pub fn retire(&self) {
        let seat = &self.board().seats[self.index as usize];
        seat.retire.store(1, Release);
        seat.ring();
    }

    /// Whether the seat is to be given up.
    pub fn retired(&self) -> bool {
        self.board().seats[self.index as usize].retire.load(Acquire) != 0
    }

    fn try_take(&mut self, owes_wake: bool) -> bool {
        if self.is_shut() || !self.crew.may_take() {
            return false;
        }
        let Some(claim) = self.board().take(self.index, self.generation) else { return false };
        self.claim = Some(claim);
        self.stamp(claim);
        let wear = self.crew.count(self.board());
        self.tell_wear(wear);
        let owes_wake = self.get_up() || owes_wake;
        let siblings_changed = !self.busy && self.crew.begun(self.board());
        self.busy = true;
        self.pass_wake_on(owes_wake || siblings_changed);
        true
    }

    /// A spare that the supervisor has not let in yet.
    fn is_shut(&self) -> bool {
        self.line().gate.load(Acquire) == SHUT
    }

    fn stamp(&mut self, claim: Claim) {
        let slot = &self.board().slots[claim.slot as usize];
        slot.taken_ns.store(now_ns(), Relaxed);
        self.written = slot.written.load(Relaxed);
        self.published = self.written;
        self.interim = self.written;
    }

    /// After a note: wakes the front thread if it sleeps.
    pub(crate) fn ring_front(&self, front: usize) {
        if self.board().fronts[front].must_ring()
            && let Some(bell) = self.bells.get(front)
        {
            // Fails only when the counter is full, and then the front is awake already.
            let _ = write(bell, &1u64.to_ne_bytes());
        }
    }

    /// Makes the supervisor look at what this seat has written.
    pub fn ring_supervisor(&self) {
        let _ = write(self.supervisor, &1u64.to_ne_bytes());
    }

    /// If a wake is owed and something still waits, somebody else is woken for it.
    pub(crate) fn pass_wake_on(&self, owed: bool) {
        if owed && self.board().first_waiting().is_some() {
            self.board().ring_one();
        }
    }

    fn stop_being_busy(&mut self) {
        if std::mem::take(&mut self.busy) {
            let wear = self.crew.finished();
            self.tell_wear(wear);
        }
    }

    /// Lets the supervisor know, on the process's first seat.
    fn tell_wear(&self, wear: Wear) {
        let word = match wear {
            Wear::Same => return,
            Wear::Worn => WORN,
            Wear::Spent => SPENT,
        };
        self.board().seats[self.crew.first() as usize].wear.fetch_max(word, Release);
        self.ring_supervisor();
    }

    /// Completes the request without an app having been called for it.
    pub fn decline(&mut self) {
        self.crew.uncount();
        self.finish();
    }

    fn lie_down(&mut self) {
        let board = self.board();
        board.seats[self.index as usize].prepare();
        let serves = board.header.serving.load(Acquire) == self.generation && !self.is_shut();
        self.crew.lie_down(board, self.index, serves);
        self.resting = true;
    }

    fn get_up(&mut self) -> bool {
        std::mem::take(&mut self.resting) && self.crew.get_up(self.board(), self.index)
    }
}
