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
    /// The generation that was started last.
    pub fn newest(&self) -> u64 {
        self.newest
    }

    /// Workers that there can be at most.
    pub fn most_workers(&self) -> u16 {
        // Of two generations; a fresh one has as many spares as there are requests.
        let sets = if self.limits.fresh { 4 } else { 2 };
        (self.limits.seats / self.limits.threads / sets).max(1)
    }

    /// `starting`, `running` or `stopping`.
    pub fn word(&self) -> &'static str {
        match self.phase {
            Phase::Starting => "starting",
            Phase::Running => "running",
            _ => "stopping",
        }
    }

    /// Every generation of which something is left, the oldest first.
    pub fn view(&self) -> impl Iterator<Item = GenerationView> {
        self.generations.iter().map(|(number, generation)| GenerationView {
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
