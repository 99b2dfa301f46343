//! What a request does to its connection beside hyper's reply: interim responses, which hyper does
//! not send, and taking the connection away.
//!
//! hyper flushes whenever it has written all it had. Only then is there room for anything else, so
//! both wait for that moment, which `Io` knows.

use hyper::StatusCode;
use hyper::header::{HeaderName, HeaderValue};
use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use wire::frame::{Head, Malformed};

/// A connection that goes to the app.
pub struct Hijack {
    /// What the client gets first: a head, or nothing when the app writes its own.
    pub head: Vec<u8>,
    /// The front's end of the pair whose other end the app has.
    pub app: OwnedFd,
    /// Dropped when the connection has ended.
    pub held: Option<Box<dyn Send>>,
}

/// What is to be done: the values of `Aside::wish`.
const NOTHING: u8 = 0;
const SAY: u8 = 1;
const GIVE: u8 = 2;
const GIVEN: u8 = 3;

/// A connection's wishes of this kind. It lives on one thread; the lock is only there because its
/// task must be `Send`.
#[derive(Default)]
pub struct Aside {
    wish: AtomicU8,
    /// Of hyper's next bytes so many are not sent.
    left_out: AtomicU8,
    /// The reply has no other end than the connection's.
    closing: AtomicBool,
    more: Mutex<More>,
}

#[derive(Default)]
struct More {
    said: VecDeque<u8>,
    hijack: Option<Hijack>,
}

impl Aside {
    fn more(&self) -> MutexGuard<'_, More> {
        self.more.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// These bytes go out as soon as hyper has written what it has. The reply must wait.
    pub fn say(&self, bytes: &[u8]) {
        self.more().said.extend(bytes);
        self.wish.store(SAY, Relaxed);
    }

    /// Not all of it is out.
    pub fn is_saying(&self) -> bool {
        self.wish.load(Relaxed) == SAY
    }

    /// The next bytes that hyper writes do not go out: something else has been said for them.
    pub fn leave_out(&self, count: usize) {
        self.left_out.store(count as u8, Relaxed);
    }

    /// How many of the next bytes, up to `most`, are to pass for written.
    pub fn leaves_out(&self, most: usize) -> Option<usize> {
        let left = usize::from(self.left_out.load(Relaxed));
        if left == 0 {
            return None;
        }
        let count = left.min(most);
        self.leave_out(left - count);
        Some(count)
    }

    /// The reply ends when the connection does.
    pub fn ends_reply_by_closing(&self) {
        self.closing.store(true, Relaxed);
    }

    /// A plain end of the connection would look like the reply's.
    pub fn end_is_ambiguous(&self) -> bool {
        self.closing.load(Relaxed)
    }

    /// The connection goes away as soon as hyper has written what it has.
    pub fn give(&self, hijack: Hijack) {
        self.more().hijack = Some(hijack);
        self.wish.store(GIVE, Relaxed);
    }

    /// True: hyper has written everything, and `flush` has something to do.
    pub fn wants_flush(&self) -> bool {
        matches!(self.wish.load(Relaxed), SAY | GIVE)
    }

    /// hyper has written everything: `write` sends what is to be said, and returns how much of it
    /// went out. True once there is nothing more to do.
    pub fn flush(&self, mut write: impl FnMut(&[u8]) -> Option<usize>) -> bool {
        let mut more = self.more();
        while !more.said.is_empty() {
            let Some(count) = write(more.said.make_contiguous()) else { return false };
            more.said.drain(..count);
        }
        more.said = VecDeque::new();
        self.wish.store(if more.hijack.is_some() { GIVEN } else { NOTHING }, Relaxed);
        true
    }

    /// The connection is to be taken from hyper now.
    pub fn is_given(&self) -> bool {
        self.wish.load(Relaxed) == GIVEN
    }

    /// By whom.
    pub fn take(&self) -> Option<Hijack> {
        self.wish.store(NOTHING, Relaxed);
        self.more().hijack.take()
    }
}

/// Status and bytes of an INTERIM payload; names as the app wrote them.
pub fn head(payload: &[u8]) -> Result<(u16, Vec<u8>), Malformed> {
    let head = Head::parse(payload)?;
    let status = StatusCode::from_u16(head.status).map_err(|_| Malformed)?;
    let reason = status.canonical_reason().unwrap_or_default();
    let mut bytes = format!("HTTP/1.1 {} {reason}\r\n", status.as_u16()).into_bytes();
    for field in head {
        let (name, value) = field?;
        HeaderName::from_bytes(name).map_err(|_| Malformed)?;
        HeaderValue::from_bytes(value).map_err(|_| Malformed)?;
        for part in [name, b": ", value, b"\r\n"] {
            bytes.extend_from_slice(part);
        }
    }
    bytes.extend_from_slice(b"\r\n");
    Ok((status.as_u16(), bytes))
}

/// What comes before a reply or instead of it.
#[derive(Default)]
pub struct Before {
    /// Interim responses that have not gone out.
    pub interim: Vec<u8>,
    /// The head in front of a hijacked connection.
    pub head: Option<(u16, Vec<u8>)>,
    /// The connection goes to the app.
    pub app: Option<OwnedFd>,
}

/// Whether the connection goes to the app.
pub fn goes_to_app(before: &Option<Box<Before>>) -> bool {
    before.as_ref().is_some_and(|before| before.app.is_some())
}

impl Before {
    /// Adds a head that has come before the reply.
    pub fn add(&mut self, (status, bytes): (u16, Vec<u8>)) {
        match status {
            101 | 200.. => self.head = Some((status, bytes)),
            _ => self.interim.extend(bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::frame::{push_field, start_head};

    #[test]
    fn heads_are_as_the_app_wrote_them_or_none() {
        let mut payload = Vec::new();
        start_head(&mut payload, 103);
        push_field(&mut payload, b"Link", b"</a>; rel=preload");
        push_field(&mut payload, b"link", b"");
        let expected = b"HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\nlink: \r\n\r\n";
        assert_eq!(head(&payload), Ok((103, expected.to_vec())));
        for (name, value) in [(&b"a b"[..], &b"x"[..]), (b"", b"x"), (b"a", b"x\r\nb: c")] {
            start_head(&mut payload, 103);
            push_field(&mut payload, name, value);
            assert_eq!(head(&payload), Err(Malformed));
        }
        start_head(&mut payload, 99);
        assert_eq!(head(&payload), Err(Malformed));
        assert_eq!(head(&[]), Err(Malformed));
    }

    #[test]
    fn what_is_left_out_is_counted_across_writes() {
        let aside = Aside::default();
        assert_eq!(aside.leaves_out(100), None);
        aside.leave_out(9);
        let counts = [aside.leaves_out(4), aside.leaves_out(100), aside.leaves_out(100)];
        assert_eq!(counts, [Some(4), Some(5), None]);
    }

    #[test]
    fn what_is_said_goes_out_before_the_connection_is_given() {
        let aside = Aside::default();
        aside.say(b"one");
        aside.say(b"two");
        let mut out = Vec::new();
        assert!(aside.wants_flush() && aside.is_saying());
        let mut room = 2;
        let mut write = |bytes: &[u8]| {
            let count = bytes.len().min(room);
            room -= count;
            out.extend_from_slice(&bytes[..count]);
            (count > 0).then_some(count)
        };
        assert!(!aside.flush(&mut write));
        assert!(aside.is_saying());
        assert!(aside.flush(|bytes: &[u8]| {
            out.extend_from_slice(bytes);
            Some(bytes.len())
        }));
        assert_eq!(out, b"onetwo");
        assert!(!aside.is_saying() && !aside.is_given() && !aside.wants_flush());
        let app = std::os::unix::net::UnixStream::pair().unwrap().0.into();
        aside.give(Hijack { head: Vec::new(), app, held: None });
        assert!(!aside.is_given());
        assert!(aside.flush(|_| None));
        assert!(aside.is_given());
        assert!(aside.take().is_some() && !aside.is_given());
    }
}
