//! The Oribi application server as a library: the binary `oribi` is [`main`], and so may be the
//! program that embeds it. Which of its roles a process plays is said by one environment variable.

#![deny(unsafe_code)]

mod answer;
mod cgi;
mod channel;
mod children;
mod command;
mod config_for;
mod control;
mod daemon;
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

use std::process::ExitCode;

/// The binary `oribi`: plays the role that the environment names, or else obeys the command line.
pub fn main() -> ExitCode {
    if let Ok(parent) = std::env::var(spawn::LAUNCH) {
        return spawn::launch(&parent);
    }
    if let Ok(setup) = std::env::var(wire::control::FRONT_SETUP) {
        return run_front::run(&setup, front::Assets::default());
    }
    command::run()
}
