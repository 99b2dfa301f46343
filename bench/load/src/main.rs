//! A small, cheap HTTP/1.1 load client: one thread, epoll, every latency kept exactly.
//!
//! It measures what a plain closed-loop generator cannot: connections over unix sockets, a fixed
//! mix of fast and stuck requests, what happens beside one stuck worker, and an open loop whose
//! latencies count from the moment a request *should* have been sent. The answer is one line of
//! JSON on stdout.

mod args;
mod engine;
mod modes;
mod response;
mod stats;
mod target;

use std::process::ExitCode;

fn main() -> ExitCode {
    let outcome = args::parse(std::env::args().skip(1)).and_then(|options| modes::run(&options));
    match outcome {
        Ok(json) => {
            println!("{json}");
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("oribi-load: {message}");
            ExitCode::FAILURE
        }
    }
}
