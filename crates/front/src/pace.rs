//! How eagerly the thread is woken: at once while requests are few, in batches while they are many.
//!
//! A woken thread of the normal policy preempts the one that woke it, so every reply interrupts
//! the worker that has just written it. For thousands of short requests a second that costs half
//! of the processor time. For few long ones it is what keeps a finished reply from waiting until
//! the worker's time slice ends. So the thread changes its policy with the pace.

use std::time::{Duration, Instant};
use wire::sched;

/// Requests a second above which wake-ups are gathered.
const MANY: f64 = 3000.0;
/// Requests a second below which they are not any more.
const FEW: f64 = 1500.0;
/// What a pace is measured over.
const WINDOW: Duration = Duration::from_millis(32);

/// The thread's pace, and the policy that goes with it.
pub struct Pace {
    since: Instant,
    requests: u64,
    gathering: bool,
}

impl Pace {
    /// A thread of the normal policy.
    pub fn new() -> Pace {
        Pace { since: Instant::now(), requests: 0, gathering: false }
    }

    /// Called every few milliseconds while there are requests, with all the thread has had so far.
    pub fn look(&mut self, requests: u64) {
        let passed = self.since.elapsed();
        if passed < WINDOW {
            return;
        }
        let rate = (requests - self.requests) as f64 / passed.as_secs_f64();
        let gather = should_gather(self.gathering, rate);
        if gather != self.gathering {
            // Where the kernel forbids it the front is only slower.
            let _ = sched::gather_wakeups(gather);
        }
        *self = Pace { since: Instant::now(), requests, gathering: gather };
    }
}

/// Between the two bounds it stays as it is.
fn should_gather(gathering: bool, rate: f64) -> bool {
    if gathering { rate > FEW } else { rate > MANY }
}

#[cfg(test)]
mod tests {
    use super::should_gather;

    #[test]
    fn the_policy_changes_at_two_bounds() {
        assert!(!should_gather(false, 2000.0) && should_gather(true, 2000.0));
        assert!(should_gather(false, 4000.0) && !should_gather(true, 1000.0));
    }
}
