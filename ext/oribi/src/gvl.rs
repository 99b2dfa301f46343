//! The one place where the interpreter lock is dropped and taken back.

use rb_sys::{RB_NOGVL_UBF_ASYNC_SAFE, rb_nogvl};
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use worker::Seat;

/// What to do without the lock, and how another thread or a signal handler ends it early. Both
/// are plain functions of the seat, so an exception that leaves from here skips no destructor.
struct Pause {
    seat: *const Seat,
    wait: fn(&Seat),
    stop: fn(&Seat),
}

/// Runs `wait` without the GVL; `stop` must make it return, and be safe in a signal handler.
///
/// May raise whatever an interrupt raises. The async-safe flag matters: without it Ruby starts an
/// extra thread for every wait of an only thread.
pub fn without(seat: *const Seat, wait: fn(&Seat), stop: fn(&Seat)) {
    let pause = Pause { seat, wait, stop };
    let data = (&raw const pause).cast_mut().cast::<c_void>();
    // SAFETY: `pause` lives on this frame until rb_nogvl is left, by return or by a jump; the seat
    // lives as long as the process.
    unsafe {
        rb_nogvl(Some(run), data, Some(unblock), data, RB_NOGVL_UBF_ASYNC_SAFE as i32);
    }
}

unsafe extern "C" fn run(data: *mut c_void) -> *mut c_void {
    // SAFETY: `data` is the `Pause` of `without`. Only shared references to the seat exist while
    // its thread is in here.
    let (pause, seat) = unsafe {
        let pause = &*data.cast::<Pause>();
        (pause, &*pause.seat)
    };
    let _ = catch_unwind(AssertUnwindSafe(|| (pause.wait)(seat)));
    std::ptr::null_mut()
}

unsafe extern "C" fn unblock(data: *mut c_void) {
    // SAFETY: as in `run`.
    let (pause, seat) = unsafe {
        let pause = &*data.cast::<Pause>();
        (pause, &*pause.seat)
    };
    (pause.stop)(seat);
}
