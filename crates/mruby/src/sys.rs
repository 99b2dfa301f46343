//! mruby's C API, through src/sys.c: the only file besides region.rs with unsafe code.
//!
//! Raw values belong to the interpreter they came from and are alive: they are in its arena, on its
//! stack, registered or reachable. The types of this crate's surface see to that.

mod back;
mod read;

pub use back::*;
pub use read::*;

use crate::gem::Method;
use crate::interp::Inner;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::{NonNull, null, null_mut};

/// A value as mruby passes it around.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Raw(u64);

impl Raw {
    /// All bits are 0 where values are words.
    pub const NIL: Raw = Raw(0);
}

/// mruby's own.
#[repr(C)]
pub struct State {
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
    fn oribi_mrb_set_data(state: *mut State, data: *mut c_void);
    fn oribi_mrb_collector(state: *mut State, on: c_int);
    fn oribi_mrb_objects(state: *mut State) -> usize;
    fn oribi_mrb_arena_save(state: *mut State) -> c_int;
    fn oribi_mrb_arena_restore(state: *mut State, index: c_int);
    fn oribi_mrb_top(state: *mut State) -> Raw;
    fn oribi_mrb_class(state: *mut State, value: Raw) -> Raw;
    fn oribi_mrb_compile(state: *mut State, it: *mut Compilation, result: *mut Raw) -> c_int;
    fn oribi_mrb_free(state: *mut State, pointer: *mut c_void);
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
        method: Method,
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
