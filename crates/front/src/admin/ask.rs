//! The supervisor is asked how things are: over a stream of its own for each question, whose other
//! end goes to it by the control socket. What it answers is what `oribi status` gets.

use hyper::StatusCode;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use serde_json::Value;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use wire::control::FromFront;

/// How long the supervisor may take.
const PATIENCE: Duration = Duration::from_millis(900);
/// The longest answer in bytes: more than a thousand workers with a thousand requests need.
const LONGEST: u64 = 16 * 1024 * 1024;

/// Why it is not known how things are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// The supervisor does not answer in time.
    Late,
    /// It cannot be asked, or answers nonsense.
    Failed,
}

impl Unknown {
    /// What a client is told.
    pub fn status(self) -> StatusCode {
        match self {
            Unknown::Late => StatusCode::GATEWAY_TIMEOUT,
            Unknown::Failed => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// The same in words.
    pub fn text(self) -> &'static str {
        match self {
            Unknown::Late => "the supervisor does not answer",
            Unknown::Failed => "the supervisor cannot be asked",
        }
    }
}

/// The server's status: what `oribi status --json` prints.
pub async fn ask(control: &AsyncFd<OwnedFd>) -> Result<Value, Unknown> {
    match tokio::time::timeout(PATIENCE, exchange(control)).await {
        Err(_) => Err(Unknown::Late),
        Ok(Err(_)) => Err(Unknown::Failed),
        Ok(Ok(answer)) => {
            let mut answer: Value = serde_json::from_slice(&answer).map_err(|_| Unknown::Failed)?;
            let status = answer["status"].take();
            if status.is_object() { Ok(status) } else { Err(Unknown::Failed) }
        }
    }
}

async fn exchange(control: &AsyncFd<OwnedFd>) -> io::Result<Vec<u8>> {
    let (mut ours, theirs) = UnixStream::pair()?;
    ours.write_all(b"{\"command\":\"status\"}\n").await?;
    send(control, theirs.into_std()?.into()).await?;
    let mut answer = Vec::new();
    ours.take(LONGEST).read_to_end(&mut answer).await?;
    Ok(answer)
}

async fn send(control: &AsyncFd<OwnedFd>, stream: OwnedFd) -> io::Result<()> {
    let message = FromFront::Ask.to_string();
    loop {
        let mut ready = control.writable().await?;
        let sent = ready.try_io(|control| {
            let fds = [stream.as_fd()];
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut ancillary = SendAncillaryBuffer::new(&mut space);
            ancillary.push(SendAncillaryMessage::ScmRights(&fds));
            let slices = [IoSlice::new(message.as_bytes())];
            Ok(sendmsg(control.get_ref(), &slices, &mut ancillary, SendFlags::NOSIGNAL)?)
        });
        if let Ok(sent) = sent {
            return sent.map(drop);
        }
    }
}
