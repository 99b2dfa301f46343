//! What befalls the server: workers stopped and killed, fronts and molds killed, restarts.

use crate::process::Target;
use crate::random::Random;
use crate::watch::{Role, Seen};
use rustix::process::Signal;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Mutex;
use std::time::Duration;
use wire::now_ns;

/// Something done to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Act {
    /// SIGSTOP to a worker.
    Stop,
    /// SIGKILL to a worker.
    KillWorker,
    /// SIGKILL to the front.
    KillFront,
    /// SIGKILL to a mold.
    KillMold,
    /// HUP to the supervisor.
    Restart,
}

/// Each with the shortest and the longest pause before it, ms.
const ACTS: [(Act, u64, u64); 5] = [
    (Act::Stop, 20, 400),
    (Act::KillWorker, 50, 700),
    (Act::KillFront, 300, 2200),
    (Act::KillMold, 500, 2500),
    (Act::Restart, 800, 3500),
];

/// One act that was done.
#[derive(Clone, Copy, Debug)]
pub struct Done {
    /// What.
    pub act: Act,
    /// To whom.
    pub pid: i32,
    /// Just before, ns.
    pub from: u64,
    /// Just after; of a stop, after it was continued, ns.
    pub to: u64,
}

/// The history, and who is stopped.
#[derive(Default)]
pub struct Chaos {
    /// In order.
    pub done: Vec<Done>,
    stopped: Vec<(u64, Target, u64)>,
}

impl Chaos {
    /// Goes on until the given time. `restart` sends HUP.
    pub fn run(seed: u64, until: u64, seen: &Mutex<Seen>, restart: impl Fn()) -> Chaos {
        let mut chaos = Chaos::default();
        let mut draws: Vec<Random> = (10..15).map(|stream| Random::new(seed, stream)).collect();
        let mut due = BinaryHeap::new();
        let begin = now_ns();
        for (index, (_, shortest, longest)) in ACTS.iter().enumerate() {
            due.push(Reverse((
                begin + draws[index].between(*shortest, *longest) * 1_000_000,
                index,
            )));
        }
        while let Some(Reverse((at, index))) = due.pop() {
            chaos.sleep_until(at.min(until));
            if at >= until {
                break;
            }
            let (act, shortest, longest) = ACTS[index];
            chaos.act(act, &mut draws[index], seen, &restart);
            let pause = draws[index].between(shortest, longest) * 1_000_000;
            due.push(Reverse((now_ns().max(at) + pause, index)));
        }
        chaos.continue_stopped(u64::MAX);
        chaos
    }

    /// Sleeps, and continues meanwhile who has been stopped long enough.
    fn sleep_until(&mut self, at: u64) {
        loop {
            self.continue_stopped(now_ns());
            let next = self.stopped.iter().map(|(until, ..)| *until).min().unwrap_or(at).min(at);
            let Some(left) = next.checked_sub(now_ns()) else {
                if now_ns() >= at {
                    return;
                }
                continue;
            };
            std::thread::sleep(Duration::from_nanos(left.max(1)));
        }
    }

    fn continue_stopped(&mut self, now: u64) {
        let (over, still) = self.stopped.drain(..).partition(|(until, ..)| *until <= now);
        self.stopped = still;
        let over: Vec<(u64, Target, u64)> = over;
        for (_, target, from) in over {
            target.signal(Signal::CONT);
            self.done.push(Done { act: Act::Stop, pid: target.pid, from, to: now_ns() });
        }
    }

    fn act(&mut self, act: Act, random: &mut Random, seen: &Mutex<Seen>, restart: &impl Fn()) {
        let role = match act {
            Act::Stop | Act::KillWorker => Role::Worker,
            Act::KillFront => Role::Front,
            Act::KillMold => Role::Mold,
            Act::Restart => {
                let from = now_ns();
                restart();
                return self.done.push(Done { act, pid: 0, from, to: now_ns() });
            }
        };
        let (pick, stop) = (random.next() as usize, random.between(20, 200) * 1_000_000);
        let seen = seen.lock().expect("no thread panics with it");
        let there: Vec<(i32, u64)> = seen.alive(role).map(|one| (one.pid, one.start)).collect();
        drop(seen);
        let Some(&(pid, start)) = there.get(pick % there.len().max(1)) else { return };
        let stopped = self.stopped.iter().any(|(_, target, _)| target.pid == pid);
        if act == Act::Stop && stopped {
            return;
        }
        let Some(target) = Target::open(pid, start) else { return };
        let from = now_ns();
        if act == Act::Stop {
            if target.signal(Signal::STOP) {
                self.stopped.push((from + stop, target, from));
            }
        } else if target.signal(Signal::KILL) {
            self.done.push(Done { act, pid, from, to: now_ns() });
        }
    }
}
