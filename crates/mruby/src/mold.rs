//! The mold of an mruby mount: this binary again, which loads the app and forks workers. What it says
//! and is told is `wire::control`; lib/oribi/mold.rb is its fellow for CRuby.

use crate::app::{App, Env, Init, Plan, Source};
use crate::channel::Channel;
use crate::crew::become_worker;
use crate::exception::Exception;
use crate::process::{fork, inherited};
use crate::worker::{Level, Worker, limits};
use crate::{log, title};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, WaitOptions, getpid, pidfd_open, waitpid};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::os::fd::{AsFd, OwnedFd};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Instant;
use wire::Segment;
use wire::control::{FromMold, MOLD_FD, ToMold};
use wire::counters::Counters;
use worker::{Fronts, Timeouts};

/// Signals that are the supervisor's business even when the whole group gets them.
const SIGNALS: [i32; 8] = {
    use signal_hook::consts::*;
    [SIGTERM, SIGINT, SIGQUIT, SIGHUP, SIGUSR1, SIGUSR2, SIGTTIN, SIGTTOU]
};

/// A reason to end, which the supervisor is told where there is one.
pub(crate) type Ended = Result<(), String>;

/// Everything that workers inherit.
pub(crate) struct Inherited {
    pub init: Value,
    pub segment: &'static Segment,
    pub supervisor: OwnedFd,
    pub fronts: Fronts,
    pub plan: Arc<Plan>,
    pub level: Level,
    /// TERM or QUIT has come.
    pub told_to_leave: Arc<AtomicBool>,
}

impl Inherited {
    pub(crate) fn number(&self, name: &str) -> u64 {
        self.init[name].as_u64().unwrap_or(0)
    }

    pub(crate) fn threads(&self) -> u16 {
        self.number("threads").clamp(1, 1024) as u16
    }

    pub(crate) fn title(&self, role: &str) {
        let mount = self.init["mount"].as_str().unwrap_or("/");
        title::set(&format!("oribi: {role} gen {} {mount}", self.number("generation")));
    }

    pub(crate) fn timeouts(&self) -> Timeouts {
        let of = |name: &str| {
            let seconds = self.init[name].as_f64().filter(|seconds| *seconds > 0.0)?;
            std::time::Duration::try_from_secs_f64(seconds).ok()
        };
        Timeouts { hard: of("request_timeout"), soft: None }
    }
}

/// Is the mold that the environment describes until it is told to quit. `embedded` are rackups of the
/// program's own by their mounts' names, and what it defines for them.
pub fn run(embedded: impl Fn(&str) -> Option<(Option<String>, Option<Init>)>) -> ExitCode {
    let Some(socket) = inherited(MOLD_FD) else {
        log::raw("oribi: a mold is started by its supervisor\n");
        return ExitCode::FAILURE;
    };
    let channel = Channel::new(socket);
    match serve(&channel, embedded) {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            let reason: String = reason.replace('\n', " ").chars().take(2000).collect();
            let _ = channel.say(&FromMold::Failed { reason }, None);
            ExitCode::FAILURE
        }
    }
}

fn serve(
    channel: &Channel,
    embedded: impl Fn(&str) -> Option<(Option<String>, Option<Init>)>,
) -> Ended {
    let told_to_leave = Arc::new(AtomicBool::new(false));
    for signal in SIGNALS {
        let flag = match signal {
            signal_hook::consts::SIGTERM | signal_hook::consts::SIGQUIT => told_to_leave.clone(),
            _ => Arc::default(),
        };
        signal_hook::flag::register(signal, flag).map_err(|error| error.to_string())?;
    }
    let pid = getpid();
    let own = pidfd_open(pid, PidfdFlags::empty()).map_err(|error| error.to_string())?;
    let pid = pid.as_raw_nonzero().get() as u32;
    channel.say(&FromMold::Hello { pid }, Some(own.as_fd()))?;
    let (message, fds) = channel.hear()?;
    let ToMold::Init(json) = message else { return Err("the first word was not init".into()) };
    let began = Instant::now();
    let inherited = take_init(&json, fds.into(), told_to_leave, embedded)?;
    inherited.title("mold");
    let app = Worker::prepare(&inherited.plan, inherited.level).map_err(|error| {
        log::exception("", json!({}), &error);
        let place = error.backtrace().first().map_or(String::new(), |at| format!(" ({at})"));
        format!("{}: {}{place}", error.class_name(), error.message())
    })?;
    let milliseconds = began.elapsed().as_millis() as u64;
    let release = crate::release();
    let (major, minor, teeny) = (release / 10000, release / 100 % 100, release % 100);
    let ruby = format!("{major}.{minor}.{teeny}");
    channel.say(&FromMold::Ready { milliseconds, ruby }, None)?;
    Mold { channel, inherited, app: Some(app), workers: Vec::new(), leaving: false }.obey()
}

fn take_init(
    json: &str,
    mut fds: VecDeque<OwnedFd>,
    told_to_leave: Arc<AtomicBool>,
    embedded: impl Fn(&str) -> Option<(Option<String>, Option<Init>)>,
) -> Result<Inherited, String> {
    let init: Value = serde_json::from_str(json).map_err(|error| error.to_string())?;
    if let Some(directory) = init["chdir"].as_str() {
        std::env::set_current_dir(directory).map_err(|error| format!("chdir: {error}"))?;
    }
    if let Some(mark) = init["error_log"].as_str()
        && let Some(socket) = fds.pop_back()
    {
        let _ = rustix::stdio::dup2_stderr(&socket);
        if init["error_log_format"] == "json" {
            log::records(mark, json!({ "role": "mold", "generation": init["generation"] }));
        }
    }
    let missing = || "init has too few fds: binary and supervisor differ".to_string();
    let segment = fds.pop_front().ok_or_else(missing)?;
    let supervisor = fds.pop_front().ok_or_else(missing)?;
    let bell = fds.pop_front().ok_or_else(missing)?;
    let segment = Segment::open(segment).map_err(|error| error.to_string())?.forever();
    let counters = fds.pop_front().ok_or_else(missing)?;
    let counters = Counters::open(counters).map_err(|error| error.to_string())?;
    crate::gems::counters::use_memory(counters);
    let exchanges = fds.split_off(fds.len() / 2);
    let leak = |fds: VecDeque<OwnedFd>| -> &'static [OwnedFd] { Vec::from(fds).leak() };
    let fronts = Fronts {
        bells: leak(fds),
        exchanges: leak(exchanges),
        supervisor: Box::leak(Box::new(bell)),
    };
    let level = match init["isolation"].as_str() {
        Some("fresh") => Level::Fresh,
        // The limit is in the segment, for each worker its own.
        _ => Level::Prefork(0),
    };
    let own = embedded(init["mount"].as_str().unwrap_or("/")).unwrap_or_default();
    let rackup = init["rackup"].as_str().unwrap_or("config.ru");
    let source = match own.0 {
        Some(text) => Source::Text(init["mount"].as_str().unwrap_or("/").into(), text),
        None => Source::File(rackup.into()),
    };
    let many = init["workers"].as_u64().unwrap_or(1) * init["threads"].as_u64().unwrap_or(1) > 1;
    let env = Env { multiprocess: many, run_once: level == Level::Fresh };
    let memory = limits(init["limit_memory"].as_u64().unwrap_or(0));
    let plan = Plan::new(source, memory, env, own.1);
    Ok(Inherited { init, segment, supervisor, fronts, plan, level, told_to_leave })
}

struct Mold<'a> {
    channel: &'a Channel,
    inherited: Inherited,
    /// What workers begin with. A worker takes it out.
    app: Option<App>,
    workers: Vec<(u16, Pid, OwnedFd)>,
    leaving: bool,
}

impl Mold<'_> {
    fn obey(mut self) -> Ended {
        while !(self.leaving && self.workers.is_empty()) {
            let socket = self.channel.fd();
            let mut fds = vec![PollFd::new(&socket, PollFlags::IN)];
            fds.extend(self.workers.iter().map(|(_, _, pidfd)| PollFd::new(pidfd, PollFlags::IN)));
            match poll(&mut fds, None) {
                Ok(_) => {}
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => return Err(error.to_string()),
            }
            let talks = !fds[0].revents().is_empty();
            let dead: Vec<usize> = (1..fds.len())
                .filter(|at| !fds[*at].revents().is_empty())
                .map(|at| at - 1)
                .collect();
            for index in dead.into_iter().rev() {
                self.reap(index)?;
            }
            if talks {
                self.hear()?;
            }
        }
        Ok(())
    }

    fn hear(&mut self) -> Ended {
        match self.channel.hear()?.0 {
            ToMold::Fork { nr, seat } => self.fork(nr, seat),
            ToMold::Quit => {
                self.leaving = true;
                Ok(())
            }
            ToMold::Serve => Ok(()),
            ToMold::Init(_) => Err("init came twice".into()),
        }
    }

    /// The worker waits at a gate until the supervisor has been told of it: should the mold die in
    /// between, there must be no worker on seats that the supervisor believes free.
    fn fork(&mut self, nr: u16, seat: u16) -> Ended {
        let io = |error: std::io::Error| error.to_string();
        let (gate, opener) = std::io::pipe().map_err(io)?;
        // A signal to the mold is not one to the worker.
        self.inherited.told_to_leave.store(false, Relaxed);
        let child = match fork() {
            Ok(Some(pid)) => pid,
            Ok(None) => {
                drop(opener);
                self.workers.clear();
                let app = self.app.take();
                let code = become_worker(&self.inherited, self.channel, app, nr, seat, gate);
                // Nothing of the mold's is to run in a worker.
                std::process::exit(code)
            }
            Err(error) => {
                let reason = format!("fork: {error}");
                return self.channel.say(&FromMold::Unfit { nr, reason }, None);
            }
        };
        drop(gate);
        let pidfd = pidfd_open(child, PidfdFlags::empty()).map_err(|error| error.to_string())?;
        let pid = child.as_raw_nonzero().get() as u32;
        self.channel.say(&FromMold::Forked { nr, pid }, Some(pidfd.as_fd()))?;
        // Should it be dead already, its pidfd says so.
        let _ = rustix::io::write(&opener, b"!");
        self.workers.push((nr, child, pidfd));
        Ok(())
    }

    fn reap(&mut self, index: usize) -> Ended {
        let (nr, pid, _) = self.workers.remove(index);
        let status = match waitpid(Some(pid), WaitOptions::empty()) {
            Ok(Some((_, status))) => match (status.exit_status(), status.terminating_signal()) {
                (Some(code), _) => format!("exit {code}"),
                (_, Some(signal)) => format!("signal {signal}"),
                _ => "unknown".into(),
            },
            _ => "unknown".into(),
        };
        let pid = pid.as_raw_nonzero().get() as u32;
        self.channel.say(&FromMold::Reaped { nr, pid, status }, None)
    }
}

/// What an exception is on one line, for `unfit`.
pub(crate) fn line(error: &Exception) -> String {
    format!("{}: {}", error.class_name(), error.message()).replace('\n', " ")
}
