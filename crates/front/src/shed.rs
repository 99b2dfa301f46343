//! Step 5, the queue's limit: what waits longer than `queue_timeout` is cancelled, and its client
//! told so, rather than served when nobody waits for it any more.
//!
//! Looked at in the front thread's tick and found by the queue itself, oldest first, so that a
//! request costs nothing more for having a deadline.

use crate::mounts::Mount;
use crate::refuse::log;
use crate::table::Table;
use std::time::{Duration, Instant};

/// The least time between two lines in the log.
const SAY_EVERY: Duration = Duration::from_secs(1);

/// Sheds a front thread's requests to one mount, and says so now and then.
#[derive(Default)]
pub struct Shedder {
    /// Shed, but not in the log yet.
    unsaid: u64,
    said: Option<Instant>,
}

impl Shedder {
    /// Called every few milliseconds while there are requests.
    pub fn look(&mut self, table: &Table, mount: &Mount) {
        let timeout = mount.options.queue_timeout;
        if !timeout.is_zero() {
            self.unsaid += table.shed(timeout);
        }
        if let Some(count) = self.take_due(Instant::now()) {
            let (tag, timeout) = (mount.tag(), timeout.as_secs_f64());
            log(&format!(
                "{tag}shed, for they waited longer than queue_timeout ({timeout} s): {count}"
            ));
        }
    }

    /// There will be a line for the log, so `look` should be called again.
    pub fn has_unsaid(&self) -> bool {
        self.unsaid > 0
    }

    /// How many the log should name now: the first at once, more of them together, for in an
    /// overload they are thousands.
    fn take_due(&mut self, now: Instant) -> Option<u64> {
        let due = self.said.is_none_or(|said| now - said >= SAY_EVERY);
        if self.unsaid == 0 || !due {
            return None;
        }
        self.said = Some(now);
        Some(std::mem::take(&mut self.unsaid))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_is_said_at_once_and_the_rest_together() {
        let mut shedder = Shedder::default();
        let start = Instant::now();
        assert_eq!(shedder.take_due(start), None);
        shedder.unsaid = 1;
        assert_eq!(shedder.take_due(start), Some(1));
        shedder.unsaid = 5;
        assert_eq!(shedder.take_due(start + SAY_EVERY / 2), None);
        assert!(shedder.has_unsaid());
        shedder.unsaid += 2;
        assert_eq!(shedder.take_due(start + SAY_EVERY), Some(7));
        assert!(!shedder.has_unsaid());
    }
}
