//! A mold's end of the socket to its supervisor: one packet is one line, fds ride along.

use rustix::io::{Errno, retry_on_intr};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use wire::control::{FromMold, PACKET_BYTES, ToMold};

/// The socket.
pub struct Channel(OwnedFd);

impl Channel {
    /// The end that was inherited.
    pub fn new(socket: OwnedFd) -> Channel {
        Channel(socket)
    }

    /// To poll it.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    /// Says something. Err: nobody is there any more.
    pub fn say(&self, message: &FromMold, fd: Option<BorrowedFd>) -> Result<(), String> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let fds: Vec<BorrowedFd> = fd.into_iter().collect();
        if !fds.is_empty() {
            control.push(SendAncillaryMessage::ScmRights(&fds));
        }
        let line = message.to_string();
        let slices = [IoSlice::new(line.as_bytes())];
        retry_on_intr(|| sendmsg(&self.0, &slices, &mut control, SendFlags::NOSIGNAL))
            .map(|_| ())
            .map_err(|error| format!("the supervisor is gone: {error}"))
    }

    /// Waits for a message. Err: nobody is there any more, or it is of another version.
    pub fn hear(&self) -> Result<(ToMold, Vec<OwnedFd>), String> {
        let mut packet = vec![0; PACKET_BYTES];
        let mut space = vec![MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(160))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let received = loop {
            let slices = &mut [IoSliceMut::new(&mut packet)];
            match recvmsg(&self.0, slices, &mut control, RecvFlags::CMSG_CLOEXEC) {
                Err(Errno::INTR) => {}
                other => {
                    break other.map_err(|error| format!("the supervisor is gone: {error}"))?;
                }
            }
        };
        if received.bytes == 0 {
            return Err("the supervisor is gone".into());
        }
        let fds = control.drain().flat_map(|message| match message {
            RecvAncillaryMessage::ScmRights(fds) => fds.collect(),
            _ => Vec::new(),
        });
        let fds = fds.collect();
        let message =
            ToMold::parse(&packet[..received.bytes]).map_err(|error| error.to_string())?;
        Ok((message, fds))
    }
}
