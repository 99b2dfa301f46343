//! The rules of `door` at a connection: its bytes are scanned as they are read, its heads judged
//! before anything is done for them.

use crate::http::Peer;
use door::scan::Scan;
use door::{Fault, host::Authority};
use hyper::http::request::Parts;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// What the scan of a connection's bytes has to say to those who answer its requests.
#[derive(Default)]
pub struct Watch {
    requests: AtomicU64,
    /// The request's number and its fault.
    found: OnceLock<(u64, Fault)>,
}

impl Watch {
    /// Another request has come from the HTTP library: its number.
    pub fn next(&self) -> u64 {
        self.requests.fetch_add(1, Relaxed) + 1
    }

    /// Requests that have come.
    pub fn requests(&self) -> u64 {
        self.requests.load(Relaxed)
    }

    /// What is wrong with the bytes of this request, as far as they have been read.
    pub fn check(&self, number: u64) -> Result<(), Fault> {
        match self.found.get() {
            Some((at, fault)) if *at <= number => Err(*fault),
            _ => Ok(()),
        }
    }
}

/// Judges a head: whom the request is addressed to, or what is wrong with it.
pub fn judge<'a>(
    head: &'a Parts,
    peer: &Peer,
    number: u64,
) -> Result<Option<Authority<'a>>, Fault> {
    peer.watch.check(number)?;
    door::http::judge(&head.method, &head.uri, head.version, &head.headers)
}

/// A connection whose bytes are scanned on their way to the HTTP library.
pub struct Watched<S> {
    stream: S,
    scan: Scan,
    peer: Arc<Peer>,
}

impl<S> Watched<S> {
    /// Watches a connection from its first byte of HTTP.
    pub fn new(stream: S, peer: Arc<Peer>) -> Watched<S> {
        Watched { stream, scan: Scan::default(), peer }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context,
        buffer: &mut ReadBuf,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        if let Some(fault) = self.scan.feed(&buffer.filled()[before..]) {
            let _ = self.peer.watch.found.set((self.scan.heads(), fault));
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context,
        parts: &[io::IoSlice],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
