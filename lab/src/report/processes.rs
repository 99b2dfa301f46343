//! What each kind of process of a server costs for each request.

use crate::figures::stats;
use crate::results::{CaseResult, ProcessUse};

/// One kind of process; None was not measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Whose.
    pub contender: String,
    /// Its title; several of the same title are added up.
    pub title: String,
    /// Microseconds of CPU.
    pub cpu_us: Option<f64>,
    /// Voluntary context switches.
    pub wakeups: Option<f64>,
    /// Involuntary ones.
    pub preempted: Option<f64>,
    /// System calls.
    pub calls: Option<f64>,
}

/// All of a case: the middle of its sound rounds.
pub fn of(result: &CaseResult) -> Vec<Row> {
    let mut rows = Vec::new();
    for facts in &result.contenders {
        let cells = result.rounds.iter().flatten();
        let cells: Vec<&[ProcessUse]> = cells
            .filter(|cell| cell.contender == facts.name && cell.sound())
            .map(|cell| cell.processes.as_slice())
            .collect();
        let mut titles: Vec<&str> = Vec::new();
        for title in cells.iter().flat_map(|uses| uses.iter()).map(|its| its.title.as_str()) {
            if !titles.contains(&title) {
                titles.push(title);
            }
        }
        for title in titles {
            let middle = |pick: &dyn Fn(&ProcessUse) -> Option<f64>| {
                let sum = |uses: &&[ProcessUse]| -> Option<f64> {
                    let mut its = uses.iter().filter(|its| its.title == title).peekable();
                    its.peek()?;
                    its.map(pick).sum()
                };
                stats::median(&cells.iter().filter_map(sum).collect::<Vec<_>>())
            };
            rows.push(Row {
                contender: facts.name.clone(),
                title: title.to_owned(),
                cpu_us: middle(&|its| Some(its.cpu_us)),
                wakeups: middle(&|its| Some(its.wakeups)),
                preempted: middle(&|its| Some(its.preempted)),
                calls: middle(&|its| its.calls),
            });
        }
    }
    rows
}
