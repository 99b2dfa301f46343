//! Looking into values.

use super::Raw;
use crate::value::Kind;
use std::ffi::c_int;

unsafe extern "C" {
    fn oribi_mrb_kind(value: Raw) -> c_int;
    fn oribi_mrb_integer(value: Raw) -> i64;
    fn oribi_mrb_float(value: Raw) -> f64;
    fn oribi_mrb_bytes(value: Raw, length: *mut usize) -> *const u8;
    fn oribi_mrb_length(array: Raw) -> usize;
    fn oribi_mrb_entry(array: Raw, index: usize) -> Raw;
    fn oribi_mrb_bool(value: c_int) -> Raw;
    fn oribi_mrb_version() -> c_int;
    fn oribi_mrb_is_jump(value: Raw) -> c_int;
}

/// What a value is.
pub fn kind_of(value: Raw) -> Kind {
    // SAFETY: reads the word or the object's header.
    match unsafe { oribi_mrb_kind(value) } {
        0 => Kind::Nil,
        1 => Kind::Bool,
        2 => Kind::Int,
        3 => Kind::Float,
        4 => Kind::Symbol,
        5 => Kind::Str,
        6 => Kind::Array,
        7 => Kind::Hash,
        8 => Kind::Proc,
        9 => Kind::Class,
        _ => Kind::Object,
    }
}

/// Of an Integer.
pub fn integer(value: Raw) -> i64 {
    // SAFETY: the caller knows that it is one.
    unsafe { oribi_mrb_integer(value) }
}

/// Of a Float.
pub fn float(value: Raw) -> f64 {
    // SAFETY: the caller knows that it is one.
    unsafe { oribi_mrb_float(value) }
}

/// A String's bytes, for a function that does not run mruby.
pub fn with_bytes<R>(value: Raw, look: impl FnOnce(&[u8]) -> R) -> R {
    let mut length = 0;
    // SAFETY: the caller knows that it is a String.
    let start = unsafe { oribi_mrb_bytes(value, &raw mut length) };
    if length == 0 {
        return look(&[]);
    }
    // SAFETY: so many bytes; nothing changes the string before `look` returns, since only mruby
    // could, and callers see to it that it does not run.
    look(unsafe { std::slice::from_raw_parts(start, length) })
}

/// An Array's entries.
pub fn length(array: Raw) -> usize {
    // SAFETY: the caller knows that it is an Array.
    unsafe { oribi_mrb_length(array) }
}

/// One of them; nil beyond the end.
pub fn entry(array: Raw, index: usize) -> Raw {
    // SAFETY: the caller knows that it is an Array.
    unsafe { oribi_mrb_entry(array, index) }
}

/// true or false.
pub fn boolean(value: bool) -> Raw {
    // SAFETY: a constant.
    unsafe { oribi_mrb_bool(value.into()) }
}

/// mruby's release: 3.1.0 is 30100.
pub fn version() -> i32 {
    // SAFETY: a constant.
    unsafe { oribi_mrb_version() }
}

/// Whether something raised is no exception but a jump out of a block.
pub fn is_jump(raised: Raw) -> bool {
    // SAFETY: reads the word or the object's header.
    unsafe { oribi_mrb_is_jump(raised) != 0 }
}
