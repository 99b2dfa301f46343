//! What the supervisor tells the front, and the front's end when the supervisor is gone.

use crate::accept::{self, Hands};
use crate::access_log;
use crate::admin::Admin;
use crate::drain::{self, Drain};
use crate::{Listener, mounts, refuse};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags, recvmsg, send};
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use tokio::io::unix::AsyncFd;
use wire::FRONTS;
use wire::control::{FromFront, PACKET_BYTES, ToFront};

/// Says `ready`, then follows the supervisor. Returns once drained.
pub async fn run(
    control: OwnedFd,
    supervisor: OwnedFd,
    listeners: Vec<Listener>,
    admin: Option<Admin>,
    hands: Hands,
    drain: Arc<Drain>,
) -> io::Result<()> {
    rustix::io::ioctl_fionbio(&control, true)?;
    let control = Arc::new(watch(control)?);
    if let Some(admin) = admin {
        tokio::spawn(admin.run(control.clone(), drain.clone()));
    }
    let supervisor = watch(supervisor)?;
    let hands = Arc::new(hands);
    let mut doors = accept::open(listeners)?;
    let mut accepting = tokio::task::JoinSet::new();
    say(&control, FromFront::Ready).await?;
    let (tell, mut gone) = tokio::sync::mpsc::unbounded_channel();
    loop {
        let message = tokio::select! {
            message = hear(&control) => message?,
            Some(mount) = gone.recv() => {
                say(&control, FromFront::Unmounted(mount)).await?;
                continue;
            }
            _ = supervisor.readable() => None,
        };
        let Some((packet, fds)) = message else {
            return Err(io::Error::other("the supervisor is gone"));
        };
        match ToFront::parse(&packet) {
            Ok(ToFront::Mount(json)) => mounts::add(&json, fds, &hands)?,
            Ok(ToFront::Unmount(mount)) => mounts::remove(mount, tell.clone(), &hands),
            Ok(ToFront::Accept) => {
                for door in doors.drain(..) {
                    accepting.spawn(accept::run(door, hands.clone(), drain.clone()));
                }
            }
            Ok(ToFront::Drain) => break,
            Ok(ToFront::Yield) => drain::give_way(),
            Ok(ToFront::Reopen) => access_log::reopen(),
            Err(unknown) => refuse::log(&unknown.to_string()),
        }
    }
    drain.begin();
    drop(doors);
    let drained = async {
        while accepting.join_next().await.is_some() {}
        drain.emptied().await;
    };
    tokio::select! {
        () = drained => say(&control, FromFront::Drained).await,
        _ = supervisor.readable() => Err(io::Error::other("the supervisor is gone")),
    }
}

async fn say(control: &AsyncFd<OwnedFd>, message: FromFront) -> io::Result<()> {
    let message = message.to_string();
    loop {
        let mut ready = control.writable().await?;
        let sent = ready.try_io(|fd| Ok(send(fd, message.as_bytes(), SendFlags::NOSIGNAL)?));
        if let Ok(sent) = sent {
            return sent.map(drop);
        }
    }
}

/// The next message and its fds; None when the supervisor has closed its end.
async fn hear(control: &AsyncFd<OwnedFd>) -> io::Result<Option<(Vec<u8>, Vec<OwnedFd>)>> {
    loop {
        let mut ready = control.readable().await?;
        if let Ok(heard) = ready.try_io(|control| receive(control.get_ref())) {
            return heard.map(|(packet, fds)| (!packet.is_empty()).then_some((packet, fds)));
        }
    }
}

/// A packet and its fds: a segment and one exchange socket for each thread at the most.
fn receive(control: &OwnedFd) -> io::Result<(Vec<u8>, Vec<OwnedFd>)> {
    let mut packet = vec![0; PACKET_BYTES];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1 + FRONTS))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let slices = &mut [IoSliceMut::new(&mut packet)];
    let received = recvmsg(control, slices, &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
    let fds = ancillary.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(fds) => Some(fds),
        _ => None,
    });
    let fds = fds.flatten().collect();
    packet.truncate(received.bytes);
    Ok((packet, fds))
}

/// Registers an fd with the runtime.
#[allow(
    deprecated,
    reason = "its replacement is unsafe for types whose fd may change; OwnedFd's never does"
)]
pub fn watch(fd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::new(fd)
}
