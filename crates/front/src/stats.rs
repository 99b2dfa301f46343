//! What the front counts of each mount's requests: who was answered how, who was refused why, how
//! long it waited and took. Each thread has numbers of its own in the counters' memory, where they
//! outlive the front, and writes them by plain stores.

use crate::body::Stop;
use crate::refuse::Refusal;
use hyper::Response;
use std::cell::{OnceCell, RefCell};
use std::time::Duration;
use wire::control::MountId;
use wire::counters::server::{ANSWERS, REFUSALS, Server, Thread, Traffic};
use wire::slot::Word;
use wire::sync::Ordering::Relaxed;
use wire::{Board, State, now_ns};

/// The reasons of refusals by their numbers, which never change within a server's life.
pub const REASONS: [&str; 22] = [
    "bad_request",
    "body_too_large",
    "body_timeout",
    "bad_body",
    "bad_length",
    "not_stored",
    "bad_expectation",
    "head_too_large",
    "target_too_long",
    "malformed",
    "head_timeout",
    "connections",
    "connections_per_peer",
    "queue_full",
    "queue_timeout",
    "worker_died",
    "request_timeout",
    "bad_reply",
    "not_here",
    "no_backend",
    "backend_lost",
    "bad_backend",
];
const _: () = assert!(REASONS.len() <= REFUSALS);

struct Here {
    server: &'static Server,
    thread: &'static Thread,
    /// The rows of mounts, by their ids.
    rows: RefCell<Vec<usize>>,
}

thread_local! {
    static HERE: OnceCell<Here> = const { OnceCell::new() };
}

/// Gives the calling thread its numbers. One that has none counts nothing.
pub fn install(server: &'static Server, index: usize) {
    let here = Here { server, thread: &server.threads[index], rows: RefCell::default() };
    HERE.with(|cell| cell.set(here).ok());
}

/// A mount comes, or has another name.
pub fn comes(mount: MountId, name: &str) {
    HERE.with(|cell| {
        let Some(here) = cell.get() else { return };
        let mut rows = here.rows.borrow_mut();
        let place = usize::from(mount.0);
        if rows.len() <= place {
            rows.resize(place + 1, 0);
        }
        rows[place] = here.server.row(name);
    });
}

fn count(mount: Option<MountId>, count: impl FnOnce(&Traffic)) {
    HERE.with(|cell| {
        let Some(here) = cell.get() else { return };
        let place = |mount: MountId| here.rows.borrow().get(usize::from(mount.0)).copied();
        count(&here.thread.traffic[mount.and_then(place).unwrap_or(0)]);
    });
}

/// A connection has come.
pub fn accepts() {
    HERE.with(|cell| cell.get().iter().for_each(|here| here.thread.accepted.add(1)));
}

/// An app is given a body of so many bytes.
pub fn receives(mount: MountId, bytes: u64) {
    count(Some(mount), |traffic| traffic.received.add(bytes));
}

/// So many bytes more of a reply's body have come.
pub fn sends(mount: MountId, bytes: u64) {
    count(Some(mount), |traffic| traffic.sent.add(bytes));
}

/// A request, or a connection, is refused at the door, unless that is a mount's doing.
pub fn refuses_at_door(refusal: Refusal) {
    if !refusal.is_of_mount() {
        count(None, |traffic| traffic.refused[reason(refusal)].add(1));
    }
}

/// A mount refuses a request.
pub fn refuses(mount: MountId, refusal: Refusal) {
    count(Some(mount), |traffic| traffic.refused[reason(refusal)].add(1));
}

fn reason(refusal: Refusal) -> usize {
    match refusal {
        Refusal::Fault(door::Fault::NotHere) => 18,
        Refusal::Fault(_) => 0,
        Refusal::BodyTooLarge => 1,
        Refusal::BodyTooSlow => 2,
        Refusal::BadBody => 3,
        Refusal::BadLength => 4,
        Refusal::NotStored => 5,
        Refusal::BadExpectation => 6,
        Refusal::HeadTooLarge => 7,
        Refusal::TargetTooLong => 8,
        Refusal::Malformed => 9,
        Refusal::HeadTooSlow => 10,
        Refusal::TooManyConnections => 11,
        Refusal::TooManyOfClient => 12,
        Refusal::Overloaded => 13,
        Refusal::WaitedTooLong => 14,
        Refusal::WorkerDied => 15,
        Refusal::RanTooLong => 16,
        Refusal::BadReply => 17,
        Refusal::NoBackend => 19,
        Refusal::BackendLost => 20,
        Refusal::BadBackend => 21,
    }
}

/// Called while the slot is still the request's, for the last time.
pub fn ends(mount: MountId, board: &Board, slot: u32) {
    count(Some(mount), |traffic| {
        let head = &board.slots[slot as usize];
        let queued = head.queued_ns.load(Relaxed);
        let Word { state, .. } = head.word();
        let taken = match state {
            State::Taken | State::Begun | State::Done => Some(head.taken_ns.load(Relaxed)),
            // It was shed, or its client has left before anybody took it.
            _ => None,
        };
        let now = now_ns();
        traffic.queue.observe(taken.unwrap_or(now).saturating_sub(queued));
        if let (State::Done, Some(taken)) = (state, taken) {
            traffic.service.observe(now.saturating_sub(taken));
        }
    });
}

/// Another server has answered a request that had waited for it.
pub fn answers(mount: MountId, queued: Duration, service: Duration) {
    count(Some(mount), |traffic| {
        traffic.queue.observe(queued.as_nanos() as u64);
        traffic.service.observe(service.as_nanos() as u64);
    });
}

/// The answer to a request that was admitted. Dropped before there is one, its client has left.
pub struct Answer {
    mount: MountId,
    status: Option<u16>,
}

impl Answer {
    /// There is none yet.
    pub fn to_come(mount: MountId) -> Answer {
        Answer { mount, status: None }
    }

    /// This is it.
    pub fn is<B>(mut self, answer: &Result<Response<B>, Stop>) {
        self.status = match answer {
            Ok(response) => Some(response.status().as_u16()),
            Err(Stop::Refused(refusal)) => {
                refuses(self.mount, *refusal);
                Some(refusal.status().as_u16())
            }
            Err(Stop::Given(status)) => Some(*status),
            Err(Stop::Gone(_)) => None,
        };
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        let class = self.status.map_or(ANSWERS, |status| usize::from(status / 100));
        count(Some(self.mount), |traffic| {
            traffic.answers[class.clamp(1, ANSWERS) - 1].add(1);
        });
    }
}
