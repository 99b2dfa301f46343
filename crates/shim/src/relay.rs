//! One request to the server and its answer back, both at once.

use std::time::{Duration, Instant};

use door::fastcgi::{self, End, kind, status};
use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};
use rustix::stdio::{stderr, stdin, stdout};

use crate::body::Body;
use crate::fault::Fault;
use crate::request::{ID, Request};
use crate::stream::Stream;

/// How much waits in a buffer before no more is read into it.
const ENOUGH: usize = 256 * 1024;
/// Room for a record of any length.
const RECORD: usize = 68 * 1024;
/// How long a server may still speak to the log, and finish, when the web server listens no more:
/// some close as soon as they have as much as a Content-Length has said.
const LAST_WORDS: Duration = Duration::from_millis(100);

/// How it ended.
pub enum Ending {
    /// The server has finished: the exit status of this process.
    Status(i32),
    /// The server went away without having read the request, which may be sent again.
    Unheard,
    /// The server went away before it had finished.
    Died {
        /// Part of the answer has been passed on.
        answered: bool,
    },
}

/// A connection to the server and the three streams of a CGI program.
pub struct Relay<'a> {
    request: &'a Request,
    socket: OwnedFd,
    /// What goes to the server, and how much of it has gone.
    out: Vec<u8>,
    sent: usize,
    body: Body,
    inbox: Vec<u8>,
    stdout: Stream,
    stderr: Stream,
    answered: bool,
    /// When the server is told that nobody listens any more.
    given_up: Option<Instant>,
    /// The connection was reset: what was sent has not been read to its end.
    reset: bool,
    /// Nothing more comes from the server.
    ended: Option<Option<End>>,
}

impl<'a> Relay<'a> {
    /// The request is about to be sent over `socket`.
    pub fn new(socket: OwnedFd, request: &'a Request) -> Relay<'a> {
        let mut out = request.head.clone();
        let body = Body::new(request.length, &mut out);
        Relay {
            request,
            socket,
            out,
            sent: 0,
            body,
            inbox: Vec::with_capacity(RECORD),
            stdout: Stream::new(stdout()),
            stderr: Stream::new(stderr()),
            answered: false,
            given_up: None,
            reset: false,
            ended: None,
        }
    }

    /// Passes everything on in both directions until the server has finished.
    pub fn run(mut self) -> Result<Ending, Fault> {
        self.send();
        while self.ended.is_none() || self.stdout.waiting() > 0 || self.stderr.waiting() > 0 {
            self.turn().map_err(|fault| fault.after(self.answered))?;
            if self.stdout.broken() {
                let until = *self.given_up.get_or_insert_with(|| Instant::now() + LAST_WORDS);
                let wanted = !self.stdout.lost() || self.ended.is_some();
                if !wanted || Instant::now() >= until {
                    self.abort();
                    return Ok(Ending::Status(1));
                }
            }
        }
        match self.ended.flatten() {
            Some(end) => self.finished(&end),
            None => Ok(self.died()),
        }
    }

    /// Waits for whatever can go on, and lets it.
    fn turn(&mut self) -> Result<(), Fault> {
        let socket = self.socket.as_fd();
        let on_socket = self.on_socket();
        let on_body = !self.body.ended() && self.out.len() - self.sent < ENOUGH;
        let out = |stream: &Stream| match stream.waiting() {
            0 => PollFlags::empty(),
            _ => PollFlags::OUT,
        };
        // Nobody is asked in vain: one whose other end is gone would wake us all the time. Standard
        // output is asked even if there is nothing for it, since its end says that the client has
        // gone.
        let asked = [
            (!self.stdout.broken()).then(|| (self.stdout.fd(), out(&self.stdout))),
            (self.stderr.waiting() > 0).then(|| (self.stderr.fd(), PollFlags::OUT)),
            (!on_socket.is_empty()).then_some((socket, on_socket)),
            on_body.then(|| (stdin(), PollFlags::IN)),
        ];
        let [on_stdout, on_stderr, on_socket, on_body] = wait(asked, self.given_up)
            .map_err(|error| Fault::new("poll failed").because(error.to_string()))?;
        // The log first: lighttpd ends a program by a signal once it has the whole answer.
        self.stderr.go_on(on_stderr);
        self.stdout.go_on(on_stdout);
        if !on_body.is_empty() {
            self.body.read(&mut self.out)?;
        }
        if on_socket.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR) {
            self.receive()?;
        }
        self.send();
        Ok(())
    }

    /// What to wait for at the server's socket.
    fn on_socket(&self) -> PollFlags {
        let mut flags = PollFlags::empty();
        if self.ended.is_some() {
            return flags;
        }
        // A server that answers while it reads must be heard even if the web server does not listen
        // yet, because that may be waiting for us to take the body.
        let full = self.stdout.waiting().max(self.stderr.waiting()) >= ENOUGH;
        if !full || !self.body.ended() || self.sent < self.out.len() {
            flags |= PollFlags::IN;
        }
        if self.sent < self.out.len() {
            flags |= PollFlags::OUT;
        }
        flags
    }

    fn send(&mut self) {
        while self.sent < self.out.len() {
            let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
            match send(&self.socket, &self.out[self.sent..], flags) {
                Ok(count) => self.sent += count,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                Err(error) => {
                    // It may have answered before it closed: that is still there to be read.
                    self.reset |= error == Errno::CONNRESET || error == Errno::PIPE;
                    self.body.give_up();
                    break;
                }
            }
        }
        self.out.clear();
        self.sent = 0;
    }

    fn receive(&mut self) -> Result<(), Fault> {
        self.inbox.reserve(RECORD - self.inbox.len());
        match recv(&self.socket, spare_capacity(&mut self.inbox), RecvFlags::DONTWAIT) {
            Ok((_, 0)) => self.ended = Some(None),
            Ok(_) => {}
            Err(Errno::INTR | Errno::AGAIN) => return Ok(()),
            Err(error) => {
                self.reset |= error == Errno::CONNRESET;
                self.ended = Some(None);
            }
        }
        let mut at = 0;
        while self.ended.is_none() {
            match fastcgi::record(&self.inbox[at..]) {
                Ok(Some((record, whole))) => {
                    at += whole;
                    match record.kind {
                        _ if record.id != ID => {}
                        kind::STDOUT => {
                            self.answered |= !record.content.is_empty();
                            self.stdout.put(record.content);
                        }
                        kind::STDERR => self.stderr.put(record.content),
                        kind::END_REQUEST => {
                            self.ended = Some(Some(End::parse(record.content).map_err(foreign)?));
                        }
                        _ => {}
                    }
                }
                Ok(None) => break,
                Err(fault) => return Err(foreign(fault)),
            }
        }
        self.inbox.drain(..at);
        Ok(())
    }

    /// The client has gone: the server need not go on.
    fn abort(&mut self) {
        fastcgi::put_header(&mut self.out, kind::ABORT_REQUEST, ID, 0, 0);
        self.send();
    }

    fn finished(&self, end: &End) -> Result<Ending, Fault> {
        match end.protocol_status {
            status::REQUEST_COMPLETE => {}
            _ if self.answered => {}
            status::OVERLOADED => {
                return Err(Fault::new("too many requests are waiting")
                    .status("503 Service Unavailable")
                    .because("the server has more work than it may let wait"));
            }
            other => {
                let detail = format!("FastCGI protocol status {other}");
                return Err(Fault::new("the server refused the request").because(detail));
            }
        }
        Ok(Ending::Status(end.app_status.min(255) as i32))
    }

    fn died(&self) -> Ending {
        let unread = self.reset && !self.answered && self.body.untouched();
        match unread && self.request.repeatable {
            true => Ending::Unheard,
            false => Ending::Died { answered: self.answered },
        }
    }
}

/// Waits for those that are asked; what is with each of them.
fn wait(
    asked: [Option<(BorrowedFd<'_>, PollFlags)>; 4],
    until: Option<Instant>,
) -> Result<[PollFlags; 4], Errno> {
    let mut all = Vec::with_capacity(asked.len());
    all.extend(asked.iter().flatten().map(|(fd, flags)| PollFd::from_borrowed_fd(*fd, *flags)));
    let left = until.map(|until| until.saturating_duration_since(Instant::now()));
    let left = left.map(|left| Timespec { tv_sec: 0, tv_nsec: left.subsec_nanos().into() });
    match poll(&mut all, left.as_ref()) {
        Ok(_) => {}
        Err(Errno::INTR) => return Ok([PollFlags::empty(); 4]),
        Err(error) => return Err(error),
    }
    let mut ready = all.iter().map(PollFd::revents);
    Ok(asked.map(|one| one.and_then(|_| ready.next()).unwrap_or(PollFlags::empty())))
}

fn foreign(fault: door::Fault) -> Fault {
    Fault::new("what listens for this application does not speak FastCGI")
        .because(fault.text().trim_end())
}
