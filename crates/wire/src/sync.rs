//! The atomics and the one blocking primitive this crate stands on: the real ones, or loom's when
//! the models run (`RUSTFLAGS="--cfg loom"`).

#[cfg(not(loom))]
mod real {
    pub use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

    use rustix::thread::futex;
    use std::time::Duration;

    /// Sleeps while `word` holds `expected`, at most `timeout`. May return early for no reason.
    pub fn futex_wait(word: &AtomicU32, expected: u32, timeout: Option<Duration>) {
        let limit = timeout.map(|t| rustix::time::Timespec {
            tv_sec: t.as_secs() as i64,
            tv_nsec: t.subsec_nanos() as i64,
        });
        // Not a private futex: the other side is another process. Every error (word changed,
        // interrupted, timed out) means the same to the caller: look again.
        let _ = futex::wait(word, futex::Flags::empty(), expected, limit.as_ref());
    }

    /// Wakes everyone who sleeps on `word`.
    pub fn futex_wake(word: &AtomicU32) {
        let _ = futex::wake(word, futex::Flags::empty(), i32::MAX as u32);
    }
}

#[cfg(loom)]
mod model;

#[cfg(loom)]
pub use model::*;
#[cfg(not(loom))]
pub use real::*;
