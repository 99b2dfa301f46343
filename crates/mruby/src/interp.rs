//! The interpreter: opening, running, freezing, and what its values live by.

use crate::exception::Exception;
use crate::gem::Gem;
use crate::region::{self, Region};
use crate::sys::{self, Boxed, Code, Compiled, Raw, Vm};
use crate::value::Value;
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::io;
use std::rc::Rc;

/// What an interpreter may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes; what is beyond is NoMemoryError. Once the interpreter is frozen: bytes of what runs
    /// then.
    pub memory: usize,
}

impl Default for Limits {
    /// 256 MiB.
    fn default() -> Limits {
        Limits { memory: 256 << 20 }
    }
}

/// Bytecode with its lines, compiled once, to be run in any interpreter.
#[derive(Clone, Debug)]
pub struct Program(Vec<u8>);

/// An interpreter. One thread at a time uses it, the one that has opened it.
pub struct Interp(pub(crate) Rc<Inner>);

pub(crate) struct Inner {
    pub(crate) vm: Vm,
    region: RefCell<Region>,
    /// Rust values of mruby objects.
    boxes: RefCell<HashSet<*const Boxed>>,
    /// Counts resets: what was kept before one is gone after it.
    pub(crate) life: Cell<u64>,
    pub(crate) frozen: Cell<bool>,
    outside: Cell<bool>,
    /// Names of the gems that were added.
    gems: RefCell<Vec<&'static str>>,
    /// Exceptions in the making: a backtrace that fails is not asked for its backtrace.
    depth: Cell<u32>,
}

impl Interp {
    /// Opens one with the gems that mruby was built with.
    pub fn open(limits: &Limits) -> Result<Interp, Exception> {
        let failed = |error: io::Error| {
            Exception::new("NoMemoryError", format!("no memory for an interpreter: {error}"))
        };
        let region = Region::new(limits.memory).map_err(failed)?;
        let vm = Vm::open(region::allocate, region.data());
        let vm = vm.ok_or_else(|| failed(io::ErrorKind::OutOfMemory.into()))?;
        let inner = Rc::new(Inner {
            vm,
            region: RefCell::new(region),
            boxes: RefCell::default(),
            life: Cell::new(0),
            frozen: Cell::new(false),
            outside: Cell::new(false),
            gems: RefCell::default(),
            depth: Cell::new(0),
        });
        vm.set_owner(Rc::as_ptr(&inner));
        Ok(Interp(inner))
    }

    /// Adds a gem.
    pub fn install<G: Gem>(&self) -> Result<(), Exception> {
        G::install(self)?;
        self.0.outside.set(self.0.outside.get() || G::OUTSIDE);
        self.0.gems.borrow_mut().push(G::NAME);
        Ok(())
    }

    /// Whether a gem of this name was added.
    pub fn has_gem(&self, name: &str) -> bool {
        self.0.gems.borrow().contains(&name)
    }

    /// Whether a gem keeps something outside of the interpreter's memory.
    pub fn has_outside(&self) -> bool {
        self.0.outside.get()
    }

    /// Compiles a source text; `file` is what backtraces name it.
    pub fn compile(&self, source: &[u8], file: &str) -> Result<Program, Exception> {
        match self.vm().compile(source, file) {
            Compiled::Code(code) => Ok(Program(code)),
            Compiled::Wrong(text) => Err(Exception::new("SyntaxError", text)),
            Compiled::Raised(raw) => Err(self.raised(raw)),
        }
    }

    /// Runs a program at the top level; its last value.
    pub fn run(&self, program: &Program) -> Result<Value<'_>, Exception> {
        self.take(self.vm().named(Code::Run, &program.0, Raw::NIL, Raw::NIL))
    }

    /// Compiles and runs.
    pub fn eval(&self, source: &str, file: &str) -> Result<Value<'_>, Exception> {
        self.run(&self.compile(source.as_bytes(), file)?)
    }

    /// Makes what is there now, and only that, what `reset` brings back. Garbage is not collected any
    /// more, until there is need to.
    pub fn freeze(&mut self) -> Result<(), Exception> {
        self.vm().collector(false);
        for boxed in self.0.boxes.borrow().iter() {
            sys::keep_for_image(*boxed);
        }
        let frozen = self.0.region.borrow_mut().freeze();
        self.0.frozen.set(true);
        frozen.map_err(|error| Exception::new("RuntimeError", format!("cannot freeze: {error}")))
    }

    /// Whether there is something that `reset` brings back.
    pub fn is_frozen(&self) -> bool {
        self.0.frozen.get()
    }

    /// Bytes of what `reset` brings back.
    pub fn image(&self) -> usize {
        self.0.region.borrow().image()
    }

    /// Brings back what was frozen; how many pages had been written. No value outlives it: those kept
    /// by Rust since are gone.
    pub fn reset(&mut self) -> usize {
        let pages = self.0.region.borrow_mut().reset();
        self.after_reset();
        pages
    }

    /// The same by dropping pages instead of copying them back, to compare the two.
    #[doc(hidden)]
    pub fn reset_by_dropping(&mut self) {
        self.0.region.borrow_mut().reset_by_dropping();
        self.after_reset();
    }

    fn after_reset(&self) {
        self.0.life.set(self.0.life.get() + 1);
        if self.0.boxes.borrow().is_empty() {
            return;
        }
        let all = self.0.boxes.take();
        let (image, others): (HashSet<_>, HashSet<_>) =
            all.into_iter().partition(|boxed| sys::is_of_image(*boxed));
        self.0.boxes.replace(image);
        others.into_iter().for_each(sys::drop_box);
    }

    /// Whether garbage is collected.
    pub fn collect_garbage(&self, on: bool) {
        self.vm().collector(on);
    }

    /// Whether the limit of memory was reached: the interpreter should be reset or replaced.
    pub fn is_exhausted(&self) -> bool {
        self.0.region.borrow().exhausted()
    }

    /// Collects all garbage now; objects that are left.
    pub fn full_gc(&self) -> usize {
        let _ = self.vm().with(Code::Collect, Raw::NIL, Raw::NIL, Raw::NIL);
        self.vm().objects()
    }

    /// Lets go of the values that were made within, so that a long loop does not keep them all. None
    /// of them may be used afterwards.
    pub fn scope<R>(&self, within: impl FnOnce() -> R) -> R
    where
        R: 'static,
    {
        let arena = self.vm().arena();
        let result = within();
        self.vm().restore(arena);
        result
    }

    /// How many values are kept for Rust now, for `restore_arena`.
    pub(crate) fn arena(&self) -> i32 {
        self.vm().arena()
    }

    pub(crate) fn restore_arena(&self, arena: i32) {
        self.vm().restore(arena);
    }

    pub(crate) fn vm(&self) -> Vm {
        self.0.vm
    }

    pub(crate) fn value(&self, raw: Raw) -> Value<'_> {
        Value::new(self, raw)
    }

    pub(crate) fn take(&self, result: Result<Raw, Raw>) -> Result<Value<'_>, Exception> {
        result.map(|raw| self.value(raw)).map_err(|raw| self.raised(raw))
    }

    /// Makes an exception of what mruby has raised, also when there is no memory for it.
    pub(crate) fn raised(&self, raw: Raw) -> Exception {
        if self.0.depth.get() > 0 {
            return Exception::new(self.value(raw).class_name(), "");
        }
        self.0.depth.set(1);
        let exception = Exception::of(self, raw);
        self.0.depth.set(0);
        exception
    }

    pub(crate) fn add_box(&self, value: Box<dyn Any>) -> *const Boxed {
        let boxed = sys::make_box(value);
        self.0.boxes.borrow_mut().insert(boxed);
        boxed
    }

    pub(crate) fn discard_box(&self, boxed: *const Boxed) {
        self.0.boxes.borrow_mut().remove(&boxed);
        sys::drop_box(boxed);
    }
}

impl Inner {
    /// mruby has collected an object that has this box.
    pub(crate) fn collected(&self, boxed: *const Boxed) {
        // One of the image comes back with it.
        if !sys::is_of_image(boxed) && self.boxes.borrow_mut().remove(&boxed) {
            sys::drop_box(boxed);
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // After the limit mruby's own records may be wrong.
        if !self.region.borrow().exhausted() {
            self.vm.close();
        }
        self.boxes.take().into_iter().for_each(sys::drop_box);
    }
}
