//! Which server is meant.

use super::Answer;
use crate::answer::say;
use crate::control::status::Status;
use crate::control::{Reply, Request, runtime};
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What a server gets to say who it is.
const PATIENCE: Duration = Duration::from_secs(5);

/// What the command line says.
#[derive(Clone, Debug)]
pub enum Wanted {
    /// The one that listens there.
    Socket(PathBuf),
    /// The one of this pid.
    Pid(u32),
    /// The one there is.
    Any,
}

/// A server that listens.
struct Server {
    path: PathBuf,
    /// As its socket is named.
    pid: u32,
    /// None: it does not answer.
    status: Option<Status>,
}

/// The path of its control socket. Removes the sockets of servers that were killed.
pub fn find(wanted: &Wanted) -> Result<PathBuf, String> {
    match wanted {
        Wanted::Socket(path) => Ok(path.clone()),
        Wanted::Pid(pid) => of_pid(*pid),
        Wanted::Any => {
            let directories = runtime::directories(runtime::uid());
            let servers = servers(&directories, runtime::uid());
            choose(servers, std::env::current_dir().ok(), &directories)
        }
    }
}

/// Its state.
pub fn ask(path: &Path) -> Result<Status, String> {
    match Answer::to(path, &Request::Status, PATIENCE)?.last()? {
        Some(Reply::Status(status)) => Ok(*status),
        Some(Reply::Failed(why)) => Err(why),
        _ => Err(format!("{}: the server does not say how it is", path.display())),
    }
}

/// Connects, or says what to do.
pub fn connect(path: &Path) -> Result<UnixStream, String> {
    UnixStream::connect(path).map_err(|error| {
        let name = path.display();
        match error.kind() {
            ErrorKind::ConnectionRefused | ErrorKind::NotFound => {
                format!("no server listens on {name}: is it running, and was it started with that?")
            }
            ErrorKind::PermissionDenied => {
                format!("{name}: not allowed: be the user the server was started by, or root")
            }
            _ => format!("{name}: {error}"),
        }
    })
}

fn of_pid(pid: u32) -> Result<PathBuf, String> {
    let owner = fs::metadata(format!("/proc/{pid}")).map(|found| found.uid());
    let owner = owner.map_err(|_| format!("there is no process {pid}"))?;
    // Under rackup somebody may name the supervisor, which the socket is not called by.
    let directories = runtime::directories(owner);
    let is_meant = |server: &Server| {
        server.pid == pid || server.status.as_ref().is_some_and(|status| status.supervisor == pid)
    };
    let found = servers(&directories, owner).into_iter().find(is_meant);
    found.map(|server| server.path).ok_or_else(|| {
        format!(
            "process {pid} has no control socket in {}: name it with --control",
            list(&directories)
        )
    })
}

fn servers(directories: &[PathBuf], uid: u32) -> Vec<Server> {
    let mut found = Vec::new();
    for directory in directories.iter().filter(|directory| directory.exists()) {
        if let Err(why) = runtime::trustworthy(directory, uid) {
            say(&format!("not looked into: {why}"));
            continue;
        }
        for (pid, path) in runtime::sockets(directory) {
            if !matches!(runtime::connect(&path), Ok(None)) {
                let status = ask(&path).ok();
                found.push(Server { path, pid, status });
            }
        }
    }
    found
}

/// The only one, or the only one of the present directory.
fn choose(
    mut servers: Vec<Server>,
    here: Option<PathBuf>,
    directories: &[PathBuf],
) -> Result<PathBuf, String> {
    if servers.is_empty() {
        let places = list(directories);
        return Err(format!(
            "no server of yours is running (none in {places}); name its socket with --control"
        ));
    }
    if servers.len() > 1 {
        let is_here = |server: &Server| {
            let directory = server.status.as_ref().map(|status| &status.directory);
            here.is_some() && directory.and_then(|path| fs::canonicalize(path).ok()) == here
        };
        let mut local: Vec<usize> =
            (0..servers.len()).filter(|index| is_here(&servers[*index])).collect();
        match (local.pop(), local.is_empty()) {
            (Some(one), true) => return Ok(servers.swap_remove(one).path),
            _ => return Err(describe(&servers)),
        }
    }
    Ok(servers.remove(0).path)
}

fn describe(servers: &[Server]) -> String {
    let mut text = String::from("several servers are running: name one with --pid");
    for server in servers {
        text += &match &server.status {
            Some(status) => format!(
                "\n  --pid {:<8} {}  {}",
                server.pid,
                status.directory,
                status.addresses.join(" ")
            ),
            None => format!("\n  --pid {:<8} does not answer", server.pid),
        };
    }
    text
}

fn list(directories: &[PathBuf]) -> String {
    let names: Vec<String> = directories.iter().map(|path| path.display().to_string()).collect();
    names.join(" or ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(pid: u32, directory: &str) -> Server {
        let directory = directory.into();
        let addresses = vec![format!("http://127.0.0.1:{pid}")];
        let status = Some(Status { directory, addresses, ..Status::default() });
        Server { path: format!("/x/{pid}.sock").into(), pid, status }
    }

    fn choose(servers: Vec<Server>, here: &str) -> Result<PathBuf, String> {
        super::choose(servers, Some(here.into()), &["/run/a".into(), "/tmp/b".into()])
    }

    #[test]
    fn one_is_chosen_or_all_are_named() {
        let none = choose(vec![], "/").unwrap_err();
        assert!(none.contains("/run/a or /tmp/b") && none.contains("--control"), "{none}");
        assert_eq!(choose(vec![server(7, "/srv")], "/usr"), Ok("/x/7.sock".into()));
        let two = || vec![server(7, "/usr"), server(8, "/proc")];
        assert_eq!(choose(two(), "/proc"), Ok("/x/8.sock".into()));
        let several = choose(two(), "/").unwrap_err();
        assert!(several.contains("--pid 7        /usr  http://127.0.0.1:7"), "{several}");
        assert!(choose(vec![server(7, "/usr"), server(8, "/usr")], "/usr").is_err());
        let mut mute = two();
        mute[0].status = None;
        assert!(choose(mute, "/").unwrap_err().contains("--pid 7        does not answer"));
    }

    #[test]
    fn a_pid_without_a_socket_is_named() {
        let error = find(&Wanted::Pid(u32::MAX)).unwrap_err();
        assert_eq!(error, format!("there is no process {}", u32::MAX));
        let socket = find(&Wanted::Socket("/nowhere".into())).unwrap();
        assert!(ask(&socket).unwrap_err().starts_with("no server listens on /nowhere"));
    }
}
