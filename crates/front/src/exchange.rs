//! File descriptors that workers pass, kept until the frame that needs them is read.

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use std::collections::HashMap;
use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use wire::exchange::{Kind, PACKET, Passed};

/// A front thread's end. Workers send first and say so in the slot afterwards, so whoever reads in
/// the slot that an fd was passed finds it here.
pub struct Exchange {
    socket: OwnedFd,
    arrived: HashMap<u32, (Passed, OwnedFd)>,
}

impl From<OwnedFd> for Exchange {
    fn from(socket: OwnedFd) -> Exchange {
        Exchange::new(socket)
    }
}

impl Exchange {
    /// Takes over the socket. What an earlier front has left in it is closed.
    pub fn new(socket: OwnedFd) -> Exchange {
        let mut exchange = Exchange { socket, arrived: HashMap::new() };
        exchange.drain();
        exchange.arrived.clear();
        exchange
    }

    /// What was passed for the request at this place, if it is of this kind.
    pub fn fetch(&mut self, slot: u32, position: u64, kind: Kind) -> Option<OwnedFd> {
        self.drain();
        let (passed, fd) = self.arrived.remove(&slot)?;
        (passed == Passed { kind, slot, position }).then_some(fd)
    }

    /// The slot is free: what nobody has fetched is closed.
    pub fn forget(&mut self, slot: u32) {
        if !self.arrived.is_empty() {
            self.arrived.remove(&slot);
        }
    }

    fn drain(&mut self) {
        loop {
            let mut packet = [0; PACKET];
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut control = RecvAncillaryBuffer::new(&mut space);
            let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
            let mut iov = [IoSliceMut::new(&mut packet)];
            let Ok(received) = recvmsg(&self.socket, &mut iov, &mut control, flags) else { return };
            if received.bytes == 0 {
                return;
            }
            let fds = control.drain().filter_map(|message| match message {
                RecvAncillaryMessage::ScmRights(fds) => Some(fds),
                _ => None,
            });
            let fd = fds.flatten().next();
            // A later packet for a slot replaces an earlier one, which is then nobody's.
            if let (Some(passed), Some(fd)) = (Passed::parse(&packet[..received.bytes]), fd) {
                self.arrived.insert(passed.slot, (passed, fd));
            }
        }
    }
}
