//! What the command line makes of a scenario's cases: fewer contenders, other lengths, a longer
//! look at another scenario.

use std::collections::BTreeSet;

use crate::cli;
use crate::library::Library;
use crate::scenario::{Case, Contender, PhaseLoad};

/// A phase of a quick run is so much shorter …
const QUICK: f64 = 0.25;
/// … but not shorter than this, in seconds.
const SHORTEST: f64 = 1.0;

/// The cases to run, as the command line wants them.
pub fn cases(library: &mut Library, run: &cli::Run) -> Result<Vec<Case>, String> {
    let mut chosen = Vec::new();
    for name in &run.scenarios {
        let mut cases = read(library, name, run.of.as_deref())?;
        if let Some(only) = &run.case {
            cases = vec![one_case(cases, only, name)?];
        }
        chosen.extend(cases);
    }
    for case in &mut chosen {
        if let Some(seconds) = run.seconds {
            set_main_seconds(case, seconds)?;
        }
        contenders(library, case, &run.servers)?;
        adapt(case, &run.common);
    }
    Ok(chosen)
}

/// A scenario's cases; one that is laid over another scenario's is called like that.
pub fn read(library: &mut Library, name: &str, of: Option<&str>) -> Result<Vec<Case>, String> {
    let mut cases = library.scenario_of(name, of)?;
    for case in &mut cases {
        if let Some(of) = case.of.clone() {
            case.title = format!("{} ({of})", case.title);
            case.case = of;
        }
    }
    Ok(cases)
}

/// What `--quick` and `--rounds` do to a case.
pub fn adapt(case: &mut Case, common: &cli::Common) {
    if common.quick {
        case.rounds = 1;
        case.warmup_seconds = case.warmup_seconds.min(0.5);
        case.phase.iter_mut().for_each(|phase| shorten(&mut phase.load));
    }
    if let Some(rounds) = common.rounds {
        case.rounds = rounds as usize;
    }
}

/// What keeps a run's figures from being a claim.
pub fn remarks(cases: &[Case], quick: bool) -> Vec<String> {
    let mut remarks = Vec::new();
    if quick {
        remarks.push("quick: phases a quarter as long, to see that it works".to_owned());
    }
    match cases.iter().map(|case| case.rounds).min() {
        Some(1) => remarks.push("1 round: no claim".to_owned()),
        Some(2) => remarks.push("2 rounds: no claim".to_owned()),
        _ => {}
    }
    remarks
}

/// A case's full name: `fair` or `fair/stuck`.
pub fn label(case: &Case) -> String {
    let dot = if case.case.is_empty() { "" } else { "/" };
    format!("{}{dot}{}", case.name, case.case)
}

/// Seconds that warm-up and phases take; what a burst takes depends on the server.
pub fn planned_seconds(case: &Case) -> f64 {
    case.warmup_seconds + case.phase.iter().map(|phase| seconds(&phase.load)).sum::<f64>()
}

fn one_case(mut cases: Vec<Case>, wanted: &str, scenario: &str) -> Result<Case, String> {
    if let Some(at) = cases.iter().position(|case| case.case == wanted) {
        return Ok(cases.swap_remove(at));
    }
    let names: Vec<&str> = cases.iter().map(|case| case.case.as_str()).collect();
    let has = match names[..] {
        [""] => "it has only one, without a name".to_owned(),
        _ => format!("it has {}", names.join(", ")),
    };
    Err(format!("{scenario} has no case {wanted}: {has}"))
}

fn set_main_seconds(case: &mut Case, wanted: f64) -> Result<(), String> {
    let longest =
        case.phase.iter_mut().max_by(|a, b| seconds(&a.load).total_cmp(&seconds(&b.load)));
    let missing = || format!("{}: no phase whose length --seconds could be", case.name);
    let phase = longest.filter(|phase| seconds(&phase.load) > 0.0).ok_or_else(missing)?;
    set_seconds(&mut phase.load, wanted);
    Ok(())
}

/// Seconds a load is offered.
fn seconds(load: &PhaseLoad) -> f64 {
    match load {
        PhaseLoad::Closed { seconds, .. } => *seconds,
        PhaseLoad::Open { seconds, steps, .. } if steps.is_empty() => *seconds,
        PhaseLoad::Open { steps, .. } => steps.iter().map(|step| step.seconds).sum(),
        PhaseLoad::Burst { times, pause_ms, .. } => {
            times.saturating_sub(1) as f64 * *pause_ms as f64 / 1e3
        }
        PhaseLoad::Overload { seconds, before_seconds, after_seconds, .. } => {
            seconds + before_seconds + after_seconds
        }
    }
}

fn set_seconds(load: &mut PhaseLoad, wanted: f64) {
    let factor = wanted / seconds(load);
    scale(load, |length| length * factor);
}

fn shorten(load: &mut PhaseLoad) {
    scale(load, |length| (length * QUICK).max(SHORTEST.min(length)));
    if let PhaseLoad::Burst { times, .. } = load {
        *times = times.div_ceil(4);
    }
}

fn scale(load: &mut PhaseLoad, to: impl Fn(f64) -> f64) {
    match load {
        PhaseLoad::Closed { seconds, .. } => *seconds = to(*seconds),
        PhaseLoad::Open { seconds, steps, .. } => {
            *seconds = to(*seconds);
            steps.iter_mut().for_each(|step| step.seconds = to(step.seconds));
        }
        PhaseLoad::Burst { .. } => {}
        PhaseLoad::Overload { seconds, before_seconds, after_seconds, .. } => {
            for length in [seconds, before_seconds, after_seconds] {
                *length = to(*length);
            }
        }
    }
}

/// Keeps those that are wanted, by their own name or their server's; a server that takes no part
/// yet does from now on.
fn contenders(library: &Library, case: &mut Case, wanted: &[String]) -> Result<(), String> {
    if wanted.is_empty() {
        return Ok(());
    }
    let mut kept: Vec<Contender> = Vec::new();
    for name in wanted {
        let known = |one: &&Contender| one.name == *name || one.server == *name;
        let found: Vec<Contender> = case.contender.iter().filter(known).cloned().collect();
        if found.is_empty() {
            let recipe = library.recipe(name)?;
            if recipe.front {
                return Err(format!("{name} is a proxy and serves no application by itself"));
            }
            kept.push(Contender {
                name: name.clone(),
                server: name.clone(),
                app: None,
                stack: Default::default(),
            });
        }
        for one in found {
            if kept.iter().all(|other| other.name != one.name) {
                kept.push(one);
            }
        }
    }
    let names: BTreeSet<&String> = kept.iter().map(|one| &one.name).collect();
    // A promise about somebody who was not asked is neither kept nor broken.
    case.target.retain(|target| target.over.iter().chain([&target.of]).all(|n| names.contains(n)));
    case.baseline.retain(|name| names.contains(name));
    case.contender = kept;
    Ok(())
}

#[cfg(test)]
#[path = "select_test.rs"]
mod tests;
