//! What is written in Rust for mruby: gems, and calls of their methods.

use crate::exception::Exception;
use crate::interp::{Inner, Interp};
use crate::sys::Raw;
use crate::value::Value;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

/// Something written in Rust for mruby.
pub trait Gem {
    /// What `require` knows it by.
    const NAME: &'static str;

    /// It keeps something that changes outside of the interpreter's memory: descriptors, or Rust
    /// values with interior mutability that are made while the app boots. Such a thing cannot be
    /// brought back by a reset, so `fresh` opens an interpreter for each request instead. Rust values
    /// that never change once they are made (`Value::set_data`) do not count.
    const OUTSIDE: bool = false;

    /// Defines its classes. Runs once for each interpreter, before the app.
    fn install(interp: &Interp) -> Result<(), Exception>;
}

/// A method written in Rust.
pub type Method = for<'a> fn(&Call<'a>) -> Result<Value<'a>, Exception>;

/// A call of a method that is written in Rust.
pub struct Call<'a> {
    interp: &'a Interp,
    this: Value<'a>,
    args: Vec<Value<'a>>,
    block: Value<'a>,
}

impl<'a> Call<'a> {
    /// The interpreter.
    pub fn interp(&self) -> &'a Interp {
        self.interp
    }

    /// The receiver.
    pub fn this(&self) -> Value<'a> {
        self.this
    }

    /// The arguments, as many as the definition allows.
    pub fn args(&self) -> &[Value<'a>] {
        &self.args
    }

    /// One of them; nil when it was not given.
    pub fn arg(&self, index: usize) -> Value<'a> {
        self.args.get(index).copied().unwrap_or_else(|| self.interp.nil())
    }

    /// The block, if there is one.
    pub fn block(&self) -> Option<Value<'a>> {
        (!self.block.is_nil()).then_some(self.block)
    }
}

impl Interp {
    /// The interpreter that runs a method of ours, not counted as an owner.
    pub(crate) fn of(owner: ManuallyDrop<Rc<Inner>>) -> ManuallyDrop<Interp> {
        ManuallyDrop::new(Interp(ManuallyDrop::into_inner(owner)))
    }

    /// Runs a method; whether its result is to be raised.
    pub(crate) fn called(
        &self,
        method: Method,
        this: Raw,
        list: &[Raw],
        block: Raw,
    ) -> (bool, Raw) {
        let interp = self;
        let args = list.iter().map(|raw| interp.value(*raw)).collect();
        let (this, block) = (interp.value(this), interp.value(block));
        let call = Call { interp, this, args, block };
        // A panic of ours must not pass mruby's frames.
        let result = catch_unwind(AssertUnwindSafe(|| method(&call)));
        let result = result.unwrap_or_else(|_| {
            Err(Exception::new(
                "RuntimeError",
                "a method written in Rust has panicked: see the log",
            ))
        });
        match result {
            Ok(value) => (false, value.raw()),
            Err(exception) => (true, exception.raisable(interp)),
        }
    }
}
