//! The way to the application's server, which is started if it is not there.
//!
//! Who connects holds the file `lock` shared; who starts a server, or takes away the socket of one
//! that ends, holds it exclusively. So no connect falls between a server's last look at its backlog
//! and its end, and of a hundred first requests one starts a server while the others wait.

use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::fd::OwnedFd;
use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

use crate::fault::Fault;
use crate::log;
use crate::place::{self, Place};
use crate::starting::Starting;

/// How long a server may take until it listens.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// How often a server that starts is tried.
const INTERVAL: Duration = Duration::from_millis(4);

/// A connection to the server.
pub struct Reached {
    /// Connected.
    pub socket: OwnedFd,
    /// The server was started, or waited for, on the way.
    pub started: bool,
}

/// Connects, and starts the server first if nobody listens.
pub fn reach(place: &Place) -> Result<Reached, Fault> {
    let path = place.file("socket");
    let lock = lock(place)?;
    wait_for(&lock, FlockOperation::LockShared)?;
    if let Some(socket) = try_connect(&path)? {
        return Ok(Reached { socket, started: false });
    }
    wait_for(&lock, FlockOperation::LockExclusive)?;
    if let Some(socket) = try_connect(&path)? {
        return Ok(Reached { socket, started: false });
    }
    let socket = start(place, &path)?;
    Ok(Reached { socket, started: true })
}

fn lock(place: &Place) -> Result<OwnedFd, Fault> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let path = place.file("lock");
    open(&path, flags, Mode::RUSR | Mode::WUSR).map_err(|error| {
        Fault::new("the lock cannot be opened").because(format!("{}: {error}", path.display()))
    })
}

fn wait_for(lock: &OwnedFd, operation: FlockOperation) -> Result<(), Fault> {
    retry_on_intr(|| flock(lock, operation))
        .map_err(|error| Fault::new("the lock cannot be taken").because(error.to_string()))
}

/// A connection, if somebody listens. It waits where the server's backlog is full.
fn try_connect(path: &Path) -> Result<Option<OwnedFd>, Fault> {
    let fault = |error: Errno| {
        let detail = match error {
            Errno::NAMETOOLONG => {
                "its path is too long: name a shorter directory in ORIBI_RUNTIME_DIR".into()
            }
            _ => error.to_string(),
        };
        Fault::new("the server's socket cannot be used")
            .because(format!("{}: {detail}", path.display()))
    };
    let address = SocketAddrUnix::new(path).map_err(fault)?;
    if !place::socket(path)? {
        return Ok(None);
    }
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
        .map_err(fault)?;
    match retry_on_intr(|| connect(&socket, &address)) {
        Ok(()) => Ok(Some(socket)),
        Err(Errno::CONNREFUSED | Errno::NOENT) => Ok(None),
        Err(error) => Err(fault(error)),
    }
}

/// Starts a server and waits until it listens.
fn start(place: &Place, path: &Path) -> Result<OwnedFd, Fault> {
    let before = log::length(place);
    let starting = Starting::begin(place)?;
    let deadline = Instant::now() + START_TIMEOUT;
    loop {
        sleep(INTERVAL);
        // Asked first: one that has listened and ended is another matter.
        let ended = starting.ended();
        if let Some(socket) = try_connect(path)? {
            starting.done(place);
            return Ok(socket);
        }
        if ended {
            starting.done(place);
            let cause = "the application's server ended while it started";
            return Err(Fault::new(cause).because(log::last_line(place, before)));
        }
        if Instant::now() > deadline {
            let detail = format!(
                "it does not listen after {} s, and starts still: {}",
                START_TIMEOUT.as_secs(),
                log::last_line(place, before)
            );
            return Err(Fault::new("the application's server is slow to start").because(detail));
        }
    }
}
