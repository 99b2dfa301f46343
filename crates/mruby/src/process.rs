//! What mold and workers need of the kernel that no crate has as a safe call.

use rustix::io::{FdFlags, fcntl_dupfd_cloexec, fcntl_setfd};
use rustix::process::Pid;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};

/// The fd that a variable names, taken over from whoever started this process.
pub fn inherited(variable: &str) -> Option<OwnedFd> {
    let number: RawFd = std::env::var(variable).ok()?.parse().ok()?;
    // SAFETY: it was left open for us alone, and is taken once. A number that is no fd is seen below.
    let fd = unsafe { OwnedFd::from_raw_fd(number) };
    fcntl_setfd(&fd, FdFlags::CLOEXEC).ok().map(|()| fd)
}

/// The process that returns Some has forked a child of this pid; the other is the child.
pub fn fork() -> io::Result<Option<Pid>> {
    // SAFETY: the mold has one thread, so the child is as whole as its parent.
    let pid = unsafe { libc::fork() };
    if pid < 0 { Err(io::Error::last_os_error()) } else { Ok(Pid::from_raw(pid)) }
}

/// Descriptors from one number on belong to requests: those below are taken, all of them.
pub struct Fence {
    first: RawFd,
    null: File,
    /// Takes the numbers that were free below.
    _holes: Vec<OwnedFd>,
}

impl Fence {
    /// To be called when the process has all it needs.
    pub fn raise() -> io::Result<Fence> {
        let null = File::open("/dev/null")?;
        let highest = std::fs::read_dir("/proc/self/fd")?
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<RawFd>().ok())
            .max();
        let highest = highest.unwrap_or(2);
        let mut holes = Vec::new();
        loop {
            let fd = fcntl_dupfd_cloexec(null.as_fd(), 0)?;
            if fd.as_raw_fd() > highest {
                return Ok(Fence { first: fd.as_raw_fd(), null, _holes: holes });
            }
            holes.push(fd);
        }
    }

    /// Closes what a request has opened. False: it has also closed what was not its own.
    pub fn clear(&self) -> bool {
        // SAFETY: nothing of ours has such a number: what we open for a request is closed with it.
        let closed = unsafe { libc::close_range(self.first as u32, u32::MAX, 0) };
        let probe = fcntl_dupfd_cloexec(self.null.as_fd(), 0);
        closed == 0 && probe.is_ok_and(|fd| fd.as_raw_fd() == self.first)
    }
}
