//! Sleeping and waking as it really happens: a front and seats on a real segment, real futexes and
//! a real eventfd, pauses drawn so that all sides fall asleep and wake all the time. Nothing here
//! wakes anybody a second time, as the front's nudge does, so one lost wake stops everything.

#[path = "doorbell/front.rs"]
mod front;
#[path = "doorbell/machine.rs"]
mod machine;

use front::Front;
use machine::Machine;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::*};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use wire::doorbell::SPENT;
use wire::{Board, Segment, now_ns};
use worker::{Crew, Fronts, Next, Seat, Urgency};

/// Longer than this nothing may wait, starvation apart, ns.
const LIMIT: u64 = 50_000_000;
/// What all of it takes together, in seconds; DOORBELL_SECONDS says otherwise.
const SECONDS: u64 = 10;

/// SplitMix64.
pub struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % bound
    }

    /// Nothing, a little work, or being away for a moment.
    fn pause(&mut self) {
        match self.below(16) {
            0..8 => {}
            8..15 => {
                let until = now_ns() + self.below(40_000);
                while now_ns() < until {
                    std::hint::spin_loop();
                }
            }
            _ => std::thread::sleep(Duration::from_nanos(self.below(200_000))),
        }
    }
}

/// What the seats have seen.
#[derive(Default)]
struct Log {
    taken: AtomicU64,
    sleeps: AtomicU64,
    /// Processes that have reached their limit.
    spent: AtomicU64,
    /// How often a process was out of the queue to collect.
    collected: AtomicU64,
    /// Waits beyond the limit: from, to, ns.
    long: Mutex<Vec<(u64, u64)>>,
}

/// A worker thread as the Ruby engine runs it: it decides with the interpreter lock, and sleeps
/// without. Returns how often it has called the app.
fn serve(mut seat: Seat, interpreter: &Mutex<()>, log: &Log, mut random: Random) -> u64 {
    let hold = || interpreter.lock().expect("no seat panics");
    let mut held = Some(hold());
    let mut called = 0;
    loop {
        match seat.turn() {
            Next::Leave => return called,
            Next::Sleep => {
                drop(held.take());
                seat.sleep();
                log.sleeps.fetch_add(1, Relaxed);
                held = Some(hold());
            }
            Next::Request => {
                log.taken.fetch_add(1, Relaxed);
                if seat.queue_ns() > LIMIT {
                    let now = now_ns();
                    log.long.lock().expect("as above").push((now - seat.queue_ns(), now));
                }
                // As if the client had gone in between.
                if random.below(16) == 0 {
                    seat.decline();
                    continue;
                }
                assert!(seat.begin(), "nobody cancels here");
                called += 1;
                if random.below(8) == 0 {
                    drop(held.take());
                    random.pause();
                    held = Some(hold());
                } else {
                    random.pause();
                }
                seat.finish();
                collect(&seat, &mut random, log);
            }
        }
    }
}

/// After every fourth reply: out of the queue for a while, with the interpreter, if that may be.
fn collect(seat: &Seat, random: &mut Random, log: &Log) {
    let urgency = match random.below(16) {
        0 => Urgency::Spare,
        1 => Urgency::Due,
        2 | 3 => Urgency::Forced,
        _ => return,
    };
    if seat.step_aside(urgency, 4) {
        log.collected.fetch_add(1, Relaxed);
        random.pause();
        seat.come_back();
    }
}

/// One worker after another on the same seats, as long as they reach their limits of requests,
/// which are drawn from 1 to `limit`; 0: one worker without a limit. What is the supervisor's to
/// do is done here: it retires who is spent, when there is another to take its place.
struct Process<'a> {
    segment: &'static Segment,
    bells: &'static [OwnedFd],
    bell: &'static OwnedFd,
    first: u16,
    threads: u16,
    limit: u64,
    log: &'a Log,
    stop: &'a AtomicBool,
}

impl Process<'_> {
    fn run(&self, mut random: Random) {
        while !self.stop.load(SeqCst) {
            let limit = if self.limit == 0 { 0 } else { 1 + random.below(self.limit) };
            for seat in self.seats() {
                seat.wear.store(0, Relaxed);
            }
            let spent = self.live(limit, &mut random);
            self.log.spent.fetch_add(spent.into(), Relaxed);
        }
    }

    /// True if it has reached its limit.
    fn live(&self, limit: u64, random: &mut Random) -> bool {
        let crew = Arc::new(Crew::new(self.first, limit));
        let (interpreter, bells) = (Mutex::new(()), self.bells);
        std::thread::scope(|scope| {
            let threads: Vec<_> = (self.first..self.first + self.threads)
                .map(|index| {
                    let fronts = Fronts { bells, exchanges: &[], supervisor: self.bell };
                    let seat = Seat::new(self.segment, fronts, crew.clone(), index, 1);
                    let (log, random) = (self.log, Random(random.below(u64::MAX)));
                    let interpreter = &interpreter;
                    scope.spawn(move || serve(seat, interpreter, log, random))
                })
                .collect();
            let spent = self.wait_until_spent();
            if spent {
                random.pause();
                self.retire();
            }
            let called: u64 = threads.into_iter().map(|one| one.join().expect("a seat")).sum();
            if !self.stop.load(SeqCst) {
                assert_eq!(called, limit, "a worker calls its app as often as its limit says");
                self.seats().iter().for_each(|seat| seat.retire.store(0, SeqCst));
                // Who stops all meanwhile has retired this one again, or is seen to stop.
                if self.stop.load(SeqCst) {
                    self.retire();
                }
            }
            spent
        })
    }

    /// False: all are to stop.
    fn wait_until_spent(&self) -> bool {
        while !self.stop.load(SeqCst) {
            if self.seats()[0].wear.load(Acquire) == SPENT {
                return true;
            }
            let mut fds = [PollFd::new(self.bell, PollFlags::IN)];
            poll(&mut fds, None).expect("an eventfd");
            let _ = rustix::io::read(self.bell, &mut [0u8; 8]);
        }
        false
    }

    fn seats(&self) -> &'static [wire::doorbell::Seat] {
        &self.segment.board().seats[self.first.into()..(self.first + self.threads).into()]
    }

    fn retire(&self) {
        for seat in self.seats() {
            seat.retire.store(1, Release);
            seat.ring();
        }
    }

    /// Ends `run`.
    fn end(&self) {
        self.retire();
        let _ = rustix::io::write(self.bell, &1u64.to_ne_bytes());
    }
}

fn bell() -> OwnedFd {
    eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).expect("an eventfd")
}

/// `processes` workers of `threads` seats each, with limits of up to `limit` requests, and one
/// front.
fn stress(processes: u16, threads: u16, limit: u64, seed: u64) {
    let seconds = std::env::var("DOORBELL_SECONDS").ok().and_then(|text| text.parse().ok());
    let length = Duration::from_secs(seconds.unwrap_or(SECONDS)) / 6;
    let segment = Segment::create().expect("a segment").forever();
    let bells: &'static [OwnedFd] = Box::leak(Box::new([bell()]));
    let board: &'static Board = segment.board();
    board.header.serving.store(1, Release);
    board.bells.seats_used.store(u32::from(processes * threads), Release);
    let (log, machine, stop) = (Log::default(), Machine::default(), AtomicBool::new(false));
    let mut front = Front::new(board, &bells[0], Random(seed));
    let all: Vec<Process> = (0..processes)
        .map(|process| {
            let (first, bell) = (process * threads, Box::leak(Box::new(bell())));
            Process { segment, bells, bell, first, threads, limit, log: &log, stop: &stop }
        })
        .collect();
    std::thread::scope(|scope| {
        let watch = scope.spawn(|| machine.watch());
        let workers: Vec<_> = (all.iter())
            .map(|process| {
                let random = Random(seed + 1 + u64::from(process.first));
                scope.spawn(move || process.run(random))
            })
            .collect();
        let served = front.run(now_ns() + length.as_nanos() as u64);
        // Also after a failure, or the scope would wait for ever.
        stop.store(true, SeqCst);
        all.iter().for_each(Process::end);
        workers.into_iter().for_each(|worker| worker.join().expect("a worker"));
        machine.stop();
        watch.join().expect("the watch");
        served.unwrap_or_else(|why| panic!("{why} (seed {seed})"));
    });
    let long = log.long.into_inner().expect("as above");
    let worst = machine.worst(long.iter().chain(&front.long));
    println!(
        "{processes} x {threads} seats: {} requests, seats slept {} times and collected {} times, \
         the front slept {}, {} workers reached their limits; over {} ms: {} in the queue, {} done, \
         the worst {:.1} ms without starvation",
        log.taken.into_inner(),
        log.sleeps.into_inner(),
        log.collected.into_inner(),
        front.sleeps,
        log.spent.into_inner(),
        LIMIT / 1_000_000,
        long.len(),
        front.long.len(),
        worst as f64 / 1e6
    );
    assert!(worst <= LIMIT, "something waited too long (seed {seed})");
    assert!(board.all_free(), "a slot is not free (seed {seed})");
    assert!(
        board.seats.iter().all(|seat| seat.collecting.load(Relaxed) == 0),
        "one is still aside"
    );
}

fn seed() -> u64 {
    let given = std::env::var("SEED").ok().and_then(|text| text.parse().ok());
    given.unwrap_or_else(now_ns)
}

/// One after the other: beside each other they would not sleep as much.
#[test]
fn no_wake_is_lost() {
    stress(1, 1, 0, seed());
    stress(3, 1, 0, seed());
    stress(2, 3, 0, seed());
    stress(1, 3, 50, seed());
    stress(3, 1, 50, seed());
    stress(2, 3, 50, seed());
}
