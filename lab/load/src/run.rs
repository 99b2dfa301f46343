//! From the plan to the outcome: checks, then one loop around [`Engine::wait`].

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::set_current_timer_slack;
use rustix::time::{ClockId, clock_gettime};

use crate::done::Done;
use crate::draw::{Mix, Schedule};
use crate::engine::{Engine, SECOND};
use crate::kind::Kind;
use crate::ledger::{Account, Ledger};
use crate::outcome::Outcome;
use crate::plan::{Plan, Shape, Step};
use crate::shapes::{Burst, Closed, Field, Open, Pace};
use crate::target::Target;

/// Milliseconds in nanoseconds.
const MS: u64 = 1_000_000;

/// Does what the plan says, on this thread. An error is the generator's own (a plan that makes no
/// sense, no files or ports left); whatever the server does wrong is in the outcome.
pub fn run(plan: &Plan) -> Result<Outcome, String> {
    check(plan)?;
    let target: Target = plan.to.parse()?;
    raise_file_limit();
    // A sleep may end late by 50 µs otherwise; an open loop would show that as latency. Where it
    // cannot be had, the run is still right.
    let _ = set_current_timer_slack(std::num::NonZeroU64::new(1));
    let cpu_before = cpu();
    let timeout = plan.timeout_ms.saturating_mul(MS).min(u64::MAX / 2);
    let mut engine = Engine::new(target.clone(), kinds(plan, &target), timeout)?;
    let steps = flood_steps(plan);
    let mut beside = Beside {
        first: plan.requests.len(),
        closed: Closed::beside(&mut engine, beside_conns(plan)),
        floods: floods(plan, &steps, timeout),
    };
    let mut pace: Box<dyn Pace> = match &plan.shape {
        Shape::Closed { connections, .. } => Box::new(Closed::mixed(&mut engine, *connections)),
        Shape::Open { steps, max_connections, poisson, .. } => {
            let schedule = Schedule::new(steps, *poisson, plan.seed);
            Box::new(Open::new(schedule, *max_connections, timeout))
        }
        Shape::Burst { at_once, times, pause_ms, .. } => {
            Box::new(Burst::new(&mut engine, *at_once, *times, pause_ms.saturating_mul(MS)))
        }
    };
    let mut field =
        Field { engine, ledger: ledger(plan), mix: Mix::new(&plan.requests, plan.seed)? };
    drive(&mut field, pace.as_mut(), &mut beside)?;
    let Field { mut engine, ledger, .. } = field;
    engine.abandon_all();
    let mut outcome = ledger.close(&engine.workers, matches!(plan.shape, Shape::Open { .. }));
    outcome.connections = engine.most_open;
    outcome.connects = engine.connects;
    outcome.generator_cpu = cpu() - cpu_before;
    Ok(outcome)
}

/// What goes on beside the shape.
struct Beside<'p> {
    /// The first kind that belongs here.
    first: usize,
    closed: Closed,
    /// Those with a rate, by their kinds.
    floods: Vec<(usize, Open<'p>)>,
}

impl Beside<'_> {
    /// Starts what is due; nothing any more when the offered load has ended.
    fn step(&mut self, field: &mut Field, now: u64) {
        self.closed.step(field, now);
        for (_, flood) in &mut self.floods {
            match now < field.ledger.end {
                true => flood.step(field, now),
                false => flood.give_all_up(field, now),
            }
        }
    }

    fn ended(&mut self, field: &mut Field, one: &Done) {
        match self.floods.iter_mut().find(|(kind, _)| *kind == one.kind) {
            Some((_, flood)) => flood.ended(field, one),
            None => self.closed.ended(field, one),
        }
    }

    fn next(&self) -> u64 {
        let floods = self.floods.iter().map(|(_, flood)| flood.next());
        floods.fold(self.closed.next(), u64::min)
    }
}

fn drive(field: &mut Field, pace: &mut dyn Pace, beside: &mut Beside<'_>) -> Result<(), String> {
    let mut done = Vec::new();
    loop {
        let now = field.engine.now();
        beside.step(field, now);
        pace.step(field, now);
        let over = pace.over(field, now);
        if over && field.engine.busy() == 0 && !field.engine.has_done() {
            return Ok(());
        }
        // Once the offered load has ended, nobody's next request is waited for.
        let next = match now < field.ledger.end {
            true => pace.next().min(beside.next()).min(field.ledger.end),
            false if over => u64::MAX,
            false => pace.next(),
        };
        field.engine.wait(next, &mut done)?;
        for one in &done {
            field.ledger.ended(one);
            if one.kind >= beside.first {
                beside.ended(field, one);
            } else {
                pace.ended(field, one);
            }
            // Some servers keep a thread waiting for the next request of a connection. After the
            // end there is none, and others are still to be answered.
            if one.end >= field.ledger.end && pace.over(field, one.end) {
                field.engine.abandon(one.conn);
            }
        }
    }
}

fn check(plan: &Plan) -> Result<(), String> {
    let positive = |name: &str, ok: bool| {
        if ok { Ok(()) } else { Err(format!("{name} must be above 0")) }
    };
    positive("timeout_ms", plan.timeout_ms > 0)?;
    positive("slice_ms", plan.slice_ms > 0)?;
    for all in plan.requests.iter().chain(plan.beside.iter().map(|beside| &beside.request)) {
        if all.method.is_empty() || all.path.is_empty() || all.path.contains([' ', '\r', '\n']) {
            return Err(format!("{:?} {:?} is no request line", all.method, all.path));
        }
    }
    for beside in &plan.beside {
        let endless = beside.rate > 0.0 && matches!(plan.shape, Shape::Burst { .. });
        if endless || beside.rate < 0.0 || !beside.rate.is_finite() {
            return Err("beside: a rate needs a closed or an open loop, whose end is known".into());
        }
    }
    match &plan.shape {
        Shape::Closed { connections, seconds, .. } => {
            positive("connections", *connections > 0)?;
            positive("seconds", *seconds > 0.0 && seconds.is_finite())
        }
        Shape::Open { steps, max_connections, .. } => {
            positive("max_connections", *max_connections > 0)?;
            let sensible = |step: &Step| {
                step.rate >= 0.0
                    && step.rate.is_finite()
                    && step.seconds > 0.0
                    && step.seconds.is_finite()
            };
            positive("steps", !steps.is_empty())?;
            positive("rate and seconds of each step", steps.iter().all(sensible))
        }
        Shape::Burst { at_once, times, .. } => {
            positive("at_once and times", *at_once > 0 && *times > 0)
        }
    }
}

fn kinds(plan: &Plan, target: &Target) -> Vec<Kind> {
    let (keep, reset) = match plan.shape {
        Shape::Closed { keep_alive, reset, .. } => (keep_alive, reset),
        Shape::Open { keep_alive, .. } | Shape::Burst { keep_alive, .. } => (keep_alive, false),
    };
    let host = target.host();
    let kind = |request, keep| Kind::new(request, target.door, &host, keep);
    let mixed = plan.requests.iter().map(|request| kind(request, keep).resetting(reset));
    let beside = plan.beside.iter().map(|beside| kind(&beside.request, beside.keep_alive));
    mixed.chain(beside).collect()
}

/// The end of the offered load, in seconds; 0 where nobody knows it.
fn seconds(plan: &Plan) -> f64 {
    match &plan.shape {
        Shape::Closed { seconds, .. } => *seconds,
        Shape::Open { steps, .. } => steps.iter().map(|step| step.seconds).sum(),
        Shape::Burst { .. } => 0.0,
    }
}

/// For each request beside with a rate: its kind, its most connections, its only step.
fn flood_steps(plan: &Plan) -> Vec<(usize, usize, [Step; 1])> {
    let seconds = seconds(plan);
    let floods = plan.beside.iter().enumerate().filter(|(_, beside)| beside.rate > 0.0);
    let one = |(nr, beside): (usize, &crate::plan::Beside)| {
        let step = Step { rate: beside.rate, seconds };
        (plan.requests.len() + nr, beside.connections, [step])
    };
    floods.map(one).collect()
}

fn floods<'p>(
    plan: &Plan,
    steps: &'p [(usize, usize, [Step; 1])],
    timeout: u64,
) -> Vec<(usize, Open<'p>)> {
    let one = |(kind, most, steps): &'p (usize, usize, [Step; 1])| {
        // Equal intervals: who floods does so in all rounds alike.
        let schedule = Schedule::new(steps, false, plan.seed);
        (*kind, Open::new(schedule, *most, timeout).only(*kind))
    };
    steps.iter().map(one).collect()
}

/// Kind and pause of each connection beside.
fn beside_conns(plan: &Plan) -> Vec<(usize, u64)> {
    let first = plan.requests.len();
    let one = |(nr, beside): (usize, &crate::plan::Beside)| {
        let conn = (first + nr, beside.pause_ms.saturating_mul(MS));
        std::iter::repeat_n(conn, if beside.rate > 0.0 { 0 } else { beside.connections })
    };
    plan.beside.iter().enumerate().flat_map(one).collect()
}

fn ledger(plan: &Plan) -> Ledger {
    let mixed = plan.requests.iter().map(|request| (request.class.clone(), false));
    let beside = plan.beside.iter().map(|beside| (beside.request.class.clone(), true));
    let (mut names, mut accounts) = (Vec::new(), Vec::new());
    for name in mixed.chain(beside) {
        let class = names.iter().position(|known| *known == name).unwrap_or(names.len());
        accounts.push(Account { class, beside: name.1 });
        if class == names.len() {
            names.push(name);
        }
    }
    let nanos = |seconds: f64| (seconds * SECOND as f64) as u64;
    let boundaries: Vec<u64> = match &plan.shape {
        Shape::Closed { seconds, .. } => vec![nanos(*seconds)],
        Shape::Open { steps, .. } => steps
            .iter()
            .scan(0.0, |end, step| {
                *end += step.seconds;
                Some(nanos(*end))
            })
            .collect(),
        Shape::Burst { .. } => Vec::new(),
    };
    let closed = matches!(plan.shape, Shape::Closed { .. });
    Ledger::new(names, accounts, plan.slice_ms, &boundaries, !closed)
}

/// As many connections as the system allows; if it is too few, opening one says so.
fn raise_file_limit() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

/// Seconds of CPU of this thread.
fn cpu() -> f64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
}
