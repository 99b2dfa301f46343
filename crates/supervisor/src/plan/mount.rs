//! What the plan knows about one mount: its generations, which of them serves, its seats.
//!
//! How the mount stands follows from how the server stands, unless it leaves by itself: so every
//! step is told the phase that holds for it (`Mount::phase`).

mod converge;
pub(super) mod fresh;
mod happen;
mod hold;
mod recycle;

use super::*;

/// Whether a mount stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stay {
    /// As long as the server.
    Here,
    /// The front finishes the requests it has for it.
    Unrouting { until: Duration },
    /// Workers and molds go.
    Leaving { until: Duration },
}

/// A mount.
#[derive(Clone, Debug)]
pub(super) struct Mount {
    pub(super) id: MountId,
    /// What its lines in the log begin with: its name, or nothing where there is but one.
    tag: String,
    pub(super) limits: Limits,
    pub(super) generations: BTreeMap<u64, Generation>,
    /// The generation that serves; 0 before the first.
    pub(super) serving: u64,
    pub(super) newest: u64,
    pub(super) seats: Seats,
    stay: Stay,
}

impl Mount {
    pub(super) fn new(id: MountId, tag: String, limits: Limits) -> Mount {
        Mount {
            id,
            tag,
            limits,
            generations: BTreeMap::from([(1, Generation::new(limits.workers))]),
            serving: 0,
            newest: 1,
            seats: Seats::new(limits.seats, limits.threads),
            stay: Stay::Here,
        }
    }

    /// The phase that holds for it while the server is in `server`.
    pub(super) fn phase(&self, server: Phase) -> Phase {
        match (server, self.stay) {
            (Phase::Starting | Phase::Running, Stay::Unrouting { until }) => {
                Phase::Draining { until }
            }
            (
                Phase::Starting | Phase::Running | Phase::Draining { .. },
                Stay::Leaving { until },
            ) => Phase::Leaving { until },
            (phase, _) => phase,
        }
    }

    /// Whether requests may go there.
    pub(super) fn is_routed(&self) -> bool {
        self.serving != 0 && self.stay == Stay::Here
    }

    /// Whether nothing of it is left.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.stay, Stay::Leaving { .. }) && self.generations.is_empty()
    }

    pub(super) fn is_leaving(&self) -> bool {
        self.stay != Stay::Here
    }

    /// Workers that there can be at most.
    pub(super) fn most_workers(&self) -> u16 {
        // Of two generations; of fresh ones two sets stand ready beside the one that runs.
        let sets = if self.limits.fresh { 6 } else { 2 };
        (self.limits.seats / self.limits.threads / sets).max(1)
    }

    pub(super) fn which(&self, number: u64) -> GenerationId {
        GenerationId { mount: self.id, number }
    }

    pub(super) fn say(&self, line: &str) -> Action {
        Action::Say(format!("{}{line}", self.tag))
    }

    /// The times at which something of it becomes due.
    pub(super) fn deadlines(&self) -> impl Iterator<Item = Duration> {
        let stay = match self.stay {
            Stay::Here => None,
            Stay::Unrouting { until } => Some(until),
            Stay::Leaving { until } => Some(until + 2 * GRACE),
        };
        self.generations.values().flat_map(Generation::deadlines).chain(stay)
    }

    /// No more requests for it. False: it leaves already.
    pub(super) fn unroute(&mut self, now: Duration, actions: &mut Vec<Action>) -> bool {
        if self.is_leaving() {
            return false;
        }
        let was_routed = self.is_routed();
        let until = now + self.limits.shutdown_timeout;
        self.stay = Stay::Unrouting { until };
        self.give_up_candidates("its mount is to go", actions);
        self.release_all();
        if was_routed {
            actions.push(Action::Unroute(self.id));
        } else {
            self.leave(now);
        }
        true
    }

    /// Draining is over: workers and molds are next.
    pub(super) fn leave(&mut self, now: Duration) {
        let until = match self.stay {
            Stay::Unrouting { until } => until.max(now + GRACE / 2),
            Stay::Here => now + self.limits.shutdown_timeout,
            Stay::Leaving { .. } => return,
        };
        self.stay = Stay::Leaving { until };
        self.make_leave();
    }

    /// Every generation leaves.
    pub(super) fn make_leave(&mut self) {
        self.generations.values_mut().for_each(|generation| generation.role = Role::Leaving);
    }

    /// Kills all its workers and molds.
    pub(super) fn kill_all(&mut self, actions: &mut Vec<Action>) {
        let id = self.id;
        for (number, generation) in &mut self.generations {
            let which = GenerationId { mount: id, number: *number };
            generation.role = Role::Leaving;
            for (nr, worker) in &mut generation.workers {
                if !matches!(worker.stage, Stage::Forking | Stage::Killed) {
                    worker.stage = Stage::Killed;
                    actions.push(Action::Kill(which, *nr));
                }
            }
            match generation.mold {
                Mold::Gone | Mold::Killed => {}
                Mold::Absent => generation.mold = Mold::Gone,
                _ => {
                    generation.mold = Mold::Killed;
                    actions.push(Action::KillMold(which));
                }
            }
        }
    }
}
