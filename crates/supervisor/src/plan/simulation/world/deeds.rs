//! What the plan wants done, as the world does it: slowly, and not always.

use super::*;

impl World {
    pub(super) fn act(&mut self, action: Action) {
        match action {
            Action::StartFront => self.start_front(),
            Action::Accept => {
                assert!(
                    self.front.is_some()
                        && self.state.mounts().all(|id| {
                            self.serving.contains_key(&id) || self.state.standing(id) != "serving"
                        })
                );
                self.accepting = true;
            }
            Action::Drain => {
                let front = self.front.expect("a front to drain");
                // One in five clients keeps the front for longer than anyone is patient.
                let lasts = if self.luck.chance(20) { TIMEOUT * 3 } else { TIMEOUT / 5 };
                self.later(lasts, Fate::FrontDrained(front));
            }
            Action::KillFront => {
                let front = self.front.expect("a front to kill");
                self.later(Duration::from_millis(1), Fate::FrontDies(front));
            }
            Action::StartMold(generation) => self.start_mold(generation),
            Action::QuitMold(generation) => {
                let (id, ready) = self.molds[&generation];
                assert!(ready && !self.workers.keys().any(|(g, _)| *g == generation));
                // Some hang in a handler of the app's.
                if self.luck.chance(80) {
                    let after = self.luck.millis(1, 500);
                    self.later(after, Fate::MoldDies(generation, id));
                }
            }
            Action::KillMold(generation) => {
                let (id, _) = self.molds[&generation];
                self.later(Duration::from_millis(1), Fate::MoldDies(generation, id));
            }
            Action::Fork { generation, nr, seat } => self.fork(generation, nr, seat),
            Action::Open(generation, nr) => self.open(generation, nr),
            Action::Retire(generation, nr) => {
                let worker = self.workers.get_mut(&(generation, nr)).expect("a worker to retire");
                worker.retired = true;
                let (id, used) = (worker.id, worker.spent && worker.used);
                // Some sit in an endless request.
                if used || self.luck.chance(85) {
                    let after = self.luck.millis(0, if used { 5 } else { 3000 });
                    self.later(after, Fate::WorkerDies(generation, nr, id));
                }
            }
            Action::Kill(generation, nr) => {
                let id = self.workers[&(generation, nr)].id;
                self.later(Duration::from_millis(1), Fate::WorkerDies(generation, nr, id));
            }
            Action::Serve(generation) => {
                assert!(self.workers.iter().any(|((g, _), w)| *g == generation && w.up));
                let before = self.serving.insert(generation.mount, generation.number);
                assert_ne!(before, Some(generation.number));
            }
            Action::Route(id) => {
                assert!(self.serving.contains_key(&id) && self.routed.insert(id));
            }
            Action::Unroute(id) => self.unroute(id),
            Action::Forget(id) => self.forget(id),
            Action::Yield | Action::Announce | Action::Say(_) | Action::Settled { .. } => {}
            Action::Exit(code) => self.exited = Some(code),
        }
    }

    fn start_front(&mut self) {
        assert!(self.front.is_none(), "two fronts");
        assert!(!self.stopping, "a front while stopping");
        let id = self.id();
        self.front = Some(id);
        self.routed = self.state.routed().collect();
        self.accepting = false;
        if self.chaos && self.luck.chance(20) {
            self.later(Duration::from_millis(2), Fate::FrontDies(id));
        } else {
            let after = self.luck.millis(1, 50);
            self.later(after, Fate::FrontReady(id));
        }
    }

    fn start_mold(&mut self, generation: GenerationId) {
        assert!(!self.molds.contains_key(&generation), "two molds of a generation");
        assert!(!self.stopping, "a mold while stopping");
        if let Some((failures, last)) = self.failed_boots.get(&generation) {
            let least = match failures {
                0 | 1 => Duration::ZERO,
                n => Duration::from_millis(100 << (n - 2).min(6)),
            };
            // A quiet half minute makes the past forgotten; a slow boot can be as long.
            assert!(
                self.now - *last >= least || least > Duration::from_secs(10),
                "boot {failures} of {generation:?} after {:?}",
                self.now - *last
            );
        }
        let id = self.id();
        self.molds.insert(generation, (id, false));
        let slow = if self.luck.chance(10) { 20_000 } else { 500 };
        let after = self.luck.millis(1, slow);
        let fate = match self.luck.below(100) {
            0..20 if self.chaos => Fate::MoldFails(generation, id),
            20..30 if self.chaos => Fate::MoldDies(generation, id),
            _ => Fate::MoldReady(generation, id),
        };
        self.later(after, fate);
    }

    fn fork(&mut self, generation: GenerationId, nr: u16, seat: u16) {
        let (mold, ready) = self.molds[&generation];
        assert!(ready, "a fork from a mold that is not ready");
        let mount = &self.state.mounts[&generation.mount];
        let threads = mount.limits.threads;
        assert!(seat + threads <= SEATS);
        let same = self.workers.iter().filter(|((g, _), _)| g.mount == generation.mount);
        for (other, worker) in same {
            let apart = worker.seat + threads <= seat || seat + threads <= worker.seat;
            assert!(apart, "{other:?} and {:?} share a seat", (generation, nr));
        }
        assert!(!self.workers.contains_key(&(generation, nr)), "a number twice");
        let id = self.id();
        let worker = SimWorker {
            id,
            seat,
            mold,
            exists: false,
            up: false,
            spent: false,
            retired: false,
            open: false,
            used: false,
            born: self.now,
        };
        self.workers.insert((generation, nr), worker);
        let found = &self.state.mounts[&generation.mount].generations[&generation.number];
        let limits = Limits { workers: self.state.target(generation.mount), ..self.limits };
        let most = limits.ready() + found.worn();
        assert!(found.staying() <= most, "more workers than wanted");
        let after = self.luck.millis(1, 20);
        self.later(after, Fate::Forked(generation, nr, id));
    }

    fn unroute(&mut self, id: MountId) {
        assert!(self.routed.remove(&id), "a mount that is not routed");
        let front = self.front.expect("a front that is told");
        let lasts = if self.luck.chance(20) { TIMEOUT * 3 } else { TIMEOUT / 5 };
        self.later(lasts, Fate::Unmounted(front, id));
    }

    fn forget(&mut self, id: MountId) {
        let left = self.molds.keys().chain(self.workers.keys().map(|(g, _)| g));
        assert!(left.into_iter().all(|generation| generation.mount != id), "{id:?}");
        self.serving.remove(&id);
    }
}
