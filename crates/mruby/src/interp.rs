//! The interpreter: opening, running, freezing, and what its values live by.

use crate::class::Class;
use crate::exception::Exception;
use crate::region::{self, Region};
use crate::sys::{self, Boxed, Code, Compiled, Raw, Vm};
use crate::value::Value;
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::io;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::{Rc, Weak};

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

/// An interpreter. One thread at a time uses it, the one that has opened it.
pub struct Interp(Rc<Inner>);

pub(crate) struct Inner {
    vm: Vm,
    region: RefCell<Region>,
    /// Rust values of mruby objects.
    boxes: RefCell<HashSet<*const Boxed>>,
    /// Counts resets: what was kept before one is gone after it.
    life: Cell<u64>,
    frozen: Cell<bool>,
    outside: Cell<bool>,
    /// Exceptions in the making: a backtrace that fails is not asked for its backtrace.
    depth: Cell<u32>,
}

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
            depth: Cell::new(0),
        });
        vm.set_owner(Rc::as_ptr(&inner));
        Ok(Interp(inner))
    }

    /// Adds a gem.
    pub fn install<G: Gem>(&self) -> Result<(), Exception> {
        G::install(self)?;
        self.0.outside.set(self.0.outside.get() || G::OUTSIDE);
        Ok(())
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

    /// nil.
    pub fn nil(&self) -> Value<'_> {
        self.value(Raw::NIL)
    }

    /// true or false.
    pub fn bool(&self, value: bool) -> Value<'_> {
        self.value(sys::boolean(value))
    }

    /// An Integer.
    pub fn int(&self, value: i64) -> Result<Value<'_>, Exception> {
        self.take(self.vm().sized(Code::Integer, value, 0.0))
    }

    /// A Float.
    pub fn float(&self, value: f64) -> Result<Value<'_>, Exception> {
        self.take(self.vm().sized(Code::Float, 0, value))
    }

    /// A String.
    pub fn str(&self, text: impl AsRef<[u8]>) -> Result<Value<'_>, Exception> {
        self.take(self.vm().named(Code::String, text.as_ref(), Raw::NIL, Raw::NIL))
    }

    /// A Symbol.
    pub fn symbol(&self, name: &str) -> Result<Value<'_>, Exception> {
        self.take(self.vm().named(Code::Symbol, name.as_bytes(), Raw::NIL, Raw::NIL))
    }

    /// An Array.
    pub fn array(&self, items: &[Value]) -> Result<Value<'_>, Exception> {
        let raw: Vec<Raw> = items.iter().map(|item| item.raw()).collect();
        self.take(self.vm().array(&raw))
    }

    /// An empty Hash.
    pub fn hash(&self) -> Result<Value<'_>, Exception> {
        self.take(self.vm().with(Code::Hash, Raw::NIL, Raw::NIL, Raw::NIL))
    }

    /// The object that top-level code runs in.
    pub fn top(&self) -> Value<'_> {
        self.value(self.vm().top())
    }

    /// A global variable; nil if nobody has set it.
    pub fn global(&self, name: &str) -> Result<Value<'_>, Exception> {
        self.take(self.vm().named(Code::Global, name.as_bytes(), Raw::NIL, Raw::NIL))
    }

    /// Sets a global variable.
    pub fn set_global(&self, name: &str, value: Value) -> Result<(), Exception> {
        let set = self.vm().named(Code::SetGlobal, name.as_bytes(), value.raw(), Raw::NIL);
        self.take(set).map(|_| ())
    }

    /// The class or module of this path, such as `"JSON"` or `"JSON::ParserError"`.
    pub fn class(&self, path: &str) -> Result<Class<'_>, Exception> {
        let mut at: Option<Value> = None;
        for name in path.split("::") {
            let outer = at.map_or_else(|| self.object_class(), |value| Ok(value.raw()));
            let found = outer.and_then(|outer| {
                self.vm().named(Code::Constant, name.as_bytes(), outer, Raw::NIL)
            });
            at = Some(self.take(found)?);
        }
        Ok(Class::new(at.unwrap_or_else(|| self.nil())))
    }

    /// Opens the class of this path, which is made if need be, and lets `within` define its methods.
    pub fn define_class<'i>(
        &'i self,
        path: &str,
        within: impl FnOnce(&Class<'i>) -> Result<(), Exception>,
    ) -> Result<Class<'i>, Exception> {
        self.define_class_of(path, None, within)
    }

    /// The same for a class with this superclass.
    pub fn define_class_of<'i>(
        &'i self,
        path: &str,
        superclass: Option<&Class>,
        within: impl FnOnce(&Class<'i>) -> Result<(), Exception>,
    ) -> Result<Class<'i>, Exception> {
        let above = superclass.map_or(Raw::NIL, |class| class.value().raw());
        let class = self.open_constant(Code::DefineClass, path, above)?;
        within(&class)?;
        Ok(class)
    }

    /// Opens the module of this path, which is made if need be.
    pub fn define_module<'i>(
        &'i self,
        path: &str,
        within: impl FnOnce(&Class<'i>) -> Result<(), Exception>,
    ) -> Result<Class<'i>, Exception> {
        let module = self.open_constant(Code::DefineModule, path, Raw::NIL)?;
        within(&module)?;
        Ok(module)
    }

    fn open_constant(&self, code: Code, path: &str, above: Raw) -> Result<Class<'_>, Exception> {
        let (outer, name) = match path.rsplit_once("::") {
            Some((outer, name)) => (self.class(outer)?.value().raw(), name),
            None => (Raw::NIL, path),
        };
        let class = self.take(self.vm().named(code, name.as_bytes(), outer, above))?;
        Ok(Class::new(class))
    }

    fn object_class(&self) -> Result<Raw, Raw> {
        self.vm().named(Code::Class, b"Object", Raw::NIL, Raw::NIL)
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

    pub(crate) fn new_exception(&self, class: &str, message: &str) -> Result<Raw, Raw> {
        let class = match self.class(class) {
            Ok(class) => class.value().raw(),
            Err(_) => self.vm().named(Code::Class, b"RuntimeError", Raw::NIL, Raw::NIL)?,
        };
        let text = self.vm().named(Code::String, message.as_bytes(), Raw::NIL, Raw::NIL)?;
        self.vm().with(Code::Raisable, class, text, Raw::NIL)
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

    pub(crate) fn keep_raw(&self, raw: Raw) -> Option<Kept> {
        self.vm().with(Code::Register, raw, Raw::NIL, Raw::NIL).ok()?;
        let of_image = !self.0.frozen.get();
        Some(Kept { inner: Rc::downgrade(&self.0), life: self.0.life.get(), of_image, raw })
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
