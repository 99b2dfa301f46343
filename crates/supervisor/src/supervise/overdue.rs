//! Requests that run for too long. Nobody tells the supervisor when one begins: it knows how long
//! each may take, so it looks at the seats so often that none can be late unseen, and at once when a
//! worker has written an earlier point in time and rings.

use super::*;
use crate::children;
use crate::supervise::current::{self, Current};
use wire::now_ns;
use wire::sync::Ordering::{Acquire, Relaxed};

/// How soon a seat is looked at again where something was due: it may have been given a new point
/// in time meanwhile.
const AGAIN_NS: u64 = 1_000_000;

/// When to look next.
pub struct Clocks {
    /// The shortest timeout of the settings, ns. None: requests have no timeout by themselves.
    shortest: Option<u64>,
    next: Option<u64>,
}

impl Clocks {
    /// With the timeouts of the settings, in seconds; 0: none.
    pub fn new(timeouts: &[f64]) -> Clocks {
        let set = timeouts.iter().filter(|seconds| **seconds > 0.0);
        let shortest = set.map(|seconds| (seconds * 1e9) as u64).min();
        Clocks { shortest, next: shortest.map(|_| 0) }
    }

    /// A worker has rung: look now.
    pub fn rung(&mut self) {
        self.next = Some(0);
    }

    /// How long until the next look.
    pub fn wait(&self, now: u64) -> Option<Duration> {
        self.next.map(|next| Duration::from_nanos(next.saturating_sub(now)))
    }

    fn is_due(&self, now: u64) -> bool {
        self.next.is_some_and(|next| next <= now)
    }
}

/// What a seat says of its present request: points in time in ns, 0: never.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Clock {
    seat: u16,
    deadline: u64,
    soft: u64,
}

/// What follows from all clocks at one moment.
#[derive(Debug, Default, PartialEq, Eq)]
struct Verdict {
    overdue: Vec<Clock>,
    alarming: Vec<Clock>,
    /// When to look again.
    next: Option<u64>,
}

fn judge(now: u64, shortest: Option<u64>, clocks: impl IntoIterator<Item = Clock>) -> Verdict {
    let mut verdict = Verdict::default();
    // None that begins later is due before that.
    let mut next = shortest.map(|shortest| now.saturating_add(shortest));
    let mut look_at = |at: u64| next = Some(next.map_or(at, |next: u64| next.min(at)));
    let past = |at: u64| at != 0 && at <= now;
    for clock in clocks {
        if past(clock.deadline) {
            verdict.overdue.push(clock);
            continue;
        }
        if past(clock.soft) {
            verdict.alarming.push(clock);
        }
        [clock.deadline, clock.soft].into_iter().filter(|at| *at > now).for_each(&mut look_at);
    }
    if !verdict.overdue.is_empty() || !verdict.alarming.is_empty() {
        look_at(now.saturating_add(AGAIN_NS));
    }
    verdict.next = next;
    verdict
}

impl Supervisor {
    /// Looks at the seats of each mount if it is time.
    pub(super) fn look_for_overdue(&mut self) {
        let now = now_ns();
        let due: Vec<MountId> = (self.apps.iter())
            .filter(|(_, app)| app.clocks.is_due(now))
            .map(|(id, _)| *id)
            .collect();
        due.into_iter().for_each(|id| self.look_at_clocks(id, now));
    }

    fn look_at_clocks(&mut self, id: MountId, now: u64) {
        let Some(app) = self.apps.get_mut(&id) else { return };
        let clock = |seat: u16| {
            let line = &app.segment.board().seats[usize::from(seat)];
            let [deadline, soft] = [&line.deadline_ns, &line.soft_ns].map(|at| at.load(Acquire));
            Clock { seat, deadline, soft }
        };
        let threads = app.settings.threads;
        let workers = self.children.workers.iter();
        let living = workers.filter(|((g, _), _)| g.mount == id).map(|(_, worker)| worker.seat);
        let clocks = living.flat_map(|seat| seat..seat + threads).map(clock);
        let verdict = judge(now, app.clocks.shortest, clocks);
        app.clocks.next = verdict.next;
        verdict.overdue.into_iter().for_each(|clock| self.end_request(id, clock, now));
        verdict.alarming.into_iter().for_each(|clock| self.alarm(id, clock));
    }

    fn holder(&self, id: MountId, threads: u16, seat: u16) -> Option<(GenerationId, u16)> {
        let mut workers = self.children.workers.iter();
        let holds = |first: u16| (first..first + threads).contains(&seat);
        workers.find(|((g, _), worker)| g.mount == id && holds(worker.seat)).map(|(key, _)| *key)
    }

    /// The app has had its time: the client gets its answer, the worker is replaced.
    fn end_request(&mut self, id: MountId, clock: Clock, now: u64) {
        let tag = self.tag(id);
        let Some(app) = self.apps.get(&id) else { return };
        let Some(key) = self.holder(id, app.settings.threads, clock.seat) else { return };
        let Some(slot) = app.segment.board().strike(clock.seat, clock.deadline) else { return };
        let Some(worker) = self.children.workers.get_mut(&key) else { return };
        children::kill(&worker.pidfd);
        worker.overdue = true;
        let front = app.segment.board().slots[slot as usize].front.load(Relaxed) as usize;
        if let Some(bell) = self.bells.get(front) {
            let _ = rustix::io::write(bell, &1u64.to_ne_bytes());
        }
        let request = current::of_seat(&app.segment, clock.seat, now);
        let (nr, generation, pid) = (key.1, key.0.number, worker.pid);
        say(&format!(
            "{tag}worker {nr} gen {generation} (pid {pid}) is killed: {} (request_timeout)",
            request.map_or("a request has run too long".into(), told)
        ));
    }

    /// The worker logs where the request is.
    fn alarm(&self, id: MountId, clock: Clock) {
        let Some(app) = self.apps.get(&id) else { return };
        let seats = &app.segment.board().seats;
        let key = self.holder(id, app.settings.threads, clock.seat);
        let worker = key.and_then(|key| self.children.workers.get(&key));
        if let Some(worker) = worker
            && seats[usize::from(clock.seat)].raise_alarm(clock.soft)
        {
            // Not a signal: it would interrupt what the request is waiting in.
            seats[usize::from(worker.seat)].ring_alarm();
        }
    }
}

fn told(request: Current) -> String {
    let Current { method, path, age, .. } = request;
    format!("{method} {path} has run for {:.1} s", age.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Option<u64> = Some(100);

    fn clock(seat: u16, deadline: u64, soft: u64) -> Clock {
        Clock { seat, deadline, soft }
    }

    #[test]
    fn what_is_past_is_due_and_the_nearest_of_the_rest_is_looked_at_next() {
        let clocks = [clock(0, 0, 0), clock(1, 5_050, 5_010), clock(2, 5_000, 0)];
        let verdict = judge(5_000, SHORT, clocks);
        assert_eq!(verdict.overdue, [clock(2, 5_000, 0)]);
        assert_eq!((verdict.alarming, verdict.next), (Vec::new(), Some(5_010)));

        let verdict = judge(5_010, SHORT, [clock(1, 5_050, 5_010)]);
        assert_eq!(verdict.alarming, [clock(1, 5_050, 5_010)]);
        assert_eq!((verdict.overdue, verdict.next), (Vec::new(), Some(5_050)));
    }

    #[test]
    fn one_that_is_overdue_is_not_asked_where_it_is() {
        let verdict = judge(10, None, [clock(0, 10, 5)]);
        assert_eq!((verdict.overdue.len(), verdict.alarming.len()), (1, 0));
    }

    #[test]
    fn nothing_is_looked_for_where_there_is_no_timeout() {
        assert_eq!(judge(7, None, [clock(0, 0, 0)]), Verdict::default());
        assert_eq!(Clocks::new(&[0.0, 0.0]).wait(7), None);
        assert!(!Clocks::new(&[0.0]).is_due(u64::MAX));
    }

    #[test]
    fn a_request_that_begins_after_a_look_is_seen_in_time() {
        assert_eq!(judge(7, SHORT, []).next, Some(107));
        let mut clocks = Clocks::new(&[0.5, 0.25, 0.0]);
        assert_eq!((clocks.shortest, clocks.wait(3)), (Some(250_000_000), Some(Duration::ZERO)));
        clocks.next = Some(40);
        assert_eq!(clocks.wait(30), Some(Duration::from_nanos(10)));
        assert!(!clocks.is_due(39) && clocks.is_due(40));
        clocks.rung();
        assert!(clocks.is_due(0));
    }

    #[test]
    fn a_seat_that_always_says_it_is_due_does_not_keep_the_supervisor_busy() {
        assert_eq!(judge(1_000, None, [clock(0, 1, 0)]).next, Some(1_000 + AGAIN_NS));
    }
}
