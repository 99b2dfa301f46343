//! Waking whoever sleeps, and nobody else.
//!
//! A system call is made only for a side that has announced its sleep. Announce, full fence, look
//! again, sleep; on the other side publish, full fence, look for sleepers, wake. Whoever clears a
//! sleeper's bit owns the duty to wake it, and a sleeper that finds its bit cleared owns the duty
//! to pass the wake on if more is waiting than it takes (see `worker::seat`).

use crate::layout::{Board, Line, SEAT_WORDS, SEATS, SLOT_WORDS};
use crate::sync::{AtomicU32, AtomicU64, Ordering::*, fence, futex_wait, futex_wake};
use std::time::Duration;

/// What a sleeping seat offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rank {
    /// Its process does nothing else: wake it first.
    Idle,
    /// Its process has a request on another thread: wake it only when no idle process is left.
    Second,
}

/// Which seats sleep and want to be woken. At most one seat of a process is armed at a time.
#[repr(C)]
#[derive(Default)]
pub struct Bells {
    idle: Line<[AtomicU64; SEAT_WORDS]>,
    second: Line<[AtomicU64; SEAT_WORDS]>,
    /// Seats in use lie below this number.
    pub seats_used: Line<AtomicU32>,
}

/// `Seat::word`: the thread runs.
const RUNS: u32 = 0;
/// `Seat::word`: somebody rang.
const RUNG: u32 = 1;
/// `Seat::word`: the thread sleeps in the kernel, or is about to.
const SLEEPS: u32 = 2;

/// `Seat::wear`: the worker takes requests.
pub const FRESH: u32 = 0;
/// `Seat::wear`: the worker will soon have reached its limit; somebody should stand ready.
pub const WORN: u32 = 1;
/// `Seat::wear`: it has reached its limit and takes no more.
pub const SPENT: u32 = 2;

/// `Seat::gate`: the worker takes requests as long as it lives.
pub const OPEN: u32 = 0;
/// `Seat::gate`: it takes one request and leaves, and none until the supervisor lets it.
pub const SHUT: u32 = 1;
/// `Seat::gate`: it takes one request and leaves.
pub const ONCE: u32 = 2;

/// One worker thread's line.
#[repr(C, align(64))]
#[derive(Default)]
pub struct Seat {
    word: AtomicU32,
    /// Not zero: finish what you hold, then leave.
    pub retire: AtomicU32,
    /// Requests completed by the seat's present holder.
    pub served: AtomicU64,
    /// That holder's number, for the access log.
    pub worker: AtomicU32,
    /// Not zero: it collects garbage, out of the queue.
    pub collecting: AtomicU32,
    /// Requests that the worker of this seat may take, all its seats together; 0: no limit.
    pub limit: AtomicU64,
    /// When the present request must be through, ns; 0: never.
    pub deadline_ns: AtomicU64,
    /// When the present request's backtrace is to be logged, ns; 0: never.
    pub soft_ns: AtomicU64,
    /// How far the worker is with `limit`: `FRESH`, `WORN` or `SPENT`.
    pub wear: AtomicU32,
    /// Names a request whose `soft_ns` has passed: the worker is to log where it is.
    pub alarm: AtomicU32,
    /// In the first seat of a worker: changes with each alarm of any of its seats.
    pub alarms: AtomicU32,
    /// Whether the worker may take now, and how often: `OPEN`, `SHUT` or `ONCE`.
    pub gate: AtomicU32,
}

impl Seat {
    /// Before announcing: forgets an earlier ring. What its ringer had written before (`retire`,
    /// a switch of generations) is seen from here on, hence a swap.
    pub fn prepare(&self) {
        self.word.swap(RUNS, Acquire);
    }

    /// Sleeps until rung, at most `timeout`; returns at once if rung since `prepare`.
    pub fn sleep(&self, timeout: Option<Duration>) {
        if self.word.compare_exchange(RUNS, SLEEPS, AcqRel, Acquire).is_ok() {
            futex_wait(&self.word, SLEEPS, timeout);
        }
    }

    /// Wakes the seat's thread if it sleeps; otherwise its next `sleep` returns at once.
    pub fn ring(&self) {
        if self.word.swap(RUNG, AcqRel) == SLEEPS {
            futex_wake(&self.word);
        }
    }
}

impl Bells {
    fn of(&self, rank: Rank) -> &[AtomicU64; SEAT_WORDS] {
        match rank {
            Rank::Idle => &self.idle,
            Rank::Second => &self.second,
        }
    }

    /// Announces that `seat` sleeps. The caller looks at the queue once more before it does.
    pub fn arm(&self, seat: u16, rank: Rank) {
        self.of(rank)[seat as usize / 64].fetch_or(1 << (seat % 64), AcqRel);
        fence(SeqCst);
    }

    /// Takes the announcement back. False: somebody has claimed it and rings, or has rung; the
    /// wake is now the caller's to use or to pass on.
    pub fn disarm(&self, seat: u16, rank: Rank) -> bool {
        let bit = 1 << (seat % 64);
        self.of(rank)[seat as usize / 64].fetch_and(!bit, AcqRel) & bit != 0
    }

    /// Armed seats of one word of the bitmaps, both ranks.
    pub fn armed_in(&self, word: usize) -> u64 {
        self.idle[word].load(Acquire) | self.second[word].load(Acquire)
    }

    fn claim(&self, rank: Rank, words: usize) -> Option<u16> {
        for (i, word) in self.of(rank)[..words].iter().enumerate() {
            let mut seen = word.load(Relaxed);
            while seen != 0 {
                let bit = seen & seen.wrapping_neg();
                seen = word.fetch_and(!bit, AcqRel);
                if seen & bit != 0 {
                    return Some((i * 64) as u16 + bit.trailing_zeros() as u16);
                }
                seen &= !bit;
            }
        }
        None
    }
}

impl Board {
    /// After a put, or when passing a wake on: wakes one sleeper, an idle process before a second
    /// thread of a busy one. False when nobody sleeps.
    pub fn ring_one(&self) -> bool {
        fence(SeqCst);
        let used = self.seats_used().div_ceil(64);
        let seat =
            self.bells.claim(Rank::Idle, used).or_else(|| self.bells.claim(Rank::Second, used));
        match seat {
            Some(seat) => {
                self.seats[seat as usize].ring();
                true
            }
            None => false,
        }
    }

    /// Wakes every seat, armed or not: after a switch of generations.
    pub fn ring_all(&self) {
        self.seats[..self.seats_used()].iter().for_each(Seat::ring);
    }

    /// Wakes every seat that is not armed, in place of a dead process that may have claimed a bit
    /// and died before it rang, or even within `ring` after its swap: so the word does not tell
    /// who sleeps. The armed ones anybody can still wake.
    pub(crate) fn ring_claimed(&self) {
        for (index, seat) in self.seats[..self.seats_used()].iter().enumerate() {
            if self.bells.armed_in(index / 64) >> (index % 64) & 1 == 0 {
                seat.word.swap(RUNG, AcqRel);
                futex_wake(&seat.word);
            }
        }
    }

    fn seats_used(&self) -> usize {
        (self.bells.seats_used.load(Relaxed) as usize).min(SEATS)
    }
}

/// A front thread that has a bell in each of several segments is about to sleep: one fence for all.
/// False: there is something to look at after all, and nothing is announced.
pub fn announce_sleep<'a>(bells: impl Iterator<Item = &'a FrontBell> + Clone) -> bool {
    bells.clone().for_each(|bell| bell.sleeping.store(1, Relaxed));
    fence(SeqCst);
    let quiet = bells.clone().all(|bell| bell.summary.load(Relaxed) == 0);
    if !quiet {
        bells.for_each(FrontBell::awake);
    }
    quiet
}

/// What a front thread has to look at: one bit for each slot whose reply has moved on.
#[repr(C)]
pub struct FrontBell {
    sleeping: Line<AtomicU32>,
    summary: Line<AtomicU64>,
    bits: Line<[AtomicU64; SLOT_WORDS]>,
}

impl Default for FrontBell {
    fn default() -> FrontBell {
        let bits = Line(std::array::from_fn(|_| AtomicU64::new(0)));
        FrontBell { sleeping: Line::default(), summary: Line::default(), bits }
    }
}

impl FrontBell {
    /// Notes that `slot` has something new. Idempotent.
    pub fn note(&self, slot: u32) {
        let word = slot as usize / 64;
        self.bits[word].fetch_or(1 << (slot % 64), Release);
        self.summary.fetch_or(1 << word, Release);
    }

    /// After `note`: true when the front thread sleeps and the caller is the one to wake it (by
    /// its eventfd).
    pub fn must_ring(&self) -> bool {
        fence(SeqCst);
        self.sleeping.load(Relaxed) != 0 && self.sleeping.swap(0, AcqRel) != 0
    }

    /// The front thread is about to sleep. False: there is something to look at after all.
    pub fn announce_sleep(&self) -> bool {
        announce_sleep([self].into_iter())
    }

    /// The front thread is awake: nobody needs to ring.
    pub fn awake(&self) {
        self.sleeping.store(0, Relaxed);
    }

    /// Calls `look` for every noted slot and forgets the notes.
    pub fn drain(&self, mut look: impl FnMut(u32)) {
        if self.summary.load(Relaxed) == 0 {
            return;
        }
        let mut words = self.summary.swap(0, AcqRel);
        while words != 0 {
            let word = words.trailing_zeros() as usize;
            words &= words - 1;
            let mut bits = self.bits[word].swap(0, AcqRel);
            while bits != 0 {
                look((word * 64) as u32 + bits.trailing_zeros());
                bits &= bits - 1;
            }
        }
    }
}
