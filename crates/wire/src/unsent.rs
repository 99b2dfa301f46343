//! What the kernel still holds for a client.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Bytes written to a socket that the other side has not taken: over TCP not acknowledged, over a
/// unix socket not read. Fails for what is no socket.
pub fn unsent(socket: BorrowedFd<'_>) -> io::Result<u32> {
    let mut count: libc::c_int = 0;
    // SAFETY: TIOCOUTQ writes one int, which outlives the call; the descriptor is borrowed, so open.
    match unsafe { libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ, &raw mut count) } {
        0 => Ok(count as u32),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::unsent;
    use std::io::{Read, Write};
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    #[test]
    fn what_is_read_is_not_unsent_any_more() {
        let (mut here, mut there) = UnixStream::pair().unwrap();
        assert_eq!(unsent(here.as_fd()).unwrap(), 0);
        here.write_all(b"two").unwrap();
        here.write_all(b"writes").unwrap();
        let both = unsent(here.as_fd()).unwrap();
        there.read_exact(&mut [0; 3]).unwrap();
        assert!(unsent(here.as_fd()).unwrap() < both);
        assert!(unsent(std::fs::File::open("/dev/null").unwrap().as_fd()).is_err());
    }
}
