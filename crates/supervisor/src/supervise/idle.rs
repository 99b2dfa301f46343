//! The end of a server that nobody asks for anything. When the last request was put, and whether one
//! is under way, the segment says; nothing is counted and no request costs more for it.

use super::*;

/// How long the server has had nothing to do, as far as has been looked.
pub(super) struct Idle {
    /// None: it stays for ever.
    timeout: Option<u64>,
    /// Requests that were put, in all mounts.
    puts: u64,
    /// Since when, ns. None: it does not serve yet.
    since: Option<u64>,
}

impl Idle {
    pub(super) fn new(timeout: Duration) -> Idle {
        let timeout = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
        Idle { timeout: (timeout > 0).then_some(timeout), puts: 0, since: None }
    }

    /// How long until the next look.
    fn due_in(&self, now: u64) -> Option<Duration> {
        let timeout = self.timeout?;
        let due = self.since.map_or(now, |since| since.saturating_add(timeout));
        Some(Duration::from_nanos(due.saturating_sub(now)))
    }

    /// Looks, if it is time; true when there has been nothing to do for so long. `puts` are the
    /// requests there have been and the last one's time; `busy` says whether one is under way.
    fn is_over(
        &mut self,
        (puts, last): (u64, Option<u64>),
        busy: impl Fn() -> bool,
        now: u64,
    ) -> bool {
        let (Some(timeout), Some(wait)) = (self.timeout, self.due_in(now)) else { return false };
        if !wait.is_zero() {
            return false;
        }
        if self.since.is_none() || puts != self.puts {
            self.puts = puts;
            self.since = Some(last.unwrap_or(now).min(now));
        }
        if busy() {
            self.since = Some(now);
        }
        self.since.is_some_and(|since| now.saturating_sub(since) >= timeout)
    }
}

impl Supervisor {
    /// How long until it is to be seen whether the server is idle.
    pub(super) fn idle_due_in(&self) -> Option<Duration> {
        (self.state.word() == "running").then(|| self.idle.due_in(wire::now_ns())).flatten()
    }

    /// Ends the server, if nothing has been asked of it for `idle_timeout`.
    pub(super) fn look_for_idleness(&mut self) {
        if self.state.word() != "running" {
            return;
        }
        let all = self.apps.values().map(App::puts);
        let puts = all.fold((0, None), |(n, last), (puts, at)| (n + puts, last.max(at)));
        let busy = || self.apps.values().any(App::is_busy);
        if self.idle.is_over(puts, busy, wire::now_ns()) {
            let seconds = self.settings.process.idle_timeout.as_secs_f64();
            say(&format!("no request for {seconds} s (idle_timeout): ending"));
            self.stops += 1;
            self.pending.push_back(Event::Stop);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_runs_from_the_last_request() {
        let mut idle = Idle::new(Duration::from_nanos(100));
        let free = || false;
        assert_eq!(idle.due_in(1_000), Some(Duration::ZERO), "it begins with a look");
        assert!(!idle.is_over((0, None), free, 1_000));
        assert_eq!(idle.due_in(1_000), Some(Duration::from_nanos(100)));
        let put = (1, Some(1_050));
        assert!(!idle.is_over(put, free, 1_100));
        assert_eq!(idle.due_in(1_100), Some(Duration::from_nanos(50)));
        assert!(!idle.is_over(put, free, 1_149));
        assert!(idle.is_over(put, free, 1_150));
    }

    #[test]
    fn a_request_that_runs_is_something_to_do() {
        let mut idle = Idle::new(Duration::from_nanos(100));
        let put = (1, Some(1_000));
        assert!(!idle.is_over(put, || true, 1_000));
        assert!(!idle.is_over(put, || true, 5_000));
        assert!(!idle.is_over(put, || false, 5_099));
        assert!(idle.is_over(put, || false, 5_100));
    }

    #[test]
    fn without_a_timeout_nobody_looks() {
        let mut idle = Idle::new(Duration::ZERO);
        assert_eq!(idle.due_in(1), None);
        assert!(!idle.is_over((0, None), || false, u64::MAX));
    }
}
