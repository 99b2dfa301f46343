//! The open loop: every request is sent when it is due, on a kept connection that is free or on a
//! new one, however many are under way.

use crate::request::{Outcome, Request};
use crate::response::{Progress, Response};
use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, connect, recv, send, socket_with,
    sockopt,
};
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use wire::now_ns;

/// A request without an answer after this long hangs, ns.
pub const TIMEOUT: u64 = 15_000_000_000;
/// How often requests are looked at that hang, or that are to be left, ns.
const SWEEP: u64 = 5_000_000;

struct Conn {
    fd: OwnedFd,
    made: u64,
    /// The request under way, by index.
    request: Option<usize>,
    output: Vec<u8>,
    response: Response,
}

/// What has happened to connections that had no request.
#[derive(Debug, Default)]
pub struct Idle {
    /// When they were made and when they ended, ns.
    pub ended: Vec<(u64, u64)>,
}

/// The client.
pub struct Load {
    address: SocketAddr,
    epoll: OwnedFd,
    conns: Vec<Option<Conn>>,
    vacant: Vec<usize>,
    free: Vec<usize>,
    under_way: usize,
    idle: Idle,
}

impl Load {
    /// A client of the server there.
    pub fn new(address: SocketAddr) -> io::Result<Load> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let (conns, vacant, free) = Default::default();
        Ok(Load { address, epoll, conns, vacant, free, under_way: 0, idle: Idle::default() })
    }

    /// Sends all of them, ordered by `due`, and waits for the end of each.
    pub fn run(self, requests: &mut [Request]) -> io::Result<Idle> {
        self.run_until(requests, &AtomicBool::new(false)).map(|(_, idle)| idle)
    }

    /// The same, but sends no more once it is `over`; how many were sent.
    pub fn run_until(
        mut self,
        requests: &mut [Request],
        over: &AtomicBool,
    ) -> io::Result<(usize, Idle)> {
        let (mut next, mut swept) = (0, 0);
        let mut events = Vec::with_capacity(512);
        let mut input = vec![0; 64 * 1024];
        let mut last = requests.len();
        while next < last || self.under_way > 0 {
            let now = now_ns();
            if over.load(Relaxed) {
                last = next;
            }
            while next < last && requests[next].due <= now {
                self.start(requests, next);
                next += 1;
            }
            if now >= swept + SWEEP {
                self.sweep(requests, now);
                swept = now;
            }
            let due = requests[..last].get(next).map_or(u64::MAX, |request| request.due);
            let nanos = due.min(swept + SWEEP).saturating_sub(now_ns());
            let timeout = Timespec {
                tv_sec: (nanos / 1_000_000_000) as i64,
                tv_nsec: (nanos % 1_000_000_000) as i64,
            };
            events.clear();
            match epoll::wait(&self.epoll, spare_capacity(&mut events), Some(&timeout)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            for event in &events {
                let epoll::Event { data, flags } = *event;
                self.advance(requests, data.u64() as usize, flags, &mut input);
            }
        }
        Ok((next, self.idle))
    }

    fn open(&mut self) -> Result<usize, Errno> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let fd = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
        sockopt::set_tcp_nodelay(&fd, true)?;
        let made = now_ns();
        match connect(&fd, &self.address) {
            Ok(()) | Err(Errno::INPROGRESS) => {}
            Err(error) => return Err(error),
        }
        let index = self.vacant.pop().unwrap_or_else(|| {
            self.conns.push(None);
            self.conns.len() - 1
        });
        // Edges: a connection is read and written until there is no more, each time.
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        epoll::add(&self.epoll, &fd, EventData::new_u64(index as u64), flags)?;
        let (output, response) = Default::default();
        self.conns[index] = Some(Conn { fd, made, request: None, output, response });
        Ok(index)
    }

    fn start(&mut self, requests: &mut [Request], index: usize) {
        let request = &mut requests[index];
        (request.sent, request.beside) = (now_ns(), self.under_way);
        let kept = if request.fresh { None } else { self.free.pop() };
        let place = match kept.map_or_else(|| self.open(), Ok) {
            Ok(place) => place,
            Err(_) => {
                request.connected = request.sent;
                (request.ended, request.outcome) = (now_ns(), Outcome::Refused);
                return;
            }
        };
        let Some(conn) = &mut self.conns[place] else { return };
        request.connected = conn.made;
        conn.request = Some(index);
        conn.output = request.bytes();
        conn.response = Response::default();
        self.under_way += 1;
        self.write(requests, place);
    }

    fn advance(
        &mut self,
        requests: &mut [Request],
        at: usize,
        flags: EventFlags,
        input: &mut [u8],
    ) {
        if flags.contains(EventFlags::OUT) {
            self.write(requests, at);
        }
        let ends = EventFlags::HUP | EventFlags::ERR | EventFlags::RDHUP;
        if flags.intersects(ends | EventFlags::IN) {
            self.read(requests, at, input);
        }
    }

    fn write(&mut self, requests: &mut [Request], at: usize) {
        let Some(conn) = &mut self.conns[at] else { return };
        while !conn.output.is_empty() {
            match send(&conn.fd, &conn.output, SendFlags::NOSIGNAL) {
                Ok(written) => drop(conn.output.drain(..written)),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                // A response may be there all the same: the read tells.
                Err(Errno::PIPE | Errno::CONNRESET) => return conn.output.clear(),
                Err(Errno::CONNREFUSED) => return self.finish(requests, at, Outcome::Refused),
                Err(_) => return self.finish(requests, at, Outcome::Cut),
            }
        }
    }

    fn read(&mut self, requests: &mut [Request], at: usize, input: &mut [u8]) {
        loop {
            let Some(conn) = &mut self.conns[at] else { return };
            let count = match recv(&conn.fd, &mut *input, RecvFlags::empty()) {
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => return,
                Err(Errno::CONNREFUSED) => return self.finish(requests, at, Outcome::Refused),
                Ok((0, _)) | Err(_) => return self.finish(requests, at, Outcome::Cut),
                Ok((count, _)) => count,
            };
            let Some(request) = conn.request else {
                // Bytes that nobody asked for.
                return self.finish(requests, at, Outcome::Wrong);
            };
            match conn.response.feed(&input[..count]) {
                Progress::More => {}
                Progress::Garbage => return self.finish(requests, at, Outcome::Wrong),
                Progress::Done(200) if conn.response.body != requests[request].answer() => {
                    return self.finish(requests, at, Outcome::Wrong);
                }
                Progress::Done(status) => {
                    return self.finish(requests, at, Outcome::Answer(status));
                }
            }
        }
    }

    /// The request of a connection has ended, and unless it was answered the connection too.
    fn finish(&mut self, requests: &mut [Request], at: usize, outcome: Outcome) {
        let Some(conn) = &mut self.conns[at] else { return };
        let now = now_ns();
        let request = conn.request.take();
        // An answer to half a request leaves a connection that is of no use.
        let fresh = request.is_some_and(|index| requests[index].fresh);
        let keep = matches!(outcome, Outcome::Answer(_)) && conn.output.is_empty() && !fresh;
        match request {
            Some(index) => {
                // A long body is asked about room when it is whole, which is long after its head.
                requests[index].beside = requests[index].beside.max(self.under_way);
                self.under_way -= 1;
                requests[index].got = conn.response.body.len();
                (requests[index].ended, requests[index].outcome) = (now, outcome);
            }
            None => self.idle.ended.push((conn.made, now)),
        }
        if keep {
            self.free.push(at);
        } else {
            self.conns[at] = None;
            self.vacant.push(at);
            self.free.retain(|free| *free != at);
        }
    }

    fn sweep(&mut self, requests: &mut [Request], now: u64) {
        for at in 0..self.conns.len() {
            let Some(index) = self.conns[at].as_ref().and_then(|conn| conn.request) else {
                continue;
            };
            let request = &requests[index];
            let waited = now.saturating_sub(request.sent);
            if request.patience.is_some_and(|patience| waited > patience) {
                self.finish(requests, at, Outcome::Left);
            } else if waited > TIMEOUT {
                self.finish(requests, at, Outcome::Hung);
            }
        }
    }
}
