//! How long a request may run: the worker writes the points in time, the supervisor watches them.

use crate::seat::Seat;
use std::time::Duration;
use wire::sync::Ordering::Relaxed;
use wire::{doorbell, now_ns};

/// How long a request may run. None: for ever.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timeouts {
    /// Until it is answered for and its worker killed.
    pub hard: Option<Duration>,
    /// Until its backtrace is logged.
    pub soft: Option<Duration>,
}

impl Timeouts {
    /// The points in time `deadline_ns` and `soft_ns` of a request that has so long from now.
    fn due_at(self) -> (u64, u64) {
        let now = now_ns();
        let at = |timeout: Option<Duration>| {
            timeout.map_or(0, |timeout| now.saturating_add(timeout.as_nanos() as u64))
        };
        (at(self.hard), at(self.soft))
    }
}

impl Seat {
    /// What holds for each request from the next one on.
    pub fn set_timeouts(&mut self, timeouts: Timeouts) {
        self.timeouts = timeouts;
    }

    /// The app is about to be called. The supervisor looks often enough for these timeouts, so it
    /// need not be rung.
    pub(crate) fn start_clock(&self) {
        if self.timeouts != Timeouts::default() {
            let (deadline, soft) = self.timeouts.due_at();
            self.line().set_due(deadline, soft);
        }
    }

    /// What holds for the present request, from now. Without one nothing happens.
    pub fn limit(&self, timeouts: Timeouts) {
        if self.claim.is_some() {
            let (deadline, soft) = timeouts.due_at();
            if self.line().set_due(deadline, soft) {
                self.ring_supervisor();
            }
        }
    }

    /// The present request gets so much more time, where it is limited.
    pub fn extend(&self, by: Duration) {
        if self.claim.is_some() {
            self.line().extend(by.as_nanos() as u64);
        }
    }

    /// What the present request has left, if it is limited.
    pub fn remaining(&self) -> Option<Duration> {
        let deadline = self.claim.and(Some(self.line().deadline_ns.load(Relaxed)));
        let left = |deadline: u64| Duration::from_nanos(deadline.saturating_sub(now_ns()));
        deadline.filter(|deadline| *deadline != 0).map(left)
    }

    /// How long the worker has had the present request.
    pub fn age(&self) -> Duration {
        let taken = self.held().map(|(_, slot)| slot.taken_ns.load(Relaxed));
        taken.map_or(Duration::ZERO, |at| Duration::from_nanos(now_ns().saturating_sub(at)))
    }

    /// What alarms come to, of a worker whose first seat this is.
    pub fn alarms(&self) -> &'static doorbell::Seat {
        self.line()
    }

    /// True once, when the present request has run for so long that its backtrace is wanted.
    pub fn take_alarm(&self) -> bool {
        self.line().take_alarm()
    }
}
