//! Memory that replies pass through, used again and again.

use bytes::Bytes;
use std::cell::RefCell;

/// Up to so many bytes are copied once more; more than that gets memory of its own.
pub const SMALL: u32 = 4096;
/// From so many bytes on that memory is a kept one: a smaller part would hold much more than it is
/// long for as long as its client takes.
const LARGE: usize = 60 * 1024;
/// Bytes of a kept buffer.
const KEPT: usize = 128 * 1024;
/// Buffers that a thread keeps: a few are filled while one is being sent.
const MOST: usize = 16;

thread_local! {
    static BRIEF: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static FREE: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// Calls `work` with an empty buffer that nothing of it outlives.
pub fn briefly<T>(work: impl FnOnce(&mut Vec<u8>) -> T) -> T {
    BRIEF.with_borrow_mut(|buffer| {
        buffer.clear();
        work(buffer)
    })
}

/// What `write` appends to an empty buffer, `length` bytes.
pub fn fill(length: usize, write: impl FnOnce(&mut Vec<u8>)) -> Bytes {
    if !(LARGE..=KEPT).contains(&length) {
        let mut buffer = Vec::with_capacity(length);
        write(&mut buffer);
        return buffer.into();
    }
    let kept = FREE.with_borrow_mut(Vec::pop);
    let mut buffer = kept.unwrap_or_else(|| Vec::with_capacity(KEPT));
    buffer.clear();
    write(&mut buffer);
    Bytes::from_owner(Kept(buffer))
}

/// Goes back to its thread's free ones.
struct Kept(Vec<u8>);

impl AsRef<[u8]> for Kept {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let buffer = std::mem::take(&mut self.0);
        // Gone with its thread: then so are the others.
        let _ = FREE.try_with(|free| {
            let mut free = free.borrow_mut();
            if free.len() < MOST {
                free.push(buffer);
            }
        });
    }
}
