//! A world of fresh workers, and the requests that they get one each of.

use super::*;

impl World {
    /// Fresh workers instead of others.
    pub(in super::super) fn fresh(seed: u64, workers: u16) -> World {
        World::of(seed, 1, Limits { fresh: true, ..chaos::limits(seed, workers, 1) })
    }

    pub(super) fn open(&mut self, generation: GenerationId, nr: u16) {
        let worker = self.workers.get_mut(&(generation, nr)).expect("a worker to let in");
        assert!(worker.up && !worker.open && !worker.retired, "one that is no spare");
        worker.open = true;
        let id = worker.id;
        self.asked_soon(generation, nr, id);
    }

    fn asked_soon(&mut self, generation: GenerationId, nr: u16, id: u64) {
        if self.busy {
            let after = self.luck.millis(0, 50);
            self.later(after, Fate::Takes(generation, nr, id));
        }
    }

    pub(super) fn takes(&mut self, generation: GenerationId, nr: u16, id: u64) {
        let serves = self.serving.get(&generation.mount) == Some(&generation.number);
        let Some(worker) = self.worker(generation, nr, id).filter(|w| !w.retired) else { return };
        assert!(worker.open && !worker.used, "one request, and not before it was let in");
        if !serves {
            return self.asked_soon(generation, nr, id);
        }
        worker.used = true;
        assert!(self.running(generation) <= self.most, "more at once than there are workers");
        let lasts = self.luck.millis(1, 199);
        self.later(lasts, Fate::Spent(generation, nr, id));
        self.tell(Event::Worn { generation, nr, at_limit: true });
    }

    /// Requests that run.
    pub(in super::super) fn running(&self, generation: GenerationId) -> usize {
        let of_it = self.workers.iter().filter(|((g, _), _)| *g == generation);
        of_it.filter(|(_, w)| w.used && !w.spent).count()
    }
}
