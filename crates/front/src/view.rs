//! A long reply that its worker has finished, sent straight out of its window: not copied by the
//! front, which gives the slot back when hyper has sent it.

use crate::admit::Ticket;
use crate::stats;
use crate::stream::Stream;
use crate::table::{self, Table};
use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use wire::Segment;
use wire::frame::{Event, Malformed};

/// A shorter reply is not worth it.
pub const LEAST: u32 = 32 * 1024;
/// So many bytes may wait in windows for their clients; the replies beyond that are copied.
const MOST: usize = 64 << 20;

/// Bytes that wait so, of the whole process.
static VIEWED: AtomicUsize = AtomicUsize::new(0);

/// Whether one more reply of this length may stay in its window: few enough do.
pub fn allowed(table: &Table, length: u32) -> bool {
    VIEWED.load(Relaxed) + length as usize <= MOST && table.has_plenty()
}

struct View {
    segment: Arc<Segment>,
    ticket: Ticket,
    from: usize,
    length: usize,
}

impl AsRef<[u8]> for View {
    fn as_ref(&self) -> &[u8] {
        self.segment.reply(self.ticket.slot, self.from, self.length)
    }
}

impl Drop for View {
    fn drop(&mut self) {
        VIEWED.fetch_sub(self.length, Relaxed);
    }
}

impl Stream {
    /// The rest of a finished reply that begins at the start of its window and whose head was read:
    /// from `read` up to `written`. What it says is taken from a copy, as ever; the body's bytes
    /// are looked at by nobody but the kernel.
    pub(crate) fn view_rest(
        &mut self,
        ticket: Ticket,
        read: usize,
        written: usize,
    ) -> Result<(), Malformed> {
        // The part of the body that was copied with the head is viewed with the rest of it.
        let joins = self.ready.len() == 1 && self.reaches_end;
        let copied = if joins { self.ready.pop_back() } else { None };
        let copied = copied.map_or(0, |part| part.len());
        let (from, length) = (read - copied, written - read + copied);
        VIEWED.fetch_add(length, Relaxed);
        let segment = table::with(ticket.mount, |table| table.segment.clone());
        let all = Bytes::from_owner(View { segment, ticket, from, length });
        let mut input = &all[copied..];
        let begin = input.as_ptr();
        while let Some(event) = self.decoder.next(&mut input)? {
            match event {
                _ if self.ended => return Err(Malformed),
                Event::Body(part) => {
                    self.length += part.len() as u64;
                    stats::sends(self.mount, part.len() as u64);
                    let part = if copied > 0 && part.as_ptr() == begin {
                        all.slice(..copied + part.len())
                    } else {
                        if copied > 0 && self.ready.is_empty() {
                            self.ready.push_back(all.slice(..copied));
                        }
                        all.slice_ref(part)
                    };
                    self.ready.push_back(part);
                }
                Event::Errors(part) => self.errors.iter().for_each(|outlet| outlet.push(part)),
                Event::End => self.ended = true,
                _ => return Err(Malformed),
            }
        }
        if copied > 0 && self.ready.is_empty() {
            self.ready.push_back(all.slice(..copied));
        }
        self.cut |= !self.ended;
        Ok(())
    }
}
