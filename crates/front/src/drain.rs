//! Letting go without dropping anything: connections finish what they have, then close.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::*};
use tokio::sync::Notify;

/// Another server is to get the clients, little by little.
static YIELDING: AtomicBool = AtomicBool::new(false);

/// From now on nothing is accepted while requests wait, and each connection ends with its present
/// request: what this server has too few workers for goes to the other that shares its listeners.
pub fn give_way() {
    YIELDING.store(true, Release);
}

/// True once `give_way` was called.
pub fn is_giving_way() -> bool {
    YIELDING.load(Relaxed)
}

/// Whether the front drains, and how many connections are left. Shared by all its threads.
pub struct Drain {
    draining: AtomicBool,
    begun: Arc<Notify>,
    connections: AtomicUsize,
    emptied: Notify,
}

impl Drain {
    /// Nothing drains yet.
    pub fn new() -> Arc<Drain> {
        Arc::new(Drain {
            draining: AtomicBool::new(false),
            begun: Arc::new(Notify::new()),
            connections: AtomicUsize::new(0),
            emptied: Notify::new(),
        })
    }

    /// From now on each connection ends with its present request, or with its next one should that
    /// be on its way already.
    pub fn begin(&self) {
        give_way();
        self.draining.store(true, SeqCst);
        self.begun.notify_waiters();
    }

    /// True once `begin` was called.
    pub fn is_draining(&self) -> bool {
        self.draining.load(Relaxed)
    }

    /// Completes when `begin` is called, or has been called already: an order to drain may follow
    /// the one to accept so closely that nobody waits for it yet.
    pub fn begins(&self) -> impl Future<Output = ()> + use<> {
        let begins = self.begun.clone().notified_owned();
        let begun = self.draining.load(SeqCst);
        async move {
            if !begun {
                begins.await;
            }
        }
    }

    /// One connection more, until the guard is dropped.
    pub fn count(self: &Arc<Drain>) -> Counted {
        self.connections.fetch_add(1, Relaxed);
        Counted(self.clone())
    }

    /// Connections there are.
    pub fn connections(&self) -> usize {
        self.connections.load(Relaxed)
    }

    /// Waits until no connection is left.
    pub async fn emptied(&self) {
        loop {
            let notified = self.emptied.notified();
            if self.connections.load(Acquire) == 0 {
                return;
            }
            notified.await;
        }
    }
}

/// A connection that counts as open.
pub struct Counted(Arc<Drain>);

impl Drop for Counted {
    fn drop(&mut self) {
        if self.0.connections.fetch_sub(1, AcqRel) == 1 {
            self.0.emptied.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;
    use std::task::{Context, Waker};

    #[test]
    fn who_comes_too_late_is_told_too() {
        let drain = Drain::new();
        let mut context = Context::from_waker(Waker::noop());
        let mut before = pin!(drain.begins());
        assert!(before.as_mut().poll(&mut context).is_pending());
        drain.begin();
        assert!(before.as_mut().poll(&mut context).is_ready());
        assert!(pin!(drain.begins()).poll(&mut context).is_ready());
    }
}
