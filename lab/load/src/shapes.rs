//! When and on which connection requests start: closed loop, open loop, burst.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::done::{Done, Failure};
use crate::draw::{Mix, Schedule};
use crate::engine::{Engine, SECOND};
use crate::ledger::Ledger;

/// A connection of a closed loop that broke rests this long, or a dead server makes the generator
/// spin and counts failures by the million.
pub const REST: u64 = SECOND / 100;
/// Requests started in a row, before answers have their turn.
const STARTS: usize = 256;

/// What a shape works on.
pub struct Field {
    /// The connections.
    pub engine: Engine,
    /// The books.
    pub ledger: Ledger,
    /// Draws the kind of the next request.
    pub mix: Mix,
}

impl Field {
    fn start_now(&mut self, conn: usize, kind: usize) {
        let now = self.engine.now();
        self.ledger.due(kind, now);
        self.engine.start(conn, kind, now, now);
    }
}

/// A way to spread requests over time.
pub trait Pace {
    /// Starts what is due.
    fn step(&mut self, field: &mut Field, now: u64);
    /// A request of this shape has ended.
    fn ended(&mut self, field: &mut Field, one: &Done);
    /// When to step again, if nothing ends before.
    fn next(&self) -> u64;
    /// Nothing will be started any more.
    fn over(&self, field: &Field, now: u64) -> bool;
}

/// Connections that ask again when they have the answer, each after its pause.
#[derive(Default)]
pub struct Closed {
    waiting: BinaryHeap<Reverse<(u64, usize)>>,
    /// Of connections beside: kind and pause in nanoseconds, by connection.
    beside: Vec<(usize, u64)>,
}

impl Closed {
    /// Connections that ask whatever the mix draws, without a pause.
    pub fn mixed(engine: &mut Engine, connections: usize) -> Self {
        let mut all = Self::default();
        for _ in 0..connections {
            all.waiting.push(Reverse((0, engine.add_conn())));
        }
        all
    }

    /// Connections that go on beside: the engine's first ones, one for each of `beside`.
    pub fn beside(engine: &mut Engine, beside: Vec<(usize, u64)>) -> Self {
        Self { waiting: Self::mixed(engine, beside.len()).waiting, beside }
    }

    fn start(&self, field: &mut Field, conn: usize) {
        let kind = match self.beside.get(conn) {
            Some((kind, _)) => *kind,
            None => field.mix.draw(),
        };
        field.start_now(conn, kind);
    }
}

impl Pace for Closed {
    fn step(&mut self, field: &mut Field, now: u64) {
        while let Some(&Reverse((when, conn))) = self.waiting.peek()
            && when <= now
            && now < field.ledger.end
        {
            self.waiting.pop();
            self.start(field, conn);
        }
    }

    fn ended(&mut self, field: &mut Field, one: &Done) {
        if one.end >= field.ledger.end {
            return;
        }
        let mut pause = self.beside.get(one.conn).map_or(0, |(_, pause)| *pause);
        if matches!(one.result, Err(failure) if failure.is_broken()) {
            pause = pause.max(REST);
        }
        if pause == 0 {
            self.start(field, one.conn);
        } else {
            self.waiting.push(Reverse((one.end + pause, one.conn)));
        }
    }

    fn next(&self) -> u64 {
        self.waiting.peek().map_or(u64::MAX, |Reverse((when, _))| *when)
    }

    fn over(&self, field: &Field, now: u64) -> bool {
        now >= field.ledger.end
    }
}

/// Requests start when they are due. Free connections are taken last in, first out, as proxies
/// and pools do: a server that is fast sees few of them.
pub struct Open<'p> {
    schedule: Schedule<'p>,
    /// The only kind it asks for; None: what the mix draws.
    kind: Option<usize>,
    /// The first moment of the schedule that is not yet in the books.
    due: Option<u64>,
    /// Due, but without a connection: moment and kind.
    waiting: VecDeque<(u64, usize)>,
    free: Vec<usize>,
    /// Connections that may still be added.
    spare: usize,
    timeout: u64,
}

impl<'p> Open<'p> {
    /// Connections are added as they are needed.
    pub fn new(mut schedule: Schedule<'p>, max_connections: usize, timeout: u64) -> Self {
        Self {
            due: schedule.next(),
            schedule,
            kind: None,
            waiting: VecDeque::new(),
            free: Vec::new(),
            spare: max_connections,
            timeout,
        }
    }

    /// Asks for requests of this kind only.
    pub fn only(self, kind: usize) -> Self {
        Self { kind: Some(kind), ..self }
    }

    fn conn(&mut self, engine: &mut Engine) -> Option<usize> {
        if let Some(conn) = self.free.pop() {
            return Some(conn);
        }
        self.spare = self.spare.checked_sub(1)?;
        Some(engine.add_conn())
    }

    /// Who waited for a connection until its time was up was never sent.
    fn give_up(&mut self, field: &mut Field, now: u64) {
        if let Some(since) = now.checked_sub(self.timeout) {
            self.give_up_since(field, now, since);
        }
    }

    /// The offered load has ended: who still waits for a connection is not sent any more.
    pub fn give_all_up(&mut self, field: &mut Field, now: u64) {
        self.give_up_since(field, now, now);
    }

    fn give_up_since(&mut self, field: &mut Field, now: u64, since: u64) {
        while let Some(&(due, kind)) = self.waiting.front()
            && due <= since
        {
            self.waiting.pop_front();
            let result = Err(Failure::Timeout);
            let (conn, sent, end) = (usize::MAX, now, now);
            field.ledger.ended(&Done {
                conn,
                kind,
                due,
                sent,
                end,
                bytes: 0,
                worker: None,
                result,
            });
        }
    }
}

impl Pace for Open<'_> {
    fn step(&mut self, field: &mut Field, now: u64) {
        while let Some(due) = self.due.filter(|&due| due <= now) {
            self.due = self.schedule.next();
            let kind = self.kind.unwrap_or_else(|| field.mix.draw());
            field.ledger.due(kind, due);
            self.waiting.push_back((due, kind));
        }
        self.give_up(field, now);
        for _ in 0..STARTS {
            if self.waiting.is_empty() {
                break;
            }
            let Some(conn) = self.conn(&mut field.engine) else { break };
            let Some((due, kind)) = self.waiting.pop_front() else { break };
            let now = field.engine.now();
            field.engine.start(conn, kind, due, now);
        }
    }

    fn ended(&mut self, _: &mut Field, one: &Done) {
        self.free.push(one.conn);
    }

    fn next(&self) -> u64 {
        let due = self.due.unwrap_or(u64::MAX);
        match self.waiting.front() {
            Some(_) if self.spare > 0 || !self.free.is_empty() => 0,
            Some((first, _)) => due.min(first + self.timeout),
            None => due,
        }
    }

    fn over(&self, field: &Field, now: u64) -> bool {
        now >= field.ledger.end && self.waiting.is_empty()
    }
}

/// So many requests at the same instant, each on a connection of its own; then waits for all.
pub struct Burst {
    conns: Vec<usize>,
    times: usize,
    pause: u64,
    left: usize,
    next: u64,
}

impl Burst {
    /// `pause` in nanoseconds.
    pub fn new(engine: &mut Engine, at_once: usize, times: usize, pause: u64) -> Self {
        let conns = (0..at_once).map(|_| engine.add_conn()).collect();
        Self { conns, times, pause, left: 0, next: 0 }
    }
}

impl Pace for Burst {
    fn step(&mut self, field: &mut Field, now: u64) {
        if self.left > 0 || self.times == 0 || now < self.next {
            return;
        }
        self.times -= 1;
        self.left = self.conns.len();
        self.next = u64::MAX;
        for &conn in &self.conns {
            let kind = field.mix.draw();
            field.ledger.due(kind, now);
            let really = field.engine.now();
            field.engine.start(conn, kind, now, really);
        }
    }

    fn ended(&mut self, field: &mut Field, one: &Done) {
        self.left -= 1;
        if self.left > 0 {
            return;
        }
        if self.times > 0 {
            self.next = one.end + self.pause;
        } else {
            field.ledger.end = one.end + 1;
        }
    }

    fn next(&self) -> u64 {
        self.next
    }

    fn over(&self, _: &Field, _: u64) -> bool {
        self.left == 0 && self.times == 0
    }
}
