//! A world of simulated processes around a plan.

mod chaos;
mod deeds;
pub(super) use chaos::limits;
mod luck;
mod requests;

use super::super::*;
use luck::Luck;
use std::collections::{BTreeSet, BinaryHeap};

pub(super) const SEATS: u16 = 64;
pub(super) const TIMEOUT: Duration = Duration::from_secs(10);

/// What the world brings about later. Processes carry an id, so that what befalls one does not
/// befall its successor.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fate {
    MoldReady(GenerationId, u64),
    MoldFails(GenerationId, u64),
    MoldDies(GenerationId, u64),
    Forked(GenerationId, u16, u64),
    Up(GenerationId, u16, u64),
    Unfit(GenerationId, u16, u64),
    Takes(GenerationId, u16, u64),
    Spent(GenerationId, u16, u64),
    WorkerDies(GenerationId, u16, u64),
    FrontReady(u64),
    /// The front has finished with a mount.
    Unmounted(u64, MountId),
    FrontDrained(u64),
    FrontDies(u64),
    Chaos,
}

pub(super) struct SimWorker {
    pub(super) id: u64,
    pub(super) seat: u16,
    /// The mold that was asked for it.
    pub(super) mold: u64,
    pub(super) exists: bool,
    /// Takes requests, unless it is spent.
    pub(super) up: bool,
    pub(super) spent: bool,
    pub(super) retired: bool,
    /// A fresh one: may take its request; has taken it.
    pub(super) open: bool,
    pub(super) used: bool,
    pub(super) born: Duration,
}

pub(super) struct World {
    pub(super) luck: Luck,
    pub(super) state: State,
    pub(super) now: Duration,
    pub(super) fates: BinaryHeap<std::cmp::Reverse<(Duration, u64, Fate)>>,
    pub(super) ids: u64,
    pub(super) front: Option<u64>,
    pub(super) accepting: bool,
    /// Generation → (id, ready).
    pub(super) molds: BTreeMap<GenerationId, (u64, bool)>,
    pub(super) workers: BTreeMap<(GenerationId, u16), SimWorker>,
    /// By mount; none before its first generation serves.
    pub(super) serving: BTreeMap<MountId, u64>,
    /// What the front knows of.
    pub(super) routed: BTreeSet<MountId>,
    pub(super) exited: Option<u8>,
    pub(super) chaos: bool,
    /// Boots that failed in a row, and when the last one did, by generation.
    pub(super) failed_boots: BTreeMap<GenerationId, (u32, Duration)>,
    pub(super) stopping: bool,
    /// Clients ask for something all the time, and fresh workers have answered so many.
    pub(super) busy: bool,
    pub(super) answered: usize,
    /// The most workers that were ever wanted.
    pub(super) most: usize,
    pub(super) actions: usize,
    /// Those there have been.
    pub(super) mounts: u16,
    limits: Limits,
}

/// The mount that is there from the beginning.
pub(super) const FIRST: MountId = MountId(0);

/// A generation of it.
pub(super) fn first(number: u64) -> GenerationId {
    GenerationId { mount: FIRST, number }
}

impl World {
    pub(super) fn new(seed: u64, workers: u16, threads: u16) -> World {
        World::of(seed, 1, chaos::limits(seed, workers, threads))
    }

    /// With so many mounts.
    pub(super) fn of(seed: u64, mounts: u16, limits: Limits) -> World {
        let mut world = World {
            luck: Luck::new(seed),
            state: State::new(TIMEOUT),
            now: Duration::ZERO,
            fates: BinaryHeap::new(),
            ids: 0,
            front: None,
            accepting: false,
            molds: BTreeMap::new(),
            workers: BTreeMap::new(),
            serving: BTreeMap::new(),
            routed: BTreeSet::new(),
            exited: None,
            chaos: false,
            failed_boots: BTreeMap::new(),
            stopping: false,
            busy: false,
            answered: 0,
            most: 0,
            actions: 0,
            mounts: 0,
            limits,
        };
        (0..mounts).for_each(|_| world.mount());
        world
    }

    /// Another mount comes.
    pub(super) fn mount(&mut self) {
        let (id, tag) = (MountId(self.mounts), format!("mount {}: ", self.mounts));
        self.mounts += 1;
        self.tell(Event::Mount(id, tag, self.limits));
    }

    fn id(&mut self) -> u64 {
        self.ids += 1;
        self.ids
    }

    pub(super) fn later(&mut self, after: Duration, fate: Fate) {
        let id = self.id();
        self.fates.push(std::cmp::Reverse((self.now + after, id, fate)));
    }

    pub(super) fn tell(&mut self, event: Event) {
        let actions = plan(&mut self.state, event.clone(), self.now);
        let wanted = self.state.mounts().map(|id| usize::from(self.state.target(id))).max();
        self.most = self.most.max(wanted.unwrap_or(0));
        assert!(self.exited.is_none() || actions.is_empty(), "after the exit: {actions:?}");
        self.actions += actions.len();
        for action in actions {
            self.act(action);
        }
        // What is decided is decided: without an event and at the same time nothing follows.
        let more = plan(&mut self.state, Event::Tick, self.now);
        assert!(more.is_empty(), "not settled after {event:?}: {more:?}");
    }

    /// The worker, if it exists and is still the one that was meant.
    fn worker(&mut self, generation: GenerationId, nr: u16, id: u64) -> Option<&mut SimWorker> {
        self.workers.get_mut(&(generation, nr)).filter(|w| w.id == id && w.exists)
    }

    fn happen(&mut self, fate: Fate) {
        match fate {
            Fate::MoldReady(generation, id) => {
                if self.molds.get(&generation) == Some(&(id, false)) {
                    self.molds.insert(generation, (id, true));
                    self.failed_boots.remove(&generation);
                    self.tell(Event::MoldReady(generation));
                }
            }
            Fate::MoldFails(generation, id) => {
                if self.molds.get(&generation) == Some(&(id, false)) {
                    self.later(Duration::from_millis(1), Fate::MoldDies(generation, id));
                    self.tell(Event::MoldFailed(generation, "no database".into()));
                }
            }
            Fate::MoldDies(generation, id) => self.mold_dies(generation, id),
            Fate::Forked(generation, nr, id) => self.is_forked(generation, nr, id),
            Fate::Up(generation, nr, id) => {
                if let Some(worker) = self.worker(generation, nr, id) {
                    worker.up = true;
                    self.tell(Event::Up(generation, nr));
                }
            }
            Fate::Unfit(generation, nr, id) => {
                if self.worker(generation, nr, id).is_some() {
                    self.later(Duration::from_millis(1), Fate::WorkerDies(generation, nr, id));
                    self.tell(Event::Unfit(generation, nr, "no database".into()));
                }
            }
            Fate::Takes(generation, nr, id) => self.takes(generation, nr, id),
            Fate::Spent(generation, nr, id) => {
                if let Some(worker) = self.worker(generation, nr, id) {
                    worker.spent = true;
                    self.answered += 1;
                    self.tell(Event::Spent(generation, nr));
                }
            }
            Fate::WorkerDies(generation, nr, id) => {
                let worker = self.workers.get(&(generation, nr));
                if let Some(worker) = worker.filter(|w| w.id == id && w.exists) {
                    let failed = !worker.retired;
                    let served = self.now - worker.born > Duration::from_millis(50);
                    self.workers.remove(&(generation, nr));
                    self.tell(Event::WorkerDied { generation, nr, served, failed });
                }
            }
            Fate::FrontReady(id) if self.front == Some(id) => self.tell(Event::FrontReady),
            Fate::Unmounted(id, mount) if self.front == Some(id) => {
                self.tell(Event::Unmounted(mount));
            }
            Fate::Unmounted(..) => {}
            Fate::FrontDrained(id) if self.front == Some(id) => {
                self.later(Duration::from_millis(1), Fate::FrontDies(id));
                self.tell(Event::FrontDrained);
            }
            Fate::FrontDies(id) if self.front == Some(id) => {
                self.front = None;
                self.accepting = false;
                self.tell(Event::FrontDied);
            }
            Fate::FrontReady(_) | Fate::FrontDrained(_) | Fate::FrontDies(_) => {}
            Fate::Chaos => self.strike(),
        }
    }

    fn is_forked(&mut self, generation: GenerationId, nr: u16, id: u64) {
        let is_hooked = self.chaos && self.luck.chance(5);
        let worker = self.workers.get_mut(&(generation, nr)).filter(|w| w.id == id);
        if let Some(worker) = worker {
            worker.exists = true;
            worker.born = self.now;
            if is_hooked {
                // A hook of its mold has kept it from being forked.
                self.workers.remove(&(generation, nr));
                self.tell(Event::Unfit(generation, nr, "no fork".into()));
                let (served, failed) = (false, true);
                return self.tell(Event::WorkerDied { generation, nr, served, failed });
            }
            if self.chaos && self.luck.chance(10) {
                self.later(Duration::ZERO, Fate::WorkerDies(generation, nr, id));
            }
            let after = self.luck.millis(0, 20);
            match self.luck.below(100) {
                0..10 if self.chaos => self.later(after, Fate::Unfit(generation, nr, id)),
                // Hangs in a hook of the app's.
                10..15 if self.chaos => {}
                _ => self.later(after, Fate::Up(generation, nr, id)),
            }
            self.tell(Event::Forked(generation, nr));
        }
    }

    /// Lets the world turn until `end`, as the supervisor's loop would see it.
    fn turn(&mut self, end: Duration) {
        while self.exited.is_none() {
            let due = self.state.deadline(self.now);
            let fate = self.fates.peek().map(|next| next.0.0);
            let next = due.into_iter().chain(fate).min();
            let Some(next) = next.filter(|at| *at <= end) else { break };
            assert!(next >= self.now, "time runs backwards");
            self.now = next;
            if fate == Some(next) {
                if let Some(std::cmp::Reverse((_, _, fate))) = self.fates.pop() {
                    self.happen(fate);
                }
            } else {
                self.tell(Event::Tick);
            }
        }
        if self.exited.is_none() {
            self.now = end;
        }
    }

    pub(super) fn turn_for(&mut self, time: Duration) {
        self.turn(self.now + time);
    }

    pub(super) fn existing(&self, generation: GenerationId) -> usize {
        self.workers.iter().filter(|((g, _), w)| *g == generation && w.exists).count()
    }

    /// The generation of the first mount that serves.
    pub(super) fn serving(&self) -> u64 {
        self.serving[&FIRST]
    }

    pub(super) fn target(&self) -> usize {
        usize::from(self.state.target(FIRST))
    }

    /// What holds once the bad luck is over.
    pub(super) fn assert_calm(&self, seed: u64) {
        let (mut all, mut molds) = (0, Vec::new());
        for id in self.state.mounts() {
            let target = Limits { workers: self.state.target(id), ..self.limits }.ready();
            let serving = GenerationId { mount: id, number: self.serving[&id] };
            assert_eq!(self.existing(serving), target, "seed {seed}: workers of {serving:?}");
            assert!(self.routed.contains(&id), "seed {seed}: {id:?} is routed");
            all += target;
            molds.push(serving);
        }
        assert_eq!(self.workers.len(), all, "seed {seed}: all workers");
        assert_eq!(self.routed.len(), molds.len(), "seed {seed}: nothing else is routed");
        assert!(self.front.is_some() && self.accepting, "seed {seed}: the front accepts");
        let found: Vec<_> = self.molds.keys().copied().collect();
        assert_eq!(found, molds, "seed {seed}: molds");
    }

    /// Other limits of the first mount from now on.
    pub(super) fn limit(&mut self, change: impl Fn(&mut Limits)) {
        change(&mut self.limits);
        self.tell(Event::Limit(FIRST, self.limits));
    }

    pub(super) fn stop(&mut self, event: Event) {
        self.chaos = false;
        self.stopping = true;
        self.tell(event);
    }
}
