//! The command line, built from the options table.

use crate::answer::{print, say};
use crate::cgi;
use crate::config_for;
use crate::daemon::{self, Daemon};
use crate::explain::{self, Form};
use crate::layers::{Layer, Origin, given};
use crate::options::{self, Serves, Settings};
use crate::place::Place;
use crate::remote;
use crate::ruby::{self, Ruby};
use crate::sources::Sources;
use crate::spawn::Join;
use crate::start::{self, Start};
use crate::{listen, supervise};
use clap::{Arg, ArgAction, ArgMatches, Command};
use std::path::PathBuf;
use std::process::ExitCode;
use wire::settings::{self, Fallback, GROUPS, Kind, Setting};

const EXAMPLES: &str = "\
Examples:
  oribi                                      serve ./config.ru on http://127.0.0.1:9292
  oribi -p 3000 -w 4 -t 2                    four workers of two threads, port 3000
  oribi -b unix:///run/app.sock app.ru       behind another server
  oribi -b 'tcp://[::]:80' -e production     all interfaces, IPv4 and IPv6
  oribi -C config/oribi.rb                   settings from a Ruby file
  oribi -d --pid-file oribi.pid              in the background, once it serves
  oribi config --explain                     every setting, its value and where it comes from
  oribi config nginx                         a configuration for a web server in front; see --help
  oribi check                                load configuration and app, then say what is wrong
  oribi status                               what the running server does; see also restart --help
  oribi lab list                             what can be measured, on this server and on others

Signals: TERM and INT finish what runs and end; a second INT, or QUIT, ends at once;
USR2 and HUP boot a new generation and switch to it (HUP ends under start_server; see hup_action);
USR1 opens the logs again (with spawn_interval it ends slowly); TTIN and TTOU: one worker more or
less.
Exit status: 0 after a graceful end, 1 when the server could not start, 130 and 131 after a
second INT and a QUIT.";

/// Reads the command line and does what it says.
pub fn run() -> ExitCode {
    let matches = command().get_matches();
    let done = match matches.subcommand() {
        Some(("options", _)) => {
            print(&ruby::table().to_string());
            Ok(ExitCode::SUCCESS)
        }
        Some(("check", after)) => check(&matches, after),
        Some(("config", after)) => config(&matches, after),
        Some(("cgi", after)) => cgi::run(after),
        Some((name, after)) => remote::run(name, &matches, after),
        _ => serve(&matches),
    };
    done.unwrap_or_else(|why| {
        say(&why);
        ExitCode::FAILURE
    })
}

fn command() -> Command {
    Command::new("oribi")
        .bin_name("oribi")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Oribi serves Rack applications.")
        .after_help(EXAMPLES)
        .args(arguments())
        .subcommand(
            Command::new("check")
                .about("Load configuration and app, print ok or what is wrong")
                .args(arguments()),
        )
        .subcommand(
            Command::new("config")
                .about("Print what is set, or a configuration for what lies in front")
                .args(arguments())
                .arg(switch("explain").help("Print every setting, its value and who has set it"))
                .arg(switch("json").help("The same as JSON"))
                .subcommands(config_for::subcommands(|| arguments().collect())),
        )
        .subcommand(Command::new("options").about("Print the table of options as JSON").hide(true))
        .subcommands(remote::subcommands())
        .subcommand(cgi::subcommand())
        .disable_help_subcommand(true)
}

fn arguments() -> impl Iterator<Item = Arg> {
    let rackup = Arg::new("rackup")
        .value_name("config.ru")
        .help("The rackup file [default: ./config.ru]")
        .value_parser(clap::value_parser!(PathBuf));
    let groups = GROUPS.iter().flat_map(|group| {
        group.settings.iter().map(|setting| argument(setting).help_heading(group.heading))
    });
    groups.chain([rackup])
}

fn switch(name: &'static str) -> Arg {
    Arg::new(name).long(name).action(ArgAction::SetTrue).help_heading("What to print")
}

fn argument(setting: &'static Setting) -> Arg {
    let mut help = ruby::doc(setting);
    if let Fallback::Fixed(text) | Fallback::Found(text) = setting.fallback {
        help += &format!(" [default: {text}]");
    }
    let mut argument = Arg::new(setting.name).long(setting.flag()).help(help);
    argument = argument.value_name(setting.metavar);
    if let Some(short) = setting.short {
        argument = argument.short(short);
    }
    argument = argument.aliases(setting.also.iter().map(|name| name.replace('_', "-")));
    if setting.kind == Kind::Flag {
        argument = argument.num_args(0..=1).require_equals(true).default_missing_value("true");
    }
    // The last one wins for what can be given once, as people expect of a command line.
    argument.action(ArgAction::Append)
}

fn layer(matches: &ArgMatches) -> Layer {
    let said = settings::all().filter_map(|setting| {
        let values = matches.get_many::<String>(setting.name)?;
        Some((setting.name, given(values.cloned(), &Origin::CommandLine)))
    });
    said.collect()
}

fn settings(line: Layer, ruby: &Ruby) -> Result<Settings, String> {
    let sources = Sources::read(line, ruby)?;
    let mut settings = options::resolve(&sources.layers)?;
    settings.mounts[0].worker.config =
        sources.config.map(|file| file.to_string_lossy().into_owned());
    Ok(settings)
}

/// By its name, which may lead elsewhere when the next mold loads it.
fn rackup(matches: &ArgMatches, place: &Place) -> Result<PathBuf, String> {
    let default = PathBuf::from("config.ru");
    let named = matches.get_one::<PathBuf>("rackup");
    let file = place.file(named.unwrap_or(&default));
    match (file.is_file(), named) {
        (true, _) => Ok(file),
        (false, Some(file)) => {
            Err(format!("{} is not there: name your app's rackup file", file.display()))
        }
        (false, None) => Err("config.ru is not here: run oribi in your app's directory, or name \
                              the file: oribi path/to/config.ru"
            .into()),
    }
}

/// Options may stand before a word such as `check` and after it.
fn both(before: &ArgMatches, after: &ArgMatches) -> Layer {
    let mut line = layer(before);
    line.extend(layer(after));
    line
}

fn config(before: &ArgMatches, after: &ArgMatches) -> Result<ExitCode, String> {
    let form = match (after.get_flag("json"), after.get_flag("explain")) {
        (true, _) => Form::Json,
        (false, true) => Form::Table,
        (false, false) => Form::File,
    };
    if let Some((name, matches)) = after.subcommand() {
        let mut line = both(before, after);
        line.extend(layer(matches));
        let sources = Sources::read(line, &Ruby::find()?)?;
        let named = |matches: &ArgMatches| matches.get_one::<PathBuf>("rackup").cloned();
        let rackup = named(matches).or_else(|| named(before));
        return config_for::run(name, matches, &sources, rackup.as_deref());
    }
    let sources = Sources::read(both(before, after), &Ruby::find()?)?;
    explain::explain(&sources, form).map(|()| ExitCode::SUCCESS)
}

fn check(before: &ArgMatches, after: &ArgMatches) -> Result<ExitCode, String> {
    let ruby = Ruby::find()?;
    let named = |matches: &ArgMatches| matches.contains_id("rackup");
    let settings = settings(both(before, after), &ruby)?;
    let place = start::place(None, &settings)?;
    let rackup = rackup(if named(after) { after } else { before }, &place)?;
    let loads = ruby.check(&rackup, &settings.mounts[0].environment)?;
    Ok(if loads { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn serve(matches: &ArgMatches) -> Result<ExitCode, String> {
    // Before anything else opens fds.
    let inherited = listen::take()?;
    let daemon = Daemon::from_environment().map_err(|error| format!("daemonize: {error}"))?;
    let join = Join::from_environment()?;
    let ruby = Ruby::find()?;
    let mut settings = settings(layer(matches), &ruby)?;
    // A calling process has done it itself: `rackup -D`.
    if settings.process.daemonize && daemon.is_none() && join.is_none() {
        return if inherited.is_empty() { daemon::start() } else { Err(start::KEPT.into()) };
    }
    let place = start::place(join.as_ref(), &settings)?;
    if join.is_none() {
        settings.mounts[0].serves = Serves::App { rackup: Some(rackup(matches, &place)?) };
    }
    let start = Start::new(settings, place, &ruby, inherited, join)?;
    supervise::run(Start { daemon, ..start })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &[&str]) -> Result<Layer, String> {
        let words = ["oribi"].iter().chain(line);
        let matches = command().try_get_matches_from(words).map_err(|error| error.to_string())?;
        Ok(layer(&matches))
    }

    #[test]
    fn clap_accepts_the_whole_table() {
        command().debug_assert();
        let said = parse(&["-b", "unix:///a", "-b", "tcp://[::1]:1", "--retry-idempotent", "x.ru"]);
        let said = said.unwrap();
        let texts = |said: &Layer, name| -> Vec<String> {
            said[name].iter().map(|given| given.text.clone()).collect()
        };
        assert_eq!(texts(&said, "bind"), ["unix:///a", "tcp://[::1]:1"]);
        assert_eq!(texts(&said, "retry_idempotent"), ["true"]);
        let off = parse(&["--retry-idempotent=false", "--max-workers", "3"]).unwrap();
        assert_eq!(texts(&off, "retry_idempotent"), ["false"]);
        assert_eq!(texts(&off, "workers"), ["3"]);
    }

    #[test]
    fn an_unknown_option_suggests_the_nearest() {
        let error = parse(&["--wrokers", "2"]).unwrap_err();
        assert!(error.contains("--wrokers") && error.contains("--workers"), "{error}");
    }
}
