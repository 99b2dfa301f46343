//! The same again and again under constant load: restarts, recycling, kills. Nothing may be lost
//! but what a killed worker had begun, nothing may come late, and nothing may pile up.

use crate::chaos::{Act, Done};
use crate::load::{Idle, Load};
use crate::outcomes;
use crate::process::Target;
use crate::random::Random;
use crate::request::{self, Outcome, Request};
use crate::server::{Shape, wait_for};
use crate::stage::{self, PATIENCE, Stage};
use crate::watch::{Care, Life, Role, Seen};
use rustix::process::Signal;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use wire::now_ns;

/// So much longer than the app's sleep a request may take, ns: more than a boot of the app takes on a
/// machine that has other things to do.
const LATE: u64 = 5_000_000_000;
/// A tenth of the rounds go before what is compared with the end is looked at.
const WARM_UP: u64 = 10;
/// Load is drawn for so many seconds a round, and for so many more.
const SECONDS: (u64, u64) = (5, 20);
/// Part of the requests on connections of their own, percent.
const FRESH: u64 = 30;
/// One in so many sleeps for long, µs: the old generation still has it when the next is asked for.
const SLOW: (u64, u64) = (200, 600_000);
/// Workers of this age have answered something, ns. Who kills one after the other before that is kept
/// waiting for the next, as an app that cannot run is.
const YOUNG: u64 = 150_000_000;

/// What is done again and again.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Deed {
    /// USR2, until the new generation serves.
    Restart,
    /// Nothing: workers are replaced by themselves. A round is as many as there are.
    Recycle,
    /// SIGKILL to a worker.
    Kill,
}

/// A soak.
pub struct Soak {
    /// The checkout.
    pub root: PathBuf,
    /// For people: what the rounds are.
    pub name: &'static str,
    /// What is done.
    pub deed: Deed,
    /// How often.
    pub rounds: u64,
    /// The server's and the load's measures.
    pub shape: Shape,
    /// Of everything that is drawn.
    pub seed: u64,
}

/// What came of a time under load.
#[derive(Default)]
struct Course {
    requests: Vec<Request>,
    idle: Idle,
    done: Vec<Done>,
    /// How long each round took.
    rounds: Vec<Duration>,
}

impl Soak {
    /// Runs it; true when all was as it should be.
    pub fn run(&self) -> bool {
        let Shape { rate, workers, threads, .. } = self.shape;
        println!("\n{} {}, {rate} requests/s, {workers} x {threads}", self.rounds, self.name);
        let name = format!("oribi-soak-{}-{}", std::process::id(), self.name.replace(' ', "-"));
        let directory = std::env::temp_dir().join(name);
        let problems = self.perform(&directory).unwrap_or_else(|why| vec![why]);
        stage::conclude(&directory, &problems)
    }

    fn perform(&self, directory: &Path) -> Result<Vec<String>, String> {
        let mut stage = Stage::begin(&self.root, directory.into(), self.shape, Care::Loose)?;
        let mut random = Random::new(self.seed, 1);
        let mut course = Course::default();
        self.load(&mut stage, &mut random, self.rounds.div_ceil(WARM_UP), &mut course);
        stage.roll_call();
        let (fds, files, memory) = (stage.fds(), stage.server.files(), stage.memory());
        let begun = Instant::now();
        course.rounds.clear();
        self.load(&mut stage, &mut random, self.rounds, &mut course);
        let took = begun.elapsed();
        stage.roll_call();
        stage.compare_fds(&fds);
        if stage.server.files() != files {
            let now = stage.server.files();
            stage.problems.push(format!("files: {files:?} became {now:?}"));
        }
        let most = course.requests.iter().map(|one| one.beside).max().unwrap_or(0);
        let grown = stage.compare_memory(&memory, most);
        stage.stop();
        let runs = stage.runs();
        let (log, problems) = (stage.server.log(), std::mem::take(&mut stage.problems));
        stage.watch.end();
        let Course { requests, idle, done, rounds } = course;
        let outcomes = outcomes::judge(&requests, &idle, &runs, &done, self.shape);
        report(&requests, &outcomes, &rounds, took, &grown);
        let mut all = outcomes.problems;
        all.extend(problems);
        all.extend(stage::misdeeds(&log, &done));
        all.extend(late(&requests));
        Ok(all)
    }

    fn draw(&self, random: &mut Random, first: u64, rounds: u64) -> Vec<Request> {
        let count = (rounds * SECONDS.0 + SECONDS.1) * self.shape.rate;
        let mut requests = request::draw(random, self.shape, first, count);
        for request in &mut requests {
            request.fresh = random.percent(FRESH);
            if random.between(0, SLOW.0) == 0 {
                request.micros = SLOW.1;
            }
        }
        requests
    }

    /// So many rounds, and requests all the while.
    fn load(&self, stage: &mut Stage, random: &mut Random, rounds: u64, course: &mut Course) {
        let mut requests = self.draw(random, stage.numbers, rounds);
        let (over, mut dice) = (AtomicBool::new(false), Random::new(random.next(), 2));
        let (ran, rounds) = std::thread::scope(|scope| {
            let (stage, over, done) = (&*stage, &over, &mut course.done);
            let rounds = scope.spawn(move || {
                let rounds = self.rounds(stage, &mut dice, rounds, done);
                over.store(true, Relaxed);
                rounds
            });
            let ran = Load::new(stage.server.address)
                .and_then(|load| load.run_until(&mut requests, over));
            (ran, rounds.join().expect("it does not panic"))
        });
        match ran {
            Ok((sent, _)) if sent == requests.len() => {
                stage.problems.push("the load was over before the rounds were".into());
            }
            Ok((sent, idle)) => {
                requests.truncate(sent);
                course.idle.ended.extend(idle.ended);
            }
            Err(error) => stage.problems.push(format!("the client failed: {error}")),
        }
        stage.numbers += requests.len() as u64;
        course.requests.append(&mut requests);
        match rounds {
            Ok(rounds) => course.rounds.extend(rounds),
            Err(why) => stage.problems.push(why),
        }
    }

    fn rounds(
        &self,
        stage: &Stage,
        dice: &mut Random,
        rounds: u64,
        done: &mut Vec<Done>,
    ) -> Result<Vec<Duration>, String> {
        let gone = |seen: &Seen| {
            let gone = seen.lives.iter().filter(|life| !life.alive && life.role == Role::Worker);
            gone.count() as u64
        };
        let already = stage.seen(gone);
        (0..rounds)
            .map(|round| {
                let begun = Instant::now();
                match self.deed {
                    Deed::Restart => restart(stage, round, dice)?,
                    Deed::Kill => done.push(kill(stage, dice)?),
                    Deed::Recycle => {
                        let due = already + (round + 1) * self.shape.workers;
                        wait_for(PATIENCE, || (stage.seen(gone) >= due).then_some(()))
                            .ok_or_else(|| format!("round {round}: workers are not replaced"))?;
                    }
                }
                Ok(begun.elapsed())
            })
            .collect()
    }
}

fn restart(stage: &Stage, round: u64, dice: &mut Random) -> Result<(), String> {
    let before = stage.seen(Seen::generation);
    stage.server.signal(Signal::USR2);
    wait_for(PATIENCE, || (stage.seen(Seen::generation) > before).then_some(()))
        .ok_or_else(|| format!("restart {round}: generation {before} goes on serving"))?;
    // Every other one comes while there is still an old generation.
    if round.is_multiple_of(2) {
        let alone = |seen: &Seen| seen.alive(Role::Mold).count() == 1;
        wait_for(PATIENCE, || stage.seen(alone).then_some(()))
            .ok_or_else(|| format!("restart {round}: generation {before} does not go"))?;
    }
    std::thread::sleep(Duration::from_millis(dice.between(0, 100)));
    Ok(())
}

/// Kills a worker that is no longer young, whatever it is at.
fn kill(stage: &Stage, dice: &mut Random) -> Result<Done, String> {
    std::thread::sleep(Duration::from_millis(dice.between(10, 250)));
    let killed = wait_for(PATIENCE, || {
        let old = |one: &&Life| one.ready.is_some_and(|ready| now_ns() > ready + YOUNG);
        let workers: Vec<(i32, u64)> = stage.seen(|seen| {
            seen.alive(Role::Worker).filter(old).map(|one| (one.pid, one.start)).collect()
        });
        let &(pid, start) = workers.get(dice.between(0, workers.len() as u64) as usize)?;
        let target = Target::open(pid, start)?;
        let from = now_ns();
        let killed = target.signal(Signal::KILL);
        killed.then(|| Done { act: Act::KillWorker, pid, from, to: now_ns() })
    });
    killed.ok_or_else(|| "there is no worker to kill".into())
}

fn late(requests: &[Request]) -> impl Iterator<Item = String> {
    requests.iter().filter_map(|request| {
        let took = request.ended.saturating_sub(request.sent);
        let late = request.outcome == Outcome::Answer(200) && took > request.micros * 1000 + LATE;
        late.then(|| format!("request {} took {:.1} s", request.number, took as f64 / 1e9))
    })
}

fn report(
    requests: &[Request],
    outcomes: &outcomes::Outcomes,
    rounds: &[Duration],
    took: Duration,
    grown: &[(Role, i64)],
) {
    let mut counts: Vec<String> =
        outcomes.counts.iter().map(|(name, count)| format!("{name} {count}")).collect();
    counts.sort();
    let worst =
        |durations: &mut dyn Iterator<Item = u64>| durations.max().unwrap_or(0) as f64 / 1e6;
    let slowest = worst(&mut requests.iter().map(|one| one.ended.saturating_sub(one.sent)));
    println!("  requests: {}; the slowest took {slowest:.0} ms", counts.join(", "));
    let longest = worst(&mut rounds.iter().map(|round| round.as_nanos() as u64));
    println!("  in {:.1} s; the longest round took {longest:.0} ms", took.as_secs_f64());
    let grown: Vec<String> =
        grown.iter().map(|(role, kib)| format!("{role:?} {kib:+} KiB")).collect();
    println!("  memory of their own: {}", grown.join(", "));
}
