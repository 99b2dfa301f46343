//! The few calls into Ruby that the rest of the extension is written with. They must only be made
//! by a Ruby thread that holds the GVL, and any of them may leave by a Ruby exception.

use rb_sys::*;
use std::ffi::{CStr, c_char, c_int, c_long, c_void};
use std::fmt;
use std::mem::transmute;

/// What marks the Ruby objects of one of our classes. What they point to lives as long as the
/// process, so that there is nothing to mark or to free.
pub struct DataType(pub rb_data_type_t);

// SAFETY: never written after it was built.
unsafe impl Sync for DataType {}

impl DataType {
    /// The name is for Ruby's messages.
    pub const fn new(name: &'static CStr) -> DataType {
        DataType(rb_data_type_t {
            wrap_struct_name: name.as_ptr(),
            function: rb_data_type_struct__bindgen_ty_1 {
                dmark: None,
                dfree: None,
                dsize: None,
                dcompact: None,
                reserved: [std::ptr::null_mut(); 1],
            },
            parent: std::ptr::null(),
            data: std::ptr::null_mut(),
            flags: 0,
        })
    }
}

/// A Ruby method in Rust with the arguments behind `self` given by the array's length.
pub enum Method {
    /// Any number of arguments: how many, where, and `self`.
    Any(unsafe extern "C" fn(c_int, *const VALUE, VALUE) -> VALUE),
    /// No argument.
    M0(unsafe extern "C" fn(VALUE) -> VALUE),
    /// One argument.
    M1(unsafe extern "C" fn(VALUE, VALUE) -> VALUE),
    /// Two arguments.
    M2(unsafe extern "C" fn(VALUE, VALUE, VALUE) -> VALUE),
    /// Three arguments.
    M3(unsafe extern "C" fn(VALUE, VALUE, VALUE, VALUE) -> VALUE),
    /// Four arguments.
    M4(unsafe extern "C" fn(VALUE, VALUE, VALUE, VALUE, VALUE) -> VALUE),
}

type AnyFn = unsafe extern "C" fn() -> VALUE;

impl Method {
    fn any(self) -> (AnyFn, c_int) {
        // SAFETY: Ruby calls the function with as many arguments as the arity beside it says,
        // which is how it was declared.
        unsafe {
            match self {
                Method::Any(f) => (transmute::<unsafe extern "C" fn(_, _, _) -> _, AnyFn>(f), -1),
                Method::M0(f) => (transmute::<unsafe extern "C" fn(VALUE) -> VALUE, AnyFn>(f), 0),
                Method::M1(f) => {
                    (transmute::<unsafe extern "C" fn(VALUE, VALUE) -> VALUE, AnyFn>(f), 1)
                }
                Method::M2(f) => {
                    (transmute::<unsafe extern "C" fn(VALUE, VALUE, VALUE) -> VALUE, AnyFn>(f), 2)
                }
                Method::M3(f) => (transmute::<unsafe extern "C" fn(_, _, _, _) -> _, AnyFn>(f), 3),
                Method::M4(f) => {
                    (transmute::<unsafe extern "C" fn(_, _, _, _, _) -> _, AnyFn>(f), 4)
                }
            }
        }
    }
}

/// Defines a module, below another one or at the top.
pub fn define_module(below: Option<VALUE>, name: &CStr) -> VALUE {
    // SAFETY: called from Init, on a Ruby thread; the name is a C string.
    unsafe {
        match below {
            Some(outer) => rb_define_module_under(outer, name.as_ptr()),
            None => rb_define_module(name.as_ptr()),
        }
    }
}

/// Defines a class below `outer` that only this extension instantiates.
pub fn define_class(outer: VALUE, name: &CStr) -> VALUE {
    // SAFETY: called from Init, on a Ruby thread; the name is a C string.
    unsafe {
        let class = rb_define_class_under(outer, name.as_ptr(), rb_cObject);
        rb_undef_alloc_func(class);
        class
    }
}

/// Defines an instance method.
pub fn define_method(class: VALUE, name: &CStr, method: Method) {
    let (function, arity) = method.any();
    // SAFETY: called from Init, on a Ruby thread; arity and function belong together.
    unsafe { rb_define_method(class, name.as_ptr(), Some(function), arity) }
}

/// Defines a method of the module itself.
pub fn define_function(module: VALUE, name: &CStr, method: Method) {
    let (function, arity) = method.any();
    // SAFETY: called from Init, on a Ruby thread; arity and function belong together.
    unsafe { rb_define_singleton_method(module, name.as_ptr(), Some(function), arity) }
}

/// Defines an Integer constant.
pub fn define_number(class: VALUE, name: &CStr, value: i64) {
    // SAFETY: called from Init, on a Ruby thread; the name is a C string.
    unsafe { rb_define_const(class, name.as_ptr(), LONG2NUM(value)) }
}

/// A new ASCII-8BIT string.
pub fn string(bytes: &[u8]) -> VALUE {
    // SAFETY: pointer and length are of one slice; Ruby copies it.
    unsafe { rb_str_new(bytes.as_ptr().cast(), bytes.len() as c_long) }
}

/// A new ASCII-8BIT string with room for `length` bytes.
pub fn string_with_room(length: usize) -> VALUE {
    // SAFETY: allocates only.
    unsafe {
        let string = rb_str_buf_new(length as c_long);
        rb_enc_associate(string, rb_ascii8bit_encoding());
        string
    }
}

/// Appends to a string of our own.
pub fn append(string: VALUE, bytes: &[u8]) {
    // SAFETY: `string` is a String made above, the slice is copied.
    unsafe { rb_str_cat(string, bytes.as_ptr().cast::<c_char>(), bytes.len() as c_long) };
}

/// The one frozen string with this content; as a Hash key it is neither copied nor duplicated.
/// `bytes` must not be empty (Ruby 3.1 reads behind an empty slice's pointer).
pub fn interned(bytes: &[u8]) -> VALUE {
    debug_assert!(!bytes.is_empty());
    // SAFETY: pointer and length are of one slice; Ruby copies it.
    unsafe { rb_interned_str(bytes.as_ptr().cast(), bytes.len() as c_long) }
}

/// Keeps an object alive and in place for the rest of the process.
pub fn keep(object: VALUE) {
    // SAFETY: any object may be registered.
    unsafe { rb_gc_register_mark_object(object) }
}

/// The bytes of a String, or None for anything else. Valid until Ruby runs again.
pub fn bytes<'a>(object: VALUE) -> Option<&'a [u8]> {
    // SAFETY: the type is checked first; the caller uses the slice before Ruby can move it.
    unsafe {
        RB_TYPE_P(object, RUBY_T_STRING).then(|| {
            let length = RSTRING_LEN(object) as usize;
            if length == 0 {
                return &[][..];
            }
            std::slice::from_raw_parts(RSTRING_PTR(object).cast(), length)
        })
    }
}

/// An Integer as the number it is; anything else raises TypeError or RangeError.
pub fn integer(object: VALUE) -> i64 {
    // SAFETY: raises for what is no Integer.
    unsafe { NUM2LONG(object) }
}

/// A number as the Float it is; anything else raises TypeError.
pub fn real(object: VALUE) -> f64 {
    // SAFETY: raises for what is no number.
    unsafe { rb_num2dbl(object) }
}

/// A Ruby Integer.
pub fn number(value: i64) -> VALUE {
    LONG2NUM(value)
}

/// A Ruby Float.
pub fn float(value: f64) -> VALUE {
    DBL2NUM(value)
}

/// `true` or `false`.
pub fn boolean(value: bool) -> VALUE {
    if value { Qtrue as VALUE } else { Qfalse as VALUE }
}

/// `nil`.
pub fn nil() -> VALUE {
    Qnil as VALUE
}

/// Stores into a Hash.
pub fn store(hash: VALUE, key: VALUE, value: VALUE) {
    // SAFETY: callers pass a Hash of their own.
    unsafe { rb_hash_aset(hash, key, value) };
}

/// Raises; the message is copied into Ruby before the jump, so nothing is leaked.
pub fn raise(class: VALUE, message: &str) -> ! {
    let message = string(message.as_bytes());
    // SAFETY: a class of exceptions and a String; does not return.
    unsafe { rb_exc_raise(rb_exc_new_str(class, message)) }
}

/// Raises, with a message made of parts.
pub fn raise_with(class: VALUE, message: fmt::Arguments<'_>) -> ! {
    // Ruby's before the jump, which skips destructors.
    let message = string(message.to_string().as_bytes());
    // SAFETY: as in `raise`.
    unsafe { rb_exc_raise(rb_exc_new_str(class, message)) }
}

/// The name of an object's class, and the object itself where it is nil.
pub fn kind<'a>(object: VALUE) -> &'a str {
    if object == nil() {
        return "nil";
    }
    // SAFETY: any object has a class; the name lives as long as the class, which the object holds.
    unsafe { CStr::from_ptr(rb_obj_classname(object)) }.to_str().unwrap_or("object")
}

/// What an Integer or a Symbol is as a String; a String as it is.
pub fn text(object: VALUE) -> Option<VALUE> {
    // SAFETY: the types are checked.
    unsafe {
        match object {
            _ if RB_TYPE_P(object, RUBY_T_STRING) => Some(object),
            _ if RB_TYPE_P(object, RUBY_T_SYMBOL) => Some(rb_sym2str(object)),
            _ if RB_INTEGER_TYPE_P(object) => Some(rb_obj_as_string(object)),
            _ => None,
        }
    }
}

/// Raises a SystemCallError-like RuntimeError for a failed system call or mapping.
pub fn raise_io(error: &std::io::Error) -> ! {
    let message = string(error.to_string().as_bytes());
    // SAFETY: as in `raise`.
    unsafe { rb_exc_raise(rb_exc_new_str(rb_eRuntimeError, message)) }
}

/// Calls `visit` for every pair of a Hash, with the context pointer.
pub fn each_pair(
    hash: VALUE,
    visit: unsafe extern "C" fn(VALUE, VALUE, VALUE) -> c_int,
    context: *mut c_void,
) {
    // SAFETY: the caller has checked that it is a Hash; the context outlives the call.
    unsafe { rb_hash_foreach(hash, Some(visit), context as VALUE) }
}
