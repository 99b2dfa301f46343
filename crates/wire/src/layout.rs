//! The shape of a segment: fixed maxima, the shared atomics (`Board`) and the byte areas behind.
//!
//! A fresh segment is all zeroes, and all zeroes is a valid, empty board.

use crate::doorbell::{Bells, FrontBell, Seat};
use crate::queue::Queue;
use crate::slot::SlotHead;
use crate::sync::{AtomicU32, AtomicU64};

/// First word of every segment: `oribiseg` as bytes.
pub const MAGIC: u64 = u64::from_le_bytes(*b"oribiseg");
/// Raised whenever the meaning of any byte changes; processes of different layouts refuse each
/// other.
pub const VERSION: u32 = 8;

/// Requests that can be in the segment at once.
pub const SLOTS: usize = if cfg!(loom) { 2 } else { 4096 };
/// Worker threads that can ever take from it at once.
pub const SEATS: usize = if cfg!(loom) { 3 } else { 1024 };
/// Front threads that can put into it.
pub const FRONTS: usize = if cfg!(loom) { 1 } else { 64 };
/// Positions the queue's ring remembers: more than slots, because cancelled positions linger until
/// the head passes them.
pub const RING: usize = 2 * SLOTS;

/// Bytes of a slot for the request record and a small body.
pub const REQUEST_BYTES: usize = 8 * 1024;
/// Bytes of a slot's reply window. Each reply begins at its start, so a small one touches one page;
/// one that fits costs no more wake-ups than a small one, and the front need not copy it.
pub const REPLY_BYTES: usize = 2 * 1024 * 1024;
/// Bytes of the window after which a worker shows what it has written, for the front to read
/// meanwhile. An answer that is shorter is shown whole.
pub const REPLY_SHOWN: usize = REPLY_BYTES / 4 * 3;
/// Bytes of room that a waiting worker is woken for, not for every few.
pub const REPLY_ROOM: usize = REPLY_BYTES / 4;
/// Bytes of a window whose memory is never given back.
pub const REPLY_KEPT: usize = 64 * 1024;
/// Distance of two slots' data: not a power of two, so that neighbours fall into different cache
/// sets.
pub const SLOT_STRIDE: usize = REQUEST_BYTES + REPLY_BYTES + 3 * 64;
/// Bytes of one chunk of the pool that large heads and bodies come from.
pub const CHUNK_BYTES: usize = 64 * 1024;
/// Chunks in the pool.
pub const CHUNKS: usize = 1024;
/// Chunks one request body may use.
pub const BODY_CHUNKS: usize = 4;

const fn words(bits: usize) -> usize {
    bits.div_ceil(64)
}
/// Words of a bitmap with one bit for each seat.
pub const SEAT_WORDS: usize = words(SEATS);
/// Words of a bitmap with one bit for each slot.
pub const SLOT_WORDS: usize = words(SLOTS);

/// A value alone on its cache line.
#[repr(C, align(64))]
#[derive(Default)]
pub struct Line<T>(pub T);

impl<T> std::ops::Deref for Line<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

/// What is written once, when the segment is made, and the two words that everyone reads.
#[repr(C, align(64))]
#[derive(Default)]
pub struct Header {
    /// `MAGIC`.
    pub magic: AtomicU64,
    /// `VERSION`.
    pub version: AtomicU32,
    /// The generation whose workers may take. Switching and rolling back is one store.
    pub serving: AtomicU64,
    /// Counts fronts; a slot filled by an earlier one has no client any more.
    pub incarnation: AtomicU32,
}

/// Everything in the segment that is an atomic. The byte areas follow it.
#[repr(C)]
pub struct Board {
    /// Identity and switches.
    pub header: Header,
    /// The order of waiting requests.
    pub queue: Queue,
    /// Which workers sleep.
    pub bells: Bells,
    /// What each front thread has to look at.
    pub fronts: [FrontBell; FRONTS],
    /// One line for each worker thread.
    pub seats: [Seat; SEATS],
    /// The head of each slot.
    pub slots: [SlotHead; SLOTS],
}

/// Offset of the slots' data in the mapping.
pub const DATA_OFFSET: usize = size_of::<Board>().next_multiple_of(4096);
/// Offset of the chunk pool in the mapping.
pub const CHUNK_OFFSET: usize = (DATA_OFFSET + SLOTS * SLOT_STRIDE).next_multiple_of(4096);
/// Length of a whole segment. Pages nobody touched cost nothing.
pub const SEGMENT_BYTES: usize = CHUNK_OFFSET + CHUNKS * CHUNK_BYTES;

#[cfg(any(loom, test))]
impl Board {
    /// An empty board on the heap, for models and unit tests.
    pub fn boxed() -> Box<Board> {
        use std::array::from_fn;
        Box::new(Board {
            header: Header::default(),
            queue: Queue::new(),
            bells: Bells::default(),
            fronts: from_fn(|_| FrontBell::default()),
            seats: from_fn(|_| Seat::default()),
            slots: from_fn(|_| SlotHead::default()),
        })
    }
}
