//! What to do next: a pure function of the state, an event and the time.
//!
//! An event changes what is known; `converge` then compares that with what should be and names the
//! steps. No clock, no process, no file: `simulation` runs it through years of bad luck.

mod backoff;
mod converge;
mod generation;
mod mount;
mod note;
mod seats;
#[cfg(test)]
mod simulation;
mod view;

use backoff::Backoff;
use generation::{Generation, Mold, Role, SHORT_LIFE, Stage, Wear, YOUNG};
use mount::Mount;
use seats::Seats;
use std::collections::BTreeMap;
use std::time::Duration;
pub use view::{GenerationView, Stands, WorkerView};
pub use wire::control::MountId;

/// A generation of a mount.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct GenerationId {
    /// Whose.
    pub mount: MountId,
    /// Counted from 1 in each mount.
    pub number: u64,
}

/// What has happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The generation's mold has loaded the app.
    MoldReady(GenerationId),
    /// It could not, and says why; its death follows.
    MoldFailed(GenerationId, String),
    /// The generation's mold is dead, and how it ended.
    MoldDied(GenerationId, String),
    /// A worker exists.
    Forked(GenerationId, u16),
    /// A worker is ready to take requests.
    Up(GenerationId, u16),
    /// A worker could not get ready, and says why; its death follows.
    Unfit(GenerationId, u16, String),
    /// A worker is dead and its seats are settled.
    WorkerDied {
        /// Its generation.
        generation: GenerationId,
        /// Its number.
        nr: u16,
        /// Whether it had completed any request.
        served: bool,
        /// Whether it ended without having been told to, by us or by a signal of its own.
        failed: bool,
    },
    /// A worker is to be replaced: now, or when it has reached its limit of requests.
    Worn {
        /// Its generation.
        generation: GenerationId,
        /// Its number.
        nr: u16,
        /// It takes requests up to its limit and then says so.
        at_limit: bool,
    },
    /// A worker has reached its limit and takes no more.
    Spent(GenerationId, u16),
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
    /// Another mount is wanted, whose app is to be loaded.
    Mount(MountId, String, Limits),
    /// A mount is not wanted any more.
    Unmount(MountId),
    /// The front has no request of it left.
    Unmounted(MountId),
    /// Boot a new generation of a mount beside the present one and switch to it.
    Restart(MountId),
    /// Switch back to the generation that served before.
    Rollback(MountId),
    /// Replace all workers, without loading the app again.
    Recycle(MountId),
    /// One worker after another leaves, then the server ends.
    SlowStop,
    /// One worker more.
    More(MountId),
    /// One worker less.
    Fewer(MountId),
    /// So many workers.
    Scale(MountId, u16),
    /// Other numbers for a mount from now on, but for its threads.
    Limit(MountId, Limits),
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
    /// Tell the front that it will have ever fewer workers.
    Yield,
    /// Close the listeners and tell the front to drain.
    Drain,
    /// Kill the front.
    KillFront,
    /// Requests may go to this mount: its first generation serves.
    Route(MountId),
    /// No more requests go there; the front finishes those it has.
    Unroute(MountId),
    /// Nothing of the mount is left.
    Forget(MountId),
    /// Start a mold of this generation.
    StartMold(GenerationId),
    /// Ask the generation's mold to go.
    QuitMold(GenerationId),
    /// Kill it.
    KillMold(GenerationId),
    /// Ask the generation's mold for a worker.
    Fork {
        /// The generation.
        generation: GenerationId,
        /// The worker's number.
        nr: u16,
        /// Its first seat.
        seat: u16,
    },
    /// Let a spare take its one request.
    Open(GenerationId, u16),
    /// Tell a worker to leave.
    Retire(GenerationId, u16),
    /// Kill it.
    Kill(GenerationId, u16),
    /// Let this generation of its mount take, and no other.
    Serve(GenerationId),
    /// What has become of a restart or a rollback: this generation serves, or why it does not.
    Settled {
        /// The generation that was meant to serve.
        generation: GenerationId,
        /// Nothing, or one line.
        outcome: Result<(), String>,
    },
    /// The server is up: print the start-up lines.
    Announce,
    /// Print a line.
    Say(String),
    /// All is over.
    Exit(u8),
}

/// The numbers the plan goes by for a mount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Workers wanted; of fresh ones, requests that may run at once.
    pub workers: u16,
    /// Each worker gets one request.
    pub fresh: bool,
    /// Threads, that is seats, of each.
    pub threads: u16,
    /// Seats of the segment.
    pub seats: u16,
    /// What running requests get before their worker is killed.
    pub shutdown_timeout: Duration,
    /// Time between two forks, and between two workers that leave in a slow stop.
    pub spawn_interval: Duration,
    /// How long no worker is forked after one has failed.
    pub err_respawn_interval: Duration,
    /// What a new worker gets to be ready; zero: for ever.
    pub start_timeout: Duration,
    /// How long the generation that served before is held after a restart.
    pub rollback_window: Duration,
}

impl Limits {
    /// Workers that stand ready when nothing runs. Of fresh ones twice as many as run at once, or a
    /// few requests in a row would have taken them all before one more is forked.
    pub fn ready(&self) -> usize {
        usize::from(self.workers) * if self.fresh { 2 } else { 1 }
    }
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
    /// What running requests get when the server ends.
    shutdown_timeout: Duration,
    phase: Phase,
    front: Front,
    front_backoff: Backoff,
    mounts: BTreeMap<MountId, Mount>,
    /// In a slow stop: when the next workers leave.
    slow_stop: Option<Duration>,
}

impl State {
    /// The state before anything has been started; mounts come as events.
    pub fn new(shutdown_timeout: Duration) -> State {
        State {
            shutdown_timeout,
            phase: Phase::Starting,
            front: Front::Absent,
            front_backoff: Backoff::new(3),
            mounts: BTreeMap::new(),
            slow_stop: None,
        }
    }

    /// The next point in time at which `plan` has something to do without any event.
    pub fn deadline(&self, now: Duration) -> Option<Duration> {
        let phase = match self.phase {
            Phase::Draining { until } | Phase::Killing { until, .. } => vec![until],
            Phase::Leaving { until } => vec![until + GRACE, until + 2 * GRACE],
            _ => Vec::new(),
        };
        let front = (self.front == Front::Absent).then(|| self.front_backoff.due());
        let mounts = self.mounts.values().flat_map(Mount::deadlines);
        let all = phase.into_iter().chain(front).chain(mounts).chain(self.slow_stop);
        all.filter(|at| *at > now && *at < Duration::MAX).min()
    }

    /// Whether a restart is possible.
    pub fn takes_restarts(&self) -> bool {
        self.phase == Phase::Running && self.slow_stop.is_none()
    }

    fn is_up(&self) -> bool {
        self.phase.is_up()
    }

    fn is_ending(&self) -> bool {
        self.phase.is_ending()
    }
}

impl Phase {
    fn is_up(self) -> bool {
        matches!(self, Phase::Starting | Phase::Running)
    }

    fn is_ending(self) -> bool {
        matches!(self, Phase::Killing { .. } | Phase::Over)
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
