//! Running in the background: the server is started anew in a session of its own, and whoever
//! started it waits until it serves.
//!
//! A pipe leads from the new server to the waiting process. What comes before a zero byte is printed
//! there; the zero byte says that the server serves, an end without one that it does not.

use crate::answer::say;
use crate::{inherit, spawn};
use rustix::fs::{FileType, fstat};
use rustix::io::fcntl_dupfd_cloexec;
use rustix::process::setsid;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

/// The pipe's fd in the new server.
pub const DAEMON: &str = "ORIBI_DAEMON";

/// Starts the server again, in the background, and waits until it serves or has failed.
pub fn start() -> Result<ExitCode, String> {
    run().map_err(|error| format!("daemonize: {error}"))
}

fn run() -> io::Result<ExitCode> {
    let (mut told, pipe) = io::pipe()?;
    let pipe = OwnedFd::from(pipe);
    let mut command = spawn::this_binary();
    command.arg0("oribi: supervisor");
    command.args(std::env::args_os().skip(1)).env(DAEMON, pipe.as_raw_fd().to_string());
    command.stdin(Stdio::null());
    // Files stay what they are; what is a terminal, or the pipe of somebody who waits for its end,
    // is not the server's any more.
    if !is_file(rustix::stdio::stdout()) {
        command.stdout(Stdio::null());
    }
    if !is_file(rustix::stdio::stderr()) {
        command.stderr(fcntl_dupfd_cloexec(&pipe, 3)?);
    }
    let (pid, _) = spawn::spawn_with(&[pipe.as_fd()], &mut command)?;
    drop((pipe, command));
    if relay(&mut told)? {
        return Ok(ExitCode::SUCCESS);
    }
    let status = rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::empty())?;
    let status = status.and_then(|(_, status)| status.exit_status());
    Ok(ExitCode::from(status.and_then(|status| u8::try_from(status).ok()).unwrap_or(1)))
}

/// Prints what comes; true when the server serves.
fn relay(told: &mut impl Read) -> io::Result<bool> {
    let mut part = [0; 4096];
    loop {
        let length = told.read(&mut part)?;
        let text = part[..length].split(|byte| *byte == 0).next().unwrap_or_default();
        let _ = io::stderr().write_all(text);
        if length == 0 || text.len() < length {
            return Ok(length > 0);
        }
    }
}

fn is_file(fd: BorrowedFd) -> bool {
    fstat(fd).is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::RegularFile)
}

/// The new server's end of the pipe.
pub struct Daemon {
    pipe: File,
    over: Arc<AtomicBool>,
}

/// Copies what is logged to the process that waits, for as long as it does.
pub struct Copy {
    pipe: File,
    over: Arc<AtomicBool>,
}

impl Daemon {
    /// The one this process was started with; it then leaves the terminal's session.
    pub fn from_environment() -> io::Result<Option<Daemon>> {
        let Ok(number) = std::env::var(DAEMON) else { return Ok(None) };
        let number = number.parse().map_err(|_| io::Error::other("no pipe"))?;
        let pipe = File::from(inherit::take(number)?);
        setsid()?;
        Ok(Some(Daemon { pipe, over: Arc::default() }))
    }

    /// Where the log is to go too; none when it goes to a file that the starting process has named.
    pub fn copy(&self) -> io::Result<Option<Copy>> {
        if is_file(rustix::stdio::stderr()) {
            return Ok(None);
        }
        Ok(Some(Copy { pipe: self.pipe.try_clone()?, over: self.over.clone() }))
    }

    /// The server serves: these are the last lines for the process that waits.
    pub fn serves(mut self, lines: &[String]) {
        self.over.store(true, SeqCst);
        let last: String = lines.iter().map(|line| format!("oribi: {line}\n")).collect();
        let last = if is_file(rustix::stdio::stderr()) { String::new() } else { last };
        if self.pipe.write_all(format!("{last}\0").as_bytes()).is_err() {
            say("the process that started the server has not waited for it");
        }
    }
}

impl Copy {
    /// Passes on what somebody has logged.
    pub fn take(&mut self, part: &[u8]) {
        if !self.over.load(SeqCst) {
            let _ = self.pipe.write_all(part);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zero_byte_says_that_it_serves() {
        assert!(relay(&mut &b"\0"[..]).unwrap());
        assert!(relay(&mut &b"\0more"[..]).unwrap());
        assert!(!relay(&mut &b""[..]).unwrap());
    }
}
