//! Making good what a dead process left behind. Only the supervisor settles, and only for a
//! process it has seen die.

use crate::doorbell::Rank;
use crate::layout::{Board, SEAT_WORDS, SLOTS};
use crate::queue::GROUP;
use crate::slot::{RETURNS_MAX, SlotHead, State, Word};
use crate::sync::Ordering::*;

/// What was found at a dead worker's seats.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settled {
    /// Requests that went back to their old places in the queue.
    pub returned: u32,
    /// Requests the app had begun: their clients get a 502, or a cut connection once the reply had
    /// started.
    pub lost: u32,
    /// Front threads to ring through their eventfds, one bit each: every one, see `settle_seats`.
    pub ring_fronts: u64,
}

impl Board {
    /// Settles the seats `first .. first + count` of a dead worker.
    ///
    /// TAKEN goes back to its old position; BEGUN becomes DONE without a whole reply, or goes back
    /// too if `retry_idempotent`, the method allows it and no reply byte was published; one that has
    /// run for too long never does. Returned requests wake a sleeper.
    ///
    /// Whoever claims a sleeper's announcement owns the duty to ring it, and the dead may have
    /// claimed any and rung none. So everyone whose announcement is gone is rung in its place,
    /// front threads (by the caller, through their eventfds) and seats alike.
    pub fn settle_seats(&self, first: u16, count: u16, retry_idempotent: bool) -> Settled {
        let mut settled = Settled { ring_fronts: u64::MAX, ..Settled::default() };
        let dead = first..first + count;
        for seat in dead.clone() {
            self.bells.disarm(seat, Rank::Idle);
            self.bells.disarm(seat, Rank::Second);
            // Or the living would wait for their turn to collect for ever.
            self.seats[seat as usize].collecting.store(0, Relaxed);
        }
        for (index, slot) in self.slots.iter().enumerate() {
            let word = slot.word();
            if !dead.contains(&word.owner) {
                continue;
            }
            match word.state {
                State::Taken | State::Begun if may_return(slot, word, retry_idempotent) => {
                    slot.returns.fetch_add(1, Relaxed);
                    slot.state.store(Word::queued(word.position).pack(), Release);
                    self.queue.returned.fetch_or(1 << (index / GROUP), Release);
                    settled.returned += 1;
                }
                State::Taken | State::Begun => {
                    slot.state.store(Word { state: State::Done, ..word }.pack(), Release);
                    settled.lost += 1;
                }
                // The worker may have died between the state and the note.
                State::Done => {}
                State::Free | State::Filling | State::Queued => continue,
            }
            // Or every later reply in this slot would wake a writer that is not there.
            slot.wants_room.store(0, Relaxed);
            if let Some(front) = self.fronts.get(slot.front.load(Relaxed) as usize) {
                front.note(index as u32);
            }
        }
        self.ring_claimed();
        // The dead may also have swallowed a wake that was meant for a request still waiting.
        if self.first_waiting().is_some() {
            self.ring_one();
        }
        settled
    }

    /// Clears the hints of `Queue::returned` that lead nowhere any more. The supervisor calls it
    /// from time to time after a death; true when nothing is left to clear.
    pub fn prune_returned(&self) -> bool {
        let hinted = self.queue.returned.load(Relaxed);
        let mut groups = hinted;
        while groups != 0 {
            let group = groups.trailing_zeros() as usize;
            groups &= groups - 1;
            let slots = &self.slots[group * GROUP..((group + 1) * GROUP).min(SLOTS)];
            let waits = |slot: &SlotHead| {
                slot.word().state == State::Queued && slot.returns.load(Relaxed) > 0
            };
            if !slots.iter().any(waits) {
                self.queue.returned.fetch_and(!(1 << group), AcqRel);
            }
        }
        self.queue.returned.load(Relaxed) == 0
    }

    /// Settles a dead front: what waits is cancelled, what runs has no reader any more. Must be
    /// done before the next front starts.
    pub fn settle_front(&self) {
        self.header.incarnation.fetch_add(1, AcqRel);
        for slot in &self.slots {
            let word = slot.word();
            let free = Word { state: State::Free, owner: 0, position: word.position };
            match word.state {
                State::Free => continue,
                State::Filling | State::Done => slot.state.store(free.pack(), Release),
                State::Queued if slot.swap(word, free) => {}
                State::Queued | State::Taken | State::Begun => {
                    slot.cancelled.store(1, Release);
                    slot.wake_writer();
                }
            }
        }
        // Positions the dead front had handed out but not published will never be.
        self.queue.head.store(self.queue.tail.load(Acquire), Release);
        self.fronts.iter().for_each(|front| front.awake());
        // As in `settle_seats`: seats it has claimed but not rung are woken in its place.
        self.ring_claimed();
    }

    /// True when every slot is FREE.
    pub fn all_free(&self) -> bool {
        self.slots.iter().all(|slot| slot.word().state == State::Free)
    }

    /// Seats that sleep and could take a request.
    pub fn armed(&self) -> usize {
        (0..SEAT_WORDS).map(|word| self.bells.armed_in(word).count_ones() as usize).sum()
    }
}

fn may_return(slot: &SlotHead, word: Word, retry_idempotent: bool) -> bool {
    let fresh = slot.returns.load(Relaxed) < RETURNS_MAX
        && slot.cancelled.load(Relaxed) == 0
        && !slot.is_overdue(word.position);
    let unseen = || {
        retry_idempotent && slot.idempotent.load(Relaxed) != 0 && slot.written.load(Acquire) == 0
    };
    fresh && (word.state == State::Taken || unseen())
}
