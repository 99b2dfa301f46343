//! mruby's C API, through src/sys.c: the only file besides region.rs with unsafe code.
//!
//! Raw values belong to the interpreter they came from and are alive: they are in its arena, on its
//! stack, registered or reachable. The types of this crate's surface see to that.

use crate::interp::{self, Inner, Interp};
use crate::value::Kind;
use std::any::Any;
use std::cell::Cell;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::mem::ManuallyDrop;
use std::ptr::{NonNull, null, null_mut};
use std::rc::Rc;

/// A value as mruby passes it around.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Raw(u64);

impl Raw {
    /// All bits are 0 where values are words.
    pub const NIL: Raw = Raw(0);
}

#[repr(C)]
struct State {
    opaque: [u8; 0],
}

/// What a protected call does; the order is that of `enum code` in sys.c.
#[repr(C)]
#[derive(Clone, Copy)]
pub enum Code {
    Call,
    String,
    Symbol,
    Name,
    Float,
    Integer,
    Array,
    Push,
    Hash,
    Set,
    Get,
    Pairs,
    Class,
    DefineClass,
    DefineModule,
    Method,
    Singleton,
    Constant,
    SetConstant,
    Wrap,
    Raisable,
    Register,
    Unregister,
    Run,
    Instance,
    SetInstance,
    Global,
    SetGlobal,
    Text,
    Responds,
    Kind,
    Collect,
    Fill,
    Freeze,
    Adopt,
}

#[repr(C)]
struct Op {
    code: Code,
    a: Raw,
    b: Raw,
    c: Raw,
    text: *const u8,
    length: usize,
    list: *const Raw,
    count: usize,
    number: i64,
    real: f64,
    pointer: *const c_void,
    result: Raw,
}

impl Op {
    fn new(code: Code) -> Op {
        let nil = Raw::NIL;
        Op {
            code,
            a: nil,
            b: nil,
            c: nil,
            text: null(),
            length: 0,
            list: null(),
            count: 0,
            number: 0,
            real: 0.0,
            pointer: null(),
            result: nil,
        }
    }

    fn text(mut self, text: &[u8]) -> Op {
        (self.text, self.length) = (text.as_ptr(), text.len());
        self
    }

    fn list(mut self, list: &[Raw]) -> Op {
        (self.list, self.count) = (list.as_ptr(), list.len());
        self
    }
}

/// A key and the bytes that are to become its value.
#[repr(C)]
pub struct Pair {
    key: Raw,
    text: *const u8,
    length: usize,
}

impl Pair {
    /// To be used while the bytes are borrowed.
    pub fn new(key: Raw, text: &[u8]) -> Pair {
        Pair { key, text: text.as_ptr(), length: text.len() }
    }
}

#[repr(C)]
struct Compilation {
    source: *const u8,
    length: usize,
    file: *const c_char,
    code: *mut u8,
    size: usize,
    complaint: *mut c_char,
}

/// How mruby asks for memory, resizes it, and gives it back.
type Allocate = unsafe extern "C" fn(*mut c_void, *mut c_void, usize, *mut c_void) -> *mut c_void;

unsafe extern "C" {
    fn oribi_mrb_do(state: *mut State, op: *mut Op) -> c_int;
    fn oribi_mrb_open(allocate: Allocate, data: *mut c_void) -> *mut State;
    fn oribi_mrb_close(state: *mut State);
    fn oribi_mrb_data(state: *mut State) -> *mut c_void;
    fn oribi_mrb_set_data(state: *mut State, data: *mut c_void);
    fn oribi_mrb_collector(state: *mut State, on: c_int);
    fn oribi_mrb_objects(state: *mut State) -> usize;
    fn oribi_mrb_arena_save(state: *mut State) -> c_int;
    fn oribi_mrb_arena_restore(state: *mut State, index: c_int);
    fn oribi_mrb_kind(value: Raw) -> c_int;
    fn oribi_mrb_integer(value: Raw) -> i64;
    fn oribi_mrb_float(value: Raw) -> f64;
    fn oribi_mrb_bytes(value: Raw, length: *mut usize) -> *const u8;
    fn oribi_mrb_length(array: Raw) -> usize;
    fn oribi_mrb_entry(array: Raw, index: usize) -> Raw;
    fn oribi_mrb_bool(value: c_int) -> Raw;
    fn oribi_mrb_top(state: *mut State) -> Raw;
    fn oribi_mrb_class(state: *mut State, value: Raw) -> Raw;
    fn oribi_mrb_is_jump(value: Raw) -> c_int;
    fn oribi_mrb_boxed(value: Raw) -> *mut c_void;
    fn oribi_mrb_compile(state: *mut State, it: *mut Compilation, result: *mut Raw) -> c_int;
    fn oribi_mrb_free(state: *mut State, pointer: *mut c_void);
    fn oribi_mrb_version() -> c_int;
}

/// A Rust value that an mruby object has.
pub struct Boxed {
    /// It belongs to the interpreter's image, which a reset brings back: mruby does not drop it.
    pub of_image: Cell<bool>,
    value: Box<dyn Any>,
}

/// Bytecode, or why there is none.
pub enum Compiled {
    /// To be run in any interpreter of this binary.
    Code(Vec<u8>),
    /// `file:line: what is wrong`.
    Wrong(String),
    /// An exception.
    Raised(Raw),
}

/// An interpreter. Not closed by itself.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Vm(NonNull<State>);

impl Vm {
    /// Opens one whose memory comes from there. None: it does not suffice.
    pub fn open(allocate: Allocate, data: *mut c_void) -> Option<Vm> {
        // SAFETY: the function keeps to mruby's contract for allocators; it comes from region.rs.
        NonNull::new(unsafe { oribi_mrb_open(allocate, data) }).map(Vm)
    }

    /// Ends it: its finalizers run, its memory is given back.
    pub fn close(self) {
        // SAFETY: the owner calls this once, and has no values of it left.
        unsafe { oribi_mrb_close(self.0.as_ptr()) }
    }

    /// What its methods find their interpreter by.
    pub fn set_owner(self, owner: *const Inner) {
        // SAFETY: a plain store.
        unsafe { oribi_mrb_set_data(self.0.as_ptr(), owner.cast_mut().cast()) }
    }

    /// Whether garbage is collected.
    pub fn collector(self, on: bool) {
        // SAFETY: a plain store.
        unsafe { oribi_mrb_collector(self.0.as_ptr(), on.into()) }
    }

    /// Objects it has, garbage included.
    pub fn objects(self) -> usize {
        // SAFETY: a plain load.
        unsafe { oribi_mrb_objects(self.0.as_ptr()) }
    }

    /// How many values are kept for Rust now.
    pub fn arena(self) -> i32 {
        // SAFETY: a plain load.
        unsafe { oribi_mrb_arena_save(self.0.as_ptr()) }
    }

    /// Lets go of those that came since.
    pub fn restore(self, arena: i32) {
        // SAFETY: an index that `arena` gave, on the same level of calls.
        unsafe { oribi_mrb_arena_restore(self.0.as_ptr(), arena) }
    }

    fn run(self, mut op: Op) -> Result<Raw, Raw> {
        // SAFETY: what the op points to outlives the call; nothing raises out of it.
        let raised = unsafe { oribi_mrb_do(self.0.as_ptr(), &raw mut op) };
        if raised == 0 { Ok(op.result) } else { Err(op.result) }
    }

    /// An operation on up to three values.
    pub fn with(self, code: Code, a: Raw, b: Raw, c: Raw) -> Result<Raw, Raw> {
        self.run(Op { a, b, c, ..Op::new(code) })
    }

    /// An operation with a text, which is a name for most.
    pub fn named(self, code: Code, text: &[u8], a: Raw, b: Raw) -> Result<Raw, Raw> {
        self.run(Op { a, b, ..Op::new(code) }.text(text))
    }

    /// An operation with a number.
    pub fn sized(self, code: Code, number: i64, real: f64) -> Result<Raw, Raw> {
        self.run(Op { number, real, ..Op::new(code) })
    }

    /// A new Array of these.
    pub fn array(self, list: &[Raw]) -> Result<Raw, Raw> {
        self.run(Op::new(Code::Array).list(list))
    }

    /// Calls a method.
    pub fn call(self, this: Raw, name: &[u8], list: &[Raw], block: Raw) -> Result<Raw, Raw> {
        self.run(Op { a: this, b: block, ..Op::new(Code::Call) }.text(name).list(list))
    }

    /// Defines a method of a class, or of an object alone; `most` below 0: any number.
    pub fn define(
        self,
        code: Code,
        on: Raw,
        name: &str,
        (least, most): (i64, i64),
        method: interp::Method,
    ) -> Result<Raw, Raw> {
        let counts =
            [self.sized(Code::Integer, least, 0.0)?, self.sized(Code::Integer, most, 0.0)?];
        let op = Op { a: on, pointer: method as *const c_void, ..Op::new(code) };
        self.run(op.text(name.as_bytes()).list(&counts))
    }

    /// New strings as values of a Hash.
    pub fn fill(self, hash: Raw, pairs: &[Pair]) -> Result<Raw, Raw> {
        let pointer = pairs.as_ptr().cast();
        self.run(Op { a: hash, count: pairs.len(), pointer, ..Op::new(Code::Fill) })
    }

    /// An object of the class with this box. The caller keeps the box if that fails.
    pub fn wrap(self, class: Raw, boxed: *const Boxed) -> Result<Raw, Raw> {
        self.run(Op { a: class, pointer: boxed.cast(), ..Op::new(Code::Wrap) })
    }

    /// Gives the box to an object that can have one and has none. The caller keeps it on failure.
    pub fn adopt(self, object: Raw, boxed: *const Boxed) -> Result<Raw, Raw> {
        self.run(Op { a: object, pointer: boxed.cast(), ..Op::new(Code::Adopt) })
    }

    /// Compiles a source text.
    pub fn compile(self, source: &[u8], file: &str) -> Compiled {
        let file = CString::new(file).unwrap_or_default();
        let mut it = Compilation {
            source: source.as_ptr(),
            length: source.len(),
            file: file.as_ptr(),
            code: null_mut(),
            size: 0,
            complaint: null_mut(),
        };
        let mut result = Raw::NIL;
        // SAFETY: all of it outlives the call, out of which nothing raises.
        let how = unsafe { oribi_mrb_compile(self.0.as_ptr(), &raw mut it, &raw mut result) };
        match how {
            0 => {
                // SAFETY: so many bytes that the compiler has made, copied and given back.
                let code = unsafe { std::slice::from_raw_parts(it.code, it.size) }.to_vec();
                self.free(it.code.cast());
                Compiled::Code(code)
            }
            1 => {
                // SAFETY: a C string that was made for us, copied and given back.
                let text = unsafe { CStr::from_ptr(it.complaint) }.to_string_lossy().into_owned();
                self.free(it.complaint.cast());
                Compiled::Wrong(text)
            }
            _ => Compiled::Raised(result),
        }
    }

    fn free(self, pointer: *mut c_void) {
        // SAFETY: allocated by this interpreter and not used any more.
        unsafe { oribi_mrb_free(self.0.as_ptr(), pointer) }
    }

    /// The object that top-level code runs in.
    pub fn top(self) -> Raw {
        // SAFETY: a plain load.
        unsafe { oribi_mrb_top(self.0.as_ptr()) }
    }

    /// A value's class.
    pub fn class(self, value: Raw) -> Raw {
        // SAFETY: walks from the value to its class.
        unsafe { oribi_mrb_class(self.0.as_ptr(), value) }
    }
}

/// Whether something raised is no exception but a jump out of a block.
pub fn is_jump(raised: Raw) -> bool {
    // SAFETY: reads the word or the object's header.
    unsafe { oribi_mrb_is_jump(raised) != 0 }
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
    let method = unsafe { std::mem::transmute::<*const c_void, interp::Method>(method) };
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
