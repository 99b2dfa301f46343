//! What went wrong, as mruby and as Rust know it.

use crate::interp::Interp;
use crate::kept::Kept;
use crate::sys::{self, Raw};
use crate::value::Value;
use std::fmt;

/// An exception: of mruby's, or to be raised there.
pub struct Exception {
    class: String,
    message: String,
    backtrace: Vec<String>,
    /// The object, where there is one already.
    object: Option<Kept>,
}

impl Exception {
    /// One of this class (a constant's path such as `"JSON::ParserError"`), to be returned by a
    /// method so that it is raised.
    pub fn new(class: impl Into<String>, message: impl Into<String>) -> Exception {
        let (class, message) = (class.into(), message.into());
        Exception { class, message, backtrace: Vec::new(), object: None }
    }

    /// A TypeError for a value that is something else.
    pub fn wrong_type(value: Value, wanted: &str) -> Exception {
        Exception::new("TypeError", format!("{} is not {wanted}", value.class_name()))
    }

    /// Its class.
    pub fn class_name(&self) -> &str {
        &self.class
    }

    /// Its text.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// `file:line` of the calls it came through, the innermost first; empty for one of Rust's.
    pub fn backtrace(&self) -> &[String] {
        &self.backtrace
    }

    /// As many lines for a log: `file:line: message (Class)`, then the calls.
    pub fn full(&self) -> String {
        let place = self.backtrace.first().map_or(String::new(), |first| format!("{first}: "));
        let calls = self.backtrace.iter().skip(1).map(|line| format!("\n\tfrom {line}"));
        format!("{place}{} ({}){}", self.message, self.class, calls.collect::<String>())
    }

    /// The object mruby has raised. Nothing here raises.
    pub(crate) fn of(interp: &Interp, raw: Raw) -> Exception {
        if sys::is_jump(raw) {
            let jump = Exception::new("LocalJumpError", "a jump out of a block");
            return Exception { object: interp.keep_raw(raw), ..jump };
        }
        let value = interp.value(raw);
        let text = |value: Value| value.text().unwrap_or_default();
        let quiet = |name| value.call_raw(name, &[]).ok().map(|raw| interp.value(raw));
        let backtrace = quiet("backtrace").map(|list| list.items()).unwrap_or_default();
        Exception {
            class: value.class_name(),
            message: quiet("message").map(text).unwrap_or_default(),
            backtrace: backtrace.into_iter().map(text).collect(),
            object: interp.keep_raw(raw),
        }
    }

    /// The object to raise; if none can be made, the one that says so.
    pub(crate) fn raisable(&self, interp: &Interp) -> Raw {
        if let Some(value) = self.object.as_ref().and_then(|kept| kept.get(interp)) {
            return value.raw();
        }
        interp.new_exception(&self.class, &self.message).unwrap_or_else(|raised| raised)
    }
}

impl fmt::Debug for Exception {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.full())
    }
}

impl fmt::Display for Exception {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.class)
    }
}

impl std::error::Error for Exception {}
