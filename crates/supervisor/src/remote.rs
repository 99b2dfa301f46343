//! The commands that speak to a running server: `oribi status`, `stop`, `restart`, `rollback`,
//! `scale`, `reload`, `mount`, `reopen-logs`.

mod find;
mod show;

use crate::answer::print;
use crate::control::status::Status;
use crate::control::{Reply, Request, line};
use crate::memory;
use clap::{Arg, ArgAction, ArgMatches, Command};
use find::Wanted;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// What a server gets to answer what it need not think about.
const ANSWER: Duration = Duration::from_secs(10);
/// What it gets for what takes its time, where nobody says otherwise.
const LONG: Duration = Duration::from_secs(600);
/// What a server gets to start before it is told something else.
const START: Duration = Duration::from_secs(60);
/// How often it is asked whether it has.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// What processes get to end once the connection to them has.
const LAST_WAIT: Duration = Duration::from_secs(10);

const WHICH: &str = "\
Without --control and --pid it is your only server that runs; of several, the one that was
started in the present directory.";

/// The commands, for clap.
pub fn subcommands() -> [Command; 8] {
    [
        command("status", "Show workers, what they do, and what waits", STATUS)
            .arg(flag("json", "Print JSON, as docs/control.md describes it")),
        command("stop", "End the server, or one mount, once what runs and waits is finished", STOP)
            .arg(mount("Only this mount, by its name or path"))
            .arg(flag("now", "End at once: what runs is cut off").conflicts_with("mount"))
            .arg(timeout("600")),
        command(
            "restart",
            "Boot a new generation and switch to it without losing a request",
            RESTART,
        )
        .arg(mount("Only this mount, by its name or path"))
        .arg(timeout("600")),
        command("rollback", "Switch back to the generation that served before", ROLLBACK)
            .arg(mount("Of which mount, where there are several"))
            .arg(timeout("60")),
        command("scale", "Have so many workers from now on", SCALE).arg(
            Arg::new("words")
                .value_name("[MOUNT] N")
                .num_args(1..=2)
                .required(true)
                .help("Worker processes, and of which mount, where there are several"),
        ),
        command("reload", "Read the settings anew and do what has changed", RELOAD)
            .arg(timeout("600")),
        command("mount", "Add a mount while the others serve", MOUNT)
            .arg(
                Arg::new("mount")
                    .value_name("[HOST]/PATH=FILE")
                    .required(true)
                    .help("Where it lies, and its rackup file"),
            )
            .arg(timeout("600")),
        command("reopen-logs", "Open the log files again after they have been renamed", REOPEN),
    ]
}

const STATUS: &str = "\
Examples:
  oribi status                            your server
  oribi status --pid 1234                 one of several
  oribi status --json | jq .mounts[0].queue.waiting";
const STOP: &str = "\
Examples:
  oribi stop              returns when the server is gone
  oribi stop --now        does not wait for what runs
  oribi stop shop         only the mount of this name; the others serve on";
const RESTART: &str = "\
Examples:
  oribi restart                   exit 0: the new generation serves
                                  exit 1: it did not boot, the old one serves on
  oribi restart shop              only the mount of this name
  oribi restart --timeout 120";
const ROLLBACK: &str = "\
Examples:
  oribi --rollback-window 300 ...     a server that holds the old generation for five minutes
  oribi restart && ./smoke-test || oribi rollback";
const SCALE: &str = "\
Examples:
  oribi scale 8
  oribi scale shop 8";
const RELOAD: &str = "\
Examples:
  oribi reload            new mounts come, others go, changed ones restart; what is wrong
                          changes nothing";
const MOUNT: &str = "\
Examples:
  oribi mount /blog=blog/config.ru
  oribi mount blog.example/=blog/config.ru";
const REOPEN: &str = "\
Examples:
  mv access.log access.log.1 && oribi reopen-logs";

fn command(name: &'static str, about: &'static str, examples: &str) -> Command {
    let control = Arg::new("control").long("control").value_name("FILE");
    let pid = Arg::new("pid").long("pid").value_name("PID").value_parser(clap::value_parser!(u32));
    Command::new(name)
        .about(about)
        .after_help(format!("{WHICH}\n\n{examples}"))
        .arg(control.help("Its control socket").value_parser(clap::value_parser!(PathBuf)))
        .arg(pid.help("Its pid").conflicts_with("control"))
}

fn flag(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).action(ArgAction::SetTrue).help(help)
}

fn mount(help: &'static str) -> Arg {
    Arg::new("mount").value_name("MOUNT").help(help)
}

fn timeout(default: &'static str) -> Arg {
    Arg::new("timeout")
        .long("timeout")
        .value_name("SECONDS")
        .default_value(default)
        .value_parser(clap::value_parser!(u64).range(1..=86_400))
        .help("How long to wait for it")
}

/// Runs one of them. `before` is what stood before its name on the command line.
pub fn run(name: &str, before: &ArgMatches, matches: &ArgMatches) -> Result<ExitCode, String> {
    let control = matches.get_one::<PathBuf>("control").cloned();
    let control = control.or_else(|| before.get_one::<String>("control").map(PathBuf::from));
    let wanted = match (control, matches.get_one("pid")) {
        (Some(path), _) => Wanted::Socket(path),
        (None, Some(pid)) => Wanted::Pid(*pid),
        (None, None) => Wanted::Any,
    };
    let path = find::find(&wanted)?;
    let patience = matches.try_get_one("timeout").ok().flatten();
    let patience = patience.map_or(ANSWER, |seconds| Duration::from_secs(*seconds));
    let mount = matches.try_get_one::<String>("mount").ok().flatten().cloned();
    let request = match name {
        "status" => return status(&path, matches.get_flag("json")),
        "stop" if mount.is_none() => return stop(&path, matches.get_flag("now"), patience),
        "stop" => Request::Stop { now: false, mount },
        "restart" => Request::Restart { mount },
        "rollback" => Request::Rollback { mount },
        "scale" => scale(matches)?,
        "reload" | "mount" => Request::Reload { mount },
        _ => Request::ReopenLogs,
    };
    ask(&path, &request, patience)
}

/// `N`, or `MOUNT N`.
fn scale(matches: &ArgMatches) -> Result<Request, String> {
    let words: Vec<&String> = matches.get_many("words").into_iter().flatten().collect();
    let (mount, count) = match words[..] {
        [mount, count] => (Some(mount.clone()), count),
        [count] => (None, count),
        _ => return Err("scale: name the number of workers".into()),
    };
    let workers = count.parse().map_err(|_| format!("scale: {count:?} is no number of workers"))?;
    Ok(Request::Scale { workers, mount })
}

/// `stop` or `restart`, for a server whose pid somebody knows. One that starts is waited for: it has
/// clients already, whom it would lose.
pub fn tell(name: &str, pid: u32) -> Result<ExitCode, String> {
    let until = Instant::now() + START;
    let has_time = || Instant::now() < until && Path::new(&format!("/proc/{pid}")).exists();
    let path = loop {
        let path = find::find(&Wanted::Pid(pid));
        let starts = path
            .as_ref()
            .map_or(Ok(true), |path| find::ask(path).map(|status| status.state == "starting"));
        if !(starts? && has_time()) {
            break path?;
        }
        std::thread::sleep(LOOK_EVERY);
    };
    match name {
        "stop" => stop(&path, false, LONG),
        _ => ask(&path, &Request::Restart { mount: None }, LONG),
    }
}

fn ask(path: &Path, request: &Request, patience: Duration) -> Result<ExitCode, String> {
    match Answer::to(path, request, patience)?.last()? {
        Some(Reply::Done(word)) => {
            print(&word);
            Ok(ExitCode::SUCCESS)
        }
        Some(Reply::Failed(why)) => Err(why),
        _ => Err("the server ended before it had answered: see its log".into()),
    }
}

fn status(path: &Path, json: bool) -> Result<ExitCode, String> {
    let mut status = find::ask(path)?;
    for process in status.processes() {
        process.pss = process.pid.and_then(|pid| memory::pss(pid).ok());
    }
    let text = if json {
        serde_json::to_string_pretty(&status).map_err(|error| error.to_string())?
    } else {
        show::text(&status, show::width())
    };
    print(text.trim_end());
    Ok(ExitCode::SUCCESS)
}

/// The last line never comes: the connection ends with the server. Its processes end just after.
fn stop(path: &Path, now: bool, patience: Duration) -> Result<ExitCode, String> {
    let status = find::ask(path)?;
    let processes = pidfds(&status);
    match Answer::to(path, &Request::Stop { now, mount: None }, patience)?.last()? {
        Some(Reply::Failed(why)) => return Err(why),
        Some(_) => return Err("the server gave an answer that nobody asked for".into()),
        None => {}
    }
    let until = Instant::now() + LAST_WAIT;
    processes.iter().for_each(|process| wait_for_end(process, until));
    print(&format!("the server (pid {}) has ended", status.pid));
    Ok(ExitCode::SUCCESS)
}

/// Under rackup the supervisor is not the process that people know.
fn pidfds(status: &Status) -> Vec<OwnedFd> {
    let pids = [status.supervisor, status.pid].map(|pid| i32::try_from(pid).ok());
    let pids = pids.into_iter().flatten().filter_map(Pid::from_raw);
    pids.filter_map(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()).collect()
}

fn wait_for_end(process: &OwnedFd, until: Instant) {
    let left = until.saturating_duration_since(Instant::now());
    let left = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
    let _ = poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&left));
}

/// What a server answers, line by line.
struct Answer {
    lines: BufReader<UnixStream>,
    path: PathBuf,
    until: Instant,
}

impl Answer {
    /// Asks. Fails with a line that says what to do.
    fn to(path: &Path, request: &Request, patience: Duration) -> Result<Answer, String> {
        let mut socket = find::connect(path)?;
        match socket.write_all(&line(request)) {
            // It has refused us already, and said why.
            Err(error) if error.kind() != ErrorKind::BrokenPipe => {
                return Err(format!("{}: {error}", path.display()));
            }
            _ => {}
        }
        let until = Instant::now() + patience;
        Ok(Answer { lines: BufReader::new(socket), path: path.into(), until })
    }

    /// The line that is no progress; none if the server ends instead.
    fn last(&mut self) -> Result<Option<Reply>, String> {
        loop {
            match self.next()? {
                Some(Reply::Progress(word)) => print(&word),
                other => return Ok(other),
            }
        }
    }

    fn next(&mut self) -> Result<Option<Reply>, String> {
        let path = self.path.display();
        let left = self.until.saturating_duration_since(Instant::now());
        let socket = self.lines.get_ref();
        // No time at all would mean all the time there is.
        let limit = socket.set_read_timeout(Some(left.max(Duration::from_millis(1))));
        limit.map_err(|error| format!("{path}: {error}"))?;
        let mut text = Vec::new();
        match self.lines.read_until(b'\n', &mut text) {
            Ok(0) => Ok(None),
            Ok(_) => serde_json::from_slice(&text).map(Some).map_err(|error| {
                format!("{path}: not an answer that this version of oribi understands: {error}")
            }),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                Err("no answer in time; it may still come about: see oribi status".into())
            }
            // It was killed.
            Err(error) if error.kind() == ErrorKind::ConnectionReset => Ok(None),
            Err(error) => Err(format!("{path}: {error}")),
        }
    }
}
