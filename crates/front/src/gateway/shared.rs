//! What the parts of a connection's task share.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A thing of a connection's. Those who use it run one after the other; the lock is only there
/// because tasks must be `Send`.
pub struct Shared<T>(Arc<Mutex<T>>);

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Shared<T> {
        Shared(self.0.clone())
    }
}

impl<T> Shared<T> {
    /// To be shared from now on.
    pub fn new(thing: T) -> Shared<T> {
        Shared(Arc::new(Mutex::new(thing)))
    }

    /// The thing, if nobody else has it any more.
    pub fn only(self) -> Option<T> {
        Arc::into_inner(self.0)?.into_inner().ok()
    }

    /// The thing itself.
    pub fn get(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
