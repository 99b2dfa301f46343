//! The rounds of a run: in each round every contender once, so that what disturbs the machine for a
//! while disturbs all of them. What is done is written at once.

pub mod cell;
pub mod deploy;
pub mod generator;
pub mod interrupt;
pub mod kill;
pub mod machine;
pub mod noise;
pub mod perprocess;
pub mod progress;
pub mod sampler;
pub mod timewait;

use std::io;
use std::path::Path;

use jiff::Timestamp;

use crate::cli::Common;
use crate::commands::select::{self, label, planned_seconds};
use crate::figures::judge;
use crate::library::Library;
use crate::report;
use crate::results::{Cell, ContenderFacts, Run, SCHEMA};
use crate::rounds::cell::Bench;
use crate::rounds::noise::Meter;
use crate::rounds::progress::{Progress, Step};
use crate::scenario::Case;
use crate::stack::Blueprint;

/// Whoever takes part in a case.
struct Field {
    case: Case,
    /// None for those who are absent.
    blueprints: Vec<Option<Blueprint>>,
    facts: Vec<ContenderFacts>,
}

/// Runs the cases one after the other; the exit status.
pub fn run(library: &Library, cases: Vec<Case>, common: &Common) -> Result<u8, String> {
    let name = common.name.clone().unwrap_or_else(moment);
    let dir = common.out.join(&name);
    if dir.exists() {
        return Err(format!("{} is already there: choose another --name", dir.display()));
    }
    let remarks = select::remarks(&cases, common.quick);
    interrupt::watch()?;
    let fields =
        cases.into_iter().map(|case| field(library, case)).collect::<Result<Vec<_>, _>>()?;
    let mut run = Run {
        schema: SCHEMA,
        name,
        started: now(),
        finished: now(),
        arguments: std::env::args().skip(1).collect(),
        machine: machine::facts(),
        noise: Default::default(),
        remarks,
        cases: Vec::new(),
    };
    let mut meter = Meter::new();
    let mut progress = Progress::new(fields.iter().flat_map(steps).collect());
    let mut missed = false;
    for mut field in fields {
        absent(&field, &progress);
        run.remarks.extend(unjudged(&mut field));
        let (facts, rounds) = measure(&field, !common.quick, &mut meter, &mut progress);
        if rounds.is_empty() {
            continue;
        }
        missed |= failed(&field.case, &rounds);
        let result = judge::judge(field.case, facts, rounds);
        missed |= result.verdicts.iter().any(|verdict| !verdict.ok);
        progress.aside(|| report::print_case(&result));
        run.cases.push(result);
        keep(&mut run, &meter, &dir).map_err(|error| format!("{}: {error}", dir.display()))?;
        if interrupt::seen() {
            break;
        }
    }
    progress.finish();
    close(run, &meter, &dir, missed)
}

/// The last words and the exit status.
fn close(mut run: Run, meter: &Meter, dir: &Path, missed: bool) -> Result<u8, String> {
    if interrupt::seen() {
        run.remarks.push("interrupted: not everything was measured".into());
    }
    keep(&mut run, meter, dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    report::print_verdicts(&run);
    println!("Everything measured: {}", dir.join("report.html").display());
    Ok(if interrupt::seen() { interrupt::STATUS } else { u8::from(missed) })
}

fn field(library: &Library, case: Case) -> Result<Field, String> {
    let (mut blueprints, mut facts) = (Vec::new(), Vec::new());
    for contender in &case.contender {
        let blueprint = Blueprint::new(library, &case, contender)?;
        let its = blueprint.facts();
        blueprints.push(its.absent.is_none().then_some(blueprint));
        facts.push(its);
    }
    Ok(Field { case, blueprints, facts })
}

fn steps(field: &Field) -> Vec<Step> {
    let rounds = field.case.rounds;
    let here = || field.facts.iter().filter(|facts| facts.absent.is_none());
    let one = |round: usize, facts: &ContenderFacts| Step {
        case: label(&field.case),
        contender: facts.name.clone(),
        round: format!("round {} of {rounds}", round + 1),
        planned: planned_seconds(&field.case),
    };
    (0..rounds).flat_map(|round| here().map(move |facts| one(round, facts))).collect()
}

fn absent(field: &Field, progress: &Progress) {
    for facts in &field.facts {
        if let Some(why) = &facts.absent {
            let case = label(&field.case);
            progress.aside(|| eprintln!("{case}: {} takes no part: {why}", facts.name));
        }
    }
}

/// Takes away the targets that need somebody absent: they are neither kept nor missed.
fn unjudged(field: &mut Field) -> Vec<String> {
    let absent = field.facts.iter().filter(|facts| facts.absent.is_some());
    let absent: Vec<&String> = absent.map(|facts| &facts.name).collect();
    let mut remarks = Vec::new();
    let case = label(&field.case);
    field.case.target.retain(|target| {
        let Some(who) = target.over.iter().chain([&target.of]).find(|who| absent.contains(who))
        else {
            return true;
        };
        remarks.push(format!("{case}: not judged, {who} is absent: {}", target.label));
        false
    });
    remarks
}

fn measure(
    field: &Field,
    patient: bool,
    meter: &mut Meter,
    progress: &mut Progress,
) -> (Vec<ContenderFacts>, Vec<Vec<Cell>>) {
    let mut facts = field.facts.clone();
    let mut rounds = Vec::new();
    for round in 0..field.case.rounds {
        let mut cells = Vec::new();
        for (blueprint, facts) in field.blueprints.iter().zip(&mut facts) {
            let Some(blueprint) = blueprint else { continue };
            if interrupt::seen() {
                break;
            }
            progress.begin();
            let mut bench = Bench { case: &field.case, blueprint, round, patient, meter, progress };
            let (cell, commands) = bench.measure(&facts.name);
            progress.end();
            if facts.commands.is_empty() {
                facts.commands = commands;
            }
            if let Some(error) = cell.error.as_ref().filter(|_| !interrupt::seen()) {
                progress.aside(|| eprintln!("{}: {}: {error}", label(&field.case), facts.name));
            }
            cells.push(cell);
        }
        // Half a round is no round: ratios are taken within one. But it is better than nothing.
        let whole = !interrupt::seen();
        if !cells.is_empty() && (whole || rounds.is_empty()) {
            rounds.push(cells);
        }
        if !whole {
            break;
        }
    }
    (facts, rounds)
}

/// True when somebody who has a target did not get through.
fn failed(case: &Case, rounds: &[Vec<Cell>]) -> bool {
    let targeted = |cell: &&Cell| case.target.iter().any(|target| target.of == cell.contender);
    rounds.iter().flatten().filter(targeted).any(|cell| !cell.sound())
}

fn keep(run: &mut Run, meter: &Meter, dir: &Path) -> io::Result<()> {
    run.finished = now();
    run.noise = meter.noise();
    report::write(run, dir)
}

fn now() -> String {
    Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// A name for a run that was given none: the moment, UTC.
fn moment() -> String {
    Timestamp::now().strftime("%Y-%m-%d-%H%M%S").to_string()
}
