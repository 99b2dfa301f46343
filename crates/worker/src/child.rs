//! A worker does not outlive its supervisor.

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{Signal, getpid, kill_process};
use std::io;
use std::os::fd::OwnedFd;

/// Starts a thread that ends this process, whatever it is doing, as soon as the process behind
/// `pidfd` is gone. A fork does not inherit the thread: call it again in the child.
pub fn end_with(pidfd: OwnedFd) -> io::Result<()> {
    let watch = move || {
        loop {
            let mut fds = [PollFd::new(&pidfd, PollFlags::IN)];
            match poll(&mut fds, None) {
                Ok(0) | Err(Errno::INTR) => continue,
                Ok(_) | Err(_) => break,
            }
        }
        // No handler of the app may hold this up, so it is the one signal that cannot be handled.
        let _ = kill_process(getpid(), Signal::KILL);
    };
    std::thread::Builder::new().name("watch".into()).stack_size(64 * 1024).spawn(watch)?;
    Ok(())
}
