//! What mruby comes without, as gems written in Rust over `text` and `wire::counters`; what yields
//! to blocks is Ruby, next to them. docs/mruby.md says what there is.
//!
//! None of them keeps anything outside of an interpreter that a reset would have to bring back: a
//! compiled pattern never changes, and the counters are there to be kept.

pub mod counters;
mod erb;
mod json;
mod matchdata;
mod random;
mod regexp;
mod strings;
mod time;

pub use counters::Counters;
pub use erb::Erb;
pub use json::Json;
pub use random::SecureRandom;
pub use regexp::Regexp;
pub use time::Time;

use crate::{Call, Exception, Gem, Interp, Kind, Program, Value};
use std::cell::RefCell;

/// What `require` may ask for, and is there already.
pub const NAMES: [&str; 6] =
    [Regexp::NAME, Json::NAME, SecureRandom::NAME, Time::NAME, Erb::NAME, Counters::NAME];

/// Adds all of them.
pub fn install(interp: &Interp) -> Result<(), Exception> {
    interp.install::<Regexp>()?;
    interp.install::<Json>()?;
    interp.install::<SecureRandom>()?;
    interp.install::<Time>()?;
    interp.install::<Erb>()?;
    interp.install::<Counters>()
}

thread_local! {
    /// Bytecode by file: an interpreter per request should not compile it each time.
    static PRELUDES: RefCell<Vec<(&'static str, Program)>> = const { RefCell::new(Vec::new()) };
}

/// Runs the part of a gem that is written in Ruby.
fn run_prelude(interp: &Interp, file: &'static str, source: &str) -> Result<(), Exception> {
    let known = |(its, _): &&(&str, Program)| *its == file;
    let found = PRELUDES.with_borrow(|all| all.iter().find(known).map(|(_, code)| code.clone()));
    let program = match found {
        Some(program) => program,
        None => {
            let program = interp.compile(source.as_bytes(), file)?;
            PRELUDES.with_borrow_mut(|all| all.push((file, program.clone())));
            program
        }
    };
    interp.run(&program).map(|_| ())
}

/// A String, a Symbol's name, or what `to_str` gives; TypeError for anything else.
fn string<'a>(value: Value<'a>) -> Result<Value<'a>, Exception> {
    match value.kind() {
        Kind::Str => Ok(value),
        Kind::Symbol => value.interp().str(value.text()?),
        _ if value.responds_to("to_str") => value.call("to_str", &[]),
        _ => Err(Exception::wrong_type(value, "a String")),
    }
}

/// An option in the Hash that argument `at` may be; nil where there is none.
fn option<'a>(call: &Call<'a>, name: &str, at: usize) -> Result<Value<'a>, Exception> {
    match call.arg(at) {
        options if options.kind() == Kind::Hash => options.get(call.interp().symbol(name)?),
        _ => Ok(call.interp().nil()),
    }
}

/// A count of bytes for a result: not below zero, not beyond all reason.
fn size(value: Value, usually: usize) -> Result<usize, Exception> {
    const MOST: i64 = 64 << 20;
    if value.is_nil() || value.kind() == Kind::Hash {
        return Ok(usually);
    }
    let count = value.int()?;
    match usize::try_from(count) {
        Ok(size) if count <= MOST => Ok(size),
        _ => Err(Exception::new("ArgumentError", format!("{count} is no size: 0 to {MOST}"))),
    }
}
