//! The state of a server as `oribi status --json` prints it. docs/control.md describes every field.

use serde::{Deserialize, Serialize};

/// The number of this form. Raised when a field changes its meaning or goes; new ones may come.
pub const FORM: u32 = 2;

/// A server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Status {
    /// `FORM`.
    pub form: u32,
    /// The server's version.
    pub version: String,
    /// The process to send signals to.
    pub pid: u32,
    /// The supervisor; under rackup it is a child of the former.
    pub supervisor: u32,
    /// `starting`, `running` or `stopping`.
    pub state: String,
    /// Since when it runs.
    pub uptime_ms: u64,
    /// Where it was started.
    pub directory: String,
    /// Where it listens.
    pub addresses: Vec<String>,
    /// The front; none while it is being replaced.
    pub front: Option<Process>,
    /// Every mount, in the order in which they came.
    pub mounts: Vec<Mount>,
}

/// A mount.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Mount {
    /// Its name.
    pub name: String,
    /// Hosts it answers for; empty: all.
    pub hosts: Vec<String>,
    /// The path that it lies under; empty: the root.
    pub path: String,
    /// Whether somebody has declared it; otherwise it is the server's only app.
    pub declared: bool,
    /// `booting`, `serving` or `leaving`.
    pub state: String,
    /// `cruby` or `mruby`; none: it has no app.
    pub engine: Option<String>,
    /// `threads`, `prefork` or `fresh`; none: it has no app.
    pub isolation: Option<String>,
    /// Rack environment.
    pub environment: String,
    /// Workers wanted.
    pub workers: u16,
    /// Threads of each.
    pub threads: u16,
    /// The generation that serves; 0: none yet.
    pub serving: u64,
    /// What waits.
    pub queue: Queue,
    /// Every generation of which something is left, the oldest first.
    pub generations: Vec<Generation>,
    /// Where it sends its requests, if it has no app.
    pub backends: Vec<String>,
}

/// A process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Process {
    /// Its pid; none until it is known.
    pub pid: Option<u32>,
    /// Resident bytes.
    pub rss: Option<u64>,
    /// Resident bytes, shared ones in proportion.
    pub pss: Option<u64>,
}

/// Requests that no worker has taken.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Queue {
    /// How many.
    pub waiting: u64,
    /// How long the oldest has waited; none when nothing waits.
    pub oldest_ms: Option<u64>,
}

/// A generation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Generation {
    /// Its number.
    pub generation: u64,
    /// `booting`, `serving`, `held` or `leaving`.
    pub role: String,
    /// Its mold.
    pub mold: Mold,
    /// Its workers by number.
    pub workers: Vec<Worker>,
}

/// A mold.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Mold {
    /// `booting`, `ready`, `leaving` or `absent`.
    pub state: String,
    /// Its Ruby.
    pub ruby: Option<String>,
    /// The process.
    #[serde(flatten)]
    pub process: Process,
}

/// A worker.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Worker {
    /// Its number.
    pub nr: u16,
    /// `booting`, `idle`, `busy`, `collecting`, `leaving` or `spent`.
    pub state: String,
    /// Requests it has completed.
    pub served: u64,
    /// How long it has been there.
    pub age_ms: Option<u64>,
    /// What it has in hand, one for each busy thread.
    pub requests: Vec<Request>,
    /// The process.
    #[serde(flatten)]
    pub process: Process,
}

/// A request that a worker has in hand.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Request {
    /// The worker's thread, from 1.
    pub thread: u16,
    /// As the client wrote it.
    pub method: String,
    /// Without the query.
    pub path: String,
    /// How long it waited in the queue.
    pub waited_ms: u64,
    /// How long the worker has had it.
    pub age_ms: u64,
}

impl Status {
    /// Every process whose memory is of interest.
    pub fn processes(&mut self) -> impl Iterator<Item = &mut Process> {
        let generations = self.mounts.iter_mut().flat_map(|mount| &mut mount.generations);
        let processes = generations.flat_map(|generation| {
            let workers = generation.workers.iter_mut().map(|worker| &mut worker.process);
            [&mut generation.mold.process].into_iter().chain(workers)
        });
        self.front.iter_mut().chain(processes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_another_version_says_is_read_as_far_as_it_goes() {
        let text = r#"{"form":2,"pid":7,"news":{},"mounts":[{"generations":[{"generation":2,
            "mold":{"pid":8,"state":"ready"},"workers":[{"nr":1,"pid":9,"rss":4096}]}]}]}"#;
        let mut status: Status = serde_json::from_str(text).unwrap();
        assert_eq!((status.pid, status.front.is_none()), (7, true));
        let pids: Vec<_> = status.processes().map(|process| process.pid).collect();
        assert_eq!(pids, [Some(8), Some(9)]);
        let again: Status = serde_json::from_str(&serde_json::to_string(&status).unwrap()).unwrap();
        assert_eq!(again, status);
    }
}
