//! Did a request wait in the queue while a worker had nothing to do?
//!
//! The app knows how long a request was queued, and when it got it; the client knows when it was
//! sent. If a process was stopped or starved in between, the wait can have been anywhere in there,
//! and only the part that all possibilities have in common is held against the server.

use crate::chaos::{Act, Done};
use crate::records::Run;
use crate::request::Request;
use crate::watch::{Life, Role, Seen};
use std::collections::HashMap;

/// Longer than this no request may wait beside an idle worker, ns.
pub const LIMIT: u64 = 50_000_000;
/// What the supervisor and the scheduler's clock granularity may add to the settling of a death, or
/// to a stop, besides the time they are measured to have been starved, ns.
const SETTLED: u64 = 10_000_000;

/// A span of time, ns.
type Span = (u64, u64);

/// What the waits amount to.
#[derive(Default)]
pub struct Waits {
    /// What must not be.
    pub problems: Vec<String>,
    /// Requests that waited longer than the limit for whatever reason.
    pub long: usize,
    /// Those beside an idle worker for longer than the limit, but for want of a processor.
    pub starved: usize,
    /// Those that a worker had taken which was then killed or stopped.
    pub taken: usize,
    /// The longest that any waited beside an idle worker, starvation deducted, ns.
    pub worst: u64,
}

struct Scene<'a> {
    seen: &'a Seen,
    done: &'a [Done],
    /// For each worker when it had a seat free and ran.
    free: Vec<(&'a Life, Vec<Span>)>,
    /// How many requests each act may still explain.
    explains: Vec<u64>,
}

/// Judges the waits of all requests that the app got.
pub fn judge(
    requests: &[Request],
    runs: &[Run],
    seen: &Seen,
    done: &[Done],
    threads: u64,
) -> Waits {
    let mut of_worker: HashMap<i32, Vec<&Run>> = HashMap::new();
    for run in runs {
        of_worker.entry(run.pid).or_default().push(run);
    }
    let workers = seen.lives.iter().filter(|life| life.role == Role::Worker);
    let free = workers
        .map(|life| {
            let runs = of_worker.get(&life.pid).map_or(&[][..], Vec::as_slice);
            (life, free_spans(life, runs, seen, done, threads as usize))
        })
        .collect();
    let explains = done
        .iter()
        .map(|one| match one.act {
            Act::KillWorker => threads,
            // Only the thread that has the interpreter can have been stopped with a fresh claim.
            Act::Stop => 1,
            _ => 0,
        })
        .collect();
    let mut scene = Scene { seen, done, free, explains };
    let mut waits = Waits::default();
    let by_number: HashMap<u64, &Request> = requests.iter().map(|one| (one.number, one)).collect();
    for run in runs {
        waits.long += usize::from(run.queued > LIMIT);
        if let Some(request) = by_number.get(&run.number) {
            scene.look(request, run, &mut waits);
        }
    }
    waits
}

impl Scene<'_> {
    fn look(&mut self, request: &Request, run: &Run, waits: &mut Waits) {
        let (from, to) = (run.begun.saturating_sub(run.queued), request.sent + run.queued);
        if to.saturating_sub(from) <= LIMIT {
            return;
        }
        let longest = self.free.iter().flat_map(|(life, spans)| {
            let first = spans.partition_point(|(_, end)| *end <= from);
            let rest = spans[first..].iter().take_while(move |(start, _)| *start < to);
            rest.map(move |(start, end)| (*life, (*start).max(from), (*end).min(to)))
        });
        let Some((life, start, end)) = longest.max_by_key(|(_, start, end)| end - start) else {
            return;
        };
        let starved = self.starved(life, (start, end), start == from);
        let beside = (end - start).saturating_sub(starved);
        if end - start <= LIMIT {
            waits.worst = waits.worst.max(beside);
        } else if self.explained(run, start, end) {
            waits.taken += 1;
        } else if beside <= LIMIT {
            waits.starved += 1;
            waits.worst = waits.worst.max(beside);
        } else {
            waits.worst = waits.worst.max(beside);
            waits.problems.push(format!(
                "request {} waited {:.1} ms, of that {:.1} ms (and {:.1} ms starved) beside idle \
                 worker {} from {} on; worker {} took it",
                request.number,
                run.queued as f64 / 1e6,
                beside as f64 / 1e6,
                starved as f64 / 1e6,
                life.pid,
                start,
                run.pid
            ));
        }
    }

    /// How long those who had a part in it waited for a processor: the machine as its calibration
    /// thread saw it, or the worker and, if it had to ring, the front.
    fn starved(&self, life: &Life, (from, to): Span, put: bool) -> u64 {
        let late: u64 = (self.seen.late.iter())
            .map(|(due, by)| to.min(due + by).saturating_sub(from.max(*due)))
            .sum();
        let fronts = self.seen.lives.iter().filter(|one| one.role == Role::Front && put);
        let front = fronts.map(|front| front.next_starved(from, to)).max().unwrap_or(0);
        late.max(front + life.starved(from, to))
    }

    /// A worker takes a request and is killed, or takes it and is stopped before it can note when:
    /// until then it was not waiting, although its queue time says so.
    fn explained(&mut self, run: &Run, start: u64, end: u64) -> bool {
        let explains = self.done.iter().enumerate().position(|(index, one)| {
            let fits = match one.act {
                Act::KillWorker => one.pid != run.pid && one.from >= start,
                Act::Stop => one.pid == run.pid && one.to >= start,
                _ => false,
            };
            let rest = end.saturating_sub(one.to + SETTLED);
            fits && self.explains[index] > 0
                && one.from <= end
                && rest.saturating_sub(self.late(one.to, end)) <= LIMIT
        });
        if let Some(index) = explains {
            self.explains[index] -= 1;
        }
        explains.is_some()
    }

    fn late(&self, from: u64, to: u64) -> u64 {
        let late = self.seen.late.iter().filter(|(due, by)| *due < to && due + by > from);
        late.map(|(_, by)| by).sum()
    }
}

/// When a worker was there, ran, was of the serving generation, and had a seat free.
fn free_spans(life: &Life, runs: &[&Run], seen: &Seen, done: &[Done], threads: usize) -> Vec<Span> {
    let first = runs.iter().map(|run| run.begun).min();
    let Some(from) = first.into_iter().chain(life.ready).min() else { return Vec::new() };
    let killed = done.iter().find(|one| one.act == Act::KillWorker && one.pid == life.pid);
    let to = killed.map_or(life.seen, |kill| kill.from.min(life.seen));
    let mut spans = vec![(from, to)];
    let serves = |(_, _, generation): &&(u64, u64, u64)| Some(*generation) == life.generation;
    let serving: Vec<Span> =
        (seen.serving.iter()).filter(serves).map(|(a, b, _)| (*a, *b)).collect();
    spans = intersect(&spans, &serving);
    let stops = done.iter().filter(|one| one.act == Act::Stop && one.pid == life.pid);
    for stop in stops {
        spans = without(spans, (stop.from, stop.to));
    }
    intersect(&spans, &not_all_busy(runs, threads, to))
}

/// When fewer than all seats had a request.
fn not_all_busy(runs: &[&Run], threads: usize, end: u64) -> Vec<Span> {
    let mut edges: Vec<(u64, i64)> = runs
        .iter()
        .flat_map(|run| [(run.begun, 1), (run.ended.unwrap_or(end).max(run.begun), -1)])
        .collect();
    edges.sort_unstable();
    let (mut spans, mut busy, mut since) = (Vec::new(), 0, Some(0));
    for (at, change) in edges {
        busy += change;
        match since {
            Some(start) if busy >= threads as i64 => {
                spans.push((start, at));
                since = None;
            }
            None if busy < threads as i64 => since = Some(at),
            _ => {}
        }
    }
    spans.extend(since.map(|start| (start, u64::MAX)));
    spans
}

fn intersect(one: &[Span], other: &[Span]) -> Vec<Span> {
    let mut both = Vec::new();
    let (mut i, mut j) = (0, 0);
    while let (Some(a), Some(b)) = (one.get(i), other.get(j)) {
        let (from, to) = (a.0.max(b.0), a.1.min(b.1));
        if from < to {
            both.push((from, to));
        }
        if a.1 <= b.1 { i += 1 } else { j += 1 }
    }
    both
}

fn without(spans: Vec<Span>, hole: Span) -> Vec<Span> {
    let parts = |(from, to): Span| [(from, to.min(hole.0)), (from.max(hole.1), to)];
    spans.into_iter().flat_map(parts).filter(|(from, to)| from < to).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans() {
        assert_eq!(without(vec![(0, 10)], (3, 5)), [(0, 3), (5, 10)]);
        assert_eq!(without(vec![(0, 10), (20, 30)], (8, 22)), [(0, 8), (22, 30)]);
        assert_eq!(intersect(&[(0, 10), (20, 30)], &[(5, 25)]), [(5, 10), (20, 25)]);
        assert_eq!(intersect(&[(0, 10)], &[]), []);
    }

    #[test]
    fn a_worker_of_two_threads_is_free_until_both_are_busy() {
        let run = |begun, ended| Run { number: 0, pid: 1, begun, ended, queued: 0 };
        let runs = [run(10, Some(40)), run(20, Some(30)), run(50, None)];
        let runs: Vec<&Run> = runs.iter().collect();
        assert_eq!(not_all_busy(&runs, 2, 90), [(0, 20), (30, u64::MAX)]);
        assert_eq!(not_all_busy(&runs, 1, 90), [(0, 10), (40, 50), (90, u64::MAX)]);
    }
}
