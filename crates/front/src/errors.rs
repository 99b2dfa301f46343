//! What an app writes to `rack.errors`, on its way to a door that has a way for it.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// Bytes from which on a reply is not read further while its door still has these to send.
const ENOUGH: usize = 64 * 1024;
/// Bytes that may wait; what comes on top of them is dropped. More than `ENOUGH` and one look at a
/// reply's window, so that who takes what there is gets everything.
pub const MOST: usize = 256 * 1024;

/// What one request has written to `rack.errors` and its door has not taken yet.
#[derive(Default)]
pub struct Outlet(Mutex<Pending>);

#[derive(Default)]
struct Pending {
    bytes: Vec<u8>,
    dropped: usize,
    /// Waits for bytes.
    taker: Option<Waker>,
    /// Somebody has waited for bytes, so what is held back is surely taken.
    heard: bool,
    /// Waits for room, if there is none.
    giver: Option<Waker>,
}

impl Outlet {
    fn pending(&self) -> MutexGuard<'_, Pending> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends what the app wrote, and wakes who waits for it.
    pub fn push(&self, bytes: &[u8]) {
        let mut pending = self.pending();
        let (kept, dropped) = bytes.split_at(bytes.len().min(MOST - pending.bytes.len()));
        pending.bytes.extend_from_slice(kept);
        pending.dropped += dropped.len();
        pending.taker.take().inspect(Waker::wake_by_ref);
    }

    /// Everything that waits, if anything does.
    pub fn take(&self) -> Option<Vec<u8>> {
        let mut pending = self.pending();
        if pending.bytes.is_empty() {
            return None;
        }
        let mut bytes = std::mem::take(&mut pending.bytes);
        let dropped = std::mem::take(&mut pending.dropped);
        if dropped > 0 {
            let note =
                format!("\noribi: dropped {dropped} bytes of rack.errors: not read in time\n");
            bytes.extend_from_slice(note.as_bytes());
        }
        if bytes.len() >= ENOUGH {
            pending.giver.take().inspect(Waker::wake_by_ref);
        }
        Some(bytes)
    }

    /// The same, or the task is woken when something comes. From the first call on a reply is read
    /// no faster than its errors are taken.
    pub fn poll_take(&self, context: &Context<'_>) -> Poll<Vec<u8>> {
        if let Some(bytes) = self.take() {
            return Poll::Ready(bytes);
        }
        let mut pending = self.pending();
        pending.taker = Some(context.waker().clone());
        pending.heard = true;
        Poll::Pending
    }

    /// The reply's reader is to be woken when there is room again, should it find that there is none.
    pub(crate) fn wait_for_room(&self, waker: &Waker) {
        self.pending().giver = Some(waker.clone());
    }

    /// Whether the reply's reader is to wait.
    pub(crate) fn is_full(&self) -> bool {
        let pending = self.pending();
        pending.heard && pending.bytes.len() >= ENOUGH
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
    use std::task::Wake;

    #[derive(Default)]
    struct Counter(AtomicU32);

    impl Wake for Counter {
        fn wake(self: Arc<Counter>) {
            self.0.fetch_add(1, Relaxed);
        }
    }

    #[test]
    fn what_is_pushed_is_taken_once_and_in_order() {
        let outlet = Outlet::default();
        assert_eq!(outlet.take(), None);
        outlet.push(b"one ");
        outlet.push(b"two");
        assert_eq!(outlet.take().unwrap(), b"one two");
        assert_eq!(outlet.take(), None);
    }

    #[test]
    fn what_nobody_takes_is_dropped_and_said() {
        let outlet = Outlet::default();
        outlet.push(&[b'x'; MOST - 1]);
        outlet.push(b"12345");
        assert!(!outlet.is_full(), "nobody has ever taken any");
        let taken = outlet.take().unwrap();
        assert_eq!(taken[MOST - 2..MOST], *b"x1");
        assert!(taken[MOST..].starts_with(b"\noribi: dropped 4 bytes"));
        outlet.push(b"on");
        assert_eq!(outlet.take().unwrap(), b"on");
    }

    #[test]
    fn each_side_wakes_the_other() {
        let (taker, giver) = (Arc::new(Counter::default()), Arc::new(Counter::default()));
        let (wakes, gives) = (taker.clone().into(), giver.clone().into());
        let outlet = Outlet::default();
        assert!(outlet.poll_take(&Context::from_waker(&wakes)).is_pending());
        outlet.wait_for_room(&gives);
        outlet.push(&[b'x'; ENOUGH - 1]);
        assert!(!outlet.is_full());
        assert!(outlet.take().is_some());
        assert_eq!(giver.0.load(Relaxed), 0, "there was room all the time");
        outlet.push(&[b'x'; ENOUGH]);
        assert_eq!(taker.0.load(Relaxed), 1);
        assert!(outlet.is_full());
        assert!(outlet.poll_take(&Context::from_waker(&wakes)).is_ready());
        assert_eq!(giver.0.load(Relaxed), 1);
        assert!(!outlet.is_full());
    }
}
