//! Sleeping and waking as it really happens: a front and seats on a real segment, real futexes and
//! a real eventfd, pauses drawn so that all sides fall asleep and wake all the time. Nothing here
//! wakes anybody a second time, as the front's nudge does, so one lost wake stops everything.

#[path = "doorbell/front.rs"]
mod front;
#[path = "doorbell/machine.rs"]
mod machine;

use front::Front;
use machine::Machine;
use rustix::event::{EventfdFlags, eventfd};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering::*};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use wire::{Board, Segment, now_ns};
use worker::{Crew, Fronts, Next, Seat};

/// Longer than this nothing may wait, starvation apart, ns.
const LIMIT: u64 = 50_000_000;
/// What both tests take together, in seconds; DOORBELL_SECONDS says otherwise.
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
    /// Waits beyond the limit: from, to, ns.
    long: Mutex<Vec<(u64, u64)>>,
}

/// A worker thread as the Ruby engine runs it: it decides with the interpreter lock, and sleeps
/// without.
fn serve(mut seat: Seat, interpreter: &Mutex<()>, log: &Log, mut random: Random) {
    let hold = || interpreter.lock().expect("no seat panics");
    let mut held = Some(hold());
    loop {
        match seat.turn() {
            Next::Leave => return,
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
                assert!(seat.begin(), "nobody cancels here");
                if random.below(8) == 0 {
                    drop(held.take());
                    random.pause();
                    held = Some(hold());
                } else {
                    random.pause();
                }
                seat.finish();
            }
        }
    }
}

/// `processes` workers of `threads` seats each, and one front.
fn stress(processes: u16, threads: u16, seed: u64) {
    let seconds = std::env::var("DOORBELL_SECONDS").ok().and_then(|text| text.parse().ok());
    let length = Duration::from_secs(seconds.unwrap_or(SECONDS)) / 3;
    let segment = Segment::create().expect("a segment").forever();
    let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).expect("an eventfd");
    let bells: &'static [OwnedFd] = Box::leak(Box::new([bell]));
    let board: &'static Board = segment.board();
    board.header.serving.store(1, Release);
    board.bells.seats_used.store(u32::from(processes * threads), Release);
    let (log, machine) = (Log::default(), Machine::default());
    let mut front = Front::new(board, &bells[0], Random(seed));
    std::thread::scope(|scope| {
        let watch = scope.spawn(|| machine.watch());
        let seats: Vec<_> = (0..processes)
            .flat_map(|process| {
                let (crew, interpreter) = (Arc::new(Crew::default()), Arc::new(Mutex::new(())));
                let one = |thread| (process * threads + thread, crew.clone(), interpreter.clone());
                (0..threads).map(one).collect::<Vec<_>>()
            })
            .map(|(index, crew, interpreter)| {
                let fronts = Fronts { bells, exchanges: &[], supervisor: &bells[0] };
                let seat = Seat::new(segment, fronts, crew, index, 1);
                let (log, random) = (&log, Random(seed + 1 + u64::from(index)));
                scope.spawn(move || serve(seat, &interpreter, log, random))
            })
            .collect();
        let served = front.run(now_ns() + length.as_nanos() as u64);
        // Also after a failure, or the scope would wait for ever.
        for seat in &board.seats[..usize::from(processes * threads)] {
            seat.retire.store(1, Release);
            seat.ring();
        }
        seats.into_iter().for_each(|seat| seat.join().expect("a seat"));
        machine.stop();
        watch.join().expect("the watch");
        served.unwrap_or_else(|why| panic!("{why} (seed {seed})"));
    });
    let long = log.long.into_inner().expect("as above");
    let worst = machine.worst(long.iter().chain(&front.long));
    println!(
        "{processes} x {threads} seats: {} requests, seats slept {} times, the front {}; over \
         {} ms: {} in the queue, {} done, the worst {:.1} ms without starvation",
        log.taken.into_inner(),
        log.sleeps.into_inner(),
        front.sleeps,
        LIMIT / 1_000_000,
        long.len(),
        front.long.len(),
        worst as f64 / 1e6
    );
    assert!(worst <= LIMIT, "something waited too long (seed {seed})");
    assert!(board.all_free(), "a slot is not free (seed {seed})");
}

fn seed() -> u64 {
    let given = std::env::var("SEED").ok().and_then(|text| text.parse().ok());
    given.unwrap_or_else(now_ns)
}

/// One after the other: beside each other they would not sleep as much.
#[test]
fn no_wake_is_lost() {
    stress(1, 1, seed());
    stress(3, 1, seed());
    stress(2, 3, seed());
}
