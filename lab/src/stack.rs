//! Starts what a contender is made of (servers, and a front), waits for it, and ends it.

use std::collections::{BTreeMap, BTreeSet};

use crate::library::Library;
use crate::results::ContenderFacts;
use crate::scenario::{Case, Contender};
use crate::tree::Tree;

/// A contender that could be started.
pub struct Blueprint {
    name: String,
}

/// Why a stack did not come up.
#[derive(Clone, Debug, Default)]
pub struct Failed {
    /// One line.
    pub text: String,
    /// The last lines of the log.
    pub log: Vec<String>,
}

impl Blueprint {
    /// Lays the contender's stack over the case's.
    pub fn new(library: &Library, case: &Case, contender: &Contender) -> Result<Self, String> {
        let _ = (library, case);
        Ok(Self { name: contender.name.clone() })
    }

    /// Names, versions, and why it is absent; `commands` stays empty (see [`Running::commands`]).
    /// Runs the version commands: ask once.
    pub fn facts(&self) -> ContenderFacts {
        ContenderFacts { name: self.name.clone(), ..ContenderFacts::default() }
    }

    /// What is missing and how to get it, in one line.
    pub fn absent(&self) -> Option<String> {
        None
    }

    /// True when it is a command that runs once instead of a server: see
    /// [`Blueprint::run_reference`].
    pub fn is_reference(&self) -> bool {
        false
    }

    /// Runs the command once: the figures it prints, by name.
    pub fn run_reference(&self) -> Result<BTreeMap<String, f64>, Failed> {
        Err(Failed::default())
    }

    /// Worker processes of all instances together; at least 1.
    pub fn workers(&self) -> u32 {
        1
    }

    /// Starts it and waits until a GET of `path` is answered with 2xx or 3xx: by each instance,
    /// then by the front.
    pub fn start(&self, path: &str) -> Result<Running, Failed> {
        let _ = path;
        Err(Failed::default())
    }
}

/// A contender that runs. Dropping it kills what is left.
pub struct Running {
    /// `tcp://HOST:PORT` or `unix:///PATH`: what the generator talks to.
    pub url: String,
    /// Milliseconds from the start of the first process to the first answer of the last instance;
    /// the front not included.
    pub start_ms: f64,
    /// The commands, front first.
    pub commands: Vec<String>,
    /// All its processes.
    pub tree: Tree,
}

impl Running {
    /// Asks `/pid` until as many workers as there are have answered with different pids, and says
    /// which.
    pub fn await_workers(&self) -> Result<BTreeSet<i32>, String> {
        Ok(BTreeSet::new())
    }

    /// The end of the logs of front and servers.
    pub fn log_tail(&self) -> Vec<String> {
        Vec::new()
    }

    /// What is amiss right now: a process that was started and has ended. None when all live.
    pub fn ended(&mut self) -> Option<String> {
        None
    }

    /// Ends it, front first, and says what was not as it should be: nothing, one hopes.
    pub fn stop(self) -> Vec<String> {
        Vec::new()
    }
}

/// Kills every stack that runs and removes its folder: for the handler of an interrupt, from any
/// thread. Stacks that are started afterwards fail at once.
pub fn abort_all() {}
