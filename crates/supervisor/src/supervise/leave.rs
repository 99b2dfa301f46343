//! Taking the listeners away, so that no client is left between a server that is there and one that
//! is not.

use super::*;
use wire::control::ToFront;

/// How often a listener is tried to be taken away that a client is just connecting to.
const TRY_EVERY: Duration = Duration::from_millis(10);
/// What clients get for that, all together.
const PATIENCE: Duration = Duration::from_secs(2);

impl Supervisor {
    /// Closes the listeners, each when its turn has come, and then has the front accept what their
    /// backlogs hold and drain.
    pub(super) fn leave(&mut self) {
        self.leaving = Some(Instant::now());
        self.notify.stopping("finishes what runs and waits");
        self.go_on_leaving();
    }

    /// Until when there is something to try, if there is.
    pub(super) fn leaving_due_in(&self) -> Option<Duration> {
        self.leaving.map(|_| TRY_EVERY)
    }

    pub(super) fn go_on_leaving(&mut self) {
        let Some(since) = self.leaving else { return };
        // Ours would keep the kernel queueing connections that nobody accepts.
        self.listeners.retain_mut(|listener| !listener.may_leave());
        if self.listeners.is_empty() || since.elapsed() >= PATIENCE {
            self.leaving = None;
            self.listeners.clear();
            self.tell_front(ToFront::Drain, &[]);
        }
    }
}
