//! Taking over fds that the parent process left open for this one, by their numbers. The only
//! unsafe file of this crate.

#![allow(unsafe_code)]

use rustix::io::{FdFlags, fcntl_setfd};
use std::io;
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};

/// The inherited fd of this number, from now on closed on exec. Each number is taken once, at the
/// process's start.
pub fn take(number: RawFd) -> io::Result<OwnedFd> {
    if number < 3 {
        return Err(io::Error::other(format!("fd {number} cannot have been handed over")));
    }
    // SAFETY: borrowed for one call that merely fails if the number is not open.
    let found = unsafe { BorrowedFd::borrow_raw(number) };
    fcntl_setfd(found, FdFlags::CLOEXEC)?;
    // SAFETY: the number is open, was named to us by our parent, and nothing in this process has
    // opened or wrapped it: callers take each number once, before opening anything themselves.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}
