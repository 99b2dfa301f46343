//! The processes that exist, as the operating system knows them: pids, pidfds, sockets.

use crate::channel::Channel;
use crate::plan::GenerationId;
use crate::spawn::Spawned;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, pidfd_send_signal, wait};
use std::collections::{BTreeMap, HashMap};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};
use wire::counters::server::Cause;

/// The front.
pub struct Front {
    /// Its pid.
    pub pid: Pid,
    /// To see it die and to kill it.
    pub pidfd: OwnedFd,
    /// Its control socket; none once it has closed its end.
    pub channel: Option<Channel>,
    /// Whether the plan has had it killed.
    pub is_unwanted: bool,
}

/// A mold.
pub struct Mold {
    /// Its pid, once it is known.
    pub pid: Option<Pid>,
    /// To see it die and to kill it. A mold that a calling process has forked sends its own; so
    /// does one that a wrapper script has started.
    pub pidfd: Option<OwnedFd>,
    /// Its control socket; none once it has closed its end.
    pub channel: Option<Channel>,
    /// Its Ruby, once it is ready.
    pub ruby: String,
}

/// A worker.
pub struct Worker {
    /// Its pid.
    pub pid: u32,
    /// To see it die and to kill it.
    pub pidfd: OwnedFd,
    /// Its first seat.
    pub seat: u16,
    /// Since when it exists.
    pub born: Instant,
    /// How long it may live; none: as long as it likes.
    pub lives: Option<Duration>,
    /// It is to be replaced, and the log says so.
    pub is_worn: bool,
    /// The plan has told it to leave.
    pub is_retired: bool,
    /// Why it is to leave, where that was not the plan's own doing.
    pub leaves: Option<Cause>,
    /// It was killed because a request ran for too long.
    pub overdue: bool,
}

/// All of them.
#[derive(Default)]
pub struct Children {
    /// The front.
    pub front: Option<Front>,
    /// Molds by generation.
    pub molds: BTreeMap<GenerationId, Mold>,
    /// Workers by generation and number.
    pub workers: BTreeMap<(GenerationId, u16), Worker>,
    /// Seats of workers that molds have been asked for.
    pub asked: BTreeMap<(GenerationId, u16), u16>,
    /// How children of ours ended that nobody has asked about yet.
    ended: HashMap<Pid, String>,
}

/// Something to look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token {
    /// A signal has come.
    Signal(i32),
    /// The calling process is dead.
    Caller,
    /// A worker wants its seats to be looked at.
    Seats,
    /// The settings that are read anew.
    Reread,
    /// Somebody connects to the control socket.
    Control,
    /// A client of the control socket.
    Client(u64),
    /// The front says something.
    FrontTalks,
    /// The front is dead.
    FrontDead,
    /// A mold says something.
    MoldTalks(GenerationId),
    /// A mold is dead.
    MoldDead(GenerationId),
    /// A worker is dead.
    WorkerDead(GenerationId, u16),
}

impl From<Spawned> for Front {
    fn from(spawned: Spawned) -> Front {
        let Spawned { pid, pidfd, channel } = spawned;
        Front { pid, pidfd, channel: Some(channel), is_unwanted: false }
    }
}

impl From<Spawned> for Mold {
    fn from(spawned: Spawned) -> Mold {
        let Spawned { pid, pidfd, channel } = spawned;
        let ruby = String::new();
        Mold { pid: Some(pid), pidfd: Some(pidfd), channel: Some(channel), ruby }
    }
}

impl Mold {
    /// A mold somebody else has forked; it introduces itself with `hello`.
    pub fn joined(socket: OwnedFd) -> Mold {
        let channel = Some(Channel::new(socket));
        Mold { pid: None, pidfd: None, channel, ruby: String::new() }
    }
}

/// Kills; that it is dead already is fine.
pub fn kill(pidfd: &OwnedFd) {
    let _ = pidfd_send_signal(pidfd, Signal::KILL);
}

impl Children {
    /// What to poll. Sockets come before deaths, so that the last words of the dead are heard.
    pub fn fds(&self) -> impl Iterator<Item = (Token, BorrowedFd<'_>)> {
        let front = self.front.iter().flat_map(|front| {
            let talks = front.channel.as_ref().map(|c| (Token::FrontTalks, c.fd()));
            talks.into_iter().chain([(Token::FrontDead, front.pidfd.as_fd())])
        });
        let talks = self.molds.iter().filter_map(|(generation, mold)| {
            Some((Token::MoldTalks(*generation), mold.channel.as_ref()?.fd()))
        });
        let deaths = self.molds.iter().filter_map(|(generation, mold)| {
            Some((Token::MoldDead(*generation), mold.pidfd.as_ref()?.as_fd()))
        });
        let workers = self.workers.iter().map(|((generation, nr), worker)| {
            (Token::WorkerDead(*generation, *nr), worker.pidfd.as_fd())
        });
        front.chain(talks).chain(deaths).chain(workers)
    }

    /// Collects everyone who has ended, orphans of dead molds among them.
    pub fn reap(&mut self) {
        self.collect();
        let front = self.front.as_ref().map(|front| front.pid);
        let (molds, workers) = (&self.molds, &self.workers);
        self.ended.retain(|pid, _| {
            front == Some(*pid)
                || molds.values().any(|mold| mold.pid == Some(*pid))
                || workers.values().any(|worker| worker.pid == pid.as_raw_nonzero().get() as u32)
        });
    }

    fn collect(&mut self) {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) => {
                    self.ended.insert(pid, describe(status));
                }
                Err(Errno::INTR) => {}
                Ok(None) | Err(_) => return,
            }
        }
    }

    /// How a dead child ended; a mold may be somebody else's to reap.
    pub fn how(&mut self, pid: Option<Pid>) -> String {
        self.how_ours(pid).unwrap_or_else(|| "status unknown".into())
    }

    /// The same for a worker, which is ours to reap only once its mold is gone.
    pub fn how_orphan(&mut self, pid: u32) -> Option<String> {
        self.how_ours(i32::try_from(pid).ok().and_then(Pid::from_raw))
    }

    fn how_ours(&mut self, pid: Option<Pid>) -> Option<String> {
        self.collect();
        pid.and_then(|pid| self.ended.remove(&pid))
    }

    /// Kills all there are, for the last moment.
    pub fn kill_all(&self) {
        self.workers.values().for_each(|worker| kill(&worker.pidfd));
        self.molds.values().filter_map(|mold| mold.pidfd.as_ref()).for_each(kill);
        self.front.iter().for_each(|front| kill(&front.pidfd));
    }
}

fn describe(status: WaitStatus) -> String {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => format!("exit {code}"),
        (_, Some(signal)) => format!("signal {signal}"),
        _ => "status unknown".into(),
    }
}
