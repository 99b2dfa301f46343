//! What two Oribi processes must agree on.
//!
//! One shared-memory segment per mount holds request slots, one fair queue and the doorbells that
//! wake whoever sleeps. This crate knows the bytes and the atomics and nothing else: no tokio, no
//! Ruby, no threads of its own. `ARCHITECTURE.md` explains the protocol; each module states its
//! own part.

pub mod control;
pub mod counters;
pub mod doorbell;
pub mod exchange;
pub mod frame;
pub mod layout;
mod memory;
mod overdue;
pub mod queue;
pub mod request;
pub mod sched;
pub mod segment;
pub mod settings;
pub mod settle;
pub mod slot;
pub mod sync;
mod unsent;

pub use layout::{
    Board, CHUNK_BYTES, CHUNKS, FRONTS, REPLY_BYTES, REPLY_KEPT, REPLY_ROOM, REPLY_SHOWN,
    REQUEST_BYTES, SEATS, SLOTS,
};
pub use segment::Segment;
pub use slot::{Claim, State};
pub use unsent::unsent;

/// Nanoseconds on the monotonic clock that every process of the machine shares.
pub fn now_ns() -> u64 {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}
