//! The supervisor: one thread, one `poll`. What happens becomes an event, `plan` says what to do,
//! `act` does it.

mod act;
mod changes;
mod control;
mod current;
mod hear;
mod idle;
mod leave;
mod overdue;
mod wear;

use crate::answer::say;
use crate::children::{Children, Mold, Token};
use crate::daemon::Daemon;
use crate::error_log::{self, ErrorLog};
use crate::listen::Listener;
use crate::notify::Notify;
use crate::options::{Isolation, Settings};
use crate::pid_file::PidFile;
use crate::place::Place;
use crate::plan::{Action, Event, Limits, State, plan};
use crate::privileges::Identity;
use crate::signals::Signals;
use crate::spawn::MoldLine;
use crate::start::{Renewal, Start};
use changes::Changes;
use control::Desk;
use idle::Idle;
use overdue::Clocks;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::process::{Pid, PidfdFlags, getpid, pidfd_open, set_child_subreaper};
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use wear::Watch;
use wire::Segment;
use wire::counters::Counters;

/// How often a dead worker's traces in the queue are looked after while there are any.
const PRUNE_EVERY: Duration = Duration::from_millis(100);

/// The running server.
struct Supervisor {
    settings: Settings,
    mold_line: MoldLine,
    /// A mold that exists already, until generation 1 wants it.
    joined: Option<Mold>,
    /// The calling process, if there is one.
    caller: Option<OwnedFd>,
    /// Where the server was started.
    directory: PathBuf,
    /// The control socket, if it could be had.
    desk: Option<Desk>,
    state: State,
    children: Children,
    signals: Signals,
    listeners: Vec<Listener>,
    addresses: Vec<String>,
    segment: Segment,
    bells: Vec<OwnedFd>,
    exchanges: Exchanges,
    /// What apps and front count, for the server's life.
    counters: Counters,
    /// Workers ring it when their seats are to be looked at.
    bell: OwnedFd,
    /// When to look for requests that run too long.
    clocks: Clocks,
    pidfd: OwnedFd,
    /// The process to send signals to: this one, or the calling one.
    known_pid: Pid,
    began: Instant,
    /// Events that acting has caused.
    pending: VecDeque<Event>,
    pruning: bool,
    watch: Watch,
    changes: Changes,
    renewal: Option<Renewal>,
    idle: Idle,
    stops: u32,
    /// Since when the listeners are taken away.
    leaving: Option<Instant>,
    /// None: standard error is the log.
    error_log: Option<ErrorLog>,
    /// Whom the others run as; none: as this process.
    identity: Option<Identity>,
    /// The process that waits until this one serves.
    daemon: Option<Daemon>,
    notify: Notify,
    _pid_file: Option<PidFile>,
}

/// Socket pairs over which workers pass fds to front threads, one for each thread. Both ends stay
/// open here, so that they outlive every front and every worker.
struct Exchanges {
    fronts: Vec<OwnedFd>,
    workers: Vec<OwnedFd>,
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
        let Start { settings, mold_line, join, listeners, .. } = start;
        let mount = &settings.mounts[0];
        let signals = Signals::catch()?;
        set_child_subreaper(Some(getpid()))?;
        let bell = || eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let bells = (0..settings.front_threads).map(|_| bell()).collect::<Result<_, _>>()?;
        let state = State::new(Limits {
            workers: mount.workers,
            fresh: mount.isolation == Isolation::Fresh,
            threads: mount.threads,
            seats: wire::SEATS as u16,
            shutdown_timeout: settings.shutdown_timeout,
            spawn_interval: mount.spawn_interval,
            err_respawn_interval: mount.err_respawn_interval,
            start_timeout: mount.start_timeout,
            rollback_window: mount.rollback_window,
        });
        let counters = Counters::create()?;
        for mount in &settings.mounts {
            counters.server().claim_row(&mount.name);
        }
        let known_pid = join.as_ref().map_or(getpid(), |join| join.pid);
        let (joined, caller) = match join {
            Some(join) => (Some(Mold::joined(join.mold)), Some(join.caller)),
            None => (None, None),
        };
        let directory = mold_line.place().directory.clone();
        let changes = Changes::new(mold_line.place(), &mount.watch, start.began);
        Ok(Supervisor {
            directory,
            desk: None,
            mold_line,
            joined,
            caller,
            state,
            children: Children::default(),
            signals,
            addresses: listeners.iter().map(|one| one.address.clone()).collect(),
            listeners,
            segment: Segment::create()?,
            counters,
            bells,
            bell: bell()?,
            clocks: Clocks::new(&[mount.worker.request_timeout, mount.worker.request_timeout_soft]),
            exchanges: Exchanges::new(settings.front_threads)?,
            known_pid,
            pidfd: pidfd_open(getpid(), PidfdFlags::empty())?,
            began: start.began,
            pending: VecDeque::new(),
            pruning: false,
            watch: Watch::new(&mount.recycling, start.began),
            changes,
            renewal: start.renewal,
            idle: Idle::new(settings.process.idle_timeout),
            stops: 0,
            leaving: None,
            error_log: None,
            identity: start.identity,
            daemon: start.daemon,
            notify: Notify::from_environment(known_pid),
            _pid_file: start.pid_file,
            settings,
        })
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
            if self.pruning {
                self.pruning = !self.segment.board().prune_returned();
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
        let heard = self.children.fds().chain(signals).chain(caller).chain(seats);
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
        let prune = self.pruning.then_some(PRUNE_EVERY);
        let desk = self.desk.as_ref().and_then(|desk| desk.due_in(Instant::now()));
        let clocks = self.clocks.wait(wire::now_ns());
        let notify = self.notify.due();
        let seldom = [self.changes_due_in(), self.idle_due_in(), self.leaving_due_in()];
        let often = [plan, prune, desk, self.watch.due_in(), clocks, notify];
        often.into_iter().chain(seldom).flatten().min()
    }
}
