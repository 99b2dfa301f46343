//! One packet in, one packet out, with the fds that ride along.

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use wire::control::PACKET_BYTES;

/// One end of a control socket.
pub struct Channel(OwnedFd);

/// What arrived.
pub enum Arrival {
    /// A packet and its fds.
    Packet(Vec<u8>, Vec<OwnedFd>),
    /// Nothing more for now.
    Nothing,
    /// The other end is gone.
    Closed,
}

impl Channel {
    /// Both ends, close-on-exec.
    pub fn pair() -> io::Result<(Channel, OwnedFd)> {
        let kind = SocketType::SEQPACKET;
        let (ours, theirs) = socketpair(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None)?;
        Ok((Channel(ours), theirs))
    }

    /// An end somebody else made.
    pub fn new(end: OwnedFd) -> Channel {
        Channel(end)
    }

    /// The socket, to poll it.
    pub fn fd(&self) -> BorrowedFd<'_> {
        use std::os::fd::AsFd;
        self.0.as_fd()
    }

    /// Sends without ever waiting: a full buffer means that the other side is stuck.
    pub fn send(&self, packet: &str, fds: &[BorrowedFd]) -> io::Result<()> {
        let mut space = vec![MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(140))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(fds)) {
            return Err(io::Error::other("too many fds for one message"));
        }
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        sendmsg(&self.0, &[IoSlice::new(packet.as_bytes())], &mut control, flags)?;
        Ok(())
    }

    /// Takes the next packet if there is one.
    pub fn receive(&self) -> io::Result<Arrival> {
        let mut packet = vec![0; PACKET_BYTES];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
        let slices = &mut [IoSliceMut::new(&mut packet)];
        let received = match recvmsg(&self.0, slices, &mut control, flags) {
            Ok(received) => received,
            Err(Errno::AGAIN | Errno::INTR) => return Ok(Arrival::Nothing),
            Err(Errno::CONNRESET) => return Ok(Arrival::Closed),
            Err(error) => return Err(error.into()),
        };
        if received.bytes == 0 {
            return Ok(Arrival::Closed);
        }
        let fds = control.drain().flat_map(|message| match message {
            RecvAncillaryMessage::ScmRights(fds) => fds.collect(),
            _ => Vec::new(),
        });
        let fds = fds.collect();
        packet.truncate(received.bytes);
        Ok(Arrival::Packet(packet, fds))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_keep_their_bounds_and_their_fds() {
        let (ours, theirs) = Channel::pair().unwrap();
        let theirs = Channel::new(theirs);
        ours.send("one", &[ours.fd(), theirs.fd()]).unwrap();
        ours.send("two", &[]).unwrap();
        let Arrival::Packet(bytes, copies) = theirs.receive().unwrap() else { panic!("no packet") };
        assert_eq!((bytes.as_slice(), copies.len()), (b"one".as_slice(), 2));
        let Arrival::Packet(bytes, fds) = theirs.receive().unwrap() else { panic!("no packet") };
        assert_eq!((bytes.as_slice(), fds.len()), (b"two".as_slice(), 0));
        assert!(matches!(theirs.receive().unwrap(), Arrival::Nothing));
        drop(ours);
        drop(copies);
        assert!(matches!(theirs.receive().unwrap(), Arrival::Closed));
    }
}
