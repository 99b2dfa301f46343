//! What the plan knows about one generation: its mold, its workers, and whether it serves.

use super::backoff::Backoff;
use super::mount::fresh::UNDISTURBED;
use std::collections::BTreeMap;
use std::time::Duration;

/// A worker that dies this soon without having served anything counts against its generation.
pub const YOUNG: Duration = Duration::from_secs(5);
/// A mold or front that dies this soon after it was ready counts as one that cannot live.
pub const SHORT_LIFE: Duration = Duration::from_secs(1);

/// Where a generation stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Boots beside the one that serves.
    Candidate,
    /// Its workers take.
    Serving,
    /// It served until just now and could again.
    Held {
        /// When it leaves.
        until: Duration,
    },
    /// Its workers finish what they hold.
    Leaving,
}

/// Where a mold stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mold {
    /// There is none; one is started when the back-off allows it.
    Absent,
    /// Loads the app.
    Booting,
    /// Forks when told to.
    Ready {
        /// Since when.
        since: Duration,
    },
    /// Told to go; killed at the given time.
    Quitting {
        /// When patience ends.
        kill_at: Duration,
    },
    /// Killed; its death has not been seen yet.
    Killed,
    /// Dead, and not to be started again.
    Gone,
}

/// Where a worker stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The mold has been asked for it.
    Forking,
    /// It exists and gets ready.
    Starting {
        /// Since when.
        since: Duration,
        /// When patience ends.
        kill_at: Duration,
    },
    /// It takes requests.
    Living {
        /// Since when.
        since: Duration,
    },
    /// A fresh one that has taken its one request.
    Used {
        /// Since when.
        since: Duration,
    },
    /// Told to leave; killed at the given time.
    Retiring {
        /// When patience ends.
        kill_at: Duration,
    },
    /// Killed; its death has not been seen yet.
    Killed,
}

/// Whether a worker is to be replaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wear {
    /// No.
    #[default]
    Fresh,
    /// Soon: it will say when it has reached its limit.
    Nearing,
    /// As soon as another stands ready.
    Due,
}

/// One worker of a generation.
#[derive(Clone, Copy, Debug)]
pub struct Worker {
    /// Its first seat.
    pub seat: u16,
    /// Where it stands.
    pub stage: Stage,
    /// Whether it is to be replaced.
    pub wear: Wear,
    /// A fresh one that may take its request.
    pub open: bool,
}

impl Worker {
    /// One the mold has just been asked for.
    pub fn asked(seat: u16) -> Worker {
        Worker { seat, stage: Stage::Forking, wear: Wear::Fresh, open: false }
    }

    /// Whether it exists or is asked for, and is not on its way out.
    pub fn stays(&self) -> bool {
        matches!(self.stage, Stage::Forking | Stage::Starting { .. } | Stage::Living { .. })
    }

    pub(super) fn lives(&self) -> bool {
        matches!(self.stage, Stage::Living { .. })
    }
}

/// One generation.
#[derive(Clone, Debug)]
pub struct Generation {
    /// Where it stands.
    pub role: Role,
    /// Its mold.
    pub mold: Mold,
    /// Its workers by number.
    pub workers: BTreeMap<u16, Worker>,
    /// Waits between two molds.
    pub mold_backoff: Backoff,
    /// Waits before a worker is replaced.
    pub worker_backoff: Backoff,
    /// Worker deaths before it served.
    pub stillborn: u32,
    /// Before this no worker is forked.
    pub fork_due: Duration,
}

impl Generation {
    /// A generation nothing has been started of.
    pub fn new(target: u16) -> Generation {
        Generation {
            role: Role::Candidate,
            mold: Mold::Absent,
            workers: BTreeMap::new(),
            mold_backoff: Backoff::new(1),
            worker_backoff: Backoff::new(u32::from(target)),
            stillborn: 0,
            fork_due: Duration::ZERO,
        }
    }

    /// Workers that exist or are asked for, and are not on their way out.
    pub fn staying(&self) -> usize {
        self.workers.values().filter(|w| w.stays()).count()
    }

    /// Workers that take requests.
    pub fn living(&self) -> usize {
        self.workers.values().filter(|w| w.lives()).count()
    }

    /// Workers the mold has been asked for.
    pub fn forking(&self) -> usize {
        self.workers.values().filter(|w| w.stage == Stage::Forking).count()
    }

    /// Workers that do not take requests yet.
    pub fn coming(&self) -> usize {
        self.staying() - self.living()
    }

    /// Workers that stay, but are to be replaced.
    pub fn worn(&self) -> usize {
        self.workers.values().filter(|w| w.stays() && w.wear != Wear::Fresh).count()
    }

    /// The lowest number no worker has.
    pub fn free_nr(&self) -> u16 {
        (1..).find(|nr| !self.workers.contains_key(nr)).unwrap_or(u16::MAX)
    }

    /// The worker to do without: one that is to be replaced anyway, else a spare, else the one with
    /// the highest number.
    pub fn least_needed(&self) -> Option<u16> {
        let living = self.workers.iter().filter(|(_, w)| w.lives());
        living.max_by_key(|(nr, w)| (w.wear != Wear::Fresh, !w.open, **nr)).map(|(nr, _)| *nr)
    }

    /// A worker that leaves as soon as another stands ready.
    pub fn due(&self) -> Option<u16> {
        let due = |w: &Worker| w.lives() && w.wear == Wear::Due;
        self.workers.iter().find(|(_, w)| due(w)).map(|(nr, _)| *nr)
    }

    /// True when nothing of it is left.
    pub fn is_over(&self) -> bool {
        self.role == Role::Leaving && self.mold == Mold::Gone && self.workers.is_empty()
    }

    /// The times at which something of it becomes due.
    pub fn deadlines(&self) -> impl Iterator<Item = Duration> {
        let mold = match self.mold {
            Mold::Absent => Some(self.mold_backoff.due()),
            Mold::Quitting { kill_at } => Some(kill_at),
            _ => None,
        };
        let workers = self.workers.values().filter_map(|w| match w.stage {
            Stage::Retiring { kill_at } | Stage::Starting { kill_at, .. } => Some(kill_at),
            Stage::Used { since } => Some(since + UNDISTURBED),
            _ => None,
        });
        let held = match self.role {
            Role::Held { until } => Some(until),
            _ => None,
        };
        let forks = [self.worker_backoff.due(), self.fork_due];
        mold.into_iter().chain(workers).chain(held).chain(forks)
    }
}
