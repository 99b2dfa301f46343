//! Workers that get one request each. Twice as many as run at once stand ready, unused; one that takes
//! a request no longer counts among them, so that the next is forked meanwhile. No more than are wanted
//! run at once: beyond that spares stay shut until one is answered.

use super::converge::retire;
use super::*;

/// While enough spares stand ready the next is forked once a request is answered, or when it has
/// lasted this long: a fork takes the processor from requests that run.
pub(in super::super) const UNDISTURBED: Duration = Duration::from_millis(10);

impl Mount {
    /// It has taken its request.
    pub(super) fn note_used(&mut self, number: u64, nr: u16, now: Duration) {
        let generation = self.generations.get_mut(&number);
        if let Some(worker) = generation.and_then(|g| g.workers.get_mut(&nr))
            && worker.lives()
        {
            worker.stage = Stage::Used { since: now };
        }
    }

    /// It has answered it, and leaves by itself: that is how it should be.
    pub(super) fn note_answered(
        &mut self,
        number: u64,
        nr: u16,
        now: Duration,
        actions: &mut Vec<Action>,
    ) {
        let until = now + self.limits.shutdown_timeout;
        let which = self.which(number);
        let Some(generation) = self.generations.get_mut(&number) else { return };
        let stage = generation.workers.get(&nr).map(|worker| worker.stage);
        if matches!(stage, Some(Stage::Living { .. } | Stage::Used { .. })) {
            retire(generation, which, nr, until, actions);
            generation.worker_backoff.note(now, false);
        }
    }

    /// It died in its request, or so soon after it that nobody has heard of the answer.
    pub(super) fn note_used_death(&mut self, number: u64, failed: bool, now: Duration) {
        let due = now + self.limits.err_respawn_interval;
        if let Some(generation) = self.generations.get_mut(&number).filter(|_| failed) {
            generation.fork_due = generation.fork_due.max(due);
        }
    }
}

impl Generation {
    /// Used workers whose successors can wait.
    pub(in super::super) fn undisturbed(&self, target: usize, now: Duration) -> usize {
        if self.living() < target.div_ceil(2) {
            return 0;
        }
        let young = |w: &&generation::Worker| matches!(w.stage, Stage::Used { since } if now < since + UNDISTURBED);
        self.workers.values().filter(young).count()
    }

    /// Lets spares take while fewer than `target` may or do.
    pub(super) fn open_spares(
        &mut self,
        which: GenerationId,
        target: usize,
        actions: &mut Vec<Action>,
    ) {
        let runs = |w: &generation::Worker| matches!(w.stage, Stage::Used { .. });
        let counts = |w: &&generation::Worker| runs(w) || (w.open && w.lives());
        let mut open = self.workers.values().filter(counts).count();
        for (nr, worker) in &mut self.workers {
            if open < target && worker.lives() && !worker.open {
                worker.open = true;
                open += 1;
                actions.push(Action::Open(which, *nr));
            }
        }
    }
}
