//! Which of the thread's slots and chunks are free, and who waits for which.
//!
//! Every front thread owns a fixed range of slots and chunks, so the free lists are its own memory
//! and need no lock. Last in, first out: the memory touched stays small.

use crate::exchange::Exchange;
use crate::here;
use crate::lend::turn_away;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;
use tokio::sync::Notify;
use wire::control::MountId;
use wire::doorbell::FrontBell;
use wire::slot::Word;
use wire::sync::Ordering::*;
use wire::{Board, CHUNKS, REPLY_KEPT, SLOTS, Segment, State, now_ns};

/// Uses the calling thread's table of a mount that has a request in it.
pub fn with<T>(mount: MountId, use_it: impl FnOnce(&Table) -> T) -> T {
    find(mount, use_it).expect("a mount with requests keeps its table")
}

/// Uses the calling thread's table of a mount, if it has one.
pub fn find<T>(mount: MountId, use_it: impl FnOnce(&Table) -> T) -> Option<T> {
    here::with(|here| here.table(mount, use_it))
}

/// What a front thread knows of its slots in the segment of a mount.
pub struct Table {
    /// The mapping.
    pub segment: Arc<Segment>,
    /// Rung when the first request gets a slot.
    busy: Arc<Notify>,
    front: usize,
    slots: Range<usize>,
    free: RefCell<Vec<u32>>,
    chunks: RefCell<Vec<u16>>,
    /// Slots whose windows hold memory of long replies.
    touched: RefCell<BTreeSet<u32>>,
    /// Who waits for the slot at this offset of the range.
    waiting: RefCell<Vec<Option<Waker>>>,
    /// What workers have passed.
    pub exchange: RefCell<Exchange>,
}

fn share(total: usize, index: usize, count: usize) -> Range<usize> {
    total * index / count..total * (index + 1) / count
}

impl Table {
    /// The table of thread `index` of `count`: takes every slot of its range that no worker still
    /// holds for an earlier front.
    pub fn new(
        segment: Arc<Segment>,
        index: usize,
        count: usize,
        exchange: Exchange,
        busy: Arc<Notify>,
    ) -> Table {
        let slots = share(SLOTS, index, count);
        let mut chunks: Vec<u16> = share(CHUNKS, index, count).rev().map(|c| c as u16).collect();
        let mut free = Vec::with_capacity(slots.len());
        for slot in slots.clone().rev() {
            let head = &segment.board().slots[slot];
            match head.word().state {
                State::Taken | State::Begun => {
                    let held: Vec<usize> = head.chunks().collect();
                    chunks.retain(|chunk| !held.contains(&(*chunk as usize)));
                }
                _ => {
                    head.state.store(State::Free as u64, Release);
                    free.push(slot as u32);
                }
            }
        }
        let waiting = RefCell::new(vec![None; slots.len()]);
        let (free, chunks) = (RefCell::new(free), RefCell::new(chunks));
        let (touched, exchange) = (RefCell::default(), exchange.into());
        Table { segment, busy, front: index, slots, free, chunks, touched, waiting, exchange }
    }

    /// The shared atomics.
    pub fn board(&self) -> &Board {
        self.segment.board()
    }

    /// Whether requests wait for a worker.
    pub fn is_behind(&self) -> bool {
        self.board().first_waiting().is_some()
    }

    /// The thread's number.
    pub fn front(&self) -> usize {
        self.front
    }

    /// What tells the thread of replies.
    pub fn bell(&self) -> &FrontBell {
        &self.board().fronts[self.front]
    }

    /// Slots that are not free.
    pub fn in_flight(&self) -> usize {
        self.slots.len() - self.free.borrow().len()
    }

    /// Whether most slots are free.
    pub fn has_plenty(&self) -> bool {
        self.in_flight() < self.slots.len() / 2
    }

    /// A slot to fill, if one is free.
    pub fn take_slot(&self) -> Option<u32> {
        let mut free = self.free.borrow_mut();
        if free.len() == self.slots.len() {
            self.busy.notify_one();
        }
        let slot = free.pop()?;
        self.board().slots[slot as usize].state.store(State::Filling as u64, Relaxed);
        Some(slot)
    }

    /// `count` chunks, or none at all.
    pub fn take_chunks(&self, count: usize) -> Option<Vec<u16>> {
        let mut chunks = self.chunks.borrow_mut();
        let kept = chunks.len().checked_sub(count)?;
        Some(chunks.split_off(kept))
    }

    /// Chunks that are free.
    pub fn chunks_left(&self) -> usize {
        self.chunks.borrow().len()
    }

    /// Frees a slot that is the front's again, and its chunks.
    pub fn free(&self, slot: u32) {
        let head = &self.board().slots[slot as usize];
        self.chunks.borrow_mut().extend(head.chunks().map(|chunk| chunk as u16));
        let word = Word { state: State::Free, owner: 0, position: head.word().position };
        if head.written.load(Relaxed) as usize > REPLY_KEPT {
            self.touched.borrow_mut().insert(slot);
        }
        head.state.store(word.pack(), Release);
        self.exchange.borrow_mut().forget(slot);
        self.waiting.borrow_mut()[slot as usize - self.slots.start] = None;
        self.free.borrow_mut().push(slot);
    }

    /// Whether windows hold memory that only long replies need.
    pub fn has_touched(&self) -> bool {
        !self.touched.borrow().is_empty()
    }

    /// Gives that memory back; nothing is under way.
    pub fn give_back(&self) {
        for slot in std::mem::take(&mut *self.touched.borrow_mut()) {
            self.segment.give_back(slot);
        }
    }

    /// `waker` waits for news of `slot`. True: one waited already.
    pub fn wait(&self, slot: u32, waker: &Waker) -> bool {
        let place = &mut self.waiting.borrow_mut()[slot as usize - self.slots.start];
        let waited = place.is_some();
        match place {
            Some(present) => present.clone_from(waker),
            None => *place = Some(waker.clone()),
        }
        waited
    }

    /// Whoever waits for `slot` waits no more.
    pub fn stop_waiting(&self, slot: u32) -> Option<Waker> {
        self.waiting.borrow_mut()[slot as usize - self.slots.start].take()
    }

    /// Cancels what waits in the queue since longer than `timeout` and wakes who waits for it, who
    /// then finds the slot FILLING; returns how many there were.
    pub fn shed(&self, timeout: Duration) -> u64 {
        let Some(before) = now_ns().checked_sub(timeout.as_nanos() as u64) else { return 0 };
        let count = Cell::new(0);
        self.board().shed(&self.slots, before, |slot| {
            count.set(count.get() + 1);
            // Nobody there: woken already, and has not looked yet.
            let waker = self.waiting.borrow_mut()[slot as usize - self.slots.start].take();
            waker.inspect(Waker::wake_by_ref);
        });
        count.get()
    }

    /// Nobody waits for the slot's reply any more: freed now if it can be, else when it is done.
    pub fn abandon(&self, slot: u32, position: u64) {
        let board = self.board();
        self.waiting.borrow_mut()[slot as usize - self.slots.start] = None;
        // FILLING: shed, and the client left before it could be told.
        let ours = || {
            let state = board.slots[slot as usize].word().state;
            matches!(state, State::Done | State::Filling)
        };
        if board.cancel(slot, position) || ours() {
            self.free(slot);
        } else {
            board.abandon(slot);
            turn_away(self, slot);
        }
    }

    /// Wakes whoever waits for a slot that has news. True if there was anything to do.
    pub fn look(&self) -> bool {
        let mut any = false;
        self.bell().drain(|slot| {
            let Some(place) = (slot as usize).checked_sub(self.slots.start) else { return };
            let waker = self.waiting.borrow_mut().get_mut(place).and_then(Option::take);
            match waker {
                Some(waker) => {
                    any = true;
                    waker.wake();
                }
                None => self.free_abandoned(slot),
            }
        });
        any
    }

    /// Frees a slot that nobody waits for once its worker is through with it.
    fn free_abandoned(&self, slot: u32) {
        let head = &self.board().slots[slot as usize];
        let stale = head.incarnation.load(Relaxed) != self.board().header.incarnation.load(Relaxed);
        let unwanted = stale || head.cancelled.load(Relaxed) != 0;
        match head.word().state {
            State::Done if unwanted => self.free(slot),
            _ if unwanted => turn_away(self, slot),
            _ => {}
        }
    }

    /// Wakes a sleeping worker for a request that has waited beside it for `patience`.
    pub fn nudge(&self, patience: Duration) {
        let board = self.board();
        if let Some(slot) = board.first_waiting() {
            let queued = board.slots[slot as usize].queued_ns.load(Relaxed);
            if now_ns().saturating_sub(queued) > patience.as_nanos() as u64 {
                board.ring_one();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(segment: &Arc<Segment>, index: usize, count: usize) -> Table {
        let (ours, _) = std::os::unix::net::UnixStream::pair().unwrap();
        let exchange = Exchange::new(ours.into());
        Table::new(segment.clone(), index, count, exchange, Arc::default())
    }

    fn put(table: &Table) -> (u32, u64) {
        let slot = table.take_slot().unwrap();
        (slot, table.board().put(slot).unwrap())
    }

    #[test]
    fn a_shed_request_whose_client_leaves_gives_its_slot_back() {
        let table = table(&Segment::create().unwrap().into(), 0, 1);
        let (slot, position) = put(&table);
        table.wait(slot, Waker::noop());
        assert_eq!((table.shed(Duration::ZERO), table.in_flight()), (1, 1));
        assert_eq!(table.board().slots[slot as usize].word().state, State::Filling);
        table.abandon(slot, position);
        assert_eq!(table.in_flight(), 0);
    }

    #[test]
    fn what_a_worker_has_or_another_front_thread_put_is_not_shed() {
        let segment = Segment::create().unwrap().into();
        let tables = [0, 1].map(|index| table(&segment, index, 2));
        let board = segment.board();
        board.header.serving.store(1, Relaxed);
        put(&tables[0]);
        let taken = board.take(0, 1).unwrap();
        put(&tables[1]);
        assert_eq!(tables[0].shed(Duration::ZERO), 0);
        // Given back after a death, it is still not one that nobody has taken.
        board.settle_seats(0, 1, false);
        assert_eq!(board.first_waiting(), Some(taken.slot));
        assert_eq!(tables[0].shed(Duration::ZERO), 0);
        assert_eq!(tables[1].shed(Duration::ZERO), 1);
        assert_eq!(tables[1].shed(Duration::from_secs(86_400)), 0);
    }
}
