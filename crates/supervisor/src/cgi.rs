//! `oribi cgi serve DIR`: the server behind an `index.cgi`, and the commands for those who look
//! after it. The shim starts it at the first request and it ends when nobody asks any more
//! (docs/cgi.md).

mod run;

use crate::answer::print;
use crate::layers::{Layer, Origin, Said, given};
use crate::options::Settings;
use crate::place::Place;
use crate::remote;
use crate::ruby::Ruby;
use crate::sources::{Line, Sources};
use crate::start::{self, Renewal, Start};
use crate::supervise;
use clap::{Arg, ArgMatches, Command};
use run::{Life, RunDirectory};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use wire::settings;

/// What such a server does where its `oribi.rb` does not say otherwise. Nobody is there to roll a
/// restart back, and what visitors of a web site see is not for developers.
const DEFAULTS: [(&str, &str); 3] =
    [("idle_timeout", "900"), ("rollback_window", "0"), ("environment", "production")];
/// Workers, where there are not even more cores: who writes CGI counts on its running beside itself.
const WORKERS: usize = 4;
/// The settings of a directory's server.
const CONFIG: &str = "oribi.rb";
/// A CGI script. It wins over a rackup file.
const SCRIPT: &str = "server.cgi";
/// A rackup file.
const RACKUP: &str = "config.ru";
/// Our rackup file that serves a CGI script, among our Ruby files.
const CLASSIC: &str = "oribi/cgi/classic.ru";

const ABOUT: &str = "\
DIR has an index.cgi, which `oribi cgi install DIR` puts there, and a config.ru or a server.cgi.
The commands are for the user that the web server runs CGI as, and for root:
  sudo -u www-data oribi cgi status /var/www/app";

/// The commands, for clap.
pub fn subcommand() -> Command {
    let directory = || {
        let value = clap::value_parser!(PathBuf);
        Arg::new("directory").value_name("DIR").required(true).value_parser(value)
    };
    let command = |name: &'static str, about: &'static str| {
        Command::new(name).about(about).arg(directory().help("The directory of the app"))
    };
    Command::new("cgi")
        .about("Persistent CGI: serve a directory's app to its index.cgi, and look after that")
        .after_help(ABOUT)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .disable_help_subcommand(true)
        .subcommand(command("install", "Put index.cgi beside an app"))
        .subcommand(command("bundle", "Make a folder for a host that has only Ruby and CGI"))
        .subcommand(command("serve", "Serve until there has been nothing to do for a while"))
        .subcommand(command("status", "Say whether the server is alive (exit 0) or dead (exit 1)"))
        .subcommand(command("stop", "End the server once what runs and waits is finished"))
        .subcommand(command("restart", "Load the app anew without losing a request"))
}

/// Runs one of them.
pub fn run(matches: &ArgMatches) -> Result<ExitCode, String> {
    let Some((name, after)) = matches.subcommand() else { return Ok(ExitCode::FAILURE) };
    if ["install", "bundle"].contains(&name) {
        return Err(format!("`oribi cgi {name}` is the gem's: this is its binary alone"));
    }
    let named = after.get_one::<PathBuf>("directory").ok_or("no directory is named")?;
    let directory = run::canonical(named)?;
    let life = || RunDirectory::find(&directory).map_or(Ok(Life::Dead(None)), |run| run.life());
    match name {
        "serve" => serve(&directory),
        "status" => status(life()?),
        _ => tell(name, life),
    }
}

fn tell(name: &str, life: impl Fn() -> Result<Life, String>) -> Result<ExitCode, String> {
    while let Life::Alive(pid) = life()? {
        match remote::tell(name, pid) {
            // It was ending anyway.
            Err(_) if life()? != Life::Alive(pid) => {}
            told => return told,
        }
    }
    print("no server runs; the next request starts one");
    Ok(ExitCode::SUCCESS)
}

fn status(life: Life) -> Result<ExitCode, String> {
    let (line, code) = match life {
        Life::Alive(pid) => (format!("alive ({pid})"), ExitCode::SUCCESS),
        Life::Dead(Some(pid)) => (format!("dead ({pid})"), ExitCode::FAILURE),
        Life::Dead(None) => ("dead".into(), ExitCode::FAILURE),
    };
    print(&line);
    Ok(code)
}

fn serve(directory: &Path) -> Result<ExitCode, String> {
    let program = program(directory)?;
    let ruby = Ruby::find()?;
    let run = RunDirectory::prepare(directory)?;
    // Held until this process has ended, by nobody else.
    let _lock = run.become_server()?;
    let served = Served { directory: directory.into(), program, socket: run.socket(), ruby };
    let place = start::place(None, served.sources()?.settings()?.process.chdir.as_deref())?;
    let settings = served.settings(&place)?;
    let renewal = served.renewal(&place);
    let start = Start::new(settings, place, Vec::new(), None)?;
    supervise::run(Start { renewal: Some(renewal), ..start })
}

fn program(directory: &Path) -> Result<PathBuf, String> {
    let found = [SCRIPT, RACKUP].map(|name| directory.join(name)).into_iter().find(|p| p.is_file());
    let shown = directory.display();
    found.ok_or(format!("{shown} has neither {SCRIPT} nor {RACKUP}: put the app there"))
}

/// What a directory's server is for.
#[derive(Clone)]
struct Served {
    directory: PathBuf,
    program: PathBuf,
    socket: PathBuf,
    ruby: Ruby,
}

impl Served {
    /// What `oribi.rb` says; where clients come in and what is watched is not for it to say alone.
    fn sources(&self) -> Result<Sources, String> {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let say = |text: String| given([text], &Origin::CommandLine);
        let config = self.directory.join(CONFIG);
        let mut said = Layer::from([
            ("bind", say(format!("fastcgi+unix://{}", text(&self.socket)))),
            ("socket_mode", say("0600".into())),
            ("chdir", say(text(&self.directory))),
        ]);
        if config.is_file() {
            said.insert("config", say(text(&config)));
        }
        let is_script = self.program.ends_with(SCRIPT);
        let rackup = if is_script { self.ruby.lib().join(CLASSIC) } else { self.program.clone() };
        let mut sources = Sources::read(Line { said, rackup: None, mounts: Vec::new() })?;
        if let Some(mount) = sources.mounts.first() {
            return Err(mount.blame("an index.cgi serves one app: leave mounts out"));
        }
        sources.rackup = Some(rackup);
        let name =
            |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut watch = vec![name(&self.program), CONFIG.into()];
        if let Some(setting) = settings::find("watch") {
            watch.extend(Said(&sources.layers).all(setting).into_iter().map(|given| given.text));
        }
        sources.layers[0].insert("watch", given(watch, &Origin::CommandLine));
        sources.layers.push(defaults());
        Ok(sources)
    }

    fn settings(&self, place: &Place) -> Result<Settings, String> {
        let settings = self.sources()?.settings_at(place)?;
        let threads = settings.mounts[0].threads;
        if self.program.ends_with(SCRIPT) && threads > 1 {
            return Err(format!(
                "{}: threads is {threads}, but ENV and the streams that a CGI script uses are one \
                 for the whole process: take more workers instead",
                self.directory.join(CONFIG).display()
            ));
        }
        Ok(settings)
    }

    fn renewal(&self, place: &Place) -> Renewal {
        let (served, place) = (self.clone(), place.clone());
        let file = self.directory.join(CONFIG);
        Renewal { file, check: Box::new(move || served.settings(&place).map(drop)) }
    }
}

fn defaults() -> Layer {
    let origin = Origin::Handler("oribi cgi serve".into());
    let said = std::env::var_os("RACK_ENV").is_some();
    let ours = DEFAULTS.into_iter().filter(|(name, _)| *name != "environment" || !said);
    let workers = std::thread::available_parallelism().map_or(WORKERS, |n| n.get().max(WORKERS));
    let ours = ours.map(|(name, text)| (name, text.to_owned()));
    let ours = ours.chain([("workers", workers.to_string())]);
    ours.map(|(name, text)| (name, given([text], &origin))).collect()
}
