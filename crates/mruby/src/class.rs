//! Classes and modules, and methods that are written in Rust.

use crate::exception::Exception;
use crate::gem::Method;
use crate::sys::Code;
use crate::value::Value;
use std::any::Any;
use std::ops::{Bound, RangeBounds};

/// A class or a module.
#[derive(Clone, Copy)]
pub struct Class<'i>(Value<'i>);

impl<'i> Class<'i> {
    pub(crate) fn new(value: Value<'i>) -> Class<'i> {
        Class(value)
    }

    /// The object itself.
    pub fn value(&self) -> Value<'i> {
        self.0
    }

    /// Defines a method with so many arguments: `0..=0`, `1..=2`, `1..` for any number. A closure
    /// that captures nothing is a `Method`.
    pub fn method(
        &self,
        name: &str,
        arguments: impl RangeBounds<usize>,
        method: Method,
    ) -> Result<(), Exception> {
        self.define(Code::Method, name, arguments, method)
    }

    /// Defines a method of the class itself.
    pub fn singleton_method(
        &self,
        name: &str,
        arguments: impl RangeBounds<usize>,
        method: Method,
    ) -> Result<(), Exception> {
        self.define(Code::Singleton, name, arguments, method)
    }

    fn define(
        &self,
        code: Code,
        name: &str,
        arguments: impl RangeBounds<usize>,
        method: Method,
    ) -> Result<(), Exception> {
        let least = match arguments.start_bound() {
            Bound::Included(least) => *least as i64,
            Bound::Excluded(below) => *below as i64 + 1,
            Bound::Unbounded => 0,
        };
        let most = match arguments.end_bound() {
            Bound::Included(most) => *most as i64,
            Bound::Excluded(above) => *above as i64 - 1,
            Bound::Unbounded => -1,
        };
        let interp = self.0.interp();
        let vm = interp.vm();
        interp.take(vm.define(code, self.0.raw(), name, (least, most), method)).map(|_| ())
    }

    /// Sets a constant.
    pub fn constant(&self, name: &str, value: Value) -> Result<(), Exception> {
        let interp = self.0.interp();
        let vm = interp.vm();
        let set = vm.named(Code::SetConstant, name.as_bytes(), self.0.raw(), value.raw());
        interp.take(set).map(|_| ())
    }

    /// Lets instances have a Rust value: see `Value::set_data`. Before any instance is made.
    pub fn holds_data(&self) -> Result<(), Exception> {
        let interp = self.0.interp();
        interp.take(interp.vm().wrap(self.0.raw(), std::ptr::null())).map(|_| ())
    }

    /// An instance with this Rust value, without `initialize`.
    pub fn instance<T: Any>(&self, data: T) -> Result<Value<'i>, Exception> {
        let interp = self.0.interp();
        let boxed = interp.add_box(Box::new(data));
        let made = interp.vm().wrap(self.0.raw(), boxed);
        if made.is_err() {
            interp.discard_box(boxed);
        }
        interp.take(made)
    }
}
