//! What must be there before anything runs: the directory, the user, the listeners, the pid file.

use crate::confine::Confinement;
use crate::daemon::Daemon;
use crate::listen::{self, Listener};
use crate::options::{Engine, Mount, Settings};
use crate::pid_file::PidFile;
use crate::place::Place;
use crate::privileges::Identity;
use crate::ruby::Ruby;
use crate::spawn::{Join, MoldLine};
use rustix::process::getpid;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Why a server that was given its sockets does not leave.
pub const KEPT: &str = "daemonize: start_server and systemd keep the server in the background \
                        themselves and watch the process they started: leave it out";

/// For a server that somebody starts again when it has ended.
pub struct Renewal {
    /// The file with its settings, watched like others. A change ends the server: what it listens
    /// on and how many workers there are is decided at the start.
    pub file: PathBuf,
    /// Whether the file would be accepted; if not, the server stays as it is.
    pub check: Box<dyn Fn() -> Result<(), String>>,
}

/// A server that could start to serve.
pub struct Start {
    /// What holds; its paths are absolute.
    pub settings: Settings,
    /// What makes molds.
    pub lines: Lines,
    /// Where its command line was given, if that can be read again.
    pub origin: Option<Place>,
    /// Where it is.
    pub place: Place,
    /// The calling process.
    pub join: Option<Join>,
    /// Where clients come in.
    pub listeners: Vec<Listener>,
    /// Where the front says how things are.
    pub admin: Vec<Listener>,
    /// Whom front, molds and workers run as; none: as this process.
    pub identity: Option<Identity>,
    /// The pid file, which says that this server is there.
    pub pid_file: Option<PidFile>,
    /// The process that waits until this one serves.
    pub daemon: Option<Daemon>,
    /// What ends it for another of new settings, if anything does.
    pub renewal: Option<Renewal>,
    /// When it began.
    pub began: Instant,
}

/// What makes the molds of mounts.
pub struct Lines {
    place: Place,
    /// The calling process's command line, which makes those of its app.
    again: Option<MoldLine>,
}

impl Lines {
    /// The command for a mount's molds.
    pub fn of(&self, mount: &Mount) -> Result<MoldLine, String> {
        if let Some(line) = &self.again {
            return Ok(line.clone());
        }
        let confinement = Confinement::of(mount)?;
        let place = match &mount.chdir {
            Some(directory) => Place::of(self.place.file(directory)),
            None => self.place.clone(),
        };
        if mount.engine == Engine::Mruby {
            return Ok(MoldLine::mruby(place, confinement));
        }
        let line = MoldLine::ours(&Ruby::find()?, place, confinement);
        Ok(line.with(mount.bundle().into_iter().flatten()))
    }
}

/// Where the server is to be: where it was started, or in `chdir`. Goes there.
pub fn place(join: Option<&Join>, chdir: Option<&Path>) -> Result<Place, String> {
    let here = match join {
        Some(join) => Place::of(join.directory.clone()),
        None => Place::here().map_err(|error| format!("the present directory is gone: {error}"))?,
    };
    match chdir {
        Some(directory) => here.change(directory),
        None => Ok(here),
    }
}

impl Start {
    /// Makes everything ready but the waiting process and the renewal, which are the caller's to add.
    pub fn new(
        settings: Settings,
        place: Place,
        inherited: Vec<Listener>,
        join: Option<Join>,
    ) -> Result<Start, String> {
        let began = Instant::now();
        let process = &settings.process;
        let identity = Identity::find(process.user.as_deref(), process.group.as_deref())?;
        let confinement = Confinement::of(&settings.mounts[0])?;
        let listeners =
            listen::open(inherited, &settings.binds, &settings.listening, identity.as_ref())?;
        let admin = listen::open_admin(&process.admin, settings.listening.socket_mode)?;
        let pid = join.as_ref().map_or(getpid(), |join| join.pid);
        let succeeds = listen::started_by_start_server();
        let pid_file = process.pid_file.clone();
        let pid_file = pid_file.map(|path| PidFile::write(path, pid, succeeds)).transpose()?;
        let again = match &join {
            Some(join) => Some(MoldLine::again(join, &Ruby::find()?, confinement)),
            None => None,
        };
        let lines = Lines { place: place.clone(), again };
        let (daemon, renewal) = (None, None);
        Ok(Start {
            settings,
            lines,
            origin: None,
            place,
            join,
            listeners,
            admin,
            identity,
            pid_file,
            daemon,
            renewal,
            began,
        })
    }
}
