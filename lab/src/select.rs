//! What the command line makes of a scenario's cases: fewer contenders, other lengths, a longer
//! look at another scenario.

use std::collections::BTreeSet;

use crate::cli;
use crate::library::Library;
use crate::scenario::{Case, Contender, Phase, PhaseLoad};

/// A phase of a quick run is so much shorter …
const QUICK: f64 = 0.25;
/// … but not shorter than this, in seconds.
const SHORTEST: f64 = 1.0;
/// Seconds of a soak that nobody has given a length.
const SOAK_SECONDS: f64 = 600.0;
/// Seconds between the samples of a soak.
const SAMPLE_SECONDS: f64 = 1.0;

/// The cases to run, as the command line wants them.
pub fn cases(library: &mut Library, run: &cli::Run) -> Result<Vec<Case>, String> {
    let mut chosen = Vec::new();
    for name in &run.scenarios {
        let mut cases = library.scenario(name)?;
        if let Some(of) = cases.first().and_then(|case| run.of.clone().or(case.of.clone())) {
            let under = one_case(library.scenario(&of)?, run.case.as_deref(), &of)?;
            cases = vec![laid_over(cases.remove(0), under)?];
        } else if let Some(only) = &run.case {
            cases = vec![one_case(cases, Some(only), name)?];
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

fn one_case(mut cases: Vec<Case>, wanted: Option<&str>, scenario: &str) -> Result<Case, String> {
    let names: Vec<String> = cases.iter().map(|case| case.case.clone()).collect();
    let at = match wanted {
        Some(wanted) => names.iter().position(|name| name == wanted),
        None => (!cases.is_empty()).then_some(0),
    };
    let has = || match names.iter().filter(|name| !name.is_empty()).cloned().collect::<Vec<_>>() {
        none if none.is_empty() => "it has only one, without a name".to_owned(),
        some => format!("it has {}", some.join(", ")),
    };
    let at = at.ok_or_else(|| {
        format!("{scenario} has no case {}: {}", wanted.unwrap_or_default(), has())
    })?;
    Ok(cases.swap_remove(at))
}

/// A soak: the stack, requests and contenders of another scenario's case, one phase for long.
fn laid_over(over: Case, under: Case) -> Result<Case, String> {
    let phase = match over.phase.is_empty() {
        false => over.phase,
        true => vec![lengthened(&under)?],
    };
    let seconds = over.sample_seconds;
    Ok(Case {
        title: format!("{}: {}", over.title, label(&under)),
        case: label(&under).replace('/', "-"),
        name: over.name,
        about: over.about,
        of: over.of,
        rounds: over.rounds,
        phase,
        show: over.show,
        target: over.target,
        published: over.published,
        sample_seconds: if seconds > 0.0 { seconds } else { SAMPLE_SECONDS },
        processes: false,
        ..under
    })
}

/// The first phase that can go on for long, and whose rate does not come from another.
fn lengthened(under: &Case) -> Result<Phase, String> {
    let mut phases = under.phase.iter().cloned();
    let mut phase = phases
        .find(|phase| match &phase.load {
            PhaseLoad::Closed { .. } => true,
            PhaseLoad::Open { of, .. } => of.is_none(),
            _ => false,
        })
        .ok_or_else(|| format!("{}: no phase that could go on for long", label(under)))?;
    set_seconds(&mut phase.load, SOAK_SECONDS);
    Ok(phase)
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
