//! What the supervisor tells the front, and the front's end when the supervisor is gone.

use crate::accept::{self, Hands};
use crate::access_log;
use crate::drain::{self, Drain};
use crate::{Listener, refuse};
use rustix::net::{RecvFlags, SendFlags, recv, send};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use tokio::io::unix::AsyncFd;

/// Says `ready`, then follows the supervisor: `accept`, `reopen`, `drain`. Returns once drained.
pub async fn run(
    control: OwnedFd,
    supervisor: OwnedFd,
    listeners: Vec<Listener>,
    hands: Hands,
    drain: Arc<Drain>,
) -> io::Result<()> {
    rustix::io::ioctl_fionbio(&control, true)?;
    let control = watch(control)?;
    let supervisor = watch(supervisor)?;
    let hands = Arc::new(hands);
    let mut doors = accept::open(listeners)?;
    let mut accepting = tokio::task::JoinSet::new();
    say(&control, "ready").await?;
    loop {
        let message = tokio::select! {
            message = hear(&control) => message?,
            _ = supervisor.readable() => None,
        };
        match message.as_deref() {
            Some("accept") => {
                for door in doors.drain(..) {
                    accepting.spawn(accept::run(door, hands.clone(), drain.clone()));
                }
            }
            Some("drain") => break,
            Some("yield") => drain::give_way(),
            Some("reopen") => access_log::reopen(),
            Some(other) => refuse::log(&format!("unknown order from the supervisor: {other:?}")),
            None => return Err(io::Error::other("the supervisor is gone")),
        }
    }
    drain.begin();
    drop(doors);
    let drained = async {
        while accepting.join_next().await.is_some() {}
        drain.emptied().await;
    };
    tokio::select! {
        () = drained => say(&control, "drained").await,
        _ = supervisor.readable() => Err(io::Error::other("the supervisor is gone")),
    }
}

async fn say(control: &AsyncFd<OwnedFd>, message: &str) -> io::Result<()> {
    loop {
        let mut ready = control.writable().await?;
        let sent = ready.try_io(|fd| Ok(send(fd, message.as_bytes(), SendFlags::NOSIGNAL)?));
        if let Ok(sent) = sent {
            return sent.map(drop);
        }
    }
}

/// The next message; None when the supervisor has closed its end.
async fn hear(control: &AsyncFd<OwnedFd>) -> io::Result<Option<String>> {
    let mut buffer = [0u8; 256];
    loop {
        let mut ready = control.readable().await?;
        let heard = ready.try_io(|fd| {
            let (length, _) = recv(fd, &mut buffer[..], RecvFlags::empty())?;
            Ok(length)
        });
        if let Ok(length) = heard {
            let length = length?;
            let text = String::from_utf8_lossy(&buffer[..length]).into_owned();
            return Ok((length > 0).then_some(text));
        }
    }
}

/// Registers an fd with the runtime.
#[allow(
    deprecated,
    reason = "its replacement is unsafe for types whose fd may change; OwnedFd's never does"
)]
pub fn watch(fd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::new(fd)
}
