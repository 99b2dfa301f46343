//! loom's atomics under the names of the real ones, a futex built from loom's locks, and death.
//!
//! Every access and every system call is a *step*. A thread that runs inside [`mortal`] dies after
//! a given number of them, as a process does that gets SIGKILL: it stops where it is, and what it
//! has stored stays stored.

pub use loom::sync::atomic::Ordering;

use loom::sync::{Condvar, Mutex, atomic};
use std::cell::Cell;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Duration;

loom::thread_local! {
    /// Steps the thread has left; `None` for a thread that lives.
    static LEFT: Cell<Option<u32>> = Cell::new(None);
}

/// What unwinds out of a thread that dies.
struct Killed;

/// Runs `body`, which dies after `steps` steps. `None` if it did die.
pub fn mortal<T>(steps: u32, body: impl FnOnce() -> T) -> Option<T> {
    LEFT.with(|left| left.set(Some(steps)));
    let end = catch_unwind(AssertUnwindSafe(body));
    LEFT.with(|left| left.set(None));
    match end {
        Ok(value) => Some(value),
        Err(cause) if cause.is::<Killed>() => None,
        Err(cause) => resume_unwind(cause),
    }
}

/// One step of the present thread: its last, if it is to die here.
pub fn step() {
    LEFT.with(|left| match left.get() {
        None => {}
        Some(0) => {
            left.set(None);
            resume_unwind(Box::new(Killed));
        }
        Some(n) => left.set(Some(n - 1)),
    })
}

macro_rules! mortal_atomic {
    ($name:ident, $inner:ty, $value:ty) => {
        /// loom's atomic of the same name; each access is a step.
        #[derive(Debug, Default)]
        pub struct $name($inner);

        #[allow(missing_docs)]
        impl $name {
            pub fn new(value: $value) -> Self {
                $name(<$inner>::new(value))
            }
            pub fn load(&self, order: Ordering) -> $value {
                step();
                self.0.load(order)
            }
            pub fn store(&self, value: $value, order: Ordering) {
                step();
                self.0.store(value, order)
            }
            pub fn swap(&self, value: $value, order: Ordering) -> $value {
                step();
                self.0.swap(value, order)
            }
            pub fn compare_exchange(
                &self,
                from: $value,
                to: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                step();
                self.0.compare_exchange(from, to, success, failure)
            }
            pub fn fetch_or(&self, value: $value, order: Ordering) -> $value {
                step();
                self.0.fetch_or(value, order)
            }
            pub fn fetch_and(&self, value: $value, order: Ordering) -> $value {
                step();
                self.0.fetch_and(value, order)
            }
            pub fn fetch_add(&self, value: $value, order: Ordering) -> $value {
                step();
                self.0.fetch_add(value, order)
            }
        }
    };
}

mortal_atomic!(AtomicU32, atomic::AtomicU32, u32);
mortal_atomic!(AtomicU64, atomic::AtomicU64, u64);

/// loom's fence. It is no step of its own: nobody can tell a death before it from one after.
pub fn fence(order: Ordering) {
    atomic::fence(order);
}

loom::lazy_static! {
    /// The kernel's side of all futexes: how often each word was woken.
    static ref KERNEL: (Mutex<HashMap<usize, u32>>, Condvar) =
        (Mutex::new(HashMap::new()), Condvar::new());
}

fn address(word: &AtomicU32) -> usize {
    std::ptr::from_ref(word) as usize
}

/// Sleeps until `futex_wake` if `word` holds `expected`. There are no timeouts in a model: who is
/// not woken sleeps forever, and loom reports it.
pub fn futex_wait(word: &AtomicU32, expected: u32, _timeout: Option<Duration>) {
    step();
    let mut woken = KERNEL.0.lock().unwrap();
    if word.0.load(Ordering::Relaxed) != expected {
        return;
    }
    let before = woken.get(&address(word)).copied();
    while woken.get(&address(word)).copied() == before {
        woken = KERNEL.1.wait(woken).unwrap();
    }
}

/// Wakes everyone who sleeps on `word`.
pub fn futex_wake(word: &AtomicU32) {
    step();
    *KERNEL.0.lock().unwrap().entry(address(word)).or_default() += 1;
    KERNEL.1.notify_all();
}
