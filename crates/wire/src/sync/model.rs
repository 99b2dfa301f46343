//! loom's atomics under the names of the real ones, and a futex built from them.

pub use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

use std::time::Duration;

/// A futex without a kernel: a thread that finds the word unchanged gives way to the others. loom
/// reports a model in which the word never changes.
pub fn futex_wait(word: &AtomicU32, expected: u32, _timeout: Option<Duration>) {
    while word.load(Ordering::Relaxed) == expected {
        loom::thread::yield_now();
    }
}

/// Nothing to do: sleepers of the model watch the word themselves.
pub fn futex_wake(_word: &AtomicU32) {}
