//! Replies whose clients do not keep up: what the worker writes goes into memory and then to disk,
//! so that the worker is free long before its client has everything.
//!
//! While a client keeps up, hyper asks for the next part and it comes straight out of the window.
//! A thread's tick looks for workers that wait for room; who has waited for `LAG` ticks in all gets
//! a task that reads the window whether or not hyper asks.

use crate::admit::Ticket;
use crate::refuse::log;
use crate::spool::{Job, Spool};
use crate::stream::{CutShort, Stream, lock};
use crate::{here, table};
use bytes::{Bytes, BytesMut};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, Weak};
use std::task::{Context, Poll, Waker};
use wire::State;

/// So many ticks (4 ms each) a worker may wait for room during one reply.
const LAG: u32 = 3;
/// So many ticks a reply that its worker has finished may lie untouched in its slot.
const IDLE: u32 = 256;
/// Bytes of one reply kept in memory before it goes to disk.
const MEMORY: usize = 256 * 1024;
/// Bytes of all replies kept so; beyond that they go to disk at once.
const MEMORY_OF_ALL: usize = 64 << 20;

/// Bytes in memory, of all pumped replies of the process.
static HELD: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// Streams to look after, until they are over or pumped.
    static STREAMS: RefCell<Vec<Weak<Mutex<Stream>>>> = const { RefCell::new(Vec::new()) };
}

/// What a pumped stream has besides.
pub struct Pumped {
    /// Whom to wake when there is something to send.
    reader: Option<Waker>,
    /// Whom to wake when there is room in memory.
    pump: Option<Waker>,
    /// What has been read of the reply after `ready`.
    spool: Option<Spool>,
    /// Bytes of the spool sent, and written so far.
    sent: u64,
    written: u64,
    reading: Option<Job<Bytes>>,
    /// Being written into the spool; behind it all when that has failed.
    behind: VecDeque<Bytes>,
    disk_failed: bool,
    /// `reply_spool` of its mount.
    limit: u64,
    held: usize,
    gone: bool,
}

impl Pumped {
    fn hold(&mut self, bytes: usize) {
        self.held += bytes;
        HELD.fetch_add(bytes, Relaxed);
    }

    fn release(&mut self, bytes: usize) {
        self.held -= bytes;
        HELD.fetch_sub(bytes, Relaxed);
        self.pump.take().inspect(Waker::wake_by_ref);
    }

    fn on_disk(&self) -> u64 {
        self.written - self.sent
    }
}

impl Drop for Pumped {
    fn drop(&mut self) {
        HELD.fetch_sub(self.held, Relaxed);
    }
}

/// Looks after a stream from now on.
pub fn watch(stream: &Arc<Mutex<Stream>>) {
    STREAMS.with_borrow_mut(|streams| streams.push(Arc::downgrade(stream)));
}

/// In the thread's tick: starts the pump of those whose clients do not keep up.
pub fn look() {
    STREAMS.with_borrow_mut(|streams| {
        streams.retain(|weak| {
            let Some(stream) = weak.upgrade() else { return false };
            let mut guard = lock(&stream);
            if guard.is_over() {
                return false;
            }
            if !guard.lags() {
                return true;
            }
            guard.start_pump();
            drop(guard);
            tokio::spawn(pump(stream));
            false
        });
    });
}

async fn pump(stream: Arc<Mutex<Stream>>) {
    while let Some(appended) = poll_fn(|context| lock(&stream).poll_pump(context)).await {
        let done = appended.await;
        let mut stream = lock(&stream);
        if let Some(pumped) = &mut stream.pumped {
            match done {
                Ok(()) => {
                    let bytes = pumped.behind.drain(..).map(|part| part.len()).sum();
                    pumped.written += bytes as u64;
                    pumped.release(bytes);
                }
                Err(failed) => {
                    log(&format!("a reply waits for its client, and its worker with it: {failed}"));
                    pumped.disk_failed = true;
                }
            }
            pumped.reader.take().inspect(Waker::wake_by_ref);
        }
    }
}

impl Stream {
    /// Whether its worker, or its slot, has waited for too long for the client.
    fn lags(&mut self) -> bool {
        let Some(ticket) = &self.ticket else { return false };
        let asked = std::mem::take(&mut self.asked);
        let (waits, done) = table::with(ticket.mount, |table| {
            let slot = &table.board().slots[ticket.slot as usize];
            (slot.wants_room.load(Relaxed) != 0, slot.word().state == State::Done)
        });
        if done {
            self.lag = if asked { 0 } else { self.lag + 1 };
            return self.lag >= IDLE;
        }
        self.lag += u32::from(waits);
        self.lag >= LAG
    }

    fn start_pump(&mut self) {
        let mut pumped = Pumped {
            reader: None,
            pump: None,
            spool: None,
            sent: 0,
            written: 0,
            reading: None,
            behind: VecDeque::new(),
            disk_failed: false,
            limit: 0,
            held: 0,
            gone: false,
        };
        pumped.hold(self.ready.iter().map(Bytes::len).sum());
        // Who waited for the slot waits for the pump now.
        if let Some(ticket) = &self.ticket {
            pumped.reader = table::with(ticket.mount, |table| table.stop_waiting(ticket.slot));
            pumped.limit = here::mount_options(ticket.mount).reply_spool;
        }
        self.pumped = Some(pumped);
    }

    /// Takes what the worker has published; a step on disk to be awaited, or None when it is over.
    fn poll_pump(&mut self, context: &mut Context<'_>) -> Poll<Option<Job<()>>> {
        loop {
            let Some(pumped) = &mut self.pumped else { return Poll::Ready(None) };
            if pumped.gone || self.ticket.is_none() {
                pumped.reader.take().inspect(Waker::wake_by_ref);
                return Poll::Ready(None);
            }
            let to_disk = !pumped.disk_failed && pumped.written < pumped.limit;
            let roomy = pumped.held < MEMORY && HELD.load(Relaxed) < MEMORY_OF_ALL;
            let in_order = pumped.on_disk() == 0 && pumped.behind.is_empty();
            let to_memory = in_order && (roomy || self.ready.is_empty() && !to_disk);
            if !to_memory && !to_disk {
                pumped.pump = Some(context.waker().clone());
                // The app may still want to read what its client has sent.
                self.wait(context);
                self.ticket.iter().for_each(Ticket::lend);
                return Poll::Pending;
            }
            self.wait(context);
            let before = std::mem::take(&mut self.ready);
            let failed = self.read_on().is_err();
            let fresh = std::mem::replace(&mut self.ready, before);
            let length: usize = fresh.iter().map(Bytes::len).sum();
            let over = self.ticket.is_none() || failed;
            if failed {
                (self.cut, self.ticket) = (true, None);
            }
            let Some(pumped) = &mut self.pumped else { return Poll::Ready(None) };
            pumped.hold(length);
            if length == 0 && !over {
                return Poll::Pending;
            }
            if to_memory || length == 0 {
                self.ready.extend(fresh);
                pumped.reader.take().inspect(Waker::wake_by_ref);
                continue;
            }
            return Poll::Ready(Some(pumped.append(join(fresh, length))));
        }
    }

    /// The next part for hyper, while the pump reads the slot.
    pub(crate) fn poll_pumped(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, CutShort>>> {
        let over = self.is_over();
        let Some(pumped) = &mut self.pumped else { return Poll::Ready(None) };
        if let Some(part) = self.ready.pop_front() {
            pumped.release(part.len());
            return Poll::Ready(Some(Ok(part)));
        }
        if pumped.on_disk() > 0 {
            return pumped.poll_disk(context).map(Some);
        }
        if pumped.disk_failed
            && let Some(part) = pumped.behind.pop_front()
        {
            pumped.release(part.len());
            return Poll::Ready(Some(Ok(part)));
        }
        if over && pumped.behind.is_empty() {
            return self.poll_end(context);
        }
        pumped.reader = Some(context.waker().clone());
        Poll::Pending
    }

    /// hyper has dropped the body: sent, or its client has gone.
    pub(crate) fn leave(&mut self) {
        let ticket = self.ticket.take();
        if let Some(pumped) = &mut self.pumped {
            pumped.gone = true;
            let waits = ticket.and_then(|ticket| {
                table::with(ticket.mount, |table| table.stop_waiting(ticket.slot))
            });
            waits.or(pumped.pump.take()).inspect(Waker::wake_by_ref);
        }
    }
}

impl Pumped {
    fn append(&mut self, bytes: Bytes) -> Job<()> {
        self.behind.push_back(bytes.clone());
        let directory = here::options().spool_dir.as_path();
        self.spool.get_or_insert_with(|| Spool::new(directory)).append(bytes)
    }

    fn poll_disk(&mut self, context: &mut Context<'_>) -> Poll<Result<Bytes, CutShort>> {
        let Some(spool) = &self.spool else { return Poll::Ready(Err(CutShort)) };
        let length = (self.written - self.sent).min(MEMORY as u64);
        let sent = self.sent;
        let reading = self.reading.get_or_insert_with(|| spool.read_at(sent, length as usize));
        let read = std::task::ready!(Pin::new(reading).poll(context));
        self.reading = None;
        match read {
            Ok(bytes) => {
                self.sent += bytes.len() as u64;
                self.pump.take().inspect(Waker::wake_by_ref);
                Poll::Ready(Ok(bytes))
            }
            Err(failed) => {
                log(&format!("a reply was cut short: {failed}"));
                Poll::Ready(Err(CutShort))
            }
        }
    }
}

fn join(mut parts: VecDeque<Bytes>, length: usize) -> Bytes {
    if parts.len() == 1
        && let Some(only) = parts.pop_front()
    {
        return only;
    }
    let mut joined = BytesMut::with_capacity(length);
    parts.iter().for_each(|part| joined.extend_from_slice(part));
    joined.freeze()
}
