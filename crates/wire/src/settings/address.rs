//! Sockets, and listeners on them: as people write them.

use std::fmt;

/// A protocol spoken on a listener.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Door {
    /// HTTP/1.1.
    #[default]
    Http,
    /// FastCGI 1.0.
    FastCgi,
    /// SCGI.
    Scgi,
}

/// A socket's address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Socket {
    /// Host (a name or an address, IPv6 without its brackets) and port.
    Tcp(String, u16),
    /// A socket file.
    Unix(String),
}

/// Where a listener is bound, and what is spoken there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// The protocol.
    pub door: Door,
    /// The socket.
    pub socket: Socket,
}

/// How addresses begin: over TCP, over a unix socket.
const SCHEMES: [(Door, &str, &str); 3] = [
    (Door::Http, "tcp://", "unix://"),
    (Door::FastCgi, "fastcgi://", "fastcgi+unix://"),
    (Door::Scgi, "scgi://", "scgi+unix://"),
];

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let (tcp, unix) = self.door.schemes();
        match &self.socket {
            Socket::Tcp(host, port) if host.contains(':') => write!(f, "{tcp}[{host}]:{port}"),
            Socket::Tcp(host, port) => write!(f, "{tcp}{host}:{port}"),
            Socket::Unix(path) => write!(f, "{unix}{path}"),
        }
    }
}

impl fmt::Display for Socket {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Socket::Tcp(host, port) if host.contains(':') => write!(f, "[{host}]:{port}"),
            Socket::Tcp(host, port) => write!(f, "{host}:{port}"),
            Socket::Unix(path) => write!(f, "unix:{path}"),
        }
    }
}

impl Socket {
    /// Reads `HOST:PORT`, `tcp://HOST:PORT`, `unix:PATH` and `unix://PATH`; None: it is no socket.
    pub fn parse(text: &str) -> Option<Socket> {
        match text.strip_prefix("unix:") {
            Some(path) => {
                let path = path.strip_prefix("//").unwrap_or(path);
                (!path.is_empty()).then(|| Socket::Unix(path.into()))
            }
            None => host_and_port(text.strip_prefix("tcp://").unwrap_or(text)),
        }
    }
}

impl Door {
    /// How addresses of this door begin: over TCP, over a unix socket.
    pub fn schemes(self) -> (&'static str, &'static str) {
        let (_, tcp, unix) = SCHEMES[self as usize];
        (tcp, unix)
    }
}

impl Address {
    /// An address where HTTP is spoken.
    pub fn http(socket: Socket) -> Address {
        Address { door: Door::Http, socket }
    }

    /// Whether HTTP is spoken there, and other machines cannot reach it.
    pub fn is_local(&self) -> bool {
        let near = match &self.socket {
            Socket::Unix(_) => true,
            Socket::Tcp(host, _) if host == "localhost" => true,
            Socket::Tcp(host, _) => {
                host.parse().is_ok_and(|address: std::net::IpAddr| address.is_loopback())
            }
        };
        near && self.door == Door::Http
    }

    /// Reads `tcp://HOST:PORT`, `unix://PATH`, the same with another door's scheme, and a bare
    /// `HOST:PORT`.
    pub fn parse(text: &str) -> Result<Address, String> {
        let refuse = || {
            format!(
                "{text:?} is no address: write tcp://HOST:PORT, tcp://[::1]:PORT or unix://PATH, \
                 or fastcgi://, fastcgi+unix://, scgi:// or scgi+unix:// for these protocols"
            )
        };
        for (door, tcp, unix) in SCHEMES {
            if let Some(path) = text.strip_prefix(unix) {
                let socket = Socket::Unix(path.into());
                return if path.is_empty() { Err(refuse()) } else { Ok(Address { door, socket }) };
            }
            if let Some(rest) = text.strip_prefix(tcp) {
                let socket = host_and_port(rest).ok_or_else(refuse)?;
                return Ok(Address { door, socket });
            }
        }
        host_and_port(text).map(Address::http).ok_or_else(refuse)
    }
}

fn host_and_port(text: &str) -> Option<Socket> {
    let (host, port) = text.rsplit_once(':')?;
    let port = port.parse().ok()?;
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    match bare {
        Some(host) if host.parse::<std::net::Ipv6Addr>().is_ok() => {
            Some(Socket::Tcp(host.into(), port))
        }
        None if !host.is_empty() && !host.contains([':', '/', '[', ']']) => {
            Some(Socket::Tcp(host.into(), port))
        }
        _ => None,
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn what_other_machines_cannot_reach() {
        let local = |text| Address::parse(text).unwrap().is_local();
        for text in ["unix:///run/a.sock", "tcp://127.0.0.1:0", "127.9.9.9:1", "tcp://[::1]:80"] {
            assert!(local(text), "{text}");
        }
        assert!(local("localhost:9393"));
        for text in ["tcp://0.0.0.0:80", "tcp://[::]:80", "tcp://192.0.2.1:80", "example:80"] {
            assert!(!local(text), "{text}");
        }
        assert!(!local("fastcgi://127.0.0.1:9000") && !local("scgi+unix:///run/a.sock"));
    }

    #[test]
    fn addresses() {
        let http = |socket| Ok(Address::http(socket));
        let tcp = |host: &str, port| http(Socket::Tcp(host.into(), port));
        assert_eq!(Address::parse("tcp://127.0.0.1:9292"), tcp("127.0.0.1", 9292));
        assert_eq!(Address::parse("tcp://[::1]:80"), tcp("::1", 80));
        assert_eq!(Address::parse("localhost:0"), tcp("localhost", 0));
        assert_eq!(Address::parse("unix:///run/a.sock"), http(Socket::Unix("/run/a.sock".into())));
        for text in [
            "tcp://[::1]:80",
            "unix:///a",
            "fastcgi://127.0.0.1:9000",
            "scgi://[::1]:4000",
            "fastcgi+unix:///run/a.sock",
            "scgi+unix:///run/a.sock",
        ] {
            assert_eq!(Address::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(Address::parse("scgi://a:1").unwrap().door, Door::Scgi);
        for wrong in [
            "",
            "9292",
            "tcp://:80",
            "tcp://::1:80",
            "tcp://a:b",
            "unix://",
            "http://a:1",
            "scgi://",
            "fastcgi+unix://",
        ] {
            assert!(Address::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn sockets_come_back_as_they_were_written() {
        for text in ["unix:/run/a.sock", "unix:a.sock", "127.0.0.1:3000", "[::1]:80"] {
            assert_eq!(Socket::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(Socket::parse("unix:///a"), Some(Socket::Unix("/a".into())));
        assert_eq!(Socket::parse("tcp://a:1"), Some(Socket::Tcp("a".into(), 1)));
        for wrong in ["", "unix:", "unix://", "3000", "a", "http://a:1", "::1:80"] {
            assert_eq!(Socket::parse(wrong), None, "{wrong}");
        }
    }
}
