//! What the plan knows, in the words that people are told.

use super::*;

/// A generation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GenerationView {
    /// Its number.
    pub number: u64,
    /// `booting`, `serving`, `held` or `leaving`.
    pub role: &'static str,
    /// Its mold: `absent`, `booting`, `ready` or `leaving`.
    pub mold: &'static str,
    /// Its workers by number.
    pub workers: Vec<WorkerView>,
}

/// A worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerView {
    /// Its number.
    pub nr: u16,
    /// Its first seat.
    pub seat: u16,
    /// Where it stands.
    pub stands: Stands,
}

/// Where a worker stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stands {
    /// It does not take requests yet.
    Booting,
    /// It takes them.
    Ready,
    /// It takes no more.
    Leaving,
}

impl State {
    /// Every mount that has an app, in the order in which they came.
    pub fn mounts(&self) -> impl Iterator<Item = MountId> {
        self.mounts.keys().copied()
    }

    /// Those that requests may go to.
    pub fn routed(&self) -> impl Iterator<Item = MountId> {
        self.mounts.values().filter(|mount| mount.is_routed()).map(|mount| mount.id)
    }

    /// Whether the mount comes (its app is not loaded yet), stays or goes.
    pub fn standing(&self, id: MountId) -> &'static str {
        match self.mounts.get(&id) {
            Some(mount) if mount.is_leaving() => "leaving",
            Some(mount) if mount.serving == 0 => "booting",
            Some(_) => "serving",
            None => "absent",
        }
    }

    /// Workers wanted at present.
    pub fn target(&self, id: MountId) -> u16 {
        self.mounts.get(&id).map_or(0, |mount| mount.limits.workers)
    }

    /// The generation that serves; 0 before the first.
    pub fn serving(&self, id: MountId) -> u64 {
        self.mounts.get(&id).map_or(0, |mount| mount.serving)
    }

    /// The generation that was started last.
    pub fn newest(&self, id: MountId) -> u64 {
        self.mounts.get(&id).map_or(0, |mount| mount.newest)
    }

    /// Workers that there can be at most.
    pub fn most_workers(&self, id: MountId) -> u16 {
        self.mounts.get(&id).map_or(1, Mount::most_workers)
    }

    /// `starting`, `running` or `stopping`.
    pub fn word(&self) -> &'static str {
        match self.phase {
            Phase::Starting => "starting",
            Phase::Running => "running",
            _ => "stopping",
        }
    }

    /// Every generation of the mount of which something is left, the oldest first.
    pub fn view(&self, id: MountId) -> impl Iterator<Item = GenerationView> {
        let generations = self.mounts.get(&id).into_iter().flat_map(|mount| &mount.generations);
        generations.map(|(number, generation)| GenerationView {
            number: *number,
            role: match generation.role {
                Role::Candidate => "booting",
                Role::Serving => "serving",
                Role::Held { .. } => "held",
                Role::Leaving => "leaving",
            },
            mold: match generation.mold {
                Mold::Absent | Mold::Gone => "absent",
                Mold::Booting => "booting",
                Mold::Ready { .. } => "ready",
                Mold::Quitting { .. } | Mold::Killed => "leaving",
            },
            workers: generation.workers.iter().map(|(nr, worker)| see(*nr, worker)).collect(),
        })
    }
}

fn see(nr: u16, worker: &generation::Worker) -> WorkerView {
    let stands = match worker.stage {
        Stage::Forking | Stage::Starting { .. } => Stands::Booting,
        Stage::Living { .. } | Stage::Used { .. } => Stands::Ready,
        Stage::Retiring { .. } | Stage::Killed => Stands::Leaving,
    };
    WorkerView { nr, seat: worker.seat, stands }
}
