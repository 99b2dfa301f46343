//! Where control sockets are: `PID.sock` in a directory that belongs to one user alone.
//!
//! `$ORIBI_RUNTIME_DIR` if somebody wants that; else `$XDG_RUNTIME_DIR/oribi`, or `/tmp/oribi-UID`
//! where there is no such directory. Whoever looks for a server looks into both of these: a shell
//! may have the variable, and a service not.

use rustix::process::geteuid;
use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

/// The present user.
pub fn uid() -> u32 {
    geteuid().as_raw()
}

fn chosen() -> Option<PathBuf> {
    std::env::var_os("ORIBI_RUNTIME_DIR").filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// The directories that servers of a user may have chosen.
pub fn directories(uid: u32) -> Vec<PathBuf> {
    if let Some(chosen) = chosen() {
        return vec![chosen];
    }
    let ours = std::env::var_os("XDG_RUNTIME_DIR").filter(|_| uid == self::uid());
    let ours = ours.map(PathBuf::from).filter(|path| path.is_absolute());
    let mut all: Vec<PathBuf> = ours.into_iter().map(|path| path.join("oribi")).collect();
    for path in [format!("/run/user/{uid}/oribi"), format!("/tmp/oribi-{uid}")] {
        if !all.iter().any(|other| other.as_os_str() == path.as_str()) {
            all.push(path.into());
        }
    }
    all
}

/// The path of this server's socket in the first of our directories that can be had.
pub fn own(pid: u32) -> Result<PathBuf, String> {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    // After `su` or `sudo` it may still be somebody else's, who could not use it any more if we
    // made a directory there.
    let ours = |path: &PathBuf| fs::metadata(path).is_ok_and(|found| found.uid() == uid());
    let runtime = runtime.filter(|path| path.is_absolute() && ours(path));
    let temporary = PathBuf::from(format!("/tmp/oribi-{}", uid()));
    let chosen = chosen().or(runtime.map(|path| path.join("oribi"))).unwrap_or(temporary);
    prepare(&chosen)?;
    remove_stale(&chosen);
    Ok(chosen.join(format!("{pid}.sock")))
}

/// Makes the directory, or makes sure that nobody else can have put anything into it.
pub fn prepare(directory: &Path) -> Result<(), String> {
    match DirBuilder::new().mode(0o700).create(directory) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            Err(format!("{}: {error}", directory.display()))
        }
        _ => trustworthy(directory, uid()),
    }
}

/// Ok when `directory` belongs to the user, who alone may enter it.
pub fn trustworthy(directory: &Path, uid: u32) -> Result<(), String> {
    let name = directory.display();
    let found = fs::symlink_metadata(directory).map_err(|error| format!("{name}: {error}"))?;
    let mode = found.permissions().mode() & 0o777;
    if !found.is_dir() {
        Err(format!("{name} is not a directory: remove it"))
    } else if found.uid() != uid {
        Err(format!("{name} belongs to another user (uid {}): remove it", found.uid()))
    } else if mode & 0o077 != 0 {
        Err(format!("{name} is open to others (mode {mode:04o}): chmod 700 {name}"))
    } else {
        Ok(())
    }
}

/// The sockets in a directory with the pids that their names say.
pub fn sockets(directory: &Path) -> Vec<(u32, PathBuf)> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    let mut found: Vec<(u32, PathBuf)> =
        paths.filter_map(|path| Some((pid(&path)?, path))).collect();
    found.sort();
    found
}

fn pid(path: &Path) -> Option<u32> {
    path.file_name()?.to_str()?.strip_suffix(".sock")?.parse().ok()
}

/// Connects, and removes the file if nobody listens any more. None: there is no server.
pub fn connect(path: &Path) -> io::Result<Option<UnixStream>> {
    match UnixStream::connect(path) {
        Ok(stream) => Ok(Some(stream)),
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
            let _ = fs::remove_file(path);
            Ok(None)
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Servers that were killed have left theirs behind.
fn remove_stale(directory: &Path) {
    for (pid, path) in sockets(directory) {
        // Those who live are not bothered.
        if !Path::new(&format!("/proc/{pid}")).exists() {
            let _ = connect(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    fn scratch(name: &str) -> PathBuf {
        let path =
            std::env::temp_dir().join(format!("oribi-runtime-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        path
    }

    #[test]
    fn a_directory_is_made_or_judged() {
        let path = scratch("judged");
        prepare(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        prepare(&path).unwrap();
        assert!(trustworthy(&path, uid() + 1).unwrap_err().contains("another user"));

        fs::set_permissions(&path, fs::Permissions::from_mode(0o750)).unwrap();
        let why = prepare(&path).unwrap_err();
        assert!(why.contains("mode 0750") && why.contains("chmod 700"), "{why}");
        fs::remove_dir(&path).unwrap();

        std::os::unix::fs::symlink("/root", &path).unwrap();
        assert!(prepare(&path).unwrap_err().contains("not a directory"));
        fs::remove_file(&path).unwrap();
        assert!(prepare(&path.join("deeper")).unwrap_err().contains("No such file"));
    }

    #[test]
    fn sockets_nobody_listens_on_are_removed() {
        let path = scratch("stale");
        prepare(&path).unwrap();
        let [live, dead, dead_process] =
            ["11.sock", "12.sock", "4194305.sock"].map(|n| path.join(n));
        let listener = UnixListener::bind(&live).unwrap();
        drop((UnixListener::bind(&dead).unwrap(), UnixListener::bind(&dead_process).unwrap()));
        fs::write(path.join("notes"), "").unwrap();
        remove_stale(&path);
        assert!(live.exists() && !dead_process.exists());
        let pids: Vec<u32> = sockets(&path).into_iter().map(|(pid, _)| pid).collect();
        assert_eq!(pids, if dead.exists() { vec![11, 12] } else { vec![11] });
        assert!(connect(&live).unwrap().is_some());
        assert!(connect(&dead).unwrap().is_none() && !dead.exists());
        assert!(connect(&path.join("none.sock")).unwrap().is_none());
        drop(listener);
        fs::remove_dir_all(&path).unwrap();
    }

    #[test]
    fn both_places_are_looked_into() {
        let all = directories(4_000_000);
        assert_eq!(all, ["/run/user/4000000/oribi", "/tmp/oribi-4000000"].map(PathBuf::from));
    }
}
