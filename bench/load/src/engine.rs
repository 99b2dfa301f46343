//! Connections and one epoll. A mode says which connection sends what and when; the engine says
//! what became of it.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::{self, Errno, retry_on_intr};
use rustix::net::{RecvFlags, SendFlags, recv, send};

use crate::response::{Progress, Response};
use crate::stats::Failure;
use crate::target::Target;

/// A connection that failed rests this long, or a dead server makes the client spin.
const REST: u64 = 10_000_000;
/// How often timeouts are looked for.
const SWEEP: u64 = 100_000_000;

/// A request that has ended.
#[derive(Clone, Copy, Debug)]
pub struct Done {
    /// The connection, which is free again.
    pub conn: usize,
    /// Which of the requests it was.
    pub kind: usize,
    /// When it began, on the engine's clock: the intended start if the mode gave one.
    pub start: u64,
    /// When its last byte came.
    pub end: u64,
    /// 2xx, or why not.
    pub outcome: Result<(), Failure>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Idle,
    /// Waiting for a failed connection's rest to end.
    Resting,
    /// So many bytes of the request are still to be written.
    Writing(usize),
    Reading,
}

#[derive(Debug)]
struct Conn {
    fd: Option<OwnedFd>,
    state: State,
    kind: usize,
    start: u64,
    rest_until: u64,
    /// epoll is asked to say when the socket takes bytes.
    awaits_room: bool,
    response: Response,
}

/// The connections of one run.
pub struct Engine {
    target: Target,
    requests: Vec<Vec<u8>>,
    close: bool,
    timeout: u64,
    clock: Instant,
    epoll: OwnedFd,
    conns: Vec<Conn>,
    resting: usize,
    next_sweep: u64,
    done: Vec<Done>,
    events: Vec<epoll::Event>,
    input: Vec<u8>,
}

impl Engine {
    /// `paths` are what a request's kind indexes.
    pub fn new(
        target: &Target,
        connections: usize,
        paths: &[&str],
        close: bool,
        timeout: Duration,
    ) -> Result<Self, String> {
        let epoll = epoll::create(CreateFlags::CLOEXEC).map_err(|e| format!("epoll: {e}"))?;
        let conn = || Conn {
            fd: None,
            state: State::Idle,
            kind: 0,
            start: 0,
            rest_until: 0,
            awaits_room: false,
            response: Response::default(),
        };
        Ok(Self {
            target: target.clone(),
            requests: paths.iter().map(|path| request(target, path, close)).collect(),
            close,
            timeout: nanos(timeout),
            clock: Instant::now(),
            epoll,
            conns: std::iter::repeat_with(conn).take(connections).collect(),
            resting: 0,
            next_sweep: SWEEP,
            done: Vec::with_capacity(connections),
            events: Vec::with_capacity(512),
            input: vec![0; 64 * 1024],
        })
    }

    /// Nanoseconds since the engine was made.
    pub fn now(&self) -> u64 {
        nanos(self.clock.elapsed())
    }

    /// Requests without an outcome.
    pub fn outstanding(&self) -> usize {
        self.conns.iter().filter(|conn| conn.state != State::Idle).count()
    }

    /// Sends a request; its latency counts from `start`.
    pub fn start(&mut self, conn: usize, kind: usize, start: u64) {
        let now = self.now();
        let c = &mut self.conns[conn];
        (c.kind, c.start) = (kind, start);
        c.response.reset();
        if c.rest_until > now {
            c.state = State::Resting;
            self.resting += 1;
            return;
        }
        self.send(conn);
    }

    /// Waits until a request has ended or the clock shows `until`; `out` gets what has ended.
    pub fn wait(&mut self, until: u64, out: &mut Vec<Done>) -> Result<(), String> {
        out.clear();
        loop {
            let now = self.now();
            if self.resting > 0 {
                self.wake_rested(now);
            }
            if now >= self.next_sweep {
                self.expire(now);
            }
            if !self.done.is_empty() || now >= until {
                std::mem::swap(&mut self.done, out);
                return Ok(());
            }
            let alarm = until.min(if self.resting > 0 { now + REST } else { self.next_sweep });
            self.poll(alarm.saturating_sub(now)).map_err(|error| format!("epoll: {error}"))?;
        }
    }

    fn poll(&mut self, nanos: u64) -> io::Result<()> {
        let mut events = std::mem::take(&mut self.events);
        events.clear();
        let timeout = Timespec {
            tv_sec: (nanos / 1_000_000_000) as i64,
            tv_nsec: (nanos % 1_000_000_000) as i64,
        };
        retry_on_intr(|| epoll::wait(&self.epoll, spare_capacity(&mut events), Some(&timeout)))?;
        for event in &events {
            let (conn, flags) = (event.data.u64() as usize, event.flags);
            if flags.contains(EventFlags::OUT)
                && matches!(self.conns[conn].state, State::Writing(_))
            {
                self.write(conn);
            }
            if flags.intersects(EventFlags::IN | EventFlags::HUP | EventFlags::ERR) {
                self.read(conn);
            }
        }
        self.events = events;
        Ok(())
    }

    fn send(&mut self, conn: usize) {
        if self.conns[conn].fd.is_none() && self.open(conn).is_err() {
            return self.finish(conn, Err(Failure::Connection));
        }
        self.conns[conn].state = State::Writing(0);
        // A connection over loopback is mostly made by now, so the write saves a trip to epoll.
        self.write(conn);
    }

    fn open(&mut self, conn: usize) -> io::Result<()> {
        let fd = self.target.open()?;
        epoll::add(&self.epoll, &fd, EventData::new_u64(conn as u64), EventFlags::IN)?;
        let c = &mut self.conns[conn];
        (c.fd, c.awaits_room) = (Some(fd), false);
        Ok(())
    }

    fn write(&mut self, conn: usize) {
        let c = &mut self.conns[conn];
        let bytes = &self.requests[c.kind];
        let (State::Writing(mut at), Some(fd)) = (c.state, &c.fd) else { return };
        let outcome = loop {
            match send(fd, &bytes[at..], SendFlags::NOSIGNAL) {
                Ok(written) => at += written,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break Ok(State::Writing(at)),
                Err(error) => break Err(error),
            }
            if at == bytes.len() {
                break Ok(State::Reading);
            }
        };
        let Ok(state) = outcome else { return self.finish(conn, Err(Failure::Connection)) };
        c.state = state;
        let awaits_room = state != State::Reading;
        if awaits_room == c.awaits_room {
            return;
        }
        c.awaits_room = awaits_room;
        let out = if awaits_room { EventFlags::OUT } else { EventFlags::empty() };
        let data = EventData::new_u64(conn as u64);
        if epoll::modify(&self.epoll, fd, data, EventFlags::IN | out).is_err() {
            self.finish(conn, Err(Failure::Connection));
        }
    }

    fn read(&mut self, conn: usize) {
        let c = &mut self.conns[conn];
        let Some(fd) = &c.fd else { return };
        let busy = matches!(c.state, State::Writing(_) | State::Reading);
        let progress = match recv(fd, &mut self.input[..], RecvFlags::empty()) {
            Err(Errno::AGAIN | Errno::INTR) => return,
            Ok((0, _)) | Err(_) if !busy => {
                c.fd = None;
                return;
            }
            // Bytes that nobody asked for.
            Ok(_) if !busy => {
                c.fd = None;
                return;
            }
            Ok((0, _)) => c.response.end().unwrap_or(Progress::Garbage),
            Ok((read, _)) => c.response.feed(&self.input[..read]),
            Err(_) => Progress::Garbage,
        };
        match progress {
            Progress::More => {}
            Progress::Garbage => self.finish(conn, Err(Failure::Connection)),
            Progress::Done { status, close } => {
                if close {
                    c.fd = None;
                }
                let good = (200..300).contains(&status);
                self.finish(conn, if good { Ok(()) } else { Err(Failure::Status(status)) });
            }
        }
    }

    fn finish(&mut self, conn: usize, outcome: Result<(), Failure>) {
        let end = self.now();
        let c = &mut self.conns[conn];
        c.state = State::Idle;
        let broken = matches!(outcome, Err(Failure::Connection | Failure::Timeout));
        if self.close || broken {
            c.fd = None;
        }
        if broken {
            c.rest_until = end + REST;
        }
        self.done.push(Done { conn, kind: c.kind, start: c.start, end, outcome });
    }

    fn wake_rested(&mut self, now: u64) {
        for conn in 0..self.conns.len() {
            let c = &self.conns[conn];
            if c.state == State::Resting && c.rest_until <= now {
                self.resting -= 1;
                self.send(conn);
            }
        }
    }

    fn expire(&mut self, now: u64) {
        self.next_sweep = now + SWEEP;
        for conn in 0..self.conns.len() {
            let c = &self.conns[conn];
            let busy = matches!(c.state, State::Writing(_) | State::Reading);
            if busy && c.start + self.timeout <= now {
                self.finish(conn, Err(Failure::Timeout));
            }
        }
    }
}

fn request(target: &Target, path: &str, close: bool) -> Vec<u8> {
    let host = match target {
        Target::Tcp(address) => address.to_string(),
        Target::Unix(_) | Target::None => "localhost".into(),
    };
    let connection = if close { "Connection: close\r\n" } else { "" };
    format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n{connection}\r\n").into_bytes()
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
