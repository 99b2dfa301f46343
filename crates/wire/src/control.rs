//! The lines that supervisor, molds and front say to each other: one SOCK_SEQPACKET packet each,
//! no newline. Which fds ride along is said with each message. Nothing here does I/O.

use std::fmt;

/// The longest packet anyone sends (`init` with its JSON is the long one).
pub const PACKET_BYTES: usize = 64 * 1024;

/// The environment variable that names a mold's control socket.
pub const MOLD_FD: &str = "ORIBI_MOLD";
/// The environment variable that makes this binary the mold of an mruby mount.
pub const MRUBY_MOLD: &str = "ORIBI_MRUBY_MOLD";
/// The environment variable with a front's setup: JSON, fds as numbers.
pub const FRONT_SETUP: &str = "ORIBI_FRONT";

/// Names a mount of a server for as long as that runs; given in order, and never again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MountId(pub u16);

impl fmt::Display for MountId {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What a mold says to its supervisor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FromMold {
    /// The first thing, before anything is loaded. One fd: the mold's pidfd.
    Hello {
        /// The mold's process id.
        pid: u32,
    },
    /// The app is loaded.
    Ready {
        /// How long loading took.
        milliseconds: u64,
        /// The Ruby version, for the start-up lines.
        ruby: String,
    },
    /// The app did not load. The mold has printed the backtrace and ends.
    Failed {
        /// One line.
        reason: String,
    },
    /// A worker exists. One fd: its pidfd.
    Forked {
        /// The worker's number.
        nr: u16,
        /// The worker's process id.
        pid: u32,
    },
    /// A worker is ready to take requests. The worker says so itself, on the socket of its mold.
    Up {
        /// The worker's number.
        nr: u16,
    },
    /// A worker could not get ready and ends; it, too, says so itself.
    Unfit {
        /// The worker's number.
        nr: u16,
        /// One line.
        reason: String,
    },
    /// The mold has reaped a worker; for the log.
    Reaped {
        /// The worker's number.
        nr: u16,
        /// Its process id.
        pid: u32,
        /// `exit 0`, `signal 9`.
        status: String,
    },
}

/// What the supervisor says to a mold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToMold {
    /// All a mold needs to know, as JSON. Fds: segment, supervisor's pidfd, the eventfd that workers
    /// ring the supervisor with, the counters, one eventfd for each front thread, then one exchange
    /// socket for each, then the error log, if `error_log` says that there is one.
    Init(String),
    /// Fork worker `nr` on the seats that begin at `seat`.
    Fork {
        /// The worker's number.
        nr: u16,
        /// Its first seat.
        seat: u16,
    },
    /// This generation serves now.
    Serve,
    /// Exit 0 once the workers are gone.
    Quit,
}

/// What the front says to its supervisor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FromFront {
    /// Its runtime is up.
    Ready,
    /// All connections are finished; it exits 0.
    Drained,
    /// None of the mount's requests is left, and its segment is let go.
    Unmounted(MountId),
    /// Somebody wants to know how things are. One fd: a stream on which a request of the commands'
    /// protocol is to be read, and answered if it changes nothing.
    Ask,
}

/// What the supervisor says to the front.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToFront {
    /// A mount from now on, as JSON (`front::Mount`). Fds of one that has workers: its segment, then
    /// one exchange socket for each front thread. Of a mount that is there already: its new
    /// settings, without fds.
    Mount(String),
    /// No new request goes to this mount; answered by `Unmounted` when those it has are finished.
    Unmount(MountId),
    /// Start accepting: the first worker exists.
    Accept,
    /// Leave connections to the other server that shares the listeners, as far as workers lack.
    Yield,
    /// Accept what the backlog holds, close the listeners, finish what runs and waits.
    Drain,
    /// Open the access log's file again: it has been renamed.
    Reopen,
}

/// A packet that is none of the above: binary and gem are of different versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unknown(pub String);

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "unknown control message {:?}: binary and gem differ, rebuild both", self.0)
    }
}

impl std::error::Error for Unknown {}

fn text(packet: &[u8]) -> Result<&str, Unknown> {
    std::str::from_utf8(packet).map_err(|_| Unknown(String::from_utf8_lossy(packet).into()))
}

impl FromMold {
    /// Reads one packet.
    pub fn parse(packet: &[u8]) -> Result<FromMold, Unknown> {
        let line = text(packet)?;
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        FromMold::from_parts(word, rest).ok_or_else(|| Unknown(line.into()))
    }

    fn from_parts(word: &str, rest: &str) -> Option<FromMold> {
        let (first, others) = rest.split_once(' ').unwrap_or((rest, ""));
        Some(match word {
            "hello" => FromMold::Hello { pid: rest.parse().ok()? },
            "ready" => {
                FromMold::Ready { milliseconds: first.parse().ok()?, ruby: others.to_string() }
            }
            "failed" => FromMold::Failed { reason: rest.to_string() },
            "forked" => FromMold::Forked { nr: first.parse().ok()?, pid: others.parse().ok()? },
            "up" => FromMold::Up { nr: rest.parse().ok()? },
            "unfit" => FromMold::Unfit { nr: first.parse().ok()?, reason: others.to_string() },
            "reaped" => {
                let (pid, status) = others.split_once(' ')?;
                let (nr, pid) = (first.parse().ok()?, pid.parse().ok()?);
                FromMold::Reaped { nr, pid, status: status.to_string() }
            }
            _ => return None,
        })
    }
}

impl fmt::Display for FromMold {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            FromMold::Hello { pid } => write!(f, "hello {pid}"),
            FromMold::Ready { milliseconds, ruby } => write!(f, "ready {milliseconds} {ruby}"),
            FromMold::Failed { reason } => write!(f, "failed {reason}"),
            FromMold::Forked { nr, pid } => write!(f, "forked {nr} {pid}"),
            FromMold::Up { nr } => write!(f, "up {nr}"),
            FromMold::Unfit { nr, reason } => write!(f, "unfit {nr} {reason}"),
            FromMold::Reaped { nr, pid, status } => write!(f, "reaped {nr} {pid} {status}"),
        }
    }
}

impl ToMold {
    /// Reads one packet.
    pub fn parse(packet: &[u8]) -> Result<ToMold, Unknown> {
        let line = text(packet)?;
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let fork = || {
            let (nr, seat) = rest.split_once(' ')?;
            Some(ToMold::Fork { nr: nr.parse().ok()?, seat: seat.parse().ok()? })
        };
        match word {
            "init" => Some(ToMold::Init(rest.to_string())),
            "fork" => fork(),
            "serve" if rest.is_empty() => Some(ToMold::Serve),
            "quit" if rest.is_empty() => Some(ToMold::Quit),
            _ => None,
        }
        .ok_or_else(|| Unknown(line.into()))
    }
}

impl fmt::Display for ToMold {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            ToMold::Init(json) => write!(f, "init {json}"),
            ToMold::Fork { nr, seat } => write!(f, "fork {nr} {seat}"),
            ToMold::Serve => f.write_str("serve"),
            ToMold::Quit => f.write_str("quit"),
        }
    }
}

impl FromFront {
    /// Reads one packet.
    pub fn parse(packet: &[u8]) -> Result<FromFront, Unknown> {
        let line = text(packet)?;
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "ready" if line == word => Some(FromFront::Ready),
            "drained" if line == word => Some(FromFront::Drained),
            "ask" if line == word => Some(FromFront::Ask),
            "unmounted" => rest.parse().ok().map(|id| FromFront::Unmounted(MountId(id))),
            _ => None,
        }
        .ok_or_else(|| Unknown(line.into()))
    }
}

impl fmt::Display for FromFront {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            FromFront::Ready => f.write_str("ready"),
            FromFront::Drained => f.write_str("drained"),
            FromFront::Ask => f.write_str("ask"),
            FromFront::Unmounted(id) => write!(f, "unmounted {id}"),
        }
    }
}

impl ToFront {
    /// Reads one packet.
    pub fn parse(packet: &[u8]) -> Result<ToFront, Unknown> {
        let line = text(packet)?;
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "mount" => Some(ToFront::Mount(rest.to_string())),
            "unmount" => rest.parse().ok().map(|id| ToFront::Unmount(MountId(id))),
            "accept" if line == word => Some(ToFront::Accept),
            "yield" if line == word => Some(ToFront::Yield),
            "drain" if line == word => Some(ToFront::Drain),
            "reopen" if line == word => Some(ToFront::Reopen),
            _ => None,
        }
        .ok_or_else(|| Unknown(line.into()))
    }
}

impl fmt::Display for ToFront {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            ToFront::Mount(json) => write!(f, "mount {json}"),
            ToFront::Unmount(id) => write!(f, "unmount {id}"),
            ToFront::Accept => f.write_str("accept"),
            ToFront::Yield => f.write_str("yield"),
            ToFront::Drain => f.write_str("drain"),
            ToFront::Reopen => f.write_str("reopen"),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_understood() {
        let said = [
            FromMold::Hello { pid: 7 },
            FromMold::Ready { milliseconds: 310, ruby: "3.1.2".into() },
            FromMold::Failed { reason: "RuntimeError: no database".into() },
            FromMold::Forked { nr: 2, pid: 99 },
            FromMold::Up { nr: 2 },
            FromMold::Unfit { nr: 2, reason: "warm_up: /health answered 503".into() },
            FromMold::Reaped { nr: 2, pid: 99, status: "signal 9".into() },
        ];
        for message in said {
            assert_eq!(FromMold::parse(message.to_string().as_bytes()), Ok(message));
        }
        let told = [
            ToMold::Init("{\"a\": 1}".into()),
            ToMold::Fork { nr: 1, seat: 8 },
            ToMold::Serve,
            ToMold::Quit,
        ];
        for message in told {
            assert_eq!(ToMold::parse(message.to_string().as_bytes()), Ok(message));
        }
        let unmounted = FromFront::Unmounted(MountId(7));
        for message in [FromFront::Ready, FromFront::Drained, FromFront::Ask, unmounted] {
            assert_eq!(FromFront::parse(message.to_string().as_bytes()), Ok(message));
        }
        let asked = [
            ToFront::Mount("{\"id\": 1}".into()),
            ToFront::Unmount(MountId(65535)),
            ToFront::Accept,
            ToFront::Yield,
            ToFront::Drain,
            ToFront::Reopen,
        ];
        for message in asked {
            assert_eq!(ToFront::parse(message.to_string().as_bytes()), Ok(message));
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for line in ["", "hello", "hello you", "forked 1", "reaped 1 2", "forked x 2", "bye 1"] {
            assert!(FromMold::parse(line.as_bytes()).is_err(), "{line:?}");
        }
        for line in ["", "fork 1", "fork 1 x", "quit now", "ready"] {
            assert!(ToMold::parse(line.as_bytes()).is_err(), "{line:?}");
        }
        assert!(FromFront::parse(b"\xff").is_err());
        for line in [&b"accept "[..], b"unmount", b"unmount 65536", b"unmount -1", b"reopen it"] {
            assert!(ToFront::parse(line).is_err(), "{line:?}");
        }
        assert!(FromFront::parse(b"unmounted x").is_err());
    }
}
