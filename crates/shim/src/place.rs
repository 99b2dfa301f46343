//! Where the application is, and where it meets its server.
//!
//! The application's directory holds this program and a `server.cgi` or a `config.ru`. Its run
//! directory is `BASE/acgi-HASH`: BASE is `$ORIBI_RUNTIME_DIR`, else `/tmp/oribi-UID`, and HASH the
//! FNV-1a hash (64 bits, 16 hexadecimal digits) of the application's directory. Both are 0700 and
//! belong to whoever runs this. In the run directory are
//!
//! - `socket`, where the server listens with FastCGI,
//! - `lock`, see `reach.rs`,
//! - `server.lock`, which the server holds for its life,
//! - `log`, what the server says, and `starting`, see `starting.rs`.

use std::env;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, Stat, lstat, mkdir, stat, statat};
use rustix::io::Errno;
use rustix::process::geteuid;

use crate::fault::Fault;

/// What makes a directory an application's; the first wins.
const APPS: [&str; 2] = ["server.cgi", "config.ru"];

/// An application's directory and its run directory, which exists and is nobody else's.
pub struct Place {
    /// The application's.
    pub dir: PathBuf,
    /// Where it meets its server.
    pub run: PathBuf,
    /// This program's file.
    pub program: PathBuf,
}

impl Place {
    /// Finds the application by this program's own file.
    pub fn find() -> Result<Place, Fault> {
        let (dir, program) = application()?;
        let base = base();
        let run = base.join(format!("acgi-{:016x}", fnv1a(dir.as_os_str().as_bytes())));
        own(&base)?;
        own(&run)?;
        Ok(Place { dir, run, program })
    }

    /// A file of the run directory.
    pub fn file(&self, name: &str) -> PathBuf {
        self.run.join(name)
    }
}

/// The application's directory and this program.
///
/// The kernel knows the program's file. Where it does not say (no `/proc`), or where that is a link's
/// target somewhere else, the web server is asked, and then the working directory.
fn application() -> Result<(PathBuf, PathBuf), Fault> {
    let itself = std::fs::read_link("/proc/self/exe").ok();
    if let Some(program) = itself.as_ref()
        && let Some(dir) = program.parent().filter(|dir| is_app(dir))
    {
        return Ok((dir.to_owned(), program.clone()));
    }
    let named = env::var_os("SCRIPT_FILENAME").map(PathBuf::from);
    for name in named.into_iter().chain([PathBuf::from("./index.cgi")]) {
        let dir = name.parent().and_then(|dir| dir.canonicalize().ok());
        if let Some(dir) = dir.filter(|dir| is_app(dir)) {
            let program = itself.unwrap_or_else(|| dir.join("index.cgi"));
            return Ok((dir, program));
        }
    }
    let detail = format!(
        "neither server.cgi nor config.ru is beside {}: put the application's there",
        itself.unwrap_or_else(|| "index.cgi".into()).display()
    );
    Err(Fault::new("there is no application here").because(detail))
}

/// This program's file, from a process that knows the application.
pub fn own_file(dir: &Path) -> Option<PathBuf> {
    let own = dir.join("index.cgi");
    std::fs::read_link("/proc/self/exe").ok().or_else(|| own.exists().then_some(own))
}

fn is_app(dir: &Path) -> bool {
    APPS.iter().any(|app| stat(dir.join(app)).is_ok())
}

fn base() -> PathBuf {
    match env::var_os("ORIBI_RUNTIME_DIR").filter(|path| !path.is_empty()) {
        Some(path) => path.into(),
        None => format!("/tmp/oribi-{}", geteuid().as_raw()).into(),
    }
}

/// Makes sure that a directory is there and that nobody else can have put anything into it.
fn own(path: &Path) -> Result<(), Fault> {
    let seen = match lstat(path) {
        Err(Errno::NOENT) => match mkdir(path, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => lstat(path),
            Err(error) => Err(error),
        },
        seen => seen,
    };
    let refusal = match seen {
        Ok(seen) => refusal(&seen, geteuid().as_raw()),
        Err(error) => Some(error.to_string()),
    };
    refusal.map_or(Ok(()), |why| {
        let detail = format!(
            "{}: {why}; remove it, or name a directory of your own in ORIBI_RUNTIME_DIR",
            path.display()
        );
        Err(Fault::new("the run directory cannot be used").because(detail))
    })
}

/// Why a directory that looks like this must not be used.
fn refusal(seen: &Stat, user: u32) -> Option<String> {
    let mode = seen.st_mode;
    if FileType::from_raw_mode(mode) != FileType::Directory {
        return Some("it is no directory".into());
    }
    if seen.st_uid != user {
        return Some(format!("it belongs to user {}, not to user {user}", seen.st_uid));
    }
    let open = mode & 0o077 != 0;
    open.then(|| format!("its mode is {:04o}, not 0700", mode & 0o7777))
}

/// Whether there is a socket, and nobody else's.
pub fn socket(path: &Path) -> Result<bool, Fault> {
    let refuse = |why: String| {
        let detail = format!("{}: {why}; remove it", path.display());
        Err(Fault::new("the server's socket cannot be used").because(detail))
    };
    match statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => Ok(false),
        Err(error) => refuse(error.to_string()),
        Ok(seen) if FileType::from_raw_mode(seen.st_mode) != FileType::Socket => {
            refuse("it is no socket".into())
        }
        Ok(seen) if seen.st_uid != geteuid().as_raw() => {
            refuse(format!("it belongs to user {}", seen.st_uid))
        }
        Ok(_) => Ok(true),
    }
}

/// FNV-1a, 64 bits.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_the_published_one() {
        assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a(b"foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn only_a_private_directory_will_do() {
        let mut seen = lstat("/").unwrap();
        let mut why = |mode, owner| {
            (seen.st_mode, seen.st_uid) = (mode, owner);
            refusal(&seen, 33)
        };
        assert_eq!(why(0o040700, 33), None);
        assert_eq!(why(0o042700, 33), None);
        assert_eq!(why(0o040700, 0).unwrap(), "it belongs to user 0, not to user 33");
        assert_eq!(why(0o040750, 33).unwrap(), "its mode is 0750, not 0700");
        assert_eq!(why(0o120777, 33).unwrap(), "it is no directory");
        assert_eq!(why(0o140700, 33).unwrap(), "it is no directory");
    }
}
