//! A scenario as its TOML file says it: what is measured, on what, how, and what must come out.
//!
//! Every `[[case]]` is laid over the file's top level, key by key (tables merge, everything else
//! is replaced); a file without cases is its only case.
//!
//! Structs with flattened parts cannot deny unknown fields and name the right ones; `check.rs`
//! does it for them.

use std::collections::BTreeMap;

use oribi_load::plan::{Beside, Request, Shape, Step};
use serde::{Deserialize, Serialize};

/// One case of a scenario, complete. `Case::load` (in `library.rs`) reads, merges and checks it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Case {
    /// The scenario's name, as on the command line.
    pub name: String,
    /// The case's name; empty for the only one.
    #[serde(default)]
    pub case: String,
    /// One line.
    pub title: String,
    /// What the reader should know.
    #[serde(default)]
    pub about: String,
    /// A scenario whose first case this one is laid over: `soak` measures any other for long.
    #[serde(default)]
    pub of: Option<String>,
    /// Interleaved rounds; at least 3 unless the command line says otherwise.
    #[serde(default = "three")]
    pub rounds: usize,
    /// The rackup file, relative to the lab's folder.
    #[serde(default)]
    pub app: String,
    /// What contenders are started with, unless they say otherwise.
    #[serde(flatten)]
    pub stack: Stack,
    /// Who takes part.
    #[serde(default)]
    pub contender: Vec<Contender>,
    /// Shorthand: a contender for each, named like the server.
    #[serde(default)]
    pub servers: Vec<String>,
    /// What is asked; phases may choose by class.
    #[serde(default)]
    pub request: Vec<Request>,
    /// What happens in a cell, one after the other, on the same server.
    #[serde(default)]
    pub phase: Vec<Phase>,
    /// Seconds of closed loop before the first phase, in vain.
    #[serde(default = "one")]
    pub warmup_seconds: f64,
    /// Metrics of the table, in order.
    #[serde(default)]
    pub show: Vec<String>,
    /// Names of contenders that every other one is compared with.
    #[serde(default)]
    pub baseline: Vec<String>,
    /// What must come out.
    #[serde(default)]
    pub target: Vec<Target>,
    /// What others published about the same question.
    #[serde(default)]
    pub published: Vec<Published>,
    /// Waits until every worker has been seen before it measures (the application answers `/pid`
    /// with the worker's pid).
    #[serde(default)]
    pub await_workers: bool,
    /// Per-process table: CPU, wake-ups, preemptions and system calls for each request.
    #[serde(default)]
    pub processes: bool,
    /// Seconds between samples of CPU, PSS, fds and GC in a time series; 0 keeps none.
    #[serde(default)]
    pub sample_seconds: f64,
}

impl Case {
    /// One in which nothing but its name is said, for those that are not read from a file.
    pub fn named(name: &str) -> Self {
        let text = format!("name = \"{name}\"\ntitle = \"\"");
        toml::from_str(&text).expect("everything else has a default")
    }
}

/// How a server is started.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Stack {
    /// Worker processes.
    #[serde(default)]
    pub workers: Option<u32>,
    /// Threads in each.
    #[serde(default)]
    pub threads: Option<u32>,
    /// Separate instances of the server, each on its own address; more than one needs a front.
    #[serde(default)]
    pub instances: Option<u32>,
    /// `tcp` or `unix`: where the server listens. A front always listens on TCP.
    #[serde(default)]
    pub listen: Option<String>,
    /// What the server speaks there: `http`, `fastcgi` or `scgi`. A front speaks HTTP to the
    /// generator, and this to the server.
    #[serde(default)]
    pub door: Option<String>,
    /// The proxy in front: the name of a server file that says `front = true`; `none` for none.
    #[serde(default)]
    pub front: Option<String>,
    /// Options of the server's and the front's templates, by name.
    #[serde(default)]
    pub options: BTreeMap<String, toml::Value>,
    /// Environment of the server.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
}

/// Who takes part in a case.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Contender {
    /// Unique in the case.
    pub name: String,
    /// The server file's name.
    pub server: String,
    /// Another application than the case's.
    #[serde(default)]
    pub app: Option<String>,
    /// Laid over the case's.
    #[serde(flatten)]
    pub stack: Stack,
}

/// A part of a cell. Serde cannot refuse unknown keys beside a flattened enum (it would refuse the
/// enum's own); `library.rs` does.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Phase {
    /// Prefix of its metrics.
    pub name: String,
    /// How requests are spread.
    #[serde(flatten)]
    pub load: PhaseLoad,
    /// Classes that are asked; empty for all.
    #[serde(default)]
    pub classes: Vec<String>,
    /// What goes on beside.
    #[serde(default)]
    pub beside: Vec<Beside>,
    /// Seconds after which a request has failed.
    #[serde(default = "ten")]
    pub timeout_seconds: f64,
    /// Kills workers meanwhile.
    #[serde(default)]
    pub kill: Option<Kill>,
    /// Deploys new code meanwhile.
    #[serde(default)]
    pub deploy: Option<Deploy>,
    /// Failures are what this phase is about: they are shown, and do not void the cell.
    #[serde(default)]
    pub failures_expected: bool,
    /// Seconds of one request by class: gives the metric `served`, the part of the possible work
    /// that was done.
    #[serde(default)]
    pub service_seconds: BTreeMap<String, f64>,
}

/// The load of a phase.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum PhaseLoad {
    /// See [`Shape::Closed`].
    Closed {
        /// At once.
        connections: usize,
        /// Kept?
        #[serde(default = "yes")]
        keep_alive: bool,
        /// Given up by a reset, so that the kernel forgets them at once?
        #[serde(default)]
        reset: bool,
        /// How long.
        seconds: f64,
    },
    /// See [`Shape::Open`]; rates are absolute or parts of what an earlier closed phase of the
    /// same cell reached.
    Open {
        /// Requests a second (or part of `of`).
        #[serde(default)]
        rate: f64,
        /// How long.
        #[serde(default)]
        seconds: f64,
        /// Instead of rate and seconds.
        #[serde(default)]
        steps: Vec<Step>,
        /// A closed phase: rates are multiples of its requests/s.
        #[serde(default)]
        of: Option<String>,
        /// At most so many.
        #[serde(default = "many")]
        max_connections: usize,
        /// Kept?
        #[serde(default = "yes")]
        keep_alive: bool,
        /// Random intervals?
        #[serde(default)]
        poisson: bool,
    },
    /// See [`Shape::Burst`].
    Burst {
        /// In one burst.
        at_once: usize,
        /// Bursts.
        #[serde(default = "one_time")]
        times: usize,
        /// Between them.
        #[serde(default)]
        pause_ms: u64,
        /// Over the same connections again?
        #[serde(default)]
        keep_alive: bool,
    },
    /// Three steps of an open loop: below, above and again below capacity (a closed phase named
    /// `of`); gives goodput, drain and recovery.
    Overload {
        /// The closed phase that found the capacity.
        of: String,
        /// Multiple of it.
        factor: f64,
        /// Seconds of it.
        seconds: f64,
        /// Multiple of capacity before and after.
        calm: f64,
        /// Seconds before; afterwards it goes on until `after_seconds`.
        before_seconds: f64,
        /// Seconds after.
        after_seconds: f64,
    },
}

/// Kills workers while a phase runs. A worker is whoever answers `/pid` with its own pid.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kill {
    /// Milliseconds between kills.
    pub every_ms: u64,
    /// The signal's name.
    pub signal: String,
}

/// Deploys new code while a phase runs, as each server's file says how. The application says by
/// `/release` which release it is.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Deploy {
    /// When, in milliseconds since the phase began.
    pub at_ms: Vec<u64>,
}

/// A promise: `metric` of one contender, alone or over others, against a bound.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// What is said about it.
    pub label: String,
    /// Name of a metric (`PHASE.METRIC` or `PHASE.METRIC.CLASS`, or one of the cell's own).
    pub metric: String,
    /// Whose.
    pub of: String,
    /// Divided by the sum of the same metric (or of `over_metric`) of these, within each round.
    #[serde(default)]
    pub over: Vec<String>,
    /// Another metric of the divisor.
    #[serde(default)]
    pub over_metric: Option<String>,
    /// Take the sum away instead of dividing by it.
    #[serde(default)]
    pub difference: bool,
    /// The bound, one of the two.
    #[serde(default)]
    pub at_least: Option<f64>,
    /// The bound, one of the two.
    #[serde(default)]
    pub at_most: Option<f64>,
    /// Wished for beyond the bound.
    #[serde(default)]
    pub goal: Option<f64>,
    /// `median` of the rounds, or the `worst`.
    #[serde(default)]
    pub take: Take,
}

/// How rounds become one figure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Take {
    /// The middle one.
    #[default]
    Median,
    /// The worst one; a round without a figure is worse than any.
    Worst,
}

/// A ratio that others published.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// What was compared, in words.
    pub what: String,
    /// Their ratio.
    pub ratio: f64,
    /// Where it stands.
    pub source: String,
    /// The same ratio here: metric …
    #[serde(default)]
    pub metric: String,
    /// … of this contender …
    #[serde(default)]
    pub of: String,
    /// … over this one.
    #[serde(default)]
    pub over: String,
}

fn yes() -> bool {
    true
}
fn one() -> f64 {
    1.0
}
fn one_time() -> usize {
    1
}
fn three() -> usize {
    3
}
fn ten() -> f64 {
    10.0
}
fn many() -> usize {
    10_000
}

/// The generator's shape for a load; `rate_of` answers with the requests/s of an earlier phase.
pub fn shape(load: &PhaseLoad, rate_of: impl Fn(&str) -> Option<f64>) -> Option<Shape> {
    Some(match load {
        PhaseLoad::Closed { connections, keep_alive, reset, seconds } => Shape::Closed {
            connections: *connections,
            keep_alive: *keep_alive,
            reset: *reset,
            seconds: *seconds,
        },
        PhaseLoad::Open { rate, seconds, steps, of, max_connections, keep_alive, poisson } => {
            let unit = match of {
                Some(phase) => rate_of(phase)?,
                None => 1.0,
            };
            let single = [Step { rate: *rate, seconds: *seconds }];
            let steps = if steps.is_empty() { &single[..] } else { &steps[..] };
            let scaled =
                steps.iter().map(|step| Step { rate: step.rate * unit, seconds: step.seconds });
            Shape::Open {
                steps: scaled.collect(),
                max_connections: *max_connections,
                keep_alive: *keep_alive,
                poisson: *poisson,
            }
        }
        PhaseLoad::Burst { at_once, times, pause_ms, keep_alive } => Shape::Burst {
            at_once: *at_once,
            times: *times,
            pause_ms: *pause_ms,
            keep_alive: *keep_alive,
        },
        PhaseLoad::Overload { of, factor, seconds, calm, before_seconds, after_seconds } => {
            let capacity = rate_of(of)?;
            let step = |part: f64, seconds: f64| Step { rate: part * capacity, seconds };
            Shape::Open {
                steps: vec![
                    step(*calm, *before_seconds),
                    step(*factor, *seconds),
                    step(*calm, *after_seconds),
                ],
                max_connections: many(),
                keep_alive: true,
                poisson: false,
            }
        }
    })
}
