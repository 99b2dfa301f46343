//! What goes out on a gateway's connection: small things gathered, large ones as they are.

use crate::io::Socket;
use crate::peer::Peer;
use bytes::{Buf, Bytes};
use door::fastcgi;
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::AsyncWrite;

/// Parts that are shorter are copied, so that a reply is one write.
const COPIED: usize = 16 * 1024;
/// So many bytes may wait to be written before replies wait too.
const ENOUGH: usize = 128 * 1024;
/// A usual head and a short body need no more.
const ROOM: usize = 512;
/// Parts of one gathering write.
const GATHERED: usize = 16;

/// Bytes on their way out.
#[derive(Default)]
pub struct Out {
    /// Before `tail`.
    queue: VecDeque<Bytes>,
    tail: Vec<u8>,
    /// Bytes of `tail` that have been written.
    written: usize,
    /// Bytes in `queue`.
    queued: usize,
}

impl Out {
    /// Bytes that wait to be written.
    pub fn len(&self) -> usize {
        self.queued + self.tail.len() - self.written
    }

    /// Replies should wait until some of it is written.
    pub fn is_full(&self) -> bool {
        self.len() >= ENOUGH
    }

    /// Where small things are written.
    pub fn small(&mut self) -> &mut Vec<u8> {
        if self.tail.capacity() == 0 {
            self.tail.reserve(ROOM);
        }
        &mut self.tail
    }

    /// Appends a part, copied if that is cheaper.
    pub fn part(&mut self, part: Bytes) {
        if part.len() < COPIED {
            self.tail.extend_from_slice(&part);
        } else {
            let tail = Bytes::from(std::mem::take(&mut self.tail));
            for part in [tail.slice(std::mem::take(&mut self.written)..), part] {
                self.queued += part.len();
                self.queue.push_back(part);
            }
        }
    }

    /// Appends a part of a FastCGI stream in as many records as it takes.
    pub fn stream(&mut self, kind: u8, id: u16, mut part: Bytes) {
        while !part.is_empty() {
            let piece = part.split_to(part.len().min(fastcgi::CONTENT_MAX));
            fastcgi::put_header(&mut self.tail, kind, id, piece.len() as u16, 0);
            self.part(piece);
        }
    }

    /// Begins a record of a FastCGI stream whose length is not known yet.
    pub fn begin_record(&mut self, kind: u8, id: u16) -> usize {
        fastcgi::put_header(self.small(), kind, id, 0, 0);
        self.tail.len()
    }

    /// Ends the record of which `begin_record` has said where it began. One that is too long for a
    /// record becomes several.
    pub fn end_record(&mut self, kind: u8, id: u16, began: usize) {
        let length = self.tail.len() - began;
        if length > fastcgi::CONTENT_MAX {
            let content = Bytes::from(self.tail.split_off(began));
            self.tail.truncate(began - fastcgi::HEADER);
            return self.stream(kind, id, content);
        }
        // Bytes 4 and 5 of the header (section 3.3).
        let at = began - fastcgi::HEADER + 4;
        self.tail[at..at + 2].copy_from_slice(&(length as u16).to_be_bytes());
    }

    /// Writes what is there. Ready when nothing is left.
    pub fn poll_flush(
        &mut self,
        socket: &mut Socket,
        peer: &Peer,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        while self.len() > 0 {
            let offered = self.len();
            let written = self.poll_write(socket, context);
            match &written {
                Poll::Ready(Ok(taken)) => peer.link.wrote(*taken, offered),
                Poll::Ready(Err(_)) => {}
                Poll::Pending => peer.link.is_stuck(socket.unsent()),
            }
            match ready!(written)? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                taken => self.advance(taken),
            }
        }
        Poll::Ready(Ok(()))
    }

    fn poll_write(
        &mut self,
        socket: &mut Socket,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        if self.queue.is_empty() {
            return Pin::new(socket).poll_write(context, &self.tail[self.written..]);
        }
        let mut parts = [IoSlice::new(&[]); GATHERED];
        let all = self.queue.iter().map(|part| &part[..]).chain([&self.tail[self.written..]]);
        let mut count = 0;
        for (part, place) in all.filter(|part| !part.is_empty()).zip(&mut parts) {
            *place = IoSlice::new(part);
            count += 1;
        }
        Pin::new(socket).poll_write_vectored(context, &parts[..count])
    }

    fn advance(&mut self, mut taken: usize) {
        while let Some(first) = self.queue.front_mut() {
            let part = taken.min(first.len());
            first.advance(part);
            self.queued -= part;
            taken -= part;
            if !first.is_empty() {
                return;
            }
            self.queue.pop_front();
        }
        self.written += taken;
        if self.written == self.tail.len() {
            self.tail.clear();
            self.written = 0;
        }
    }
}
