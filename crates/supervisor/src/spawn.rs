//! Starting processes: which command, which environment, which fds.

use crate::channel::Channel;
use crate::confine::{self, CONFINEMENT, Confinement};
use crate::daemon::DAEMON;
use crate::inherit;
use crate::place::Place;
use crate::ruby::Ruby;
use crate::{listen, notify};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{
    Pid, PidfdFlags, Signal, getpid, getppid, pidfd_open, set_parent_process_death_signal,
};
use serde_json::Value;
use std::ffi::{OsStr, OsString};
use std::io::{self, PipeReader};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use wire::control::{FRONT_SETUP, MOLD_FD, MRUBY_MOLD};

/// Set for a process that only ties its life to its parent's and becomes the command in its
/// arguments; the value is the parent's pid.
pub const LAUNCH: &str = "ORIBI_LAUNCH";
/// The pid of the process that is to become a mold: its children do not speak for it.
const BOOT: &str = "ORIBI_BOOT";
/// What RUBYOPT was before we had something to add.
const RUBYOPT: &str = "ORIBI_RUBYOPT";
/// The fd of the socket of a mold that a calling process has forked already.
pub const JOIN: &str = "ORIBI_JOIN";
/// The pid of that calling process.
pub const CALLER: &str = "ORIBI_CALLER";
/// Its command line and directory, as JSON.
pub const COMMAND: &str = "ORIBI_COMMAND";
/// Set for a process that only says what the settings are.
pub const REREAD: &str = "ORIBI_REREAD";

/// Not by name: after an upgrade the name leads to another version.
const OURSELVES: &str = "/proc/self/exe";

/// A process of ours.
pub struct Spawned {
    /// Its pid.
    pub pid: Pid,
    /// To see it die and to kill it.
    pub pidfd: OwnedFd,
    /// To talk to it.
    pub channel: Channel,
}

/// What a calling process (`rackup -s Oribi`) hands over.
pub struct Join {
    /// The socket of the mold it has forked.
    pub mold: OwnedFd,
    /// Its own pidfd: the server ends when it does.
    pub caller: OwnedFd,
    /// Its pid, which people send signals to.
    pub pid: Pid,
    argv: Vec<OsString>,
    /// Where it was started.
    pub directory: PathBuf,
}

impl Join {
    /// Reads the variables the handler sets; none when the server was started by itself.
    pub fn from_environment() -> Result<Option<Join>, String> {
        let Ok(mold) = std::env::var(JOIN) else { return Ok(None) };
        Join::read(&mold)
            .map(Some)
            .map_err(|error| format!("cannot join the calling process: {error}"))
    }

    fn read(mold: &str) -> io::Result<Join> {
        let other = |what: &'static str| io::Error::other(what);
        let mold = inherit::take(mold.parse().map_err(|_| other("no socket"))?)?;
        let pid = std::env::var(CALLER).ok().and_then(|pid| pid.parse().ok());
        let pid = pid.and_then(Pid::from_raw).ok_or(other("no pid"))?;
        let caller = pidfd_open(pid, PidfdFlags::empty())?;
        // Were it dead already, the pid could be somebody else's by now.
        if getppid() != Some(pid) {
            return Err(other("it is gone"));
        }
        let command: Value = serde_json::from_str(&std::env::var(COMMAND).unwrap_or_default())?;
        let words = command["argv"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let argv: Vec<OsString> = words.map(OsString::from).collect();
        let directory = PathBuf::from(command["directory"].as_str().unwrap_or("."));
        if argv.is_empty() {
            return Err(other("no command line"));
        }
        Ok(Join { mold, caller, pid, argv, directory })
    }
}

/// The command that makes a mold.
#[derive(Clone)]
pub struct MoldLine {
    argv: Vec<OsString>,
    place: Place,
    /// What its process may do.
    pub confinement: Confinement,
    /// What Ruby is to load first, in the form of RUBYOPT.
    first: Option<OsString>,
    variables: Vec<(&'static str, OsString)>,
}

impl MoldLine {
    /// Our own: a Ruby that loads a rackup file.
    pub fn ours(ruby: &Ruby, place: Place, confinement: Confinement) -> MoldLine {
        let argv = ruby.line("oribi/mold", "Oribi::Mold.start");
        MoldLine { argv, place, confinement, first: None, variables: Vec::new() }
    }

    /// This binary as a mold of mruby. Its command line has room for a title.
    pub fn mruby(place: Place, confinement: Confinement) -> MoldLine {
        let argv = vec![OURSELVES.into(), " ".repeat(80).into()];
        let variables = vec![(MRUBY_MOLD, "1".into())];
        MoldLine { argv, place, confinement, first: None, variables }
    }

    /// The calling process's command line once more; our handler joins as a mold when it gets
    /// there.
    pub fn again(join: &Join, ruby: &Ruby, confinement: Confinement) -> MoldLine {
        let file = ruby.lib().join("oribi/confession.rb");
        // RUBYOPT has no way to write a blank.
        let first = file.to_str().filter(|path| !path.contains(char::is_whitespace));
        let first = first.map(|path| format!("-r{path}").into());
        let place = Place::of(join.directory.clone());
        MoldLine { argv: join.argv.clone(), place, confinement, first, variables: Vec::new() }
    }

    /// The program, for messages.
    pub fn program(&self) -> String {
        self.argv[0].to_string_lossy().into_owned()
    }

    /// Where it is run, for messages too.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// With these variables too.
    pub fn with(self, variables: impl IntoIterator<Item = (&'static str, OsString)>) -> MoldLine {
        MoldLine { variables: variables.into_iter().collect(), ..self }
    }
}

/// This binary as another process, which is told nothing of what this one was told.
pub fn this_binary() -> Command {
    let mut command = Command::new(OURSELVES);
    let told = [JOIN, CALLER, COMMAND, MOLD_FD, FRONT_SETUP, DAEMON];
    for variable in told.into_iter().chain(listen::VARIABLES).chain(notify::VARIABLES) {
        command.env_remove(variable);
    }
    command
}

/// Spawns with these fds open in the child. Nothing else in this process spawns meanwhile: it has
/// one thread.
pub fn spawn_with(fds: &[BorrowedFd], command: &mut Command) -> io::Result<(Pid, OwnedFd)> {
    for fd in fds {
        fcntl_setfd(fd, FdFlags::empty())?;
    }
    let spawned = command.spawn();
    for fd in fds {
        fcntl_setfd(fd, FdFlags::CLOEXEC)?;
    }
    // Reaped by pid in the supervisor's loop; until then the pid cannot be anybody else's.
    let pid = Pid::from_child(&spawned?);
    Ok((pid, pidfd_open(pid, PidfdFlags::empty())?))
}

/// Starts a front. `setup` is all of its JSON but the control socket.
pub fn front(mut setup: Value, fds: &[BorrowedFd]) -> io::Result<Spawned> {
    use std::os::fd::AsFd;
    let (channel, theirs) = Channel::pair()?;
    setup["control"] = theirs.as_raw_fd().into();
    let mut command = this_binary();
    // A group of its own: what a terminal sends to its foreground group is not for the front.
    command
        .arg0("oribi: front")
        .env(FRONT_SETUP, setup.to_string())
        .stdin(Stdio::null())
        .process_group(0);
    let fds: Vec<BorrowedFd> = fds.iter().copied().chain([theirs.as_fd()]).collect();
    let (pid, pidfd) = spawn_with(&fds, &mut command)?;
    Ok(Spawned { pid, pidfd, channel })
}

/// Starts a mold. It stays in the supervisor's process group, so that a debugger in the app can
/// read from the terminal.
pub fn mold(line: &MoldLine) -> io::Result<Spawned> {
    use std::os::fd::AsFd;
    let (channel, theirs) = Channel::pair()?;
    let mut command = this_binary();
    command
        .arg0("oribi: mold")
        .args(&line.argv)
        .env(LAUNCH, getpid().as_raw_nonzero().to_string())
        .env(MOLD_FD, theirs.as_raw_fd().to_string());
    line.place.enter(&mut command);
    command.envs(line.variables.iter().map(|(name, value)| (name, value)));
    if !line.confinement.is_none() {
        let confinement = &line.confinement;
        command.env(CONFINEMENT, confinement.to_json().to_string()).envs(confinement.variables());
    }
    if let Some(first) = &line.first {
        let others = std::env::var_os("RUBYOPT").unwrap_or_default();
        let both = [first.clone(), others.clone()].join(OsStr::new(" "));
        command.env("RUBYOPT", both).env(RUBYOPT, others);
    }
    let (pid, pidfd) = spawn_with(&[theirs.as_fd()], &mut command)?;
    Ok(Spawned { pid, pidfd, channel })
}

/// This program once more, with the same command line, to read the settings and say them as JSON
/// (`command::reread`), in a process group of its own with the Ruby that it needs. `more` are mounts
/// beside those that the command line names.
pub fn reread(place: &Place, more: &[String]) -> io::Result<(Pid, PipeReader)> {
    let (ours, theirs) = std::io::pipe()?;
    let mut command = this_binary();
    command
        .arg0("oribi: settings")
        .args(std::env::args_os().skip(1))
        .args(more.iter().flat_map(|mount| ["--mount", mount]))
        .env(REREAD, "1")
        .stdin(Stdio::null())
        .stdout(theirs)
        .process_group(0);
    place.enter(&mut command);
    // Reaped in the supervisor's loop, which asks nobody how it ended.
    let reader = Pid::from_child(&command.spawn()?);
    Ok((reader, ours))
}

/// Becomes the command in the arguments, to be killed when the parent dies: until a mold watches
/// the supervisor itself, it may load an app for a long time.
pub fn launch(parent: &str) -> ExitCode {
    if let Err(error) = confine::take_on() {
        crate::answer::say(&error);
        return ExitCode::FAILURE;
    }
    // Only now: a change of user undoes it.
    let tied = set_parent_process_death_signal(Some(Signal::KILL));
    let alive = getppid().map(|pid| pid.as_raw_nonzero().to_string());
    if tied.is_err() || alive.as_deref() != Some(parent) {
        return ExitCode::FAILURE;
    }
    let mut words = std::env::args_os().skip(1);
    let Some(program) = words.next() else { return ExitCode::FAILURE };
    let mut command = Command::new(&program);
    command.args(words).env_remove(LAUNCH).env_remove(CONFINEMENT);
    if std::env::var_os(RUBYOPT).is_some() {
        command.env(BOOT, getpid().as_raw_nonzero().to_string());
    }
    let error = command.exec();
    crate::answer::say(&format!(
        "cannot run {}: {error}: install Ruby, or name one in {}",
        program.to_string_lossy(),
        crate::ruby::RUBY
    ));
    ExitCode::FAILURE
}
