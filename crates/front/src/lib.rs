//! The front: client connections in, slots filled, replies relayed.
//!
//! Read in the order of a request: `accept`, `connection` (a client's socket, `io`, for as long as
//! it lasts; `link` is how far it has come, `sweep` what is due on it), `http` (bytes to a request
//! head), `body` (all of it), `admit` (the head into a slot, the slot into the queue), `shed` (what
//! waits too long there), `relay` and `stream` (the reply back to the client), `file` (a reply that
//! is one), `errors` (what its app wrote to `rack.errors`), `aside` (what goes out beside it), `hijack` (connections that the app takes), `pump` (what clients that lag have not taken), `proxy` (mounts that other servers run), `table` (whose slot is whose, freeing),
//! `drain`. `mounts` are what requests go to, and `here` is what each thread has of them.

#![forbid(unsafe_code)]

mod accept;
mod access_log;
mod admin;
mod admit;
mod aside;
mod assets;
mod body;
mod buffers;
mod connection;
mod control;
mod drain;
mod errors;
mod exchange;
mod file;
mod gateway;
mod here;
mod hijack;
mod http;
mod introduce;
mod io;
mod lend;
mod limits;
mod link;
mod mounts;
mod options;
mod pace;
mod peer;
mod proxy;
mod pump;
mod record;
mod refuse;
mod relay;
mod rules;
mod shed;
mod spool;
mod stats;
mod stream;
mod sweep;
mod table;
mod thread;
mod until_close;
mod view;

use std::os::fd::OwnedFd;
use std::process::ExitCode;

pub use assets::Assets;
pub use mounts::{Mount, Serves};
pub use options::{MountOptions, Options};
pub use wire::control::MountId;

/// A socket to accept on.
pub struct Listener {
    /// The bound, listening socket.
    pub fd: OwnedFd,
    /// As people write it: `tcp://127.0.0.1:9292`, `unix:///run/app.sock`.
    pub address: String,
    /// Another server accepts on it too, when this one no longer does.
    pub shared: bool,
}

/// All a front needs, handed over by the supervisor.
pub struct Setup {
    /// The supervisor's pidfd: the front ends when it does.
    pub supervisor: OwnedFd,
    /// The counters' memfd.
    pub counters: OwnedFd,
    /// Control socket (SOCK_SEQPACKET) to the supervisor.
    pub control: OwnedFd,
    /// One eventfd for each front thread; as many threads as eventfds.
    pub bells: Vec<OwnedFd>,
    /// Where clients come in.
    pub listeners: Vec<Listener>,
    /// Where to say how things are.
    pub admin: Vec<Listener>,
    /// The settings that are the server's; a mount brings its own.
    pub options: Options,
    /// Files in memory, which go before every mount.
    pub assets: Assets,
}

/// Runs the front until it has drained, or its supervisor is gone.
pub fn run(mut setup: Setup) -> ExitCode {
    access_log::open(&setup.options);
    assets::install(std::mem::take(&mut setup.assets));
    let ended = thread::run(setup);
    access_log::close();
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("oribi: front: {error}");
            ExitCode::FAILURE
        }
    }
}
