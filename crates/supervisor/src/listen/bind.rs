//! Binding listeners, and leaving no socket file behind.

use super::{Listener, SocketFile};
use crate::answer::say;
use crate::options::Listening;
use crate::privileges::Identity;
use rustix::net::sockopt::{set_socket_reuseaddr, set_socket_reuseport};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, socket_with};
use std::fs::{self, Permissions};
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::Path;
use wire::settings::{Address, Door, Socket};

/// Binds all addresses, or says in one line which one failed, why, and what to do. Socket files
/// belong to `owner`, if there is one.
pub fn bind_all(
    addresses: &[Address],
    how: &Listening,
    owner: Option<&Identity>,
) -> Result<Vec<Listener>, String> {
    let mut listeners: Vec<Listener> = Vec::new();
    for address in addresses {
        let door = address.door;
        let bound = match &address.socket {
            Socket::Tcp(host, port) => bind_tcp(door, host, *port, how),
            Socket::Unix(path) => bind_unix(door, Path::new(path), how, owner).map(|one| vec![one]),
        };
        listeners.extend(bound.map_err(|error| explain(address, &error))?);
    }
    Ok(listeners)
}

fn explain(address: &Address, error: &io::Error) -> String {
    let remedy = match (error.kind(), &address.socket) {
        (ErrorKind::AddrInUse, Socket::Tcp(..)) => {
            "port is taken: stop the server that has it, or choose another with -p PORT".into()
        }
        (ErrorKind::AddrInUse, Socket::Unix(_)) => {
            "a server is listening there: stop it, or choose another path".into()
        }
        (ErrorKind::AddrNotAvailable, _) => {
            "no interface of this machine has that address: see `ip address`".into()
        }
        (ErrorKind::PermissionDenied, Socket::Tcp(..)) => {
            "not allowed: choose a port of 1024 or higher, or give the binary \
             cap_net_bind_service"
                .into()
        }
        (ErrorKind::PermissionDenied, Socket::Unix(_)) => {
            "not allowed: may this user write into that directory?".into()
        }
        (ErrorKind::NotFound, Socket::Unix(_)) => "its directory does not exist".into(),
        _ => error.to_string(),
    };
    format!("cannot listen on {address}: {remedy}")
}

/// A name may stand for several addresses (`localhost` often does); those this machine does not
/// have are passed over as long as one remains.
fn bind_tcp(door: Door, host: &str, port: u16, how: &Listening) -> io::Result<Vec<Listener>> {
    let addresses: Vec<SocketAddr> = (host, port).to_socket_addrs()?.collect();
    let mut bound: Vec<Listener> = Vec::new();
    let mut missing = io::Error::from(ErrorKind::AddrNotAvailable);
    for mut address in addresses {
        if bound.iter().any(|other| other.address == tcp_address(door, address)) {
            continue;
        }
        // With port 0 the second address of a name gets the port the first was given.
        if let (0, Some(first)) = (port, bound.first()) {
            let given = first.address.rsplit(':').next().and_then(|port| port.parse().ok());
            address.set_port(given.unwrap_or(0));
        }
        match listen_tcp(door, address, how) {
            Ok(listener) => bound.push(listener),
            Err(error) if error.kind() == ErrorKind::AddrNotAvailable => missing = error,
            Err(error) => return Err(error),
        }
    }
    if bound.is_empty() { Err(missing) } else { Ok(bound) }
}

fn listen_tcp(door: Door, address: SocketAddr, how: &Listening) -> io::Result<Listener> {
    let family = if address.is_ipv6() { AddressFamily::INET6 } else { AddressFamily::INET };
    let fd = new_socket(family)?;
    set_socket_reuseaddr(&fd, true)?;
    if how.reuse_port {
        set_socket_reuseport(&fd, true)?;
    }
    bind(&fd, &address)?;
    rustix::net::listen(&fd, how.backlog)?;
    let socket = TcpListener::from(fd);
    let address = tcp_address(door, socket.local_addr()?);
    Ok(Listener { fd: socket.into(), address, shared: false, file: None })
}

fn tcp_address(door: Door, address: SocketAddr) -> String {
    format!("{}{address}", door.schemes().0)
}

fn new_socket(family: AddressFamily) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(socket_with(family, SocketType::STREAM, flags, None)?)
}

/// The file has its owner and its permissions before anybody can connect.
fn bind_unix(
    door: Door,
    path: &Path,
    how: &Listening,
    owner: Option<&Identity>,
) -> io::Result<Listener> {
    remove_stale(path)?;
    let fd = new_socket(AddressFamily::UNIX)?;
    bind(&fd, &SocketAddrUnix::new(path)?)?;
    let file = SocketFile::at(path)?;
    let address = format!("{}{}", door.schemes().1, path.display());
    let listener = Listener { fd, address, shared: false, file: Some(file) };
    if let Some(owner) = owner {
        owner.give(path)?;
    }
    if let Some(mode) = how.socket_mode {
        fs::set_permissions(path, Permissions::from_mode(mode))?;
    }
    rustix::net::listen(&listener.fd, how.backlog)?;
    Ok(listener)
}

/// Removes a socket file nobody listens on any more. Anything else at the path is left alone.
pub fn remove_stale(path: &Path) -> io::Result<()> {
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if !found.file_type().is_socket() {
        return Err(io::Error::other("something that is not a socket is there: move it away"));
    }
    match UnixStream::connect(path) {
        Ok(_) => Err(ErrorKind::AddrInUse.into()),
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
            say(&format!("removing existing socket file: {}", path.display()));
            fs::remove_file(path)
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        // A full backlog: somebody is there, only busy.
        Err(error) if error.kind() == ErrorKind::WouldBlock => Err(ErrorKind::AddrInUse.into()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    fn bind(address: &str) -> Result<Vec<Listener>, String> {
        let how = Listening { backlog: 16, socket_mode: Some(0o620), ..Listening::default() };
        bind_all(&[Address::parse(address).unwrap()], &how, None)
    }

    #[test]
    fn a_taken_port_is_named_with_its_remedy() {
        let first = bind("tcp://127.0.0.1:0").unwrap();
        let error = bind(&first[0].address).err().unwrap();
        assert!(error.contains(&first[0].address) && error.contains("-p PORT"), "{error}");
    }

    #[test]
    fn a_port_may_be_shared() {
        let how = Listening { backlog: 16, reuse_port: true, ..Listening::default() };
        let address = |port| Address::http(Socket::Tcp("127.0.0.1".into(), port));
        let first = bind_all(&[address(0)], &how, None).unwrap();
        let port = first[0].address.rsplit(':').next().unwrap().parse().unwrap();
        let second = bind_all(&[address(port)], &how, None).unwrap();
        assert_eq!(first[0].address, second[0].address);
        let alone = Listening { reuse_port: false, ..how };
        assert!(bind_all(&[address(port)], &alone, None).is_err());
    }

    #[test]
    fn ipv6_is_written_with_brackets() {
        let listeners = bind("tcp://[::1]:0").unwrap();
        assert!(listeners[0].address.starts_with("tcp://[::1]:"), "{}", listeners[0].address);
    }

    #[test]
    fn socket_files_come_and_go() {
        let directory = std::env::temp_dir().join(format!("oribi-listen-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let path = directory.join("a.sock");
        let address = format!("unix://{}", path.display());

        let live = bind(&address).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o620);
        assert!(bind(&address).err().unwrap().contains("a server is listening there"));
        drop(live);
        assert!(!path.exists());

        drop(UnixListener::bind(&path).unwrap());
        assert!(path.exists(), "a stale file is what this step needs");
        let replaced = bind(&address).unwrap();

        // A newer server's file is not ours to remove.
        fs::remove_file(&path).unwrap();
        let newer = UnixListener::bind(&path).unwrap();
        drop(replaced);
        assert!(path.exists());
        drop(newer);

        fs::remove_file(&path).unwrap();
        fs::write(&path, "precious").unwrap();
        assert!(bind(&address).err().unwrap().contains("not a socket"));
        assert_eq!(fs::read(&path).unwrap(), b"precious");
        fs::remove_dir_all(&directory).unwrap();
    }
}
