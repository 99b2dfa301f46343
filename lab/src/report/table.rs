//! Tables for the terminal.

use crate::results::{CaseResult, Comparison, PublishedRow, Run, Verdict};

use super::facts::{self, Note, Trust};
use super::figure::{self, Column, Told};
use super::grid::{BOLD, DIM, Entry, GREEN, Grid, PLAIN, RED, styled, wrapped};
use super::processes;

/// What the signs behind ratios mean.
pub const LEGEND: &str = "in brackets the 95 % interval: ▲ better, ▼ worse, = includes 1, so not told \
                      apart; ? too few rounds for a claim";

/// Everything about one case.
pub fn case(result: &CaseResult) -> String {
    let title = format!("{}: {}", figure::label(&result.case), result.case.title);
    let mut text = format!("\n{}", wrapped("", BOLD, &title));
    let grids = grids(result);
    let (figures, ratios) = grids.split_at(grids.len().min(1));
    figures.iter().for_each(|grid| text += &grid.text());
    for note in facts::notes(result) {
        text += &said(&note);
    }
    ratios.iter().for_each(|grid| text += &format!("\n{}", grid.text()));
    if !ratios.is_empty() {
        text += &wrapped("  ", DIM, LEGEND);
    }
    let processes = processes::of(result);
    if !processes.is_empty() {
        text += &format!("\n{}", per_process(&processes).text());
    }
    if !result.verdicts.is_empty() || !result.published.is_empty() {
        text.push('\n');
    }
    for verdict in &result.verdicts {
        text += &promised("", verdict);
    }
    for row in &result.published {
        text += &wrapped("  published  ", PLAIN, &published(row));
    }
    text
}

/// The figures of a case, and then for each baseline the ratios over it; nothing where the case
/// shows nothing.
pub fn grids(result: &CaseResult) -> Vec<Grid> {
    let columns = figure::columns(result);
    if columns.is_empty() {
        return Vec::new();
    }
    let baselines = result.case.baseline.iter();
    let ratios = baselines.filter_map(|over| ratios(result, &columns, over));
    [figures(result, &columns)].into_iter().chain(ratios).collect()
}

/// All targets of a run, and how far to trust it.
pub fn verdicts(run: &Run) -> String {
    let mut text = String::from("\n");
    let width = run.cases.iter().filter(|result| !result.verdicts.is_empty());
    let width = width.map(|result| figure::label(&result.case).chars().count()).max();
    if let Some(width) = width {
        text += &wrapped("", BOLD, "All targets");
        for result in &run.cases {
            let label = format!("{:width$}  ", figure::label(&result.case));
            result.verdicts.iter().for_each(|verdict| text += &promised(&label, verdict));
        }
        text.push('\n');
    }
    let (trust, sentence) = facts::trust(&run.noise);
    text += &wrapped("", if trust == Trust::Noisy { RED } else { PLAIN }, &sentence);
    for remark in &run.remarks {
        text += &wrapped("", RED, remark);
    }
    text
}

fn figures(result: &CaseResult, columns: &[Column]) -> Grid {
    let line = |first: &str, last: &str, middle: Vec<String>| -> Vec<String> {
        [vec![first.into()], middle, vec![last.into()]].concat()
    };
    let heads = columns.iter().map(|column| match column.unit() {
        "" => column.head().to_owned(),
        unit => format!("{} ({unit})", column.head()),
    });
    let mut head = vec![line("contender", "rounds", heads.collect())];
    if columns.iter().any(|column| !column.part().is_empty()) {
        head.push(line("", "", columns.iter().map(Column::part).collect()));
    }
    let rows = result.contenders.iter().map(|facts| {
        let (sound, all) = facts::rounds(result, &facts.name);
        let state = if facts.absent.is_some() { "absent" } else { "void" };
        let nothing = || (state.to_owned(), if state == "void" { RED } else { DIM });
        let mut row = vec![(facts.name.clone(), PLAIN)];
        row.extend(columns.iter().map(|column| {
            match (facts.absent.is_some() || sound == 0, all) {
                (true, _) => nothing(),
                _ => median(result, &facts.name, column),
            }
        }));
        row.push(match sound {
            _ if facts.absent.is_some() => (figure::NONE.into(), DIM),
            sound if sound < all => (format!("{sound} of {all}"), RED),
            sound => (sound.to_string(), PLAIN),
        });
        row
    });
    Grid { names: 1, head, rows: rows.collect() }
}

fn median(result: &CaseResult, contender: &str, column: &Column) -> Entry {
    let Some(summary) = figure::summary(result, contender, &column.full) else {
        return ("not measured".into(), DIM);
    };
    let failed = column.counts_failures() && summary.max > 0.0;
    let mut text = column.text(summary.median);
    if summary.rounds > 1 && summary.min != summary.max {
        text += &format!(" ({})", figure::spread(summary.min, summary.max));
    }
    (text, if failed { RED } else { PLAIN })
}

/// A contender's ratio with its interval, and what it tells.
pub fn compared(result: &CaseResult, comparison: &Comparison) -> (String, Told) {
    let ratio = figure::ratio(comparison.ratio);
    match figure::told(result, comparison) {
        Told::Unclaimed => (ratio, Told::Unclaimed),
        told => (format!("{ratio} ({})", figure::spread(comparison.low, comparison.high)), told),
    }
}

fn ratios(result: &CaseResult, columns: &[Column], over: &str) -> Option<Grid> {
    let find = |of: &str, metric: &str| {
        let its = |c: &&Comparison| c.of == of && c.over == over && c.metric == metric;
        result.comparisons.iter().find(its)
    };
    let its = |c: &Column| result.comparisons.iter().any(|x| x.over == over && x.metric == c.full);
    let columns: Vec<&Column> = columns.iter().filter(|column| its(column)).collect();
    if columns.is_empty() {
        return None;
    }
    let line = |first: String, text: &dyn Fn(&Column) -> String| -> Vec<String> {
        [first].into_iter().chain(columns.iter().map(|column| text(column))).collect()
    };
    let mut head = vec![line(format!("over {over}"), &|column| column.head().to_owned())];
    if columns.iter().any(|column| !column.part().is_empty()) {
        head.push(line(String::new(), &Column::part));
    }
    let mut rows: Vec<Vec<Entry>> = Vec::new();
    for facts in result.contenders.iter().filter(|facts| facts.name != over) {
        let mut row = vec![(facts.name.clone(), PLAIN)];
        row.extend(columns.iter().map(|column| match find(&facts.name, &column.full) {
            Some(comparison) => {
                let (text, told) = compared(result, comparison);
                let style = if told == Told::Better { GREEN } else { PLAIN };
                (format!("{text} {}", told.sign()), style)
            }
            None => (figure::NONE.to_owned(), DIM),
        }));
        if row[1..].iter().any(|(text, _)| text != figure::NONE) {
            rows.push(row);
        }
    }
    (!rows.is_empty()).then_some(Grid { names: 1, head, rows })
}

fn per_process(rows: &[processes::Row]) -> Grid {
    let names = ["per request", "", "CPU (µs)", "wake-ups", "preempted", "system calls"];
    let text = |value: Option<f64>| match value {
        Some(value) => (figure::number(value, 2), PLAIN),
        None => ("not measured".to_owned(), DIM),
    };
    let rows = rows.iter().map(|row| {
        let figures = [row.cpu_us, row.wakeups, row.preempted, row.calls].map(text);
        let names = [(row.contender.clone(), PLAIN), (row.title.clone(), PLAIN)];
        names.into_iter().chain(figures).collect()
    });
    Grid { names: 2, head: vec![names.map(str::to_owned).to_vec()], rows: rows.collect() }
}

fn said(note: &Note) -> String {
    let which = note.which();
    let space = if which.is_empty() { "" } else { " " };
    let style = if note.bad() { RED } else { PLAIN };
    let text = format!("{}{space}{which}: {}", note.who, note.text);
    let mut said = wrapped(&format!("  {:6}  ", note.kind), style, &text);
    for line in note.log.iter().rev().take(3).rev() {
        said += &wrapped("            | ", DIM, line);
    }
    said
}

/// What a target came to, without its label.
pub fn came_to(verdict: &Verdict) -> String {
    let goal = match verdict.goal {
        Some((goal, reached)) => {
            format!(
                "; goal {} {}",
                figure::number(goal, 0),
                if reached { "reached" } else { "open" }
            )
        }
        None => String::new(),
    };
    let measured = verdict.measured.filter(|value| value.is_finite());
    let measured = measured.map_or("not measured".into(), figure::four);
    format!("{measured} ({}{goal})", verdict.target)
}

fn promised(before: &str, verdict: &Verdict) -> String {
    let (word, style) = if verdict.ok { ("ok    ", GREEN) } else { ("missed", RED) };
    let text = wrapped(
        &format!("  {before}{word}  "),
        PLAIN,
        &format!("{}: {}", verdict.label, came_to(verdict)),
    );
    text.replacen(word, &styled(style, word), 1)
}

/// What others published, and ours.
pub fn published(row: &PublishedRow) -> String {
    let theirs = figure::ratio(row.published.ratio);
    let ours = row.measured.map_or("not measured".to_owned(), figure::ratio);
    format!("{}: {theirs} ({}); here {ours}", row.published.what, row.published.source)
}
