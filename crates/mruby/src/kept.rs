//! Values that Rust keeps.

use crate::interp::{Inner, Interp};
use crate::sys::{Code, Raw};
use crate::value::Value;
use std::rc::{Rc, Weak};

impl Interp {
    pub(crate) fn keep_raw(&self, raw: Raw) -> Option<Kept> {
        self.vm().with(Code::Register, raw, Raw::NIL, Raw::NIL).ok()?;
        let of_image = !self.0.frozen.get();
        Some(Kept { inner: Rc::downgrade(&self.0), life: self.0.life.get(), of_image, raw })
    }
}

/// A value that Rust keeps: mruby does not collect it. It lives until it is dropped, the interpreter
/// is closed, or a `reset` to a moment before it was kept.
pub struct Kept {
    inner: Weak<Inner>,
    life: u64,
    of_image: bool,
    raw: Raw,
}

impl Kept {
    /// The value, in the interpreter it came from; None if it is gone.
    pub fn get<'i>(&self, interp: &'i Interp) -> Option<Value<'i>> {
        let same = std::ptr::eq(self.inner.as_ptr(), Rc::as_ptr(&interp.0));
        (same && self.is_there(&interp.0)).then(|| interp.value(self.raw))
    }

    /// What was kept before the freeze comes back with each reset.
    fn is_there(&self, inner: &Inner) -> bool {
        self.of_image || self.life == inner.life.get()
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let Some(inner) = self.inner.upgrade() else { return };
        if self.is_there(&inner) {
            let _ = inner.vm.with(Code::Unregister, self.raw, Raw::NIL, Raw::NIL);
        }
    }
}
