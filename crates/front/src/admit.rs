//! Step 4: the request into a slot, the slot into the queue.

use crate::access_log::Times;
use crate::body::Payload;
use crate::errors::Outlet;
use crate::here::{self, Here};
use crate::peer::Peer;
use crate::refuse::Refusal;
use crate::spool::Spool;
use crate::stats;
use crate::table::{self, Table};
use door::Fault;
use std::cell::RefCell;
use std::sync::Arc;
use wire::control::MountId;
use wire::layout::BODY_CHUNKS;
use wire::sync::Ordering::Relaxed;
use wire::{CHUNK_BYTES, REQUEST_BYTES, now_ns};

/// Longest request body in bytes that is not spooled.
pub const BODY_MAX: usize = BODY_CHUNKS * CHUNK_BYTES;
/// Longest request record in bytes.
const RECORD_MAX: usize = CHUNK_BYTES;

/// A request in the queue. Dropped before it is `settled`, it is cancelled or abandoned.
pub struct Ticket {
    /// Whose it is.
    pub mount: MountId,
    /// Its slot there.
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
    /// Of a request that a test has put.
    #[cfg(test)]
    pub fn bare(slot: u32, position: u64, errors: Option<Arc<Outlet>>) -> Ticket {
        let (mount, wants_body, settled) = (MountId(0), true, false);
        Ticket { mount, slot, position, wants_body, settled, spool: None, errors, times: None }
    }

    /// The reply was read to its end: the slot is free again.
    pub fn settle(mut self) {
        self.settled = true;
        table::with(self.mount, |table| {
            self.note(table);
            table.free(self.slot);
        });
    }

    fn note(&self, table: &Table) {
        stats::ends(self.mount, table.board(), self.slot);
        self.times.iter().for_each(|times| times.note(table.board(), self.slot));
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if !self.settled {
            table::with(self.mount, |table| {
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

/// What is to be known of a request beside its record.
pub struct About {
    /// Where it goes.
    pub mount: MountId,
    /// It may be run twice.
    pub idempotent: bool,
    /// False: whatever the reply's headers say, it has no body (HEAD).
    pub wants_body: bool,
    /// Which door it came through: a number of `wire::slot::door`.
    pub door: u32,
    /// Where its `rack.errors` go, if its door has a way for them.
    pub errors: Option<Arc<Outlet>>,
    /// For the access log.
    pub times: Option<Arc<Times>>,
}

impl About {
    /// Of a request to this mount with this method.
    pub fn new(mount: MountId, method: &str, door: u32, times: Option<Arc<Times>>) -> About {
        let idempotent = matches!(method, "GET" | "HEAD" | "OPTIONS");
        About { mount, idempotent, wants_body: method != "HEAD", door, errors: None, times }
    }
}

/// Fills a slot with the record that `write` makes and puts it into the queue.
pub fn admit(
    about: About,
    body: Payload,
    peer: &Peer,
    write: impl FnOnce(&mut Vec<u8>),
) -> Result<Ticket, Refusal> {
    let head_ns = now_ns();
    let (mount, length) = (about.mount, body.len());
    let admitted = RECORD.with_borrow_mut(|record| {
        record.clear();
        write(record);
        if record.len() > RECORD_MAX {
            return Err(Refusal::HeadTooLarge);
        }
        let put = table::find(about.mount, |table| {
            let slot = table.take_slot().ok_or(Refusal::Overloaded)?;
            let put = fill(table, slot, record, &body).and_then(|()| {
                let shared = &table.board().slots[slot as usize];
                shared.idempotent.store(about.idempotent.into(), Relaxed);
                shared.door.store(about.door, Relaxed);
                shared.accepted_ns.store(peer.accepted_ns, Relaxed);
                shared.head_ns.store(head_ns, Relaxed);
                shared.queued_ns.store(now_ns(), Relaxed);
                table.board().put(slot).map_err(|_| Refusal::Overloaded)
            });
            match put {
                Ok(position) => {
                    table.board().ring_one();
                    here::with(Here::count_put);
                    peer.link.queues(about.mount, slot, position);
                    let About { mount, wants_body, errors, times, .. } = about;
                    let settled = false;
                    let spool = body.spool;
                    stats::receives(mount, length);
                    Ok(Ticket { mount, slot, position, wants_body, settled, spool, errors, times })
                }
                Err(refusal) => {
                    table.free(slot);
                    Err(refusal)
                }
            }
        });
        // It has gone meanwhile.
        put.unwrap_or(Err(Refusal::Fault(Fault::NotHere)))
    });
    // Of what a door could refuse too the door takes note.
    if let Err(refusal @ Refusal::Overloaded) = admitted {
        stats::refuses(mount, refusal);
    }
    admitted
}

/// Record and body into the slot, or into chunks where they do not fit.
fn fill(table: &Table, slot: u32, record: &[u8], body: &Payload) -> Result<(), Refusal> {
    let segment = &table.segment;
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
