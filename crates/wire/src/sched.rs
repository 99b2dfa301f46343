//! How the kernel schedules the front.

use std::io;

/// Asks for SCHED_BATCH: the calling process is no longer preferred to a running one when it is
/// woken, so a worker that finishes a request keeps its processor and takes the next one, while
/// replies and new requests gather. Its share of processor time stays the same.
///
/// Measured with 16 kept connections, one worker, two cores: 8 instead of 16 microseconds of
/// processor time for each request, and a median latency of 0.15 instead of 0.43 ms.
pub fn gather_wakeups() -> io::Result<()> {
    let none = libc::sched_param { sched_priority: 0 };
    // SAFETY: a plain system call for the calling process; the parameter outlives it.
    match unsafe { libc::sched_setscheduler(0, libc::SCHED_BATCH, &raw const none) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
