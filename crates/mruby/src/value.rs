//! Values of mruby's, and what they are in Rust.

use crate::class::Class;
use crate::exception::Exception;
use crate::interp::Interp;
use crate::kept::Kept;
use crate::sys::{self, Code, Pair, Raw};
use std::any::Any;

/// A value of mruby's. It is alive until the method written in Rust that has it returns, or the scope
/// ends that it was made in; `keep` it for longer.
#[derive(Clone, Copy)]
pub struct Value<'i> {
    interp: &'i Interp,
    raw: Raw,
}

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// nil.
    Nil,
    /// true or false.
    Bool,
    /// Integer.
    Int,
    /// Float.
    Float,
    /// Symbol.
    Symbol,
    /// String.
    Str,
    /// Array.
    Array,
    /// Hash.
    Hash,
    /// Proc.
    Proc,
    /// Class or Module.
    Class,
    /// Anything else.
    Object,
}

impl<'i> Value<'i> {
    pub(crate) fn new(interp: &'i Interp, raw: Raw) -> Value<'i> {
        Value { interp, raw }
    }

    pub(crate) fn raw(self) -> Raw {
        self.raw
    }

    /// Its interpreter.
    pub fn interp(self) -> &'i Interp {
        self.interp
    }

    /// What it is.
    pub fn kind(self) -> Kind {
        sys::kind_of(self.raw)
    }

    /// nil.
    pub fn is_nil(self) -> bool {
        self.raw == Raw::NIL
    }

    /// Neither nil nor false.
    pub fn truthy(self) -> bool {
        !self.is_nil() && self.raw != sys::boolean(false)
    }

    /// true or false.
    pub fn as_bool(self) -> Option<bool> {
        (self.kind() == Kind::Bool).then(|| self.truthy())
    }

    /// An Integer.
    pub fn as_int(self) -> Option<i64> {
        (self.kind() == Kind::Int).then(|| sys::integer(self.raw))
    }

    /// A Float, or an Integer as one.
    pub fn as_float(self) -> Option<f64> {
        match self.kind() {
            Kind::Float => Some(sys::float(self.raw)),
            Kind::Int => Some(sys::integer(self.raw) as f64),
            _ => None,
        }
    }

    /// A copy of a String's bytes.
    pub fn as_bytes(self) -> Option<Vec<u8>> {
        self.with_bytes(<[u8]>::to_vec)
    }

    /// A String's bytes, for a function that does not touch mruby.
    pub(crate) fn with_bytes<R>(self, look: impl FnOnce(&[u8]) -> R) -> Option<R> {
        (self.kind() == Kind::Str).then(|| sys::with_bytes(self.raw, look))
    }

    /// A copy of a String or a Symbol's name, with what is not UTF-8 replaced.
    pub fn as_text(self) -> Option<String> {
        match self.kind() {
            Kind::Symbol => {
                let name = self.interp.vm().with(Code::Name, self.raw, Raw::NIL, Raw::NIL).ok()?;
                self.interp.value(name).as_text()
            }
            _ => self.with_bytes(|bytes| String::from_utf8_lossy(bytes).into_owned()),
        }
    }

    /// The same, or TypeError.
    pub fn text(self) -> Result<String, Exception> {
        self.as_text().ok_or_else(|| Exception::wrong_type(self, "a String"))
    }

    /// A String's bytes, or TypeError.
    pub fn bytes(self) -> Result<Vec<u8>, Exception> {
        self.as_bytes().ok_or_else(|| Exception::wrong_type(self, "a String"))
    }

    /// An Integer, or TypeError.
    pub fn int(self) -> Result<i64, Exception> {
        self.as_int().ok_or_else(|| Exception::wrong_type(self, "an Integer"))
    }

    /// A number, or TypeError.
    pub fn float(self) -> Result<f64, Exception> {
        self.as_float().ok_or_else(|| Exception::wrong_type(self, "a number"))
    }

    /// An Array's length; 0 for anything else.
    pub fn len(self) -> usize {
        if self.kind() == Kind::Array { sys::length(self.raw) } else { 0 }
    }

    /// Whether there are no entries.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// An entry of an Array; nil where there is none.
    pub fn entry(self, index: usize) -> Value<'i> {
        let raw = if index < self.len() { sys::entry(self.raw, index) } else { Raw::NIL };
        Value { raw, ..self }
    }

    /// An Array's entries as they are now; none of anything else.
    pub fn items(self) -> Vec<Value<'i>> {
        (0..self.len()).map(|index| self.entry(index)).collect()
    }

    /// Adds to an Array.
    pub fn push(self, item: Value) -> Result<(), Exception> {
        self.must_be(Kind::Array, "an Array")?;
        self.done(self.interp.vm().with(Code::Push, self.raw, item.raw, Raw::NIL))
    }

    /// A value of a Hash; its default where there is none.
    pub fn get(self, key: Value) -> Result<Value<'i>, Exception> {
        self.must_be(Kind::Hash, "a Hash")?;
        self.interp.take(self.interp.vm().with(Code::Get, self.raw, key.raw, Raw::NIL))
    }

    /// Sets a value of a Hash.
    pub fn set(self, key: Value, value: Value) -> Result<(), Exception> {
        self.must_be(Kind::Hash, "a Hash")?;
        self.done(self.interp.vm().with(Code::Set, self.raw, key.raw, value.raw))
    }

    /// Sets many values of a Hash to new Strings at once.
    pub fn set_texts(self, texts: &[(Value, &[u8])]) -> Result<(), Exception> {
        self.must_be(Kind::Hash, "a Hash")?;
        let pairs: Vec<Pair> = texts.iter().map(|(key, text)| Pair::new(key.raw, text)).collect();
        self.done(self.interp.vm().fill(self.raw, &pairs))
    }

    /// A Hash's pairs as they are now.
    pub fn pairs(self) -> Result<Vec<(Value<'i>, Value<'i>)>, Exception> {
        self.must_be(Kind::Hash, "a Hash")?;
        let flat = self.interp.vm().with(Code::Pairs, self.raw, Raw::NIL, Raw::NIL);
        let items = self.interp.take(flat)?.items();
        Ok(items.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect())
    }

    /// Calls a method.
    pub fn call(self, name: &str, args: &[Value]) -> Result<Value<'i>, Exception> {
        self.interp.take(self.call_raw(name, args))
    }

    pub(crate) fn call_raw(self, name: &str, args: &[Value]) -> Result<Raw, Raw> {
        let list: Vec<Raw> = args.iter().map(|arg| arg.raw).collect();
        self.interp.vm().call(self.raw, name.as_bytes(), &list, Raw::NIL)
    }

    /// Calls a method with a block.
    pub fn call_with_block(
        self,
        name: &str,
        args: &[Value],
        block: Value,
    ) -> Result<Value<'i>, Exception> {
        let list: Vec<Raw> = args.iter().map(|arg| arg.raw).collect();
        self.interp.take(self.interp.vm().call(self.raw, name.as_bytes(), &list, block.raw))
    }

    /// What `to_s` gives.
    pub fn to_s(self) -> Result<String, Exception> {
        let text = self.interp.vm().with(Code::Text, self.raw, Raw::NIL, Raw::NIL);
        self.interp.take(text)?.text()
    }

    /// What `inspect` gives.
    pub fn inspect(self) -> Result<String, Exception> {
        self.call("inspect", &[])?.text()
    }

    /// Whether it has a method.
    pub fn responds_to(self, name: &str) -> bool {
        let vm = self.interp.vm();
        let answer = vm.named(Code::Responds, name.as_bytes(), self.raw, Raw::NIL);
        answer.is_ok_and(|raw| self.interp.value(raw).truthy())
    }

    /// Whether it is of this class, module, or one below.
    pub fn is_a(self, class: &Class) -> bool {
        let answer = self.interp.vm().with(Code::Kind, self.raw, class.value().raw, Raw::NIL);
        answer.is_ok_and(|raw| self.interp.value(raw).truthy())
    }

    /// Its class.
    pub fn class(self) -> Class<'i> {
        Class::new(Value { raw: self.interp.vm().class(self.raw), ..self })
    }

    /// Its class's name.
    pub fn class_name(self) -> String {
        let name = self.class().value().call_raw("to_s", &[]);
        name.ok().and_then(|raw| self.interp.value(raw).as_text()).unwrap_or_default()
    }

    /// An instance variable, with its `@`; nil where there is none.
    pub fn ivar(self, name: &str) -> Result<Value<'i>, Exception> {
        let vm = self.interp.vm();
        self.interp.take(vm.named(Code::Instance, name.as_bytes(), self.raw, Raw::NIL))
    }

    /// Sets an instance variable.
    pub fn set_ivar(self, name: &str, value: Value) -> Result<(), Exception> {
        let vm = self.interp.vm();
        self.done(vm.named(Code::SetInstance, name.as_bytes(), self.raw, value.raw))
    }

    /// Makes it unchangeable.
    pub fn freeze(self) -> Result<Value<'i>, Exception> {
        self.interp.take(self.interp.vm().with(Code::Freeze, self.raw, Raw::NIL, Raw::NIL))
    }

    /// The Rust value it has, if that is a `T`.
    pub fn data<T: Any>(self) -> Option<&'i T> {
        sys::unboxed(self.raw)?.downcast_ref()
    }

    /// The Rust value, or TypeError.
    pub fn must_have<T: Any>(self) -> Result<&'i T, Exception> {
        self.data().ok_or_else(|| Exception::wrong_type(self, "one of ours"))
    }

    /// Gives a Rust value to an object of a class that `holds_data`, once: in its `initialize`.
    /// mruby's collector drops it. TypeError where that cannot be.
    pub fn set_data<T: Any>(self, data: T) -> Result<(), Exception> {
        let boxed = self.interp.add_box(Box::new(data));
        let adopted = self.interp.vm().adopt(self.raw, boxed);
        if adopted.is_err() {
            self.interp.discard_box(boxed);
        }
        self.done(adopted)
    }

    /// Keeps it alive. NoMemoryError when there is no room for that.
    pub fn keep(self) -> Result<Kept, Exception> {
        let kept = self.interp.keep_raw(self.raw);
        kept.ok_or_else(|| Exception::new("NoMemoryError", "no room to keep a value"))
    }

    fn must_be(self, kind: Kind, wanted: &str) -> Result<(), Exception> {
        if self.kind() == kind { Ok(()) } else { Err(Exception::wrong_type(self, wanted)) }
    }

    fn done(self, result: Result<Raw, Raw>) -> Result<(), Exception> {
        self.interp.take(result).map(|_| ())
    }
}
