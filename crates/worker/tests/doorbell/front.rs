//! The front's side, as `front::table` and `front::thread` play it.

use crate::{LIMIT, Random};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::os::fd::OwnedFd;
use std::time::Duration;
use wire::sync::Ordering::*;
use wire::{Board, State, now_ns};

/// So long nobody is kept from a processor: who has not answered by then never will, s.
const NEVER: i64 = 10;

/// How long it looks for replies before it sleeps, half of the times, ns.
const BUSY: u64 = 50_000;

/// One front thread.
pub struct Front {
    board: &'static Board,
    bell: &'static OwnedFd,
    random: Random,
    free: Vec<u32>,
    /// Slots that were put, and not seen done.
    under_way: usize,
    /// How often it slept.
    pub sleeps: u64,
    /// Requests that were long under way after they were put: from, to, ns.
    pub long: Vec<(u64, u64)>,
}

impl Front {
    /// A front that rings and is rung.
    pub fn new(board: &'static Board, bell: &'static OwnedFd, random: Random) -> Front {
        let free = (0..64).rev().collect();
        Front { board, bell, random, free, under_way: 0, sleeps: 0, long: Vec::new() }
    }

    /// Puts at random times and waits for what it has put, now for all, now for some.
    pub fn run(&mut self, until: u64) -> Result<(), String> {
        while now_ns() < until {
            for _ in 0..=self.random.below(3) {
                if let Some(slot) = self.free.pop() {
                    self.put(slot)?;
                }
            }
            self.pause();
            let leave = match self.random.below(2) {
                0 => 0,
                _ => self.random.below(4) as usize,
            };
            self.wait(leave)?;
        }
        self.wait(0)
    }

    /// Puts shall come when the seats work, when they lie down, and when they sleep: the moments in
    /// between are short, so many pauses are about as long as it takes to lie down.
    fn pause(&mut self) {
        let (spin, sleep) = match self.random.below(8) {
            0..3 => (self.random.below(4_000), 0),
            3..5 => (self.random.below(40_000), 0),
            _ => (0, 1 + self.random.below(20_000)),
        };
        let until = now_ns() + spin;
        while now_ns() < until {
            std::hint::spin_loop();
        }
        if sleep > 0 {
            std::thread::sleep(Duration::from_nanos(sleep));
        }
    }

    fn put(&mut self, slot: u32) -> Result<(), String> {
        let head = &self.board.slots[slot as usize];
        head.state.store(State::Filling as u64, Relaxed);
        head.queued_ns.store(now_ns(), Relaxed);
        self.board.put(slot).map_err(|_| "the ring is full")?;
        self.board.ring_one();
        self.under_way += 1;
        Ok(())
    }

    /// Sleeps until at most `leave` requests are under way.
    fn wait(&mut self, leave: usize) -> Result<(), String> {
        // Busy for a while first: whoever was woken puts too late to meet a seat that lies down.
        let busy = now_ns() + self.random.below(2) * BUSY;
        loop {
            self.look();
            if self.under_way <= leave {
                return Ok(());
            }
            if now_ns() < busy {
                std::hint::spin_loop();
                continue;
            }
            let bell = &self.board.fronts[0];
            if bell.announce_sleep() {
                self.sleeps += 1;
                self.sleep()?;
            }
            bell.awake();
        }
    }

    fn look(&mut self) {
        let (board, now) = (self.board, now_ns());
        board.fronts[0].drain(|slot| {
            let head = &board.slots[slot as usize];
            if head.word().state == State::Done {
                let queued = head.queued_ns.load(Relaxed);
                if now.saturating_sub(queued) > LIMIT {
                    self.long.push((queued, now));
                }
                head.state.store(State::Free as u64, Release);
                self.free.push(slot);
                self.under_way -= 1;
            }
        });
    }

    fn sleep(&self) -> Result<(), String> {
        let limit = Timespec { tv_sec: NEVER, tv_nsec: 0 };
        let mut fds = [PollFd::new(self.bell, PollFlags::IN)];
        if poll(&mut fds, Some(&limit)).map_err(|error| error.to_string())? == 0 {
            return Err(self.stuck());
        }
        // The number in it means nothing.
        rustix::io::read(self.bell, &mut [0u8; 8]).map(drop).map_err(|error| error.to_string())
    }

    fn stuck(&self) -> String {
        let states: Vec<State> = (self.board.slots.iter())
            .map(|slot| slot.word().state)
            .filter(|state| *state != State::Free)
            .collect();
        let armed = self.board.armed();
        format!("a wake was lost: {states:?} for {NEVER} s, {armed} seats announced as sleepers")
    }
}
