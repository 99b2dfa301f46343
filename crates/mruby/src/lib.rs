//! mruby for Oribi: an interpreter behind a safe surface, the engine that serves Rack apps with it,
//! and a way to write gems for it in Rust.
//!
//! # Writing a gem
//!
//! ```
//! use mruby::{Call, Exception, Gem, Interp, Limits, Value};
//!
//! /// `Dice.new(6).sides  # => 6`
//! struct Dice;
//!
//! struct Die {
//!     sides: i64,
//! }
//!
//! fn initialize<'a>(call: &Call<'a>) -> Result<Value<'a>, Exception> {
//!     let sides = call.arg(0).int()?;
//!     if sides < 1 {
//!         return Err(Exception::new("ArgumentError", "a die has sides"));
//!     }
//!     call.this().set_data(Die { sides })?;
//!     Ok(call.this())
//! }
//!
//! impl Gem for Dice {
//!     const NAME: &'static str = "dice";
//!
//!     fn install(interp: &Interp) -> Result<(), Exception> {
//!         interp.define_class("Dice", |class| {
//!             class.holds_data()?;
//!             class.method("initialize", 1..=1, initialize)?;
//!             // A closure that captures nothing does as well.
//!             class.method("sides", 0..=0, |call| {
//!                 call.interp().int(call.this().must_have::<Die>()?.sides)
//!             })
//!         })?;
//!         // What is easier to say in Ruby:
//!         interp.eval("class Dice; def pair = [self, self]; end", "dice.rb")?;
//!         Ok(())
//!     }
//! }
//!
//! let interp = Interp::open(&Limits::default()).unwrap();
//! interp.install::<Dice>().unwrap();
//! assert_eq!(interp.eval("Dice.new(6).sides", "test.rb").unwrap().as_int(), Some(6));
//! assert_eq!(interp.eval("Dice.new(0)", "test.rb").err().unwrap().class_name(), "ArgumentError");
//! ```
//!
//! What holds there:
//!
//! - A method returns a `Result`. An `Err` is raised in mruby once Rust's frame is gone, so no jump
//!   passes over it; an exception of mruby's that a call in Rust meets is such an `Err` and keeps its
//!   identity and backtrace when it is returned. A panic becomes a RuntimeError.
//! - A `Value` is alive until the method that has it returns (mruby's arena is restored then). In a
//!   long loop wrap each round in `Interp::scope`. To keep a value longer, `Value::keep` it.
//! - Strings are copied into Rust: while Rust looks at one, mruby cannot change it.
//! - A Rust value of an object (`set_data`, `Class::instance`) is dropped with the object. It should
//!   not change once it is made; if it does, or if the gem keeps anything else that a copy of the
//!   interpreter's memory does not hold, say so with `Gem::OUTSIDE`.
//! - An `Interp` belongs to one thread. Its memory has a limit, beyond which mruby raises
//!   NoMemoryError.
//!
//! # What is unsafe
//!
//! `sys.rs` with its room and `sys.c` are mruby's C API, `region.rs` its memory, `process.rs` what mold and
//! workers need of the kernel. Nothing else.

#![deny(unsafe_code)]

mod app;
mod channel;
mod class;
mod crew;
mod env;
mod exception;
mod gem;
pub mod gems;
mod interp;
mod kept;
mod log;
mod make;
mod mold;
#[allow(unsafe_code)]
mod process;
#[allow(unsafe_code)]
mod region;
mod reply;
mod serving;
#[allow(unsafe_code)]
mod sys;
mod title;
mod value;
mod worker;

pub use app::{App, Env, Init, Plan, Source};
pub use class::Class;
pub use exception::Exception;
pub use gem::{Call, Gem, Method};
pub use gems::counters::shared_counter;
pub use interp::{Interp, Limits, Program};
pub use kept::Kept;
pub use mold::run as mold;
pub use title::ROOM as TITLE;
pub use value::{Kind, Value};
pub use wire::counters::Counter;
pub use worker::{Level, limits};

/// The release of mruby that is linked: 3.1.0 is 30100.
pub fn release() -> i32 {
    sys::version()
}
