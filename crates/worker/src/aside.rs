//! Leaving the queue for a moment to collect garbage, after a reply and before the next request.
//!
//! A seat that is aside takes nothing, because it does not ask, and no sibling of it is announced,
//! because a thread that is woken while its process collects could not run. What was put meanwhile
//! is found by whoever comes back: it looks at the queue like anybody else.

use crate::seat::Seat;
use wire::Board;
use wire::sync::Ordering::*;
use wire::sync::fence;

/// How much a collection is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Urgency {
    /// It could wait: only while no request does.
    Spare,
    /// The next request would have to do it otherwise.
    Due,
    /// Now, whoever waits.
    Forced,
}

/// Of so many workers this many may collect at once.
pub fn share(workers: u32) -> u32 {
    (workers / 4).max(1)
}

/// Whether another seat may step aside, beside `collecting` others, while `waiting` requests wait.
fn permitted(urgency: Urgency, workers: u32, collecting: u32, waiting: u64) -> bool {
    match urgency {
        Urgency::Forced => true,
        Urgency::Spare if waiting > 0 => false,
        // A long queue wants every hand: who must collect then does so as if there were no turns.
        _ => collecting < share(workers) && waiting <= 2 * u64::from(workers),
    }
}

impl Seat {
    /// Asks whether the process, one of `workers`, may collect now, the seat having replied to a
    /// request and taken no other. True: it is aside until `come_back`. False: ask again after the
    /// next request.
    pub fn step_aside(&self, urgency: Urgency, workers: u32) -> bool {
        // Who leaves need not collect any more.
        if self.retired() || !self.crew.may_take() {
            return false;
        }
        // A collection stops all threads of the process.
        if urgency != Urgency::Forced && self.crew.others_busy() {
            return false;
        }
        let board = self.board();
        let own = &board.seats[self.index as usize].collecting;
        own.store(1, Relaxed);
        // Of two that ask at once at least one sees the other.
        fence(SeqCst);
        let others = collecting(board).saturating_sub(1);
        if !permitted(urgency, workers, others, board.waiting()) {
            own.store(0, Relaxed);
            return false;
        }
        let owes_wake = self.crew.step_aside(board);
        self.pass_wake_on(owes_wake);
        true
    }

    /// The collection is over: `turn` may be called again.
    pub fn come_back(&self) {
        self.board().seats[self.index as usize].collecting.store(0, Relaxed);
        let announced = self.crew.come_back(self.board());
        self.pass_wake_on(announced);
    }
}

/// Seats that are aside.
fn collecting(board: &Board) -> u32 {
    let used = (board.bells.seats_used.load(Relaxed) as usize).min(wire::SEATS);
    board.seats[..used].iter().map(|seat| u32::from(seat.collecting.load(Relaxed) != 0)).sum()
}

#[cfg(test)]
mod tests {
    use super::Urgency::*;
    use super::*;

    #[test]
    fn a_quarter_of_the_workers_collects_at_once() {
        assert_eq!([1, 2, 4, 7, 8, 16].map(share), [1, 1, 1, 1, 2, 4]);
        for urgency in [Spare, Due] {
            assert!(permitted(urgency, 8, 1, 0));
            assert!(!permitted(urgency, 8, 2, 0));
        }
    }

    #[test]
    fn what_could_wait_waits_for_requests() {
        assert!(permitted(Spare, 4, 0, 0));
        assert!(!permitted(Spare, 4, 0, 1));
        assert!(permitted(Due, 4, 0, 1));
    }

    #[test]
    fn a_long_queue_is_stopped_for_by_force_only() {
        assert!(permitted(Due, 4, 0, 8));
        assert!(!permitted(Due, 4, 0, 9));
        assert!(permitted(Forced, 4, 0, 4000));
        assert!(permitted(Forced, 4, 4, 4000));
    }
}
