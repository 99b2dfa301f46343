//! The books: what was due, what became of it, and when.

use crate::done::{Done, Failure};
use crate::engine::SECOND;
use crate::outcome::{Class, Outcome, Tick};
use crate::response::Workers;

const TICK: u64 = SECOND / 10;

/// What one kind of request counts as.
#[derive(Clone, Copy, Debug)]
pub struct Account {
    /// Index of its class.
    pub class: usize,
    /// Goes on beside the others.
    pub beside: bool,
}

/// Collects the outcome.
#[derive(Debug)]
pub struct Ledger {
    accounts: Vec<Account>,
    slice: u64,
    /// Moments at which unanswered requests are counted, last one first.
    boundaries: Vec<u64>,
    /// When the offered load ends; `u64::MAX` while nobody knows.
    pub end: u64,
    /// Requests due, without an outcome.
    pending: u64,
    /// Since when good answers are owed.
    owed_since: Option<u64>,
    gap: (u64, u64),
    workers: Vec<u64>,
    last: u64,
    /// The latency from the real send is kept apart.
    corrects: bool,
    out: Outcome,
}

impl Ledger {
    /// `boundaries` ascend; the last of them is the end of the offered load, if it is known.
    pub fn new(
        names: Vec<(String, bool)>,
        accounts: Vec<Account>,
        slice_ms: u64,
        boundaries: &[u64],
        corrects: bool,
    ) -> Self {
        let class = |(class, beside)| Class { class, beside, ..Class::default() };
        Self {
            accounts,
            slice: slice_ms.saturating_mul(1_000_000),
            boundaries: boundaries.iter().rev().copied().collect(),
            end: boundaries.last().copied().unwrap_or(u64::MAX),
            pending: 0,
            owed_since: None,
            gap: (0, 0),
            workers: Vec::new(),
            last: 0,
            corrects,
            out: Outcome { classes: names.into_iter().map(class).collect(), ..Outcome::default() },
        }
    }

    /// A request is due.
    pub fn due(&mut self, kind: usize, due: u64) {
        self.cross(due);
        let account = self.accounts[kind];
        self.out.classes[account.class].sent += 1;
        if !account.beside {
            self.pending += 1;
            self.owed_since.get_or_insert(due);
        }
    }

    /// A request has ended.
    pub fn ended(&mut self, one: &Done) {
        self.cross(one.end);
        self.last = self.last.max(one.end);
        let account = self.accounts[one.kind];
        let class = &mut self.out.classes[account.class];
        match one.result {
            Ok(()) => {
                class.ok += 1;
                class.ok_in_time += u64::from(one.end < self.end);
                if one.end >= self.end {
                    class.late.record(micros(one.end - self.end));
                }
                class.bytes += one.bytes;
                let slice = (one.due / self.slice) as usize;
                if class.slices.len() <= slice {
                    class.slices.resize_with(slice + 1, Default::default);
                }
                class.slices[slice].record(micros(one.end - one.due));
                if self.corrects && !account.beside {
                    class.uncorrected.record(micros(one.end - one.sent));
                }
            }
            Err(Failure::Status(code)) => *class.failures.status.entry(code).or_default() += 1,
            Err(Failure::Timeout) => class.failures.timeout += 1,
            Err(Failure::Refused) => class.failures.refused += 1,
            Err(Failure::Reset) => class.failures.reset += 1,
            Err(Failure::Garbage) => class.failures.garbage += 1,
        }
        if !account.beside {
            self.pending -= 1;
            self.note(one);
        }
    }

    fn note(&mut self, one: &Done) {
        let tick = (one.end / TICK) as usize;
        if self.out.ticks.len() <= tick {
            self.out.ticks.resize(tick + 1, Tick::default());
        }
        if one.result.is_err() {
            self.out.ticks[tick].failed += 1;
            return;
        }
        self.out.ticks[tick].ok += 1;
        self.gap_ends(one.end);
        // What failed is still owed; only a good answer may leave nothing to wait for.
        self.owed_since = (self.pending > 0).then_some(one.end);
        if let Some(worker) = one.worker {
            let worker = worker as usize;
            if self.workers.len() <= worker {
                self.workers.resize(worker + 1, 0);
            }
            self.workers[worker] += 1;
        }
    }

    fn gap_ends(&mut self, now: u64) {
        let Some(since) = self.owed_since else { return };
        let gap = now.min(self.end).saturating_sub(since);
        if gap > self.gap.0 {
            self.gap = (gap, since);
        }
    }

    /// Counts what is unanswered when the clock goes beyond a step's end.
    fn cross(&mut self, now: u64) {
        while self.boundaries.last().is_some_and(|&boundary| boundary <= now) {
            self.boundaries.pop();
            self.out.unanswered_at_step_end.push(self.pending);
        }
    }

    /// Everything has ended.
    pub fn close(mut self, workers: &Workers, steps: bool) -> Outcome {
        self.cross(u64::MAX);
        self.gap_ends(self.end);
        let mut out = self.out;
        out.seconds = self.end as f64 / 1e9;
        out.drained = self.last.max(self.end) as f64 / 1e9;
        (out.gap_ms, out.gap_at_ms) = (self.gap.0 as f64 / 1e6, self.gap.1 as f64 / 1e6);
        out.unanswered_at_end = out.unanswered_at_step_end.last().copied().unwrap_or(0);
        if !steps {
            out.unanswered_at_step_end.clear();
        }
        let ticks = self.end.div_ceil(TICK) as usize;
        out.ticks.resize(ticks.max(out.ticks.len()), Tick::default());
        for class in &mut out.classes {
            for slice in &class.slices {
                class.latency.add(slice);
            }
            if !self.corrects || class.beside {
                class.uncorrected = class.latency.clone();
            }
        }
        for (place, count) in self.workers.iter().enumerate().filter(|(_, count)| **count > 0) {
            out.workers.insert(workers.name(place), *count);
        }
        out
    }
}

fn micros(nanos: u64) -> u64 {
    (nanos + 500) / 1_000
}
