//! Requests that run for too long: workers write into their seats when the present request is due,
//! the supervisor looks there. Which of two wins (the request ends, or its time is up) is decided
//! here, word by word, because the worker goes on meanwhile.

use crate::doorbell::Seat;
use crate::layout::Board;
use crate::slot::{SlotHead, State};
use crate::sync::{Ordering::*, futex_wait, futex_wake};

impl Seat {
    /// Worker: the request that has begun is due at `deadline_ns` and to be logged at `soft_ns`; 0:
    /// never. True when the supervisor may know of no time so early, and must be rung.
    pub fn set_due(&self, deadline_ns: u64, soft_ns: u64) -> bool {
        let earlier = |before: u64, now: u64| now != 0 && (before == 0 || now < before);
        let deadline = self.deadline_ns.swap(deadline_ns, AcqRel);
        let soft = self.soft_ns.swap(soft_ns, AcqRel);
        earlier(deadline, deadline_ns) || earlier(soft, soft_ns)
    }

    /// Worker: the request gets so many nanoseconds more, where it is limited at all.
    pub fn extend(&self, by_ns: u64) {
        for word in [&self.deadline_ns, &self.soft_ns] {
            let mut before = word.load(Acquire);
            while before != 0 {
                let later = before.saturating_add(by_ns);
                match word.compare_exchange(before, later, AcqRel, Acquire) {
                    Ok(_) => break,
                    Err(other) => before = other,
                }
            }
        }
    }

    /// Worker: one more request is over, to be called before its slot says DONE.
    pub fn count_served(&self) {
        // Where nothing is due nothing is written.
        for word in [&self.deadline_ns, &self.soft_ns] {
            if word.load(Relaxed) != 0 {
                word.swap(0, AcqRel);
            }
        }
        // Whoever sees the count sees that what is due is none of an earlier request's.
        self.served.store(self.served.load(Relaxed) + 1, Release);
    }

    /// The present request as `alarm` names it: by the number of those before it, never zero.
    fn present(&self) -> u32 {
        self.served.load(Acquire) as u32 | 1 << 31
    }

    /// Worker, at its first seat: sleeps until there is an alarm that came after so many; may
    /// return early.
    pub fn wait_for_alarm(&self, seen: u32) {
        futex_wait(&self.alarms, seen, None);
    }

    /// Makes whoever waits for an alarm at this seat look. Safe in a signal handler.
    pub fn ring_alarm(&self) {
        self.alarms.fetch_add(1, Release);
        futex_wake(&self.alarms);
    }

    /// Worker: true once for each alarm of the present request.
    pub fn take_alarm(&self) -> bool {
        self.alarm.load(Acquire) == self.present() && self.alarm.swap(0, AcqRel) != 0
    }

    /// Supervisor: `soft_ns`, seen as `seen`, has passed. False: the request has ended meanwhile or
    /// got more time; else the worker is to be rung, at its first seat.
    pub fn raise_alarm(&self, seen: u64) -> bool {
        let present = self.present();
        // As long as this is there, no request has ended since it was written.
        let ours = self.soft_ns.compare_exchange(seen, 0, AcqRel, Relaxed).is_ok();
        if ours {
            self.alarm.store(present, Release);
        }
        ours
    }
}

impl SlotHead {
    /// Whether the request put at this position has run for too long, and its worker is killed.
    pub fn is_overdue(&self, position: u64) -> bool {
        self.overdue.load(Relaxed) == position + 1
    }
}

impl Board {
    /// Supervisor: the deadline of `seat`, seen as `seen`, has passed. Marks the slot of the
    /// request, notes it for its front thread, and returns it: the worker is now to be killed, at
    /// once, for it goes on and may end the request after all, and the front thread rung. None:
    /// the request has ended or got more time, its worker lives.
    pub fn strike(&self, seat: u16, seen: u64) -> Option<u32> {
        let clock = &self.seats[usize::from(seat)];
        let served = clock.served.load(Acquire);
        // From here on nothing extends it any more.
        clock.deadline_ns.compare_exchange(seen, 0, AcqRel, Relaxed).ok()?;
        let (index, slot, word) = self.slots.iter().enumerate().find_map(|(index, slot)| {
            let word = slot.word();
            (word.state == State::Begun && word.owner == seat).then_some((index, slot, word))
        })?;
        // The seat has ended none since the deadline was there: this request is the one.
        if clock.served.load(Acquire) != served {
            return None;
        }
        slot.overdue.store(word.position + 1, Relaxed);
        if let Some(front) = self.fronts.get(slot.front.load(Relaxed) as usize) {
            front.note(index as u32);
        }
        (slot.word() == word).then_some(index as u32)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::layout::SLOTS;
    use crate::segment::Segment;
    use crate::slot::Claim;

    /// A board where seat 3 runs a request that has a deadline.
    fn begun(deadline: u64) -> (&'static Board, Claim) {
        let board = Segment::create().unwrap().forever().board();
        board.header.serving.store(1, Relaxed);
        board.put(SLOTS as u32 - 1).unwrap();
        let claim = board.take(3, 1).unwrap();
        assert!(board.begin(claim));
        board.seats[3].set_due(deadline, 0);
        (board, claim)
    }

    #[test]
    fn a_struck_request_is_marked_and_never_returned() {
        let (board, claim) = begun(5);
        let slot = &board.slots[claim.slot as usize];
        slot.idempotent.store(1, Relaxed);
        assert_eq!(board.strike(3, 4), None, "it has got another deadline");
        assert_eq!(board.strike(2, 5), None, "another seat's");
        assert!(!slot.is_overdue(claim.position));
        assert_eq!(board.strike(3, 5), Some(claim.slot));
        assert_eq!(board.strike(3, 5), None, "once is enough");
        assert!(slot.is_overdue(claim.position) && !slot.is_overdue(claim.position + 1));
        let settled = board.settle_seats(3, 1, true);
        assert_eq!((settled.lost, settled.returned, slot.word().state), (1, 0, State::Done));
    }

    #[test]
    fn its_sibling_is_returned_where_that_is_allowed() {
        let (board, claim) = begun(5);
        board.put(0).unwrap();
        board.slots[0].idempotent.store(1, Relaxed);
        assert!(board.take(4, 1).is_some_and(|claim| board.begin(claim)));
        board.strike(3, 5).unwrap();
        let settled = board.settle_seats(3, 2, true);
        assert_eq!((settled.lost, settled.returned), (1, 1));
        assert_eq!(board.slots[claim.slot as usize].word().state, State::Done);
    }

    #[test]
    fn a_request_that_has_ended_is_not_struck() {
        let (board, claim) = begun(5);
        board.seats[3].count_served();
        board.complete(claim);
        assert_eq!(board.strike(3, 5), None);
        assert_eq!(board.seats[3].served.load(Relaxed), 1);
    }

    #[test]
    fn only_an_earlier_point_in_time_is_worth_a_ring() {
        let seat = Seat::default();
        assert!(!seat.set_due(0, 0));
        assert!(seat.set_due(10, 0));
        assert!(!seat.set_due(10, 0) && !seat.set_due(20, 0));
        assert!(seat.set_due(20, 5));
        assert!(seat.set_due(19, 6) && !seat.set_due(0, 0));
    }

    #[test]
    fn what_is_limited_gets_more_time_and_what_is_not_stays_so() {
        let seat = Seat::default();
        seat.extend(7);
        assert_eq!(seat.deadline_ns.load(Relaxed), 0);
        seat.set_due(10, 0);
        seat.extend(7);
        let due = [&seat.deadline_ns, &seat.soft_ns].map(|at| at.load(Relaxed));
        assert_eq!(due, [17, 0]);
        seat.extend(u64::MAX);
        assert_eq!(seat.deadline_ns.load(Relaxed), u64::MAX);
    }

    #[test]
    fn an_alarm_is_the_present_request_s() {
        let seat = Seat::default();
        seat.set_due(0, 5);
        assert!(!seat.take_alarm() && !seat.raise_alarm(4));
        assert!(seat.raise_alarm(5) && !seat.raise_alarm(5));
        assert!(seat.take_alarm() && !seat.take_alarm());
        seat.set_due(0, 5);
        assert!(seat.raise_alarm(5));
        seat.count_served();
        assert!(!seat.take_alarm());
    }
}
