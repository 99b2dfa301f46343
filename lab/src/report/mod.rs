//! What people and programs get to see of a run: tables on the terminal, `run.json`, `cells.csv`,
//! `tables.md` and `report.html`; and two runs side by side.

mod chart;
mod compare;
mod csv;
mod curves;
mod facts;
mod figure;
mod grid;
mod html;
#[cfg(test)]
mod html_test;
mod json;
mod markdown;
mod plots;
mod processes;
#[cfg(test)]
mod sample;
mod strips;
mod table;
#[cfg(test)]
mod table_test;
mod view;

use std::fs;
use std::io;
use std::path::Path;

use crate::results::{CaseResult, Run};

pub use compare::compare;
pub use json::{find, read};

/// Prints the tables of one case.
pub fn print_case(result: &CaseResult) {
    anstream::print!("{}", table::case(result));
}

/// Prints the noise and, once more at the end, every case's targets.
pub fn print_verdicts(run: &Run) {
    anstream::print!("{}", table::verdicts(run));
}

/// Writes `run.json`, `cells.csv`, `tables.md` and `report.html` into `dir`, which is made if it is
/// missing.
pub fn write(run: &Run, dir: &Path) -> io::Result<()> {
    fs::create_dir_all(dir)?;
    fs::write(dir.join("run.json"), json::text(run)?)?;
    fs::write(dir.join("cells.csv"), csv::text(run)?)?;
    fs::write(dir.join("tables.md"), markdown::text(run))?;
    fs::write(dir.join("report.html"), html::text(run)?)
}
