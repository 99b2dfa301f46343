//! A reply on its way from a backend to a client that may be slower: in memory first, then on disk
//! up to `reply_spool`, so that the backend is free as soon as it has said everything.

use crate::refuse::log;
use crate::spool::{Failed, Job, Spool};
use crate::stream::CutShort;
use bytes::Bytes;
use hyper::header::{
    CONNECTION, CONTENT_LENGTH, HeaderMap, HeaderName, PROXY_AUTHENTICATE, TRAILER,
    TRANSFER_ENCODING, UPGRADE,
};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::path::Path;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};

/// Bytes of one reply kept in memory before it goes to disk, and read from there at a time.
const MEMORY: usize = 256 * 1024;
/// Bytes of all replies kept so; beyond that they go to disk at once.
const MEMORY_OF_ALL: usize = 64 << 20;

/// Bytes in memory, of all replies of backends.
static HELD: AtomicUsize = AtomicUsize::new(0);

/// What a backend says about its own connection, which is none of the client's business: RFC 9110,
/// section 7.6.1.
pub fn clean(headers: &mut HeaderMap) {
    for name in named_by_connection(headers) {
        headers.remove(name);
    }
    if headers.contains_key(TRANSFER_ENCODING) {
        // Overridden: RFC 9112, section 6.3.
        headers.remove(CONTENT_LENGTH);
    }
    for name in [CONNECTION, PROXY_AUTHENTICATE, TRAILER, TRANSFER_ENCODING, UPGRADE] {
        headers.remove(name);
    }
    headers.remove("keep-alive");
    headers.remove("proxy-connection");
}

/// The fields that Connection names.
pub fn named_by_connection(headers: &HeaderMap) -> Vec<HeaderName> {
    let values = headers.get_all(CONNECTION).into_iter().filter_map(|value| value.to_str().ok());
    let names = values.flat_map(|value| value.split(','));
    names.filter_map(|name| HeaderName::try_from(name.trim()).ok()).collect()
}

/// Where the parts wait.
pub struct Store(Arc<Mutex<Held>>);

/// The client's side of it.
pub struct Reader(Arc<Mutex<Held>>);

struct Held {
    ready: VecDeque<Bytes>,
    in_memory: usize,
    limit: u64,
    directory: &'static Path,
    spool: Option<Spool>,
    disk_failed: bool,
    /// Being written.
    behind: Option<Bytes>,
    written: u64,
    read: u64,
    reading: Option<Job<Bytes>>,
    /// Whether it is whole, once it has ended.
    ended: Option<bool>,
    /// The client is gone.
    gone: bool,
    /// hyper has had a turn to send what came before the cut.
    flushed: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

/// What has become of a part.
pub enum Put {
    /// It waits in memory.
    InMemory,
    /// It is being written to disk; `Store::written` is to hear of the end.
    OnDisk(Job<()>),
    /// It is to be put again when there is room.
    NoRoom(Bytes),
    /// Nobody wants it.
    Unwanted,
}

fn lock(held: &Mutex<Held>) -> MutexGuard<'_, Held> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Store {
    /// For a reply of which `limit` bytes may go to disk, in `directory`.
    pub fn new(limit: u64, directory: &'static Path) -> Store {
        Store(Arc::new(Mutex::new(Held {
            ready: VecDeque::new(),
            in_memory: 0,
            limit,
            directory,
            spool: None,
            disk_failed: false,
            behind: None,
            written: 0,
            read: 0,
            reading: None,
            ended: None,
            gone: false,
            flushed: false,
            reader: None,
            writer: None,
        })))
    }

    /// The other side, of which there is one.
    pub fn reader(&self) -> Reader {
        Reader(self.0.clone())
    }

    /// Takes the next part.
    pub fn put(&self, bytes: Bytes) -> Put {
        let mut held = lock(&self.0);
        if held.gone {
            return Put::Unwanted;
        }
        if bytes.is_empty() {
            return Put::InMemory;
        }
        if held.is_roomy() {
            held.hold(bytes.len());
            held.ready.push_back(bytes);
            held.reader.take().inspect(Waker::wake_by_ref);
            return Put::InMemory;
        }
        if held.disk_failed || held.written >= held.limit {
            return Put::NoRoom(bytes);
        }
        held.behind = Some(bytes.clone());
        let directory = held.directory;
        Put::OnDisk(held.spool.get_or_insert_with(|| Spool::new(directory)).append(bytes))
    }

    /// The part is on disk, or stays in memory if that has failed.
    pub fn written(&self, done: Result<(), Failed>) {
        let mut held = lock(&self.0);
        let Some(bytes) = held.behind.take() else { return };
        match done {
            Ok(()) => held.written += bytes.len() as u64,
            Err(failed) => {
                log(&format!("a reply waits for its client, and its backend with it: {failed}"));
                held.disk_failed = true;
                held.behind = Some(bytes);
            }
        }
        held.reader.take().inspect(Waker::wake_by_ref);
    }

    /// Waits for room in memory, or until nobody wants the rest.
    pub async fn room(&self) {
        poll_fn(|context| {
            let mut held = lock(&self.0);
            if held.is_roomy() || held.gone {
                return Poll::Ready(());
            }
            held.writer = Some(context.waker().clone());
            Poll::Pending
        })
        .await;
    }

    /// Nothing more comes; `whole`: the reply has come to its end.
    pub fn end(&self, whole: bool) {
        let mut held = lock(&self.0);
        held.ended = Some(whole);
        held.reader.take().inspect(Waker::wake_by_ref);
    }
}

impl Drop for Store {
    /// Whoever reads must not wait for ever.
    fn drop(&mut self) {
        if lock(&self.0).ended.is_none() {
            self.end(false);
        }
    }
}

impl Held {
    fn on_disk(&self) -> u64 {
        self.written - self.read
    }

    /// The next part may stay in memory, behind all that came before it.
    fn is_roomy(&self) -> bool {
        let roomy = self.in_memory < MEMORY && HELD.load(Relaxed) < MEMORY_OF_ALL;
        self.on_disk() == 0 && self.behind.is_none() && (roomy || self.ready.is_empty())
    }

    fn hold(&mut self, bytes: usize) {
        self.in_memory += bytes;
        HELD.fetch_add(bytes, Relaxed);
    }

    fn release(&mut self, bytes: usize) {
        self.in_memory -= bytes;
        HELD.fetch_sub(bytes, Relaxed);
    }

    fn has_read(&mut self, bytes: Bytes) -> Poll<Option<Result<Bytes, CutShort>>> {
        self.writer.take().inspect(Waker::wake_by_ref);
        Poll::Ready(Some(Ok(bytes)))
    }

    fn poll_disk(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, CutShort>>> {
        let Some(spool) = &self.spool else { return Poll::Ready(Some(Err(CutShort))) };
        let length = self.on_disk().min(MEMORY as u64) as usize;
        let read = self.read;
        let reading = self.reading.get_or_insert_with(|| spool.read_at(read, length));
        let done = ready!(Pin::new(reading).poll(context));
        self.reading = None;
        match done {
            Ok(bytes) => {
                self.read += bytes.len() as u64;
                self.has_read(bytes)
            }
            Err(failed) => {
                log(&format!("a reply was cut short: {failed}"));
                Poll::Ready(Some(Err(CutShort)))
            }
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        HELD.fetch_sub(self.in_memory, Relaxed);
    }
}

impl Reader {
    /// The next part of the body.
    pub fn poll_part(&self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, CutShort>>> {
        let mut held = lock(&self.0);
        if let Some(part) = held.ready.pop_front() {
            held.release(part.len());
            return held.has_read(part);
        }
        if held.on_disk() > 0 {
            return held.poll_disk(context);
        }
        if held.disk_failed
            && let Some(part) = held.behind.take()
        {
            return held.has_read(part);
        }
        match held.ended {
            None => {
                held.reader = Some(context.waker().clone());
                Poll::Pending
            }
            Some(true) => {
                // hyper 1.12 may ask twice in one go, and if a body ends the second time it forgets
                // to look for a request that it has read already.
                context.waker().wake_by_ref();
                Poll::Ready(None)
            }
            Some(false) if held.flushed => Poll::Ready(Some(Err(CutShort))),
            Some(false) => {
                // An error makes hyper drop what it has not sent yet.
                held.flushed = true;
                context.waker().wake_by_ref();
                Poll::Pending
            }
        }
    }

    /// Whether everything was handed over, and the length of what is left if it is known.
    pub fn left(&self) -> (bool, Option<u64>) {
        let held = lock(&self.0);
        if held.ended != Some(true) {
            return (false, None);
        }
        let behind = held.behind.as_ref().map_or(0, |part| part.len() as u64);
        let left = held.in_memory as u64 + held.on_disk() + behind;
        (left == 0, Some(left))
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let mut held = lock(&self.0);
        held.gone = true;
        held.writer.take().inspect(Waker::wake_by_ref);
    }
}
