//! The metrics of one phase, from what the generator and the sampler saw.

pub mod blocks;
pub mod bootstrap;
pub mod judge;
pub mod overload;
pub mod series;
pub mod stats;

use std::collections::BTreeMap;

use oribi_load::hist::Hist;
use oribi_load::outcome::{Class, Outcome, Tick};
use oribi_load::plan::Request;

use crate::results::{DeployResult, PhaseResult};
use crate::scenario::{Case, Phase, PhaseLoad};

/// Milliseconds of a tick of [`Outcome::ticks`].
pub const TICK_MS: u64 = 100;

/// All metrics of a phase, named `PHASE.NAME` or `PHASE.NAME.CLASS`; what was not measured is not
/// in it. `stack_workers` is the number of workers of the whole stack, `earlier` what the cell's
/// earlier phases gave.
///
/// Without a class, rates, latencies and bytes are of all classes but those beside; failures and
/// the good answers that share the CPU are of all, because what runs beside fails and costs, too.
/// Classes have figures of their own unless there is only one and it has no name.
pub fn of_phase(
    case: &Case,
    phase: &Phase,
    result: &PhaseResult,
    stack_workers: f64,
    earlier: &BTreeMap<String, f64>,
) -> BTreeMap<String, f64> {
    let outcome = &result.outcome;
    let mut figures = Figures { phase: &phase.name, all: BTreeMap::new() };
    let main: Vec<&Class> = outcome.classes.iter().filter(|class| !class.beside).collect();
    load(&mut figures, case, phase, outcome, &main, None);
    failures(&mut figures, outcome.classes.iter(), None);
    if outcome.classes.len() > 1 || main.iter().any(|class| class.class != "all") {
        for class in &outcome.classes {
            load(&mut figures, case, phase, outcome, &[class], Some(&class.class));
            failures(&mut figures, [class].into_iter(), Some(&class.class));
        }
    }
    cpu(&mut figures, result);
    if outcome.classes.iter().any(|class| class.ok > 0) {
        figures.set("gap_ms", None, Some(outcome.gap_ms));
    }
    if !matches!(phase.load, PhaseLoad::Burst { .. }) {
        let counts: Vec<f64> = whole_ticks(outcome).map(|tick| f64::from(tick.ok)).collect();
        figures.set("dispersion", None, stats::dispersion(&counts));
    }
    workers(&mut figures, outcome, stack_workers);
    figures.set("served", None, served(phase, outcome, stack_workers));
    kills(&mut figures, phase, result);
    deploys(&mut figures, phase, result);
    for (name, value) in overload::figures(phase, outcome, earlier) {
        figures.set(name, None, Some(value));
    }
    figures.all
}

/// The ticks that lie wholly inside the offered load; those in which nothing came count as well.
pub fn whole_ticks(outcome: &Outcome) -> impl Iterator<Item = Tick> {
    // A little more, so that 0.3 s are three ticks and not 2.9999.
    let whole = (outcome.seconds * 1e3 / TICK_MS as f64 + 1e-6).max(0.0) as usize;
    (0..whole).map(|at| outcome.ticks.get(at).copied().unwrap_or_default())
}

/// The latencies of several classes together.
pub fn together<'a>(hists: impl Iterator<Item = &'a Hist>) -> Hist {
    let mut all = Hist::default();
    hists.for_each(|hist| all.add(hist));
    all
}

struct Figures<'a> {
    phase: &'a str,
    all: BTreeMap<String, f64>,
}

impl Figures<'_> {
    /// A class that runs beside does not displace one of the same name that does not.
    fn set(&mut self, name: &str, class: Option<&str>, value: Option<f64>) {
        let Some(value) = value.filter(|value| value.is_finite()) else { return };
        let dot = if class.is_some() { "." } else { "" };
        let name = format!("{}.{name}{dot}{}", self.phase, class.unwrap_or_default());
        self.all.entry(name).or_insert(value);
    }
}

fn load(
    figures: &mut Figures,
    case: &Case,
    phase: &Phase,
    outcome: &Outcome,
    classes: &[&Class],
    name: Option<&str>,
) {
    if classes.iter().all(|class| class.sent == 0) {
        return;
    }
    let latency = together(classes.iter().map(|class| &class.latency));
    if outcome.seconds > 0.0 {
        let in_time: u64 = classes.iter().map(|class| class.ok_in_time).sum();
        figures.set("rps", name, Some(in_time as f64 / outcome.seconds));
        let bytes: f64 = classes.iter().map(|class| bytes_in_time(case, phase, class)).sum();
        figures.set("mb_per_s", name, Some(bytes / outcome.seconds / 1e6));
    }
    figures.set("mean_ms", name, latency.mean_ms());
    for (metric, part) in PERCENTILES {
        figures.set(metric, name, latency.percentile_ms(*part));
    }
    figures.set("max_ms", name, latency.max_ms());
    let usual = latency.percentile_ms(0.5).filter(|usual| *usual > 0.0);
    let slow = latency.percentile_ms(0.99);
    figures.set("tail", name, slow.zip(usual).map(|(slow, usual)| slow / usual));
    if matches!(phase.load, PhaseLoad::Open { .. } | PhaseLoad::Overload { .. }) {
        let naive = together(classes.iter().map(|class| &class.uncorrected));
        figures.set("uncorrected_p99_ms", name, naive.percentile_ms(0.99));
    }
}

/// Metrics that are percentiles of the latency, and which.
pub const PERCENTILES: &[(&str, f64)] =
    &[("p50_ms", 0.5), ("p90_ms", 0.9), ("p95_ms", 0.95), ("p99_ms", 0.99), ("p999_ms", 0.999)];

/// Bytes of the answers that came in time, or of what was uploaded with their requests. Answers
/// are counted with the mean length of their class.
fn bytes_in_time(case: &Case, phase: &Phase, class: &Class) -> f64 {
    let requests: Vec<&Request> = if class.beside {
        phase.beside.iter().map(|beside| &beside.request).collect()
    } else {
        case.request.iter().collect()
    };
    let same = || requests.iter().filter(|request| request.class == class.class);
    let weight: f64 = same().map(|request| f64::from(request.weight)).sum();
    let sent: f64 = same().map(|one| f64::from(one.weight) * one.body_bytes as f64).sum();
    let in_time = class.ok_in_time as f64;
    if sent > 0.0 {
        in_time * sent / weight
    } else {
        in_time * class.bytes as f64 / class.ok.max(1) as f64
    }
}

fn failures<'a>(
    figures: &mut Figures,
    classes: impl Iterator<Item = &'a Class>,
    name: Option<&str>,
) {
    let (sent, failed) = classes
        .fold((0, 0), |(sent, failed), class| (sent + class.sent, failed + class.failures.total()));
    if sent > 0 {
        figures.set("failed", name, Some(failed as f64));
        figures.set("failed_share", name, Some(100.0 * failed as f64 / sent as f64));
    }
}

fn cpu(figures: &mut Figures, result: &PhaseResult) {
    let (Some(first), Some(last)) = (result.cpu.first(), result.cpu.last()) else { return };
    let seconds = last - first;
    let ok = result.outcome.classes.iter().map(|class| class.ok).sum::<u64>() as f64;
    if seconds > 0.0 && ok > 0.0 {
        figures.set("per_cpu", None, Some(ok / seconds));
        figures.set("cpu_us", None, Some(seconds * 1e6 / ok));
    }
}

/// Workers that answered nothing count as 0; those that took a dead one's place count beside it.
fn workers(figures: &mut Figures, outcome: &Outcome, stack_workers: f64) {
    let mut shares: Vec<f64> = outcome.workers.values().map(|count| *count as f64).collect();
    let (seen, total) = (shares.len(), shares.iter().sum::<f64>());
    if total == 0.0 {
        return;
    }
    figures.set("workers_seen", None, Some(seen as f64));
    figures.set(
        "most_share",
        None,
        shares.iter().copied().reduce(f64::max).map(|most| 100.0 * most / total),
    );
    shares.resize(seen.max(stack_workers as usize), 0.0);
    figures.set("jain", None, stats::jain(&shares));
}

/// The seconds that the good answers take by themselves over workers × length of the load. A
/// request that was answered after the end counts with its part before it, so that the length of
/// the run leaves no edge.
fn served(phase: &Phase, outcome: &Outcome, stack_workers: f64) -> Option<f64> {
    let possible = stack_workers * outcome.seconds;
    if phase.service_seconds.is_empty() || possible <= 0.0 {
        return None;
    }
    let done = outcome.classes.iter().filter_map(|class| {
        let service = *phase.service_seconds.get(&class.class)?;
        let late = class
            .late
            .pairs()
            .map(|(micros, times)| (service - micros as f64 / 1e6).max(0.0) * times as f64);
        Some(class.ok_in_time as f64 * service + late.sum::<f64>())
    });
    Some(done.sum::<f64>() / possible)
}

fn kills(figures: &mut Figures, phase: &Phase, result: &PhaseResult) {
    if phase.kill.is_none() {
        return;
    }
    let kills = result.kills_ms.len() as f64;
    figures.set("kills", None, Some(kills));
    figures.set("lost_per_kill", None, (kills > 0.0).then(|| lost(result) / kills));
}

fn deploys(figures: &mut Figures, phase: &Phase, result: &PhaseResult) {
    if phase.deploy.is_none() {
        return;
    }
    let deploys = result.deploys.len() as f64;
    figures.set("deploys", None, Some(deploys));
    let slowest = |time: fn(&DeployResult) -> f64| result.deploys.iter().map(time).reduce(f64::max);
    figures.set("new_ms", None, slowest(|one| one.new_ms));
    figures.set("old_ms", None, slowest(|one| one.old_ms));
    figures.set("lost_per_deploy", None, (deploys > 0.0).then(|| lost(result) / deploys));
}

fn lost(result: &PhaseResult) -> f64 {
    result.outcome.classes.iter().map(|class| class.failures.total()).sum::<u64>() as f64
}

#[cfg(test)]
mod tests;
