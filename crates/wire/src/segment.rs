//! The mapping: one sealed memfd that front, supervisor, mold and workers share.
//!
//! This is the only file that turns addresses into references. Byte areas are reached through the
//! copying methods below; which process may touch which area when is decided by the slot's state.

use crate::layout::*;
use crate::memory;
use rustix::fs::{FallocateFlags, fallocate};
use rustix::mm::munmap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::Ordering::*;

/// A mapped segment, until it is dropped. Workers never let go of theirs.
pub struct Segment {
    base: NonNull<u8>,
    fd: OwnedFd,
}

// SAFETY: the mapping is never moved, and unmapped only when nobody borrows it; what it holds is
// atomics (`Board`) or bytes whose present owner the slot states name.
unsafe impl Send for Segment {}
// SAFETY: as above.
unsafe impl Sync for Segment {}

impl Segment {
    /// Makes an empty segment. Fails as memfd_create, ftruncate and mmap do.
    pub fn create() -> io::Result<Segment> {
        let segment = Segment::map(memory::create("oribi", SEGMENT_BYTES)?)?;
        let header = &segment.board().header;
        header.version.store(VERSION, Relaxed);
        header.magic.store(MAGIC, Release);
        Ok(segment)
    }

    /// Maps a segment another process made; refuses anything else with a line that says why.
    pub fn open(fd: OwnedFd) -> io::Result<Segment> {
        let segment = Segment::map(fd)?;
        let header = &segment.board().header;
        let found = (header.magic.load(Acquire), header.version.load(Relaxed));
        memory::check_layout("segment", found, (MAGIC, VERSION))?;
        Ok(segment)
    }

    fn map(fd: OwnedFd) -> io::Result<Segment> {
        let base = memory::map(&fd, SEGMENT_BYTES, "a segment")?;
        Ok(Segment { base, fd })
    }

    /// Keeps the segment for the rest of the process.
    pub fn forever(self) -> &'static Segment {
        Box::leak(Box::new(self))
    }

    /// The shared atomics.
    pub fn board(&self) -> &Board {
        // SAFETY: the mapping is page-aligned, longer than a board, mapped for as long as it
        // is borrowed, and a board is nothing but atomics, for which every bit pattern is valid.
        unsafe { self.base.cast::<Board>().as_ref() }
    }

    fn check(offset: usize, length: usize, area: usize) {
        assert!(offset <= area && length <= area - offset, "outside of the segment's area");
    }

    fn at(&self, offset: usize, length: usize) -> NonNull<u8> {
        Segment::check(offset, length, SEGMENT_BYTES);
        // SAFETY: the check above keeps the sum inside the mapping.
        unsafe { self.base.add(offset) }
    }

    fn copy_in(&self, offset: usize, bytes: &[u8]) {
        let to = self.at(offset, bytes.len());
        // SAFETY: `at` gives `bytes.len()` mapped bytes; `bytes` is this process's own memory.
        unsafe { to.copy_from_nonoverlapping(NonNull::from(bytes).cast(), bytes.len()) }
    }

    fn append_out(&self, offset: usize, length: usize, into: &mut Vec<u8>) {
        let from = self.at(offset, length);
        into.reserve(length);
        let (end, to) = (into.len(), into.spare_capacity_mut().as_mut_ptr());
        // SAFETY: as in `copy_in`, and `reserve` has made room behind the end for so many bytes,
        // which the copy initialises. Another process may write meanwhile; the copy is then any
        // bytes, which callers treat as hostile input anyway.
        unsafe {
            from.as_ptr().copy_to_nonoverlapping(to.cast(), length);
            into.set_len(end + length);
        }
    }

    fn view(&self, offset: usize, length: usize) -> &[u8] {
        let from = self.at(offset, length);
        // SAFETY: mapped for the process's life. Callers view only the request area of a slot they
        // have claimed, which the front leaves alone until the claim is completed, or the reply of
        // one that is DONE, whose worker is through; the bytes of one that is not so honest go to
        // the kernel unread.
        unsafe { std::slice::from_raw_parts(from.as_ptr(), length) }
    }

    fn slot_offset(slot: u32) -> usize {
        Segment::check(slot as usize, 1, SLOTS);
        DATA_OFFSET + slot as usize * SLOT_STRIDE
    }

    fn chunk_offset(chunk: usize) -> usize {
        Segment::check(chunk, 1, CHUNKS);
        CHUNK_OFFSET + chunk * CHUNK_BYTES
    }

    /// Front: writes into the slot's request area.
    pub fn write_request(&self, slot: u32, offset: usize, bytes: &[u8]) {
        Segment::check(offset, bytes.len(), REQUEST_BYTES);
        self.copy_in(Segment::slot_offset(slot) + offset, bytes);
    }

    /// Front: writes a chunk from its beginning.
    pub fn write_chunk(&self, chunk: usize, bytes: &[u8]) {
        Segment::check(0, bytes.len(), CHUNK_BYTES);
        self.copy_in(Segment::chunk_offset(chunk), bytes);
    }

    /// Worker: the request record of a claimed slot.
    pub fn record(&self, slot: u32) -> &[u8] {
        let head = &self.board().slots[slot as usize];
        let length = head.head_len.load(Relaxed) as usize;
        match head.head_chunk.load(Relaxed) as usize {
            0 => self.view(Segment::slot_offset(slot), length.min(REQUEST_BYTES)),
            chunk => self.view(Segment::chunk_offset(chunk - 1), length.min(CHUNK_BYTES)),
        }
    }

    /// Supervisor: a copy of the request record of a slot that somebody else has. Any bytes at all
    /// if the slot has moved on meanwhile: the caller compares its word before and after.
    pub fn copy_record(&self, slot: u32) -> Vec<u8> {
        let head = &self.board().slots[slot as usize];
        let length = head.head_len.load(Relaxed) as usize;
        let mut record = Vec::new();
        match head.head_chunk.load(Relaxed) as usize {
            0 => {
                let from = Segment::slot_offset(slot);
                self.append_out(from, length.min(REQUEST_BYTES), &mut record);
            }
            chunk @ 1..=CHUNKS => {
                let from = Segment::chunk_offset(chunk - 1);
                self.append_out(from, length.min(CHUNK_BYTES), &mut record);
            }
            // Nobody writes this but a worker that is up to something.
            _ => {}
        }
        record
    }

    /// Worker: the parts of a claimed slot's request body, in order.
    pub fn body_parts(&self, slot: u32) -> impl Iterator<Item = &[u8]> {
        let head = &self.board().slots[slot as usize];
        let length = head.body_len.load(Relaxed) as usize;
        let chunks = head.body_chunks.load(Relaxed);
        let inline = (chunks == 0).then(|| {
            let record =
                if head.head_chunk.load(Relaxed) == 0 { head.head_len.load(Relaxed) } else { 0 };
            let from = (record as usize).min(REQUEST_BYTES);
            self.view(Segment::slot_offset(slot) + from, length.min(REQUEST_BYTES - from))
        });
        let mut left = length;
        let parts = (0..BODY_CHUNKS).map_while(move |i| {
            let chunk = (chunks >> (16 * i) & 0xffff) as usize;
            let part = left.min(CHUNK_BYTES);
            left -= part;
            (chunk != 0 && part > 0).then(|| self.view(Segment::chunk_offset(chunk - 1), part))
        });
        inline.into_iter().chain(parts)
    }

    /// Worker: writes into the reply window at stream position `at`, wrapping. The caller has
    /// checked that there is room.
    pub fn write_reply(&self, slot: u32, at: u32, bytes: &[u8]) {
        Segment::check(0, bytes.len(), REPLY_BYTES);
        let window = Segment::slot_offset(slot) + REQUEST_BYTES;
        let from = at as usize % REPLY_BYTES;
        let (first, rest) = bytes.split_at(bytes.len().min(REPLY_BYTES - from));
        self.copy_in(window + from, first);
        self.copy_in(window, rest);
    }

    /// Front: copies `length` bytes of the reply window from stream position `at`, wrapping, to the
    /// end of `into`.
    pub fn append_reply(&self, slot: u32, at: u32, length: usize, into: &mut Vec<u8>) {
        Segment::check(0, length, REPLY_BYTES);
        let window = Segment::slot_offset(slot) + REQUEST_BYTES;
        let from = at as usize % REPLY_BYTES;
        let first = length.min(REPLY_BYTES - from);
        self.append_out(window + from, first, into);
        self.append_out(window, length - first, into);
    }

    /// Front: the reply of a slot that is DONE, which may not be freed before the view is gone. Not
    /// to be believed, and not to be read twice: the worker can still write it.
    pub fn reply(&self, slot: u32, from: usize, length: usize) -> &[u8] {
        Segment::check(from, length, REPLY_BYTES);
        self.view(Segment::slot_offset(slot) + REQUEST_BYTES + from, length)
    }

    /// Front: gives the memory back that a long reply has touched, all but the first
    /// `REPLY_KEPT` bytes. The slot is free, and its thread's to fill.
    pub fn give_back(&self, slot: u32) {
        const PAGE: usize = 4096;
        let window = Segment::slot_offset(slot) + REQUEST_BYTES;
        let from = (window + REPLY_KEPT).next_multiple_of(PAGE);
        let length = (window + REPLY_BYTES - from) / PAGE * PAGE;
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        // Fails only where memory files cannot have holes: then it is kept.
        let _ = fallocate(&self.fd, flags, from as u64, length as u64);
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        // SAFETY: the mapping is this segment's own, and every reference into it borrows from here.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), SEGMENT_BYTES) };
    }
}

impl AsFd for Segment {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
