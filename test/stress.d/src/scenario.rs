//! One run: start, see everyone at work, break things under load, see everyone at work again, stop,
//! look what is left.

use crate::chaos::{Act, Chaos, Done};
use crate::load::{Idle, Load};
use crate::outcomes;
use crate::random::Random;
use crate::request::{self, Request};
use crate::server::Shape;
use crate::stage::{self, Stage};
use crate::waits;
use crate::watch::{Care, Role, Seen};
use rustix::process::Signal;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;
use wire::now_ns;

/// What is run.
pub struct Scenario {
    /// The checkout.
    pub root: PathBuf,
    /// The server's and the load's measures.
    pub shape: Shape,
    /// Of everything that is drawn.
    pub seed: u64,
    /// How long there is load.
    pub load: Duration,
}

impl Scenario {
    /// Runs it; true when all was as it should be.
    pub fn run(&self) -> bool {
        let Shape { rate, workers, threads, .. } = self.shape;
        println!("\n{rate} requests/s, {workers} x {threads}, {:.1} s", self.load.as_secs_f64());
        let name = format!("oribi-stress-{}-{rate}x{workers}x{threads}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        let problems = self.perform(&directory).unwrap_or_else(|why| vec![why]);
        stage::conclude(&directory, &problems)
    }

    fn perform(&self, directory: &Path) -> Result<Vec<String>, String> {
        let mut stage = Stage::begin(&self.root, directory.into(), self.shape, Care::Close)?;
        stage.roll_call();
        let before = stage.fds();
        let count = (self.load.as_secs_f64() * self.shape.rate as f64) as u64;
        let mut random = Random::new(self.seed, 1);
        let requests = request::draw(&mut random, self.shape, stage.numbers, count);
        stage.numbers += count;
        let (requests, idle, chaos) = storm(&mut stage, requests, self.seed);
        stage.roll_call();
        stage.compare_fds(&before);
        Ok(stop(stage, requests, idle, chaos))
    }
}

/// The load and what befalls the server meanwhile.
fn storm(stage: &mut Stage, mut requests: Vec<Request>, seed: u64) -> (Vec<Request>, Idle, Chaos) {
    let end = requests.last().map_or(0, |last| last.due);
    let (server, seen) = (&stage.server, &*stage.watch.seen);
    let (ran, chaos) = std::thread::scope(|scope| {
        let restart = || server.signal(Signal::HUP);
        let seen: &Mutex<Seen> = seen;
        let chaos = scope.spawn(move || Chaos::run(seed, end, seen, restart));
        let ran = Load::new(server.address).and_then(|load| load.run(&mut requests));
        (ran, chaos.join().expect("it does not panic"))
    });
    let idle = ran.unwrap_or_else(|error| {
        stage.problems.push(format!("the client failed: {error}"));
        Idle::default()
    });
    (requests, idle, chaos)
}

/// TERM, and the verdict.
fn stop(mut stage: Stage, requests: Vec<Request>, idle: Idle, chaos: Chaos) -> Vec<String> {
    let term = now_ns();
    stage.stop();
    let runs = stage.runs();
    let (log, seen, shape) = (stage.server.log(), stage.watch.end(), stage.shape);
    let mut problems = stage.problems;
    problems.extend(stage::misdeeds(&log, &chaos.done));
    problems.extend(deserters(&seen, &chaos.done, term));
    let outcomes = outcomes::judge(&requests, &idle, &runs, &chaos.done, shape);
    let waits = waits::judge(&requests, &runs, &seen, &chaos.done, shape.threads);
    report(&requests, &outcomes, &waits, &seen, &chaos.done);
    problems.extend(outcomes.problems);
    problems.extend(waits.problems);
    problems
}

/// Workers that went though nobody sent them.
fn deserters(seen: &Seen, done: &[Done], until: u64) -> Vec<String> {
    let killed = |pid: i32| done.iter().any(|one| one.act != Act::Stop && one.pid == pid);
    let serving = seen.generation();
    let gone = seen.lives.iter().filter(|life| {
        let gone = !life.alive && life.role == Role::Worker && life.generation == Some(serving);
        gone && life.seen + 50_000_000 < until && !killed(life.pid)
    });
    gone.map(|life| format!("worker {} ended by itself", life.pid)).collect()
}

fn report(
    requests: &[Request],
    outcomes: &outcomes::Outcomes,
    waits: &waits::Waits,
    seen: &Seen,
    done: &[Done],
) {
    let mut counts: Vec<String> =
        outcomes.counts.iter().map(|(name, count)| format!("{name} {count}")).collect();
    counts.sort();
    println!("  requests: {}", counts.join(", "));
    let acts = [Act::Stop, Act::KillWorker, Act::KillFront, Act::KillMold, Act::Restart];
    let acts =
        acts.map(|act| format!("{act:?} {}", done.iter().filter(|one| one.act == act).count()));
    println!("  acts: {}", acts.join(", "));
    let mut times: Vec<u64> = requests.iter().map(|one| one.ended - one.sent).collect();
    times.sort_unstable();
    let at = |part: usize| times.get((times.len() * part / 100).min(times.len().saturating_sub(1)));
    let ms = |time: Option<&u64>| *time.unwrap_or(&0) as f64 / 1e6;
    println!(
        "  answered after {:.1} ms (median), {:.1} (99 %), {:.1} (all)",
        ms(at(50)),
        ms(at(99)),
        ms(at(100))
    );
    let late = seen.late.iter().map(|(_, by)| *by);
    println!(
        "  in the queue over {} ms: {}; beside an idle worker at most {:.1} ms, longer but for \
         starvation {}, with a worker that was killed or stopped {}; this machine oversleeps up to \
         {:.1} ms, {} times over 10 ms",
        waits::LIMIT / 1_000_000,
        waits.long,
        waits.worst as f64 / 1e6,
        waits.starved,
        waits.taken,
        ms(late.clone().max().as_ref()),
        late.filter(|by| *by > 10_000_000).count()
    );
}
