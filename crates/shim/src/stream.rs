//! Standard output and error: written without ever waiting in a write.
//!
//! They are not made non-blocking, because what is behind them may be shared: a log that the web
//! server writes itself must not change under its hands.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{BorrowedFd, IntoRawFd as _};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::{Errno, write};
use rustix::net::{SendFlags, send};
use rustix::stdio::{stderr, stdin, stdout};

/// What a pipe that can be written takes without blocking, whatever is in it (PIPE_BUF).
const ATOMIC: usize = 4096;

/// Puts /dev/null where a standard stream is closed: the next file opened would take its number.
pub fn fill_gaps() {
    let all = [stdin(), stdout(), stderr()];
    let mut all = all.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::empty()));
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    if poll(&mut all, Some(&now)).is_ok_and(|ready| ready > 0) {
        for _ in all.iter().filter(|fd| fd.revents().contains(PollFlags::NVAL)) {
            // The lowest free number is what it gets, and keeps.
            let _ = open("/dev/null", OFlags::RDWR, Mode::empty()).map(|null| null.into_raw_fd());
        }
    }
}

/// What is on its way to a descriptor of the web server's.
pub struct Stream {
    fd: BorrowedFd<'static>,
    bytes: Vec<u8>,
    written: usize,
    socket: bool,
    broken: bool,
    lost: bool,
}

impl Stream {
    /// A stream with nothing in it.
    pub fn new(fd: BorrowedFd<'static>) -> Stream {
        Stream { fd, bytes: Vec::new(), written: 0, socket: true, broken: false, lost: false }
    }

    /// Adds what there is to write; nothing if nobody reads any more.
    pub fn put(&mut self, bytes: &[u8]) {
        if self.broken {
            self.lost |= !bytes.is_empty();
        } else {
            self.bytes.extend_from_slice(bytes);
        }
    }

    /// Bytes that wait.
    pub fn waiting(&self) -> usize {
        self.bytes.len() - self.written
    }

    /// Nobody reads it any more.
    pub fn broken(&self) -> bool {
        self.broken
    }

    /// Something could not be written because of it.
    pub fn lost(&self) -> bool {
        self.lost
    }

    /// The descriptor to wait for.
    pub fn fd(&self) -> BorrowedFd<'static> {
        self.fd
    }

    /// Takes notice of what poll says, and writes if it can be written.
    pub fn go_on(&mut self, ready: PollFlags) {
        // In this order: a write that nobody will read is answered with a signal.
        if ready.intersects(PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL) {
            self.fail();
        } else if self.waiting() > 0 && ready.contains(PollFlags::OUT) {
            self.write();
        }
    }

    fn write(&mut self) {
        let bytes = &self.bytes[self.written..];
        let outcome = match self.socket {
            true => send(self.fd, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL),
            false => write(self.fd, &bytes[..bytes.len().min(ATOMIC)]),
        };
        match outcome {
            Ok(count) => self.written += count,
            Err(Errno::NOTSOCK) if self.socket => {
                self.socket = false;
                return self.write();
            }
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(_) => self.fail(),
        }
        if self.waiting() == 0 {
            self.bytes.clear();
            self.written = 0;
        }
    }

    fn fail(&mut self) {
        self.broken = true;
        self.lost |= self.waiting() > 0;
        self.bytes.clear();
        self.written = 0;
    }
}
