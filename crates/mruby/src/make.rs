//! Making values, classes and modules.

use crate::class::Class;
use crate::exception::Exception;
use crate::interp::Interp;
use crate::sys::{self, Code, Raw};
use crate::value::Value;

impl Interp {
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

    pub(crate) fn new_exception(&self, class: &str, message: &str) -> Result<Raw, Raw> {
        let class = match self.class(class) {
            Ok(class) => class.value().raw(),
            Err(_) => self.vm().named(Code::Class, b"RuntimeError", Raw::NIL, Raw::NIL)?,
        };
        let text = self.vm().named(Code::String, message.as_bytes(), Raw::NIL, Raw::NIL)?;
        self.vm().with(Code::Raisable, class, text, Raw::NIL)
    }
}
