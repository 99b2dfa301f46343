//! Memory that processes share: a sealed memfd, mapped whole and for the life of the process.

use rustix::fs::{
    MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, ftruncate, memfd_create,
};
use rustix::mm::{MapFlags, ProtFlags, mmap};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::NonNull;

const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

/// Makes a file of so many zero bytes that can neither grow nor shrink. Fails as memfd_create and
/// ftruncate do.
pub fn create(name: &str, bytes: usize) -> io::Result<OwnedFd> {
    let fd = memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    ftruncate(&fd, bytes as u64)?;
    fcntl_add_seals(&fd, SEALS)?;
    Ok(fd)
}

/// Maps a file that `create` has made; one of another length, or one that could shrink, is refused
/// with a line that calls it `what`.
pub fn map(fd: &OwnedFd, bytes: usize, what: &str) -> io::Result<NonNull<u8>> {
    let length = fstat(fd)?.st_size;
    if length != bytes as i64 || !fcntl_get_seals(fd)?.contains(SEALS) {
        return Err(refuse(format!(
            "not {what} of this version of oribi ({length} bytes, expected {bytes} sealed): binary \
             and extension differ, rebuild both"
        )));
    }
    let (prot, flags) =
        (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED | MapFlags::NORESERVE);
    // SAFETY: a new mapping at an address of the kernel's choice, of the file's full length; the
    // seals keep the file from shrinking under it.
    let base = unsafe { mmap(std::ptr::null_mut(), bytes, prot, flags, fd.as_fd(), 0)? };
    NonNull::new(base.cast()).ok_or_else(|| io::Error::other("mmap gave null"))
}

/// What `what` says when its header is another's.
pub fn check_layout(what: &str, found: (u64, u32), expected: (u64, u32)) -> io::Result<()> {
    if found == expected {
        return Ok(());
    }
    let (found, expected) = (found.1, expected.1);
    Err(refuse(format!(
        "{what} layout {found} where {expected} is expected: binary and extension differ, rebuild \
         both"
    )))
}

fn refuse(why: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}
