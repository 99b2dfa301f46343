//! The queue against a simple one: any sequence of puts, takes, cancels, deaths and switches.
#![cfg(not(loom))]

use proptest::prelude::*;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, HashSet};
use wire::layout::RING;
use wire::queue::Full;
use wire::slot::{RETURNS_MAX, Word};
use wire::sync::Ordering::*;
use wire::{Board, Claim, SLOTS, Segment, State};

const OWNERS: u16 = 4;

#[derive(Clone, Debug)]
enum Step {
    /// The front fills and puts so many.
    Put(usize),
    /// A worker of this seat takes so many.
    Take(u16, usize),
    /// The front cancels the n-th that waits.
    Cancel(usize),
    /// A front thread sheds what in its half of the slots waits longer than the n-th.
    Shed(usize, bool),
    /// The client of the n-th that is running goes away.
    Abandon(usize),
    /// The worker of this seat begins all it has.
    Begin(u16),
    /// It completes all it has, and the front frees them.
    Complete(u16),
    /// It is killed and settled.
    Kill(u16, bool),
    /// The front is killed and settled.
    KillFront,
    /// Hints that lead nowhere are cleared.
    Prune,
    /// Another generation serves; takes fail until it is switched back.
    Switch(bool),
}

fn step() -> impl Strategy<Value = Step> {
    let owner = 0..OWNERS;
    let many = prop_oneof![8 => 1..4usize, 1 => 1000..3000usize];
    prop_oneof![
        6 => many.clone().prop_map(Step::Put),
        6 => (owner.clone(), many).prop_map(|(o, n)| Step::Take(o, n)),
        2 => any::<usize>().prop_map(Step::Cancel),
        2 => any::<(usize, bool)>().prop_map(|(n, upper)| Step::Shed(n, upper)),
        1 => any::<usize>().prop_map(Step::Abandon),
        2 => owner.clone().prop_map(Step::Begin),
        3 => owner.clone().prop_map(Step::Complete),
        2 => (owner, any::<bool>()).prop_map(|(o, retry)| Step::Kill(o, retry)),
        1 => Just(Step::KillFront),
        1 => Just(Step::Prune),
        1 => any::<bool>().prop_map(Step::Switch),
    ]
}

/// A request somebody runs.
struct Running {
    claim: Claim,
    begun: bool,
    abandoned: bool,
    orphaned: bool,
}

/// What the board should be, in the simplest terms.
struct Model<'a> {
    board: &'a Board,
    free: Vec<u32>,
    /// Position → slot of what waits.
    waiting: BTreeMap<u64, u32>,
    running: Vec<Running>,
    returns: HashMap<u32, u32>,
    serves: bool,
    noted: HashSet<u32>,
}

impl Model<'_> {
    fn play(&mut self, step: Step) {
        match step {
            Step::Put(count) => (0..count).for_each(|_| self.put()),
            Step::Take(owner, count) => (0..count).for_each(|_| self.take(owner)),
            Step::Cancel(n) => self.cancel(n),
            Step::Shed(n, upper) => self.shed(n, upper),
            Step::Abandon(n) => self.abandon(n),
            Step::Begin(owner) => self.begin(owner),
            Step::Complete(owner) => self.complete(owner),
            Step::Kill(owner, retry) => self.kill(owner, retry),
            Step::KillFront => self.kill_front(),
            Step::Prune => {
                self.board.prune_returned();
            }
            Step::Switch(serves) => {
                self.serves = serves;
                self.board.header.serving.store(if serves { 1 } else { 2 }, Release);
            }
        }
        let first = self.waiting.first_key_value().map(|(_, slot)| *slot);
        assert_eq!(self.board.first_waiting(), first);
        // Those that were taken once lie below the head.
        let never_taken = self.waiting.values().filter(|slot| self.returns[slot] == 0).count();
        assert!(self.board.waiting() >= never_taken as u64);
        assert!(!self.waiting.is_empty() || self.board.waiting() == 0);
    }

    fn put(&mut self) {
        let Some(slot) = self.free.pop() else { return };
        let head = &self.board.slots[slot as usize];
        head.cancelled.store(0, Relaxed);
        head.returns.store(0, Relaxed);
        // Every second may be run twice, as a GET may.
        head.idempotent.store(slot % 2, Relaxed);
        head.queued_ns.store(self.board.queue.tail.load(Relaxed), Relaxed);
        head.state.store(Word { state: State::Filling, owner: 0, position: 0 }.pack(), Release);
        match self.board.put(slot) {
            Ok(position) => {
                assert!(self.waiting.last_key_value().is_none_or(|(last, _)| *last < position));
                self.waiting.insert(position, slot);
                self.returns.insert(slot, 0);
            }
            Err(Full) => {
                let (oldest, _) = self.waiting.first_key_value().expect("nothing waits, yet full");
                assert!(self.board.queue.tail.load(Relaxed) - oldest >= RING as u64);
                head.state.store(0, Release);
                self.free.push(slot);
            }
        }
    }

    fn take(&mut self, owner: u16) {
        let claim = self.board.take(owner, 1);
        let first = if self.serves { self.waiting.pop_first() } else { None };
        assert_eq!(claim.map(|claim| (claim.position, claim.slot)), first);
        if let Some(claim) = claim {
            assert_eq!(claim.owner, owner);
            self.running.push(Running { claim, begun: false, abandoned: false, orphaned: false });
        }
    }

    fn cancel(&mut self, n: usize) {
        if self.waiting.is_empty() {
            return;
        }
        let position = *self.waiting.keys().nth(n % self.waiting.len()).unwrap();
        let slot = self.waiting.remove(&position).unwrap();
        assert!(self.board.cancel(slot, position));
        assert!(!self.board.cancel(slot, position), "cancelled twice");
        self.free(slot);
    }

    fn shed(&mut self, n: usize, upper: bool) {
        let slots = if upper { SLOTS / 2..SLOTS } else { 0..SLOTS / 2 };
        let nth = n % (self.waiting.len() + 1);
        // `put` takes the position for the time.
        let before = self.waiting.keys().nth(nth).copied().unwrap_or(u64::MAX);
        let its = |position: &u64, slot: &u32| {
            *position < before && slots.contains(&(*slot as usize)) && self.returns[slot] == 0
        };
        let expected: Vec<(u64, u32)> =
            self.waiting.iter().map(|(p, s)| (*p, *s)).filter(|(p, s)| its(p, s)).collect();
        let shed = RefCell::new(Vec::new());
        self.board.shed(&slots, before, |slot| shed.borrow_mut().push(slot));
        let slots: Vec<u32> = expected.iter().map(|(_, slot)| *slot).collect();
        assert_eq!(shed.into_inner(), slots);
        for (position, slot) in expected {
            let word = self.board.slots[slot as usize].word();
            assert_eq!((word.state, word.position), (State::Filling, position));
            self.waiting.remove(&position);
            self.free(slot);
        }
    }

    fn abandon(&mut self, n: usize) {
        if self.running.is_empty() {
            return;
        }
        let n = n % self.running.len();
        let running = &mut self.running[n];
        assert!(!self.board.cancel(running.claim.slot, running.claim.position));
        self.board.abandon(running.claim.slot);
        running.abandoned = true;
    }

    fn begin(&mut self, owner: u16) {
        for running in self.running.iter_mut().filter(|r| r.claim.owner == owner && !r.begun) {
            let gone = running.abandoned || running.orphaned;
            assert_eq!(self.board.begin(running.claim), !gone);
            running.begun = !gone;
        }
    }

    fn of(&mut self, owner: u16) -> Vec<Running> {
        let (its, others) = self.running.drain(..).partition(|r| r.claim.owner == owner);
        self.running = others;
        its
    }

    fn complete(&mut self, owner: u16) {
        for running in self.of(owner) {
            self.board.complete(running.claim);
            self.free_done(running.claim.slot);
        }
    }

    fn kill(&mut self, owner: u16, retry: bool) {
        // It may have died collecting.
        self.board.seats[owner as usize].collecting.store(1, Relaxed);
        let settled = self.board.settle_seats(owner, 1, retry);
        assert_eq!(settled.ring_fronts, u64::MAX);
        assert_eq!(self.board.seats[owner as usize].collecting.load(Relaxed), 0);
        let (mut returned, mut lost) = (0, 0);
        for running in self.of(owner) {
            let slot = running.claim.slot;
            let returns = self.returns.get_mut(&slot).unwrap();
            let allowed = !running.begun || (retry && slot % 2 == 1);
            let wanted = !running.abandoned && !running.orphaned;
            if *returns < RETURNS_MAX && wanted && allowed {
                *returns += 1;
                returned += 1;
                self.waiting.insert(running.claim.position, slot);
            } else {
                lost += 1;
                self.free_done(slot);
            }
        }
        assert_eq!((settled.returned, settled.lost), (returned, lost));
    }

    fn kill_front(&mut self) {
        self.board.settle_front();
        self.free.extend(std::mem::take(&mut self.waiting).into_values());
        self.running.iter_mut().for_each(|running| running.orphaned = true);
    }

    fn free_done(&mut self, slot: u32) {
        self.board.fronts[0].drain(|slot| {
            self.noted.insert(slot);
        });
        assert!(self.noted.remove(&slot), "the front is not told");
        assert_eq!(self.board.slots[slot as usize].word().state, State::Done);
        self.free(slot);
    }

    fn free(&mut self, slot: u32) {
        self.board.slots[slot as usize].state.store(0, Release);
        self.free.push(slot);
    }
}

/// One segment for all cases: positions go on from case to case, round and round the ring.
fn run(segment: &Segment, steps: Vec<Step>) {
    let board = segment.board();
    board.header.serving.store(1, Release);
    let mut model = Model {
        board,
        free: (0..SLOTS as u32).collect(),
        waiting: BTreeMap::new(),
        running: Vec::new(),
        returns: HashMap::new(),
        serves: true,
        noted: HashSet::new(),
    };
    steps.into_iter().for_each(|step| model.play(step));
    model.play(Step::KillFront);
    (0..OWNERS).for_each(|owner| model.complete(owner));
    assert!(board.all_free() && board.prune_returned());
    assert_eq!(model.free.len(), SLOTS);
}

#[test]
fn the_queue_is_a_queue() {
    let segment = Segment::create().unwrap();
    let config = ProptestConfig { cases: 150, ..ProptestConfig::default() };
    proptest!(config, |(steps in prop::collection::vec(step(), 0..120))| run(&segment, steps));
}

/// One waits at the head and the ring behind it fills with cancelled ones: full, but not for ever.
#[test]
fn a_full_ring_says_so_and_recovers() {
    let segment = Segment::create().unwrap();
    let board = segment.board();
    board.header.serving.store(1, Release);
    assert_eq!(board.put(0), Ok(0));
    for position in 1..RING as u64 {
        assert_eq!(board.put(1), Ok(position));
        assert!(board.cancel(1, position));
    }
    assert_eq!(board.put(1), Err(Full));
    assert_eq!(board.take(0, 1).map(|claim| claim.slot), Some(0));
    assert_eq!(board.put(1), Ok(RING as u64));
    assert_eq!(board.first_waiting(), Some(1));
}
