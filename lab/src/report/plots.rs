//! Which charts a case gets, phase by phase.

use std::collections::BTreeMap;

use oribi_load::hist::Hist;
use serde::Serialize;

use crate::results::{CaseResult, Cell, PhaseResult, SeriesResult};
use crate::scenario::{Phase, PhaseLoad};

use super::chart;
use super::curves::{self, Line};
use super::figure::{NONE, number};
use super::strips::{self, Answers, Workers};

/// A chart, and what has to be said of it.
#[derive(Serialize)]
pub struct Plot {
    /// Its heading.
    pub title: String,
    /// How to read it.
    pub about: String,
    /// The element.
    pub svg: String,
    /// Colours and names, where the chart itself does not name its parts.
    pub legend: Vec<[String; 2]>,
}

/// The charts of one phase.
#[derive(Serialize)]
pub struct Section {
    /// The phase.
    pub phase: String,
    /// All of them.
    pub plots: Vec<Plot>,
    /// Figures of the time series.
    pub series: Vec<SeriesRow>,
}

/// What a time series comes to.
#[derive(Serialize)]
pub struct SeriesRow {
    contender: String,
    title: String,
    unit: String,
    mean: String,
    deviation: String,
    slope: String,
    cycle: String,
}

/// Contender's place in the case, and its part of a phase.
type Part<'a> = (usize, &'a str, &'a PhaseResult);

/// All sections of a case; phases that nothing is known of have none.
pub fn of(result: &CaseResult) -> Vec<Section> {
    let sections = result.case.phase.iter().map(|phase| section(result, phase));
    sections.filter(|its| !its.plots.is_empty()).collect()
}

fn section(result: &CaseResult, phase: &Phase) -> Section {
    let parts = first_sound(result, &phase.name);
    let mut plots = latencies(result, phase);
    plots.extend(over_time(phase, &parts));
    plots.extend(by_worker(&parts));
    let names = parts.iter().flat_map(|part| part.2.series.iter().map(|its| &its.name));
    let mut seen: Vec<&String> = Vec::new();
    for name in names {
        if !seen.contains(&name) {
            seen.push(name);
        }
    }
    plots.extend(seen.iter().filter_map(|name| series(&parts, name)));
    let rows = parts
        .iter()
        .flat_map(|(_, name, part)| part.series.iter().map(|series| series_row(name, series)));
    Section { phase: phase.name.clone(), series: rows.collect(), plots }
}

/// Each contender's phase in its first sound round.
fn first_sound<'a>(result: &'a CaseResult, phase: &str) -> Vec<Part<'a>> {
    let part = |(at, name): (usize, &'a str)| {
        let sound = |cell: &&Cell| cell.contender == name && cell.sound();
        let cell = result.rounds.iter().flatten().find(sound)?;
        Some((at, name, cell.phases.iter().find(|its| its.name == phase)?))
    };
    let names = result.contenders.iter().map(|facts| facts.name.as_str());
    names.enumerate().filter_map(part).collect()
}

/// Histograms of all sound rounds, merged: class, then contender.
fn merged<'a>(
    result: &'a CaseResult,
    phase: &str,
) -> BTreeMap<&'a str, BTreeMap<usize, [Hist; 2]>> {
    let mut all: BTreeMap<&str, BTreeMap<usize, [Hist; 2]>> = BTreeMap::new();
    for (at, facts) in result.contenders.iter().enumerate() {
        let cells = result.rounds.iter().flatten();
        let cells = cells.filter(|cell| cell.contender == facts.name && cell.sound());
        let phases = cells.flat_map(|cell| &cell.phases).filter(|its| its.name == phase);
        for class in phases.flat_map(|its| &its.outcome.classes) {
            let [corrected, uncorrected] =
                all.entry(&class.class).or_default().entry(at).or_default();
            corrected.add(&class.latency);
            uncorrected.add(&class.uncorrected);
        }
    }
    all
}

fn latencies(result: &CaseResult, phase: &Phase) -> Vec<Plot> {
    let classes = merged(result, &phase.name);
    let several = classes.len() > 1;
    let open = matches!(phase.load, PhaseLoad::Open { .. } | PhaseLoad::Overload { .. });
    let plot = |(class, hists): (&str, BTreeMap<usize, [Hist; 2]>)| {
        let (mut lines, mut legend) = (Vec::new(), Vec::new());
        for (at, [corrected, uncorrected]) in &hists {
            let name = &result.contenders[*at].name;
            legend.push([chart::colour(*at), name.clone()]);
            let mut line = |name: String, class: String, hist: &Hist| {
                if let Some(points) = curves::percentiles(hist) {
                    lines.push(Line { name, class, points });
                }
            };
            line(name.clone(), chart::colour(*at), corrected);
            if open {
                line(format!("{name}, uncorrected"), chart::colour(*at) + " dash", uncorrected);
            }
        }
        let class = if several { format!(", {class}") } else { String::new() };
        let title = format!("Latency by percentile{class}");
        let mut about =
            String::from("Good answers of all sound rounds together; both axes in even factors.");
        if open {
            about += " Dashed: as a generator would report it that counts from when a request was \
                      really sent (coordinated omission); the full line counts from when it was due.";
        }
        let svg = curves::latency(&title, &lines)?;
        Some(Plot { title, about, svg, legend })
    };
    classes.into_iter().filter_map(plot).collect()
}

fn over_time(phase: &Phase, parts: &[Part]) -> Option<Plot> {
    let rows: Vec<Answers> = parts
        .iter()
        .map(|(at, name, part)| Answers {
            name,
            class: chart::colour(*at),
            ticks: &part.outcome.ticks,
            events_ms: events(part),
        })
        .collect();
    let title = "Answers over time".to_owned();
    let mut about =
        String::from("The first sound round. Upon the good answers, in red, the failed ones.");
    if phase.kill.is_some() {
        about += " Vertical lines: a worker was killed.";
    }
    if phase.deploy.is_some() {
        about += " Vertical lines: new code was deployed.";
    }
    let marks = changes(&phase.load);
    if !marks.is_empty() {
        about += " Dashed: the load changed.";
    }
    let svg = strips::answers(&title, &rows, &marks)?;
    Some(Plot { title, about, svg, legend: Vec::new() })
}

/// What befell it, in milliseconds since the phase began.
fn events(part: &PhaseResult) -> Vec<f64> {
    let deploys = part.deploys.iter().map(|one| one.at_ms);
    part.kills_ms.iter().copied().chain(deploys).collect()
}

/// Seconds at which the load changes.
fn changes(load: &PhaseLoad) -> Vec<f64> {
    match load {
        PhaseLoad::Overload { seconds, before_seconds, .. } => {
            vec![*before_seconds, before_seconds + seconds]
        }
        PhaseLoad::Open { steps, .. } if steps.len() > 1 => {
            let mut at = 0.0;
            let ends = steps.iter().map(|step| {
                at += step.seconds;
                at
            });
            ends.take(steps.len() - 1).collect()
        }
        _ => Vec::new(),
    }
}

fn by_worker(parts: &[Part]) -> Option<Plot> {
    let known = parts.iter().filter(|(_, _, part)| !part.outcome.workers.is_empty());
    let rows: Vec<Workers> = known
        .map(|(at, name, part)| Workers {
            name,
            class: chart::colour(*at),
            counts: &part.outcome.workers,
        })
        .collect();
    let title = "Requests by worker".to_owned();
    let about =
        "The first sound round, the busiest worker first; dashed: an even share.".to_owned();
    let svg = strips::workers(&title, &rows)?;
    Some(Plot { title, about, svg, legend: Vec::new() })
}

fn series(parts: &[Part], name: &str) -> Option<Plot> {
    let find = |part: &&PhaseResult| part.series.iter().position(|its| its.name == name);
    let first = parts.iter().find_map(|(_, _, part)| Some(&part.series[find(part)?]))?;
    let lines: Vec<Line> = parts
        .iter()
        .filter_map(|(at, contender, part)| {
            let points = part.series[find(part)?].points.clone();
            Some(Line { name: (*contender).into(), class: chart::colour(*at), points })
        })
        .collect();
    let svg = curves::time(&first.title, &first.unit, &lines)?;
    let legend = lines.iter().map(|line| [line.class.clone(), line.name.clone()]).collect();
    let about = "The first sound round.".to_owned();
    Some(Plot { title: first.title.clone(), about, svg, legend })
}

fn series_row(contender: &str, series: &SeriesResult) -> SeriesRow {
    let slope = match (series.slope_per_hour, series.slope_error) {
        (Some(slope), Some(error)) if slope.is_finite() && error.is_finite() => {
            format!("{} ± {}", number(slope, 2), number(error, 2))
        }
        (Some(slope), _) => number(slope, 2),
        _ => NONE.into(),
    };
    let cycle = series.cycle.filter(|its| its.seconds.is_finite() && its.share.is_finite());
    let cycle = cycle.map_or("none stands out".into(), |its| {
        format!("{} s ({:.0} % of the variance)", number(its.seconds, 1), its.share * 100.0)
    });
    SeriesRow {
        contender: contender.into(),
        title: series.title.clone(),
        unit: series.unit.clone(),
        mean: number(series.mean, 2),
        deviation: number(series.deviation, 2),
        slope,
        cycle,
    }
}
