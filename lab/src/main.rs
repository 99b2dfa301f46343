//! `oribi lab`: measures any Ruby web server.

mod ask_app;
mod blocks;
mod bootstrap;
mod bundle;
mod cell;
mod check;
mod cli;
mod commands;
mod figures;
mod generator;
mod http;
mod interrupt;
mod judge;
mod kill;
mod library;
mod list;
mod live;
mod machine;
mod metrics;
mod nearest;
mod noise;
mod overload;
mod perprocess;
mod progress;
mod recipe;
mod render;
mod report;
mod results;
mod rounds;
mod running;
mod sampler;
mod scenario;
mod select;
mod series;
mod stack;
mod stats;
mod surroundings;
mod timewait;
mod tree;
mod understand;

use std::process::ExitCode;

use clap::Parser;

use crate::cli::{Cli, Command};

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::List(list) => commands::list(&list),
        Command::Run(run) => commands::run(&run),
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
