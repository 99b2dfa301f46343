//! What mold and workers need from the kernel that Ruby has no call for.

use crate::ruby::{self, Method};
use rb_sys::{RARRAY_LEN, VALUE, rb_ary_entry};
use rustix::process::{Pid, PidfdFlags, pidfd_open, set_child_subreaper};
use std::os::fd::{IntoRawFd, OwnedFd};
use std::sync::OnceLock;
use wire::Segment;
use worker::Fronts;

static SEGMENT: OnceLock<Opened> = OnceLock::new();

struct Opened {
    segment: &'static Segment,
    supervisor: OwnedFd,
    bells: Vec<OwnedFd>,
    exchanges: Vec<OwnedFd>,
}

/// The segment and the ways to the others, once `open_segment` was called.
pub fn segment() -> Option<(&'static Segment, Fronts)> {
    SEGMENT.get().map(|opened| {
        let Opened { segment, supervisor, bells, exchanges } = opened;
        (*segment, Fronts { bells, exchanges, supervisor })
    })
}

/// Defines the functions of `Oribi::Native`.
pub fn define(native: VALUE) {
    ruby::define_function(native, c"pidfd_open", Method::M1(pidfd));
    ruby::define_function(native, c"subreaper!", Method::M0(subreaper));
    ruby::define_function(native, c"watch", Method::M1(watch));
    ruby::define_function(native, c"fill_holes", Method::M0(fill_holes));
    ruby::define_function(native, c"no_new_privileges", Method::M0(no_new_privileges));
    ruby::define_function(native, c"open_segment", Method::M4(open_segment));
}

/// `pidfd_open(pid) -> fd`, close-on-exec.
unsafe extern "C" fn pidfd(_: VALUE, pid: VALUE) -> VALUE {
    let pid = Pid::from_raw(ruby::integer(pid) as i32);
    let opened = pid.map(|pid| pidfd_open(pid, PidfdFlags::empty()));
    match opened {
        Some(Ok(fd)) => ruby::number(fd.into_raw_fd().into()),
        Some(Err(error)) => ruby::raise_io(&error.into()),
        None => ruby::raise_io(&std::io::ErrorKind::InvalidInput.into()),
    }
}

/// `subreaper!`: orphans among the descendants become children of this process.
unsafe extern "C" fn subreaper(_: VALUE) -> VALUE {
    if let Err(error) = set_child_subreaper(Some(rustix::process::getpid())) {
        ruby::raise_io(&error.into());
    }
    ruby::nil()
}

/// `fill_holes -> bytes`: what is allocated from now on lies close together.
unsafe extern "C" fn fill_holes(_: VALUE) -> VALUE {
    ruby::number(worker::holes::fill() as i64)
}

/// An fd number from Ruby, taken over by a duplicate, so that Ruby may close or keep its own.
pub fn duplicate(number: VALUE) -> std::io::Result<OwnedFd> {
    let number = ruby::integer(number) as i32;
    // SAFETY: borrowed only for the duplication; a number that is no fd gives EBADF.
    let fd = unsafe { std::os::fd::BorrowedFd::borrow_raw(number) };
    Ok(rustix::io::fcntl_dupfd_cloexec(fd, 3)?)
}

/// `watch(pidfd)`: this process ends when the one behind the pidfd does. Not inherited by forks.
unsafe extern "C" fn watch(_: VALUE, pidfd: VALUE) -> VALUE {
    match duplicate(pidfd).and_then(worker::end_with) {
        Ok(()) => ruby::nil(),
        Err(error) => ruby::raise_io(&error),
    }
}

/// `no_new_privileges`: no program that this process runs gets more rights than it has.
unsafe extern "C" fn no_new_privileges(_: VALUE) -> VALUE {
    match rustix::thread::set_no_new_privs(true) {
        Ok(()) => ruby::nil(),
        Err(error) => ruby::raise_io(&error.into()),
    }
}

/// `open_segment(fd, eventfd, [eventfd, ...], [socket, ...])`: maps the segment and keeps the ways
/// to the supervisor and to the fronts; once in a process, before it forks.
unsafe extern "C" fn open_segment(
    _: VALUE,
    fd: VALUE,
    supervisor: VALUE,
    bells: VALUE,
    exchanges: VALUE,
) -> VALUE {
    let opened = duplicate(fd).and_then(Segment::open).and_then(|segment| {
        Ok(Opened {
            segment: segment.forever(),
            supervisor: duplicate(supervisor)?,
            bells: duplicate_all(bells)?,
            exchanges: duplicate_all(exchanges)?,
        })
    });
    match opened {
        Ok(opened) => ruby::boolean(SEGMENT.set(opened).is_ok()),
        Err(error) => ruby::raise_io(&error),
    }
}

fn duplicate_all(numbers: VALUE) -> std::io::Result<Vec<OwnedFd>> {
    // SAFETY: the list is an Array, as ours in lib/oribi is; entries beyond its end read as nil.
    let count = unsafe { RARRAY_LEN(numbers) };
    // SAFETY: as above.
    (0..count).map(|i| duplicate(unsafe { rb_ary_entry(numbers, i) })).collect()
}
