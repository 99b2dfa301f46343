//! The threads of one worker process, and which of them is woken next.
//!
//! At most one seat of a process is armed at a time: waking two would make them wait for each
//! other (only one thread of an interpreter runs) while another process stays idle. A process
//! whose other threads are busy arms with `Rank::Second`, so that idle processes go first.
//!
//! A process may have a limit of requests, which its seats share. A request counts when it is
//! taken, and no longer if its client has gone before the app was called: so the app is called
//! exactly as often as the limit says. Seats of a process that has reached it sleep unannounced
//! until they are told to leave.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard};
use wire::Board;
use wire::doorbell::Rank;

/// The seats of one process. Its lock is only ever taken by the thread that holds the
/// interpreter, so nobody waits for it.
#[derive(Default)]
pub struct Crew {
    state: Mutex<State>,
    /// The first of them.
    first: u16,
    /// Requests it may take; 0: any number.
    limit: u64,
    /// A request that was taken is the last one, whether or not an app was called for it.
    once: bool,
    /// Requests it has taken, where there is a limit. Written with the interpreter held.
    taken: AtomicU64,
}

#[derive(Default)]
struct State {
    /// The seat that is announced as a sleeper, and as what.
    armed: Option<(u16, Rank)>,
    /// Seats that sleep, the armed one included.
    asleep: Vec<u16>,
    /// Seats that have a request.
    busy: usize,
    /// The limit is reached: no seat is announced.
    spent: bool,
    /// A seat has stepped aside with the whole process: no seat is announced meanwhile.
    aside: bool,
}

impl State {
    fn rank(&self) -> Rank {
        if self.busy == 0 { Rank::Idle } else { Rank::Second }
    }

    /// Makes the announcement fit what the process is doing now. Whoever calls it looks at the
    /// queue afterwards, as after any announcement.
    fn rearm(&mut self, board: &Board) {
        if self.spent || self.aside {
            return self.disarm(board);
        }
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

    /// Takes the announcement back, if nobody has claimed it.
    fn disarm(&mut self, board: &Board) {
        if self.armed.is_some_and(|(seat, rank)| board.bells.disarm(seat, rank)) {
            self.armed = None;
        }
    }
}

/// How far a process is with its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wear {
    /// Nothing to tell anybody.
    Same,
    /// It will soon have reached it.
    Worn,
    /// It has.
    Spent,
}

impl Crew {
    /// The seats from `first` on, of a process that takes at most `limit` requests; 0: any number.
    pub fn new(first: u16, limit: u64) -> Crew {
        Crew { first, limit, ..Crew::default() }
    }

    /// The seat `first` of a process that no second request must ever see.
    pub fn once(first: u16) -> Crew {
        Crew { first, limit: 1, once: true, ..Crew::default() }
    }

    /// The first seat, where it is written what concerns the whole process.
    pub(crate) fn first(&self) -> u16 {
        self.first
    }

    /// Whether a seat may take a request.
    pub(crate) fn may_take(&self) -> bool {
        self.limit == 0 || self.taken.load(Relaxed) < self.limit
    }

    /// Whether the process is to leave by itself.
    pub(crate) fn is_used(&self) -> bool {
        self.once && !self.may_take()
    }

    /// A request was taken. To be called before `begun`, with the interpreter still held.
    pub(crate) fn count(&self, board: &Board) -> Wear {
        if self.limit == 0 {
            return Wear::Same;
        }
        let taken = self.taken.load(Relaxed) + 1;
        self.taken.store(taken, Relaxed);
        if taken >= self.limit {
            let mut state = self.state();
            state.spent = true;
            // Whoever has claimed it meanwhile rings a seat that passes the wake on.
            state.disarm(board);
        }
        if taken == worn_at(self.limit) { Wear::Worn } else { Wear::Same }
    }

    /// The app was not called for a request that was taken. The seat that calls this looks for
    /// another one at once, and is announced when it finds none: so nobody else need be.
    pub(crate) fn uncount(&self) {
        if self.limit > 0 && !self.once {
            self.taken.fetch_sub(1, Relaxed);
            self.state().spent = false;
        }
    }

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

    /// Whether another seat than the calling one, which still counts as busy, has a request.
    pub(crate) fn others_busy(&self) -> bool {
        self.state().busy > 1
    }

    /// The process is about to do something that stops all its threads: takes back the
    /// announcement of a sleeping one. True: a wake was on its way to that one, which the caller
    /// must pass on, since the sleeper cannot follow it now.
    pub(crate) fn step_aside(&self, board: &Board) -> bool {
        let mut state = self.state();
        state.aside = true;
        state.armed.take().is_some_and(|(seat, rank)| !board.bells.disarm(seat, rank))
    }

    /// That is over. True: a sleeping sibling is announced again, so the caller must look at the
    /// queue.
    pub(crate) fn come_back(&self, board: &Board) -> bool {
        let mut state = self.state();
        state.aside = false;
        state.rearm(board);
        state.armed.is_some()
    }

    /// A seat has finished its request and found no other, or may take no other. `Spent` when
    /// that was the last one of the process.
    pub(crate) fn finished(&self) -> Wear {
        let mut state = self.state();
        state.busy = state.busy.saturating_sub(1);
        if state.spent && state.busy == 0 { Wear::Spent } else { Wear::Same }
    }
}

/// From which request on a relief should stand ready: with a fifth of them left, or one. Of a
/// limit of one request it is the first, or a relief would want another before it served.
fn worn_at(limit: u64) -> u64 {
    (limit - (limit / 5).max(1)).max(1)
}
