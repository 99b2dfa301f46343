//! A request's spool file to the worker that has taken the request and asks for it.

use crate::admit::Ticket;
use crate::spool::Spool;
use crate::table::{self, Table};
use rustix::fs::{SeekFrom, seek};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use wire::exchange::Kind;
use wire::sync::Ordering::*;

impl Ticket {
    /// Sends the file if a worker waits for it. The ticket keeps it: the worker may die, and the
    /// next one asks again.
    pub fn lend(&self) {
        let Some(file) = self.spool.as_ref().and_then(Spool::fd) else { return };
        if let Some(socket) = table::with(self.mount, |table| asker(table, self.slot)) {
            // Fails when the worker has died. The socket goes either way, which tells it.
            let _ = send(&socket, file);
        }
    }
}

/// A worker that waits for the body of a request nobody wants any more is not kept waiting.
pub fn turn_away(table: &Table, slot: u32) {
    drop(asker(table, slot));
}

/// The socket of the worker that asks for the slot's body.
fn asker(table: &Table, slot: u32) -> Option<OwnedFd> {
    let head = &table.board().slots[slot as usize];
    if head.asks.load(Relaxed) == 0 {
        return None;
    }
    // First this, then the fetch: who passes a socket behind it asks once more.
    head.asks.swap(0, AcqRel);
    table.exchange.borrow_mut().fetch(slot, head.word().position, Kind::Body)
}

fn send(socket: &OwnedFd, file: BorrowedFd) -> io::Result<()> {
    // The place is shared with whoever had the file before; the front reads and writes without.
    seek(file, SeekFrom::Start(0))?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let fds = [file];
    control.push(SendAncillaryMessage::ScmRights(&fds));
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    rustix::io::retry_on_intr(|| sendmsg(socket, &[IoSlice::new(b"f")], &mut control, flags))?;
    Ok(())
}
