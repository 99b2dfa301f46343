//! The way back: what mruby calls in Rust, and the Rust values of its objects.

use super::{Raw, State};
use crate::gem::Method;
use crate::interp::{Inner, Interp};
use std::any::Any;
use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::rc::Rc;

unsafe extern "C" {
    fn oribi_mrb_boxed(value: Raw) -> *mut c_void;
    fn oribi_mrb_data(state: *mut State) -> *mut c_void;
    fn oribi_mrb_collector(state: *mut State, on: c_int);
}

/// A Rust value that an mruby object has.
pub struct Boxed {
    /// It belongs to the interpreter's image, which a reset brings back: mruby does not drop it.
    pub of_image: Cell<bool>,
    value: Box<dyn Any>,
}

/// Boxes a value for an object; `unbox` takes it back.
pub fn make_box(value: Box<dyn Any>) -> *const Boxed {
    Box::into_raw(Box::new(Boxed { of_image: Cell::new(false), value }))
}

/// Drops a box.
pub fn drop_box(boxed: *const Boxed) {
    // SAFETY: made by `make_box`, and dropped by whoever takes it off its interpreter's list.
    drop(unsafe { Box::from_raw(boxed.cast_mut()) });
}

/// Marks a box as part of the image.
pub fn keep_for_image(boxed: *const Boxed) {
    // SAFETY: on its interpreter's list, so not dropped yet.
    unsafe { (*boxed).of_image.set(true) };
}

/// Whether a box was marked so.
pub fn is_of_image(boxed: *const Boxed) -> bool {
    // SAFETY: as above.
    unsafe { (*boxed).of_image.get() }
}

/// The Rust value of an object, for as long as the object is alive.
pub fn unboxed<'a>(value: Raw) -> Option<&'a dyn Any> {
    // SAFETY: a pointer only if the object is one of ours.
    let boxed = NonNull::new(unsafe { oribi_mrb_boxed(value) })?.cast::<Boxed>();
    // SAFETY: dropped only with the object, and never replaced.
    Some(&*unsafe { boxed.as_ref() }.value)
}

fn owner(state: *mut State) -> *const Inner {
    // SAFETY: a plain load; `set_owner` comes before any method and any box.
    unsafe { oribi_mrb_data(state) }.cast_const().cast()
}

/// mruby calls a method that is written in Rust; 1 when `*result` is to be raised.
#[unsafe(no_mangle)]
extern "C" fn oribi_mruby_call(
    state: *mut State,
    method: *const c_void,
    this: Raw,
    argc: i64,
    argv: *const Raw,
    block: Raw,
    result: *mut Raw,
) -> c_int {
    // SAFETY: what `define` has stored.
    let method = unsafe { std::mem::transmute::<*const c_void, Method>(method) };
    let argc = usize::try_from(argc).unwrap_or(0);
    // SAFETY: a copy that the caller has made and that lives until it returns.
    let list = if argc == 0 { &[] } else { unsafe { std::slice::from_raw_parts(argv, argc) } };
    // SAFETY: the owner lives while its interpreter runs; the count stays as it is.
    let owner = ManuallyDrop::new(unsafe { Rc::from_raw(owner(state)) });
    let (raised, value) = Interp::of(owner).called(method, this, list, block);
    // SAFETY: a local of the caller's.
    unsafe { *result = value };
    raised.into()
}

/// mruby frees an object that has a box.
#[unsafe(no_mangle)]
extern "C" fn oribi_mruby_drop(state: *mut State, boxed: *mut c_void) {
    if boxed.is_null() {
        return;
    }
    // SAFETY: as above; the owner is there until its interpreter is closed.
    unsafe { &*owner(state) }.collected(boxed.cast_const().cast());
}

/// The collector may run again, because memory is needed; called by the allocator with mruby's own
/// pointer, which is NULL before there is an interpreter.
pub fn collect_again(state: *mut c_void) {
    if !state.is_null() {
        // SAFETY: the allocator has it from mruby.
        unsafe { oribi_mrb_collector(state.cast(), 1) }
    }
}
