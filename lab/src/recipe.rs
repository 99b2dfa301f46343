//! A server as its TOML file says it: how to start it, what Debian package brings it.
//!
//! Command, files and version are minijinja templates. They know: `listen` (`tcp://127.0.0.1:PORT`
//! or `unix:///PATH`), `host`, `port`, `path` (of the socket), `address` (HOST:PORT or the path),
//! `app` (absolute path of the rackup file), `app_dir`, `dir` (an empty folder for this instance),
//! `workers`, `threads`, `door` (what the server speaks: `http`, `fastcgi`, `scgi`), `lab` (the lab's folder), `root` (true when run by root), `options` (the
//! stack's), and for a front `backends` (a list of {listen, host, port, path, address}).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// How one server is started.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// As in scenarios.
    pub name: String,
    /// For people.
    pub title: String,
    /// What the reader should know: modes, limits, known bugs.
    #[serde(default)]
    pub about: String,
    /// Debian's packages that bring it; none for what is built here.
    #[serde(default)]
    pub packages: Vec<String>,
    /// A proxy: it stands before `backends`.
    #[serde(default)]
    pub front: bool,
    /// What it can listen on.
    #[serde(default = "both")]
    pub listens: Vec<String>,
    /// What it can speak there; a front, what it can speak to a server.
    #[serde(default = "http")]
    pub doors: Vec<String>,
    /// True when it runs a rackup file (`--servers` of `oribi lab app` lists those).
    #[serde(default = "yes")]
    pub rack: bool,
    /// It cannot have more worker processes than this; what has more takes `instances`.
    #[serde(default)]
    pub most_workers: Option<u32>,
    /// It cannot have more threads in each than this.
    #[serde(default)]
    pub most_threads: Option<u32>,
    /// The programs that must be there (in PATH, or a file): what is missing makes it absent.
    pub needs: Vec<String>,
    /// The command; an argument that renders to nothing is left out.
    pub command: Vec<String>,
    /// Its environment.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Files written into `dir` before the start.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    /// Prints the version, on either stream.
    #[serde(default)]
    pub version: Vec<String>,
    /// A command run once instead of a server: it prints one JSON object of metrics.
    #[serde(default)]
    pub reference: bool,
    /// The command that makes it take up new code without losing anything, if it can: a template
    /// that knows `pid` besides, its first process.
    #[serde(default)]
    pub deploy: Vec<String>,
    /// The signal that ends it well.
    #[serde(default = "term")]
    pub stop: String,
}

fn both() -> Vec<String> {
    vec!["tcp".into(), "unix".into()]
}
fn http() -> Vec<String> {
    vec!["http".into()]
}
fn yes() -> bool {
    true
}
fn term() -> String {
    "TERM".into()
}
