//! Signals as something to poll: one pipe for each.

use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTTIN, SIGTTOU, SIGUSR1};
use signal_hook::consts::{SIGPIPE, SIGUSR2, SIGXFSZ};
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The signals a supervisor reacts to.
pub const HANDLED: [i32; 9] =
    [SIGCHLD, SIGTERM, SIGINT, SIGQUIT, SIGHUP, SIGUSR1, SIGUSR2, SIGTTIN, SIGTTOU];

/// The reading ends.
pub struct Signals(Vec<(i32, UnixStream)>);

impl Signals {
    /// From now on the signals arrive here and do nothing else.
    pub fn catch() -> io::Result<Signals> {
        let mut pipes = Vec::new();
        for signal in HANDLED {
            let (read, write) = UnixStream::pair()?;
            read.set_nonblocking(true)?;
            signal_hook::low_level::pipe::register(signal, write)?;
            pipes.push((signal, read));
        }
        Ok(Signals(pipes))
    }

    /// What to poll, each with its signal.
    pub fn fds(&self) -> impl Iterator<Item = (i32, BorrowedFd<'_>)> {
        self.0.iter().map(|(signal, read)| (*signal, read.as_fd()))
    }

    /// How often the signal came since the last call. (Those that come while one is pending are
    /// merged by the kernel, as always.)
    pub fn take(&mut self, signal: i32) -> usize {
        let Some((_, read)) = self.0.iter_mut().find(|(other, _)| *other == signal) else {
            return 0;
        };
        let mut bytes = [0; 64];
        read.read(&mut bytes).unwrap_or(0)
    }
}

/// For the front: signals sent to the whole process group, or to everything in a control group,
/// are the supervisor's business; its messages say what to do about them. What is written too far
/// into a pipe or a file is an error there and no signal.
pub fn leave_to_supervisor() -> io::Result<()> {
    let orders = [SIGTERM, SIGINT, SIGQUIT, SIGHUP, SIGUSR1, SIGUSR2, SIGTTIN, SIGTTOU];
    for signal in orders.into_iter().chain([SIGPIPE, SIGXFSZ]) {
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))?;
    }
    Ok(())
}
