//! The page of a run: one file that needs nothing else.

use std::io;

use minijinja::{Environment, context};

use crate::metrics;
use crate::results::Run;

use super::facts;
use super::view::{self, Promise, View};

/// The name decides that what is filled in gets escaped.
const NAME: &str = "report.html";
const TEMPLATE: &str = include_str!("../../templates/report.html");

/// The text of `report.html`.
pub fn text(run: &Run) -> io::Result<String> {
    let mut environment = Environment::new();
    environment.set_trim_blocks(true);
    environment.set_lstrip_blocks(true);
    environment.add_template(NAME, TEMPLATE).map_err(io::Error::other)?;
    let cases: Vec<View> =
        run.cases.iter().enumerate().map(|(at, its)| view::of(at, its)).collect();
    let targets = run.cases.iter().enumerate();
    let targets: Vec<Promise> = targets.flat_map(|(at, its)| view::promises(at, its)).collect();
    let kept = run.cases.iter().flat_map(|its| &its.verdicts).filter(|its| its.ok).count();
    let (trust, sentence) = facts::trust(&run.noise);
    let glossary = metrics::ALL.iter().map(|its| {
        context! { name => its.name, head => its.head, unit => its.unit, about => its.about,
        better => if its.more_is_better { "more is better" } else { "less is better" } }
    });
    let page = context! {
        run => context! {
            name => run.name, started => run.started, finished => run.finished,
            command => run.arguments.join(" "), remarks => run.remarks,
        },
        machine => run.machine,
        lab => env!("CARGO_PKG_VERSION"),
        trust => context! { word => trust.word(), sentence },
        missed => targets.len() - kept, kept, targets,
        cases,
        glossary => glossary.collect::<Vec<_>>(),
    };
    environment
        .get_template(NAME)
        .and_then(|page_of| page_of.render(page))
        .map_err(io::Error::other)
}
