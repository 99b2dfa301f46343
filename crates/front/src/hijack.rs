//! A connection that an app has taken: bytes go both ways between its client and the worker's end of
//! a socket pair, until the app closes its end or its process ends.

use crate::aside::Hijack;
use crate::io::Socket;
use crate::refuse::log;
use bytes::{Buf, Bytes};
use std::future::poll_fn;
use std::io::{self, ErrorKind::WouldBlock};
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::UnixStream;
use tokio::time::timeout;

/// How long what the client still sends is read when the app has closed: closing on it would reset
/// the connection under the app's last words.
const LINGER: Duration = Duration::from_secs(2);
/// Bytes read at a time, on the stack: a connection that is silent has no buffer.
const PIECE: usize = 16 * 1024;

/// Carries bytes until there is nothing more to carry. `early` is what the client has sent behind
/// its request.
pub async fn carry(mut client: Socket, early: Bytes, hijack: Hijack) {
    let _held = hijack.held;
    // A backend's connection may be one over TCP: read, write and shutdown do not differ.
    let app = std::os::unix::net::UnixStream::from(hijack.app);
    let app = app.set_nonblocking(true).and_then(|()| UnixStream::from_std(app));
    let mut app = match app {
        Ok(app) => app,
        Err(error) => return log(&format!("a hijacked connection could not be served: {error}")),
    };
    let mut up = Way::new(early);
    let mut down = Way::new(hijack.head.into());
    let lost = poll_fn(|context| {
        if let Poll::Ready(Some(Side::From)) = up.poll(&mut client, &mut app, context) {
            return Poll::Ready(true);
        }
        down.poll(&mut app, &mut client, context).map(|failed| failed == Some(Side::To))
    });
    if lost.await {
        return;
    }
    // The app writes no more. Whether it still reads shows when it closes altogether.
    let Ok(twin) = twin(&app) else { return };
    let rest = poll_fn(|context| up.poll(&mut client, &mut app, context));
    tokio::select! {
        _ = rest => {}
        () = is_closed(&twin) => {}
    }
    if !up.ended {
        let _ = timeout(LINGER, poll_fn(|context| part(&mut client, context))).await;
    }
}

/// The same socket once more, so that nobody's readiness is touched by looking at it.
fn twin(app: &UnixStream) -> io::Result<UnixStream> {
    UnixStream::from_std(app.as_fd().try_clone_to_owned()?.into())
}

/// Completes when the other end is closed, and not merely shut down for writing.
async fn is_closed(app: &UnixStream) {
    while let Ok(ready) = app.ready(Interest::WRITABLE).await
        && !ready.is_write_closed()
    {
        // Not before something changes.
        let _ = app.try_io(Interest::WRITABLE, || io::Result::<()>::Err(WouldBlock.into()));
    }
}

/// Which side of a way has failed.
#[derive(Debug, PartialEq, Eq)]
enum Side {
    From,
    To,
}

/// One direction.
struct Way {
    /// Read and not yet written.
    left: Bytes,
    /// The end was read.
    ended: bool,
    /// The end was passed on, or the way is broken.
    over: bool,
}

impl Way {
    fn new(first: Bytes) -> Way {
        Way { left: first, ended: false, over: false }
    }

    /// Carries what is there. Ready when it is over: None when all of it was passed on, else the
    /// side that has failed.
    fn poll(
        &mut self,
        from: &mut (impl AsyncRead + Unpin),
        to: &mut (impl AsyncWrite + Unpin),
        context: &mut Context<'_>,
    ) -> Poll<Option<Side>> {
        if self.over {
            return Poll::Ready(None);
        }
        let failed = ready!(self.poll_through(from, to, context)).err();
        self.over = true;
        Poll::Ready(failed)
    }

    fn poll_through(
        &mut self,
        from: &mut (impl AsyncRead + Unpin),
        to: &mut (impl AsyncWrite + Unpin),
        context: &mut Context<'_>,
    ) -> Poll<Result<(), Side>> {
        loop {
            while !self.left.is_empty() {
                let wrote = ready!(Pin::new(&mut *to).poll_write(context, &self.left));
                self.left.advance(wrote.map_err(|_| Side::To)?);
            }
            self.left = Bytes::new();
            if self.ended {
                return Pin::new(&mut *to).poll_shutdown(context).map_err(|_| Side::To);
            }
            let mut room = [MaybeUninit::uninit(); PIECE];
            let mut buffer = ReadBuf::uninit(&mut room);
            ready!(Pin::new(&mut *from).poll_read(context, &mut buffer)).map_err(|_| Side::From)?;
            let mut part = buffer.filled();
            self.ended = part.is_empty();
            if let Poll::Ready(wrote) = Pin::new(&mut *to).poll_write(context, part) {
                part = &part[wrote.map_err(|_| Side::To)?..];
            }
            self.left = Bytes::copy_from_slice(part);
        }
    }
}

/// Nothing more comes from the app; reads until the client has nothing more to say either.
fn part(client: &mut Socket, context: &mut Context<'_>) -> Poll<()> {
    // Once more where the end was passed on already: an app that closes without having read all
    // ends in an error.
    let _ = ready!(Pin::new(&mut *client).poll_shutdown(context));
    loop {
        let mut room = [MaybeUninit::uninit(); PIECE];
        let mut buffer = ReadBuf::uninit(&mut room);
        let read = ready!(Pin::new(&mut *client).poll_read(context, &mut buffer));
        if read.is_err() || buffer.filled().is_empty() {
            return Poll::Ready(());
        }
    }
}
