//! What Ruby's standard library does with text, as pure functions: no Ruby, no I/O. `mruby` makes
//! classes of it, since mruby comes with none of this.

#![forbid(unsafe_code)]

pub mod clock;
pub mod json;
pub mod random;
pub mod regexp;
pub mod replacement;
pub mod template;
