//! The end of a server that nobody asks for anything. When the last request was put, and whether one
//! is under way, the segment says; nothing is counted and no request costs more for it.

use super::*;
use std::sync::atomic::Ordering::Acquire;
use wire::Board;
use wire::slot::State as Slot;

/// How long the server has had nothing to do, as far as has been looked.
pub(super) struct Idle {
    /// None: it stays for ever.
    timeout: Option<u64>,
    /// The position that the next request will get.
    tail: u64,
    /// Since when, ns. None: it does not serve yet.
    since: Option<u64>,
}

impl Idle {
    pub(super) fn new(timeout: Duration) -> Idle {
        let timeout = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
        Idle { timeout: (timeout > 0).then_some(timeout), tail: 0, since: None }
    }

    /// How long until the next look.
    fn due_in(&self, now: u64) -> Option<Duration> {
        let timeout = self.timeout?;
        let due = self.since.map_or(now, |since| since.saturating_add(timeout));
        Some(Duration::from_nanos(due.saturating_sub(now)))
    }

    /// Looks, if it is time; true when there has been nothing to do for so long.
    fn is_over(&mut self, board: &Board, now: u64) -> bool {
        let (Some(timeout), Some(wait)) = (self.timeout, self.due_in(now)) else { return false };
        if !wait.is_zero() {
            return false;
        }
        let tail = board.queue.tail.load(Acquire);
        if self.since.is_none() || tail != self.tail {
            self.tail = tail;
            self.since = Some(board.last_put_ns().unwrap_or(now).min(now));
        }
        if board.slots.iter().any(|slot| slot.word().state != Slot::Free) {
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
        if self.idle.is_over(self.segment.board(), wire::now_ns()) {
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
    use std::sync::atomic::Ordering::Relaxed;
    use wire::Segment;
    use wire::slot::Word;

    /// A request that is put at `now` and, unless it is `held`, over at once.
    fn put(board: &Board, now: u64, held: bool) {
        let slot = &board.slots[7];
        slot.queued_ns.store(now, Relaxed);
        let position = board.put(7).unwrap();
        if !held {
            assert!(slot.swap(Word::queued(position), Word::unpack(0)));
        }
    }

    #[test]
    fn the_time_runs_from_the_last_request() {
        let segment = Segment::create().unwrap();
        let board = segment.board();
        let mut idle = Idle::new(Duration::from_nanos(100));
        assert_eq!(idle.due_in(1_000), Some(Duration::ZERO), "it begins with a look");
        assert!(!idle.is_over(board, 1_000));
        assert_eq!(idle.due_in(1_000), Some(Duration::from_nanos(100)));
        put(board, 1_050, false);
        assert!(!idle.is_over(board, 1_100));
        assert_eq!(idle.due_in(1_100), Some(Duration::from_nanos(50)));
        assert!(!idle.is_over(board, 1_149));
        assert!(idle.is_over(board, 1_150));
    }

    #[test]
    fn a_request_that_runs_is_something_to_do() {
        let segment = Segment::create().unwrap();
        let board = segment.board();
        let mut idle = Idle::new(Duration::from_nanos(100));
        put(board, 1_000, true);
        assert!(!idle.is_over(board, 1_000));
        assert!(!idle.is_over(board, 5_000));
        board.slots[7].state.store(0, Relaxed);
        assert!(!idle.is_over(board, 5_099));
        assert!(idle.is_over(board, 5_100));
    }

    #[test]
    fn without_a_timeout_nobody_looks() {
        let mut idle = Idle::new(Duration::ZERO);
        assert_eq!(idle.due_in(1), None);
        assert!(!idle.is_over(Segment::create().unwrap().board(), u64::MAX));
    }
}
