//! What can be wrong with a scenario or a server although each key is of the right type.

use std::collections::BTreeSet;

use oribi_load::door::Door;
use oribi_load::plan::{Beside, Request};
use serde_json::Value as Json;
use toml::{Table, Value};

use crate::library::Library;
use crate::library::nearest::nearest;
use crate::metrics;
use crate::recipe::Recipe;
use crate::scenario::{Case, Contender, Deploy, Phase, PhaseLoad};
use crate::stack::merge;
use crate::stack::render;

type Wrong = Result<(), String>;

/// Complains about the first key of `given` that the case knows nothing of. Serde cannot say it
/// where structs are flattened; but what it did not understand is lost on the way back.
pub fn keys(source: &str, given: &Table, case: &Case) -> Wrong {
    let kept = serde_json::to_value(case).expect("a case is plain data");
    lost(&Value::Table(given.clone()), &kept, "").map_err(|wrong| format!("{source}: {wrong}"))
}

fn lost(given: &Value, kept: &Json, place: &str) -> Wrong {
    match (given, kept) {
        (Value::Table(given), Json::Object(kept)) => {
            for (key, value) in given {
                match kept.get(key) {
                    Some(kept) => lost(value, kept, &format!("{place}{key}: "))?,
                    None if matches!(value, Value::Array(its) if its.is_empty()) => {}
                    None => {
                        return Err(format!(
                            "{place}unknown key `{key}`{}",
                            nearest(key, kept.keys())
                        ));
                    }
                }
            }
            Ok(())
        }
        (Value::Array(given), Json::Array(kept)) => {
            let place = place.trim_end_matches(": ");
            given.iter().zip(kept).enumerate().try_for_each(|(index, (given, kept))| {
                let name = kept.get("name").and_then(Json::as_str).map(|name| format!(" `{name}`"));
                let which = name.unwrap_or_else(|| format!(" {}", index + 1));
                lost(given, kept, &format!("{place}{which}: "))
            })
        }
        _ => Ok(()),
    }
}

/// Checks a server.
pub fn recipe(recipe: &Recipe) -> Wrong {
    fail_if(recipe.command.is_empty(), || "command: must name a program".into())?;
    fail_if(recipe.listens.is_empty(), || "listens: must name tcp, unix or both".into())?;
    recipe.listens.iter().try_for_each(|its| one_of("listens", its, &["tcp", "unix"]))?;
    recipe.doors.iter().try_for_each(|its| one_of("doors", its, &Door::NAMES))?;
    one_of("stop", &recipe.stop, &["TERM", "QUIT", "INT"])
}

/// Checks a complete case.
pub fn case(library: &Library, case: &Case) -> Wrong {
    fail_if(case.rounds == 0, || "rounds: must be at least 1".into())?;
    fail_if(case.contender.is_empty(), || "no contender: `servers` names some".into())?;
    unique("contender", case.contender.iter().map(|its| its.name.as_str()))?;
    for contender in &case.contender {
        self::contender(library, case, contender)
            .map_err(|wrong| format!("contender `{}`: {wrong}", contender.name))?;
    }
    case.request.iter().try_for_each(request)?;
    unique("phase", case.phase.iter().map(|its| its.name.as_str()))?;
    let only_references = case
        .contender
        .iter()
        .all(|its| library.recipe(&its.server).is_ok_and(|recipe| recipe.reference));
    fail_if(case.phase.is_empty() && !only_references, || "no phase: nothing is measured".into())?;
    for (index, phase) in case.phase.iter().enumerate() {
        self::phase(library, case, &case.phase[..index], phase)
            .map_err(|wrong| format!("phase `{}`: {wrong}", phase.name))?;
    }
    case.show.iter().try_for_each(|name| metric(case, "show", name))?;
    case.baseline.iter().try_for_each(|name| known(case, "baseline", name))?;
    outcomes(case)
}

/// Checks what the case says about the figures that come out.
fn outcomes(case: &Case) -> Wrong {
    for target in &case.target {
        let place = format!("target `{}`", target.label);
        metric(case, &format!("{place}: metric"), &target.metric)?;
        known(case, &format!("{place}: of"), &target.of)?;
        target.over.iter().try_for_each(|name| known(case, &format!("{place}: over"), name))?;
        if let Some(name) = &target.over_metric {
            metric(case, &format!("{place}: over_metric"), name)?;
        }
        fail_if(target.difference && target.over.is_empty(), || {
            format!("{place}: a difference needs over")
        })?;
        fail_if(target.at_least.is_some() == target.at_most.is_some(), || {
            format!("{place}: must have one of at_least and at_most")
        })?;
    }
    for published in case.published.iter().filter(|its| !its.metric.is_empty()) {
        let place = format!("published `{}`", published.what);
        metric(case, &format!("{place}: metric"), &published.metric)?;
        for (key, name) in [("of", &published.of), ("over", &published.over)] {
            known(case, &format!("{place}: {key}"), name)?;
        }
    }
    Ok(())
}

fn contender(library: &Library, case: &Case, contender: &Contender) -> Wrong {
    let recipe = library.recipe(&contender.server).map_err(|wrong| format!("server: {wrong}"))?;
    fail_if(recipe.front, || format!("server: {} is a proxy: it can be a front", recipe.name))?;
    let stack = merge(&case.stack, &contender.stack);
    for (key, number) in
        [("workers", stack.workers), ("threads", stack.threads), ("instances", stack.instances)]
    {
        fail_if(number == Some(0), || format!("{key}: must be at least 1"))?;
    }
    for (key, number, most) in [
        ("workers", contender.stack.workers, recipe.most_workers),
        ("threads", contender.stack.threads, recipe.most_threads),
    ] {
        let (number, most) = (number.unwrap_or(0), most.unwrap_or(u32::MAX));
        fail_if(number > most, || format!("{key}: {} has at most {most}", recipe.name))?;
    }
    if let Some(listen) = &stack.listen {
        one_of("listen", listen, &["tcp", "unix"])?;
        fail_if(!recipe.listens.contains(listen), || {
            format!("listen: {} listens on {} only", recipe.name, recipe.listens.join(", "))
        })?;
    }
    if let Some(door) = &stack.door {
        one_of("door", door, &Door::NAMES)?;
        speaks(recipe, door)?;
    }
    match stack.front.as_deref() {
        None | Some("none") => fail_if(stack.instances.is_some_and(|its| its > 1), || {
            "instances: more than one need a `front`".into()
        })?,
        Some(front) => {
            let front = library.recipe(front).map_err(|wrong| format!("front: {wrong}"))?;
            fail_if(!front.front, || format!("front: {} is no proxy", front.name))?;
            stack.door.iter().try_for_each(|door| speaks(front, door))?;
        }
    }
    options(library, case, contender)?;
    match library.app(case, contender) {
        Some(app) => fail_if(!app.is_file(), || format!("app: there is no {}", app.display())),
        None => fail_if(recipe.rack && !recipe.reference, || {
            format!("app: {} needs a rackup file", recipe.name)
        }),
    }
}

fn speaks(recipe: &Recipe, door: &String) -> Wrong {
    fail_if(!recipe.doors.contains(door), || {
        format!("door: {} speaks {} only", recipe.name, recipe.doors.join(", "))
    })
}

/// An option that no template asks for would silently do nothing.
fn options(library: &Library, case: &Case, contender: &Contender) -> Wrong {
    let of = |contender: &Contender| {
        let front = merge(&case.stack, &contender.stack).front;
        let recipes = [Some(contender.server.clone()), front];
        let found = recipes.into_iter().flatten().filter_map(|name| library.recipe(&name).ok());
        found.flat_map(render::options).collect::<BTreeSet<String>>()
    };
    // The case's own are for whoever knows them.
    let all: BTreeSet<String> = case.contender.iter().flat_map(of).collect();
    for (given, right) in [(&contender.stack, of(contender)), (&case.stack, all)] {
        if let Some(wrong) = given.options.keys().find(|name| !right.contains(*name)) {
            return Err(format!("options: unknown `{wrong}`{}", nearest(wrong, &right)));
        }
    }
    Ok(())
}

fn request(request: &Request) -> Wrong {
    let place = format!("request `{}`", request.class);
    no_metric(&place, &request.class)?;
    fail_if(request.weight == 0, || format!("{place}: weight: must be at least 1"))?;
    fail_if(!request.path.starts_with('/'), || {
        format!("{place}: path: must begin with /, not `{}`", request.path)
    })
}

fn phase(library: &Library, case: &Case, earlier: &[Phase], phase: &Phase) -> Wrong {
    no_metric("name", &phase.name)?;
    let classes: BTreeSet<&str> = case.request.iter().map(|its| its.class.as_str()).collect();
    let class = |key: &str, name: &str| {
        // Without requests there is the usual one.
        let ok = classes.contains(name) || (classes.is_empty() && name == "all");
        fail_if(!ok, || {
            format!("{key}: no request has the class `{name}`{}", nearest(name, &classes))
        })
    };
    phase.classes.iter().try_for_each(|name| class("classes", name))?;
    phase.service_seconds.keys().try_for_each(|name| class("service_seconds", name))?;
    phase.beside.iter().try_for_each(|its| beside(earlier, its))?;
    positive("timeout_seconds", phase.timeout_seconds)?;
    if let Some(kill) = &phase.kill {
        positive("kill: every_ms", kill.every_ms as f64)?;
    }
    if let Some(deploy) = &phase.deploy {
        deploys(library, case, deploy)?;
    }
    load(earlier, &phase.load)
}

fn deploys(library: &Library, case: &Case, deploy: &Deploy) -> Wrong {
    let later = deploy.at_ms.windows(2).all(|two| two[0] < two[1]);
    fail_if(deploy.at_ms.is_empty() || !later, || {
        "deploy: at_ms: must be moments, one after the other".into()
    })?;
    for contender in &case.contender {
        let recipe = library.recipe(&contender.server)?;
        fail_if(recipe.deploy.is_empty() && !recipe.reference, || {
            format!("deploy: {}'s file does not say how it takes up new code", recipe.name)
        })?;
    }
    Ok(())
}

fn load(earlier: &[Phase], load: &PhaseLoad) -> Wrong {
    match load {
        PhaseLoad::Closed { connections, seconds, .. } => {
            positive("connections", *connections as f64)?;
            positive("seconds", *seconds)
        }
        PhaseLoad::Open { rate, seconds, steps, of, max_connections, .. } => {
            if let Some(of) = of {
                closed_before(earlier, of)?;
            }
            positive("max_connections", *max_connections as f64)?;
            if steps.is_empty() {
                positive("rate", *rate)?;
                return positive("seconds", *seconds);
            }
            fail_if(*rate != 0.0 || *seconds != 0.0, || {
                "steps: have rate and seconds of their own".into()
            })?;
            steps.iter().try_for_each(|step| {
                fail_if(step.rate < 0.0, || "steps: rate: must not be below 0".into())?;
                positive("steps: seconds", step.seconds)
            })
        }
        PhaseLoad::Burst { at_once, times, .. } => {
            positive("at_once", *at_once as f64)?;
            positive("times", *times as f64)
        }
        PhaseLoad::Overload { of, factor, seconds, calm, before_seconds, after_seconds } => {
            closed_before(earlier, of)?;
            positive("factor", *factor)?;
            positive("seconds", *seconds)?;
            positive("calm", *calm)?;
            positive("before_seconds", *before_seconds)?;
            positive("after_seconds", *after_seconds)
        }
    }
}

fn beside(earlier: &[Phase], beside: &Beside) -> Wrong {
    request(&beside.request)?;
    fail_if(beside.rate < 0.0, || "beside: rate: must not be below 0".into())?;
    if let Some(of) = &beside.of {
        closed_before(earlier, of)?;
        positive("beside: rate", beside.rate)?;
    }
    positive("beside: connections", beside.connections as f64)
}

fn closed_before(earlier: &[Phase], of: &str) -> Wrong {
    let closed = earlier.iter().filter(|its| matches!(its.load, PhaseLoad::Closed { .. }));
    let names: Vec<&str> = closed.map(|its| its.name.as_str()).collect();
    fail_if(!names.contains(&of), || {
        format!("of: no earlier closed phase is called `{of}`{}", nearest(of, &names))
    })
}

/// `NAME`, `PHASE.NAME` or `PHASE.NAME.CLASS`.
fn metric(case: &Case, place: &str, full: &str) -> Wrong {
    let parts: Vec<&str> = full.split('.').collect();
    let names = || metrics::ALL.iter().map(|its| its.name);
    let Some(found) = metrics::find(full) else {
        let wrong = parts.get(1).copied().unwrap_or(parts[0]);
        return Err(format!("{place}: `{full}` is no metric{}", nearest(wrong, names())));
    };
    let index = parts.iter().position(|part| *part == found.name).unwrap_or(0);
    fail_if(index > 1 || parts.len() > index + 2, || {
        format!("{place}: `{full}` must be NAME, PHASE.NAME or PHASE.NAME.CLASS")
    })?;
    let phases: Vec<&str> = case.phase.iter().map(|its| its.name.as_str()).collect();
    fail_if(index == 1 && !phases.contains(&parts[0]), || {
        format!(
            "{place}: `{full}`: no phase is called `{}`{}",
            parts[0],
            nearest(parts[0], &phases)
        )
    })?;
    let Some(class) = parts.get(index + 1) else { return Ok(()) };
    let beside =
        case.phase.iter().flat_map(|its| &its.beside).map(|its| its.request.class.as_str());
    let classes = case.request.iter().map(|its| its.class.as_str()).chain(beside);
    let classes: BTreeSet<&str> = classes.collect();
    fail_if(!classes.contains(class), || {
        format!("{place}: `{full}`: no request has the class `{class}`{}", nearest(class, &classes))
    })
}

fn known(case: &Case, place: &str, name: &str) -> Wrong {
    let names: Vec<&str> = case.contender.iter().map(|its| its.name.as_str()).collect();
    fail_if(!names.contains(&name), || {
        format!("{place}: no contender is called `{name}`{}", nearest(name, &names))
    })
}

/// Names of phases and classes are parts of the names of metrics, divided by dots.
fn no_metric(place: &str, name: &str) -> Wrong {
    let bad = name.is_empty() || name.contains('.') || metrics::find(name).is_some();
    fail_if(bad, || format!("{place}: `{name}` must have no dot and not be a metric's name"))
}

fn unique<'a>(what: &str, names: impl Iterator<Item = &'a str>) -> Wrong {
    let mut seen = BTreeSet::new();
    for name in names {
        fail_if(name.is_empty(), || format!("a {what} has an empty name"))?;
        fail_if(!seen.insert(name), || format!("two {what}s are called `{name}`"))?;
    }
    Ok(())
}

fn one_of(key: &str, value: &str, right: &[&str]) -> Wrong {
    fail_if(!right.contains(&value), || {
        format!("{key}: unknown `{value}`{}", nearest(value, right))
    })
}

fn positive(key: &str, value: f64) -> Wrong {
    fail_if(value.is_nan() || value <= 0.0, || format!("{key}: must be more than 0"))
}

fn fail_if(wrong: bool, text: impl FnOnce() -> String) -> Wrong {
    if wrong { Err(text()) } else { Ok(()) }
}
