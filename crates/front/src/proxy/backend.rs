//! A backend: where it is, and connections to it.

use super::outgoing::OutBody;
use crate::io::Socket as Stream;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use std::fmt;
use std::io::{self, ErrorKind};
use std::time::Duration;
use tokio::net::{TcpStream, UnixStream};
use tokio::time::{Instant, sleep, timeout_at};
use wire::settings::Socket;

/// How long to connect may take.
const CONNECT: Duration = Duration::from_secs(2);
/// How soon a full backlog is tried again: its server has others to serve besides us.
const AGAIN: Duration = Duration::from_millis(5);

/// A connection on which a request can be sent.
pub type Connection = SendRequest<OutBody>;

/// Where a backend is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address(Socket);

impl Address {
    /// Of a `HOST:PORT`, `tcp://HOST:PORT`, `unix:PATH` or `unix://PATH`.
    pub fn parse(text: &str) -> Result<Address, String> {
        let socket = Socket::parse(text);
        socket.map(Address).ok_or_else(|| format!("{text:?} is no address of a server"))
    }

    /// Connects, for `CONNECT` at most.
    pub async fn connect(&self) -> io::Result<Stream> {
        let deadline = Instant::now() + CONNECT;
        loop {
            match timeout_at(deadline, self.connect_once()).await {
                Err(_) => return Err(ErrorKind::TimedOut.into()),
                // A unix socket's backlog is full.
                Ok(Err(error)) if error.kind() == ErrorKind::WouldBlock => {
                    if Instant::now() + AGAIN >= deadline {
                        return Err(error);
                    }
                    sleep(AGAIN).await;
                }
                Ok(done) => return done,
            }
        }
    }

    async fn connect_once(&self) -> io::Result<Stream> {
        match &self.0 {
            Socket::Tcp(host, port) => {
                let stream = TcpStream::connect((host.as_str(), *port)).await?;
                let _ = stream.set_nodelay(true);
                Ok(Stream::Tcp(stream))
            }
            Socket::Unix(path) => UnixStream::connect(path).await.map(Stream::Unix),
        }
    }

    /// Connects and lets hyper speak there, in a task of this thread.
    pub async fn open(&self) -> io::Result<Connection> {
        let socket = self.connect().await?;
        let (sender, connection) =
            http1::handshake(TokioIo::new(socket)).await.map_err(io::Error::other)?;
        // What becomes of it is seen by whoever sends a request.
        tokio::spawn(async move { drop(connection.with_upgrades().await) });
        Ok(sender)
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What to do about a backend that cannot be reached.
pub fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        ErrorKind::PermissionDenied => "let the user of the front write to its socket",
        ErrorKind::TimedOut => "its machine does not answer",
        _ => "is it running?",
    }
}
