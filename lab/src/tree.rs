//! What the kernel knows about a server: all processes that stem from those that were started.

use std::sync::{Arc, Mutex};

/// A server's processes; clones are the same tree, so that a sampler may hold one.
#[derive(Clone, Debug)]
pub struct Tree(Arc<Mutex<()>>);

/// One process.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Process {
    /// Its pid.
    pub pid: i32,
    /// Its title, as `ps` shows it.
    pub title: String,
    /// CPU seconds of its own, without its children's.
    pub cpu: f64,
    /// Voluntary context switches of all threads it has now.
    pub voluntary: u64,
    /// Involuntary ones.
    pub involuntary: u64,
}

impl Tree {
    /// The trees below these pids.
    pub fn new(roots: &[i32]) -> Self {
        let _ = roots;
        Self(Arc::default())
    }

    /// One more root.
    pub fn add(&self, root: i32) {
        let _ = (root, &self.0);
    }

    /// CPU seconds since the start of the whole tree, ended processes included; never less than
    /// the last answer.
    pub fn cpu(&self) -> f64 {
        0.0
    }

    /// Megabytes; a page that several processes share counts in parts (PSS).
    pub fn pss_mb(&self) -> f64 {
        0.0
    }

    /// Open file descriptors.
    pub fn fds(&self) -> u64 {
        0
    }

    /// Pids that live now.
    pub fn pids(&self) -> Vec<i32> {
        Vec::new()
    }

    /// Context switches (voluntary, involuntary) of all threads seen so far, never going backwards.
    pub fn switches(&self) -> (u64, u64) {
        (0, 0)
    }

    /// The processes that live now, in detail.
    pub fn processes(&self) -> Vec<Process> {
        Vec::new()
    }
}
