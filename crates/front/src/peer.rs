//! Who is at the other end of a connection, and at which of our addresses.

use crate::aside::Aside;
use crate::link::Link;
use crate::rules::{Watch, Word};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use wire::now_ns;
use wire::settings::Door;

/// What all connections of a listener have in common: our own address, for requests without Host.
pub struct Home {
    /// SERVER_NAME.
    pub name: String,
    /// SERVER_PORT.
    pub port: String,
    /// What is spoken there.
    pub door: Door,
}

impl Home {
    /// A TCP listener's.
    pub fn tcp(local: SocketAddr, door: Door) -> Home {
        let (name, port) = (local.ip().to_canonical().to_string(), local.port().to_string());
        Home { name, port, door }
    }

    /// A unix listener's: the socket has no name a URL could hold.
    pub fn unix(door: Door) -> Home {
        Home { name: "localhost".into(), port: "80".into(), door }
    }
}

/// What all requests of a connection have in common.
pub struct Peer {
    /// The client's address; None over a unix socket.
    pub client: Option<IpAddr>,
    /// The client's address, empty over a unix socket.
    pub address: String,
    /// The client's port, empty over a unix socket.
    pub port: String,
    /// The listener's address.
    pub home: Arc<Home>,
    /// When the connection was accepted.
    pub accepted_ns: u64,
    /// How far the connection has come.
    pub link: Link,
    /// What its request does to it beside the reply.
    pub aside: Aside,
    /// What it may say of whom it speaks for.
    pub word: Word,
    /// How many requests it has sent, and what is wrong with its bytes.
    pub watch: Watch,
}

impl Peer {
    /// A client over TCP.
    pub fn tcp(client: SocketAddr, home: Arc<Home>) -> Peer {
        let (address, port) = (client.ip().to_canonical(), client.port());
        let client = Some(address);
        let peer = Peer::new(address.to_string(), port.to_string(), home, Word::of(client));
        Peer { client, ..peer }
    }

    /// A client over a unix socket, which has neither address nor port.
    pub fn unix(home: Arc<Home>) -> Peer {
        Peer::new(String::new(), String::new(), home, Word::of(None))
    }

    fn new(address: String, port: String, home: Arc<Home>, word: Word) -> Peer {
        let (link, aside, watch) = (Link::default(), Aside::default(), Watch::default());
        let (client, accepted_ns) = (None, now_ns());
        Peer { client, address, port, home, accepted_ns, link, aside, word, watch }
    }

    /// Its name in a line of the log.
    pub fn who(&self) -> String {
        match self.address.as_str() {
            "" => "a client".into(),
            address => format!("the client {address}:{}", self.port),
        }
    }
}
