//! The FastCGI door (FastCGI 1.0): a web server's connection with its requests, one after another or
//! several at once. The connection is one task; those of its requests run inside of it.

use super::out::Out;
use super::requests::{Ending, Running};
use super::shared::Shared;
use crate::io::Socket;
use crate::link::{Due, Phase};
use crate::peer::Peer;
use crate::refuse::{Refusal, Seldom};
use crate::{connection, drain, here, sweep};
use bytes::{Buf, Bytes, BytesMut};
use door::fastcgi::{self, Begin, Record, kind, role, status};
use std::future::poll_fn;
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

/// Bytes read at a time.
const READ: usize = 16 * 1024;
/// Requests that a connection may have under way.
const REQUESTS: usize = 128;
/// Bytes of bodies that may wait for the disk before nothing more is read.
const WAITING: usize = 512 * 1024;

/// Web servers that may connect, as the one that started us says (section 3.2); None: all.
fn allowed() -> Option<&'static [IpAddr]> {
    static ALLOWED: OnceLock<Option<Vec<IpAddr>>> = OnceLock::new();
    let said = || std::env::var("FCGI_WEB_SERVER_ADDRS").ok();
    let read = |list: String| list.split(',').flat_map(|one| one.trim().parse()).collect();
    ALLOWED.get_or_init(|| said().map(read)).as_deref()
}

/// Serves the connection to its end.
pub async fn serve(socket: Socket, peer: Arc<Peer>, early: Bytes, refusal: Option<Refusal>) {
    let is_allowed = |client| allowed().is_none_or(|all| all.contains(&client));
    if !peer.client.is_none_or(is_allowed) {
        static LOG: Seldom = Seldom::new();
        return LOG.say(&format!("FCGI_WEB_SERVER_ADDRS does not name {}", peer.who()));
    }
    let _watched = sweep::watch(peer.clone()).await;
    let mut connection = Connection {
        socket,
        peer,
        refusal,
        read: BytesMut::from(&early[..]),
        requests: Vec::new(),
        out: Shared::new(Out::default()),
        closing: false,
        unread: false,
    };
    if connection.parse().is_ok() {
        poll_fn(|context| connection.poll(context)).await;
    }
    if connection.closing && connection.unread {
        connection::linger(&mut connection.socket, &connection.peer).await;
    }
}

struct Connection {
    socket: Socket,
    peer: Arc<Peer>,
    /// What every request gets, if it is not to be served.
    refusal: Option<Refusal>,
    /// Read, and no whole record yet.
    read: BytesMut,
    requests: Vec<Request>,
    out: Shared<Out>,
    /// The connection ends with the requests that are under way.
    closing: bool,
    /// A request has been answered before all of its body had come.
    unread: bool,
}

/// A request that has begun and not ended.
struct Request {
    id: u16,
    keep: bool,
    stage: Stage,
}

enum Stage {
    /// Its variables are coming: these have.
    Variables(Vec<u8>),
    /// They are all there.
    Running(Running),
}

/// The connection is of no more use.
struct Over;

impl Connection {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        loop {
            if self.is_due() || self.poll_read(context).is_err() {
                return Poll::Ready(());
            }
            let ended = self.poll_requests(context);
            let full = self.out.get().is_full();
            match self.out.get().poll_flush(&mut self.socket, &self.peer, context) {
                Poll::Ready(Err(_)) => return Poll::Ready(()),
                Poll::Ready(Ok(())) if self.closing && self.requests.is_empty() => {
                    return Poll::Ready(());
                }
                _ => {}
            }
            self.stand();
            // Replies that waited for room go on, and so does reading that waited for requests.
            let moves = ended || full && !self.out.get().is_full();
            if !moves {
                return Poll::Pending;
            }
        }
    }

    /// What the sweep has found. True: the connection is to be closed.
    fn is_due(&mut self) -> bool {
        match self.peer.link.take_due().then(|| sweep::due(&self.peer)).flatten() {
            None => false,
            Some(Due::Rest) => {
                if self.read.is_empty() {
                    self.read = BytesMut::new();
                    self.peer.link.rests(true);
                }
                false
            }
            Some(Due::Stuck) => {
                connection::cut_off(&self.socket, &self.peer);
                true
            }
            Some(Due::Close | Due::TooSlow | Due::Gone) => true,
        }
    }

    /// Reads until nothing more is there, or there is enough to do.
    fn poll_read(&mut self, context: &mut Context<'_>) -> Result<(), Over> {
        while self.wants_more() {
            self.read.reserve(READ);
            match self.socket.poll_read_into(context, &mut self.read) {
                Poll::Pending => return Ok(()),
                // A web server that closes wants none of its requests answered any more.
                Poll::Ready(Ok(0) | Err(_)) => return Err(Over),
                Poll::Ready(Ok(count)) => {
                    self.peer.link.rests(false);
                    let from = self.read.len() - count;
                    self.peer.link.received(&self.read[from..]);
                    self.parse()?;
                }
            }
        }
        Ok(())
    }

    fn wants_more(&self) -> bool {
        let waiting: usize = self.requests.iter().map(Request::waiting).sum();
        waiting < WAITING && !self.out.get().is_full()
    }

    /// Takes the whole records out of what was read.
    fn parse(&mut self) -> Result<(), Over> {
        let mut read = std::mem::take(&mut self.read);
        let mut whole = Ok(());
        while whole.is_ok() {
            whole = match fastcgi::record(&read) {
                Ok(None) => break,
                Ok(Some((record, length))) => {
                    let taken = self.take(&record);
                    read.advance(length);
                    taken
                }
                Err(fault) => Err(self.complain(fault.text())),
            };
        }
        self.read = read;
        whole
    }

    fn complain(&self, what: &str) -> Over {
        static LOG: Seldom = Seldom::new();
        LOG.say(&format!("FastCGI from {}: {}", self.peer.who(), what.trim_end()));
        Over
    }

    fn take(&mut self, record: &Record<'_>) -> Result<(), Over> {
        let id = record.id;
        if id == 0 {
            self.manage(record);
            return Ok(());
        }
        let place = self.requests.iter().position(|request| request.id == id);
        match (record.kind, place) {
            (kind::BEGIN_REQUEST, None) => self.begin(record),
            (kind::BEGIN_REQUEST, Some(_)) => {
                Err(self.complain("a request begins with the number of one that is under way"))
            }
            (kind::PARAMS, Some(place)) => {
                self.variables(place, record.content);
                Ok(())
            }
            (kind::STDIN, Some(place)) => {
                if let Stage::Running(running) = &self.requests[place].stage {
                    running.inbox.get().add(record.content);
                }
                Ok(())
            }
            (kind::ABORT_REQUEST, Some(place)) => {
                self.requests[place].end(&self.out, 0, status::REQUEST_COMPLETE);
                self.forget(place);
                Ok(())
            }
            // Of requests that are over, and of kinds that a responder does not need (section 3.3).
            _ => Ok(()),
        }
    }

    /// Section 4.
    fn manage(&mut self, record: &Record<'_>) {
        let mut out = self.out.get();
        if record.kind != kind::GET_VALUES {
            return fastcgi::put_unknown_type(out.small(), record.kind);
        }
        let (connections, requests) = here::with(|here| {
            let most = here.options.connections;
            (if most == 0 { wire::SLOTS } else { most }, wire::SLOTS)
        });
        let (connections, requests) = (connections.to_string(), requests.to_string());
        let known = [
            ("FCGI_MAX_CONNS", connections.as_str()),
            ("FCGI_MAX_REQS", requests.as_str()),
            ("FCGI_MPXS_CONNS", "1"),
        ];
        fastcgi::put_values(out.small(), record.content, &known);
    }

    /// Section 5.1.
    fn begin(&mut self, record: &Record<'_>) -> Result<(), Over> {
        let begin = Begin::parse(record.content).map_err(|fault| self.complain(fault.text()))?;
        let keep = begin.keep && self.refusal.is_none();
        let request = Request { id: record.id, keep, stage: Stage::Variables(Vec::new()) };
        let refused = match begin.role {
            role::RESPONDER if self.requests.len() < REQUESTS => None,
            role::RESPONDER => Some(status::OVERLOADED),
            _ => Some(status::UNKNOWN_ROLE),
        };
        if let Some(status) = refused {
            request.end(&self.out, 0, status);
            self.closing |= !keep;
            return Ok(());
        }
        self.requests.push(request);
        Ok(())
    }

    fn variables(&mut self, place: usize, content: &[u8]) {
        let request = &mut self.requests[place];
        let Stage::Variables(all) = &mut request.stage else { return };
        let refusal = match all.len() + content.len() > limit() {
            true => Some(Refusal::HeadTooLarge),
            false => self.refusal,
        };
        all.extend_from_slice(content);
        if content.is_empty() || refusal == Some(Refusal::HeadTooLarge) {
            let (all, peer, out) = (std::mem::take(all), self.peer.clone(), self.out.clone());
            let running = Running::start(request.id, all, peer, out, refusal);
            request.stage = Stage::Running(running);
        }
    }

    /// Goes on with every request. True: one has ended, or has taken what waited for it.
    fn poll_requests(&mut self, context: &mut Context<'_>) -> bool {
        let mut moved = false;
        let mut place = 0;
        while place < self.requests.len() {
            let (id, waiting) = (self.requests[place].id, self.requests[place].waiting());
            let Stage::Running(running) = &mut self.requests[place].stage else {
                place += 1;
                continue;
            };
            let ended = running.poll(id, &self.out, context);
            moved |= self.requests[place].waiting() < waiting;
            match ended {
                Poll::Pending => {
                    place += 1;
                    continue;
                }
                Poll::Ready(Ending::Whole(app, protocol)) => {
                    fastcgi::put_stream_end(self.out.get().small(), kind::STDOUT, id);
                    self.requests[place].end(&self.out, app, protocol);
                }
                // The end of the connection says so best; others are not to suffer from it.
                Poll::Ready(Ending::CutShort) if self.requests.len() == 1 => self.closing = true,
                Poll::Ready(Ending::CutShort) => {
                    self.requests[place].end(&self.out, 1, status::REQUEST_COMPLETE);
                    self.closing = true;
                }
            }
            moved = true;
            self.forget(place);
        }
        moved
    }

    fn forget(&mut self, place: usize) {
        let request = self.requests.swap_remove(place);
        self.unread |= !request.is_read();
        self.closing |= !request.keep || drain::is_giving_way();
    }

    /// Tells the connection's link where it stands, by the request that has come the least far.
    fn stand(&self) {
        let unsent = self.out.get().len() > 0;
        let stages = self.requests.iter().map(Request::phase);
        let phase = stages.min_by_key(|phase| *phase as u8);
        self.peer.link.stands(match phase {
            Some(phase) => phase,
            None if unsent => Phase::Flushing,
            None if !self.read.is_empty() => Phase::Head,
            None => Phase::Idle,
        });
    }
}

impl Request {
    fn end(&self, out: &Shared<Out>, app_status: u32, protocol_status: u8) {
        fastcgi::put_end(out.get().small(), self.id, app_status, protocol_status);
    }

    fn is_read(&self) -> bool {
        matches!(&self.stage, Stage::Running(running) if running.inbox.get().has_ended())
    }

    /// Bytes of its body that nobody has taken.
    fn waiting(&self) -> usize {
        match &self.stage {
            Stage::Variables(_) => 0,
            Stage::Running(running) => running.inbox.get().len(),
        }
    }

    fn phase(&self) -> Phase {
        match &self.stage {
            Stage::Variables(_) => Phase::Head,
            Stage::Running(running) => {
                let inbox = running.inbox.get();
                match (inbox.answers(), inbox.has_ended()) {
                    (true, _) => Phase::Replying,
                    (false, true) => Phase::Waiting,
                    (false, false) => Phase::Body,
                }
            }
        }
    }
}

/// Longest variables of a request in bytes.
fn limit() -> usize {
    here::options().head_limit
}
