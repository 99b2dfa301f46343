//! The supervisor: one thread, one `poll`. What happens becomes an event, `plan` says what to do,
//! `act` does it.

mod act;
mod changes;
mod control;
mod counts;
mod current;
mod hear;
mod idle;
mod leave;
mod mount;
mod overdue;
mod wear;

use crate::answer::say;
use crate::children::{Children, Mold, Token};
use crate::daemon::Daemon;
use crate::error_log::{self, ErrorLog};
use crate::listen::Listener;
use crate::notify::Notify;
use crate::options::{self, Settings};
use crate::pid_file::PidFile;
use crate::place::Place;
use crate::plan::{Action, Event, GenerationId, Limits, MountId, State, plan};
use crate::privileges::Identity;
use crate::signals::Signals;
use crate::spawn::MoldLine;
use crate::start::{Lines, Renewal, Start};
use control::{Desk, Reread};
use idle::Idle;
use mount::App;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::process::{Pid, PidfdFlags, getpid, pidfd_open, set_child_subreaper};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use wire::counters::Counters;

/// How often a dead worker's traces in the queue are looked after while there are any.
const PRUNE_EVERY: Duration = Duration::from_millis(100);

/// The running server.
struct Supervisor {
    settings: Settings,
    /// What makes molds of mounts.
    lines: Lines,
    /// The mounts that have apps, by the number that each got when it came.
    apps: BTreeMap<MountId, App>,
    /// Those that have none: the front answers for them alone.
    plain: BTreeMap<MountId, options::Mount>,
    /// Of the latter those that go: the front finishes what it has for them.
    going: BTreeMap<MountId, options::Mount>,
    /// The next mount's number.
    next: u16,
    /// The calling process, if there is one.
    caller: Option<OwnedFd>,
    /// Where its command line was given, if that can be read again.
    origin: Option<Place>,
    /// Where it is.
    place: Place,
    /// The control socket, if it could be had.
    desk: Option<Desk>,
    state: State,
    children: Children,
    signals: Signals,
    listeners: Vec<Listener>,
    admin: Vec<Listener>,
    addresses: Vec<String>,
    bells: Vec<OwnedFd>,
    /// What apps and front count, for the server's life.
    counters: Counters,
    /// Workers ring it when their seats are to be looked at.
    bell: OwnedFd,
    pidfd: OwnedFd,
    /// The process to send signals to: this one, or the calling one.
    known_pid: Pid,
    began: Instant,
    /// Events that acting has caused.
    pending: VecDeque<Event>,
    renewal: Option<Renewal>,
    /// Settings that are being read anew.
    reread: Option<Reread>,
    /// Mounts that people have added, as `--mount` has them.
    more: Vec<String>,
    /// Mounts that take the place of others as soon as they serve.
    heirs: BTreeMap<MountId, MountId>,
    idle: Idle,
    stops: u32,
    /// Since when the listeners are taken away.
    leaving: Option<Instant>,
    /// None: standard error is the log.
    error_log: Option<ErrorLog>,
    /// Whom the front runs as; none: as this process.
    identity: Option<Identity>,
    /// The process that waits until this one serves.
    daemon: Option<Daemon>,
    notify: Notify,
    _pid_file: Option<PidFile>,
}

/// Serves until told to stop.
pub fn run(start: Start) -> Result<ExitCode, String> {
    error_log::check("access_log", start.settings.front.access_log.as_ref())?;
    if let (Some(identity), Some(log)) = (&start.identity, &start.settings.front.access_log) {
        // The front writes it. A stream has no file of its name.
        let _ = identity.give(log);
    }
    let copy = start.daemon.as_ref().map(Daemon::copy).transpose();
    let copy = copy.map_err(|error| format!("daemonize: {error}"))?.flatten();
    let mut supervisor =
        Supervisor::new(start).map_err(|error| format!("cannot start: {error}"))?;
    let log = &supervisor.settings;
    supervisor.error_log = ErrorLog::start(&log.error_log, &log.error_log_format, copy)?;
    supervisor.open_control()?;
    let code = supervisor.serve().map_err(|error| format!("cannot go on: {error}"));
    supervisor.children.kill_all();
    supervisor.children.reap();
    code.map(ExitCode::from)
}

impl Supervisor {
    fn new(start: Start) -> io::Result<Supervisor> {
        let Start { settings, join, listeners, admin, .. } = start;
        let signals = Signals::catch()?;
        set_child_subreaper(Some(getpid()))?;
        let bell = || eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let bells = (0..settings.front_threads).map(|_| bell()).collect::<Result<_, _>>()?;
        let known_pid = join.as_ref().map_or(getpid(), |join| join.pid);
        let mut supervisor = Supervisor {
            lines: start.lines,
            apps: BTreeMap::new(),
            plain: BTreeMap::new(),
            going: BTreeMap::new(),
            next: 0,
            origin: start.origin,
            place: start.place,
            desk: None,
            state: State::new(settings.shutdown_timeout),
            children: Children::default(),
            signals,
            addresses: listeners.iter().map(|one| one.address.clone()).collect(),
            listeners,
            admin,
            counters: Counters::create()?,
            bells,
            bell: bell()?,
            known_pid,
            pidfd: pidfd_open(getpid(), PidfdFlags::empty())?,
            began: start.began,
            pending: VecDeque::new(),
            renewal: start.renewal,
            reread: None,
            more: Vec::new(),
            heirs: BTreeMap::new(),
            idle: Idle::new(settings.process.idle_timeout),
            stops: 0,
            leaving: None,
            error_log: None,
            identity: start.identity,
            daemon: start.daemon,
            notify: Notify::from_environment(known_pid),
            _pid_file: start.pid_file,
            caller: None,
            settings,
        };
        for mount in supervisor.settings.mounts.clone() {
            supervisor.mount(mount)?;
        }
        if let Some(join) = join {
            supervisor.caller = Some(join.caller);
            if let Some(app) = supervisor.apps.values_mut().next() {
                app.joined = Some(Mold::joined(join.mold));
            }
        }
        Ok(supervisor)
    }

    /// The loop. Returns the exit code.
    fn serve(&mut self) -> io::Result<u8> {
        self.pending.push_back(Event::Tick);
        loop {
            while let Some(event) = self.pending.pop_front() {
                for action in plan(&mut self.state, event, self.began.elapsed()) {
                    if let Action::Exit(code) = action {
                        return Ok(code);
                    }
                    self.act(action);
                }
            }
            self.notify.pet();
            for token in self.wait()? {
                self.hear(token);
            }
            self.look_for_overdue();
            for app in self.apps.values_mut().filter(|app| app.pruning) {
                app.pruning = !app.segment.board().prune_returned();
            }
            self.look_at_wear();
            self.look_for_changes();
            self.look_for_idleness();
            self.go_on_leaving();
            self.desk.iter_mut().for_each(|desk| desk.sweep(Instant::now()));
            self.pending.push_back(Event::Tick);
        }
    }

    /// Sleeps until something can be read or something is due.
    fn wait(&self) -> io::Result<Vec<Token>> {
        let signals = self.signals.fds().map(|(signal, fd)| (Token::Signal(signal), fd));
        let caller = self.caller.iter().map(|caller| (Token::Caller, caller.as_fd()));
        let seats = [(Token::Seats, self.bell.as_fd())];
        let reread = self.reread.iter().map(|reread| (Token::Reread, reread.fd()));
        let heard = self.children.fds().chain(signals).chain(caller).chain(seats).chain(reread);
        let heard = heard.map(|(token, fd)| (token, PollFd::from_borrowed_fd(fd, PollFlags::IN)));
        let clients = self.desk.iter().flat_map(Desk::fds);
        let clients =
            clients.map(|(token, fd, flags)| (token, PollFd::from_borrowed_fd(fd, flags)));
        let (tokens, mut fds): (Vec<Token>, Vec<PollFd>) = heard.chain(clients).unzip();
        let timeout = self.due_in().map(|t| Timespec {
            tv_sec: t.as_secs() as i64,
            // One more, lest the poll ends just before what it waits for is due.
            tv_nsec: (i64::from(t.subsec_nanos()) + 1).min(999_999_999),
        });
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let ready = tokens.into_iter().zip(&fds).filter(|(_, fd)| !fd.revents().is_empty());
        Ok(ready.map(|(token, _)| token).collect())
    }

    /// How long until something is due.
    fn due_in(&self) -> Option<Duration> {
        let now = self.began.elapsed();
        let plan = self.state.deadline(now).map(|at| at - now);
        let apps = self.apps.values().filter_map(App::due_in).min();
        let desk = self.desk.as_ref().and_then(|desk| desk.due_in(Instant::now()));
        let notify = self.notify.due();
        let seldom = [self.changes_due_in(), self.idle_due_in(), self.leaving_due_in()];
        [plan, apps, desk, notify].into_iter().chain(seldom).flatten().min()
    }
}
