//! The command line, built from the options table.

use crate::answer::{print, say};
use crate::cgi;
use crate::check;
use crate::config_for;
use crate::daemon::{self, Daemon};
use crate::explain::{self, Form};
use crate::layers::{Layer, Origin, given};
use crate::remote;
use crate::ruby;
use crate::sources::{Line, Sources};
use crate::spawn::{Join, REREAD};
use crate::start::{self, Start};
use crate::{listen, supervise};
use clap::{Arg, ArgAction, ArgMatches, Command};
use std::path::PathBuf;
use std::process::ExitCode;
use wire::settings::{self, Fallback, GROUPS, Kind, Setting};

/// The arguments that are no options of the table.
const RACKUP: &str = "rackup";
const MOUNT: &str = "mount";

const EXAMPLES: &str = "\
Examples:
  oribi                                      serve ./config.ru on http://127.0.0.1:9292
  oribi -p 3000 -w 4 -t 2                    four workers of two threads, port 3000
  oribi -b unix:///run/app.sock app.ru       behind another server
  oribi -b 'tcp://[::]:80' -e production     all interfaces, IPv4 and IPv6
  oribi --mount /a=one.ru --mount /b=two.ru  two apps, each under its path
  oribi --mount shop.example/=shop.ru app.ru one app for a host, another for all others
  oribi -C config/oribi.rb                   settings and mounts from a Ruby file
  oribi -C oribi.toml                        the same without Ruby
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
        _ if std::env::var_os(REREAD).is_some() => reread(&matches),
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
    let rackup = Arg::new(RACKUP)
        .value_name("config.ru")
        .help("The rackup file [default: ./config.ru]; beside mounts it is /")
        .value_parser(clap::value_parser!(PathBuf));
    let mount = Arg::new(MOUNT)
        .long(MOUNT)
        .value_name("[HOST]/PATH=FILE")
        .action(ArgAction::Append)
        .help("Serve this rackup file under this path, of this host if one is named; may be given several times")
        .help_heading(GROUPS[0].heading);
    let groups = GROUPS.iter().flat_map(|group| {
        group.settings.iter().map(|setting| argument(setting).help_heading(group.heading))
    });
    groups.chain([mount, rackup])
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

fn line(matches: &ArgMatches) -> Line {
    Line {
        said: layer(matches),
        mounts: matches.get_many::<String>(MOUNT).into_iter().flatten().cloned().collect(),
        rackup: matches.get_one::<PathBuf>(RACKUP).cloned(),
    }
}

/// Options may stand before a word such as `check` and after it.
fn both(before: &ArgMatches, after: &ArgMatches) -> Line {
    let (mut all, after) = (line(before), line(after));
    all.said.extend(after.said);
    all.mounts.extend(after.mounts);
    all.rackup = after.rackup.or(all.rackup);
    all
}

fn config(before: &ArgMatches, after: &ArgMatches) -> Result<ExitCode, String> {
    let form = match (after.get_flag("json"), after.get_flag("explain")) {
        (true, _) => Form::Json,
        (false, true) => Form::Table,
        (false, false) => Form::File,
    };
    let mut said = both(before, after);
    if let Some((name, matches)) = after.subcommand() {
        let more = line(matches);
        said.said.extend(more.said);
        said.mounts.extend(more.mounts);
        said.rackup = more.rackup.or(said.rackup);
        return config_for::run(name, matches, &Sources::read(said)?);
    }
    explain::explain(&Sources::read(said)?, form).map(|()| ExitCode::SUCCESS)
}

fn check(before: &ArgMatches, after: &ArgMatches) -> Result<ExitCode, String> {
    let sources = Sources::read(both(before, after))?;
    let place = start::place(None, sources.settings()?.process.chdir.as_deref())?;
    let settings = sources.settings_at(&place)?;
    let mut all_load = true;
    for mount in &settings.mounts {
        all_load &= check::loads(mount, &place.directory)?;
    }
    Ok(if all_load { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn serve(matches: &ArgMatches) -> Result<ExitCode, String> {
    // Before anything else opens fds.
    let inherited = listen::take()?;
    let daemon = Daemon::from_environment().map_err(|error| format!("daemonize: {error}"))?;
    let join = Join::from_environment()?;
    let sources = Sources::read(line(matches))?;
    let settings = sources.settings()?;
    // A calling process has done it itself: `rackup -D`.
    if settings.process.daemonize && daemon.is_none() && join.is_none() {
        return if inherited.is_empty() { daemon::start() } else { Err(start::KEPT.into()) };
    }
    let origin = match join {
        Some(_) => None,
        None => Some(start::place(None, None)?),
    };
    let place = start::place(join.as_ref(), settings.process.chdir.as_deref())?;
    let settings = sources.settings_at(&place)?;
    let start = Start::new(settings, place, inherited, join)?;
    supervise::run(Start { daemon, origin, ..start })
}

/// Says what the settings are, for a server that was started with this command line.
fn reread(matches: &ArgMatches) -> Result<ExitCode, String> {
    let read = || {
        let sources = Sources::read(line(matches))?;
        let chdir = sources.settings()?.process.chdir;
        sources.settings_at(&start::place(None, chdir.as_deref())?)
    };
    print(&serde_json::to_string(&read()).map_err(|error| error.to_string())?);
    Ok(ExitCode::SUCCESS)
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
