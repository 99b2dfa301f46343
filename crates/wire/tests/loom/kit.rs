//! The roles as the models play them: the rules of front, worker and supervisor, without the I/O.

use loom::sync::{Condvar, Mutex};
use loom::thread::{JoinHandle, spawn};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use wire::doorbell::Rank;
use wire::slot::Word;
use wire::sync::{Ordering::*, mortal, step};
use wire::{Board, Claim, State};

/// The board and what the models keep beside it.
pub struct World {
    pub board: Box<Board>,
    /// The eventfd of the one front thread.
    pub eventfd: Event,
    /// Requests whose fate is still open. The bookkeeping of the model, invisible to loom.
    open: AtomicU32,
    /// How often each request was begun.
    pub begun: [AtomicU32; 4],
    /// Seats break the rule of passing wakes on.
    pub selfish: AtomicBool,
    /// Seats in use.
    seats: usize,
}

impl World {
    /// `requests` will be put; the two seats retire when each has met its end.
    pub fn new(requests: u32) -> Arc<World> {
        World::with_seats(2, requests)
    }

    /// The same with another number of seats.
    pub fn with_seats(seats: usize, requests: u32) -> Arc<World> {
        let board = Board::boxed();
        board.bells.seats_used.store(seats as u32, Relaxed);
        board.header.serving.store(1, Relaxed);
        Arc::new(World {
            board,
            eventfd: Event::default(),
            open: AtomicU32::new(requests),
            begun: Default::default(),
            selfish: AtomicBool::default(),
            seats,
        })
    }

    /// A request has met its end. After the last one the seats may leave.
    pub fn closed(&self) {
        if self.open.fetch_sub(1, SeqCst) == 1 {
            self.dismiss();
        }
    }

    /// Lets all seats leave.
    pub fn dismiss(&self) {
        for seat in &self.board.seats[..self.seats] {
            seat.retire.store(1, Relaxed);
            seat.ring();
        }
    }

    /// Front: fills `slot` with request `number` and puts it; returns its position.
    pub fn put(&self, slot: u32, number: u32) -> u64 {
        self.fill(slot, number);
        let position = self.board.put(slot).unwrap();
        self.board.ring_one();
        position
    }

    /// Front: FREE → FILLING, with something in it that the worker must see.
    pub fn fill(&self, slot: u32, number: u32) {
        let head = &self.board.slots[slot as usize];
        head.cancelled.store(0, Relaxed);
        head.returns.store(0, Relaxed);
        head.head_len.store(number, Relaxed);
        let filling = Word { state: State::Filling, owner: 0, position: 0 };
        head.state.store(filling.pack(), Relaxed);
    }

    /// Front: → FREE.
    pub fn free(&self, slot: u32) {
        self.board.slots[slot as usize].state.store(0, Release);
    }

    /// Worker: calls the app, unless nobody wants the reply any more.
    pub fn run(&self, claim: Claim) {
        if self.board.begin(claim) {
            let number = self.board.slots[claim.slot as usize].head_len.load(Relaxed);
            assert_ne!(number, 0, "the worker sees an older request than it has taken");
            self.begun[number as usize - 1].fetch_add(1, SeqCst);
        }
    }

    /// Worker: ends a claim and rings the front if it sleeps.
    pub fn finish(&self, claim: Claim) {
        self.board.complete(claim);
        if self.board.fronts[0].must_ring() {
            self.eventfd.ring();
        }
    }

    /// Front: sleeps until something is noted, then looks at it.
    pub fn front_turn(&self, look: impl FnMut(u32)) {
        let bell = &self.board.fronts[0];
        if bell.announce_sleep() {
            self.eventfd.wait();
            bell.awake();
        }
        bell.drain(look);
    }

    /// A new front's start: looks at what was noted, and frees what is DONE for nobody.
    pub fn sweep(&self) {
        self.board.fronts[0].drain(|slot| self.free_done(slot));
    }

    /// Front: a slot was noted; frees it if its reply is complete.
    pub fn free_done(&self, slot: u32) {
        if self.state(slot) == State::Done {
            self.free(slot);
        }
    }

    pub fn state(&self, slot: u32) -> State {
        self.board.slots[slot as usize].word().state
    }

    /// What must hold at the end of every model.
    pub fn all_settled(&self, begun_at_most: u32) {
        assert!(self.board.all_free(), "a slot is lost");
        for begun in &self.begun {
            assert!(begun.load(SeqCst) <= begun_at_most, "a request ran twice");
        }
    }
}

/// An eventfd: a system call rings it, so a death falls before or after, never into the middle.
#[derive(Default)]
pub struct Event(Mutex<bool>, Condvar);

impl Event {
    pub fn ring(&self) {
        step();
        *self.0.lock().unwrap() = true;
        self.1.notify_one();
    }

    pub fn wait(&self) {
        step();
        let mut rung = self.0.lock().unwrap();
        while !*rung {
            rung = self.1.wait(rung).unwrap();
        }
        *rung = false;
    }
}

/// A worker thread with a process to itself.
pub struct Seat<'a> {
    pub world: &'a World,
    pub index: u16,
    pub generation: u64,
}

impl Seat<'_> {
    /// Sleeps until there is a request to run; `None` when the seat is to be left.
    pub fn next(&self) -> Option<Claim> {
        loop {
            let board = &self.world.board;
            let seat = &board.seats[self.index as usize];
            seat.prepare();
            let serves = board.header.serving.load(Relaxed) == self.generation;
            if serves {
                board.bells.arm(self.index, Rank::Idle);
            }
            let mut claim = self.look();
            if claim.is_none() && seat.retire.load(Relaxed) == 0 {
                seat.sleep(None);
            }
            let owes_wake = serves && !board.bells.disarm(self.index, Rank::Idle);
            if claim.is_none() {
                claim = self.look();
            }
            if owes_wake {
                self.pass_wake_on();
            }
            if claim.is_some() || seat.retire.load(Relaxed) != 0 {
                return claim;
            }
        }
    }

    fn look(&self) -> Option<Claim> {
        self.world.board.take(self.index, self.generation)
    }

    /// A wake that was meant for this seat goes to the next one if something still waits.
    pub fn pass_wake_on(&self) {
        if !self.world.selfish.load(SeqCst) && self.world.board.first_waiting().is_some() {
            self.world.board.ring_one();
        }
    }
}

/// Starts a thread that works in `world`.
pub fn thread<T: 'static>(
    world: &Arc<World>,
    body: impl FnOnce(&World) -> T + 'static,
) -> JoinHandle<T> {
    let world = world.clone();
    spawn(move || body(&world))
}

/// A worker that takes one request and is busy with it from then on.
pub fn one_request(world: &Arc<World>, index: u16, generation: u64) -> JoinHandle<Option<Claim>> {
    thread(world, move |world| {
        let claim = Seat { world, index, generation }.next();
        if let Some(claim) = claim {
            world.run(claim);
            world.closed();
        }
        claim
    })
}

/// A worker that takes requests until every one has met its end.
pub fn worker(world: &Arc<World>, index: u16, generation: u64) -> JoinHandle<()> {
    thread(world, move |world| {
        while let Some(claim) = (Seat { world, index, generation }).next() {
            world.run(claim);
            world.finish(claim);
            world.closed();
        }
    })
}

/// A worker that takes requests until the model dismisses it.
pub fn worker_for_ever(world: &Arc<World>) -> JoinHandle<()> {
    thread(world, move |world| {
        while let Some(claim) = (Seat { world, index: 0, generation: 1 }).next() {
            world.run(claim);
            world.finish(claim);
        }
    })
}

/// Explores `model`. The bound on preemptions is what makes it end; `LOOM_MAX_PREEMPTIONS`
/// overrides it for a longer search.
pub fn explore(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(preemptions));
    builder.max_branches = 5_000;
    let runs = Arc::new(AtomicU32::new(0));
    let counter = runs.clone();
    let began = std::time::Instant::now();
    builder.check(move || {
        counter.fetch_add(1, SeqCst);
        model();
    });
    let name = std::thread::current().name().unwrap_or_default().to_owned();
    println!("{name}: {} interleavings in {:.1?}", runs.load(SeqCst), began.elapsed());
}

/// Explores `model` with a role that dies after step 0, 1, 2 … until it no longer does.
pub fn explore_deaths(preemptions: usize, model: impl Fn(Death) + Clone + Sync + Send + 'static) {
    for steps in 0.. {
        let death = Death { steps, fell: Arc::default() };
        let (model, inner) = (model.clone(), death.clone());
        explore(preemptions, move || model(inner.clone()));
        if !death.fell.load(SeqCst) {
            assert!(steps > 0, "the role never takes a step");
            return;
        }
    }
}

/// When the marked role dies.
#[derive(Clone)]
pub struct Death {
    steps: u32,
    fell: Arc<AtomicBool>,
}

impl Death {
    /// Runs the role's `body`; `None` if it died.
    pub fn strikes<T>(&self, body: impl FnOnce() -> T) -> Option<T> {
        let end = mortal(self.steps, body);
        if end.is_none() {
            self.fell.store(true, SeqCst);
        }
        end
    }
}
