//! The Oribi application server as a library: the binary `oribi` is [`main`], and so may be the
//! program that embeds it. Which of its roles a process plays is said by one environment variable.

#![deny(unsafe_code)]

mod answer;
mod builder;
mod cgi;
mod channel;
mod check;
mod children;
mod command;
mod config_for;
mod confine;
mod control;
mod daemon;
mod declared;
mod error_log;
mod explain;
mod inherit;
mod layers;
mod listen;
mod memory;
mod notify;
mod options;
mod pattern;
mod pid_file;
mod place;
mod plan;
mod privileges;
mod remote;
mod ruby;
mod run_front;
mod signals;
mod sources;
mod spawn;
mod start;
mod supervise;
mod toml_file;

use builder::Embedded;
use std::process::ExitCode;

/// What apps for mruby run in, and what gems for it in Rust are written with.
#[cfg(feature = "mruby")]
pub use ::mruby;

pub use builder::{Builder, Error, Isolation, Mount};

/// The binary `oribi`: plays the role that the environment names, or else obeys the command line.
pub fn main() -> ExitCode {
    role(Embedded::default()).unwrap_or_else(command::run)
}

/// Plays the role that the environment names, if it names one.
fn role(embedded: Embedded) -> Option<ExitCode> {
    if let Ok(parent) = std::env::var(spawn::LAUNCH) {
        return Some(spawn::launch(&parent));
    }
    if let Ok(setup) = std::env::var(wire::control::FRONT_SETUP) {
        return Some(run_front::run(&setup, embedded.assets));
    }
    #[cfg(feature = "mruby")]
    if std::env::var_os(wire::control::MRUBY_MOLD).is_some() {
        return Some(::mruby::mold(|mount| embedded.apps.find(mount)));
    }
    None
}
