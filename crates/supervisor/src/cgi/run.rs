//! The run directory of an app behind an `index.cgi`: private to one user, found by the name of the
//! app's directory alone. Its files:
//!
//! | file | what it is |
//! |---|---|
//! | `socket` | where the server listens |
//! | `lock` | held shared (flock) by who connects, exclusively by who starts a server or takes the socket away |
//! | `server.lock` | held by the server for its life; its pid is written in it |
//! | `log` | what the server says, if the shim has started it |

use crate::control::runtime;
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long a server that can be connected to is taken for one that is just ending.
const DOUBT: Duration = Duration::from_secs(1);
/// How often it is looked whether it has ended.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// The directory of one app.
pub struct RunDirectory {
    path: PathBuf,
    app: PathBuf,
}

/// What an app's server holds for its life.
pub struct Server {
    _lock: File,
    /// Locked, so that systemd-tmpfiles does not take old files out of it (tmpfiles.d(5), "Age").
    _directory: File,
}

/// Whether an app has a server.
#[derive(Debug, PartialEq, Eq)]
pub enum Life {
    /// It has, of this pid.
    Alive(u32),
    /// It has none; the pid of the last one, if that is known.
    Dead(Option<u32>),
}

/// The app's directory by the one name that everybody finds it by.
pub fn canonical(directory: &Path) -> Result<PathBuf, String> {
    let shown = directory.display();
    let found = fs::canonicalize(directory)
        .map_err(|error| format!("{shown}: {error}: name the directory of the app"))?;
    if found.is_dir() { Ok(found) } else { Err(format!("{shown} is no directory: name the app's")) }
}

/// FNV-1a, 64 bit: the shim, which is to be small, computes it too.
fn hash(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

fn name(app: &Path) -> String {
    format!("acgi-{:016x}", hash(app.as_os_str().as_encoded_bytes()))
}

/// Where the run directories of a user are.
fn base(uid: u32) -> PathBuf {
    let chosen = std::env::var_os("ORIBI_RUNTIME_DIR").filter(|path| !path.is_empty());
    chosen.map_or_else(|| format!("/tmp/oribi-{uid}").into(), PathBuf::from)
}

impl RunDirectory {
    /// Makes what is missing, and makes sure that it is this user's alone.
    pub fn prepare(app: &Path) -> Result<RunDirectory, String> {
        let base = base(runtime::uid());
        let path = base.join(name(app));
        runtime::prepare(&base)?;
        runtime::prepare(&path)?;
        let run = RunDirectory { path, app: app.into() };
        // Before there is anything to connect to.
        run.open("lock")?;
        Ok(run)
    }

    /// The one there is. For root: anybody's.
    pub fn find(app: &Path) -> Option<RunDirectory> {
        let own = (base(runtime::uid()), runtime::uid());
        let others = fs::read_dir("/tmp").into_iter().flatten().flatten().filter_map(|entry| {
            let uid = entry.file_name().to_str()?.strip_prefix("oribi-")?.parse().ok()?;
            Some((entry.path(), uid))
        });
        let others = others.filter(|_| runtime::uid() == 0);
        let trusted = |(base, uid): (PathBuf, u32)| {
            let path = base.join(name(app));
            let ours = [&base, &path].iter().all(|one| runtime::trustworthy(one, uid).is_ok());
            ours.then(|| RunDirectory { path, app: app.into() })
        };
        std::iter::once(own).chain(others).find_map(trusted)
    }

    /// Where the server listens.
    pub fn socket(&self) -> PathBuf {
        self.path.join("socket")
    }

    fn open(&self, name: &str) -> Result<File, String> {
        let path = self.path.join(name);
        let flags = rustix::fs::OFlags::NOFOLLOW.bits();
        let mut how = OpenOptions::new();
        how.read(true).write(true).create(true).truncate(false).mode(0o600);
        let opened = how.custom_flags(flags as i32).open(&path);
        opened.map_err(|error| format!("{}: {error}: remove it", path.display()))
    }

    /// Makes this process the app's server, once the one before has ended. It is for as long as the
    /// result lives.
    pub fn become_server(&self) -> Result<Server, String> {
        let mut file = self.open("server.lock")?;
        let failed = |error: io::Error| format!("{}/server.lock: {error}", self.path.display());
        let mut doubtful_since = Instant::now();
        while let Err(error) = flock(&file, FlockOperation::NonBlockingLockExclusive) {
            if error != rustix::io::Errno::WOULDBLOCK {
                return Err(failed(error.into()));
            }
            if UnixStream::connect(self.socket()).is_err() {
                doubtful_since = Instant::now();
            }
            if doubtful_since.elapsed() > DOUBT {
                let pid = pid(&mut file).unwrap_or_default();
                return Err(format!(
                    "{} is served by process {pid} already: see oribi cgi status",
                    self.app.display()
                ));
            }
            std::thread::sleep(LOOK_EVERY);
        }
        file.set_len(0).map_err(failed)?;
        file.write_all(format!("{}\n", std::process::id()).as_bytes()).map_err(failed)?;
        let directory = File::open(&self.path).map_err(failed)?;
        // Nobody else locks it, and without it all would work for days.
        let _ = flock(&directory, FlockOperation::NonBlockingLockShared);
        Ok(Server { _lock: file, _directory: directory })
    }

    /// Whether the app has a server.
    pub fn life(&self) -> Result<Life, String> {
        let path = self.path.join("server.lock");
        let Ok(mut file) = File::open(&path) else { return Ok(Life::Dead(None)) };
        match flock(&file, FlockOperation::NonBlockingLockShared) {
            Ok(()) => Ok(Life::Dead(pid(&mut file))),
            Err(rustix::io::Errno::WOULDBLOCK) => pid(&mut file)
                .map(Life::Alive)
                .ok_or(format!("{}: a server has it and does not say who it is", path.display())),
            Err(error) => Err(format!("{}: {error}", path.display())),
        }
    }
}

fn pid(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values of the hash's authors (draft-eastlake-fnv, appendix C).
    #[test]
    fn names_are_the_shims() {
        assert_eq!(hash(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(hash(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(hash(b"foobar"), 0x8594_4171_f739_67e8);
        assert_eq!(name(Path::new("foobar")), "acgi-85944171f73967e8");
    }

    #[test]
    fn there_is_one_server_at_a_time() {
        let path = std::env::temp_dir().join(format!("oribi-cgi-run-{}", std::process::id()));
        runtime::prepare(&path).unwrap();
        let run = RunDirectory { path: path.clone(), app: "/srv/app".into() };
        assert_eq!(run.life(), Ok(Life::Dead(None)));
        let lock = run.become_server().unwrap();
        let own = std::process::id();
        assert_eq!(run.life(), Ok(Life::Alive(own)));

        let listener = std::os::unix::net::UnixListener::bind(run.socket()).unwrap();
        let error = run.become_server().err().unwrap();
        assert!(error.contains(&format!("served by process {own} already")), "{error}");
        drop(listener);
        let next = std::thread::scope(|scope| {
            let next = scope.spawn(|| run.become_server());
            std::thread::sleep(DOUBT / 10);
            drop(lock);
            next.join().unwrap()
        });
        assert_eq!(run.life(), Ok(Life::Alive(own)));
        drop(next);
        assert_eq!(run.life(), Ok(Life::Dead(Some(own))));
        fs::remove_dir_all(&path).unwrap();
    }
}
