//! `TCP_DEFER_ACCEPT`, which no crate has as a safe call.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Seconds the kernel waits for a connection's first bytes before it is accepted without them. It
/// rounds them up to the first repetition of its SYN+ACK.
const SECONDS: libc::c_int = 1;

/// Has the kernel hold back connections to this TCP listener that have sent nothing yet.
pub fn defer_accept(listener: BorrowedFd) -> io::Result<()> {
    let (seconds, size) = (SECONDS, size_of_val(&SECONDS) as libc::socklen_t);
    let value = (&raw const seconds).cast();
    // SAFETY: the kernel reads `size` bytes, those of `seconds`; the fd is borrowed for the call.
    let set = unsafe {
        libc::setsockopt(
            listener.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_DEFER_ACCEPT,
            value,
            size,
        )
    };
    if set == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
