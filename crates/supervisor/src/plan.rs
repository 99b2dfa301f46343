//! What to do next: a pure function of the state, an event and the time.
//!
//! An event changes what is known; `converge` then compares that with what should be and names the
//! steps. No clock, no process, no file: `simulation` runs it through years of bad luck.

mod backoff;
mod converge;
mod generation;
mod seats;
#[cfg(test)]
mod simulation;

use backoff::Backoff;
use generation::{Generation, Mold, Role, SHORT_LIFE, Stage, YOUNG};
use seats::Seats;
use std::collections::BTreeMap;
use std::time::Duration;

/// What has happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The generation's mold has loaded the app.
    MoldReady(u64),
    /// It could not, and says why; its death follows.
    MoldFailed(u64, String),
    /// The generation's mold is dead, and how it ended.
    MoldDied(u64, String),
    /// A worker exists.
    Forked(u64, u16),
    /// A worker is dead and its seats are settled.
    WorkerDied {
        /// Its generation.
        generation: u64,
        /// Its number.
        nr: u16,
        /// Whether it had completed any request.
        served: bool,
    },
    /// The front can accept.
    FrontReady,
    /// The front has finished its connections.
    FrontDrained,
    /// The front is dead and what it left behind is settled.
    FrontDied,
    /// Finish what runs and waits, then end.
    Stop,
    /// End at once with this exit code.
    StopNow(u8),
    /// Boot a new generation beside the present one and switch to it.
    Restart,
    /// One worker more.
    More,
    /// One worker less.
    Fewer,
    /// Time has passed.
    Tick,
}

/// What to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Start a front.
    StartFront,
    /// Tell the front to accept.
    Accept,
    /// Close the listeners and tell the front to drain.
    Drain,
    /// Kill the front.
    KillFront,
    /// Start a mold of this generation.
    StartMold(u64),
    /// Ask the generation's mold to go.
    QuitMold(u64),
    /// Kill it.
    KillMold(u64),
    /// Ask the generation's mold for a worker.
    Fork {
        /// The generation.
        generation: u64,
        /// The worker's number.
        nr: u16,
        /// Its first seat.
        seat: u16,
    },
    /// Tell a worker to leave.
    Retire(u64, u16),
    /// Kill it.
    Kill(u64, u16),
    /// Let this generation take, and no other.
    Serve(u64),
    /// The server is up: print the start-up lines.
    Announce,
    /// Print a line.
    Say(String),
    /// All is over.
    Exit(u8),
}

/// The numbers the plan goes by.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Workers wanted.
    pub workers: u16,
    /// Threads, that is seats, of each.
    pub threads: u16,
    /// Seats of the segment.
    pub seats: u16,
    /// What running requests get before their worker is killed.
    pub shutdown_timeout: Duration,
}

/// Forks a mold is asked for at once: enough to keep it busy, few enough for its socket's buffer.
pub const FORKS_AHEAD: usize = 8;
/// Worker deaths that show a new generation to be no good.
pub const STILLBORN_MAX: u32 = 2;
/// Early deaths of the first front that show it will never run.
pub const FRONT_TRIES: u32 = 4;
/// What a mold, or an idle worker, gets to leave.
pub const GRACE: Duration = Duration::from_secs(2);
/// How long the end waits for the killed to be dead.
pub const LAST_WAIT: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Nothing has served yet.
    Starting,
    Running,
    /// The front finishes its connections.
    Draining {
        until: Duration,
    },
    /// Workers and molds go.
    Leaving {
        until: Duration,
    },
    /// All have been killed; wait until they are dead.
    Killing {
        until: Duration,
        code: u8,
    },
    Over,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Front {
    Absent,
    Starting,
    Ready { since: Duration },
    Accepting { since: Duration },
    Draining,
    Killed,
    Gone,
}

/// Everything the plan knows.
#[derive(Clone, Debug)]
pub struct State {
    limits: Limits,
    phase: Phase,
    front: Front,
    front_backoff: Backoff,
    generations: BTreeMap<u64, Generation>,
    /// The generation that serves; 0 before the first.
    serving: u64,
    newest: u64,
    seats: Seats,
}

impl State {
    /// The state before anything has been started.
    pub fn new(limits: Limits) -> State {
        let first = Generation::new(limits.workers);
        State {
            limits,
            phase: Phase::Starting,
            front: Front::Absent,
            front_backoff: Backoff::new(3),
            generations: BTreeMap::from([(1, first)]),
            serving: 0,
            newest: 1,
            seats: Seats::new(limits.seats, limits.threads),
        }
    }

    /// Workers wanted at present.
    pub fn target(&self) -> u16 {
        self.limits.workers
    }

    /// The generation that serves; 0 before the first.
    pub fn serving(&self) -> u64 {
        self.serving
    }

    /// True for a worker that has been told to leave.
    pub fn is_leaving(&self, generation: u64, nr: u16) -> bool {
        let worker = self.generations.get(&generation).and_then(|g| g.workers.get(&nr));
        worker.is_none_or(|w| matches!(w.stage, Stage::Retiring { .. } | Stage::Killed))
    }

    /// The next point in time at which `plan` has something to do without any event.
    pub fn deadline(&self, now: Duration) -> Option<Duration> {
        let phase = match self.phase {
            Phase::Draining { until } | Phase::Killing { until, .. } => vec![until],
            Phase::Leaving { until } => vec![until + GRACE, until + 2 * GRACE],
            _ => Vec::new(),
        };
        let front = (self.front == Front::Absent).then(|| self.front_backoff.due());
        let generations = self.generations.values().flat_map(Generation::deadlines);
        phase.into_iter().chain(front).chain(generations).filter(|at| *at > now).min()
    }

    fn is_up(&self) -> bool {
        matches!(self.phase, Phase::Starting | Phase::Running)
    }

    fn is_ending(&self) -> bool {
        matches!(self.phase, Phase::Killing { .. } | Phase::Over)
    }
}

/// Takes in one event and says what to do. The same state, event and time give the same actions.
pub fn plan(state: &mut State, event: Event, now: Duration) -> Vec<Action> {
    let mut actions = Vec::new();
    if state.phase == Phase::Over {
        return actions;
    }
    state.note(event, now, &mut actions);
    state.converge(now, &mut actions);
    actions
}

impl State {
    fn note(&mut self, event: Event, now: Duration, actions: &mut Vec<Action>) {
        match event {
            Event::MoldReady(generation) => self.note_mold_ready(generation, now),
            Event::MoldFailed(generation, why) => {
                self.note_boot_failure(generation, &why, now, actions)
            }
            Event::MoldDied(generation, how) => {
                self.note_mold_death(generation, &how, now, actions)
            }
            Event::Forked(generation, nr) => self.note_fork(generation, nr, now, actions),
            Event::WorkerDied { generation, nr, served } => {
                self.note_worker_death(generation, nr, served, now, actions)
            }
            Event::FrontReady if self.front == Front::Starting => {
                self.front = Front::Ready { since: now }
            }
            Event::FrontReady => {}
            Event::FrontDrained => self.note_drained(now),
            Event::FrontDied => self.note_front_death(now, actions),
            Event::Stop => self.note_stop(now, actions),
            Event::StopNow(code) => self.kill_all(code, now, actions),
            Event::Restart => self.note_restart(actions),
            Event::More | Event::Fewer => self.note_target(event == Event::More, actions),
            Event::Tick => {}
        }
    }

    fn note_mold_ready(&mut self, number: u64, now: Duration) {
        if let Some(generation) = self.generations.get_mut(&number)
            && generation.mold == Mold::Booting
        {
            generation.mold = Mold::Ready { since: now };
        }
    }

    /// The app did not load, or its mold died before it had. A first generation that cannot boot
    /// ends the server, a candidate is given up, and the mold of a generation that serves is tried
    /// again later.
    fn note_boot_failure(
        &mut self,
        number: u64,
        why: &str,
        now: Duration,
        actions: &mut Vec<Action>,
    ) {
        let Some(generation) = self.generations.get_mut(&number) else { return };
        if self.phase == Phase::Starting && self.serving == 0 {
            actions.push(Action::Say(format!("the app did not load: {why}")));
            self.kill_all(1, now, actions);
        } else if generation.role == Role::Candidate {
            self.give_up(number, why, actions);
        } else if generation.role == Role::Serving && generation.mold == Mold::Booting {
            generation.mold = Mold::Killed;
            actions.push(Action::KillMold(number));
            actions.push(Action::Say(format!(
                "the mold of generation {number} did not boot ({why}); its workers serve on, \
                 another try follows"
            )));
        }
    }

    fn give_up(&mut self, number: u64, why: &str, actions: &mut Vec<Action>) {
        let serving = self.serving;
        if let Some(generation) = self.generations.get_mut(&number) {
            generation.role = Role::Leaving;
            actions.push(Action::Say(format!(
                "generation {number} did not boot: {why}; generation {serving} serves on"
            )));
        }
    }

    fn note_mold_death(
        &mut self,
        number: u64,
        how: &str,
        now: Duration,
        actions: &mut Vec<Action>,
    ) {
        let ending = self.is_ending();
        let Some(generation) = self.generations.get_mut(&number) else { return };
        let lost: Vec<u16> = (generation.workers.iter())
            .filter(|(_, worker)| worker.stage == Stage::Forking)
            .map(|(nr, _)| *nr)
            .collect();
        for nr in lost {
            if let Some(worker) = generation.workers.remove(&nr) {
                self.seats.give_back(worker.seat);
            }
        }
        let before = std::mem::replace(&mut generation.mold, Mold::Absent);
        if generation.role == Role::Leaving || ending {
            generation.mold = Mold::Gone;
            return;
        }
        let early = match before {
            Mold::Ready { since } => now.saturating_sub(since) < SHORT_LIFE,
            _ => true,
        };
        generation.mold_backoff.note(now, early);
        match (generation.role, before) {
            (Role::Candidate, Mold::Booting) => {
                let why = format!("its mold ended with {how} while loading the app");
                self.note_boot_failure(number, &why, now, actions);
                if let Some(generation) = self.generations.get_mut(&number) {
                    generation.mold = Mold::Gone;
                }
            }
            (_, Mold::Killed) => {}
            _ if self.is_up() => actions.push(Action::Say(format!(
                "the mold of generation {number} died ({how}); its workers live on, another \
                 mold is started"
            ))),
            _ => {}
        }
    }

    fn note_fork(&mut self, number: u64, nr: u16, now: Duration, actions: &mut Vec<Action>) {
        let ending = self.is_ending();
        let Some(generation) = self.generations.get_mut(&number) else { return };
        let Some(worker) = generation.workers.get_mut(&nr) else { return };
        if ending {
            worker.stage = Stage::Killed;
            actions.push(Action::Kill(number, nr));
        } else if worker.stage == Stage::Forking {
            worker.stage = Stage::Living { since: now };
        }
    }

    fn note_worker_death(
        &mut self,
        number: u64,
        nr: u16,
        served: bool,
        now: Duration,
        actions: &mut Vec<Action>,
    ) {
        let up = self.is_up();
        let Some(generation) = self.generations.get_mut(&number) else { return };
        let Some(worker) = generation.workers.remove(&nr) else { return };
        self.seats.give_back(worker.seat);
        let Stage::Living { since } = worker.stage else { return };
        let early = !served && now.saturating_sub(since) < YOUNG;
        let waited = generation.worker_backoff.delay();
        generation.worker_backoff.note(now, early);
        let waits = generation.worker_backoff.delay();
        if waits > waited && generation.role == Role::Serving && up {
            actions.push(Action::Say(format!(
                "workers of generation {number} die young ({} in a row); the next one in {:.1} s",
                generation.worker_backoff.streak(),
                waits.as_secs_f64()
            )));
        }
        if generation.role == Role::Candidate && self.serving != 0 {
            generation.stillborn += 1;
            if generation.stillborn > STILLBORN_MAX {
                self.give_up(number, "its workers died as soon as they were forked", actions);
            }
        }
    }

    fn note_drained(&mut self, now: Duration) {
        if self.front == Front::Draining {
            self.leave(now);
        }
    }

    fn note_front_death(&mut self, now: Duration, actions: &mut Vec<Action>) {
        let before = self.front;
        match self.phase {
            Phase::Starting | Phase::Running => self.front = Front::Absent,
            _ => self.front = Front::Gone,
        }
        let early = match before {
            Front::Ready { since } | Front::Accepting { since } => {
                now.saturating_sub(since) < SHORT_LIFE
            }
            _ => true,
        };
        self.front_backoff.note(now, early);
        match self.phase {
            Phase::Draining { .. } => self.leave(now),
            Phase::Starting if self.front_backoff.streak() >= FRONT_TRIES => {
                actions.push(Action::Say("the front does not start; see above for why".into()));
                self.kill_all(1, now, actions);
            }
            _ => {}
        }
    }

    fn note_stop(&mut self, now: Duration, actions: &mut Vec<Action>) {
        if !self.is_up() {
            return;
        }
        for generation in self.generations.values_mut() {
            if generation.role == Role::Candidate {
                generation.role = Role::Leaving;
            }
        }
        self.phase = Phase::Draining { until: now + self.limits.shutdown_timeout };
        match self.front {
            Front::Accepting { .. } => {
                self.front = Front::Draining;
                actions.push(Action::Drain);
            }
            _ => self.leave(now),
        }
    }

    fn note_restart(&mut self, actions: &mut Vec<Action>) {
        if self.phase != Phase::Running {
            let why = if self.is_up() { "the server is still starting" } else { "it is stopping" };
            actions.push(Action::Say(format!("restart ignored: {why}")));
            return;
        }
        for (number, generation) in &mut self.generations {
            if generation.role == Role::Candidate {
                generation.role = Role::Leaving;
                actions.push(Action::Say(format!(
                    "generation {number} is given up: another restart was asked for"
                )));
            }
        }
        self.newest += 1;
        self.generations.insert(self.newest, Generation::new(self.limits.workers));
        actions.push(Action::Say(format!("generation {} boots", self.newest)));
    }

    fn note_target(&mut self, more: bool, actions: &mut Vec<Action>) {
        if !self.is_up() {
            return;
        }
        let most = self.limits.seats / self.limits.threads / 2;
        let target = self.limits.workers;
        self.limits.workers =
            if more { (target + 1).min(most.max(1)) } else { (target - 1).max(1) };
        if self.limits.workers == target {
            let bound = if more { "no more" } else { "no fewer" };
            actions.push(Action::Say(format!("{bound} than {target} workers are possible")));
        }
    }

    /// Draining is over: workers and molds are next.
    fn leave(&mut self, now: Duration) {
        if let Phase::Draining { until } = self.phase {
            self.phase = Phase::Leaving { until: until.max(now + GRACE / 2) };
            self.generations.values_mut().for_each(|g| g.role = Role::Leaving);
        }
    }

    /// Kills everything there is. The front goes last, so that no reply is lost that was complete.
    fn kill_all(&mut self, code: u8, now: Duration, actions: &mut Vec<Action>) {
        if self.is_ending() {
            return;
        }
        self.phase = Phase::Killing { until: now + LAST_WAIT, code };
        for (number, generation) in &mut self.generations {
            generation.role = Role::Leaving;
            for (nr, worker) in &mut generation.workers {
                if !matches!(worker.stage, Stage::Forking | Stage::Killed) {
                    worker.stage = Stage::Killed;
                    actions.push(Action::Kill(*number, *nr));
                }
            }
            match generation.mold {
                Mold::Gone | Mold::Killed => {}
                Mold::Absent => generation.mold = Mold::Gone,
                _ => {
                    generation.mold = Mold::Killed;
                    actions.push(Action::KillMold(*number));
                }
            }
        }
        match self.front {
            Front::Gone | Front::Killed => {}
            Front::Absent => self.front = Front::Gone,
            _ => {
                self.front = Front::Killed;
                actions.push(Action::KillFront);
            }
        }
    }
}
