//! What one mount is: an app or something else under a path, how it is run and what it may use.

use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;
use wire::settings::Socket;

/// Bundler's name for the file it takes gems from.
const GEMFILE: &str = "BUNDLE_GEMFILE";
/// What every Ruby loads first.
const RUBYOPT: &str = "RUBYOPT";

/// What serves under a path of some hosts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Mount {
    /// What commands and log lines call it: unique.
    pub name: String,
    /// In small letters; `*.example` is every subdomain. None: any.
    pub hosts: Vec<String>,
    /// Begins with a slash and does not end with one; empty is the root.
    pub path: String,
    /// False: the only one of a server that declares none. Then `path` is the setting `prefix`: `/`
    /// is the root, and empty is what a web server in front says.
    pub declared: bool,
    /// What answers.
    pub serves: Serves,
    /// Which Ruby runs the app.
    pub engine: Engine,
    /// What its requests share.
    pub isolation: Isolation,
    /// Worker processes.
    pub workers: u16,
    /// Threads of each.
    pub threads: u16,
    /// Share of processor time; 100 is usual.
    pub weight: u32,
    /// Rack environment.
    pub environment: String,
    /// Where the app is, if it is not where the server is.
    pub chdir: Option<PathBuf>,
    /// Whom mold and workers run as; none: as the server.
    pub user: Option<String>,
    /// Their group.
    pub group: Option<String>,
    /// What a process of it may use.
    pub rlimits: Rlimits,
    /// When a worker is replaced.
    pub recycling: Recycling,
    /// Time between two forks.
    pub spawn_interval: Duration,
    /// How long no worker is forked after one has ended with an error.
    pub err_respawn_interval: Duration,
    /// How long a new worker may take to get ready; zero: for ever.
    pub start_timeout: Duration,
    /// How long the old generation is kept after a restart; zero: not at all.
    pub rollback_window: Duration,
    /// Whether a harmless request may be run twice.
    pub retry_idempotent: bool,
    /// Files, or patterns, whose change means a restart.
    pub watch: Vec<String>,
    /// What molds and workers are told, as the names of the settings.
    pub worker: WorkerOptions,
    /// What the front is told.
    pub front: front::MountOptions,
}

/// What answers a mount's requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Serves {
    /// A Rack app.
    App {
        /// None: a calling process has loaded it.
        rackup: Option<PathBuf>,
    },
    /// Servers that speak HTTP.
    Proxy {
        /// Where they are.
        #[serde(with = "super::texts::sockets")]
        to: Vec<Socket>,
        /// Requests that each gets at once.
        max: u16,
    },
}

/// Which Ruby runs an app.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Engine {
    /// The usual one.
    #[default]
    Cruby,
    /// The small one within this binary.
    Mruby,
}

impl Engine {
    /// As the setting is written.
    pub fn word(self) -> &'static str {
        match self {
            Engine::Cruby => "cruby",
            Engine::Mruby => "mruby",
        }
    }
}

impl Isolation {
    /// As the setting is written.
    pub fn word(self) -> &'static str {
        match self {
            Isolation::Threads => "threads",
            Isolation::Prefork => "prefork",
            Isolation::Fresh => "fresh",
        }
    }
}

/// What the requests of an app share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Isolation {
    /// An interpreter, several at the same time.
    Threads,
    /// An interpreter, one after the other.
    #[default]
    Prefork,
    /// Nothing: each has an interpreter that no other has used.
    Fresh,
}

/// What a process of a mount may use. Zeroes: as much as there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rlimits {
    /// Bytes of memory of its own, touched or not.
    pub memory: u64,
    /// Seconds of processor time of each worker.
    pub cpu: u64,
    /// Descriptors.
    pub files: u64,
    /// Processes and threads of its user.
    pub processes: u64,
    /// Bytes of a file that it writes.
    pub file_size: u64,
}

/// When a worker is replaced. Zeroes: never.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Recycling {
    /// After so many requests at the latest.
    pub max_requests: u64,
    /// After so many at the earliest.
    pub min_requests: u64,
    /// Resident bytes.
    pub max_rss: u64,
    /// Its share of memory in bytes.
    pub max_pss: u64,
    /// Age.
    pub max_age: Duration,
}

/// What molds and workers are told.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkerOptions {
    /// Whether apps may send `103 Early Hints`.
    pub early_hints: bool,
    /// Seconds a request may run; 0: for ever.
    pub request_timeout: f64,
    /// Seconds until its backtrace is logged; 0: never.
    pub request_timeout_soft: f64,
    /// Whether to collect garbage between requests.
    pub oob_gc: bool,
    /// After so many requests at the latest; 0: when need be.
    pub max_gc_per_request: u32,
    /// After so many at the earliest; 0: half of the above.
    pub min_gc_per_request: u32,
    /// Bytes not collected yet that force a collection.
    pub oob_gc_cap: u64,
    /// What a new worker asks its app for.
    pub warm_up: Option<String>,
    /// The Ruby configuration file, for its hooks: the server's and those of the mount of this name.
    pub config: Option<String>,
}

impl Mount {
    /// The app's file; none where there is no app, or a calling process has loaded it.
    pub fn rackup(&self) -> Option<&Path> {
        match &self.serves {
            Serves::App { rackup } => rackup.as_deref(),
            Serves::Proxy { .. } => None,
        }
    }

    /// What an environment says so that the app's own Gemfile is used: if there is one beside it,
    /// and whoever started the server has not chosen another.
    pub fn bundle(&self) -> Option<[(&'static str, OsString); 2]> {
        let gemfile = self.chdir.as_ref()?.join("Gemfile");
        if std::env::var_os(GEMFILE).is_some() || !gemfile.is_file() {
            return None;
        }
        let mut first = OsString::from("-rbundler/setup");
        if let Some(others) = std::env::var_os(RUBYOPT).filter(|others| !others.is_empty()) {
            first.push(" ");
            first.push(others);
        }
        Some([(GEMFILE, gemfile.into()), (RUBYOPT, first)])
    }

    /// Whether it has processes of its own.
    pub fn has_app(&self) -> bool {
        matches!(self.serves, Serves::App { .. })
    }

    /// Where it lies, for people.
    pub fn place(&self) -> String {
        let path = if self.path.is_empty() { "/" } else { &self.path };
        format!("{}{path}", self.hosts.join(","))
    }
}
