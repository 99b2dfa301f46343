//! The error log, where it is more than the standard error stream as it is: a file, standard
//! output, or JSON.
//!
//! The supervisor then makes a socket its standard error; whatever it starts inherits that. One
//! thread reads it and writes the log, so that there is one place to reopen. The kernel says with
//! each part who has written it, and never mixes two writers' parts.

mod record;

use crate::daemon::Copy;
use record::{Format, Gatherer, new_mark};
use rustix::net::sockopt::set_socket_passcred;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, Shutdown, SocketFlags,
    SocketType, recvmsg, shutdown, socketpair,
};
use std::fs::{File, OpenOptions};
use std::io::{self, IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread::JoinHandle;

/// Most bytes taken at once.
const PART: usize = 64 * 1024;

/// The running log.
pub struct ErrorLog {
    /// Standard error as it was.
    before: OwnedFd,
    /// What standard error is now.
    ours: OwnedFd,
    /// What records of our Ruby begin with.
    mark: String,
    reopen: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl ErrorLog {
    /// Takes over standard error, unless it is the log as it is. With a `copy` it belongs to the
    /// process that waits for this one, and is no log.
    pub fn start(
        path: &Path,
        format: &str,
        copy: Option<Copy>,
    ) -> Result<Option<ErrorLog>, String> {
        let format = Format::named(format);
        let is_stderr = path == Path::new("stderr");
        if is_stderr && format == Format::Text && copy.is_none() {
            return Ok(None);
        }
        let path = if is_stderr && copy.is_some() { Path::new("/dev/null") } else { path };
        let log = open(path).map_err(|error| {
            format!(
                "error_log: cannot open {}: {error}: name a file that can be written to",
                path.display()
            )
        })?;
        ErrorLog::divert(path, format, log, copy)
            .map(Some)
            .map_err(|error| format!("error_log: {error}"))
    }

    fn divert(path: &Path, format: Format, log: File, copy: Option<Copy>) -> io::Result<ErrorLog> {
        let before = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stderr(), 3)?;
        let (ours, theirs) =
            socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        set_socket_passcred(&theirs, true)?;
        let (mark, reopen) = (new_mark(), Arc::new(AtomicBool::new(false)));
        let writer = Writer {
            socket: theirs,
            gatherer: Gatherer::new(format, &mark),
            path: path.into(),
            log,
            copy,
            reopen: reopen.clone(),
        };
        let thread = std::thread::Builder::new().name("error log".into());
        let thread = Some(thread.spawn(move || writer.run())?);
        rustix::stdio::dup2_stderr(&ours)?;
        Ok(ErrorLog { before, ours, mark, reopen, thread })
    }

    /// What a process that was started before the log was is to use as its standard error.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.ours.as_fd()
    }

    /// What our Ruby is to put before a record, should the log be JSON.
    pub fn mark(&self) -> &str {
        &self.mark
    }

    /// Goes on in a file of the same name, from the next line on.
    pub fn reopen(&self) {
        self.reopen.store(true, SeqCst);
    }
}

impl Drop for ErrorLog {
    /// Writes what has been said so far, and gives standard error back.
    fn drop(&mut self) {
        let _ = rustix::stdio::dup2_stderr(&self.before);
        let _ = shutdown(&self.ours, Shutdown::Write);
        self.thread.take().map(JoinHandle::join);
    }
}

fn open(path: &Path) -> io::Result<File> {
    match path.to_str() {
        Some("stdout") => Ok(rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3)?.into()),
        Some("stderr") => Ok(rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stderr(), 3)?.into()),
        _ => OpenOptions::new().append(true).create(true).open(path),
    }
}

/// Whether a log that another process will open can be opened; what to do if not.
pub fn check(name: &str, path: Option<&PathBuf>) -> Result<(), String> {
    let Some(path) = path else { return Ok(()) };
    let error = |error| {
        format!(
            "{name}: cannot open {}: {error}: name a file that can be written to",
            path.display()
        )
    };
    open(path).map(drop).map_err(error)
}

/// The thread that writes.
struct Writer {
    socket: OwnedFd,
    gatherer: Gatherer,
    path: PathBuf,
    log: File,
    copy: Option<Copy>,
    reopen: Arc<AtomicBool>,
}

impl Writer {
    fn run(mut self) {
        let mut part = vec![0; PART];
        while let Some((pid, length)) = self.receive(&mut part) {
            if self.reopen.swap(false, SeqCst) {
                match open(&self.path) {
                    Ok(log) => self.log = log,
                    Err(error) => {
                        let why = format!("cannot reopen {}: {error}", self.path.display());
                        let why = format!("oribi: {why}: see to it, then send USR1\n");
                        self.take(std::process::id(), why.as_bytes());
                    }
                }
            }
            self.take(pid, &part[..length]);
        }
        let rest = self.gatherer.finish();
        let _ = self.log.write_all(&rest);
    }

    /// Where the log cannot be written to there is nowhere to say so.
    fn take(&mut self, pid: u32, part: &[u8]) {
        self.copy.iter_mut().for_each(|copy| copy.take(part));
        let records = self.gatherer.take(pid, part);
        let _ = self.log.write_all(&records);
    }

    /// Who has written, and how much; None at the end.
    fn receive(&self, part: &mut [u8]) -> Option<(u32, usize)> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmCredentials(1))];
        loop {
            let mut control = RecvAncillaryBuffer::new(&mut space);
            let slices = &mut [IoSliceMut::new(part)];
            let flags = RecvFlags::CMSG_CLOEXEC;
            let received = match recvmsg(&self.socket, slices, &mut control, flags) {
                Ok(received) => received,
                Err(rustix::io::Errno::INTR) => continue,
                Err(_) => return None,
            };
            let pid = control.drain().find_map(|message| match message {
                RecvAncillaryMessage::ScmCredentials(credentials) => Some(credentials.pid),
                _ => None,
            });
            let pid = pid.map_or(0, |pid| pid.as_raw_nonzero().get() as u32);
            return (received.bytes > 0).then_some((pid, received.bytes));
        }
    }
}
