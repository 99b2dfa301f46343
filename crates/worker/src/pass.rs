//! Passing an fd to the front thread that waits for the reply.

use crate::seat::Seat;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;
use wire::exchange::{Kind, Passed};
use wire::sync::Ordering::*;

impl Seat {
    /// Passes a copy of `fd`, to be called before the frame that needs it is written. For
    /// `Kind::Body` the front is told at once. Fails as sendmsg does.
    pub fn pass(&self, kind: Kind, fd: BorrowedFd) -> io::Result<()> {
        let Some((claim, slot)) = self.held() else { return Ok(()) };
        let front = slot.front.load(Relaxed) as usize;
        let exchange = self.exchanges.get(front).ok_or(io::ErrorKind::NotConnected)?;
        let packet = Passed { kind, slot: claim.slot, position: claim.position }.pack();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let fds = [fd];
        control.push(SendAncillaryMessage::ScmRights(&fds));
        rustix::io::retry_on_intr(|| {
            sendmsg(exchange, &[IoSlice::new(&packet)], &mut control, SendFlags::NOSIGNAL)
        })?;
        if kind == Kind::Body {
            slot.asks.store(1, Release);
            self.board().fronts[front].note(claim.slot);
            self.ring_front(front);
        }
        Ok(())
    }

    /// True if the request's body is a file that the front has.
    pub fn body_spooled(&self) -> bool {
        self.held().is_some_and(|(_, slot)| slot.spooled.load(Relaxed) != 0)
    }
}
