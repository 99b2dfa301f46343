//! The lab's load generator: takes a [`plan::Plan`], gives an [`outcome::Outcome`].
//!
//! One thread and one epoll. It measures what the usual closed-loop tools cannot: FastCGI and SCGI
//! beside HTTP, connections over unix sockets, mixes of requests, an open loop whose latencies count from the moment a request
//! *should* have been sent, bursts, slow readers, and why a request failed.

mod done;
pub mod door;
mod draw;
mod engine;
pub mod gateway;
pub mod hist;
mod kind;
mod ledger;
pub mod outcome;
pub mod plan;
pub mod records;
mod response;
mod run;
mod shapes;
mod target;

use std::io::{Read, Write};
use std::process::ExitCode;

pub use run::run;

/// Reads a plan as JSON from the standard input, writes the outcome as JSON to the standard output.
pub fn serve_stdin() -> ExitCode {
    match serve(std::io::stdin().lock(), std::io::stdout().lock()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("load generator: {message}");
            ExitCode::FAILURE
        }
    }
}

fn serve(from: impl Read, mut to: impl Write) -> Result<(), String> {
    let plan = serde_json::from_reader(from).map_err(|error| format!("the plan: {error}"))?;
    let outcome = serde_json::to_vec(&run(&plan)?).map_err(|error| error.to_string())?;
    to.write_all(&outcome).and_then(|()| to.flush()).map_err(|error| format!("output: {error}"))
}

#[cfg(test)]
mod tests {
    use super::{outcome::Outcome, serve};

    #[test]
    fn json_in_and_json_out() {
        let plan = br#"{"to":"tcp://127.0.0.1:1","requests":[{}],"timeout_ms":100,"seed":1,
            "slice_ms":100,"shape":{"kind":"open","steps":[{"rate":50,"seconds":0.1}],
            "max_connections":2,"keep_alive":true}}"#;
        let mut out = Vec::new();
        serve(&plan[..], &mut out).unwrap();
        let outcome: Outcome = serde_json::from_slice(&out).unwrap();
        assert_eq!((outcome.classes[0].sent, outcome.classes[0].failures.refused), (5, 5));
        assert!(serve(&b"{}"[..], &mut out).unwrap_err().starts_with("the plan: "));
    }
}
