//! One bounded queue per mount: first come, first served; the front puts, idle workers take.
//!
//! Lock-free, and safe against a process that dies at any instruction. The ring only says in which
//! order to look; the truth is each slot's state word. `head` is a hint that anyone may advance
//! past a position which is no longer waiting. A hole (a position handed out whose slot is not yet
//! published) is looked past, never advanced past.

use crate::layout::{Board, Line, RING, SLOTS};
use crate::slot::{Claim, State, Word};
use crate::sync::{AtomicU64, Ordering::*};
use std::ops::Range;

/// The order of waiting requests.
#[repr(C)]
pub struct Queue {
    /// No position below it waits (returned ones aside).
    pub head: Line<AtomicU64>,
    /// The next position to hand out.
    pub tail: Line<AtomicU64>,
    /// One bit for each group of slots in which a request waits that a dead worker had taken. Only
    /// the supervisor sets and clears bits, so none is ever lost.
    pub returned: Line<AtomicU64>,
    /// `(position + 1) << 16 | slot`, at `position % RING`.
    pub ring: [AtomicU64; RING],
}

/// Slots for each bit of `Queue::returned`.
pub const GROUP: usize = SLOTS.div_ceil(64);

/// No place left in the ring: the queue is longer than the server was built for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

enum Entry {
    /// The slot published at the position.
    Slot(u32),
    /// Handed out, not yet published.
    Hole,
    /// The ring has moved on by a lap: the position is long gone.
    Gone,
}

impl Queue {
    fn entry(&self, position: u64) -> Entry {
        let entry = self.ring[position as usize % RING].load(Acquire);
        match (entry >> 16).cmp(&position.wrapping_add(1)) {
            // Masked: a hostile worker could have written anything.
            std::cmp::Ordering::Equal => Entry::Slot(entry as u32 & (SLOTS as u32 - 1)),
            std::cmp::Ordering::Less => Entry::Hole,
            std::cmp::Ordering::Greater => Entry::Gone,
        }
    }

    fn advance_past(&self, position: u64) {
        let _ = self.head.compare_exchange(position, position.wrapping_add(1), AcqRel, Relaxed);
    }

    #[cfg(any(loom, test))]
    pub(crate) fn new() -> Queue {
        Queue {
            head: Line::default(),
            tail: Line::default(),
            returned: Line::default(),
            ring: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }
}

impl Board {
    /// Puts a FILLING slot at the queue's end and returns its position.
    ///
    /// The caller rings a sleeper afterwards (`Bells::ring_one`), which contains the fence that
    /// pairs with the one of a worker going to sleep.
    pub fn put(&self, slot: u32) -> Result<u64, Full> {
        let queue = &self.queue;
        let position = loop {
            let tail = queue.tail.load(Relaxed);
            // Other front threads may have put, and workers taken, since `tail` was read: then it
            // lies below the head, and the swap fails.
            let remembered = || tail.saturating_sub(queue.head.load(Acquire));
            if remembered() >= RING as u64 {
                // The head is only a hint; looking for a waiting request moves it on.
                self.first_waiting();
                if remembered() >= RING as u64 {
                    return Err(Full);
                }
            }
            if queue.tail.compare_exchange(tail, tail.wrapping_add(1), AcqRel, Relaxed).is_ok() {
                break tail;
            }
        };
        self.slots[slot as usize].state.store(Word::queued(position).pack(), Release);
        let entry = position.wrapping_add(1) << 16 | u64::from(slot);
        queue.ring[position as usize % RING].store(entry, Release);
        Ok(position)
    }

    /// Takes the oldest waiting request for `owner`, if `generation` is the one that serves.
    pub fn take(&self, owner: u16, generation: u64) -> Option<Claim> {
        if self.header.serving.load(Acquire) != generation {
            return None;
        }
        self.walk(|board, slot, position| {
            let taken = Word { state: State::Taken, owner, position };
            board.slots[slot as usize].swap(Word::queued(position), taken).then_some(Claim {
                slot,
                owner,
                position,
            })
        })
    }

    /// The oldest waiting request, left where it is.
    pub fn first_waiting(&self) -> Option<u32> {
        self.walk(|_, slot, _| Some(slot))
    }

    /// How many requests wait, about: cancelled ones count until the head has passed them.
    pub fn waiting(&self) -> u64 {
        let head = self.queue.head.load(Relaxed);
        self.queue.tail.load(Relaxed).saturating_sub(head)
    }

    /// When the request before the queue's end was put, ns; none if there has been none, or if it is
    /// being put at this moment.
    pub fn last_put_ns(&self) -> Option<u64> {
        let last = self.queue.tail.load(Acquire).checked_sub(1)?;
        match self.queue.entry(last) {
            Entry::Slot(slot) => Some(self.slots[slot as usize].queued_ns.load(Relaxed)),
            Entry::Hole | Entry::Gone => None,
        }
    }

    /// Cancels what was put before `before_ns` and waits in these slots, which are the calling
    /// front thread's, oldest first, and names each slot to `shed`. A slot so named is FILLING. A
    /// request that a worker has taken is left alone, even if that worker died and it waits again.
    pub fn shed(&self, slots: &Range<usize>, before_ns: u64, shed: impl Fn(u32)) {
        self.walk(|board, slot, position| {
            let head = &board.slots[slot as usize];
            if head.returns.load(Relaxed) > 0 {
                return None;
            }
            // Those behind it came later: the walk may end.
            let young = head.queued_ns.load(Relaxed) >= before_ns;
            if !young && slots.contains(&(slot as usize)) && board.cancel(slot, position) {
                shed(slot);
            }
            young.then_some(())
        });
    }

    /// Offers waiting requests to `accept`, oldest first, until it returns something.
    fn walk<T>(&self, accept: impl Fn(&Board, u32, u64) -> Option<T>) -> Option<T> {
        let queue = &self.queue;
        if queue.returned.load(Acquire) != 0
            && let Some(found) = self.walk_returned(&accept)
        {
            return Some(found);
        }
        let mut position = queue.head.load(Acquire);
        let mut at_head = true;
        // A walk is never longer than the ring, restarts aside; the bound is for a board that a
        // hostile worker has scribbled on, where it would not end.
        for _ in 0..4 * RING {
            if position >= queue.tail.load(Acquire) {
                break;
            }
            match queue.entry(position) {
                Entry::Slot(slot) => {
                    let waits = self.slots[slot as usize].word() == Word::queued(position);
                    let found = if waits { accept(self, slot, position) } else { None };
                    let gone = !waits || self.slots[slot as usize].word() != Word::queued(position);
                    if at_head && gone {
                        queue.advance_past(position);
                    }
                    if found.is_some() {
                        return found;
                    }
                    at_head &= gone;
                    position = position.wrapping_add(1);
                }
                Entry::Hole => {
                    at_head = false;
                    position = position.wrapping_add(1);
                }
                Entry::Gone => {
                    position = queue.head.load(Acquire);
                    at_head = true;
                }
            }
        }
        None
    }

    /// The rare part of `walk`: requests that dead workers had taken, by their old positions.
    #[cold]
    fn walk_returned<T>(&self, accept: &impl Fn(&Board, u32, u64) -> Option<T>) -> Option<T> {
        let mut groups = self.queue.returned.load(Acquire);
        let mut waiting: Vec<(u64, u32)> = Vec::new();
        while groups != 0 {
            let first = groups.trailing_zeros() as usize * GROUP;
            groups &= groups - 1;
            for slot in first..(first + GROUP).min(SLOTS) {
                let head = &self.slots[slot];
                let word = head.word();
                if word.state == State::Queued && head.returns.load(Relaxed) > 0 {
                    waiting.push((word.position, slot as u32));
                }
            }
        }
        waiting.sort_unstable();
        waiting.into_iter().find_map(|(position, slot)| accept(self, slot, position))
    }
}
