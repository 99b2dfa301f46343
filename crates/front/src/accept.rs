//! Step 1: connections in, each to the front thread with the fewest.

use crate::drain::{Counted, Drain};
use crate::http::{self, Home, Peer};
use crate::{Listener, refuse};
use std::io;
use std::net::TcpStream as StdTcp;
use std::os::unix::net::UnixStream as StdUnix;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};

/// Pause after an accept that failed for want of resources (file descriptors, memory).
const EXHAUSTED_PAUSE: Duration = Duration::from_millis(20);

/// An accepted connection on its way to another thread.
pub struct Given {
    stream: GivenStream,
    peer: Arc<Peer>,
    counted: Counted,
    load: Arc<AtomicUsize>,
}

enum GivenStream {
    Tcp(StdTcp),
    Unix(StdUnix),
}

/// The other front threads: where to send connections, and how many each has.
pub struct Hands {
    here: Arc<AtomicUsize>,
    others: Vec<(UnboundedSender<Given>, Arc<AtomicUsize>)>,
}

impl Hands {
    /// Only the accepting thread itself.
    pub fn new() -> Hands {
        Hands { here: Arc::default(), others: Vec::new() }
    }

    /// One thread more.
    pub fn add(&mut self, sender: UnboundedSender<Given>) {
        self.others.push((sender, Arc::default()));
    }

    /// The thread with the fewest connections, if it is not this one.
    fn least(&self) -> Option<&(UnboundedSender<Given>, Arc<AtomicUsize>)> {
        let least = self.others.iter().min_by_key(|(_, load)| load.load(Relaxed))?;
        (least.1.load(Relaxed) < self.here.load(Relaxed)).then_some(least)
    }
}

/// A listening socket in this thread's runtime.
pub struct Door {
    socket: Socket,
    home: Arc<Home>,
}

enum Socket {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Door {
    /// Registers the supervisor's socket with the runtime.
    pub fn open(listener: Listener) -> io::Result<Door> {
        if listener.address.starts_with("unix:") {
            let socket = std::os::unix::net::UnixListener::from(listener.fd);
            socket.set_nonblocking(true)?;
            let socket = Socket::Unix(UnixListener::from_std(socket)?);
            return Ok(Door { socket, home: Home::unix().into() });
        }
        let socket = std::net::TcpListener::from(listener.fd);
        socket.set_nonblocking(true)?;
        let home = Home::tcp(socket.local_addr()?).into();
        Ok(Door { socket: Socket::Tcp(TcpListener::from_std(socket)?), home })
    }

    async fn accept(&self) -> io::Result<Arrived> {
        let home = self.home.clone();
        match &self.socket {
            Socket::Tcp(listener) => {
                let (stream, address) = listener.accept().await?;
                // Without it small replies on a kept connection wait for the client's ACK.
                let _ = stream.set_nodelay(true);
                Ok(Arrived::Tcp(stream, Peer::tcp(address, home)))
            }
            Socket::Unix(listener) => {
                let (stream, _) = listener.accept().await?;
                Ok(Arrived::Unix(stream, Peer::unix(home)))
            }
        }
    }
}

enum Arrived {
    Tcp(TcpStream, Peer),
    Unix(UnixStream, Peer),
}

/// Accepts on one listener until the front drains, then until its backlog is empty.
pub async fn run(door: Door, hands: Arc<Hands>, drain: Arc<Drain>) {
    let begins = drain.begins();
    tokio::pin!(begins);
    loop {
        tokio::select! {
            biased;
            arrived = door.accept() => match arrived {
                Ok(arrived) => deal(arrived, &hands, &drain),
                Err(error) => pause_if_exhausted(&error).await,
            },
            // The select is biased: this is looked at only when nothing is there to accept.
            () = &mut begins => return,
        }
    }
}

async fn pause_if_exhausted(error: &io::Error) {
    // A client that left between connecting and being accepted is no failure of ours.
    if error.kind() != io::ErrorKind::ConnectionAborted {
        refuse::log(&format!("accept failed, trying again: {error}"));
        tokio::time::sleep(EXHAUSTED_PAUSE).await;
    }
}

fn deal(arrived: Arrived, hands: &Hands, drain: &Arc<Drain>) {
    let counted = drain.count();
    let (give, load) = match hands.least() {
        Some((sender, load)) => (Some(sender), load.clone()),
        None => (None, hands.here.clone()),
    };
    load.fetch_add(1, Relaxed);
    let Some(sender) = give else {
        let load = Load(load);
        match arrived {
            Arrived::Tcp(stream, peer) => serve(stream, peer.into(), drain.clone(), counted, load),
            Arrived::Unix(stream, peer) => serve(stream, peer.into(), drain.clone(), counted, load),
        }
        return;
    };
    let given = match arrived {
        Arrived::Tcp(stream, peer) => {
            stream.into_std().map(|stream| (GivenStream::Tcp(stream), peer))
        }
        Arrived::Unix(stream, peer) => {
            stream.into_std().map(|stream| (GivenStream::Unix(stream), peer))
        }
    };
    match given {
        Ok((stream, peer)) => {
            // Fails only when that thread has ended, which ends the process.
            let _ = sender.send(Given { stream, peer: peer.into(), counted, load });
        }
        Err(error) => refuse::log(&format!("a connection could not be handed over: {error}")),
    }
}

/// Serves connections that the first thread accepted, until it stops sending and all are done.
pub async fn take_over(mut given: UnboundedReceiver<Given>, drain: Arc<Drain>) {
    while let Some(Given { stream, peer, counted, load }) = given.recv().await {
        let load = Load(load);
        let failed = match stream {
            GivenStream::Tcp(stream) => TcpStream::from_std(stream)
                .map(|stream| serve(stream, peer, drain.clone(), counted, load))
                .err(),
            GivenStream::Unix(stream) => UnixStream::from_std(stream)
                .map(|stream| serve(stream, peer, drain.clone(), counted, load))
                .err(),
        };
        if let Some(error) = failed {
            refuse::log(&format!("a connection could not be taken over: {error}"));
        }
    }
}

/// Counts the thread's connections down.
struct Load(Arc<AtomicUsize>);

impl Drop for Load {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

fn serve<S>(stream: S, peer: Arc<Peer>, drain: Arc<Drain>, counted: Counted, load: Load)
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    tokio::spawn(async move {
        let _held = (counted, load);
        http::serve(stream, peer, drain).await;
    });
}

/// Registers all listeners of the supervisor.
pub fn open(listeners: Vec<Listener>) -> io::Result<Vec<Door>> {
    listeners.into_iter().map(Door::open).collect()
}
