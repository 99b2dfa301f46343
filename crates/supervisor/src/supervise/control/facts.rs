//! A server's state, derived from what the plan knows and from the slot table.

use super::super::current::{self, Current};
use super::super::mount::App;
use crate::children::{Children, Worker};
use crate::control::status;
use crate::control::status::{FORM, Generation, Mold, Mount, Process, Queue, Request, Status};
use crate::memory;
use crate::options::{self, Serves};
use crate::plan::{GenerationId, GenerationView, MountId, Stands, State, WorkerView};
use std::collections::BTreeMap;
use std::time::Duration;
use wire::Segment;
use wire::doorbell::{SPENT, Seat};
use wire::sync::Ordering::{Acquire, Relaxed};

/// Where to look.
pub struct Facts<'a> {
    /// Who should exist.
    pub state: &'a State,
    /// Who does.
    pub children: &'a Children,
    /// The mounts that have apps.
    pub(in super::super) apps: &'a BTreeMap<MountId, App>,
    /// The others.
    pub plain: &'a BTreeMap<MountId, options::Mount>,
    /// The present time on the slots' clock.
    pub now_ns: u64,
}

impl Facts<'_> {
    /// All but what only the supervisor itself knows.
    pub fn status(&self) -> Status {
        let front = self.children.front.as_ref();
        let apps = self.apps.iter().map(|(id, app)| (*id, self.app(*id, app)));
        let plain = self.plain.iter().map(|(id, mount)| (*id, without_app(mount)));
        let mounts: BTreeMap<MountId, Mount> = apps.chain(plain).collect();
        Status {
            form: FORM,
            version: env!("CARGO_PKG_VERSION").into(),
            state: self.state.word().into(),
            front: front.map(|front| process(Some(front.pid.as_raw_nonzero().get() as u32))),
            mounts: mounts.into_values().collect(),
            ..Status::default()
        }
    }

    fn app(&self, id: MountId, app: &App) -> Mount {
        let look = Look { facts: self, id, segment: &app.segment, threads: app.settings.threads };
        Mount {
            state: self.state.standing(id).into(),
            engine: Some(app.settings.engine.word().into()),
            isolation: Some(app.settings.isolation.word().into()),
            environment: app.settings.environment.clone(),
            ..look.mount(described(&app.settings))
        }
    }
}

fn described(settings: &options::Mount) -> Mount {
    Mount {
        name: settings.name.clone(),
        hosts: settings.hosts.clone(),
        path: settings.path.clone(),
        declared: settings.declared,
        ..Mount::default()
    }
}

fn without_app(settings: &options::Mount) -> Mount {
    let backends = match &settings.serves {
        Serves::Proxy { to, .. } => to.iter().map(ToString::to_string).collect(),
        Serves::App { .. } => Vec::new(),
    };
    Mount { state: "serving".into(), backends, ..described(settings) }
}

/// A look at one mount.
struct Look<'a> {
    facts: &'a Facts<'a>,
    id: MountId,
    segment: &'a Segment,
    threads: u16,
}

impl Look<'_> {
    fn mount(&self, described: Mount) -> Mount {
        let (state, now_ns) = (self.facts.state, self.facts.now_ns);
        let busy: Vec<Current> = current::all(self.segment, now_ns).collect();
        let (waiting, oldest) = current::waiting(self.segment, now_ns);
        Mount {
            workers: state.target(self.id),
            threads: self.threads,
            serving: state.serving(self.id),
            queue: Queue { waiting, oldest_ms: oldest.map(milliseconds) },
            generations: state.view(self.id).map(|view| self.generation(view, &busy)).collect(),
            ..described
        }
    }

    fn generation(&self, view: GenerationView, busy: &[Current]) -> Generation {
        let which = GenerationId { mount: self.id, number: view.number };
        let children = self.facts.children;
        let mold = children.molds.get(&which);
        let pid = mold.and_then(|mold| mold.pid).map(|pid| pid.as_raw_nonzero().get() as u32);
        let ruby = mold.map(|mold| mold.ruby.clone()).filter(|ruby| !ruby.is_empty());
        let mold = Mold { state: view.mold.into(), ruby, process: process(pid) };
        let workers = view.workers.iter().map(|worker| {
            let known = children.workers.get(&(which, worker.nr));
            self.worker(worker, known, busy)
        });
        Generation {
            generation: view.number,
            role: view.role.into(),
            mold,
            workers: workers.collect(),
        }
    }

    fn worker(
        &self,
        view: &WorkerView,
        known: Option<&Worker>,
        busy: &[Current],
    ) -> status::Worker {
        let range = view.seat..view.seat + self.threads;
        let seats = &self.segment.board().seats[usize::from(range.start)..usize::from(range.end)];
        let mine = busy.iter().filter(|current| range.contains(&current.seat));
        let mut requests: Vec<Request> = mine
            .map(|current| Request {
                thread: current.seat - view.seat + 1,
                method: current.method.clone(),
                path: current.path.clone(),
                waited_ms: milliseconds(current.waited),
                age_ms: milliseconds(current.age),
            })
            .collect();
        requests.sort_by_key(|request| request.thread);
        status::Worker {
            nr: view.nr,
            state: state(view.stands, seats, !requests.is_empty()).into(),
            served: seats.iter().map(|seat| seat.served.load(Relaxed)).sum(),
            age_ms: known.map(|worker| milliseconds(worker.born.elapsed())),
            requests,
            process: process(known.map(|worker| worker.pid)),
        }
    }
}

fn state(stands: Stands, seats: &[Seat], busy: bool) -> &'static str {
    let any = |is: fn(&Seat) -> bool| seats.iter().any(is);
    match stands {
        Stands::Booting => "booting",
        Stands::Leaving => "leaving",
        // A TERM to the worker itself does the same.
        Stands::Ready if any(|seat| seat.retire.load(Acquire) != 0) => "leaving",
        Stands::Ready if any(|seat| seat.wear.load(Acquire) == SPENT) => "spent",
        Stands::Ready if any(|seat| seat.collecting.load(Acquire) != 0) => "collecting",
        Stands::Ready if busy => "busy",
        Stands::Ready => "idle",
    }
}

/// With what is cheap to know; the kernel walks all memory for the rest, and the supervisor has
/// more to do.
fn process(pid: Option<u32>) -> Process {
    Process { pid, rss: pid.and_then(|pid| memory::rss(pid).ok()), pss: None }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Event, Limits, plan};

    const ID: MountId = MountId(0);

    fn server(threads: u16) -> State {
        let mut state = State::new(Duration::from_secs(30));
        let limits = Limits {
            workers: 2,
            fresh: false,
            threads,
            seats: 64,
            shutdown_timeout: Duration::from_secs(30),
            spawn_interval: Duration::ZERO,
            err_respawn_interval: Duration::ZERO,
            start_timeout: Duration::ZERO,
            rollback_window: Duration::from_secs(60),
        };
        plan(&mut state, Event::Mount(ID, String::new(), limits), Duration::ZERO);
        boot(&mut state, 1);
        plan(&mut state, Event::FrontReady, Duration::ZERO);
        state
    }

    fn boot(state: &mut State, generation: u64) {
        let generation = GenerationId { mount: ID, number: generation };
        plan(state, Event::MoldReady(generation), Duration::ZERO);
        for nr in [1, 2] {
            plan(state, Event::Forked(generation, nr), Duration::ZERO);
            plan(state, Event::Up(generation, nr), Duration::ZERO);
        }
    }

    fn look(state: &State, segment: &Segment, threads: u16, now_ns: u64) -> Mount {
        let (children, apps, plain) = (&Children::default(), &BTreeMap::new(), &BTreeMap::new());
        let facts = &Facts { state, children, apps, plain, now_ns };
        Look { facts, id: ID, segment, threads }.mount(Mount::default())
    }

    fn put(segment: &Segment, slot: u32, queued_ns: u64) {
        segment.board().slots[slot as usize].queued_ns.store(queued_ns, Relaxed);
        segment.board().put(slot).unwrap();
    }

    #[test]
    fn generations_have_their_roles() {
        let segment = Segment::create().unwrap();
        let mut state = server(1);
        let roles = |state: &State| -> Vec<(u64, String, usize)> {
            let status = look(state, &segment, 1, 0);
            let triple = |g: Generation| (g.generation, g.role, g.workers.len());
            status.generations.into_iter().map(triple).collect()
        };
        assert_eq!(roles(&state), [(1, "serving".into(), 2)]);
        plan(&mut state, Event::Restart(ID), Duration::ZERO);
        assert_eq!(roles(&state), [(1, "serving".into(), 2), (2, "booting".into(), 0)]);
        boot(&mut state, 2);
        assert_eq!(roles(&state), [(1, "held".into(), 2), (2, "serving".into(), 2)]);
        plan(&mut state, Event::Tick, Duration::from_secs(61));
        assert_eq!(roles(&state)[0], (1, "leaving".into(), 2));
        let status = look(&state, &segment, 1, 0);
        assert_eq!((status.serving, state.word(), status.workers), (2, "running", 2));
        assert!(status.generations[0].workers.iter().all(|worker| worker.state == "leaving"));
        assert_eq!(status.generations[1].mold.state, "ready");
    }

    #[test]
    fn what_waits_and_what_runs_come_from_the_slots() {
        let segment = Segment::create().unwrap();
        let board = segment.board();
        board.header.serving.store(1, Relaxed);
        let state = server(2);
        assert_eq!(look(&state, &segment, 2, 5).queue, Queue { waiting: 0, oldest_ms: None });
        put(&segment, 0, 1_000_000_000);
        put(&segment, 1, 1_500_000_000);
        put(&segment, 2, 2_000_000_000);
        // The second worker's seats are 2 and 3.
        board.take(3, 1).unwrap();
        board.slots[0].taken_ns.store(1_100_000_000, Relaxed);
        board.seats[2].served.store(5, Relaxed);
        board.seats[3].served.store(7, Relaxed);

        let status = look(&state, &segment, 2, 4_000_000_000);
        assert_eq!(status.queue, Queue { waiting: 2, oldest_ms: Some(2500) });
        let [first, second] = &status.generations[0].workers[..] else { panic!("{status:?}") };
        assert_eq!((&*first.state, first.requests.len()), ("idle", 0));
        assert_eq!((&*second.state, second.served), ("busy", 12));
        let request = &second.requests[0];
        assert_eq!((request.thread, request.age_ms, request.waited_ms), (2, 2900, 100));
    }

    #[test]
    fn workers_stand_somewhere() {
        let segment = Segment::create().unwrap();
        let mut state = server(1);
        let seats = &segment.board().seats;
        seats[0].collecting.store(1, Relaxed);
        seats[1].wear.store(SPENT, Relaxed);
        let states = |state: &State| -> Vec<String> {
            let generation = look(state, &segment, 1, 0).generations.remove(0);
            generation.workers.into_iter().map(|worker| worker.state).collect()
        };
        assert_eq!(states(&state), ["collecting", "spent"]);
        seats[0].retire.store(1, Relaxed);
        plan(&mut state, Event::Scale(ID, 3), Duration::ZERO);
        assert_eq!(states(&state), ["leaving", "spent", "booting"]);
    }
}
