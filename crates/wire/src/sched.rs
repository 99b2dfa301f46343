//! How the kernel schedules a thread: a front's, or a mold's that forks while requests run.

use std::io;

/// The slice of a thread that gives way, ns: the longest that the kernel takes.
const LONG_SLICE: u64 = 100_000_000;

/// `struct sched_attr` in its first version (sched_setattr(2)).
#[repr(C)]
#[derive(Default)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

/// The calling thread does not preempt others when it is woken, and from Linux 6.12 on it also comes
/// after those that want the processor for less time. Its share stays the same. False: it is as any
/// other again. Fails where a sandbox forbids the call.
pub fn give_way(give: bool) -> io::Result<()> {
    // SAFETY: a plain system call; the calling thread's own nice value.
    let nice = unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) };
    let (policy, runtime) =
        if give { (libc::SCHED_BATCH, LONG_SLICE) } else { (libc::SCHED_OTHER, 0) };
    let size = size_of::<Attributes>() as u32;
    let attributes =
        Attributes { size, policy: policy as u32, nice, runtime, ..Attributes::default() };
    // SAFETY: a plain system call for the calling thread; the structure has the size it names and
    // outlives the call.
    match unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

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
