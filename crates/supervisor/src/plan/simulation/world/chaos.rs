//! What may go wrong, and what people may do at any time.

use super::*;

/// Settings that differ from world to world.
pub(in super::super) fn limits(seed: u64, workers: u16, threads: u16) -> Limits {
    let seconds = |below: u64| Duration::from_secs(seed % below);
    Limits {
        workers,
        fresh: false,
        threads,
        seats: SEATS,
        shutdown_timeout: TIMEOUT,
        spawn_interval: Duration::ZERO,
        err_respawn_interval: seconds(3) / 2,
        start_timeout: Duration::from_secs(20),
        rollback_window: seconds(2) * 20,
    }
}

impl World {
    /// A minute in which anything happens; it goes on until `chaos` is taken back.
    pub(in super::super) fn turn_through_chaos(&mut self) {
        self.chaos = true;
        self.later(Duration::ZERO, Fate::Chaos);
        self.turn_for(Duration::from_secs(60));
    }

    pub(super) fn mold_dies(&mut self, generation: GenerationId, id: u64) {
        let Some((found, ready)) = self.molds.get(&generation).copied() else { return };
        if found != id {
            return;
        }
        self.molds.remove(&generation);
        if !ready {
            let entry = self.failed_boots.entry(generation).or_insert((0, self.now));
            *entry = (entry.0 + 1, self.now);
        }
        // Those it was forking never come to be.
        self.workers.retain(|_, worker| worker.exists || worker.mold != id);
        self.tell(Event::MoldDied(generation, "signal 9".into()));
    }

    /// One blow, and perhaps a storm of them.
    pub(super) fn strike(&mut self) {
        if !self.chaos || self.exited.is_some() {
            return;
        }
        let blows = if self.luck.chance(5) { 30 } else { 1 };
        for _ in 0..blows {
            let kind = self.luck.below(20);
            let id = self.some_mount();
            match kind {
                0..=5 => {
                    let living: Vec<_> = self
                        .workers
                        .iter()
                        .filter(|(_, w)| w.exists)
                        .map(|(k, w)| (*k, w.id))
                        .collect();
                    if !living.is_empty() {
                        let ((generation, nr), id) =
                            living[self.luck.below(living.len() as u64) as usize];
                        self.later(Duration::ZERO, Fate::WorkerDies(generation, nr, id));
                    }
                }
                6 | 7 => {
                    let molds: Vec<_> = self.molds.iter().map(|(g, (id, _))| (*g, *id)).collect();
                    if !molds.is_empty() {
                        let (generation, id) = molds[self.luck.below(molds.len() as u64) as usize];
                        self.later(Duration::ZERO, Fate::MoldDies(generation, id));
                    }
                }
                8 => {
                    if let Some(id) = self.front {
                        self.later(Duration::ZERO, Fate::FrontDies(id));
                    }
                }
                9 => self.tell(Event::Restart(id)),
                10 => self.tell(Event::More(id)),
                11 => self.tell(Event::Fewer(id)),
                12 => self.tell(Event::Rollback(id)),
                13 => self.tell(Event::Recycle(id)),
                14 => {
                    let workers = self.luck.below(7) as u16;
                    self.tell(Event::Scale(id, workers));
                }
                15 if self.state.mounts().count() < 4 => self.mount(),
                16 if self.staying() > 1 => self.tell(Event::Unmount(id)),
                _ => self.wear(),
            }
        }
        let after = self.luck.millis(1, 3000);
        self.later(after, Fate::Chaos);
    }

    fn staying(&self) -> usize {
        self.state.mounts().filter(|id| self.state.standing(*id) != "leaving").count()
    }

    fn some_mount(&mut self) -> MountId {
        if self.staying() == 0 {
            self.mount();
        }
        let all: Vec<MountId> = self.state.mounts().collect();
        all[self.luck.below(all.len() as u64) as usize]
    }

    /// A worker has had enough memory, or nears its limit of requests.
    fn wear(&mut self) {
        let living: Vec<_> =
            self.workers.iter().filter(|(_, w)| w.up).map(|(key, w)| (*key, w.id)).collect();
        if living.is_empty() {
            return;
        }
        let ((generation, nr), id) = living[self.luck.below(living.len() as u64) as usize];
        let at_limit = self.luck.chance(50) && !self.limits.fresh;
        if at_limit {
            let after = self.luck.millis(0, 2000);
            self.later(after, Fate::Spent(generation, nr, id));
        }
        self.tell(Event::Worn { generation, nr, at_limit });
    }
}
