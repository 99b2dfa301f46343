//! `tables.md`: every table of a run, to be read or copied into a document.

use crate::results::{CaseResult, Run};

use super::grid::Grid;
use super::table::{self, LEGEND};
use super::{facts, figure};

/// All cases, one heading each.
pub fn text(run: &Run) -> String {
    let machine = &run.machine;
    let mut text = format!(
        "{} cores of {}, {} MB, {}, Linux {}, {}; {} to {}.\n\n{}\n",
        machine.cores,
        machine.cpu,
        machine.memory_mb,
        machine.system,
        machine.kernel,
        machine.ruby,
        run.started,
        run.finished,
        facts::trust(&run.noise).1,
    );
    for result in &run.cases {
        text += &case(result);
    }
    text
}

fn case(result: &CaseResult) -> String {
    let mut text = format!("\n### {}: {}\n", figure::label(&result.case), result.case.title);
    let tables = table::grids(result);
    let compared = tables.len() > 1;
    tables.iter().for_each(|grid| text += &format!("\n{}", grid_text(grid)));
    if compared {
        text += &format!("\n{LEGEND}\n");
    }
    let notes = facts::notes(result);
    let lines = notes
        .iter()
        .map(|note| match &*note.which() {
            "" => format!("{} {}: {}", note.kind, note.who, note.text),
            which => format!("{} {}, {which}: {}", note.kind, note.who, note.text),
        })
        .chain(result.verdicts.iter().map(|verdict| {
            let word = if verdict.ok { "kept" } else { "missed" };
            format!("**{word}**: {}: {}", verdict.label, table::came_to(verdict))
        }))
        .chain(result.published.iter().map(|row| format!("published: {}", table::published(row))));
    let list: String = lines.map(|line| format!("- {}\n", escaped(&line))).collect();
    if list.is_empty() { text } else { format!("{text}\n{list}") }
}

/// The first columns to the left, figures to the right; the lines of the head in one.
fn grid_text(grid: &Grid) -> String {
    let columns = grid.head[0].len();
    let head = (0..columns).map(|at| {
        let parts = grid.head.iter().map(|line| &*line[at]).filter(|part| !part.is_empty());
        escaped(&parts.collect::<Vec<_>>().join(", "))
    });
    let rule = (0..columns).map(|at| if at < grid.names { "---" } else { "---:" }.to_owned());
    let mut text = row(head) + &row(rule);
    for line in &grid.rows {
        text += &row(line.iter().map(|(entry, _)| escaped(entry)));
    }
    text
}

fn row(entries: impl Iterator<Item = String>) -> String {
    format!("| {} |\n", entries.collect::<Vec<_>>().join(" | "))
}

fn escaped(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn every_line_of_a_table_has_as_many_columns() {
        let text = text(&sample::run());
        let mut columns = None;
        let mut tables = 0;
        for line in text.lines() {
            if !line.starts_with('|') {
                columns = None;
                continue;
            }
            let bars = line.replace("\\|", "").matches('|').count();
            tables += usize::from(columns.is_none());
            assert_eq!(*columns.get_or_insert(bars), bars, "{line}");
        }
        assert!(tables > 1 && text.contains("---:"), "{text}");
    }

    #[test]
    fn what_failed_and_what_was_promised_is_said() {
        let text = text(&sample::run());
        assert!(text.contains("\n- void "), "{text}");
        assert!(text.contains("\n- absent "), "{text}");
        assert!(text.contains("**kept**: ") && text.contains("**missed**: "), "{text}");
    }

    #[test]
    fn a_bar_in_a_text_does_not_end_its_column() {
        assert_eq!(escaped("a|b\nc"), "a\\|b c");
    }
}
