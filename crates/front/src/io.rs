//! A client's socket as hyper sees it: it notes what moves, hides an end that hyper should not see
//! yet, and gathers small writes.

use crate::here;
use crate::peer::Peer;
use bytes::{Bytes, BytesMut};
use door::scan::Scan;
use std::cell::RefCell;
use std::io::{self, IoSlice};
use std::os::fd::AsFd;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

/// Up to so many bytes are copied together for one plain write, which costs less than a gathering
/// one; a small reply is head and body.
const GATHERED: usize = 16 * 1024;

thread_local! {
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// A connected socket of either kind.
pub enum Socket {
    /// Over TCP.
    Tcp(TcpStream),
    /// Over a unix socket.
    Unix(UnixStream),
}

macro_rules! either {
    ($socket:expr, $stream:ident => $call:expr) => {
        match $socket {
            Socket::Tcp($stream) => $call,
            Socket::Unix($stream) => $call,
        }
    };
}

impl Socket {
    /// Waits until there is something to read, the end included.
    pub fn poll_readable(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self, stream => stream.poll_read_ready(context))
    }

    /// Nothing more of ours will come.
    pub fn poll_shutdown(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self, stream => Pin::new(stream).poll_shutdown(context))
    }

    /// What has befallen the connection since this was asked last.
    pub fn trouble(&self) -> Option<io::Error> {
        either!(self, stream => stream.take_error()).unwrap_or_else(Some)
    }

    /// Bytes that the kernel holds for the client.
    pub fn unsent(&self) -> u32 {
        either!(self, stream => wire::unsent(stream.as_fd())).unwrap_or(0)
    }

    /// Reads what is there, without noting anything.
    pub fn poll_read(
        &mut self,
        context: &mut Context<'_>,
        room: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let mut buffer = ReadBuf::new(room);
        let read = either!(self, stream => Pin::new(stream).poll_read(context, &mut buffer));
        read.map_ok(|()| buffer.filled().len())
    }

    /// Reads what is there behind what `buffer` holds, as far as it has room.
    pub fn poll_read_into(
        &mut self,
        context: &mut Context<'_>,
        buffer: &mut BytesMut,
    ) -> Poll<io::Result<usize>> {
        // Nothing is lost when such a read is dropped.
        pin!(self.read_buf(buffer)).poll(context)
    }

    /// Closing will drop what the kernel still holds for the client, with a reset.
    pub fn forsake(&self) {
        if let Socket::Tcp(stream) = self {
            let _ = stream.set_zero_linger();
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        either!(self.get_mut(), stream => Pin::new(stream).poll_read(context, buffer))
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        either!(self.get_mut(), stream => Pin::new(stream).poll_write(context, bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        either!(self.get_mut(), stream => Pin::new(stream).poll_write_vectored(context, parts))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self.get_mut(), stream => Pin::new(stream).poll_shutdown(context))
    }
}

/// The socket, whose moves are noted in its peer's link.
pub struct Io {
    /// The socket itself.
    pub socket: Socket,
    peer: Arc<Peer>,
    /// Bytes read before hyper got the connection.
    early: Bytes,
    /// Reads along, for what hyper lets pass and then hides.
    scan: Scan,
}

impl Io {
    /// A socket of which these bytes have been read already.
    pub fn new(socket: Socket, peer: Arc<Peer>, early: Bytes) -> Io {
        let mut io = Io { socket, peer, early: Bytes::new(), scan: Scan::default() };
        io.scan(&early);
        io.early = early;
        io
    }

    fn scan(&mut self, bytes: &[u8]) {
        if let Some(fault) = self.scan.feed(bytes) {
            self.peer.watch.note(self.scan.heads(), fault);
        }
    }

    /// How much of the last request's first line has come, in bytes.
    pub fn line_length(&self) -> usize {
        self.scan.line_length()
    }

    /// hyper has not used these bytes: they come first.
    pub fn put_back(&mut self, bytes: &[u8]) {
        debug_assert!(self.early.is_empty());
        // A copy, for hyper's own bytes, be they none, hold all of its buffer.
        self.early = Bytes::copy_from_slice(bytes);
    }

    /// The socket alone, and the bytes that were put back and not read.
    pub fn into_socket(self) -> (Socket, Bytes) {
        (self.socket, self.early)
    }

    /// True: bytes that were put back are there to be read.
    pub fn has_early(&self) -> bool {
        !self.early.is_empty()
    }

    /// hyper has written all it had: others have their turn.
    fn poll_aside(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut failed = None;
        let peer = self.peer.clone();
        let done = peer.aside.flush(|bytes| {
            let stream = &mut self.socket;
            let written = Pin::new(stream).poll_write(context, bytes);
            self.note(&written, bytes.len());
            match written {
                Poll::Ready(Ok(count)) => Some(count),
                Poll::Ready(Err(error)) => {
                    failed = Some(error);
                    None
                }
                Poll::Pending => None,
            }
        });
        match failed {
            Some(error) => Poll::Ready(Err(error)),
            None if done => {
                // Whoever waited for this is in the same task.
                context.waker().wake_by_ref();
                Poll::Ready(Ok(()))
            }
            None => Poll::Pending,
        }
    }

    /// Notes how a write went.
    fn note(&self, written: &Poll<io::Result<usize>>, offered: usize) {
        match written {
            Poll::Ready(Ok(taken)) => self.peer.link.wrote(*taken, offered),
            Poll::Ready(Err(_)) => {}
            // A slow client takes a little of what the kernel holds long before there is room.
            Poll::Pending => self.peer.link.is_stuck(self.socket.unsent()),
        }
    }
}

/// Whether clients that have closed their sending side are answered at all.
fn answers_ended() -> bool {
    !here::options().half_close_timeout.is_zero()
}

impl AsyncRead for Io {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let link = &this.peer.link;
        if !this.early.is_empty() {
            let count = this.early.len().min(buffer.remaining());
            let part = this.early.split_to(count);
            link.received(&part);
            buffer.put_slice(&part);
            return Poll::Ready(Ok(()));
        }
        if link.has_ended() && link.hides_end(this.scan.is_between()) {
            return this.socket.trouble().map_or(Poll::Pending, |error| Poll::Ready(Err(error)));
        }
        let before = buffer.filled().len();
        let read = either!(&mut this.socket, stream => Pin::new(stream).poll_read(context, buffer));
        match read {
            Poll::Pending => {}
            Poll::Ready(Ok(())) if buffer.filled().len() > before => {
                let bytes = &buffer.filled()[before..];
                link.received(bytes);
                this.scan(bytes);
            }
            // The sweep looks after the rest: nothing will be read here that could wake the task.
            Poll::Ready(Ok(())) if link.hides_end(this.scan.is_between()) && answers_ended() => {
                link.end_is_hidden();
                return Poll::Pending;
            }
            Poll::Ready(_) => {}
        }
        read
    }
}

impl AsyncWrite for Io {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if this.peer.link.is_between_requests() {
            // hyper refuses what it cannot read, without a word of explanation: ours goes out.
            return Poll::Ready(Ok(bytes.len()));
        }
        if let Some(count) = this.peer.aside.leaves_out(bytes.len()) {
            return Poll::Ready(Ok(count));
        }
        let written =
            either!(&mut this.socket, stream => Pin::new(stream).poll_write(context, bytes));
        this.note(&written, bytes.len());
        written
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let total = parts.iter().map(|part| part.len()).sum();
        if total <= GATHERED {
            return SCRATCH.with_borrow_mut(|scratch| {
                scratch.clear();
                parts.iter().for_each(|part| scratch.extend_from_slice(part));
                self.poll_write(context, scratch)
            });
        }
        let this = self.get_mut();
        if let Some(count) = this.peer.aside.leaves_out(total) {
            return Poll::Ready(Ok(count));
        }
        let written = Pin::new(&mut this.socket).poll_write_vectored(context, parts);
        this.note(&written, total);
        written
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// hyper calls it when all it had has been written.
    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.peer.aside.wants_flush() {
            ready!(self.get_mut().poll_aside(context))?;
            return Poll::Ready(Ok(()));
        }
        if self.peer.link.flushed() {
            context.waker().wake_by_ref();
        }
        Poll::Ready(Ok(()))
    }

    /// What comes last, and how, is not hyper's to decide; closing says as much.
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
