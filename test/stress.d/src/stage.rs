//! A running server, and what it must be like at rest: who exists, that everyone works, who holds
//! which descriptors and files.

use crate::chaos::{Act, Done};
use crate::load::Load;
use crate::process;
use crate::records::{self, Run};
use crate::request::{Outcome, Request};
use crate::server::{Server, Shape, orphans, wait_for};
use crate::watch::{Care, Role, Seen, Watch};
use std::path::{Path, PathBuf};
use std::time::Duration;
use wire::now_ns;

/// How long a roll call's requests last, µs: longer than it takes to get them all to the workers.
const ROLL_CALL: u64 = 400_000;
/// Sockets of a front without clients: its listener's, the supervisor's, and the workers', over which
/// they pass fds.
const SOCKETS: usize = 3;
/// How long the server gets to become as it should be.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// What a process may grow by while the same is done again and again, KiB.
const GROWTH: i64 = 2 << 10;
/// What a mold may have besides in garbage that its Ruby, which does next to nothing, has not yet
/// collected, KiB: some 3 for each fork, until it does.
const GARBAGE: i64 = 6 << 10;
/// What the front may keep besides for each request that was under way at once, KiB: an allocator
/// does not give everything back.
const FOR_EACH: i64 = 48;

/// Descriptors of the processes of each role.
type Fds = Vec<(String, Vec<Vec<String>>)>;

/// A server, who looks at it, and what was not as it should be.
pub struct Stage {
    /// What it was started with.
    pub shape: Shape,
    /// It.
    pub server: Server,
    /// Who looks.
    pub watch: Watch,
    /// What must not be, in words.
    pub problems: Vec<String>,
    /// The next request's number.
    pub numbers: u64,
}

impl Stage {
    /// Starts a server and begins to look.
    pub fn begin(
        root: &Path,
        directory: PathBuf,
        shape: Shape,
        care: Care,
    ) -> Result<Stage, String> {
        let server = Server::start(root, directory, shape)?;
        // Mapped for the rest of this process, as every user of a segment does.
        let other = rustix::io::fcntl_dupfd_cloexec(&server.segment, 3)
            .map_err(|_| "the segment's descriptor cannot be duplicated")?;
        let board = wire::Segment::open(other)
            .map_err(|error| format!("the segment cannot be mapped: {error}"))?
            .forever()
            .board();
        let watch = Watch::start(server.pid(), board, care);
        Ok(Stage { shape, server, watch, problems: Vec::new(), numbers: 1 })
    }

    /// What has been seen so far.
    pub fn seen<T>(&self, look: impl FnOnce(&Seen) -> T) -> T {
        look(&self.watch.seen.lock().expect("no thread panics with it"))
    }

    /// Waits until exactly those processes exist that should, no slot and no connection is in use
    /// and every worker has announced that it sleeps. What is not so, if it does not become so.
    pub fn calm(&mut self) {
        let least = self.shape.workers as usize;
        // One that is nearly worn out has its relief beside it.
        let most = least * if self.shape.recycles() { 2 } else { 1 };
        let mut why = String::new();
        let calm = wait_for(PATIENCE, || {
            let (board, counts) = (self.server.segment.board(), self.seen(count));
            let held = board.slots.iter().filter(|s| s.word().state != wire::State::Free).count();
            let returned = board.queue.returned.load(std::sync::atomic::Ordering::Relaxed);
            let armed = board.armed();
            let front = self.seen(|seen| seen.alive(Role::Front).map(|life| life.pid).next());
            let fds = process::fds(front.unwrap_or(0));
            let sockets = fds.iter().filter(|what| *what == "socket").count();
            let below = process::below(self.server.pid()).len();
            why = format!(
                "{counts:?} fronts, molds, workers, {below} processes in all; {held} slots not FREE, {armed} seats armed, \
                 returned {returned:x}, the front has {sockets} sockets"
            );
            let workers = counts[2];
            let right = counts == [1, 1, workers.clamp(least, most)]
                && below == workers + 2
                && board.all_free()
                && sockets == SOCKETS;
            (right && armed == workers && returned == 0).then_some(())
        });
        if calm.is_none() {
            self.problems.push(format!("the server does not come to rest: {why}"));
        }
    }

    /// Every seat of every worker must be able to have a request at the same time.
    pub fn roll_call(&mut self) {
        self.calm();
        let Shape { workers, threads, .. } = self.shape;
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

    /// Who holds what; workers that hold the same are told once.
    pub fn fds(&self) -> Fds {
        let of = |role: Role| -> Vec<Vec<String>> {
            let pids = self.seen(|seen| seen.alive(role).map(|life| life.pid).collect::<Vec<_>>());
            let mut all: Vec<Vec<String>> = pids.into_iter().map(own_fds).collect();
            all.sort();
            all.dedup();
            all
        };
        let supervisor = vec![own_fds(self.server.pid())];
        let roles = [Role::Front, Role::Mold, Role::Worker].map(|r| (format!("{r:?}"), of(r)));
        [("Supervisor".into(), supervisor)].into_iter().chain(roles).collect()
    }

    /// Whoever was started again must have what its predecessor had, and who was not, no more.
    pub fn compare_fds(&mut self, before: &Fds) {
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

    /// Memory of supervisor, front and mold that is theirs alone, KiB.
    pub fn memory(&self) -> Vec<(Role, i64)> {
        let first = |role| self.seen(|seen| seen.alive(role).map(|life| life.pid).next());
        let supervisor = (Role::Supervisor, Some(self.server.pid()));
        let others = [Role::Front, Role::Mold].map(|role| (role, first(role)));
        let own = |(role, pid): (Role, Option<i32>)| (role, process::own_kib(pid.unwrap_or(0)));
        [supervisor].into_iter().chain(others).map(own).collect()
    }

    /// By how much it has grown, KiB; not by more than it may with so many requests at once.
    pub fn compare_memory(&mut self, before: &[(Role, i64)], most: usize) -> Vec<(Role, i64)> {
        let now = self.memory();
        let grown = before.iter().zip(&now).map(|((role, was), (_, is))| (*role, is - was));
        let grown: Vec<(Role, i64)> = grown.collect();
        let may = |role| match role {
            Role::Front => GROWTH + FOR_EACH * most as i64,
            Role::Mold => GROWTH + GARBAGE,
            _ => GROWTH,
        };
        for (role, kib) in grown.iter().filter(|(role, kib)| *kib > may(*role)) {
            self.problems.push(format!("the {role:?} has grown by {kib} KiB"));
        }
        grown
    }

    /// TERM: it must end well and leave nothing behind.
    pub fn stop(&mut self) {
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
        let files = self.server.files();
        if !files.is_empty() {
            self.problems.push(format!("files left behind: {files:?}"));
        }
    }

    /// What the workers wrote down.
    pub fn runs(&mut self) -> Vec<Run> {
        records::read(&self.server.directory.join("records")).unwrap_or_else(|error| {
            self.problems.push(error.to_string());
            Vec::new()
        })
    }
}

/// The descriptors of a process but for those it has one of for each process below it. Those that
/// an earlier mold has forked are not below a mold, nor has it any for them.
fn own_fds(pid: i32) -> Vec<String> {
    let mut fds = process::fds(pid);
    // The app's own; a worker has it from its first request on.
    fds.retain(|what| !what.contains("/records/"));
    let is_pidfd = |what: &String| what.contains("pidfd");
    let (pidfds, mut own): (Vec<String>, Vec<String>) = fds.into_iter().partition(is_pidfd);
    let keep = pidfds.len().saturating_sub(process::below(pid).len());
    own.extend(pidfds.into_iter().take(keep));
    own
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
pub fn misdeeds(log: &str, done: &[Done]) -> Vec<String> {
    let killed = |pid: i32| done.iter().any(|one| one.act != Act::Stop && one.pid == pid);
    let bad = |line: &&str| {
        let pid = line.split("(pid ").nth(1).and_then(|rest| rest.split(')').next()?.parse().ok());
        let unordered = line.contains(" ended: ")
            && (!line.contains("ended: signal 9") || !pid.is_some_and(killed));
        let odd =
            ["panicked", "Error", "cannot", "nobody asked", "unknown", "in time", "requests still"];
        unordered || odd.iter().any(|word| line.contains(word))
    };
    log.lines().filter(bad).map(|line| format!("log: {line}")).collect()
}

/// Says what was wrong, and keeps log and records if anything was (or KEEP is set); true when nothing was.
pub fn conclude(directory: &Path, problems: &[String]) -> bool {
    for problem in problems.iter().take(12) {
        println!("  FAILED: {problem}");
    }
    if problems.len() > 12 {
        println!("  and {} more", problems.len() - 12);
    }
    if problems.is_empty() && std::env::var_os("KEEP").is_none() {
        let _ = std::fs::remove_dir_all(directory);
    } else {
        println!("  log and records: {}", directory.display());
    }
    problems.is_empty()
}
