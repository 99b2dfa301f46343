//! `oribi lab`: measures any Ruby web server.

mod cli;
mod commands;
mod figures;
mod library;
mod metrics;
mod recipe;
mod report;
mod results;
mod rounds;
mod scenario;
mod stack;

use std::process::ExitCode;

use clap::Parser;

use crate::cli::{Cli, Command};

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::List(list) => commands::list(&list),
        Command::Run(run) => commands::run(&run),
        Command::Report(report) => commands::report(&report),
        Command::Compare(compare) => commands::compare(&compare),
        Command::App(app) => commands::app(&app),
        Command::Load => return oribi_load::serve_stdin(),
    };
    match done {
        Ok(status) => ExitCode::from(status),
        Err(message) => {
            eprintln!("oribi lab: {message}");
            ExitCode::from(2)
        }
    }
}
