//! Two runs side by side.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::results::{CaseResult, Machine, Run, Summary};
use crate::scenario::Case;

use super::facts::{self, Trust};
use super::figure::{self, Column, ROUNDS_OF_A_CLAIM, Told};
use super::grid::{BOLD, DIM, Entry, GREEN, Grid, PLAIN, RED, wrapped};

/// What has changed from `a` to `b`, as text for [`anstream`]; an error when the machines differ
/// and it is not to be done `anyway`.
pub fn compare(a: &Run, b: &Run, anyway: bool) -> Result<String, String> {
    let mut text = format!("{} ({}) → {} ({})\n", a.name, a.started, b.name, b.started);
    if a.machine.identity != b.machine.identity {
        let differs = differences(&a.machine, &b.machine);
        if !anyway {
            return Err(format!(
                "{} and {} ran on different machines ({differs}), so their figures say nothing \
                 about each other; --anyway compares them all the same, and says so",
                a.name, b.name
            ));
        }
        text += &wrapped("", RED, &format!("DIFFERENT MACHINES, compared anyway: {differs}"));
    }
    for run in [a, b] {
        let (trust, sentence) = facts::trust(&run.noise);
        if trust != Trust::Quiet {
            text += &wrapped(&format!("{}: ", run.name), PLAIN, &sentence);
        }
        for remark in &run.remarks {
            text += &wrapped(&format!("{}: ", run.name), RED, remark);
        }
    }
    let pairs: Vec<_> = a.cases.iter().map(|case| (case, find(b, case))).collect();
    for (before, after) in &pairs {
        let Some(after) = after else { continue };
        text += &case(before, after);
    }
    let only = |run: &Run, result: &CaseResult| {
        let label = figure::label(&result.case);
        wrapped("", DIM, &format!("{label}: not comparable, only {} has it", run.name))
    };
    for (result, _) in pairs.iter().filter(|(_, after)| after.is_none()) {
        text += &only(a, result);
    }
    for result in b.cases.iter().filter(|result| find(a, result).is_none()) {
        text += &only(b, result);
    }
    Ok(text)
}

fn find<'a>(run: &'a Run, same: &CaseResult) -> Option<&'a CaseResult> {
    run.cases.iter().find(|result| figure::label(&result.case) == figure::label(&same.case))
}

fn differences(a: &Machine, b: &Machine) -> String {
    let facts = |its: &Machine| {
        [
            ("CPU", its.cpu.clone()),
            ("cores", its.cores.to_string()),
            ("MB of memory", its.memory_mb.to_string()),
            ("kernel", its.kernel.clone()),
            ("system", its.system.clone()),
            ("Ruby", its.ruby.clone()),
        ]
    };
    let pairs = facts(a).into_iter().zip(facts(b));
    let differ = pairs.filter(|((_, a), (_, b))| a != b);
    let said: Vec<_> = differ.map(|((name, a), (_, b))| format!("{name}: {a} → {b}")).collect();
    if said.is_empty() { "by their identity".into() } else { said.join("; ") }
}

/// What of a definition decides about a cell's figures: neither how often nor beside whom it was
/// measured, nor what is shown and promised of it. Contenders are compared one by one.
fn definition(case: &Case) -> Value {
    let mut value = serde_json::to_value(case).unwrap_or_default();
    if let Some(keys) = value.as_object_mut() {
        for beside in [
            "title",
            "about",
            "rounds",
            "contender",
            "servers",
            "show",
            "baseline",
            "target",
            "published",
        ] {
            keys.remove(beside);
        }
    }
    value
}

/// A contender as the case defines it; null for one that is only named in `servers`.
fn contender(case: &Case, name: &str) -> Value {
    let its = case.contender.iter().find(|contender| contender.name == name);
    its.map(|its| serde_json::to_value(its).unwrap_or_default()).unwrap_or_default()
}

/// Keys whose values are not the same.
fn unlike(a: &Value, b: &Value) -> Vec<String> {
    let keys = |value: &Value| -> BTreeSet<String> {
        value.as_object().map(|keys| keys.keys().cloned().collect()).unwrap_or_default()
    };
    keys(a).union(&keys(b)).filter(|key| a.get(key) != b.get(key)).cloned().collect()
}

fn case(a: &CaseResult, b: &CaseResult) -> String {
    let label = figure::label(&a.case);
    let unlike = unlike(&definition(&a.case), &definition(&b.case));
    if !unlike.is_empty() {
        let keys = unlike.join(", ");
        return wrapped("", DIM, &format!("\n{label}: not comparable, defined otherwise: {keys}"));
    }
    let mut text = format!("\n{}", wrapped("", BOLD, &format!("{label}: {}", b.case.title)));
    let mut remarks = String::new();
    for facts in &a.contenders {
        let name = &facts.name;
        let why = match b.contenders.iter().find(|its| its.name == *name) {
            None => Some("only took part before"),
            Some(its) if its.absent.is_some() || facts.absent.is_some() => Some("absent"),
            Some(_) if contender(&a.case, name) != contender(&b.case, name) => {
                Some("defined otherwise")
            }
            Some(its) => {
                if its.versions != facts.versions {
                    let versions = (facts.versions.join(", "), its.versions.join(", "));
                    let said = format!("{name}: {} → {}", versions.0, versions.1);
                    remarks += &wrapped("  ", DIM, &said);
                }
                None
            }
        };
        match why {
            Some(why) => remarks += &wrapped("  ", DIM, &format!("{name}: not comparable, {why}")),
            None => {
                let head = vec![
                    [name.as_str(), "before", "after", "ratio", ""].map(String::from).to_vec(),
                ];
                text += &Grid { names: 1, head, rows: changes(a, b, name) }.text();
            }
        }
    }
    text + &remarks
}

/// A row for each metric that is shown of the case.
fn changes(a: &CaseResult, b: &CaseResult, name: &str) -> Vec<Vec<Entry>> {
    let mut rows = Vec::new();
    for column in figure::columns(b) {
        let pair = (figure::summary(a, name, &column.full), figure::summary(b, name, &column.full));
        let shown = |summary: Option<&Summary>| match summary {
            Some(its) => {
                let spread = figure::spread(its.min, its.max);
                (format!("{} ({spread})", column.text(its.median)), PLAIN)
            }
            None => ("not measured".to_owned(), DIM),
        };
        if let (None, None) = pair {
            continue;
        }
        let mut row = vec![(column.long(), PLAIN)];
        row.extend([shown(pair.0), shown(pair.1)]);
        row.extend(match pair {
            (Some(a), Some(b)) => {
                let told = changed(&column, a, b);
                let (word, style) = match told {
                    Told::Better => ("better", GREEN),
                    Told::Worse => ("WORSE", RED),
                    Told::Alike => ("within noise", DIM),
                    Told::Unclaimed => ("no claim", DIM),
                };
                let ratio = if a.median == b.median { 1.0 } else { b.median / a.median };
                [(figure::ratio(ratio), PLAIN), (word.to_owned(), style)]
            }
            _ => [(figure::NONE.to_owned(), DIM), (String::new(), PLAIN)],
        });
        rows.push(row);
    }
    rows
}

/// Beyond the noise of both runs only if what one run measured lies outside of all that the other
/// did.
fn changed(column: &Column, a: &Summary, b: &Summary) -> Told {
    if a.rounds.min(b.rounds) < ROUNDS_OF_A_CLAIM {
        Told::Unclaimed
    } else if a.min <= b.max && b.min <= a.max {
        Told::Alike
    } else if (b.median > a.median) == column.more_is_better() {
        Told::Better
    } else {
        Told::Worse
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    fn plain(a: &Run, b: &Run) -> String {
        anstream::adapter::strip_str(&compare(a, b, true).expect("anyway")).to_string()
    }

    /// The line of a metric below a contender's name.
    fn line<'a>(text: &'a str, name: &str, start: &str) -> &'a str {
        let its = |line: &&str, start: &str| line.trim_start().starts_with(start);
        let mut lines = text.lines().skip_while(|line| !its(line, name));
        lines.find(|line| its(line, start)).unwrap_or_else(|| panic!("no {start} in\n{text}"))
    }

    #[test]
    fn other_machines_are_refused_unless_wanted() {
        let (a, mut b) = (sample::run(), sample::run());
        assert!(compare(&a, &b, false).is_ok());
        b.machine.identity = "another".into();
        b.machine.cores = 8;
        let refused = compare(&a, &b, false).expect_err("different machines");
        assert!(refused.contains("cores: 2 → 8") && refused.contains("--anyway"), "{refused}");
        assert!(plain(&a, &b).contains("DIFFERENT MACHINES, compared anyway: cores: 2 → 8"));
    }

    #[test]
    fn only_what_lies_outside_of_all_rounds_is_a_change() {
        let (a, mut b) = (sample::run(), sample::run());
        for summary in &mut b.cases[0].summary {
            let by = match summary.metric.as_str() {
                "main.rps" => 1.2,
                "pss_mb" => 1.3,
                _ => 1.02,
            };
            summary.median *= by;
            summary.min *= by;
            summary.max *= by;
        }
        let text = plain(&a, &b);
        let rps = line(&text, "oribi ", "req/s, main");
        assert!(rps.ends_with("1.20x        better"), "{rps}");
        let pss = line(&text, "oribi ", "PSS");
        assert!(pss.ends_with("1.30x         WORSE"), "{pss}");
        let start = line(&text, "oribi ", "start");
        assert!(start.ends_with("1.02x  within noise"), "{start}");
        let two_rounds = line(&text, "puma ", "req/s");
        assert!(two_rounds.ends_with("no claim"), "{two_rounds}");
        let zeros = line(&text, "oribi ", "failed");
        assert!(zeros.contains("1.00x") && !text.contains("NaN"), "{zeros}");
    }

    #[test]
    fn what_is_defined_otherwise_is_not_compared() {
        let (a, mut b) = (sample::run(), sample::run());
        b.cases[0].case.rounds = 7;
        b.cases[0].contenders.remove(1);
        assert!(plain(&a, &b).contains("puma: not comparable, only took part before"));
        b.cases[0].case.warmup_seconds = 9.0;
        b.cases[1].case.case = "soft".into();
        let text = plain(&a, &b);
        assert!(
            text.contains("hello: not comparable, defined otherwise: warmup_seconds"),
            "{text}"
        );
        assert_eq!(text.matches("kill/hard: not comparable, only sample has it").count(), 1);
        assert_eq!(text.matches("kill/soft: not comparable").count(), 1);
    }
}
