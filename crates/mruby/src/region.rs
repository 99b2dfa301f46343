//! An interpreter's memory: one mapping of a memfd, whose content can be frozen and brought back.
//!
//! mruby gets all its memory here, and so do the allocator's own records: so the region's bytes are
//! the interpreter. While it boots the mapping is shared, and what is written goes into the file.
//! `freeze` maps the same file at the same place privately: from then on writes make private copies
//! of pages, and `reset` puts the file's content back into those. Forks inherit all of it, and since
//! addresses stay what they are, so do pointers.

use crate::sys;
use rlsf::Tlsf;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};
use std::alloc::Layout;
use std::ffi::c_void;
use std::fs::File;
use std::io;
use std::num::NonZero;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::ptr::{NonNull, null_mut};

const PAGE: usize = 4096;
/// By so much a pool grows at least.
const STEP: usize = 256 * 1024;
/// What there is beyond the limit when it has been reached, so that the exception can be seen to.
const RESERVE: usize = 1024 * 1024;
/// Alignment of what mruby gets.
const ALIGN: usize = 16;
/// Of so many pages beyond the image the content is cleared; of more it is dropped.
const CLEARED: usize = 64;

type Pool = Tlsf<'static, u32, u32, 28, 32>;

/// Lies at the region's start.
#[repr(C)]
struct Records {
    /// Whose interpreter it is: first, because sys.c reads and writes it there.
    owner: *mut c_void,
    /// What boots comes from the first pool, requests' from the second, which is behind the image.
    pools: [Pool; 2],
    /// The pool that new memory comes from, and where its part of the region ends.
    current: usize,
    end: usize,
    /// That pool has a part already.
    begun: bool,
    /// Where the second pool begins: what lies before belongs to the first.
    border: usize,
    /// `end` must not exceed this.
    limit: usize,
    /// Bytes that each of the pools may have.
    allowance: usize,
    /// The last refusal: what was to be resized and to what. mruby collects and asks again.
    refused: (usize, usize),
    /// The limit was reached, and collecting did not help. From then on nothing is freed: some mruby
    /// releases free what they failed to enlarge, and still refer to it.
    exhausted: bool,
}

/// An interpreter's memory.
pub struct Region {
    base: NonNull<u8>,
    size: usize,
    file: OwnedFd,
    frozen: Option<Frozen>,
}

struct Frozen {
    /// Bytes of the image, from the start of the region.
    length: usize,
    /// The same bytes, never written.
    mirror: NonNull<u8>,
    /// Which pages are private copies. None: not to be had, so all are dropped.
    pagemap: Option<File>,
    /// The process that opened it: a fork must open its own.
    process: u32,
    words: Vec<u8>,
}

fn round_up(value: usize, to: usize) -> usize {
    value.next_multiple_of(to)
}

impl Region {
    /// Memory for an interpreter that may use `limit` bytes, and as many again once it is frozen.
    pub fn new(limit: usize) -> io::Result<Region> {
        let limit = round_up(limit.max(4 * STEP), PAGE);
        let size = round_up(size_of::<Records>(), PAGE) + 2 * (limit + RESERVE + STEP);
        let file = memfd_create("oribi-mruby", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        ftruncate(&file, size as u64)?;
        let (prot, flags) =
            (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED | MapFlags::NORESERVE);
        // SAFETY: a new mapping, at an address of the kernel's choice.
        let base = unsafe { mmap(null_mut(), size, prot, flags, &file, 0)? };
        let base = NonNull::new(base.cast::<u8>()).ok_or(io::ErrorKind::OutOfMemory)?;
        let mut region = Region { base, size, file, frozen: None };
        region.begin(limit);
        Ok(region)
    }

    fn begin(&mut self, limit: usize) {
        let start = self.base.as_ptr() as usize + round_up(size_of::<Records>(), PAGE);
        let records = Records {
            owner: null_mut(),
            pools: [Pool::new(), Pool::new()],
            current: 0,
            end: start,
            begun: false,
            border: usize::MAX,
            limit: start + limit,
            allowance: limit,
            refused: (0, 0),
            exhausted: false,
        };
        // SAFETY: the first pages of the mapping, which nothing else uses.
        unsafe { self.records().write(records) };
        // SAFETY: just written.
        unsafe { (*self.records()).grow(STEP) };
    }

    fn records(&self) -> *mut Records {
        self.base.as_ptr().cast()
    }

    /// What mruby is to be given with `allocate`.
    pub fn data(&self) -> *mut c_void {
        self.base.as_ptr().cast()
    }

    /// Whether the limit was reached.
    pub fn exhausted(&self) -> bool {
        // SAFETY: written by `begin`; no allocation is under way.
        unsafe { (*self.records()).exhausted }
    }

    /// What the region is now is what `reset` brings back. `limit` bytes are to be had from now on.
    pub fn freeze(&mut self) -> io::Result<()> {
        if self.frozen.is_some() {
            return Ok(());
        }
        // SAFETY: written by `begin`; no allocation is under way.
        let length = unsafe { (*self.records()).start_requests() } - self.base.as_ptr() as usize;
        let (prot, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        let flags = flags | MapFlags::FIXED | MapFlags::NORESERVE;
        // SAFETY: replaces this region's own mapping by one of the same content and size.
        unsafe { mmap(self.data(), self.size, prot, flags, &self.file, 0)? };
        // From here on nobody can write into the image, whatever he maps.
        fcntl_add_seals(&self.file, SealFlags::WRITE | SealFlags::SHRINK | SealFlags::GROW)?;
        let (prot, flags) = (ProtFlags::READ, MapFlags::PRIVATE | MapFlags::NORESERVE);
        // SAFETY: a new mapping, at an address of the kernel's choice.
        let mirror = unsafe { mmap(null_mut(), length, prot, flags, &self.file, 0)? };
        let mirror = NonNull::new(mirror.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        let frozen = Frozen { length, mirror, pagemap: None, process: 0, words: Vec::new() };
        self.frozen = Some(frozen);
        Ok(())
    }

    /// Bytes of the image; 0 before `freeze`.
    pub fn image(&self) -> usize {
        self.frozen.as_ref().map_or(0, |frozen| frozen.length)
    }

    /// Puts back what was frozen; how many pages had been written. Nothing may use the region's
    /// memory meanwhile, and nothing that was allocated since `freeze` is there afterwards.
    pub fn reset(&mut self) -> usize {
        // SAFETY: as in `exhausted`.
        let used = unsafe { (*self.records()).end } - self.base.as_ptr() as usize;
        let Some(frozen) = &mut self.frozen else { return 0 };
        match frozen.changed(self.base, used) {
            Some(changed) => frozen.put_back(self.base, used, &changed),
            None => drop_pages(self.base, self.size),
        }
    }

    /// The same by dropping all private copies: they are made anew when they are written.
    pub fn reset_by_dropping(&mut self) -> usize {
        if self.frozen.is_none() {
            return 0;
        }
        drop_pages(self.base, self.size)
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        if let Some(frozen) = &self.frozen {
            // SAFETY: the mirror's own mapping; nothing refers to it.
            let _ = unsafe { munmap(frozen.mirror.as_ptr().cast(), frozen.length) };
        }
        // SAFETY: the region's own mapping; its interpreter is closed.
        let _ = unsafe { munmap(self.data(), self.size) };
    }
}

/// Drops the private copies of pages, so that they read as the file does.
fn drop_pages(start: NonNull<u8>, length: usize) -> usize {
    // SAFETY: within a region, of which nothing is used meanwhile.
    let dropped = unsafe { madvise(start.as_ptr().cast(), length, Advice::LinuxDontNeed) };
    // Anything else than dropping would let a request see another's memory.
    dropped.expect("the kernel takes pages back");
    0
}

impl Frozen {
    /// The pages that are private copies, of those up to `used`; see proc_pid_pagemap(5): bit 63 says
    /// that there is a page, bit 61 that it is the file's.
    fn changed(&mut self, base: NonNull<u8>, used: usize) -> Option<Vec<usize>> {
        if self.process != std::process::id() {
            self.pagemap = File::open("/proc/self/pagemap").ok();
            self.process = std::process::id();
        }
        let pages = used.div_ceil(PAGE);
        self.words.resize(pages * 8, 0);
        let first = base.as_ptr() as usize / PAGE;
        self.pagemap.as_ref()?.read_exact_at(&mut self.words, first as u64 * 8).ok()?;
        let words = self.words.chunks_exact(8).map(|word| word.try_into().map(u64::from_ne_bytes));
        let is_copy = |word: u64| word >> 61 & 0b101 == 0b100;
        let swapped = |word: u64| word >> 62 & 1 == 1;
        let copies = words
            .enumerate()
            .filter(|(_, word)| word.is_ok_and(|word| is_copy(word) || swapped(word)));
        Some(copies.map(|(page, _)| page).collect())
    }

    fn put_back(&self, base: NonNull<u8>, used: usize, changed: &[usize]) -> usize {
        let image = self.length / PAGE;
        let beyond = changed.iter().filter(|page| **page >= image).count();
        for page in changed {
            let offset = page * PAGE;
            // SAFETY: a page of the region, of which nothing is used meanwhile.
            let to = unsafe { base.as_ptr().add(offset) };
            if *page < image {
                // SAFETY: the same page of the mirror, which is as long as the image.
                unsafe { to.copy_from_nonoverlapping(self.mirror.as_ptr().add(offset), PAGE) };
            } else if beyond <= CLEARED {
                // SAFETY: as above; beyond the image the file is empty.
                unsafe { to.write_bytes(0, PAGE) };
            }
        }
        if beyond > CLEARED {
            // SAFETY: still within the region.
            let start = unsafe { base.add(self.length) };
            drop_pages(start, used - self.length);
        }
        changed.len()
    }
}

impl Records {
    /// Gives the current pool more of the region. False: there is no more.
    fn grow(&mut self, bytes: usize) -> bool {
        // The allocator looks among blocks that are sure to suffice: up to a 32nd larger.
        let bytes = round_up(bytes + bytes / 16 + 2 * PAGE, STEP);
        if self.end.checked_add(bytes).is_none_or(|end| end > self.limit) {
            return false;
        }
        self.extend(bytes)
    }

    fn extend(&mut self, bytes: usize) -> bool {
        let block = std::ptr::slice_from_raw_parts_mut(self.end as *mut u8, bytes);
        let Some(block) = NonNull::new(block) else { return false };
        let pool = &mut self.pools[self.current];
        let taken = if std::mem::replace(&mut self.begun, true) {
            // SAFETY: a part of the region that nothing uses yet, behind the pool's end.
            unsafe { pool.append_free_block_ptr(block) }
        } else {
            // SAFETY: a part of the region that nothing uses yet.
            unsafe { pool.insert_free_block_ptr(block) }.map_or(0, NonZero::get)
        };
        self.end += taken;
        taken > 0
    }

    /// From now on memory comes from behind what is used now, so that little of the image is written.
    fn start_requests(&mut self) -> usize {
        self.end = round_up(self.end, PAGE);
        (self.current, self.border, self.begun) = (1, self.end, false);
        self.limit = self.end + self.allowance;
        self.extend(STEP);
        self.end
    }

    fn pool_of(&mut self, pointer: usize) -> &mut Pool {
        &mut self.pools[usize::from(pointer >= self.border)]
    }

    fn allocate(&mut self, layout: Layout) -> Option<NonNull<u8>> {
        if let Some(found) = self.pools[self.current].allocate(layout) {
            return Some(found);
        }
        self.grow(layout.size()).then(|| self.pools[self.current].allocate(layout)).flatten()
    }

    fn resize(&mut self, pointer: NonNull<u8>, layout: Layout) -> Option<NonNull<u8>> {
        let address = pointer.as_ptr() as usize;
        if usize::from(address >= self.border) == self.current {
            // SAFETY: allocated from this pool with this alignment.
            let moved = unsafe { self.pools[self.current].reallocate(pointer, layout) };
            if moved.is_some() || !self.grow(layout.size()) {
                return moved;
            }
            // SAFETY: as above.
            return unsafe { self.pools[self.current].reallocate(pointer, layout) };
        }
        // From the image into the requests' part.
        let new = self.allocate(layout)?;
        // SAFETY: allocated from the first pool, so its size can be asked for.
        let old = unsafe { Pool::allocation_usable_size(pointer) };
        // SAFETY: both are as long as what is copied, and one of them is new.
        unsafe { new.copy_from_nonoverlapping(pointer, old.min(layout.size())) };
        self.free(pointer);
        Some(new)
    }

    fn free(&mut self, pointer: NonNull<u8>) {
        if !self.exhausted {
            // SAFETY: allocated from this pool with this alignment, and not freed before.
            unsafe { self.pool_of(pointer.as_ptr() as usize).deallocate(pointer, ALIGN) };
        }
    }

    /// mruby gets nothing. It then collects and asks again; the second refusal is the limit.
    fn refuse(&mut self, state: *mut c_void, pointer: usize, size: usize) {
        if self.refused == (pointer, size) && !self.exhausted {
            self.exhausted = true;
            self.limit += RESERVE;
            self.extend(RESERVE);
        }
        self.refused = (pointer, size);
        sys::collect_again(state);
    }
}

/// mruby's allocator: `size` 0 frees. `data` is `Region::data`.
pub unsafe extern "C" fn allocate(
    state: *mut c_void,
    pointer: *mut c_void,
    size: usize,
    data: *mut c_void,
) -> *mut c_void {
    // SAFETY: the records lie there, and an interpreter is used by one thread at a time.
    let records = unsafe { &mut *data.cast::<Records>() };
    let old = NonNull::new(pointer.cast::<u8>());
    if size == 0 {
        old.into_iter().for_each(|old| records.free(old));
        return null_mut();
    }
    let layout = Layout::from_size_align(size, ALIGN).ok();
    let found = layout.and_then(|layout| match old {
        None => records.allocate(layout),
        Some(old) => records.resize(old, layout),
    });
    match found {
        Some(found) => {
            records.refused = (0, 0);
            found.as_ptr().cast()
        }
        None => {
            records.refuse(state, pointer as usize, size);
            null_mut()
        }
    }
}
