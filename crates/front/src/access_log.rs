//! One line for each request, when `access_log` is set: who asked for what, what became of it, how
//! long it waited and how long it took.
//!
//! An `Entry` is made when the head is there and rides on the response's body; when that is
//! dropped, sent or not, the line is written. An entry that never got a response was a client's
//! that left: 499.

mod format;
mod id;
mod writer;

use crate::here;
use crate::mounts::Mount;
use crate::options::Options;
use crate::peer::Peer;
use bytes::Bytes;
use format::Format;
use http_body::{Body, Frame};
use hyper::header::{HOST, HeaderName, HeaderValue, REFERER, USER_AGENT};
use hyper::http::request::Parts;
use hyper::{Method, Request, Response, StatusCode, Uri, Version};
use std::cell::RefCell;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};
use wire::control::MountId;
use wire::{Board, State, now_ns};
use writer::Writer;

/// The status of a request whose client left before its answer, as nginx calls it.
const CLIENT_LEFT: u16 = 499;
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The process's log; none: nothing is logged.
static LOG: OnceLock<Log> = OnceLock::new();

struct Log {
    format: Format,
    writer: Writer,
}

/// Opens the log that the settings name, if they name one.
pub fn open(options: &Options) {
    let Some(path) = &options.access_log else { return };
    let format = Format::named(&options.access_log_format);
    let _ = LOG.set(Log { format, writer: Writer::start(path.clone()) });
}

/// Whether requests are logged.
pub fn is_open() -> bool {
    LOG.get().is_some()
}

/// Goes on in a file of the same name, for whoever has renamed the old one.
pub fn reopen() {
    LOG.get().inspect(|log| log.writer.reopen());
}

/// Writes what is left. Later lines are lost.
pub fn close() {
    LOG.get().inspect(|log| log.writer.close());
}

/// What becomes known of a request on its way: most of it when its slot is given back.
#[derive(Debug, Default)]
pub struct Times {
    /// Nanoseconds in the queue.
    queue: AtomicU64,
    /// Nanoseconds from a worker's taking it to the end of the reply; 0: no worker had it.
    service: AtomicU64,
    /// That worker's number; 0: none.
    worker: AtomicU32,
    /// Whom a trusted proxy speaks for.
    client: OnceLock<IpAddr>,
    /// Where it went.
    mount: OnceLock<Arc<Mount>>,
}

impl Times {
    /// Notes what `slot` says. Called while the slot is still this request's.
    pub fn note(&self, board: &Board, slot: u32) {
        let now = now_ns();
        let head = &board.slots[slot as usize];
        let word = head.word();
        let queued = head.queued_ns.load(Relaxed);
        if matches!(word.state, State::Taken | State::Begun | State::Done) {
            let taken = head.taken_ns.load(Relaxed);
            self.queue.store(taken.saturating_sub(queued), Relaxed);
            self.service.store(now.saturating_sub(taken).max(1), Relaxed);
            let seat = board.seats.get(usize::from(word.owner));
            self.worker.store(seat.map_or(0, |seat| seat.worker.load(Relaxed)), Relaxed);
        } else {
            self.queue.store(now.saturating_sub(queued), Relaxed);
        }
    }
}

impl Times {
    /// Notes what became of a request that a backend had.
    pub fn proxied(&self, queue: Duration, service: Duration) {
        self.queue.store(queue.as_nanos() as u64, Relaxed);
        self.service.store(service.as_nanos() as u64, Relaxed);
    }
}

/// A request on its way to a line. Written when it is dropped.
pub struct Entry {
    at: SystemTime,
    began_ns: u64,
    peer: Arc<Peer>,
    /// None: what came was no request.
    asked: Option<(Method, Uri, Version)>,
    host: Option<HeaderValue>,
    referer: Option<HeaderValue>,
    agent: Option<HeaderValue>,
    id: HeaderValue,
    status: u16,
    bytes: u64,
    complete: bool,
    times: Arc<Times>,
}

/// Begins an entry, and gives the request its id: the client's if that is sane, else a new one.
pub fn begin<B>(request: &mut Request<B>, peer: &Arc<Peer>) -> Option<Box<Entry>> {
    LOG.get()?;
    let header = |name| request.headers().get(name).cloned();
    let (host, referer, agent) = (header(HOST), header(REFERER), header(USER_AGENT));
    let mut said = request.headers().get_all(&REQUEST_ID).iter();
    let said = said.next().filter(|_| said.next().is_none()).filter(|id| id::is_sane(id)).cloned();
    let id = said.unwrap_or_else(|| {
        let id = id::new();
        request.headers_mut().insert(REQUEST_ID, id.clone());
        id
    });
    let times = Arc::<Times>::default();
    request.extensions_mut().insert(times.clone());
    Some(Box::new(Entry {
        at: SystemTime::now(),
        began_ns: now_ns(),
        peer: peer.clone(),
        asked: Some((request.method().clone(), request.uri().clone(), request.version())),
        host,
        referer,
        agent,
        id,
        status: CLIENT_LEFT,
        bytes: 0,
        complete: false,
        times,
    }))
}

/// Writes a line for what was no request and has been refused.
pub fn refused(status: StatusCode, peer: &Arc<Peer>) {
    if LOG.get().is_none() {
        return;
    }
    drop(Entry {
        at: SystemTime::now(),
        began_ns: now_ns(),
        peer: peer.clone(),
        asked: None,
        host: None,
        referer: None,
        agent: None,
        id: id::new(),
        status: status.as_u16(),
        bytes: 0,
        complete: true,
        times: Arc::default(),
    });
}

/// The place to note what the queue knows of the request with this head.
pub fn times(head: &Parts) -> Option<Arc<Times>> {
    head.extensions.get().cloned()
}

impl Entry {
    /// There is a response.
    pub fn answers<B: Body>(&mut self, response: &Response<B>) {
        self.status = response.status().as_u16();
        // Of these hyper never asks for a body.
        let head = matches!(&self.asked, Some((Method::HEAD, ..)));
        self.complete = head || response.body().is_end_stream();
    }

    /// Its connection goes to the app, behind this status.
    pub fn is_given(&mut self, status: u16) {
        (self.status, self.complete) = (status, true);
    }

    /// All of its body has gone out.
    pub fn has_sent(&mut self, bytes: usize) {
        (self.bytes, self.complete) = (bytes as u64, true);
    }

    /// A part of its body goes out, perhaps the last, or there is no more.
    pub fn sends<E>(&mut self, part: &Option<Result<Frame<Bytes>, E>>, ended: bool) {
        if let Some(Ok(frame)) = part {
            self.bytes += frame.data_ref().map_or(0, |data| data.len() as u64);
        }
        self.complete = ended || part.is_none();
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        thread_local! {
            static LINE: RefCell<(Vec<u8>, format::Clock)> = RefCell::default();
        }
        let Some(log) = LOG.get() else { return };
        let _ = LINE.try_with(|line| {
            let (line, clock) = &mut *line.borrow_mut();
            line.clear();
            log.format.write(line, self, clock);
            log.writer.add(line);
        });
    }
}

/// Notes where the request with this head goes.
pub fn goes_to(head: &Parts, mount: MountId) {
    if let Some(times) = head.extensions.get::<Arc<Times>>()
        && let Some(mount) = here::mount(mount)
    {
        let _ = times.mount.set(mount);
    }
}

/// Notes whom a trusted proxy speaks for in the request with this head.
pub fn speaks_for(head: &Parts, client: Option<IpAddr>) {
    if let (Some(client), Some(times)) = (client, head.extensions.get::<Arc<Times>>()) {
        let _ = times.client.set(client);
    }
}
