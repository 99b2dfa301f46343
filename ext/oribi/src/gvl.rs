//! The one place where the interpreter lock is dropped and taken back.

use rb_sys::{RB_NOGVL_UBF_ASYNC_SAFE, rb_nogvl};
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What to do without the lock, and how another thread or a signal handler ends it early. Both
/// are plain functions of what is waited on, so an exception that leaves from here skips no
/// destructor.
struct Pause<T> {
    on: *const T,
    wait: fn(&T),
    stop: fn(&T),
}

/// Runs `wait` without the GVL; `stop` must make it return, and be safe in a signal handler.
///
/// May raise whatever an interrupt raises. The async-safe flag matters: without it Ruby starts an
/// extra thread for every wait of an only thread.
pub fn without<T: Sync>(on: *const T, wait: fn(&T), stop: fn(&T)) {
    let pause = Pause { on, wait, stop };
    let data = (&raw const pause).cast_mut().cast::<c_void>();
    // SAFETY: `pause` lives on this frame until rb_nogvl is left, by return or by a jump, and so
    // does what is waited on: a seat, or something on the caller's frame.
    unsafe {
        rb_nogvl(Some(run::<T>), data, Some(unblock::<T>), data, RB_NOGVL_UBF_ASYNC_SAFE as i32);
    }
}

unsafe extern "C" fn run<T>(data: *mut c_void) -> *mut c_void {
    // SAFETY: `data` is the `Pause` of `without`. Only shared references to what is waited on
    // exist while its thread is in here.
    let (pause, on) = unsafe {
        let pause = &*data.cast::<Pause<T>>();
        (pause, &*pause.on)
    };
    let _ = catch_unwind(AssertUnwindSafe(|| (pause.wait)(on)));
    std::ptr::null_mut()
}

unsafe extern "C" fn unblock<T>(data: *mut c_void) {
    // SAFETY: as in `run`.
    let (pause, on) = unsafe {
        let pause = &*data.cast::<Pause<T>>();
        (pause, &*pause.on)
    };
    (pause.stop)(on);
}
