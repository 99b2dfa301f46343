//! `oribi lab app`: somebody's own application on several servers.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use oribi_load::plan::{Plan, Request, Shape};

use crate::cli;
use crate::commands::select;
use crate::library::Library;
use crate::results::CPU_SAMPLE_MS;
use crate::rounds;
use crate::rounds::cell;
use crate::rounds::generator::Generator;
use crate::rounds::interrupt;
use crate::rounds::progress::{Progress, Step};
use crate::scenario::{Case, Contender, Phase, PhaseLoad, Stack};
use crate::stack::bundle::Bundles;
use crate::stack::http;
use crate::stack::{Blueprint, Running};

/// The open loop asks for so much of what the slowest server can do.
const PART: f64 = 0.6;
/// Seconds of closed loop that find out what that is.
const PROBE_SECONDS: f64 = 2.0;
/// Longest wait for a path's first answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// Checks the paths, finds a rate, measures; the exit status.
pub fn run(library: &Library, app: &cli::App) -> Result<u8, String> {
    interrupt::watch()?;
    let config = app.config.canonicalize().map_err(|error| {
        format!("{}: {error}: name the rackup file of your application", app.config.display())
    })?;
    let bundles = Bundles::new();
    let mut case = library.complete("oribi lab app", case(app, &config)?)?;
    for contender in &mut case.contender {
        contender.stack.env = bundles.environment(&config, &contender.server)?;
    }
    for recipe in case.contender.iter().map(|one| library.recipe(&one.server)) {
        let recipe = recipe?;
        if !recipe.rack || recipe.front || recipe.reference {
            return Err(format!(
                "{} runs no rackup file: --servers takes those that do",
                recipe.name
            ));
        }
    }
    let slowest = probe(library, app, &mut case)?;
    if interrupt::seen() {
        return Ok(interrupt::STATUS);
    }
    finish(&mut case, app.rate.unwrap_or(PART * slowest));
    select::adapt(&mut case, &app.common);
    rounds::run(library, vec![case], &app.common)
}

/// The case before anything is known: its only phase is the closed loop.
fn case(app: &cli::App, config: &Path) -> Result<Case, String> {
    let shown = app.config.display();
    let closed = Phase {
        name: "closed".into(),
        load: PhaseLoad::Closed {
            connections: app.connections as usize,
            keep_alive: true,
            reset: false,
            seconds: app.seconds,
        },
        classes: Vec::new(),
        beside: Vec::new(),
        timeout_seconds: 30.0,
        kill: None,
        deploy: None,
        failures_expected: false,
        service_seconds: BTreeMap::new(),
    };
    let stack = Stack {
        workers: Some(app.workers),
        threads: Some(app.threads),
        front: app.front.clone(),
        // Behind a proxy servers stand on unix sockets, as its documentation usually says.
        listen: app.front.as_ref().map(|_| "unix".into()),
        ..Stack::default()
    };
    let servers: BTreeSet<&String> = app.servers.iter().collect();
    if servers.len() < app.servers.len() {
        return Err("--servers names one twice".into());
    }
    let contender = app.servers.iter().map(|server| Contender {
        name: server.clone(),
        server: server.clone(),
        app: None,
        stack: Stack::default(),
    });
    Ok(Case {
        title: format!(
            "{shown}, {}, {} each",
            counted(app.workers, "worker"),
            counted(app.threads, "thread")
        ),
        app: config.to_string_lossy().into_owned(),
        stack,
        contender: contender.collect(),
        request: requests(&app.paths),
        phase: vec![closed],
        baseline: app.servers.iter().skip(1).cloned().collect(),
        ..Case::named("app")
    })
}

fn counted(number: u32, word: &str) -> String {
    format!("{number} {word}{}", if number == 1 { "" } else { "s" })
}

/// Every path is a class of its own.
fn requests(paths: &[(String, u32)]) -> Vec<Request> {
    let request = |(path, weight): &(String, u32)| Request {
        class: path.clone(),
        path: path.clone(),
        weight: *weight,
        ..Request::default()
    };
    paths.iter().map(request).collect()
}

/// Asks every server for every path, then as fast as it can: requests/s of the slowest one. Who
/// does not start is told, and takes no part.
fn probe(library: &Library, app: &cli::App, case: &mut Case) -> Result<f64, String> {
    let seconds = if app.common.quick { PROBE_SECONDS / 2.0 } else { PROBE_SECONDS };
    let step = |one: &Contender| Step {
        case: "app".into(),
        contender: one.name.clone(),
        round: "asking every path".into(),
        planned: seconds,
    };
    let mut progress = Progress::new(case.contender.iter().map(step).collect());
    let (mut bad, mut rates) = (Vec::new(), Vec::new());
    for contender in case.contender.clone() {
        let blueprint = Blueprint::new(library, case, &contender)?;
        if interrupt::seen() || blueprint.absent().is_some() {
            continue;
        }
        progress.begin();
        let running = match blueprint.start(&app.paths[0].0) {
            Ok(running) => running,
            Err(failed) => {
                progress.aside(|| {
                    eprintln!("{} takes no part: {}", contender.name, failed.text);
                    failed.log.iter().for_each(|line| eprintln!("    {line}"));
                });
                case.contender.retain(|one| one.name != contender.name);
                case.baseline.retain(|name| *name != contender.name);
                progress.end();
                continue;
            }
        };
        let found = paths(&running, &app.paths, &contender.name);
        if found.is_empty() && bad.is_empty() && app.rate.is_none() {
            rates.push(rate(case, &running, seconds)?);
        }
        bad.extend(found);
        running.stop();
        progress.end();
    }
    progress.finish();
    match (bad.is_empty(), case.contender.is_empty()) {
        (false, _) => Err(bad.join("; ")),
        (_, true) => Err("no server starts this application".into()),
        _ => Ok(rates.into_iter().fold(f64::INFINITY, f64::min)),
    }
}

/// What is wrong with the paths, one line for each.
fn paths(running: &Running, paths: &[(String, u32)], server: &str) -> Vec<String> {
    let wrong = |(path, _): &(String, u32)| match http::get(&running.url, path, PATIENCE) {
        Ok((status, _)) if (200..300).contains(&status) => None,
        Ok((status, _)) => Some(format!("{server} answers {path} with {status}, not with 2xx")),
        Err(error) => Some(format!("{server} does not answer {path}: {error}")),
    };
    paths.iter().filter_map(wrong).collect()
}

fn rate(case: &Case, running: &Running, seconds: f64) -> Result<f64, String> {
    let phase = &case.phase[0];
    let PhaseLoad::Closed { connections, .. } = phase.load else { return Ok(f64::INFINITY) };
    let shape = Shape::Closed { connections, keep_alive: true, reset: false, seconds };
    let plan = Plan { slice_ms: CPU_SAMPLE_MS, ..cell::plan(case, phase, shape, running, 0) };
    let outcome = Generator::start(&plan, &[])?.outcome()?;
    let good: u64 = outcome.classes.iter().map(|class| class.ok_in_time).sum();
    if good == 0 {
        return Err("no path was answered in time: give --rate, or paths that are faster".into());
    }
    Ok(good as f64 / outcome.seconds)
}

/// The other phases, and what is shown.
fn finish(case: &mut Case, rate: f64) {
    let mut phase = case.phase[0].clone();
    let PhaseLoad::Closed { seconds, .. } = phase.load else { return };
    phase.name = "open".into();
    phase.load = PhaseLoad::Open {
        rate,
        seconds,
        steps: Vec::new(),
        of: None,
        max_connections: 10_000,
        keep_alive: true,
        poisson: true,
    };
    case.phase.push(phase.clone());
    phase.name = "burst".into();
    let at_once = 2 * case.stack.workers.unwrap_or(1) as usize;
    phase.load = PhaseLoad::Burst { at_once, times: 10, pause_ms: 50, keep_alive: false };
    case.phase.push(phase);
    let names = ["closed.rps", "closed.per_cpu", "open.p50_ms", "open.p99_ms", "burst.max_ms"];
    case.show = names.map(str::to_owned).to_vec();
    if case.request.len() > 1 {
        let classes = case.request.iter().map(|request| format!("open.p99_ms.{}", request.class));
        case.show.splice(4..4, classes);
    }
    case.show.push("pss_mb".into());
    case.about = format!(
        "A closed loop, then an open one at {rate:.0} requests a second, then 10 bursts of \
         {at_once} requests at once."
    );
}
