//! Kills and stops everything at random under open-loop load, and judges what came of it.
//!
//! `test/stress` builds and starts it. Environment: DURATION (seconds of load in all), SEED, ONLY
//! (`RATExWORKERSxTHREADS`: one run instead of all).

mod chaos;
mod load;
mod outcomes;
mod process;
mod random;
mod records;
mod request;
mod response;
mod scenario;
mod server;
mod waits;
mod watch;

use scenario::Scenario;
use server::Shape;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

fn main() -> ExitCode {
    let root = PathBuf::from(std::env::args_os().nth(1).unwrap_or(".".into()));
    let Ok(root) = root.canonicalize() else {
        eprintln!("usage: oribi-stress CHECKOUT");
        return ExitCode::FAILURE;
    };
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let only = std::env::var("ONLY").unwrap_or_default();
    let duration = number("DURATION").unwrap_or(30);
    let clock = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let seed = number("SEED").unwrap_or(u64::from(clock.subsec_nanos()));
    // Orphans come to this process: none can hide.
    if let Err(error) = rustix::process::set_child_subreaper(Some(rustix::process::getpid())) {
        eprintln!("cannot become a subreaper: {error}");
        return ExitCode::FAILURE;
    }
    let chosen: Vec<(usize, Shape)> = shapes()
        .into_iter()
        .enumerate()
        .filter(|(_, s)| {
            only.is_empty() || only == format!("{}x{}x{}", s.rate, s.workers, s.threads)
        })
        .collect();
    println!("stress: {duration} s of load in {} runs, SEED={seed}", chosen.len());
    let mut failed = 0;
    for (index, shape) in &chosen {
        let load = Duration::from_secs(duration) / chosen.len() as u32;
        // Each run has its own stream, so that ONLY draws what it would draw among all.
        let seed = random::Random::new(seed, *index as u64).next();
        let scenario = Scenario { root: root.clone(), shape: *shape, seed, load };
        failed += usize::from(!scenario.run());
    }
    if failed == 0 && !chosen.is_empty() {
        println!("stress: passed");
        return ExitCode::SUCCESS;
    }
    println!("stress: {failed} of {} runs FAILED, SEED={seed}", chosen.len());
    ExitCode::FAILURE
}

fn shapes() -> Vec<Shape> {
    let mut shapes = Vec::new();
    for rate in [50, 500, 5_000] {
        for workers in [1, 2] {
            for threads in [1, 5] {
                shapes.push(Shape { rate, workers, threads });
            }
        }
    }
    shapes
}
