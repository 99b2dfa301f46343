//! Connections and one epoll. A shape says which connection sends what and when; the engine says
//! what became of it. All moments are nanoseconds since the run began.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::{self, Errno, retry_on_intr};
use rustix::net::{RecvFlags, SendFlags, recv, send, sockopt};

use crate::done::{Done, Failure};
use crate::kind::Kind;
use crate::response::{Progress, Response, Workers};
use crate::target::{Target, ours};

/// A second in nanoseconds.
pub const SECOND: u64 = 1_000_000_000;
/// Timeouts are looked for no more often than this.
const SWEEP: u64 = SECOND / 200;
/// A slow reader reads so often.
const SIP: u64 = SECOND / 50;
/// Sends in a row on one connection, before others have their turn.
const SENDS: usize = 16;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Idle,
    /// So many bytes of the request have been written.
    Writing(u64),
    Reading,
}

#[derive(Debug, Default)]
struct Conn {
    fd: Option<OwnedFd>,
    /// The server has taken it.
    open: bool,
    state: State,
    kind: usize,
    due: u64,
    sent: u64,
    /// epoll is asked to say when the socket takes bytes.
    awaits_room: bool,
    /// A slow reader: when it began, how much it has read, when it reads on (0 while it reads).
    slow: (u64, u64, u64),
    response: Response,
}

/// The connections of one run.
pub struct Engine {
    target: Target,
    kinds: Vec<Kind>,
    timeout: u64,
    clock: Instant,
    epoll: OwnedFd,
    conns: Vec<Conn>,
    busy: usize,
    swept: u64,
    next_sweep: u64,
    sips: BinaryHeap<Reverse<(u64, usize)>>,
    done: Vec<Done>,
    events: Vec<epoll::Event>,
    input: Vec<u8>,
    open_now: usize,
    fatal: Option<String>,
    /// The most connections that were open at once.
    pub most_open: usize,
    /// Connections that were opened.
    pub connects: u64,
    /// Who has answered.
    pub workers: Workers,
}

impl Engine {
    /// The clock begins here. `timeout` in nanoseconds.
    pub fn new(target: Target, kinds: Vec<Kind>, timeout: u64) -> Result<Self, String> {
        let epoll = epoll::create(CreateFlags::CLOEXEC).map_err(|e| format!("epoll: {e}"))?;
        Ok(Self {
            target,
            kinds,
            timeout,
            clock: Instant::now(),
            epoll,
            conns: Vec::new(),
            busy: 0,
            swept: 0,
            next_sweep: u64::MAX,
            sips: BinaryHeap::new(),
            done: Vec::new(),
            events: Vec::with_capacity(512),
            input: vec![0; 64 * 1024],
            open_now: 0,
            fatal: None,
            most_open: 0,
            connects: 0,
            workers: Workers::default(),
        })
    }

    /// Nanoseconds since the run began.
    pub fn now(&self) -> u64 {
        self.clock.elapsed().as_nanos() as u64
    }

    /// Requests under way.
    pub fn busy(&self) -> usize {
        self.busy
    }

    /// Requests have ended that [`Engine::wait`] has not told of.
    pub fn has_done(&self) -> bool {
        !self.done.is_empty()
    }

    /// One more connection, not yet opened.
    pub fn add_conn(&mut self) -> usize {
        self.conns.push(Conn::default());
        self.conns.len() - 1
    }

    /// Sends a request on an idle connection, and opens it first if need be.
    pub fn start(&mut self, conn: usize, kind: usize, due: u64, now: u64) {
        let c = &mut self.conns[conn];
        (c.kind, c.due, c.sent, c.state) = (kind, due, now, State::Writing(0));
        c.slow = (0, 0, 0);
        c.response.reset(self.kinds[kind].door, self.kinds[kind].is_head);
        self.busy += 1;
        self.next_sweep = self.next_sweep.min((due + self.timeout).max(self.swept + SWEEP));
        if self.conns[conn].fd.is_none() && !self.open(conn) {
            return self.finish(conn, Err(Failure::Refused));
        }
        // Over loopback it is mostly made by now: the write saves a trip to epoll.
        self.write(conn);
    }

    /// Waits until a request has ended or the clock shows `until`; `out` gets what has ended.
    pub fn wait(&mut self, until: u64, out: &mut Vec<Done>) -> Result<(), String> {
        out.clear();
        let mut looked = false;
        loop {
            if let Some(message) = self.fatal.take() {
                return Err(message);
            }
            let now = self.now();
            if now >= self.next_sweep {
                self.expire(now);
            }
            self.read_on(now);
            // Whoever is behind its schedule must still look at what has come in.
            if !self.done.is_empty() || (now >= until && looked) {
                std::mem::swap(&mut self.done, out);
                return Ok(());
            }
            let sip = self.sips.peek().map_or(u64::MAX, |Reverse((when, _))| *when);
            let alarm = until.min(self.next_sweep).min(sip);
            self.poll(alarm.saturating_sub(now)).map_err(|error| format!("epoll: {error}"))?;
            looked = true;
        }
    }

    fn poll(&mut self, nanos: u64) -> io::Result<()> {
        let mut events = std::mem::take(&mut self.events);
        events.clear();
        let timeout =
            Timespec { tv_sec: (nanos / SECOND) as i64, tv_nsec: (nanos % SECOND) as i64 };
        retry_on_intr(|| epoll::wait(&self.epoll, spare_capacity(&mut events), Some(&timeout)))?;
        for event in &events {
            let (conn, flags) = (event.data.u64() as usize, event.flags);
            if flags.contains(EventFlags::OUT) {
                self.write(conn);
            }
            if flags.intersects(EventFlags::IN | EventFlags::HUP | EventFlags::ERR) {
                self.read(conn);
            }
        }
        self.events = events;
        Ok(())
    }

    fn open(&mut self, conn: usize) -> bool {
        let (fd, connected) = match self.target.open() {
            Ok(opened) => opened,
            Err(error) => {
                self.fatal = ours(error, self.open_now);
                return false;
            }
        };
        let data = EventData::new_u64(conn as u64);
        if let Err(error) = epoll::add(&self.epoll, &fd, data, EventFlags::IN) {
            self.fatal = Some(format!("epoll: {error}"));
            return false;
        }
        let c = &mut self.conns[conn];
        (c.fd, c.awaits_room) = (Some(fd), false);
        if connected {
            self.opened(conn);
        }
        true
    }

    fn opened(&mut self, conn: usize) {
        self.conns[conn].open = true;
        self.connects += 1;
        self.open_now += 1;
        self.most_open = self.most_open.max(self.open_now);
    }

    /// Gives up a connection that is not needed any more, by a reset: closing it in the usual way
    /// would leave the kernel busy with it for a minute, at the cost of whoever is measured next.
    pub fn abandon(&mut self, conn: usize) {
        if let Some(fd) = &self.conns[conn].fd {
            // Where it cannot be had, it is closed in the usual way.
            let _ = sockopt::set_socket_linger(fd, Some(Duration::ZERO));
        }
        self.close(conn);
    }

    /// The same for all.
    pub fn abandon_all(&mut self) {
        (0..self.conns.len()).for_each(|conn| self.abandon(conn));
    }

    fn close(&mut self, conn: usize) {
        let c = &mut self.conns[conn];
        c.fd = None;
        self.open_now -= usize::from(std::mem::take(&mut c.open));
    }

    fn write(&mut self, conn: usize) {
        let c = &mut self.conns[conn];
        let kind = &self.kinds[c.kind];
        let (State::Writing(mut at), Some(fd)) = (c.state, &c.fd) else { return };
        let mut broken = false;
        for _ in 0..SENDS {
            match send(fd, kind.rest(at), SendFlags::NOSIGNAL) {
                Ok(written) => at += written as u64,
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => break,
                Err(_) => broken = true,
            }
            if broken || at == kind.length {
                break;
            }
        }
        let ended = broken || at == kind.length;
        c.state = if ended { State::Reading } else { State::Writing(at) };
        if !c.open {
            if broken {
                return self.finish(conn, Err(Failure::Refused));
            }
            if at > 0 {
                self.opened(conn);
            }
        }
        // If it broke, the answer to what was written may lie there already: reading tells.
        if ended == self.conns[conn].awaits_room {
            self.await_room(conn, !ended);
        }
    }

    fn await_room(&mut self, conn: usize, wanted: bool) {
        let c = &mut self.conns[conn];
        let Some(fd) = &c.fd else { return };
        c.awaits_room = wanted;
        let out = if wanted { EventFlags::OUT } else { EventFlags::empty() };
        let data = EventData::new_u64(conn as u64);
        if let Err(error) = epoll::modify(&self.epoll, fd, data, EventFlags::IN | out) {
            self.fatal = Some(format!("epoll: {error}"));
        }
    }

    fn read(&mut self, conn: usize) {
        let c = &self.conns[conn];
        if c.fd.is_none() {
            return;
        }
        // The end of a connection that nobody uses, or bytes that nobody asked for.
        if c.state == State::Idle {
            return self.close(conn);
        }
        let rate = self.kinds[c.kind].read_rate;
        let room = if rate == 0 { self.input.len() } else { self.sip(conn, rate) };
        if room == 0 {
            return;
        }
        let c = &mut self.conns[conn];
        let Some(fd) = &c.fd else { return };
        let result = match recv(fd, &mut self.input[..room], RecvFlags::empty()) {
            Err(Errno::AGAIN | Errno::INTR) => return,
            Ok((0, _)) if c.response.end() => Ok(()),
            Ok((0, _)) => Err(Failure::Reset),
            Err(_) => Err(if c.open { Failure::Reset } else { Failure::Refused }),
            Ok((read, _)) => {
                c.slow.1 += read as u64;
                match c.response.feed(&self.input[..read], &mut self.workers) {
                    Progress::More => return,
                    Progress::Done => Ok(()),
                    Progress::Garbage => Err(Failure::Garbage),
                }
            }
        };
        let status = c.response.status;
        let good = (200..300).contains(&status);
        self.finish(conn, result.and(if good { Ok(()) } else { Err(Failure::Status(status)) }));
    }

    /// How much a slow reader may read now. If nothing, the socket leaves epoll until it may: a
    /// socket whose peer is gone cannot be silenced otherwise.
    fn sip(&mut self, conn: usize, rate: u64) -> usize {
        let now = self.now();
        let c = &mut self.conns[conn];
        if c.slow.0 == 0 {
            c.slow.0 = now;
        }
        let allowed = u128::from(now - c.slow.0) * u128::from(rate) / u128::from(SECOND);
        let room = (allowed as u64).saturating_sub(c.slow.1).min(self.input.len() as u64) as usize;
        if room == 0 {
            let when = now + SIP.max(SECOND / rate);
            c.slow.2 = when;
            self.sips.push(Reverse((when, conn)));
            if let Some(fd) = &c.fd {
                let _ = epoll::delete(&self.epoll, fd);
            }
        }
        room
    }

    fn read_on(&mut self, now: u64) {
        while let Some(&Reverse((when, conn))) = self.sips.peek()
            && when <= now
        {
            self.sips.pop();
            let c = &mut self.conns[conn];
            if c.slow.2 != when {
                continue;
            }
            c.slow.2 = 0;
            let out = if c.awaits_room { EventFlags::OUT } else { EventFlags::empty() };
            if let Some(fd) = &c.fd {
                let data = EventData::new_u64(conn as u64);
                let _ = epoll::add(&self.epoll, fd, data, EventFlags::IN | out);
            }
            self.read(conn);
        }
    }

    fn finish(&mut self, conn: usize, result: Result<(), Failure>) {
        let end = self.now();
        let c = &mut self.conns[conn];
        let answered = !matches!(result, Err(failure) if failure.is_broken());
        let written = c.state == State::Reading;
        c.state = State::Idle;
        c.slow.2 = 0;
        self.busy -= 1;
        self.done.push(Done {
            conn,
            kind: c.kind,
            due: c.due,
            sent: c.sent,
            end,
            bytes: c.response.bytes,
            worker: c.response.worker,
            result,
        });
        let kind = &self.kinds[c.kind];
        match answered && written && kind.keep && !c.response.close {
            true => {}
            false if kind.reset => self.abandon(conn),
            false => self.close(conn),
        }
    }

    fn expire(&mut self, now: u64) {
        let mut next = u64::MAX;
        for conn in 0..self.conns.len() {
            let c = &self.conns[conn];
            if c.state == State::Idle {
                continue;
            }
            let end = c.due + self.timeout;
            if end <= now {
                self.finish(conn, Err(Failure::Timeout));
            } else {
                next = next.min(end);
            }
        }
        (self.swept, self.next_sweep) = (now, next.max(now + SWEEP));
    }
}
