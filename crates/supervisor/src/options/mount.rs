//! What one mount is: an app or something else under a path, how it is run and what it may use.

use crate::layers::Said;
use crate::pattern::Pattern;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::Duration;
use wire::settings::{SEATS_PER_GENERATION, Socket};

/// What serves under a path of some hosts.
#[derive(Clone, Debug, PartialEq)]
pub struct Mount {
    /// What commands and log lines call it: unique.
    pub name: String,
    /// In small letters; `*.example` is every subdomain. None: any.
    pub hosts: Vec<String>,
    /// Begins with a slash and does not end with one; empty is the root.
    pub path: String,
    /// False: nobody has said its path, and a web server in front may.
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
#[derive(Clone, Debug, PartialEq)]
pub enum Serves {
    /// A Rack app.
    App {
        /// None: a calling process has loaded it.
        rackup: Option<PathBuf>,
    },
    /// Servers that speak HTTP.
    #[allow(dead_code)]
    Proxy {
        /// Where they are.
        to: Vec<Socket>,
        /// Requests that each gets at once.
        max: u16,
    },
}

/// Which Ruby runs an app.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Engine {
    /// The usual one.
    #[default]
    Cruby,
    /// The small one within this binary.
    Mruby,
}

/// What the requests of an app share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Rlimits {
    /// Bytes of address space.
    pub memory: u64,
    /// Seconds of processor time.
    pub cpu: u64,
    /// Descriptors.
    pub files: u64,
    /// Processes and threads of its user.
    pub processes: u64,
    /// Bytes of a file that it writes.
    pub file_size: u64,
}

/// When a worker is replaced. Zeroes: never.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
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
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
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

    /// The one that a server without mounts has.
    pub(super) fn implied(said: &Said) -> Result<Mount, String> {
        let prefix = said.prefix()?;
        let path = prefix.clone().unwrap_or_default();
        Ok(Mount {
            name: name_of(&path),
            path,
            declared: prefix.is_some(),
            ..Mount::of(said, Serves::App { rackup: None })?
        })
    }

    /// One of these settings, without name, hosts and path.
    pub(crate) fn of(said: &Said, serves: Serves) -> Result<Mount, String> {
        let (workers, threads) = crew(said)?;
        let engine = match said.text("engine")?.as_str() {
            "mruby" => Engine::Mruby,
            _ => Engine::Cruby,
        };
        Ok(Mount {
            name: String::new(),
            hosts: Vec::new(),
            path: String::new(),
            declared: true,
            serves,
            engine,
            isolation: isolation(said, engine, threads)?,
            workers,
            threads,
            weight: said.count("weight")?,
            environment: said.text("environment")?,
            chdir: None,
            user: said.maybe("user")?,
            group: said.maybe("group")?,
            rlimits: rlimits(said)?,
            recycling: recycling(said)?,
            spawn_interval: said.seconds("spawn_interval")?,
            err_respawn_interval: said.seconds("err_respawn_interval")?,
            start_timeout: said.seconds("start_timeout")?,
            rollback_window: said.seconds("rollback_window")?,
            retry_idempotent: said.flag("retry_idempotent")?,
            watch: watch(said)?,
            worker: worker(said)?,
            front: front::MountOptions {
                queue_timeout: said.seconds("queue_timeout")?,
                body_limit: said.bytes("body_limit")?,
                chunked_transfer: said.flag("chunked_transfer")?,
                reply_spool: said.bytes("reply_spool")?,
            },
        })
    }
}

/// The name of a mount that nobody has named.
pub fn name_of(path: &str) -> String {
    path.strip_prefix('/').filter(|name| !name.is_empty()).unwrap_or("/").into()
}

/// Workers and threads.
fn crew(said: &Said) -> Result<(u16, u16), String> {
    let single = said.text("affinity")? == "single";
    let [workers, threads] = ["workers", "threads"].map(|name| said.count(name));
    let (workers, threads) = if single { (1, 1) } else { (workers?, threads?) };
    let seats = workers * threads;
    if seats > SEATS_PER_GENERATION {
        return Err(format!(
            "{workers} workers of {threads} threads are {seats} threads; at most \
             {SEATS_PER_GENERATION} are possible: lower one of the two"
        ));
    }
    Ok((workers as u16, threads as u16))
}

fn isolation(said: &Said, engine: Engine, threads: u16) -> Result<Isolation, String> {
    let level = match said.maybe("isolation")?.as_deref() {
        Some("threads") => Isolation::Threads,
        Some("prefork") => Isolation::Prefork,
        Some("fresh") => Isolation::Fresh,
        _ if threads > 1 && engine == Engine::Cruby => Isolation::Threads,
        _ => Isolation::Prefork,
    };
    Ok(level)
}

fn rlimits(said: &Said) -> Result<Rlimits, String> {
    Ok(Rlimits {
        memory: said.bytes("limit_memory")?,
        cpu: said.count("limit_cpu")?.into(),
        files: said.count("limit_files")?.into(),
        processes: said.count("limit_processes")?.into(),
        file_size: said.bytes("limit_file_size")?,
    })
}

fn recycling(said: &Said) -> Result<Recycling, String> {
    Ok(Recycling {
        max_requests: said.count("max_requests")?.into(),
        min_requests: said.count("min_requests")?.into(),
        max_rss: said.bytes("max_rss")?,
        max_pss: said.bytes("max_pss")?,
        max_age: said.seconds("max_age")?,
    })
}

fn worker(said: &Said) -> Result<WorkerOptions, String> {
    let [hard, soft] = ["request_timeout", "request_timeout_soft"].map(|name| said.seconds(name));
    let (hard, soft) = (hard?.as_secs_f64(), soft?.as_secs_f64());
    if hard > 0.0 && soft >= hard {
        return Err(format!(
            "request_timeout_soft: {soft} is not less than request_timeout, {hard}: the worker \\
             would be killed before it could log where it is"
        ));
    }
    let most = said.is_said("max_gc_per_request").then(|| said.count("max_gc_per_request"));
    let most = most.transpose()?;
    Ok(WorkerOptions {
        early_hints: said.flag("early_hints")?,
        request_timeout: hard,
        request_timeout_soft: soft,
        // Said to be 0 it means never; unsaid it means when need be.
        oob_gc: said.flag("oob_gc")? && most != Some(0),
        max_gc_per_request: most.unwrap_or(0),
        min_gc_per_request: said.count("min_gc_per_request")?,
        oob_gc_cap: said.bytes("oob_gc_cap")?,
        warm_up: said.maybe("warm_up")?,
        config: None,
    })
}

fn watch(said: &Said) -> Result<Vec<String>, String> {
    let patterns = said.list("watch")?;
    for pattern in &patterns {
        Pattern::new(Path::new("/"), pattern)?;
    }
    Ok(patterns)
}
