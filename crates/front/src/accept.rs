//! Step 1: connections in, each to the front thread with the fewest.

use crate::drain::{self, Counted, Drain};
use crate::here::{self, Here};
use crate::io::Socket;
use crate::limits::OfListener;
use crate::mounts::{Arrival, Gone};
use crate::peer::{Home, Peer};
use crate::refuse::{Seldom, log};
use crate::stats;
use crate::{Listener, connection};
use std::io;
use std::net::TcpStream as StdTcp;
use std::os::unix::net::UnixStream as StdUnix;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use wire::control::MountId;
use wire::settings::Address;

/// Pause after an accept that failed for want of resources (file descriptors, memory).
const EXHAUSTED_PAUSE: Duration = Duration::from_millis(20);
/// Pause of a front that gives way and has more requests than workers.
const BEHIND_PAUSE: Duration = Duration::from_millis(2);

/// An accepted connection on its way to another thread.
pub struct Given {
    stream: GivenStream,
    peer: Arc<Peer>,
    held: Held,
}

enum GivenStream {
    Tcp(StdTcp),
    Unix(StdUnix),
}

/// What a connection counts as, for as long as this lives.
pub struct Held {
    /// The drain waits for it; whoever need not be waited for drops it early.
    pub counted: Counted,
    /// It is one of its thread's connections.
    pub load: Load,
    /// It is one of its listener's connections.
    pub of_listener: OfListener,
}

/// What the first thread tells another.
pub enum Order {
    /// Serve this connection.
    Serve(Box<Given>),
    /// Here is a mount.
    Mount(Arrival),
    /// Let a mount go.
    Unmount(MountId, Arc<Gone>),
}

/// The other front threads: where to send connections, and how many each has.
pub struct Hands {
    here: Arc<AtomicUsize>,
    others: Vec<(UnboundedSender<Order>, Arc<AtomicUsize>)>,
}

impl Hands {
    /// Only the accepting thread itself.
    pub fn new() -> Hands {
        Hands { here: Arc::default(), others: Vec::new() }
    }

    /// One thread more.
    pub fn add(&mut self, sender: UnboundedSender<Order>) {
        self.others.push((sender, Arc::default()));
    }

    /// How many threads there are, this one counted.
    pub fn threads(&self) -> usize {
        1 + self.others.len()
    }

    /// Tells another thread; numbered from 0, this one not counted.
    pub fn tell(&self, other: usize, order: Order) {
        if let Some((sender, _)) = self.others.get(other) {
            // Fails only when that thread has ended, which ends the process.
            let _ = sender.send(order);
        }
    }

    /// The thread with the fewest connections, if it is not this one.
    fn least(&self) -> Option<&(UnboundedSender<Order>, Arc<AtomicUsize>)> {
        let least = self.others.iter().min_by_key(|(_, load)| load.load(Relaxed))?;
        (least.1.load(Relaxed) < self.here.load(Relaxed)).then_some(least)
    }
}

/// A listening socket in this thread's runtime.
pub struct Door {
    socket: Listening,
    home: Arc<Home>,
    connections: Arc<AtomicUsize>,
    shared: bool,
}

enum Listening {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Door {
    /// Registers the supervisor's socket with the runtime.
    pub fn open(listener: Listener) -> io::Result<Door> {
        let shared = listener.shared;
        let address = Address::parse(&listener.address).map_err(io::Error::other)?;
        if matches!(address.socket, wire::settings::Socket::Unix(_)) {
            let socket = std::os::unix::net::UnixListener::from(listener.fd);
            socket.set_nonblocking(true)?;
            let socket = Listening::Unix(UnixListener::from_std(socket)?);
            return Ok(Door::new(socket, Home::unix(address.door), shared));
        }
        let socket = std::net::TcpListener::from(listener.fd);
        socket.set_nonblocking(true)?;
        let home = Home::tcp(socket.local_addr()?, address.door);
        Ok(Door::new(Listening::Tcp(TcpListener::from_std(socket)?), home, shared))
    }

    fn new(socket: Listening, home: Home, shared: bool) -> Door {
        Door { socket, home: home.into(), connections: Arc::default(), shared }
    }

    /// The next connection.
    pub async fn accept(&self) -> io::Result<(Socket, Peer)> {
        let home = self.home.clone();
        match &self.socket {
            Listening::Tcp(listener) => {
                let (stream, address) = listener.accept().await?;
                // Without it small replies on a kept connection wait for the client's ACK.
                let _ = stream.set_nodelay(true);
                Ok((Socket::Tcp(stream), Peer::tcp(address, home)))
            }
            Listening::Unix(listener) => {
                let (stream, _) = listener.accept().await?;
                Ok((Socket::Unix(stream), Peer::unix(home)))
            }
        }
    }
}

/// Accepts on one listener until the front drains, then until its backlog is empty. What is in the
/// backlog of a shared one is for the server that follows.
pub async fn run(door: Door, hands: Arc<Hands>, drain: Arc<Drain>) {
    let options = here::options();
    let begins = drain.begins();
    tokio::pin!(begins);
    while !(door.shared && drain.is_draining()) {
        while drain::is_giving_way() && !drain.is_draining() && here::with(Here::is_behind) {
            tokio::time::sleep(BEHIND_PAUSE).await;
        }
        tokio::select! {
            biased;
            arrived = door.accept() => match arrived.inspect(|_| stats::accepts()) {
                Ok((socket, peer)) => match OfListener::one_more(&door.connections, options) {
                    Ok(of_listener) => deal(socket, peer.into(), of_listener, &hands, &drain),
                    Err(refusal) => {
                        tokio::spawn(connection::turn_away(socket, peer.into(), refusal));
                    }
                },
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
        static LOG: Seldom = Seldom::new();
        LOG.say(&format!("accept failed, trying again: {error}"));
        tokio::time::sleep(EXHAUSTED_PAUSE).await;
    }
}

fn deal(
    socket: Socket,
    peer: Arc<Peer>,
    of_listener: OfListener,
    hands: &Hands,
    drain: &Arc<Drain>,
) {
    let (give, load) = match hands.least() {
        Some((sender, load)) => (Some(sender), load),
        None => (None, &hands.here),
    };
    let held = Held { counted: drain.count(), load: Load::one_more(load), of_listener };
    let Some(sender) = give else {
        tokio::spawn(connection::serve(socket, peer, held));
        return;
    };
    let stream = match socket {
        Socket::Tcp(stream) => stream.into_std().map(GivenStream::Tcp),
        Socket::Unix(stream) => stream.into_std().map(GivenStream::Unix),
    };
    match stream {
        Ok(stream) => {
            // Fails only when that thread has ended, which ends the process.
            let _ = sender.send(Order::Serve(Given { stream, peer, held }.into()));
        }
        Err(error) => log(&format!("a connection could not be handed over: {error}")),
    }
}

/// Does what the first thread says, until it says no more.
pub async fn take_over(mut orders: UnboundedReceiver<Order>) {
    while let Some(order) = orders.recv().await {
        let Given { stream, peer, held } = match order {
            Order::Serve(given) => *given,
            Order::Mount(arrival) => {
                here::with(|here| here.mount(arrival));
                continue;
            }
            Order::Unmount(mount, gone) => {
                here::with(|here| here.unmount(mount, gone));
                continue;
            }
        };
        let socket = match stream {
            GivenStream::Tcp(stream) => TcpStream::from_std(stream).map(Socket::Tcp),
            GivenStream::Unix(stream) => UnixStream::from_std(stream).map(Socket::Unix),
        };
        match socket {
            Ok(socket) => drop(tokio::spawn(connection::serve(socket, peer, held))),
            Err(error) => log(&format!("a connection could not be taken over: {error}")),
        }
    }
}

/// Counts the thread's connections down.
pub struct Load(Arc<AtomicUsize>);

impl Load {
    fn one_more(count: &Arc<AtomicUsize>) -> Load {
        count.fetch_add(1, Relaxed);
        Load(count.clone())
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

/// Registers all listeners of the supervisor.
pub fn open(listeners: Vec<Listener>) -> io::Result<Vec<Door>> {
    listeners.into_iter().map(Door::open).collect()
}
