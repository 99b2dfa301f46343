//! A slot's request record as a Rack env, and its body.

use crate::app::App;
use crate::exception::Exception;
use crate::serving::{Body, Serving};
use crate::value::Value;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SocketFlags, SocketType,
    recvmsg, socketpair,
};
use rustix::time::Timespec;
use std::fs::File;
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use wire::exchange::Kind;
use wire::request::{KEYS, Key, Pairs};
use worker::Seat;

/// After so long a worker looks whether anybody still wants its request.
const PATIENCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 500_000_000 };

/// The env of the request that was taken.
pub fn build<'a>(app: &'a App, serving: &Serving) -> Result<Value<'a>, Exception> {
    let seat = &serving.seat;
    let env = app.template()?.call("dup", &[])?;
    let keys = app.keys()?;
    let mut texts: Vec<(Value, &[u8])> = Vec::with_capacity(32);
    for (key, value) in Pairs(seat.record()) {
        let key = match key {
            Key::Known(number) => keys.entry(number.into()),
            Key::Named([]) => continue,
            Key::Named(name) => app.interp().str(name)?,
        };
        texts.push((key, value));
    }
    env.set_texts(&texts)?;
    env.set(keys.entry(KEYS.len()), app.interp().float(seat.queue_ns() as f64 / 1e9)?)?;
    env.set(keys.entry(KEYS.len() + 1), app.interp().array(&[])?)?;
    Ok(env)
}

/// The request's body. None: nobody wants the request any more, or it cannot be had.
pub fn body(seat: &Seat) -> Option<Body> {
    if !seat.body_spooled() {
        let mut bytes = Vec::with_capacity(seat.body_len());
        seat.body_parts().for_each(|part| bytes.extend_from_slice(part));
        return Some(Body::Bytes(bytes));
    }
    match fetch(seat) {
        Ok(file) => {
            let length = file.metadata().map_or(0, |about| about.len());
            Some(Body::File(file, length))
        }
        // The front closes the socket of whom it has nothing to give.
        Err(error) => {
            if !seat.cancelled() {
                crate::log::raw(&format!("oribi: no request body: {error}\n"));
            }
            None
        }
    }
}

fn fetch(seat: &Seat) -> io::Result<File> {
    let kind = SocketType::STREAM;
    let (mine, theirs) = socketpair(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None)?;
    seat.pass(Kind::Body, theirs.as_fd())?;
    drop(theirs);
    while poll(&mut [PollFd::new(&mine, PollFlags::IN)], Some(&PATIENCE))? == 0 {
        if seat.cancelled() {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
    }
    let mut byte = [0; 1];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let slices = &mut [IoSliceMut::new(&mut byte)];
    recvmsg(&mine, slices, &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let mut fds = control.drain().flat_map(|message| match message {
        RecvAncillaryMessage::ScmRights(fds) => fds.collect(),
        _ => Vec::<OwnedFd>::new(),
    });
    let file = fds.next().ok_or(io::ErrorKind::UnexpectedEof)?;
    Ok(file.into())
}
