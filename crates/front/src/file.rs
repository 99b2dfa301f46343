//! A part of a file as a reply's body. The worker has opened it; the front only reads.

use crate::buffers;
use crate::refuse::log;
use bytes::Bytes;
use rustix::io::{ReadWriteFlags, preadv2};
use std::fs::File;
use std::io::{self, IoSliceMut};
use std::os::unix::fs::FileExt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::task::{JoinHandle, spawn_blocking};

/// Most bytes read at a time.
const PIECE: u64 = 128 * 1024;

/// What is still to be read of a file.
pub struct FilePart {
    file: Arc<File>,
    at: u64,
    end: u64,
    reading: Option<JoinHandle<io::Result<Bytes>>>,
}

impl FilePart {
    /// `length` bytes from `offset`, whose sum does not overflow.
    pub fn new(file: File, offset: u64, length: u64) -> FilePart {
        FilePart { file: Arc::new(file), at: offset, end: offset + length, reading: None }
    }

    /// Bytes not yet read.
    pub fn left(&self) -> u64 {
        self.end - self.at
    }

    /// The next bytes, None at the end. What is not in the page cache is read on another thread.
    /// Fails when the file is shorter than it was said to be; the log says so.
    pub fn poll_part(&mut self, context: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        if self.left() == 0 {
            return Poll::Ready(None);
        }
        let read = match &mut self.reading {
            Some(reading) => {
                let done = ready!(Pin::new(reading).poll(context));
                self.reading = None;
                done.unwrap_or_else(|error| Err(io::Error::other(error)))
            }
            None => match self.read_cached() {
                Some(bytes) => Ok(bytes),
                None => {
                    let (file, at, length) = (self.file.clone(), self.at, self.left().min(PIECE));
                    self.reading = Some(spawn_blocking(move || read(&file, at, length as usize)));
                    return self.poll_part(context);
                }
            },
        };
        let read = read.and_then(|bytes| match bytes.len() {
            0 => Err(io::Error::other(format!("it ends {} bytes too early", self.left()))),
            _ => Ok(bytes),
        });
        match &read {
            Ok(bytes) => self.at += bytes.len() as u64,
            Err(error) => log(&format!("a file the app replies with could not be sent: {error}")),
        }
        Poll::Ready(Some(read))
    }

    /// What can be had without waiting for the disk.
    fn read_cached(&self) -> Option<Bytes> {
        let length = self.left().min(PIECE) as usize;
        let mut read = 0;
        let bytes = buffers::fill(length, |buffer| {
            buffer.resize(length, 0);
            let iov = &mut [IoSliceMut::new(buffer)];
            read = preadv2(&*self.file, iov, self.at, ReadWriteFlags::NOWAIT).unwrap_or(0);
            buffer.truncate(read);
        });
        // Nothing: not cached, or the end, which the other thread will see.
        (read > 0).then_some(bytes)
    }
}

fn read(file: &File, at: u64, length: usize) -> io::Result<Bytes> {
    let mut bytes = vec![0; length];
    let mut have = 0;
    while have < length {
        match file.read_at(&mut bytes[have..], at + have as u64) {
            Ok(0) => break,
            Ok(count) => have += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(have);
    Ok(bytes.into())
}
