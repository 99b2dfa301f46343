//! A mount with an app, as it runs: what its molds and workers share for as long as it is there.

use super::changes::Changes;
use super::overdue::Clocks;
use super::wear::Watch;
use super::*;
use crate::children::Worker;
use crate::options;
use crate::plan::MountId;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use wire::Segment;
use wire::control::ToFront;
use wire::sync::Ordering::{Acquire, Relaxed};

/// A mount with an app.
pub(super) struct App {
    pub(super) settings: options::Mount,
    pub(super) mold_line: MoldLine,
    /// A mold that exists already, until generation 1 wants it.
    pub(super) joined: Option<Mold>,
    pub(super) segment: Segment,
    pub(super) exchanges: Exchanges,
    /// When to look for requests that run too long.
    pub(super) clocks: Clocks,
    /// When to look at memory and age.
    pub(super) watch: Watch,
    pub(super) changes: Changes,
    /// Requests of the dead are back in the queue.
    pub(super) pruning: bool,
}

/// Socket pairs over which workers pass fds to front threads, one for each thread. Both ends stay
/// open here, so that they outlive every front and every worker.
pub(super) struct Exchanges {
    pub(super) fronts: Vec<OwnedFd>,
    pub(super) workers: Vec<OwnedFd>,
}

impl Exchanges {
    fn new(count: u16) -> io::Result<Exchanges> {
        let pair =
            || socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None);
        let pairs = (0..count).map(|_| pair()).collect::<Result<Vec<_>, _>>()?;
        let (fronts, workers) = pairs.into_iter().unzip();
        Ok(Exchanges { fronts, workers })
    }
}

impl App {
    pub(super) fn new(
        settings: options::Mount,
        mold_line: MoldLine,
        front_threads: u16,
    ) -> io::Result<App> {
        let now = Instant::now();
        Ok(App {
            joined: None,
            segment: Segment::create()?,
            exchanges: Exchanges::new(front_threads)?,
            clocks: clocks(&settings),
            watch: Watch::new(&settings.recycling, now),
            changes: Changes::new(mold_line.place(), &settings.watch, now),
            pruning: false,
            mold_line,
            settings,
        })
    }

    /// Other settings from now on; what workers know of them comes with their next generation.
    pub(super) fn renew(&mut self, settings: options::Mount) {
        let now = Instant::now();
        self.clocks = clocks(&settings);
        self.watch = Watch::new(&settings.recycling, now);
        self.changes = Changes::new(self.mold_line.place(), &settings.watch, now);
        self.settings = settings;
    }

    /// A worker's seats.
    pub(super) fn seats(&self, worker: &Worker) -> &[wire::doorbell::Seat] {
        let (first, threads) = (usize::from(worker.seat), usize::from(self.settings.threads));
        &self.segment.board().seats[first..first + threads]
    }

    /// The numbers that the plan goes by.
    pub(super) fn limits(settings: &options::Mount, shutdown_timeout: Duration) -> Limits {
        Limits {
            workers: settings.workers,
            // mruby's workers stay: only their interpreters are fresh.
            fresh: settings.isolation == options::Isolation::Fresh
                && settings.engine == options::Engine::Cruby,
            threads: settings.threads,
            seats: wire::SEATS as u16,
            shutdown_timeout,
            spawn_interval: settings.spawn_interval,
            err_respawn_interval: settings.err_respawn_interval,
            start_timeout: settings.start_timeout,
            rollback_window: settings.rollback_window,
        }
    }

    /// How long until something is due that the plan does not know of.
    pub(super) fn due_in(&self) -> Option<Duration> {
        let prune = self.pruning.then_some(PRUNE_EVERY);
        let clocks = self.clocks.wait(wire::now_ns());
        [prune, self.watch.due_in(), clocks].into_iter().flatten().min()
    }

    /// Requests that were put, and the last one's time, ns.
    pub(super) fn puts(&self) -> (u64, Option<u64>) {
        let board = self.segment.board();
        (board.queue.tail.load(Acquire), board.last_put_ns())
    }

    /// Whether a request is under way.
    pub(super) fn is_busy(&self) -> bool {
        let slots = &self.segment.board().slots;
        slots.iter().any(|slot| slot.word().state != wire::State::Free)
    }

    /// Whether any of a worker's seats has been told to leave.
    pub(super) fn is_told_to_leave(&self, worker: &Worker) -> bool {
        self.seats(worker).iter().any(|seat| seat.retire.load(Relaxed) != 0)
    }

    /// Whether any of them has completed a request.
    pub(super) fn has_served(&self, worker: &Worker) -> bool {
        self.seats(worker).iter().any(|seat| seat.served.load(Relaxed) > 0)
    }
}

fn clocks(settings: &options::Mount) -> Clocks {
    Clocks::new(&[settings.worker.request_timeout, settings.worker.request_timeout_soft])
}

impl Supervisor {
    /// A mount more. Requests go there once its app serves, or at once if it has none.
    pub(super) fn mount(&mut self, settings: options::Mount) -> io::Result<MountId> {
        let id = MountId(self.next);
        self.counters.server().claim_row(&settings.name);
        if settings.has_app() {
            let line = self.lines.of(&settings).map_err(io::Error::other)?;
            let app = App::new(settings, line, self.settings.front_threads)?;
            let limits = App::limits(&app.settings, self.settings.shutdown_timeout);
            self.pending.push_back(Event::Mount(id, tag(&app.settings), limits));
            self.apps.insert(id, app);
        } else {
            self.plain.insert(id, settings);
            self.route(id);
        }
        self.next += 1;
        Ok(id)
    }

    /// A mount less, once what it has is finished.
    pub(super) fn unmount(&mut self, id: MountId) {
        say(&format!("{}the mount goes", self.tag(id)));
        if self.apps.contains_key(&id) {
            return self.pending.push_back(Event::Unmount(id));
        }
        if let Some(settings) = self.plain.remove(&id) {
            self.going.insert(id, settings);
            self.tell_front(ToFront::Unmount(id), &[]);
        }
        if self.children.front.is_none() {
            self.forget(id);
        }
    }

    /// With the front went what it had for those that go.
    pub(super) fn forget_going(&mut self) {
        let going: Vec<MountId> = self.going.keys().copied().collect();
        going.into_iter().for_each(|id| self.forget(id));
    }

    /// The front has no request of it left.
    pub(super) fn unmounted(&mut self, id: MountId) {
        match self.apps.contains_key(&id) {
            true => self.pending.push_back(Event::Unmounted(id)),
            false => self.forget(id),
        }
    }

    /// What a line of the log about this mount begins with.
    pub(super) fn tag(&self, id: MountId) -> String {
        let plain = self.plain.get(&id).or_else(|| self.going.get(&id));
        let mount = self.apps.get(&id).map(|app| &app.settings).or(plain);
        mount.map_or(String::new(), tag)
    }
}

/// What nobody has called a mount is the server itself.
pub(super) fn tag(mount: &options::Mount) -> String {
    if mount.declared { format!("{}: ", mount.name) } else { String::new() }
}
