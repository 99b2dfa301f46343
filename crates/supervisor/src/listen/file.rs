//! Socket files, and the lock under which clients may connect to one.
//!
//! Who connects to a server that may end at any time, or else starts it, must not come between: a
//! file `lock` beside the socket is held shared (flock) while connecting, and exclusively by whoever
//! starts a server or takes a socket file away. Who removes a file that nobody listens on needs no
//! lock: no client is served there, and the one that has started the server that does it holds the
//! lock and waits.

use super::identity;
use rustix::fs::{CWD, FileType, FlockOperation, Mode, OFlags, flock, fstat, openat};
use rustix::process::geteuid;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// The name of the file that is locked.
const LOCK: &str = "lock";

/// A socket file, known by its inode: another server may have put its own in its place since.
/// Dropping it removes the file.
pub struct SocketFile {
    path: PathBuf,
    identity: (u64, u64),
}

impl SocketFile {
    /// The one that has just been bound there.
    pub fn at(path: &Path) -> io::Result<SocketFile> {
        Ok(SocketFile { path: path.into(), identity: identity(path)? })
    }

    /// Whether the file may be removed now: the lock, as long as that is held, or nothing if there
    /// is none. Err: somebody is just connecting.
    pub fn lock(&self) -> Result<Option<OwnedFd>, ()> {
        let Some(file) = lock_file(&self.path.with_file_name(LOCK)) else { return Ok(None) };
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Err(rustix::io::Errno::WOULDBLOCK) => Err(()),
            _ => Ok(Some(file)),
        }
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if identity(&self.path).is_ok_and(|identity| identity == self.identity) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// A file of our own, and no stranger's in a directory that is everybody's.
fn lock_file(path: &Path) -> Option<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = openat(CWD, path, flags, Mode::empty()).ok()?;
    let found = fstat(&file).ok()?;
    let ours = FileType::from_raw_mode(found.st_mode) == FileType::RegularFile
        && found.st_uid == geteuid().as_raw();
    ours.then_some(file)
}
