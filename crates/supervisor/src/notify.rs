//! What a service manager is told (`sd_notify`): ready, reloading, stopping, still alive.

use rustix::process::{Pid, getpid};
use rustix::time::{ClockId, clock_gettime};
use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::{Duration, Instant};

const SOCKET: &str = "NOTIFY_SOCKET";
const WATCHDOG_USEC: &str = "WATCHDOG_USEC";
const WATCHDOG_PID: &str = "WATCHDOG_PID";
/// Variables that are for the supervisor alone.
pub const VARIABLES: [&str; 3] = [SOCKET, WATCHDOG_USEC, WATCHDOG_PID];

/// The service manager's ear; without one nothing is said.
pub struct Notify {
    socket: Option<UnixDatagram>,
    /// The process that the service manager is to watch.
    main: Pid,
    watchdog: Option<Watchdog>,
}

struct Watchdog {
    every: Duration,
    next: Instant,
}

impl Notify {
    /// The one this process was started with; `main` is the process that was started.
    pub fn from_environment(main: Pid) -> Notify {
        let socket = std::env::var_os(SOCKET).and_then(|name| connect(&name).ok());
        let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
        let for_us = number(WATCHDOG_PID)
            .is_none_or(|pid| [main, getpid()].iter().any(|ours| pid == of(*ours)));
        let every = number(WATCHDOG_USEC).filter(|usec| *usec > 0 && for_us);
        // Twice in the time within which it wants to hear something.
        let every = every.map(|usec| Duration::from_micros(usec) / 2);
        let watchdog = every.map(|every| Watchdog { every, next: Instant::now() });
        Notify { watchdog: watchdog.filter(|_| socket.is_some()), socket, main }
    }

    /// The server serves, again or for the first time; `status` is a line for people.
    pub fn ready(&self, status: &str) {
        self.say(&format!("READY=1\nMAINPID={}\nSTATUS={status}\n", of(self.main)));
    }

    /// A new generation boots.
    pub fn reloading(&self, status: &str) {
        let now = clock_gettime(ClockId::Monotonic);
        let usec = now.tv_sec * 1_000_000 + now.tv_nsec / 1000;
        self.say(&format!("RELOADING=1\nMONOTONIC_USEC={usec}\nSTATUS={status}\n"));
    }

    /// The end has begun.
    pub fn stopping(&self, status: &str) {
        self.say(&format!("STOPPING=1\nSTATUS={status}\n"));
    }

    /// How long the supervisor may sleep until it has to say that it is alive.
    pub fn due(&self) -> Option<Duration> {
        self.watchdog.as_ref().map(|dog| dog.next.saturating_duration_since(Instant::now()))
    }

    /// Says that the supervisor is alive, if it is time.
    pub fn pet(&mut self) {
        let Some(dog) = &mut self.watchdog else { return };
        if Instant::now() >= dog.next {
            dog.next = Instant::now() + dog.every;
            self.say("WATCHDOG=1\n");
        }
    }

    /// A service manager that does not listen is no reason to stop serving, or to wait.
    fn say(&self, text: &str) {
        if let Some(socket) = &self.socket {
            let _ = socket.send(text.as_bytes());
        }
    }
}

fn of(pid: Pid) -> u64 {
    pid.as_raw_nonzero().get().unsigned_abs().into()
}

/// A name that begins with @ is one of Linux's abstract sockets.
fn connect(name: &OsStr) -> io::Result<UnixDatagram> {
    let address = match name.as_bytes() {
        [b'@', rest @ ..] => SocketAddr::from_abstract_name(rest)?,
        _ => SocketAddr::from_pathname(name)?,
    };
    let socket = UnixDatagram::unbound()?;
    socket.set_nonblocking(true)?;
    socket.connect_addr(&address)?;
    Ok(socket)
}
