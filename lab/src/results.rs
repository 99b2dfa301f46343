//! What a run has found out, as it stands in `run.json`.

use std::collections::BTreeMap;

use oribi_load::outcome::{Failures, Outcome};
use serde::{Deserialize, Serialize};

use crate::scenario::{Case, Published};

/// Of the shape of `run.json`.
pub const SCHEMA: u32 = 1;

/// One run of one or more scenarios.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Run {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Name of its folder.
    pub name: String,
    /// UTC, RFC 3339.
    pub started: String,
    /// UTC, RFC 3339.
    pub finished: String,
    /// The command line.
    pub arguments: Vec<String>,
    /// Where it ran.
    pub machine: Machine,
    /// How noisy it was.
    pub noise: Noise,
    /// What keeps its figures from being a claim: shortened phases, too few rounds, interrupted.
    #[serde(default)]
    pub remarks: Vec<String>,
    /// In the order in which they ran.
    pub cases: Vec<CaseResult>,
}

/// Where it ran.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Runs with different identities are not compared silently: a digest of CPU, cores, memory,
    /// kernel and Ruby.
    pub identity: String,
    /// `model name`.
    pub cpu: String,
    /// Those this process may use.
    pub cores: usize,
    /// Megabytes.
    pub memory_mb: u64,
    /// Release.
    pub kernel: String,
    /// Distribution.
    pub system: String,
    /// `RUBY_DESCRIPTION`.
    pub ruby: String,
    /// Kernel settings that matter, by name (`net.core.somaxconn`, governor, mitigations …).
    pub settings: BTreeMap<String, String>,
    /// Load average of one minute when it began.
    pub load: f64,
}

/// A fixed piece of work, done again between cells: how long it took.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Noise {
    /// Milliseconds, in order.
    pub samples_ms: Vec<f64>,
    /// 90th over 10th percentile: 1.0 is a quiet machine.
    pub spread: f64,
    /// Part of the CPU time the hypervisor took away meanwhile (0 to 1).
    pub steal: f64,
    /// Part of the CPU time spent by neither the server nor the generator while measuring.
    pub others: f64,
}

/// One case of one scenario.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CaseResult {
    /// What was asked for, complete.
    pub case: Case,
    /// Who took part, in order.
    pub contenders: Vec<ContenderFacts>,
    /// Round by round, in the order of the contenders.
    pub rounds: Vec<Vec<Cell>>,
    /// Medians and spread.
    pub summary: Vec<Summary>,
    /// Every contender over every baseline.
    pub comparisons: Vec<Comparison>,
    /// What was promised.
    pub verdicts: Vec<Verdict>,
    /// What others published, and ours.
    pub published: Vec<PublishedRow>,
}

/// Who took part.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ContenderFacts {
    /// As in the case.
    pub name: String,
    /// The recipes it is made of, front first.
    pub servers: Vec<String>,
    /// Their versions.
    pub versions: Vec<String>,
    /// The commands, as they ran in the first round.
    pub commands: Vec<String>,
    /// Why it did not take part: what is missing, and the package that brings it.
    pub absent: Option<String>,
}

/// One contender in one round.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Cell {
    /// Its name.
    pub contender: String,
    /// Why nothing (or not all) was measured.
    pub error: Option<String>,
    /// What was not as it should be at its end: did not stop, left processes behind.
    pub complaints: Vec<String>,
    /// Every figure by name.
    pub metrics: BTreeMap<String, f64>,
    /// Of all phases.
    pub failures: Failures,
    /// Failures that void the cell: those of phases that do not expect them.
    pub unexpected_failures: u64,
    /// What the generator said.
    pub phases: Vec<PhaseResult>,
    /// Per process, where the case asks for it.
    pub processes: Vec<ProcessUse>,
    /// The last lines of the server's log, if something went wrong.
    pub log: Vec<String>,
}

impl Cell {
    /// True when it may take part in a comparison.
    pub fn sound(&self) -> bool {
        self.error.is_none() && self.unexpected_failures == 0
    }
}

/// One phase of a cell.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PhaseResult {
    /// The phase.
    pub name: String,
    /// What the generator said.
    pub outcome: Outcome,
    /// CPU seconds of the server's whole tree, cumulative, sampled every [`CPU_SAMPLE_MS`].
    pub cpu: Vec<f64>,
    /// Where the case samples: the time series.
    pub samples: Vec<Sample>,
    /// Kills, in milliseconds since the phase began.
    pub kills_ms: Vec<f64>,
    /// Deploys, in order.
    #[serde(default)]
    pub deploys: Vec<DeployResult>,
    /// What `samples` come to; see [`crate::figures::series::of_soak`].
    #[serde(default)]
    pub series: Vec<SeriesResult>,
}

/// One deploy; milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DeployResult {
    /// When it was ordered, since the phase began.
    pub at_ms: f64,
    /// From then until the new release first answered.
    pub new_ms: f64,
    /// From then until an older one last answered.
    pub old_ms: f64,
}

/// How often CPU is read while a phase runs; also the length of the generator's slices.
pub const CPU_SAMPLE_MS: u64 = 500;

/// A moment of a long run.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Sample {
    /// Seconds since the phase began.
    pub at: f64,
    /// CPU seconds since it began.
    pub cpu: f64,
    /// Megabytes of the whole tree.
    pub pss_mb: f64,
    /// Open fds of the whole tree.
    pub fds: u64,
    /// Processes.
    pub processes: u64,
    /// Collections of all workers, of each since it was first asked; None where the application
    /// does not answer `/gc`.
    #[serde(default)]
    pub gc_count: Option<f64>,
    /// Milliseconds of them.
    #[serde(default)]
    pub gc_ms: Option<f64>,
}

/// One figure over the time of a phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SeriesResult {
    /// Its name: `rps`, `p99_ms`, `pss_mb`, `fds`, `gc_ms_per_s`, `cpu_share` or `failures`.
    pub name: String,
    /// For people.
    pub title: String,
    /// Unit of values, mean and deviation.
    pub unit: String,
    /// Seconds since the phase began, and the value there.
    pub points: Vec<(f64, f64)>,
    /// Of all values.
    pub mean: f64,
    /// Standard deviation.
    pub deviation: f64,
    /// Trend: units an hour, by least squares; None for fewer than three values.
    pub slope_per_hour: Option<f64>,
    /// Standard error of it.
    pub slope_error: Option<f64>,
    /// The strongest cycle, if one stands out.
    pub cycle: Option<Cycle>,
}

/// A cycle in a time series.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cycle {
    /// Its length in seconds.
    pub seconds: f64,
    /// The part (0 to 1) of the variance, without the trend, that it explains.
    pub share: f64,
}

/// One process of the server.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ProcessUse {
    /// Its title.
    pub title: String,
    /// Microseconds of CPU for each request of the whole server.
    pub cpu_us: f64,
    /// Voluntary context switches for each request.
    pub wakeups: f64,
    /// Involuntary ones.
    pub preempted: f64,
    /// System calls; None if this machine does not let us count.
    pub calls: Option<f64>,
}

/// A metric of a contender over all sound rounds.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Summary {
    /// Whose.
    pub contender: String,
    /// Which.
    pub metric: String,
    /// The middle of the rounds.
    pub median: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
    /// Rounds it comes from.
    pub rounds: usize,
}

/// A contender over a baseline, taken within each round.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Comparison {
    /// Which metric.
    pub metric: String,
    /// Above the line.
    pub of: String,
    /// Below it.
    pub over: String,
    /// The median of the rounds' ratios.
    pub ratio: f64,
    /// Where its interval of 95 % begins.
    pub low: f64,
    /// Where it ends.
    pub high: f64,
    /// True when larger is better.
    pub more_is_better: bool,
}

/// What became of a target.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Verdict {
    /// Its words.
    pub label: String,
    /// `at least 1.7`.
    pub target: String,
    /// None when a cell it needs has failed.
    pub measured: Option<f64>,
    /// Kept?
    pub ok: bool,
    /// The goal beyond it, and whether it was reached.
    pub goal: Option<(f64, bool)>,
}

/// What others published beside ours.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PublishedRow {
    /// Theirs.
    pub published: Published,
    /// Ours; None where we have no such pair.
    pub measured: Option<f64>,
}
