//! Step 4: the request into a slot, the slot into the queue.

use crate::access_log::{self, Times};
use crate::body::Payload;
use crate::errors::Outlet;
use crate::peer::Peer;
use crate::refuse::Refusal;
use crate::rules::Asked;
use crate::spool::Spool;
use crate::table::{self, Table};
use hyper::header::{CONTENT_LENGTH, COOKIE, HOST, HeaderName, TRANSFER_ENCODING};
use hyper::http::request::Parts;
use hyper::{Method, Version};
use std::cell::RefCell;
use std::sync::Arc;
use wire::layout::BODY_CHUNKS;
use wire::request::{key, push, push_header, push_named};
use wire::sync::Ordering::Relaxed;
use wire::{CHUNK_BYTES, REQUEST_BYTES, now_ns};

/// Longest request body in bytes that is not spooled.
pub const BODY_MAX: usize = BODY_CHUNKS * CHUNK_BYTES;
/// Longest request record in bytes.
const RECORD_MAX: usize = CHUNK_BYTES;

/// A request in the queue. Dropped before it is `settled`, it is cancelled or abandoned.
pub struct Ticket {
    /// Its slot.
    pub slot: u32,
    /// Its place in the queue.
    pub position: u64,
    /// False: whatever the reply's headers say, it has no body (HEAD).
    pub wants_body: bool,
    settled: bool,
    /// Its body, if that lies on disk; gone with the ticket.
    pub spool: Option<Spool>,
    /// Where its `rack.errors` go, if its door has a way for them.
    pub errors: Option<Arc<Outlet>>,
    /// For the access log.
    times: Option<Arc<Times>>,
}

impl Ticket {
    /// The reply was read to its end: the slot is free again.
    pub fn settle(mut self) {
        self.settled = true;
        table::with(|table| {
            self.note(table);
            table.free(self.slot);
        });
    }

    fn note(&self, table: &Table) {
        self.times.iter().for_each(|times| times.note(table.board(), self.slot));
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if !self.settled {
            table::with(|table| {
                self.note(table);
                table.abandon(self.slot, self.position);
            });
        }
    }
}

thread_local! {
    /// The record being built; kept, so that it is allocated once.
    static RECORD: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Fills a slot and puts it into the queue. `asked` is what the rules found.
pub fn admit(head: &Parts, asked: &Asked, body: Payload, peer: &Peer) -> Result<Ticket, Refusal> {
    let head_ns = now_ns();
    RECORD.with_borrow_mut(|record| {
        record.clear();
        write_record(record, head, asked, body.len(), peer);
        if record.len() > RECORD_MAX {
            return Err(Refusal::HeadTooLarge);
        }
        table::with(|table| {
            let slot = table.take_slot().ok_or(Refusal::Overloaded)?;
            let put = fill(table, slot, record, &body).and_then(|()| {
                let shared = &table.board().slots[slot as usize];
                let idempotent =
                    matches!(head.method, Method::GET | Method::HEAD | Method::OPTIONS);
                shared.idempotent.store(idempotent.into(), Relaxed);
                shared.accepted_ns.store(peer.accepted_ns, Relaxed);
                shared.head_ns.store(head_ns, Relaxed);
                shared.queued_ns.store(now_ns(), Relaxed);
                table.board().put(slot).map_err(|_| Refusal::Overloaded)
            });
            match put {
                Ok(position) => {
                    table.board().ring_one();
                    table.count_put();
                    peer.link.queues(slot, position);
                    let wants_body = head.method != Method::HEAD;
                    let times = access_log::times(head);
                    let spool = body.spool;
                    let (settled, errors) = (false, None);
                    Ok(Ticket { slot, position, wants_body, settled, spool, errors, times })
                }
                Err(refusal) => {
                    table.free(slot);
                    Err(refusal)
                }
            }
        })
    })
}

/// Record and body into the slot, or into chunks where they do not fit.
fn fill(table: &Table, slot: u32, record: &[u8], body: &Payload) -> Result<(), Refusal> {
    let segment = table.segment;
    let shared = &table.board().slots[slot as usize];
    let board = table.board();
    shared.incarnation.store(board.header.incarnation.load(Relaxed), Relaxed);
    shared.front.store(table.front() as u32, Relaxed);
    for zeroed in [
        &shared.cancelled,
        &shared.returns,
        &shared.written,
        &shared.read,
        &shared.asks,
        &shared.door,
    ] {
        zeroed.store(0, Relaxed);
    }
    shared.spooled.store(body.spool.is_some().into(), Relaxed);
    let body: &[u8] = &body.bytes;
    shared.head_len.store(record.len() as u32, Relaxed);
    shared.body_len.store(body.len() as u32, Relaxed);
    shared.head_chunk.store(0, Relaxed);
    shared.body_chunks.store(0, Relaxed);
    let head_outside = record.len() > REQUEST_BYTES;
    let room = if head_outside { REQUEST_BYTES } else { REQUEST_BYTES - record.len() };
    let parts = if body.len() > room { body.len().div_ceil(CHUNK_BYTES) } else { 0 };
    if head_outside || parts > 0 {
        let count = parts + usize::from(head_outside);
        let mut chunks = table.take_chunks(count).ok_or(Refusal::Overloaded)?.into_iter();
        if head_outside {
            let chunk = chunks.next().expect("as many as were taken");
            segment.write_chunk(chunk as usize, record);
            shared.head_chunk.store(u32::from(chunk) + 1, Relaxed);
        }
        let mut packed = 0u64;
        for (i, (chunk, part)) in chunks.zip(body.chunks(CHUNK_BYTES)).enumerate() {
            segment.write_chunk(chunk as usize, part);
            packed |= (u64::from(chunk) + 1) << (16 * i);
        }
        shared.body_chunks.store(packed, Relaxed);
    }
    if !head_outside {
        segment.write_request(slot, 0, record);
    }
    if parts == 0 {
        let from = if head_outside { 0 } else { record.len() };
        segment.write_request(slot, from, body);
    }
    Ok(())
}

/// The request as env pairs. What the worker's template already says is left out: GET, HTTP/1.1,
/// http, an empty SCRIPT_NAME, an empty QUERY_STRING, the PATH_INFO of `OPTIONS *`.
fn write_record(record: &mut Vec<u8>, head: &Parts, asked: &Asked, length: u64, peer: &Peer) {
    if head.method != Method::GET {
        push(record, key::REQUEST_METHOD, head.method.as_str().as_bytes());
    }
    // `OPTIONS *` asks about no path: what stands for that, the worker's Rack says.
    if head.uri.path() != "*" {
        push(record, key::PATH_INFO, head.uri.path().as_bytes());
    }
    match head.uri.query() {
        Some(query) if !query.is_empty() => push(record, key::QUERY_STRING, query.as_bytes()),
        _ => {}
    }
    match head.uri.path_and_query() {
        Some(target) if head.uri.scheme().is_none() => {
            push(record, key::REQUEST_URI, target.as_str().as_bytes());
        }
        _ => push(record, key::REQUEST_URI, head.uri.to_string().as_bytes()),
    }
    if head.version != Version::HTTP_11 {
        push(record, key::SERVER_PROTOCOL, b"HTTP/1.0");
        push(record, key::HTTP_VERSION, b"HTTP/1.0");
    }
    write_ends(record, asked, peer);
    write_headers(record, head, asked, length, peer);
}

/// Both ends of the connection: the client's, or whom a trusted proxy speaks for; and the server's
/// that was asked for, or the listener's own.
fn write_ends(record: &mut Vec<u8>, asked: &Asked, peer: &Peer) {
    let claims = &asked.claims;
    match claims.client {
        Some(client) => {
            let port = claims.client_port.map_or(String::new(), |port| port.to_string());
            push(record, key::REMOTE_ADDR, client.to_string().as_bytes());
            push(record, key::REMOTE_PORT, port.as_bytes());
        }
        None => {
            push(record, key::REMOTE_ADDR, peer.address.as_bytes());
            push(record, key::REMOTE_PORT, peer.port.as_bytes());
        }
    }
    let https = claims.https == Some(true);
    if https {
        push(record, key::URL_SCHEME, b"https");
        push_named(record, b"HTTPS", b"on");
    }
    let usual = if https { "443" } else { "80" };
    let (name, port) = match asked.authority {
        Some(asked) => (asked.host, asked.port.unwrap_or(usual)),
        None => (peer.home.name.as_str(), peer.home.port.as_str()),
    };
    push(record, key::SERVER_NAME, name.as_bytes());
    push(record, key::SERVER_PORT, claims.port.unwrap_or(port).as_bytes());
}

fn write_headers(record: &mut Vec<u8>, head: &Parts, asked: &Asked, length: u64, peer: &Peer) {
    let chunked = head.headers.contains_key(TRANSFER_ENCODING);
    let passes = |name: &HeaderName| match *name {
        HOST => !asked.instead_of_host,
        TRANSFER_ENCODING | CONTENT_LENGTH => !chunked,
        _ => is_for_apps(name.as_str()) && peer.word.passes(name.as_str()),
    };
    if let (true, Some(authority)) = (asked.instead_of_host, asked.authority) {
        push_header(record, HOST.as_str(), authority.text.as_bytes());
    }
    let all_once = head.headers.len() == head.headers.keys_len();
    if all_once {
        for (name, value) in head.headers.iter().filter(|(name, _)| passes(name)) {
            push_header(record, name.as_str(), value.as_bytes());
        }
    } else {
        for name in head.headers.keys().filter(|name| passes(name)) {
            // RFC 9110, section 5.3; RFC 6265, section 5.4 for cookies.
            let separator: &[u8] = if *name == COOKIE { b"; " } else { b", " };
            let values: Vec<&[u8]> =
                head.headers.get_all(name).iter().map(|value| value.as_bytes()).collect();
            push_header(record, name.as_str(), &values.join(separator));
        }
    }
    if chunked {
        // The app gets the body whole and decoded, so it is told its length.
        push_header(record, CONTENT_LENGTH.as_str(), length.to_string().as_bytes());
    }
}

/// Headers the app gets. `Proxy` would become HTTP_PROXY, which programs obey; an underscore would
/// make a name pass as its dashed twin.
fn is_for_apps(name: &str) -> bool {
    name != "proxy" && !name.contains('_')
}
