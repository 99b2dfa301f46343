//! Listeners: those this process was started with, or else those it binds.

mod bind;
mod defer;
mod file;
mod inherited;

pub use bind::remove_stale;
pub use file::SocketFile;
pub use inherited::{VARIABLES, started_by_start_server, take};

use crate::options::Listening;
use crate::privileges::Identity;
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use wire::settings::{Address, Door, Socket};

/// A bound, listening socket. Dropping it closes it and removes its file.
pub struct Listener {
    fd: OwnedFd,
    /// As people write it, with the port that was really bound.
    pub address: String,
    /// Others have it too: what is not accepted here is accepted there.
    pub shared: bool,
    /// Removed with it.
    file: Option<SocketFile>,
}

impl Listener {
    /// Takes its file away, so that nobody can connect any more who has not yet; false while
    /// somebody is just connecting.
    pub fn may_leave(&mut self) -> bool {
        let Some(lock) = self.file.as_ref().map(SocketFile::lock) else { return true };
        if lock.is_ok() {
            self.file = None;
        }
        lock.is_ok()
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let found = fs::symlink_metadata(path)?;
    Ok((found.dev(), found.ino()))
}

/// The inherited listeners if there are any, else those of `addresses`.
pub fn open(
    inherited: Vec<Listener>,
    addresses: &[Address],
    how: &Listening,
    owner: Option<&Identity>,
) -> Result<Vec<Listener>, String> {
    let listeners = match inherited.is_empty() {
        true => bind::bind_all(addresses, how, owner)?,
        false => named_doors(inherited, addresses),
    };
    if how.defer_accept {
        for listener in listeners.iter().filter(|one| one.address.starts_with("tcp:")) {
            defer::defer_accept(listener.as_fd())
                .map_err(|error| format!("defer_accept: {}: {error}", listener.address))?;
        }
    }
    Ok(listeners)
}

/// The admin listeners, never inherited. Under start_server another server, which this one is to
/// replace, has the same: both listen for a while.
pub fn open_admin(
    addresses: &[Address],
    socket_mode: Option<u32>,
) -> Result<Vec<Listener>, String> {
    const BACKLOG: i32 = 64;
    let reuse_port = started_by_start_server();
    for address in addresses {
        if let (Socket::Unix(path), true) = (&address.socket, reuse_port) {
            let _ = fs::remove_file(path);
        }
    }
    let socket_mode = socket_mode.or(Some(0o600));
    let how = Listening { backlog: BACKLOG, reuse_port, socket_mode, ..Listening::default() };
    bind::bind_all(addresses, &how, None).map_err(|why| format!("admin: {why}"))
}

/// An inherited socket does not say what is spoken there; an address that names its door does.
fn named_doors(inherited: Vec<Listener>, addresses: &[Address]) -> Vec<Listener> {
    let named = |listener: Listener| {
        let mut others = addresses.iter().filter(|address| address.door != Door::Http);
        let bound = Address::parse(&listener.address).ok();
        let door = others.find(|address| bound.as_ref().is_some_and(|b| is_at(b, address)));
        let address = door.map_or(listener.address.clone(), ToString::to_string);
        Listener { address, ..listener }
    };
    inherited.into_iter().map(named).collect()
}

/// Any host stands for the one that a socket was bound to, as with `0.0.0.0`.
fn is_at(bound: &Address, named: &Address) -> bool {
    match (&bound.socket, &named.socket) {
        (Socket::Tcp(_, bound), Socket::Tcp(_, named)) => bound == named,
        (bound, named) => bound == named,
    }
}
