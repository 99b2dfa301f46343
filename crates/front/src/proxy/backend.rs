//! A backend: where it is, and connections to it.

use super::outgoing::OutBody;
use crate::io::Socket;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use std::fmt;
use std::io::{self, ErrorKind};
use std::time::Duration;
use tokio::net::{TcpStream, UnixStream};
use tokio::time::{Instant, sleep, timeout_at};
use wire::settings;

/// How long to connect may take.
const CONNECT: Duration = Duration::from_secs(2);
/// How soon a full backlog is tried again: its server has others to serve besides us.
const AGAIN: Duration = Duration::from_millis(5);

/// A connection on which a request can be sent.
pub type Connection = SendRequest<OutBody>;

/// Where a backend is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address(settings::Socket);

impl Address {
    /// Of a `HOST:PORT`, `tcp://HOST:PORT`, `unix:PATH` or `unix://PATH`.
    pub fn parse(text: &str) -> Result<Address, String> {
        let path = text.strip_prefix("unix:").filter(|path| !path.starts_with("//"));
        if let Some(path) = path.filter(|path| !path.is_empty()) {
            return Ok(Address(settings::Socket::Unix(path.into())));
        }
        let address = settings::Address::parse(text)?;
        match address.door {
            settings::Door::Http => Ok(Address(address.socket)),
            _ => Err(format!("{text}: backends speak HTTP")),
        }
    }

    /// Connects, for `CONNECT` at most.
    pub async fn connect(&self) -> io::Result<Socket> {
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

    async fn connect_once(&self) -> io::Result<Socket> {
        match &self.0 {
            settings::Socket::Tcp(host, port) => {
                let stream = TcpStream::connect((host.as_str(), *port)).await?;
                let _ = stream.set_nodelay(true);
                Ok(Socket::Tcp(stream))
            }
            settings::Socket::Unix(path) => UnixStream::connect(path).await.map(Socket::Unix),
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
        match &self.0 {
            settings::Socket::Tcp(host, port) if host.contains(':') => {
                write!(f, "[{host}]:{port}")
            }
            settings::Socket::Tcp(host, port) => write!(f, "{host}:{port}"),
            settings::Socket::Unix(path) => write!(f, "unix:{path}"),
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_those_of_listeners_that_speak_http() {
        let written = |text| Address::parse(text).map(|address| address.to_string());
        assert_eq!(written("127.0.0.1:3000").as_deref(), Ok("127.0.0.1:3000"));
        assert_eq!(written("tcp://[::1]:3000").as_deref(), Ok("[::1]:3000"));
        assert_eq!(written("unix:///run/a.sock").as_deref(), Ok("unix:/run/a.sock"));
        assert_eq!(written("unix:/run/a.sock").as_deref(), Ok("unix:/run/a.sock"));
        assert!(written("fastcgi://127.0.0.1:9000").is_err());
        assert!(written("nonsense").is_err());
    }
}
