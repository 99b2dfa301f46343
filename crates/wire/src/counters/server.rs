//! The server's own numbers: a row for each mount. The front counts what comes and goes, each of its
//! threads in rows of its own, so that counting is a load and a store; supervisor and workers count
//! the lives of workers, by additions. Apps have no name for any of it.

use crate::layout::FRONTS;
use crate::sync::{AtomicU32, AtomicU64, Ordering::*};
use std::array::from_fn;

/// Rows: mounts that the server has ever had. Row 0 is what no mount has to do with.
pub const ROWS: usize = if cfg!(loom) { 2 } else { 256 };
/// Bytes of a mount's name that tell it from others here.
const NAME_BYTES: usize = 128;
/// Upper bounds of the buckets of times, in nanoseconds; one bucket more than bounds.
pub const TIMES_NS: [u64; 18] = {
    const MS: u64 = 1_000_000;
    const S: u64 = 1000 * MS;
    [
        MS / 10,
        MS / 4,
        MS / 2,
        MS,
        5 * MS / 2,
        5 * MS,
        10 * MS,
        25 * MS,
        50 * MS,
        100 * MS,
        250 * MS,
        500 * MS,
        S,
        5 * S / 2,
        5 * S,
        10 * S,
        30 * S,
        60 * S,
    ]
};

/// How a request was answered: by the first digit of its status, less one; or not at all, because
/// its client had left.
pub const ANSWERS: usize = 6;
/// Reasons of refusals that there is room for; the front names them.
pub const REFUSALS: usize = 24;

/// Why a worker is no more, in the order of `Lives::deaths`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Cause {
    /// It ended although nobody had asked it to.
    Crashed,
    /// A request ran longer than `request_timeout`.
    RequestTimeout,
    /// It has served `max_requests`.
    MaxRequests,
    /// It had more memory than `max_rss` or `max_pss`.
    MaxMemory,
    /// It was older than `max_age`.
    MaxAge,
    /// All were replaced, one after the other (`hup_action` recycle).
    Recycled,
    /// Its generation has served its time, or never came to serve.
    Restarted,
    /// There are to be fewer.
    ScaledDown,
    /// The server ends, or the mount goes.
    Stopped,
    /// Somebody has told the process itself to leave.
    Asked,
    /// It could not get ready.
    Unfit,
    /// It has served its one request (isolation `fresh`).
    Fresh,
}

impl Cause {
    /// All of them.
    pub const ALL: [Cause; 12] = [
        Cause::Crashed,
        Cause::RequestTimeout,
        Cause::MaxRequests,
        Cause::MaxMemory,
        Cause::MaxAge,
        Cause::Recycled,
        Cause::Restarted,
        Cause::ScaledDown,
        Cause::Stopped,
        Cause::Asked,
        Cause::Unfit,
        Cause::Fresh,
    ];

    /// As metrics call it.
    pub fn name(self) -> &'static str {
        match self {
            Cause::Crashed => "crashed",
            Cause::RequestTimeout => "request_timeout",
            Cause::MaxRequests => "max_requests",
            Cause::MaxMemory => "max_memory",
            Cause::MaxAge => "max_age",
            Cause::Recycled => "recycled",
            Cause::Restarted => "restarted",
            Cause::ScaledDown => "scaled_down",
            Cause::Stopped => "stopped",
            Cause::Asked => "asked",
            Cause::Unfit => "unfit",
            Cause::Fresh => "fresh",
        }
    }
}

/// A number that one thread alone writes.
#[derive(Default)]
pub struct Tally(AtomicU64);

impl Tally {
    /// Adds to it.
    #[inline]
    pub fn add(&self, by: u64) {
        self.0.store(self.0.load(Relaxed).wrapping_add(by), Relaxed);
    }

    /// What it is now.
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// Times that one thread alone sorts into buckets.
#[repr(C)]
#[derive(Default)]
pub struct Times {
    buckets: [Tally; TIMES_NS.len() + 1],
    sum_ns: Tally,
}

impl Times {
    /// One more.
    #[inline]
    pub fn observe(&self, ns: u64) {
        let bucket = TIMES_NS.iter().position(|bound| ns <= *bound).unwrap_or(TIMES_NS.len());
        self.buckets[bucket].add(1);
        self.sum_ns.add(ns);
    }

    /// How many fell into each bucket, not added up, and the sum of all in nanoseconds.
    pub fn get(&self) -> ([u64; TIMES_NS.len() + 1], u64) {
        (from_fn(|bucket| self.buckets[bucket].get()), self.sum_ns.get())
    }
}

/// A mount's requests, as one front thread sees them.
#[repr(C, align(64))]
#[derive(Default)]
pub struct Traffic {
    /// By the first digit of the status, less one; the last one: the client had left.
    pub answers: [Tally; ANSWERS],
    /// By the reason's number, which is the front's.
    pub refused: [Tally; REFUSALS],
    /// From put to take.
    pub queue: Times,
    /// From take to the end of the reply.
    pub service: Times,
    /// Bytes of request bodies that an app was given.
    pub received: Tally,
    /// Bytes of bodies of replies.
    pub sent: Tally,
}

/// What one front thread counts.
#[repr(C, align(64))]
pub struct Thread {
    /// Connections accepted.
    pub accepted: Tally,
    /// By row.
    pub traffic: [Traffic; ROWS],
}

/// A mount's workers, as supervisor and workers see them.
#[repr(C, align(64))]
#[derive(Default)]
pub struct Lives {
    /// Workers forked.
    pub started: AtomicU64,
    /// Workers that are no more, by `Cause`.
    pub deaths: [AtomicU64; Cause::ALL.len()],
    /// Generations that came to serve, after the first.
    pub restarts: AtomicU64,
    /// Generations that were given up.
    pub restarts_failed: AtomicU64,
    /// Generations that came to serve again.
    pub rollbacks: AtomicU64,
    /// Time that workers have spent collecting garbage.
    pub gc_ns: AtomicU64,
    /// How often they have collected.
    pub gc_runs: AtomicU64,
}

#[repr(C)]
struct Row {
    /// Not zero: the name is there.
    used: AtomicU32,
    name: [AtomicU64; NAME_BYTES / 8],
}

/// All of it.
#[repr(C)]
pub struct Server {
    /// Named by the supervisor alone, and never given to another mount.
    rows: [Row; ROWS],
    /// By the front thread's number.
    pub threads: [Thread; FRONTS],
    /// By row.
    pub lives: [Lives; ROWS],
    /// Fronts started.
    pub fronts: AtomicU64,
}

fn words(name: &str) -> [u64; NAME_BYTES / 8] {
    let mut bytes = [0; NAME_BYTES];
    let whole = |end: &usize| name.is_char_boundary(*end);
    let length = (0..=name.len().min(NAME_BYTES)).rev().find(whole).unwrap_or(0);
    bytes[..length].copy_from_slice(&name.as_bytes()[..length]);
    from_fn(|i| u64::from_le_bytes(from_fn(|j| bytes[8 * i + j])))
}

impl Server {
    /// The row of the mount of this name; 0 if it has none.
    pub fn row(&self, name: &str) -> usize {
        let words = words(name);
        let mut used = (1..ROWS).take_while(|row| self.rows[*row].used.load(Acquire) != 0);
        used.find(|row| self.rows[*row].is_called(&words)).unwrap_or(0)
    }

    /// Supervisor: the same, made if there is none. Where there is no room the last one is for all.
    pub fn claim_row(&self, name: &str) -> usize {
        let known = self.row(name);
        if known != 0 {
            return known;
        }
        let free = (1..ROWS - 1).find(|row| self.rows[*row].used.load(Relaxed) == 0);
        let (row, name) = free.map_or((ROWS - 1, "others"), |row| (row, name));
        for (word, value) in self.rows[row].name.iter().zip(words(name)) {
            word.store(value, Relaxed);
        }
        self.rows[row].used.store(1, Release);
        row
    }

    /// Rows that have names, and those.
    pub fn rows(&self) -> impl Iterator<Item = (usize, String)> {
        let used = self.rows.iter().enumerate().skip(1);
        used.filter(|(_, row)| row.used.load(Acquire) != 0)
            .map(|(number, row)| (number, row.name()))
    }
}

impl Row {
    fn is_called(&self, words: &[u64; NAME_BYTES / 8]) -> bool {
        self.name.iter().zip(words).all(|(word, value)| word.load(Relaxed) == *value)
    }

    fn name(&self) -> String {
        let bytes: Vec<u8> =
            self.name.iter().flat_map(|word| word.load(Relaxed).to_le_bytes()).collect();
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        String::from_utf8_lossy(&bytes[..end]).into_owned()
    }
}
