//! Listeners that somebody else has bound: `start_server`, systemd, or a web server that starts its
//! FastCGI applications itself.

use super::Listener;
use crate::inherit;
use crate::spawn::CALLER;
use rustix::net::sockopt::{socket_acceptconn, socket_type};
use rustix::net::{AddressFamily, SocketAddrAny, SocketAddrUnix, SocketType, getsockname};
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd, RawFd};
use wire::settings::{Address, Door};

/// How `start_server` names its sockets: `8080=3;127.0.0.1:8081=4;/run/app.sock=5`.
const START_SERVER: &str = "SERVER_STARTER_PORT";
/// How many sockets systemd has opened, from fd 3 on.
const LISTEN_FDS: &str = "LISTEN_FDS";
/// Whom they are for.
const LISTEN_PID: &str = "LISTEN_PID";
/// Variables that speak of fds no process of ours inherits.
pub const VARIABLES: [&str; 4] = [START_SERVER, LISTEN_FDS, LISTEN_PID, "LISTEN_FDNAMES"];

/// Whether `start_server` runs this server, and so also starts its successor.
pub fn started_by_start_server() -> bool {
    std::env::var(START_SERVER).is_ok_and(|ports| ports.contains('='))
}

/// The listeners this process was started with; none if it is to bind its own. To be called before
/// anything else opens fds: the numbers are all that is known of them.
pub fn take() -> Result<Vec<Listener>, String> {
    let (variable, named) = if started_by_start_server() {
        let ports = std::env::var(START_SERVER).unwrap_or_default();
        (START_SERVER, listed(&ports)?)
    } else {
        (LISTEN_FDS, counted())
    };
    if named.is_empty() {
        return Ok(standard_input().into_iter().collect());
    }
    let mut listeners = Vec::new();
    for (name, number) in &named {
        let fd = inherit::take(*number).map_err(|_| not_open(variable, *number))?;
        listeners.extend(adopt(fd).map_err(|why| format!("{variable}: {name} {why}"))?);
    }
    if listeners.is_empty() && !named.is_empty() {
        return Err(format!("{variable} names no stream socket: give it a TCP port or a path"));
    }
    Ok(listeners)
}

fn not_open(variable: &str, number: RawFd) -> String {
    format!(
        "{variable} names fd {number}, which is not open: start the server directly, or with \
         `bundle exec --keep-file-descriptors`"
    )
}

/// The sockets of `start_server`'s list.
fn listed(ports: &str) -> Result<Vec<(String, RawFd)>, String> {
    let one = |port: &str| {
        let (name, number) = port.rsplit_once('=')?;
        Some((name.to_string(), number.parse().ok()?))
    };
    let parts = ports.split(';').filter(|port| !port.is_empty());
    parts
        .map(|port| {
            one(port).ok_or_else(|| format!("{START_SERVER}: {port:?} is not of the form PORT=FD"))
        })
        .collect()
}

/// systemd's, if they are for this process or for the one that has called it.
fn counted() -> Vec<(String, RawFd)> {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u32>().ok());
    let ours = [Some(std::process::id()), number(CALLER)];
    if number(LISTEN_PID).is_none_or(|pid| !ours.contains(&Some(pid))) {
        return Vec::new();
    }
    let count = number(LISTEN_FDS).unwrap_or(0) as RawFd;
    (3..3 + count).map(|fd| (format!("fd {fd}"), fd)).collect()
}

/// The socket that a web server has put in the place of standard input (FastCGI 1.0, section 2.2).
fn standard_input() -> Option<Listener> {
    let fd = std::io::stdin().as_fd().try_clone_to_owned().ok()?;
    let listener = adopt(fd).ok()??;
    let address = Address::parse(&listener.address).ok()?;
    let address = Address { door: Door::FastCgi, ..address }.to_string();
    Some(Listener { address, ..listener })
}

/// A listener; none if the socket is of a kind that is for others, such as UDP.
fn adopt(fd: OwnedFd) -> Result<Option<Listener>, String> {
    let kind = socket_type(&fd)
        .map_err(|_| "is no socket: is it still open in the process that started this one?")?;
    if kind != SocketType::STREAM {
        return Ok(None);
    }
    if !socket_acceptconn(&fd).unwrap_or(false) {
        return Err("is a connection and not a listener: with systemd, say Accept=no".into());
    }
    let bound = getsockname(&fd).map_err(|error| format!("has no address: {error}"))?;
    let address = written(bound).ok_or("is neither TCP nor a unix socket with a path")?;
    rustix::io::ioctl_fionbio(&fd, true).map_err(|error| error.to_string())?;
    Ok(Some(Listener { fd, address, shared: true, file: None }))
}

fn written(address: SocketAddrAny) -> Option<String> {
    if address.address_family() == AddressFamily::UNIX {
        let address = SocketAddrUnix::try_from(address).ok()?;
        return Some(format!("unix://{}", address.path()?.to_string_lossy()));
    }
    let address = SocketAddr::try_from(address).ok()?;
    Some(format!("tcp://{address}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream, UdpSocket};

    #[test]
    fn lists_are_read() {
        let one = |name: &str, fd| (name.to_string(), fd);
        assert_eq!(listed("8080=3").unwrap(), [one("8080", 3)]);
        assert_eq!(
            listed("127.0.0.1:80=4;[::1]:81=5;/run/a=b.sock=6").unwrap(),
            [one("127.0.0.1:80", 4), one("[::1]:81", 5), one("/run/a=b.sock", 6)]
        );
        assert!(listed("8080=x").unwrap_err().contains("PORT=FD"));
    }

    #[test]
    fn only_listening_stream_sockets_are_adopted() {
        let listener = TcpListener::bind("[::1]:0").unwrap();
        let address = format!("tcp://{}", listener.local_addr().unwrap());
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        assert_eq!(adopt(listener.into()).unwrap().unwrap().address, address);
        assert!(adopt(client.into()).err().unwrap().contains("Accept=no"));
        assert!(adopt(UdpSocket::bind("127.0.0.1:0").unwrap().into()).unwrap().is_none());
        let file = std::fs::File::open("/dev/null").unwrap();
        assert!(adopt(file.into()).err().unwrap().contains("no socket"));
    }
}
