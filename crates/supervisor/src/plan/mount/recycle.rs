//! Replacing workers while they serve: the relief stands ready before anyone leaves.

use super::*;

impl Generation {
    /// Whether another worker is to be forked now: up to the target, and one for each that is to be
    /// replaced, of those only a few at a time.
    pub(in super::super) fn wants_fork(&self, target: usize, now: Duration) -> bool {
        let staying = self.staying();
        let wanted = if staying < target {
            staying + self.undisturbed(target, now) < target
        } else {
            staying < target + self.worn() && self.coming() < reliefs_at_once(target)
        };
        wanted
            && matches!(self.mold, Mold::Ready { .. })
            && self.forking() < FORKS_AHEAD
            && now >= self.worker_backoff.due()
            && now >= self.fork_due
    }
}

/// Reliefs that get ready at the same time: getting ready costs what serving needs.
fn reliefs_at_once(target: usize) -> usize {
    (target / 4).max(1)
}

impl Mount {
    /// Only workers of the generation that serves are replaced; the others leave anyway.
    pub(in super::super) fn note_wear(&mut self, number: u64, nr: u16, wear: Wear) {
        let Some(generation) = self.generations.get_mut(&number) else { return };
        if let Some(worker) = generation.workers.get_mut(&nr) {
            worker.wear = match (worker.wear, wear) {
                (Wear::Due, _) => Wear::Due,
                (_, wear) => wear,
            };
        }
    }

    pub(super) fn note_recycle(&mut self, actions: &mut Vec<Action>) {
        let Some(generation) = self.generations.get_mut(&self.serving) else { return };
        for worker in generation.workers.values_mut() {
            worker.wear = Wear::Due;
        }
        actions.push(self.say("all workers are replaced, one after the other"));
    }
}
