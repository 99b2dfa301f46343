//! One function for each subcommand; each answers with the exit status.

pub mod ask_app;
pub mod list;
pub mod select;

use std::path::{Path, PathBuf};

use crate::cli;
use crate::library::Library;
use crate::report;
use crate::rounds;

/// `oribi lab list`.
pub fn list(list: &cli::List) -> Result<u8, String> {
    let mut library = library()?;
    if list.servers { list::servers(&library) } else { list::scenarios(&mut library) }.map(|()| 0)
}

/// `oribi lab run`.
pub fn run(run: &cli::Run) -> Result<u8, String> {
    let mut library = library()?;
    let cases = select::cases(&mut library, run)?;
    rounds::run(&library, cases, &run.common)
}

/// `oribi lab report`.
pub fn report(report: &cli::Report) -> Result<u8, String> {
    let (given, runs) = (&report.run, Path::new(cli::RUNS));
    let run = report::read(given, runs)?;
    let folder = report::find(given, runs)?.parent().map(Path::to_path_buf).unwrap_or_default();
    run.cases.iter().for_each(report::print_case);
    report::print_verdicts(&run);
    let failed = |error| format!("{}: {error}", folder.display());
    report::write(&run, &folder).map_err(failed)?;
    println!("Written anew: {}", folder.join("report.html").display());
    Ok(0)
}

/// `oribi lab compare`.
pub fn compare(compare: &cli::Compare) -> Result<u8, String> {
    let runs = Path::new(cli::RUNS);
    let (before, after) =
        (report::read(&compare.before, runs)?, report::read(&compare.after, runs)?);
    anstream::print!("{}", report::compare(&before, &after, compare.anyway)?);
    Ok(0)
}

/// `oribi lab app`.
pub fn app(app: &cli::App) -> Result<u8, String> {
    ask_app::run(&library()?, app)
}

/// The folder the environment names, or the one this program was built in.
fn library() -> Result<Library, String> {
    let home = std::env::var_os("ORIBI_LAB_HOME").filter(|home| !home.is_empty());
    Library::open(&home.map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from))
}
