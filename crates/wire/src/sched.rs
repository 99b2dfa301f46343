//! How the kernel schedules a front thread.

use std::io;

/// SCHED_BATCH for the calling thread, or the normal policy again. A thread of SCHED_BATCH is not
/// preferred to a running one when it is woken, so a worker that finishes a request keeps its
/// processor and takes the next one, while replies and new requests gather. Its share of processor
/// time stays the same. Fails where a sandbox forbids the call.
pub fn gather_wakeups(gather: bool) -> io::Result<()> {
    let policy = if gather { libc::SCHED_BATCH } else { libc::SCHED_OTHER };
    let none = libc::sched_param { sched_priority: 0 };
    // SAFETY: a plain system call for the calling thread; the parameter outlives it.
    match unsafe { libc::sched_setscheduler(0, policy, &raw const none) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
