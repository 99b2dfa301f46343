//! Did every request end as it had to?

use crate::chaos::{Act, Done};
use crate::load::Idle;
use crate::records::Run;
use crate::request::{Kind, Outcome, Request};
use crate::server::Shape;
use std::collections::HashMap;
use wire::SLOTS;

/// A killed worker may have got this far beyond the app's end without having replied, ns.
const REPLYING: u64 = 300_000_000;
/// By then everyone knows of a death, ns.
const KNOWN: u64 = 2_000_000_000;
/// Requests under way from which on a slot may be missing: a few are still held by workers for a
/// front that is dead, or for clients that have left.
const CROWD: usize = SLOTS - 256;

/// What the outcomes amount to.
#[derive(Default)]
pub struct Outcomes {
    /// What must not be.
    pub problems: Vec<String>,
    /// How many ended in which way.
    pub counts: HashMap<String, usize>,
}

struct Judge<'a> {
    runs: HashMap<u64, Vec<&'a Run>>,
    fronts: Vec<&'a Done>,
    /// Kills of workers, and how many requests each may still have cost.
    workers: Vec<(&'a Done, u64)>,
    /// Rack::Lint makes every reply one that is published before it is whole.
    linted: bool,
}

/// Judges all requests.
pub fn judge(
    requests: &[Request],
    idle: &Idle,
    runs: &[Run],
    done: &[Done],
    shape: Shape,
) -> Outcomes {
    let mut outcomes = Outcomes::default();
    let killed = |act: Act| done.iter().filter(move |one| one.act == act);
    let mut judge = Judge {
        runs: HashMap::new(),
        fronts: killed(Act::KillFront).collect(),
        workers: killed(Act::KillWorker).map(|kill| (kill, shape.threads)).collect(),
        linted: shape.is_linted(),
    };
    for run in runs {
        judge.runs.entry(run.number).or_default().push(run);
        if run.ended.is_none() && judge.kill_of(run.pid).is_none() {
            let Run { number, pid, .. } = run;
            outcomes.problems.push(format!(
                "request {number} was begun by worker {pid}, which was not killed, and never ended"
            ));
        }
    }
    // Those that left a record first: what is left of each kill is for those that left none.
    let recorded = |request: &&Request| judge.runs.contains_key(&request.number);
    let (first, then): (Vec<&Request>, Vec<&Request>) = requests.iter().partition(recorded);
    for request in first.into_iter().chain(then) {
        *outcomes.counts.entry(format!("{:?}", request.outcome)).or_default() += 1;
        if let Some(problem) = judge.problem(request) {
            outcomes.problems.push(describe(request, &problem));
        }
    }
    for (made, ended) in &idle.ended {
        if !judge.front_killed(*made, *ended) {
            outcomes.problems.push("an idle connection was closed though no front died".into());
        }
    }
    outcomes
}

fn describe(request: &Request, problem: &str) -> String {
    let Request { number, kind, micros, length, outcome, connected, sent, ended, got, .. } =
        request;
    format!(
        "request {number} ({kind:?}, {micros} µs, length {length}), connected at {connected}, sent \
         at {sent}, {outcome:?} after {:.1} ms with {got} bytes: {problem}",
        ended.saturating_sub(*sent) as f64 / 1e6
    )
}

impl Judge<'_> {
    fn kill_of(&self, pid: i32) -> Option<usize> {
        self.workers.iter().position(|(kill, _)| kill.pid == pid)
    }

    /// Whether its reply is published before it is whole: the client may then have a part of it.
    fn streams(&self, request: &Request) -> bool {
        self.linted || matches!(request.kind, Kind::Stream | Kind::Large)
    }

    fn front_killed(&self, connected: u64, ended: u64) -> bool {
        let between =
            |kill: &&Done| connected <= kill.to && ended >= kill.from && ended < kill.to + KNOWN;
        self.fronts.iter().any(between)
    }

    /// Whether the request was one that a killed worker had begun.
    fn lost(&mut self, request: &Request) -> bool {
        let run = self.runs.get(&request.number).and_then(|runs| runs.first().copied());
        let kill = match run {
            Some(run) => {
                let cut_short =
                    |kill: &Done| run.ended.is_none_or(|ended| ended + REPLYING > kill.from);
                self.kill_of(run.pid).filter(|at| cut_short(self.workers[*at].0))
            }
            // Begun, and killed before the app wrote it down.
            None => self.workers.iter().position(|(kill, left)| {
                *left > 0 && kill.from <= request.ended && request.ended < kill.to + KNOWN
            }),
        };
        let Some((_, left)) = kill.map(|at| &mut self.workers[at]) else { return false };
        let any = *left > 0;
        *left = left.saturating_sub(1);
        any
    }

    fn problem(&mut self, request: &Request) -> Option<String> {
        let runs = self.runs.get(&request.number).map_or(&[][..], Vec::as_slice);
        if runs.len() > 1 {
            let pids: Vec<i32> = runs.iter().map(|run| run.pid).collect();
            return Some(format!("the app got it {} times, in {pids:?}", runs.len()));
        }
        let ended = runs.first().is_some_and(|run| run.ended.is_some());
        let cut = self.front_killed(request.connected, request.ended);
        let wrong = match request.outcome {
            Outcome::Answer(200) if ended => return None,
            Outcome::Answer(200) => "answered, though the app did not end it",
            Outcome::Left => return None,
            Outcome::Answer(502) if self.lost(request) => return None,
            Outcome::Answer(502) => "no killed worker had begun it",
            Outcome::Answer(503) if request.beside >= CROWD => return None,
            Outcome::Answer(503) => "there was room",
            Outcome::Answer(_) => "nothing asked for that",
            Outcome::Cut | Outcome::Refused if cut => return None,
            Outcome::Cut if self.streams(request) && self.lost(request) => return None,
            Outcome::Cut => "neither a front nor its worker was killed",
            Outcome::Refused => "no front was killed",
            Outcome::Wrong => "not the answer to this request",
            Outcome::Hung | Outcome::Pending => "no answer",
        };
        Some(wrong.into())
    }
}
