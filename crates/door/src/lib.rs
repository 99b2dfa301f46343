//! What a client's bytes mean and whether they may pass: pure functions, bytes and heads in,
//! verdicts out. No I/O, no clock, no state beyond a connection's own.

#![forbid(unsafe_code)]

pub mod cgi;
pub mod fastcgi;
pub mod fault;
pub mod forwarded;
pub mod host;
pub mod http;
pub mod mounts;
pub mod path;
pub mod proxy;
pub mod scan;
pub mod scgi;

pub use fault::Fault;
