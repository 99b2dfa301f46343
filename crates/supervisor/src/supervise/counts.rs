//! What the supervisor counts for metrics: workers that come and go, and why, and restarts.

use super::*;
use crate::children::Worker;
use crate::options::Isolation;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use wire::counters::server::{Cause, Lives};
use wire::doorbell::{SPENT, WORN};

impl Supervisor {
    /// The numbers of a mount.
    fn lives(&self, id: MountId) -> Option<&'static Lives> {
        let server = self.counters.server();
        self.apps.get(&id).map(|app| &server.lives[server.row(&app.settings.name)])
    }

    /// A worker exists.
    pub(super) fn count_start(&self, id: MountId) {
        if let Some(lives) = self.lives(id) {
            lives.started.fetch_add(1, Relaxed);
        }
    }

    /// A worker is dead. Called while its seats still say how it stood.
    pub(super) fn count_death(&self, generation: GenerationId, worker: &Worker) {
        if let (Some(lives), Some(cause)) =
            (self.lives(generation.mount), self.cause(generation, worker))
        {
            lives.deaths[cause as usize].fetch_add(1, Relaxed);
        }
    }

    fn cause(&self, generation: GenerationId, worker: &Worker) -> Option<Cause> {
        let app = self.apps.get(&generation.mount)?;
        let wear = app.seats(worker).first()?.wear.load(Acquire);
        let is_fresh = app.settings.isolation == Isolation::Fresh;
        Some(match worker.leaves {
            _ if worker.overdue => Cause::RequestTimeout,
            Some(Cause::Unfit) => Cause::Unfit,
            _ if wear == SPENT && is_fresh => Cause::Fresh,
            _ if wear == SPENT => Cause::MaxRequests,
            _ if !app.is_told_to_leave(worker) => Cause::Crashed,
            Some(cause) => cause,
            None if wear == WORN => Cause::MaxRequests,
            None if self.state.word() == "stopping" => Cause::Stopped,
            None if generation.number != self.state.serving(generation.mount) => Cause::Restarted,
            // The plan has fewer to keep, or somebody has told the process itself.
            None if worker.is_retired => Cause::ScaledDown,
            None => Cause::Asked,
        })
    }

    /// All workers of the generations that serve are to be replaced.
    pub(super) fn count_recycling(&mut self) {
        for ((generation, _), worker) in &mut self.children.workers {
            if generation.number == self.state.serving(generation.mount) {
                worker.leaves.get_or_insert(Cause::Recycled);
            }
        }
    }

    /// A restart or a rollback has been decided.
    pub(super) fn count_settled(&self, generation: GenerationId, outcome: &Result<(), String>) {
        let Some(lives) = self.lives(generation.mount) else { return };
        let which = match outcome {
            Err(_) => &lives.restarts_failed,
            // The mount itself has come.
            Ok(()) if generation.number == 1 && self.state.newest(generation.mount) == 1 => return,
            Ok(()) if generation.number == self.state.newest(generation.mount) => &lives.restarts,
            Ok(()) => &lives.rollbacks,
        };
        which.fetch_add(1, Relaxed);
    }
}
