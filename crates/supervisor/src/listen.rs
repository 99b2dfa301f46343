//! Binding listeners, and leaving no socket file behind.

use std::fs;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use wire::settings::Address;

/// A bound, listening socket. Dropping it closes it and removes its file.
pub struct Listener {
    fd: OwnedFd,
    /// As people write it, with the port that was really bound.
    pub address: String,
    /// Removed with it.
    _file: Option<SocketFile>,
}

/// A socket file, known by its inode: another server may have put its own in its place since.
/// Dropping it removes the file.
pub struct SocketFile {
    path: PathBuf,
    identity: (u64, u64),
}

impl SocketFile {
    /// The one that has just been bound there.
    pub fn at(path: &Path) -> io::Result<SocketFile> {
        Ok(SocketFile { path: path.into(), identity: identity(path)? })
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if identity(&self.path).is_ok_and(|identity| identity == self.identity) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let found = fs::symlink_metadata(path)?;
    Ok((found.dev(), found.ino()))
}

/// Binds all addresses, or says in one line which one failed, why, and what to do.
pub fn bind_all(addresses: &[Address], backlog: i32) -> Result<Vec<Listener>, String> {
    let mut listeners: Vec<Listener> = Vec::new();
    for address in addresses {
        let bound = match address {
            Address::Tcp(host, port) => bind_tcp(host, *port, backlog),
            Address::Unix(path) => bind_unix(Path::new(path), backlog).map(|one| vec![one]),
        };
        listeners.extend(bound.map_err(|error| explain(address, &error))?);
    }
    Ok(listeners)
}

fn explain(address: &Address, error: &io::Error) -> String {
    let remedy = match (error.kind(), address) {
        (ErrorKind::AddrInUse, Address::Tcp(..)) => {
            "port is taken: stop the server that has it, or choose another with -p PORT".into()
        }
        (ErrorKind::AddrInUse, Address::Unix(_)) => {
            "a server is listening there: stop it, or choose another path".into()
        }
        (ErrorKind::AddrNotAvailable, _) => {
            "no interface of this machine has that address: see `ip address`".into()
        }
        (ErrorKind::PermissionDenied, Address::Tcp(..)) => {
            "not allowed: choose a port of 1024 or higher, or give the binary \
             cap_net_bind_service"
                .into()
        }
        (ErrorKind::PermissionDenied, Address::Unix(_)) => {
            "not allowed: may this user write into that directory?".into()
        }
        (ErrorKind::NotFound, Address::Unix(_)) => "its directory does not exist".into(),
        _ => error.to_string(),
    };
    format!("cannot listen on {address}: {remedy}")
}

/// A name may stand for several addresses (`localhost` often does); those this machine does not
/// have are passed over as long as one remains.
fn bind_tcp(host: &str, port: u16, backlog: i32) -> io::Result<Vec<Listener>> {
    let addresses: Vec<SocketAddr> = (host, port).to_socket_addrs()?.collect();
    let mut bound: Vec<Listener> = Vec::new();
    let mut missing = io::Error::from(ErrorKind::AddrNotAvailable);
    for mut address in addresses {
        if bound.iter().any(|other| other.address == format!("tcp://{address}")) {
            continue;
        }
        // With port 0 the second address of a name gets the port the first was given.
        if let (0, Some(first)) = (port, bound.first()) {
            let given = first.address.rsplit(':').next().and_then(|port| port.parse().ok());
            address.set_port(given.unwrap_or(0));
        }
        let socket = match TcpListener::bind(address) {
            Ok(socket) => socket,
            Err(error) if error.kind() == ErrorKind::AddrNotAvailable => {
                missing = error;
                continue;
            }
            Err(error) => return Err(error),
        };
        rustix::net::listen(&socket, backlog)?;
        socket.set_nonblocking(true)?;
        let address = format!("tcp://{}", socket.local_addr()?);
        bound.push(Listener { fd: socket.into(), address, _file: None });
    }
    if bound.is_empty() { Err(missing) } else { Ok(bound) }
}

fn bind_unix(path: &Path, backlog: i32) -> io::Result<Listener> {
    remove_stale(path)?;
    let socket = UnixListener::bind(path)?;
    let file = SocketFile::at(path)?;
    let listener = Listener {
        address: format!("unix://{}", path.display()),
        fd: socket.into(),
        _file: Some(file),
    };
    rustix::net::listen(&listener.fd, backlog)?;
    rustix::io::ioctl_fionbio(&listener.fd, true)?;
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
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => fs::remove_file(path),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        // A full backlog: somebody is there, only busy.
        Err(error) if error.kind() == ErrorKind::WouldBlock => Err(ErrorKind::AddrInUse.into()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bind(address: &str) -> Result<Vec<Listener>, String> {
        bind_all(&[Address::parse(address).unwrap()], 16)
    }

    #[test]
    fn a_taken_port_is_named_with_its_remedy() {
        let first = bind("tcp://127.0.0.1:0").unwrap();
        let error = bind(&first[0].address).err().unwrap();
        assert!(error.contains(&first[0].address) && error.contains("-p PORT"), "{error}");
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
