//! One case as the page shows it: plain texts in rows and columns.

use serde::Serialize;

use crate::results::{CaseResult, Comparison, ContenderFacts, Verdict};

use super::chart;
use super::facts;
use super::figure::{self, Column, Told, number};
use super::plots::{self, Section};
use super::processes;
use super::table;

/// Everything of a case.
#[derive(Serialize)]
pub struct View {
    id: String,
    label: String,
    title: String,
    about: String,
    notes: Vec<Note>,
    figures: Table,
    ratios: Vec<Table>,
    verdicts: Vec<Promise>,
    published: Vec<[String; 4]>,
    processes: Vec<[String; 6]>,
    main: Option<Bars>,
    sections: Vec<Section>,
    all: Table,
    contenders: Vec<ContenderFacts>,
    rounds: usize,
}

#[derive(Serialize)]
struct Note {
    kind: &'static str,
    bad: bool,
    who: String,
    rounds: String,
    text: String,
    log: String,
}

/// Rows and columns, with heads of both.
#[derive(Serialize)]
struct Table {
    title: String,
    columns: Vec<Head>,
    rows: Vec<Row>,
}

#[derive(Serialize)]
struct Head {
    name: String,
    unit: &'static str,
    part: String,
    about: &'static str,
    /// Of the definition in the glossary; empty where there is none.
    anchor: &'static str,
}

#[derive(Serialize)]
struct Row {
    name: String,
    class: String,
    entries: Vec<Entry>,
}

#[derive(Default, Serialize)]
struct Entry {
    text: String,
    beside: String,
    class: &'static str,
    title: &'static str,
}

/// A target and what became of it.
#[derive(Serialize)]
pub struct Promise {
    case: String,
    id: String,
    label: String,
    came_to: String,
    ok: bool,
}

#[derive(Serialize)]
struct Bars {
    title: String,
    better: &'static str,
    svg: String,
}

/// The anchor of a case.
pub fn id(at: usize) -> String {
    format!("case-{}", at + 1)
}

/// The targets of a case.
pub fn promises(at: usize, result: &CaseResult) -> Vec<Promise> {
    let promise = |verdict: &Verdict| Promise {
        case: figure::label(&result.case),
        id: id(at),
        label: verdict.label.clone(),
        came_to: table::came_to(verdict),
        ok: verdict.ok,
    };
    result.verdicts.iter().map(promise).collect()
}

/// The case at a place of the run.
pub fn of(at: usize, result: &CaseResult) -> View {
    let columns = figure::columns(result);
    let baselines = result.case.baseline.iter();
    View {
        id: id(at),
        label: figure::label(&result.case),
        title: result.case.title.clone(),
        about: result.case.about.clone(),
        notes: notes(result),
        figures: figures(result, &columns),
        ratios: baselines.filter_map(|over| ratios(result, &columns, over)).collect(),
        verdicts: promises(at, result),
        published: published(result),
        processes: per_process(result),
        main: columns.first().map(|column| Bars {
            title: column.long(),
            better: if column.more_is_better() { "more is better" } else { "less is better" },
            svg: chart::bars(result, column),
        }),
        sections: plots::of(result),
        all: everything(result),
        contenders: result.contenders.clone(),
        rounds: result.rounds.len(),
    }
}

fn notes(result: &CaseResult) -> Vec<Note> {
    let note = |note: facts::Note| Note {
        kind: note.kind,
        bad: note.bad(),
        rounds: note.which(),
        log: note.log.join("\n"),
        who: note.who,
        text: note.text,
    };
    facts::notes(result).into_iter().map(note).collect()
}

fn head(column: &Column) -> Head {
    Head {
        name: column.head().into(),
        unit: column.unit(),
        part: column.part(),
        about: column.metric.map_or("", |metric| metric.about),
        anchor: column.metric.map_or("", |metric| metric.name),
    }
}

fn figures(result: &CaseResult, columns: &[Column]) -> Table {
    let rows = result.contenders.iter().enumerate().map(|(at, facts)| {
        let (sound, all) = facts::rounds(result, &facts.name);
        let mut entries: Vec<Entry> =
            columns.iter().map(|column| entry(result, facts, column, sound)).collect();
        entries.push(match facts.absent {
            Some(_) => Entry { text: figure::NONE.into(), class: "none", ..Entry::default() },
            None if sound < all => {
                Entry { text: format!("{sound} of {all}"), class: "bad", ..Entry::default() }
            }
            None => Entry { text: sound.to_string(), ..Entry::default() },
        });
        Row { name: facts.name.clone(), class: chart::colour(at), entries }
    });
    let about = "rounds without unexpected failures, of all";
    let rounds = Head { name: "rounds".into(), unit: "", part: String::new(), about, anchor: "" };
    let rows = rows.collect();
    let columns = columns.iter().map(head).chain([rounds]).collect();
    Table { title: "Medians of all sound rounds (smallest–largest)".into(), columns, rows }
}

fn entry(result: &CaseResult, facts: &ContenderFacts, column: &Column, sound: usize) -> Entry {
    let nothing = |text: &str, class| Entry { text: text.into(), class, ..Entry::default() };
    match figure::summary(result, &facts.name, &column.full) {
        _ if facts.absent.is_some() => nothing("absent", "none"),
        _ if sound == 0 => nothing("void", "bad"),
        None => nothing("not measured", "none"),
        Some(its) => Entry {
            text: column.text(its.median),
            beside: match its.rounds {
                0 | 1 => String::new(),
                _ if its.min == its.max => String::new(),
                _ => figure::spread(its.min, its.max),
            },
            class: if column.counts_failures() && its.max > 0.0 { "bad" } else { "" },
            title: "",
        },
    }
}

fn ratios(result: &CaseResult, columns: &[Column], over: &str) -> Option<Table> {
    let comparisons = || result.comparisons.iter().filter(|its| its.over == over);
    let columns: Vec<&Column> = columns
        .iter()
        .filter(|column| comparisons().any(|its| its.metric == column.full))
        .collect();
    let compared = |comparison: &Comparison| {
        let (text, told) = table::compared(result, comparison);
        let (text, beside) = match text.split_once(" (") {
            Some((ratio, interval)) => (ratio, interval.trim_end_matches(')')),
            None => (text.as_str(), ""),
        };
        let class = match told {
            Told::Better => "good",
            Told::Worse => "worse",
            Told::Alike | Told::Unclaimed => "none",
        };
        let text = format!("{text} {}", told.sign());
        Entry { text, beside: beside.into(), class, title: told.word() }
    };
    let mut rows = Vec::new();
    for (at, facts) in result.contenders.iter().enumerate() {
        let its =
            |metric: &str| comparisons().find(|its| its.of == facts.name && its.metric == metric);
        if columns.iter().any(|column| its(&column.full).is_some()) {
            let none = || Entry { text: figure::NONE.into(), class: "none", ..Entry::default() };
            let entries = columns.iter().map(|c| its(&c.full).map_or_else(none, compared));
            let (name, class) = (facts.name.clone(), chart::colour(at));
            rows.push(Row { name, class, entries: entries.collect() });
        }
    }
    let columns = columns.into_iter().map(head).map(|head| Head { unit: "", ..head }).collect();
    let title = format!("Over {over} (95 % interval)");
    (!rows.is_empty()).then_some(Table { title, columns, rows })
}

fn published(result: &CaseResult) -> Vec<[String; 4]> {
    let row = |row: &crate::results::PublishedRow| {
        let ours = row.measured.map_or("not measured".into(), figure::ratio);
        let theirs = &row.published;
        [theirs.what.clone(), figure::ratio(theirs.ratio), ours, theirs.source.clone()]
    };
    result.published.iter().map(row).collect()
}

fn per_process(result: &CaseResult) -> Vec<[String; 6]> {
    let text = |value: Option<f64>| value.map_or("not measured".into(), |value| number(value, 2));
    let row = |row: processes::Row| {
        let [cpu, wakeups, preempted, calls] =
            [row.cpu_us, row.wakeups, row.preempted, row.calls].map(text);
        [row.contender, row.title, cpu, wakeups, preempted, calls]
    };
    processes::of(result).into_iter().map(row).collect()
}

/// Every metric that anybody has, one in each row.
fn everything(result: &CaseResult) -> Table {
    let mut names: Vec<&str> = result.summary.iter().map(|its| its.metric.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let rows = names.into_iter().map(|full| {
        let column = Column::of(full);
        let entries = result
            .contenders
            .iter()
            .map(|facts| entry(result, facts, &column, facts::rounds(result, &facts.name).0));
        Row { name: column.long(), class: String::new(), entries: entries.collect() }
    });
    let columns = result.contenders.iter().map(|facts| Head {
        name: facts.name.clone(),
        unit: "",
        part: String::new(),
        about: "",
        anchor: "",
    });
    Table { title: "Every figure".into(), columns: columns.collect(), rows: rows.collect() }
}
