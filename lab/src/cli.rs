//! The command line: what `oribi lab` understands.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

/// Where runs are kept unless `--out` says otherwise.
pub const RUNS: &str = "lab-results";

/// The whole command line.
#[derive(Debug, Parser)]
#[command(name = "oribi lab", bin_name = "oribi lab", version, arg_required_else_help = true)]
#[command(about = "Measures any Ruby web server, honestly, by one command")]
#[command(after_help = "Examples:
  oribi lab list
  oribi lab run hello fair --servers oribi,puma,unicorn
  oribi lab run soak --of hello --seconds 3600
  oribi lab app my/config.ru --servers oribi,puma --path /slow:5 --path /:95
  oribi lab report 2026-01-30-1
  oribi lab compare 2026-01-30-1 2026-01-31-1")]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Shows the scenarios there are, or the servers
    List(List),
    /// Measures scenarios, round after round
    Run(Run),
    /// Prints a run's tables again, and writes its files anew from run.json
    Report(Report),
    /// Compares two runs, named by their folders
    Compare(Compare),
    /// Measures an application of your own on several servers
    App(App),
    /// Reads a plan from standard input and puts that load on a server
    #[command(hide = true)]
    Load,
}

/// `oribi lab list`.
#[derive(Debug, Args)]
pub struct List {
    /// The servers instead: their versions, or the packages that are missing
    #[arg(long)]
    pub servers: bool,
}

/// `oribi lab run`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  oribi lab run hello                        everything hello has, three rounds
  oribi lab run hello --quick                only to see that it works
  oribi lab run fair --case stuck            one case of several
  oribi lab run burst --servers oribi,puma   only these two
  oribi lab run soak --of hello --seconds 7200

Exit status: 0 when every target was kept, 1 when one was missed or a contender that has a target
failed, 2 when the command line or a file is wrong, 130 when interrupted.")]
pub struct Run {
    /// Their names, as `oribi lab list` shows them
    #[arg(required = true, value_name = "SCENARIO")]
    pub scenarios: Vec<String>,
    /// Only these contenders; one that is a server but no contender yet becomes one
    #[arg(long, value_delimiter = ',', value_name = "A,B")]
    pub servers: Vec<String>,
    /// Only the case of this name
    #[arg(long, value_name = "NAME")]
    pub case: Option<String>,
    /// Length of the main phase (the longest one)
    #[arg(long, value_parser = positive)]
    pub seconds: Option<f64>,
    /// Which scenario `soak` is laid over
    #[arg(long, value_name = "SCENARIO")]
    pub of: Option<String>,
    /// What all measuring commands have.
    #[command(flatten)]
    pub common: Common,
}

/// What `run` and `app` share.
#[derive(Debug, Args)]
pub struct Common {
    /// Rounds; below three there is no claim
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: Option<u32>,
    /// Phases a quarter as long, one round: to see that it works, not for figures to keep
    #[arg(long)]
    pub quick: bool,
    /// Name of the run, which is its folder's; the time when it began if there is none
    #[arg(long)]
    pub name: Option<String>,
    /// Folder of all runs
    #[arg(long, value_name = "DIR", default_value = RUNS)]
    pub out: PathBuf,
}

/// `oribi lab report`.
#[derive(Debug, Args)]
pub struct Report {
    /// Folder of the run, or its name in lab-results
    pub run: String,
}

/// `oribi lab compare`.
#[derive(Debug, Args)]
pub struct Compare {
    /// Folder of the earlier run, or its name in lab-results
    pub before: String,
    /// The later one
    pub after: String,
    /// Compares although the machines differ
    #[arg(long)]
    pub anyway: bool,
}

/// `oribi lab app`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  oribi lab app my/config.ru --servers oribi,puma,unicorn
  oribi lab app my/config.ru --path /slow:5 --path /:95 --workers 4 --seconds 10
  oribi lab app my/config.ru --front nginx --rate 200

First it asks every server for every path once: one that does not answer 2xx is named before anything
is measured. Then each server gets a closed loop, an open loop at 60 % of what the slowest server
reached (or at --rate), and bursts of twice as many requests as there are workers.")]
pub struct App {
    /// The rackup file
    #[arg(value_name = "config.ru")]
    pub config: PathBuf,
    /// Which servers (`oribi lab list --servers`)
    #[arg(long, value_delimiter = ',', default_value = "oribi,puma,unicorn", value_name = "A,B")]
    pub servers: Vec<String>,
    /// A path to ask for, and how often beside the others; may be repeated
    #[arg(long = "path", value_name = "PATH[:WEIGHT]", value_parser = weighted)]
    #[arg(default_value = "/")]
    pub paths: Vec<(String, u32)>,
    /// Worker processes
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..))]
    pub workers: u32,
    /// Threads in each
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub threads: u32,
    /// Connections of the closed loop
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=10000))]
    pub connections: u32,
    /// Length of the closed and of the open loop, each
    #[arg(long, default_value_t = 5.0, value_parser = positive)]
    pub seconds: f64,
    /// Requests a second of the open loop
    #[arg(long, value_parser = positive)]
    pub rate: Option<f64>,
    /// A proxy in front of every server, for example nginx
    #[arg(long)]
    pub front: Option<String>,
    /// What all measuring commands have.
    #[command(flatten)]
    pub common: Common,
}

fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number > 0.0 && number.is_finite() => Ok(number),
        _ => Err("a number above 0 is needed".into()),
    }
}

/// `/path:5` or `/path`; a colon that no number follows belongs to the path.
fn weighted(text: &str) -> Result<(String, u32), String> {
    let split = text.rsplit_once(':').filter(|(_, end)| end.bytes().all(|b| b.is_ascii_digit()));
    let (path, weight) = match split {
        Some((path, weight)) => (path, weight.parse().map_err(|_| "weights are 1 to 1000")?),
        None => (text, 1),
    };
    if !path.starts_with('/') || path.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Err("a path begins with / and has no spaces".into());
    }
    if !(1..=1000).contains(&weight) {
        return Err("weights are 1 to 1000".into());
    }
    Ok((path.into(), weight))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn paths_may_have_weights() {
        assert_eq!(weighted("/slow:5"), Ok(("/slow".into(), 5)));
        assert_eq!(weighted("/"), Ok(("/".into(), 1)));
        assert_eq!(weighted("/a:b"), Ok(("/a:b".into(), 1)));
        assert_eq!(weighted("/a:b:7"), Ok(("/a:b".into(), 7)));
        for wrong in ["slow:5", "/a b", "/a:0", "/a:1001", "/a:"] {
            assert!(weighted(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn lists_are_separated_by_commas() {
        let cli = Cli::parse_from(["lab", "run", "hello", "fair", "--servers", "a,b", "--quick"]);
        let Command::Run(run) = cli.command else { panic!("not run") };
        assert_eq!(run.scenarios, ["hello", "fair"]);
        assert_eq!(run.servers, ["a", "b"]);
        assert!(run.common.quick);
    }
}
