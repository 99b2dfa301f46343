//! Kills and stops everything at random under open-loop load, or does the same again and again, and
//! judges what came of it.
//!
//! `test/stress` and `test/soak` build and start it. Environment: SEED; KEEP (any value
//! keeps the logs); for the storms DURATION
//! (seconds of load in all) and ONLY (`RATExWORKERSxTHREADS`: one run instead of all).

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
mod soak;
mod stage;
mod waits;
mod watch;

use scenario::Scenario;
use server::Shape;
use soak::{Deed, Soak};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let root = arguments.first().and_then(|root| PathBuf::from(root).canonicalize().ok());
    let rounds: Option<Vec<u64>> = arguments.iter().skip(1).map(|it| it.parse().ok()).collect();
    let (Some(root), Some(rounds)) = (root, rounds.filter(|all| matches!(all.len(), 0 | 3))) else {
        eprintln!("usage: oribi-stress CHECKOUT [RESTARTS RECYCLINGS KILLS]");
        return ExitCode::FAILURE;
    };
    let clock = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let seed = number("SEED").unwrap_or(u64::from(clock.subsec_nanos()));
    // Orphans come to this process: none can hide.
    if let Err(error) = rustix::process::set_child_subreaper(Some(rustix::process::getpid())) {
        eprintln!("cannot become a subreaper: {error}");
        return ExitCode::FAILURE;
    }
    let (name, runs, failed) = match rounds[..] {
        [restarts, recyclings, kills] => soak(root, [restarts, recyclings, kills], seed),
        _ => storm(root, seed),
    };
    if failed == 0 && runs > 0 {
        println!("{name}: passed");
        return ExitCode::SUCCESS;
    }
    println!("{name}: {failed} of {runs} runs FAILED, SEED={seed}");
    ExitCode::FAILURE
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

fn storm(root: PathBuf, seed: u64) -> (&'static str, usize, usize) {
    let only = std::env::var("ONLY").unwrap_or_default();
    let duration = number("DURATION").unwrap_or(30);
    let chosen: Vec<(usize, Shape)> = shapes()
        .into_iter()
        .enumerate()
        .filter(|(_, s)| {
            only.is_empty() || only == format!("{}x{}x{}", s.rate, s.workers, s.threads)
        })
        .collect();
    println!("stress: {duration} s of load in {} runs, SEED={seed}", chosen.len());
    let passes = |(index, shape): &(usize, Shape)| {
        let load = Duration::from_secs(duration) / chosen.len() as u32;
        // Each run has its own stream, so that ONLY draws what it would draw among all.
        let seed = random::Random::new(seed, *index as u64).next();
        Scenario { root: root.clone(), shape: *shape, seed, load }.run()
    };
    ("stress", chosen.len(), chosen.iter().filter(|one| !passes(one)).count())
}

fn shapes() -> Vec<Shape> {
    let mut shapes = Vec::new();
    for rate in [50, 500, 5_000] {
        for workers in [1, 2] {
            for threads in [1, 5] {
                shapes.push(Shape { rate, workers, threads, options: &AT_ONCE });
            }
        }
    }
    shapes
}

/// Nobody is kept after a restart.
const AT_ONCE: [&str; 2] = ["--rollback-window", "0"];

fn soak(root: PathBuf, rounds: [u64; 3], seed: u64) -> (&'static str, usize, usize) {
    let [restarts, recyclings, kills] = rounds;
    let keep = restarts / 4;
    let soaks: [(&str, Deed, u64, &'static [&str]); 4] = [
        ("restarts", Deed::Restart, restarts - keep, &AT_ONCE),
        ("restarts with a rollback window", Deed::Restart, keep, &["--rollback-window", "1"]),
        ("rounds of recycling", Deed::Recycle, recyclings, &["--max-requests", "40"]),
        ("kills", Deed::Kill, kills, &AT_ONCE),
    ];
    println!("soak: SEED={seed}");
    let (mut runs, mut failed) = (0, 0);
    for (index, (name, deed, rounds, options)) in soaks.into_iter().enumerate() {
        let shape = Shape { rate: 200, workers: 3, threads: 2, options };
        let seed = random::Random::new(seed, index as u64).next();
        let soak = Soak { root: root.clone(), name, deed, rounds, shape, seed };
        if rounds > 0 {
            runs += 1;
            failed += usize::from(!soak.run());
        }
    }
    ("soak", runs, failed)
}
