//! Requests that run for too long: workers write into their seats when the present request is due,
//! the supervisor looks there. Which of two wins (the request ends, or its time is up) is decided
//! here, word by word, because the worker goes on meanwhile.

use crate::doorbell::Seat;
use crate::layout::Board;
use crate::slot::State;
use crate::sync::{Ordering::*, fence, futex_wait, futex_wake};

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
        // Where nothing was due nothing is written.
        if self.deadline_ns.load(Relaxed) != 0 {
            self.deadline_ns.store(0, Relaxed);
        }
        if self.soft_ns.load(Acquire) != 0 {
            self.soft_ns.swap(0, AcqRel);
        }
        // After the above: an alarm is written before the point in time is taken back.
        if self.alarm.load(Relaxed) != 0 {
            self.alarm.store(0, Relaxed);
        }
        // Whoever sees the count sees that the deadline is none of a later request's.
        self.served.store(self.served.load(Relaxed) + 1, Release);
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

    /// Worker: true once for each alarm.
    pub fn take_alarm(&self) -> bool {
        // With a point in time still there the supervisor has not decided yet; it comes again.
        self.alarm.load(Acquire) != 0
            && self.soft_ns.load(Relaxed) == 0
            && self.alarm.swap(0, AcqRel) != 0
    }

    /// Supervisor: `soft_ns`, seen as `seen`, has passed. False: the request has ended meanwhile or
    /// got more time; else the worker is to be rung, at its first seat.
    pub fn raise_alarm(&self, seen: u64) -> bool {
        self.alarm.store(1, Release);
        let ours = self.soft_ns.compare_exchange(seen, 0, AcqRel, Relaxed).is_ok();
        if !ours {
            self.alarm.store(0, Relaxed);
        }
        ours
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
        slot.overdue.store(1, Relaxed);
        fence(SeqCst);
        // Still the same word, and the seat has finished no request since the deadline was there:
        // it is the one.
        if slot.word() == word && clock.served.load(Acquire) == served {
            if let Some(front) = self.fronts.get(slot.front.load(Relaxed) as usize) {
                front.note(index as u32);
            }
            return Some(index as u32);
        }
        slot.overdue.store(0, Relaxed);
        None
    }
}
