//! One run: start, see everyone at work, break things under load, see everyone at work again, stop,
//! look what is left.

use crate::chaos::{Act, Chaos, Done};
use crate::load::{Idle, Load};
use crate::outcomes;
use crate::process;
use crate::random::Random;
use crate::records;
use crate::request::{Outcome, Request};
use crate::server::{Server, Shape, orphans, wait_for};
use crate::waits;
use crate::watch::{Role, Seen, Watch};
use rustix::process::Signal;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;
use wire::now_ns;

/// Part of the workers' time that the app's sleeps take.
const USED: f64 = 0.4;
/// How long a roll call's requests last, µs: longer than it takes to get them all to the workers.
const ROLL_CALL: u64 = 400_000;
/// Sockets of a front without clients: its listener's, the supervisor's, and the workers', over which
/// they pass fds.
const SOCKETS: usize = 3;
/// How long the server gets to become as it should be.
const PATIENCE: Duration = Duration::from_secs(20);

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

/// Descriptors of the processes of each role.
type Fds = Vec<(String, Vec<Vec<String>>)>;

struct Stage<'a> {
    scenario: &'a Scenario,
    server: Server,
    watch: Watch,
    problems: Vec<String>,
    numbers: u64,
}

impl Scenario {
    /// Runs it; true when all was as it should be.
    pub fn run(&self) -> bool {
        let Shape { rate, workers, threads } = self.shape;
        println!("\n{rate} requests/s, {workers} x {threads}, {:.1} s", self.load.as_secs_f64());
        let name = format!("oribi-stress-{}-{rate}x{workers}x{threads}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        let problems = match Server::start(&self.root, directory.clone(), self.shape) {
            Ok(server) => self.perform(server),
            Err(why) => vec![why],
        };
        for problem in problems.iter().take(12) {
            println!("  FAILED: {problem}");
        }
        if problems.len() > 12 {
            println!("  and {} more", problems.len() - 12);
        }
        if problems.is_empty() {
            let _ = std::fs::remove_dir_all(&directory);
        } else {
            println!("  log and records: {}", directory.display());
        }
        problems.is_empty()
    }

    fn perform(&self, server: Server) -> Vec<String> {
        // Mapped for the rest of this process, as every user of a segment does.
        let Ok(other) = rustix::io::fcntl_dupfd_cloexec(&server.segment, 3) else {
            return vec!["the segment's descriptor cannot be duplicated".into()];
        };
        let board = match wire::Segment::open(other) {
            Ok(segment) => segment.forever().board(),
            Err(error) => return vec![format!("the segment cannot be mapped: {error}")],
        };
        let watch = Watch::start(server.pid(), board);
        let mut stage = Stage { scenario: self, server, watch, problems: Vec::new(), numbers: 1 };
        stage.roll_call();
        let before = stage.fds();
        let (requests, idle, chaos) = stage.storm();
        stage.roll_call();
        stage.compare_fds(&before);
        stage.stop(requests, idle, chaos)
    }

    fn draw(&self, numbers: u64) -> Vec<Request> {
        let mut random = Random::new(self.seed, 1);
        let Shape { rate, workers, threads } = self.shape;
        let count = (self.load.as_secs_f64() * rate as f64) as u64;
        let begin = now_ns() + 10_000_000;
        let mean = USED * 1e6 * (workers * threads) as f64 / rate as f64;
        (0..count)
            .map(|index| {
                let due = begin + index * 1_000_000_000 / rate;
                Request::draw(&mut random, numbers + index, due, mean)
            })
            .collect()
    }
}

impl Stage<'_> {
    fn seen<T>(&self, look: impl FnOnce(&Seen) -> T) -> T {
        look(&self.watch.seen.lock().expect("no thread panics with it"))
    }

    /// Waits until exactly those processes exist that should, no slot and no connection is in use
    /// and every worker has announced that it sleeps. What is not so, if it does not become so.
    fn calm(&mut self) {
        let workers = self.scenario.shape.workers as usize;
        let mut why = String::new();
        let calm = wait_for(PATIENCE, || {
            let (board, counts) = (self.server.segment.board(), self.seen(count));
            let held = board.slots.iter().filter(|s| s.word().state != wire::State::Free).count();
            let returned = board.queue.returned.load(std::sync::atomic::Ordering::Relaxed);
            let armed = board.armed();
            let front = self.seen(|seen| seen.alive(Role::Front).map(|life| life.pid).next());
            let fds = process::fds(front.unwrap_or(0));
            let sockets = fds.iter().filter(|what| *what == "socket").count();
            why = format!(
                "{counts:?} fronts, molds, workers; {held} slots not FREE, {armed} seats armed, \
                 returned {returned:x}, the front has {sockets} sockets"
            );
            let right = counts == [1, 1, workers] && board.all_free() && sockets == SOCKETS;
            (right && armed == workers && returned == 0).then_some(())
        });
        if calm.is_none() {
            self.problems.push(format!("the server does not come to rest: {why}"));
        }
    }

    /// Every seat of every worker must be able to have a request at the same time.
    fn roll_call(&mut self) {
        self.calm();
        let Shape { workers, threads, .. } = self.scenario.shape;
        let (seats, begin) = (workers * threads, now_ns());
        let mut requests: Vec<Request> =
            (0..seats).map(|nr| Request::plain(self.numbers + nr, begin, ROLL_CALL)).collect();
        let first = self.numbers;
        self.numbers += seats;
        let ran = Load::new(self.server.address).and_then(|load| load.run(&mut requests));
        if ran.is_err() || requests.iter().any(|one| one.outcome != Outcome::Answer(200)) {
            let outcomes: Vec<Outcome> = requests.iter().map(|one| one.outcome).collect();
            return self.problems.push(format!("not everyone answers: {outcomes:?}, {ran:?}"));
        }
        let runs = records::read(&self.server.directory.join("records")).unwrap_or_default();
        let present = runs.iter().filter(|run| run.number >= first);
        let last_begun = present.clone().map(|run| run.begun).max();
        let first_ended = present.clone().filter_map(|run| run.ended).min();
        let late = self.seen(|seen| seen.generation());
        if last_begun >= first_ended {
            let spans: Vec<(i32, u64)> = present.map(|r| (r.pid, r.begun - begin)).collect();
            self.problems.push(format!(
                "generation {late} does not use all its {seats} seats at once: {spans:?}"
            ));
        }
        self.calm();
    }

    fn fds(&self) -> Fds {
        let of = |role: Role| -> Vec<Vec<String>> {
            self.seen(|seen| seen.alive(role).map(|life| life.pid).collect::<Vec<_>>())
                .into_iter()
                .map(|pid| {
                    let mut fds = process::fds(pid);
                    // The app's own; a worker has it from its first request on.
                    fds.retain(|what| !what.contains("/records/"));
                    // One for each of its workers. Those that an earlier mold has forked are not.
                    if role == Role::Mold {
                        let is_pidfd = |what: &String| what.contains("pidfd");
                        let extra = process::children(pid).len();
                        let keep =
                            fds.iter().filter(|what| is_pidfd(what)).count().saturating_sub(extra);
                        let (pidfds, others): (Vec<String>, _) =
                            fds.into_iter().partition(is_pidfd);
                        fds = others;
                        fds.extend(pidfds.into_iter().take(keep));
                    }
                    fds
                })
                .collect()
        };
        let supervisor = vec![process::fds(self.server.pid())];
        let roles = [Role::Front, Role::Mold, Role::Worker].map(|r| (format!("{r:?}"), of(r)));
        [("Supervisor".into(), supervisor)].into_iter().chain(roles).collect()
    }

    /// Whoever was started again must have what its predecessor had, and who was not, no more.
    fn compare_fds(&mut self, before: &Fds) {
        let mut now = self.fds();
        let same = wait_for(Duration::from_secs(5), || {
            now = self.fds();
            (now == *before).then_some(())
        });
        if same.is_none() {
            for (was, is) in before.iter().zip(&now).filter(|(was, is)| was != is) {
                self.problems.push(format!("descriptors: {was:?} became {is:?}"));
            }
        }
    }

    /// The load and what befalls the server meanwhile.
    fn storm(&mut self) -> (Vec<Request>, Idle, Chaos) {
        let mut requests = self.scenario.draw(self.numbers);
        self.numbers += requests.len() as u64;
        let end = requests.last().map_or(0, |last| last.due);
        let (server, seen, seed) = (&self.server, &*self.watch.seen, self.scenario.seed);
        let (ran, chaos) = std::thread::scope(|scope| {
            let restart = || server.signal(Signal::HUP);
            let seen: &Mutex<Seen> = seen;
            let chaos = scope.spawn(move || Chaos::run(seed, end, seen, restart));
            let ran = Load::new(server.address).and_then(|load| load.run(&mut requests));
            (ran, chaos.join().expect("it does not panic"))
        });
        let idle = ran.unwrap_or_else(|error| {
            self.problems.push(format!("the client failed: {error}"));
            Idle::default()
        });
        (requests, idle, chaos)
    }

    /// TERM, and the verdict.
    fn stop(mut self, requests: Vec<Request>, idle: Idle, chaos: Chaos) -> Vec<String> {
        let term = now_ns();
        match self.server.stop() {
            Some(status) if status.code() == Some(0) => {}
            Some(status) => self.problems.push(format!("it ended on TERM with {status}")),
            None => {
                self.problems.push("it did not end on TERM".into());
                self.server.kill();
            }
        }
        // Whoever lives on belonged to a supervisor that is gone.
        let left = wait_for(Duration::from_secs(2), || orphans().is_empty().then_some(()));
        if left.is_none() {
            let left: Vec<String> = orphans().into_iter().map(process::title).collect();
            self.problems.push(format!("left behind: {left:?}"));
        }
        let (log, seen) = (self.server.log(), self.watch.end());
        self.problems.extend(misdeeds(&log, &seen, &chaos.done, term));
        let runs = match records::read(&self.server.directory.join("records")) {
            Ok(runs) => runs,
            Err(error) => {
                self.problems.push(error.to_string());
                Vec::new()
            }
        };
        let threads = self.scenario.shape.threads;
        let shape = self.scenario.shape;
        let outcomes = outcomes::judge(&requests, &idle, &runs, &chaos.done, shape);
        let waits = waits::judge(&requests, &runs, &seen, &chaos.done, threads);
        report(&requests, &outcomes, &waits, &seen, &chaos.done);
        self.problems.extend(outcomes.problems);
        self.problems.extend(waits.problems);
        self.problems
    }
}

/// Fronts, molds and workers. Anyone who is not ready, or of another generation, makes a count wrong.
fn count(seen: &Seen) -> [usize; 3] {
    let serving = seen.generation();
    [Role::Front, Role::Mold, Role::Worker].map(|role| {
        let fits = seen
            .alive(role)
            .map(|one| one.ready.is_some() && one.generation.is_none_or(|g| g == serving));
        let fits: Vec<bool> = fits.collect();
        if fits.contains(&false) { usize::MAX } else { fits.len() }
    })
}

/// Deaths that nobody ordered, and lines that a healthy server does not print.
fn misdeeds(log: &str, seen: &Seen, done: &[Done], until: u64) -> Vec<String> {
    let killed = |pid: i32| done.iter().any(|one| one.act != Act::Stop && one.pid == pid);
    let bad = |line: &&str| {
        let pid = line.split("(pid ").nth(1).and_then(|rest| rest.split(')').next()?.parse().ok());
        let unordered = line.contains(" ended: ")
            && (!line.contains("ended: signal 9") || !pid.is_some_and(killed));
        let odd =
            ["panicked", "Error", "cannot", "nobody asked", "unknown", "in time", "requests still"];
        unordered || odd.iter().any(|word| line.contains(word))
    };
    let mut found: Vec<String> =
        log.lines().filter(bad).map(|line| format!("log: {line}")).collect();
    let serving = seen.generation();
    for life in &seen.lives {
        let gone = !life.alive && life.role == Role::Worker && life.generation == Some(serving);
        let early = life.seen + 50_000_000 < until;
        if gone && early && !killed(life.pid) {
            found.push(format!("worker {} ended by itself", life.pid));
        }
    }
    found
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
