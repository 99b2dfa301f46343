//! Where the server listens, and how to open a connection to it.

use std::net::{SocketAddr, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::str::FromStr;

use rustix::io::{Errno, Result};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with, sockopt,
};

use crate::door::Door;

/// The address of the server.
#[derive(Clone, Debug)]
pub struct Target {
    /// What is spoken there.
    pub door: Door,
    place: Place,
}

#[derive(Clone, Debug)]
enum Place {
    /// `tcp://HOST:PORT`
    Tcp(SocketAddr),
    /// `unix://PATH`
    Unix(SocketAddrUnix),
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let (door, place) = Door::of(text);
        place.parse().map(|place| Self { door, place })
    }
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        if let Some(path) = text.strip_prefix("unix://") {
            return SocketAddrUnix::new(path)
                .map(Self::Unix)
                .map_err(|error| format!("to = {text:?}: {error}; a socket's path is short"));
        }
        let Some(host) = text.strip_prefix("tcp://") else {
            return Err(format!("to = {text:?}: write tcp://HOST:PORT or unix://PATH"));
        };
        let mut found = host
            .to_socket_addrs()
            .map_err(|error| format!("to = {text:?}: {error}; write tcp://HOST:PORT"))?;
        found.next().map(Self::Tcp).ok_or_else(|| format!("to = {text:?}: no such address"))
    }
}

impl Target {
    /// Opens a socket and starts connecting. True when it is connected already; otherwise the
    /// first write tells.
    pub fn open(&self) -> Result<(OwnedFd, bool)> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let family = match self.place {
            Place::Tcp(SocketAddr::V4(_)) => AddressFamily::INET,
            Place::Tcp(SocketAddr::V6(_)) => AddressFamily::INET6,
            Place::Unix(_) => AddressFamily::UNIX,
        };
        let fd = socket_with(family, SocketType::STREAM, flags, None)?;
        let connecting = match &self.place {
            Place::Tcp(address) => {
                sockopt::set_tcp_nodelay(&fd, true)?;
                connect(&fd, address)
            }
            Place::Unix(address) => connect(&fd, address),
        };
        match connecting {
            Ok(()) => Ok((fd, true)),
            Err(Errno::INPROGRESS) => Ok((fd, false)),
            Err(error) => Err(error),
        }
    }

    /// What stands in the Host field.
    pub fn host(&self) -> String {
        match &self.place {
            Place::Tcp(address) => address.to_string(),
            Place::Unix(_) => "localhost".into(),
        }
    }
}

/// What to say when a connection could not be opened for want of something on this side; None when
/// the server is the one to blame. `open` connections there are already.
pub fn ours(error: Errno, open: usize) -> Option<String> {
    match error {
        Errno::MFILE | Errno::NFILE => {
            Some(format!("no more than {open} open files: raise ulimit -n"))
        }
        Errno::ADDRNOTAVAIL => Some(
            "no local port is left: wait until TIME_WAIT has drained, or widen \
             net.ipv4.ip_local_port_range"
                .into(),
        ),
        // A unix socket whose queue is full says EAGAIN: to a real client as well.
        _ => None,
    }
}
