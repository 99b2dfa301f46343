//! The threads of one worker process, and which of them is woken next.
//!
//! At most one seat of a process is armed at a time: waking two would make them wait for each
//! other (only one thread of an interpreter runs) while another process stays idle. A process
//! whose other threads are busy arms with `Rank::Second`, so that idle processes go first.

use std::sync::{Mutex, MutexGuard};
use wire::Board;
use wire::doorbell::Rank;

/// The seats of one process. Its lock is only ever taken by the thread that holds the
/// interpreter, so nobody waits for it.
#[derive(Default)]
pub struct Crew {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The seat that is announced as a sleeper, and as what.
    armed: Option<(u16, Rank)>,
    /// Seats that sleep, the armed one included.
    asleep: Vec<u16>,
    /// Seats that have a request.
    busy: usize,
}

impl State {
    fn rank(&self) -> Rank {
        if self.busy == 0 { Rank::Idle } else { Rank::Second }
    }

    /// Makes the announcement fit what the process is doing now. Whoever calls it looks at the
    /// queue afterwards, as after any announcement.
    fn rearm(&mut self, board: &Board) {
        let rank = self.rank();
        match self.armed {
            Some((_, same)) if same == rank => {}
            Some((seat, other)) => {
                // If somebody has claimed it, its ring is on the way: leave it at that.
                if board.bells.disarm(seat, other) {
                    board.bells.arm(seat, rank);
                    self.armed = Some((seat, rank));
                }
            }
            None => {
                if let Some(&seat) = self.asleep.last() {
                    board.bells.arm(seat, rank);
                    self.armed = Some((seat, rank));
                }
            }
        }
    }
}

impl Crew {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// `seat` will sleep unless it finds something when it looks at the queue once more. Where its
    /// generation does not serve it is not announced: it could only pass a wake on, to another
    /// seat that can only pass it on. The switch of generations rings everybody.
    pub(crate) fn lie_down(&self, board: &Board, seat: u16, serves: bool) {
        let mut state = self.state();
        state.asleep.push(seat);
        if serves {
            state.rearm(board);
        }
    }

    /// `seat` is awake again. True: a wake was meant for it, which it must use or pass on.
    pub(crate) fn get_up(&self, board: &Board, seat: u16) -> bool {
        let mut state = self.state();
        state.asleep.retain(|other| *other != seat);
        match state.armed {
            Some((armed, rank)) if armed == seat => {
                state.armed = None;
                !board.bells.disarm(seat, rank)
            }
            _ => false,
        }
    }

    /// A seat has taken a request. True: the announcement of a sleeping sibling has changed, so
    /// the caller must look at the queue.
    pub(crate) fn begun(&self, board: &Board) -> bool {
        let mut state = self.state();
        state.busy += 1;
        if state.asleep.is_empty() {
            return false;
        }
        state.rearm(board);
        true
    }

    /// A seat has finished its request and found no other.
    pub(crate) fn finished(&self) {
        let mut state = self.state();
        state.busy = state.busy.saturating_sub(1);
    }
}
