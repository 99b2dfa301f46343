//! The front: client connections in, slots filled, replies relayed.

use std::os::fd::OwnedFd;
use std::process::ExitCode;

/// A socket to accept on.
pub struct Listener {
    /// The bound, listening socket.
    pub fd: OwnedFd,
    /// As people write it: `tcp://127.0.0.1:9292`, `unix:///run/app.sock`.
    pub address: String,
}

/// All a front needs, handed over by the supervisor.
pub struct Setup {
    /// The segment's memfd.
    pub segment: OwnedFd,
    /// The supervisor's pidfd: the front ends when it does.
    pub supervisor: OwnedFd,
    /// Control socket (SOCK_SEQPACKET) to the supervisor.
    pub control: OwnedFd,
    /// One eventfd for each front thread; as many threads as eventfds.
    pub bells: Vec<OwnedFd>,
    /// Where clients come in.
    pub listeners: Vec<Listener>,
}

/// Runs the front until it has drained, or its supervisor is gone.
pub fn run(_setup: Setup) -> ExitCode {
    ExitCode::FAILURE
}
