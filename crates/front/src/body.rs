//! Step 2, its second half: the whole body of a request, before the request is queued, so that a
//! slow uploader holds neither a slot nor a worker. Small bodies stay in memory, others go to disk.

use crate::admit::BODY_MAX;
use crate::here::{self, Held};
use crate::refuse::{Refusal, Seldom};
use crate::spool::{Failed, Job, PIECE, Spool};
use crate::{Options, table};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use hyper::header::EXPECT;
use hyper::http::request::Parts;
use std::error::Error;
use std::future::poll_fn;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::timeout;
use wire::control::MountId;
use wire::{CHUNK_BYTES, REQUEST_BYTES};

/// Bytes of bodies that the front may have in memory; beyond that they go to disk at once.
const BUDGET: usize = 64 << 20;

/// Bytes of bodies that the front has in memory, those being written to disk included.
static BUFFERED: AtomicUsize = AtomicUsize::new(0);

/// A body that is all there.
#[derive(Default)]
pub struct Payload {
    /// What lies in memory: all of it, or nothing.
    pub bytes: Bytes,
    /// All of it, if it lies on disk.
    pub spool: Option<Spool>,
    _held: InMemory,
}

impl Payload {
    /// Its length in bytes.
    pub fn len(&self) -> u64 {
        self.spool.as_ref().map_or(self.bytes.len() as u64, Spool::len)
    }
}

/// Why there is no body, or no response.
pub enum Stop {
    /// The client is gone.
    Gone(hyper::Error),
    /// The client gets this answer, and the rest of its connection is not run.
    Refused(Refusal),
    /// The connection goes to the app, behind this status.
    Given(u16),
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Stop {
        Stop::Refused(refusal)
    }
}

/// Reads the body to its end. Trailers are dropped. `100 Continue` goes out with the first look, so
/// a client that waits for it to send what is too long gets none.
pub async fn collect(mut body: Incoming, mount: MountId) -> Result<Payload, Stop> {
    let mut collector = Collector::new(body.size_hint().exact(), mount)?;
    loop {
        let next = match collector.options.body_timeout {
            Duration::ZERO => body.frame().await,
            pause => timeout(pause, body.frame()).await.map_err(|_| Refusal::BodyTooSlow)?,
        };
        match next {
            Some(Ok(frame)) => match frame.into_data() {
                Ok(data) => collector.take(data).await?,
                Err(_trailers) => {}
            },
            Some(Err(error)) if malformed(&error) => return Err(Refusal::BadBody.into()),
            Some(Err(error)) => return Err(Stop::Gone(error)),
            None => return Ok(collector.finish().await?),
        }
    }
}

/// Reads a body from a gateway's connection to its end: `length` bytes, if that is known.
pub async fn gather(
    mut part: impl FnMut(&mut Context<'_>) -> Poll<io::Result<Option<Bytes>>> + Send,
    length: Option<u64>,
    mount: MountId,
) -> Result<Payload, Refusal> {
    let mut collector = Collector::new(length, mount)?;
    loop {
        let next = poll_fn(&mut part);
        let next = match collector.options.body_timeout {
            Duration::ZERO => next.await,
            pause => timeout(pause, next).await.map_err(|_| Refusal::BodyTooSlow)?,
        };
        match next {
            Ok(Some(data)) => collector.take(data).await?,
            Ok(None) if length.is_none_or(|length| length == collector.length) => {
                return collector.finish().await;
            }
            Ok(None) | Err(_) => return Err(Refusal::BadLength),
        }
    }
}

/// True for an expectation that is not met here: RFC 9110, section 10.1.1.
pub fn expects_too_much(head: &Parts) -> bool {
    let met = |value: &[u8]| value.is_empty() || value.eq_ignore_ascii_case(b"100-continue");
    head.headers.get_all(EXPECT).iter().any(|value| !met(value.as_bytes()))
}

/// True for chunks that are none, false when the client has left.
fn malformed(error: &hyper::Error) -> bool {
    let cause = error.source().and_then(|source| source.downcast_ref::<io::Error>());
    cause.is_some_and(|cause| {
        matches!(cause.kind(), io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput)
    })
}

/// A body on its way in.
struct Collector {
    options: &'static Options,
    mount: MountId,
    /// The mount's `body_limit`.
    limit: u64,
    length: u64,
    /// All so far, or what is not yet on its way to disk.
    gathered: BytesMut,
    spool: Option<Spool>,
    writing: Option<(Job<()>, usize)>,
    held: InMemory,
    /// The mount stays while its request comes in.
    _of_mount: Held,
}

impl Collector {
    /// For a body of this length, if it is known.
    fn new(length: Option<u64>, mount: MountId) -> Result<Collector, Refusal> {
        let mut collector = Collector {
            options: here::options(),
            mount,
            limit: here::mount_options(mount).body_limit,
            length: 0,
            gathered: BytesMut::new(),
            spool: None,
            writing: None,
            held: InMemory::default(),
            _of_mount: Held::by(mount),
        };
        match length {
            Some(length) if collector.exceeds(length) => return Err(Refusal::BodyTooLarge),
            Some(length) if length > BODY_MAX as u64 => collector.use_disk(),
            Some(length) => collector.gathered.reserve(length as usize),
            None => {}
        }
        Ok(collector)
    }

    fn exceeds(&self, length: u64) -> bool {
        self.limit != 0 && length > self.limit
    }

    fn use_disk(&mut self) {
        self.spool.get_or_insert_with(|| Spool::new(&self.options.spool_dir));
    }

    async fn take(&mut self, data: Bytes) -> Result<(), Refusal> {
        self.length += data.len() as u64;
        if self.exceeds(self.length) {
            return Err(Refusal::BodyTooLarge);
        }
        let tight = self.held.add(data.len());
        if tight || self.length > BODY_MAX as u64 {
            self.use_disk();
        }
        if self.spool.is_some() && self.gathered.is_empty() && data.len() >= PIECE {
            return self.write(data).await;
        }
        self.gathered.extend_from_slice(&data);
        if self.spool.is_some() && (tight || self.gathered.len() >= PIECE) {
            let piece = std::mem::take(&mut self.gathered);
            self.write(piece.freeze()).await?;
        }
        Ok(())
    }

    /// Starts a write; the client's next bytes are read meanwhile.
    async fn write(&mut self, piece: Bytes) -> Result<(), Refusal> {
        self.written().await?;
        let length = piece.len();
        self.writing = self.spool.as_mut().map(|spool| (spool.append(piece), length));
        Ok(())
    }

    async fn written(&mut self) -> Result<(), Refusal> {
        let Some((job, length)) = self.writing.take() else { return Ok(()) };
        let written = job.await;
        self.held.remove(length);
        written.map_err(|failed| not_stored(&failed))
    }

    /// Whether the mount's workers could not be given so many chunks.
    fn lacks_chunks(&self, count: usize) -> bool {
        table::find(self.mount, |table| table.chunks_left() < count).unwrap_or(false)
    }

    async fn finish(mut self) -> Result<Payload, Refusal> {
        // One chunk more, for a long head. What surely fits into the slot itself needs none.
        let chunks = self.gathered.len().div_ceil(CHUNK_BYTES) + 1;
        if self.gathered.len() > REQUEST_BYTES / 2 && self.lacks_chunks(chunks) {
            self.use_disk();
        }
        if self.spool.is_some() {
            let rest = std::mem::take(&mut self.gathered);
            if !rest.is_empty() {
                self.write(rest.freeze()).await?;
            }
            self.written().await?;
        }
        let bytes = self.gathered.freeze();
        Ok(Payload { bytes, spool: self.spool, _held: self.held })
    }
}

fn not_stored(failed: &Failed) -> Refusal {
    static LOG: Seldom = Seldom::new();
    LOG.say(&format!("a request body was refused: {failed}"));
    Refusal::NotStored
}

/// A body's part of `BUFFERED`.
#[derive(Default)]
struct InMemory(usize);

impl InMemory {
    /// True when there is more in memory than there should be.
    fn add(&mut self, bytes: usize) -> bool {
        self.0 += bytes;
        BUFFERED.fetch_add(bytes, Relaxed) + bytes > BUDGET
    }

    fn remove(&mut self, bytes: usize) {
        self.0 -= bytes;
        BUFFERED.fetch_sub(bytes, Relaxed);
    }
}

impl Drop for InMemory {
    fn drop(&mut self) {
        // Requests without a body leave the word that all front threads share alone.
        if self.0 > 0 {
            self.remove(self.0);
        }
    }
}
