//! Who exists, since when, who serves, and how long processes wait for a processor. Looks every few
//! milliseconds and keeps what it saw.

use crate::process;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering::*};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;
use wire::{Board, now_ns};

/// How closely to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Care {
    /// Every few milliseconds, and how long every thread waits for a processor.
    Close,
    /// Seldom: who exists, and who serves. Whoever reads in /proc of a process that is about to end
    /// may make its reaper spin in the kernel for a second and more, on a machine that is busy.
    Loose,
}

impl Care {
    /// Between two looks.
    fn pause(self) -> Duration {
        Duration::from_millis(if self == Care::Close { 4 } else { 25 })
    }
}

/// What a process is there for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Decides.
    Supervisor,
    /// Holds the connections.
    Front,
    /// Forks workers.
    Mold,
    /// Forked by a mold; it may not be ready yet.
    Worker,
}

/// What was seen of one process.
#[derive(Clone, Debug)]
pub struct Life {
    /// Its pid.
    pub pid: i32,
    /// Its start time, in the kernel's ticks.
    pub start: u64,
    /// What it is.
    pub role: Role,
    /// Its generation, once it says which.
    pub generation: Option<u64>,
    /// When it was first seen to sleep, ns: all it has to do before that is done.
    pub ready: Option<u64>,
    /// When it was last seen alive, ns.
    pub seen: u64,
    /// It was there at the last look.
    pub alive: bool,
    /// Nanoseconds its threads had waited for a processor so far, at times.
    pub starved: Vec<(u64, u64)>,
    threads: BTreeMap<i32, u64>,
}

/// All that was seen.
#[derive(Default)]
pub struct Seen {
    /// Processes in order of appearance.
    pub lives: Vec<Life>,
    /// Since when, until when which generation was seen to serve.
    pub serving: Vec<(u64, u64, u64)>,
    /// Wakes of the calibration thread: when each was due, and by how much it came late, ns.
    pub late: Vec<(u64, u64)>,
}

/// The threads that look.
pub struct Watch {
    /// What they have seen so far.
    pub seen: Arc<Mutex<Seen>>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Watch {
    /// Watches the tree below a supervisor.
    pub fn start(supervisor: i32, board: &'static Board, care: Care) -> Watch {
        let (seen, stop) =
            (Arc::new(Mutex::new(Seen::default())), Arc::new(AtomicBool::new(false)));
        let (ours, end) = (seen.clone(), stop.clone());
        let look = std::thread::spawn(move || {
            while !end.load(Relaxed) {
                let mut seen = ours.lock().expect("no thread panics with it");
                seen.look(supervisor, board.header.serving.load(Acquire), care);
                drop(seen);
                std::thread::sleep(care.pause());
            }
        });
        let (ours, end) = (seen.clone(), stop.clone());
        let calibrate = std::thread::spawn(move || calibrate(&ours, &end));
        Watch { seen, stop, threads: vec![look, calibrate] }
    }

    /// Stops looking.
    pub fn end(self) -> Seen {
        self.stop.store(true, Relaxed);
        self.threads.into_iter().for_each(|thread| thread.join().expect("it does not panic"));
        std::mem::take(&mut self.seen.lock().expect("as above"))
    }
}

/// Notes by how much this machine lets a sleeping thread oversleep. Scheduled as the front is, so
/// that it has no more luck than that.
fn calibrate(seen: &Mutex<Seen>, stop: &AtomicBool) {
    let _ = wire::sched::gather_wakeups(true);
    const NAP: u64 = 2_000_000;
    let mut late = Vec::new();
    while !stop.load(Relaxed) {
        let due = now_ns() + NAP;
        std::thread::sleep(Duration::from_nanos(NAP));
        let by = now_ns().saturating_sub(due);
        if by > 1_000_000 {
            late.push((due, by));
        }
    }
    seen.lock().expect("as above").late = late;
}

impl Seen {
    fn look(&mut self, supervisor: i32, serving: u64, care: Care) {
        let now = now_ns();
        match self.serving.last_mut() {
            Some((_, until, generation)) if *generation == serving => *until = now,
            _ => self.serving.push((now, now, serving)),
        }
        for life in &mut self.lives {
            life.alive = life.alive
                && process::stat(life.pid)
                    .is_some_and(|stat| stat.start == life.start && stat.state != 'Z');
        }
        for pid in process::children(supervisor) {
            self.note(pid, supervisor, now);
        }
        let molds = self.lives.iter().filter(|life| life.alive && life.role == Role::Mold);
        let forked: Vec<(i32, i32)> = molds
            .flat_map(|mold| process::children(mold.pid).into_iter().map(|pid| (pid, mold.pid)))
            .collect();
        for (pid, mold) in forked {
            self.note(pid, mold, now);
        }
        for life in self.lives.iter_mut().filter(|life| life.alive) {
            life.look(now, care);
        }
    }

    fn note(&mut self, pid: i32, parent: i32, now: u64) {
        let Some(stat) = process::stat(pid) else { return };
        if stat.state == 'Z'
            || self.lives.iter().any(|life| life.pid == pid && life.start == stat.start)
        {
            return;
        }
        let title = process::title(pid);
        let below_mold =
            self.lives.iter().any(|life| life.pid == parent && life.role == Role::Mold);
        let role = match title.as_str() {
            // It becomes something else any moment.
            "" => return,
            _ if title.starts_with("oribi: supervisor") => return,
            _ if title.starts_with("oribi: front") => Role::Front,
            _ if title.starts_with("oribi: worker") || below_mold => Role::Worker,
            _ if title.contains("mold") => Role::Mold,
            _ => return,
        };
        let (starved, threads) = Default::default();
        let (generation, ready, start) = (None, None, stat.start);
        let alive = true;
        let life = Life { pid, start, role, generation, ready, seen: now, alive, starved, threads };
        self.lives.push(life);
    }

    /// Processes of a role that were alive at the last look.
    pub fn alive(&self, role: Role) -> impl Iterator<Item = &Life> {
        self.lives.iter().filter(move |life| life.alive && life.role == role)
    }

    /// The present serving generation.
    pub fn generation(&self) -> u64 {
        self.serving.last().map_or(0, |(_, _, generation)| *generation)
    }
}

impl Life {
    fn look(&mut self, now: u64, care: Care) {
        self.seen = now;
        if self.generation.is_none() {
            let title = process::title(self.pid);
            let role = if self.role == Role::Worker { "oribi: worker" } else { "oribi: mold" };
            let number = title.split(" gen ").nth(1).and_then(|rest| rest.split(' ').next());
            self.generation =
                number.and_then(|n| n.parse().ok()).filter(|_| title.starts_with(role));
        }
        if self.ready.is_none()
            && (self.generation.is_some() || self.role == Role::Front)
            && process::stat(self.pid).is_some_and(|stat| stat.state == 'S')
        {
            self.ready = Some(now);
        }
        if care == Care::Loose {
            return;
        }
        // What the longest waiting of its threads has waited since the last look.
        let mut most = 0;
        for (thread, delay) in process::run_delays(self.pid) {
            let before = self.threads.insert(thread, delay).unwrap_or(0);
            most = most.max(delay.saturating_sub(before));
        }
        let total = self.starved.last().map_or(0, |(_, total)| *total);
        // The first look shows what was before anybody looked.
        match self.starved.is_empty() {
            true => self.starved.push((now, 0)),
            false if most > 0 => self.starved.push((now, total + most)),
            false => {}
        }
    }

    /// Nanoseconds it has waited for a processor between two times, at most.
    pub fn starved(&self, from: u64, to: u64) -> u64 {
        let (Some(first), Some(last)) = (self.starved.first(), self.starved.last()) else {
            return 0;
        };
        if to < first.0 || from > self.seen {
            return 0;
        }
        let upto = |at: u64| self.starved.partition_point(|(time, _)| *time <= at);
        let before = upto(from).checked_sub(1).map_or(first.1, |index| self.starved[index].1);
        // The look after the end may be the first to show what was before it.
        let after = self.starved.get(upto(to)).unwrap_or(last).1;
        after - before
    }

    /// Nanoseconds it waited for a processor the next two times. Between its note of the time and
    /// its ring a front executes so little that it will not be interrupted more often.
    pub fn next_starved(&self, from: u64, to: u64) -> u64 {
        let next = self.starved.partition_point(|(time, _)| *time <= from);
        let before = next.checked_sub(1).map_or(0, |index| self.starved[index].1);
        let samples = self.starved[next..].iter().take_while(|(time, _)| *time <= to);
        samples.take(2).last().map_or(0, |(_, total)| total - before)
    }
}
