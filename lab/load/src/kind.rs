//! A kind of request, as it goes over the wire.

use std::borrow::Cow;
use std::fmt::Write as _;

use crate::door::Door;
use crate::gateway::{self, BLOCK};
use crate::plan::Request;

/// Every body comes out of this, however long it is.
static BODY: [u8; 64 * 1024] = [b'x'; 64 * 1024];

/// So much of a body stands behind the head, so that a small one needs no second send.
const JOINED: u64 = 16 * 1024;

/// A kind of request: a start, then a block so many times, then a tail.
#[derive(Debug)]
pub struct Kind {
    start: Vec<u8>,
    block: Cow<'static, [u8]>,
    blocks: u64,
    tail: Vec<u8>,
    /// Of all of it, in bytes.
    pub length: u64,
    /// What it is spoken in.
    pub door: Door,
    /// The answer will have no body.
    pub is_head: bool,
    /// The connection is kept.
    pub keep: bool,
    /// A connection that is not kept is given up by a reset.
    pub reset: bool,
    /// Reads no faster than so many bytes a second; 0 for no limit.
    pub read_rate: u64,
}

impl Kind {
    /// Writes the head, once for the whole run.
    pub fn new(request: &Request, door: Door, host: &str, keep: bool) -> Self {
        // SCGI has no other way to end an answer of unknown length.
        let keep = keep && door != Door::Scgi;
        let start = match door {
            Door::Http => http_head(request, host, keep),
            Door::FastCgi | Door::Scgi => gateway::head(door, request, host, keep),
        };
        let mut kind = Self {
            start,
            block: Cow::Borrowed(&BODY),
            blocks: 0,
            tail: Vec::new(),
            length: 0,
            door,
            is_head: request.method == "HEAD",
            keep,
            reset: false,
            read_rate: request.read_bytes_per_second,
        };
        if door == Door::FastCgi {
            kind.body_in_records(request.body_bytes);
        } else {
            kind.body(request.body_bytes);
        }
        let blocks = kind.blocks * kind.block.len() as u64;
        kind.length = kind.start.len() as u64 + blocks + kind.tail.len() as u64;
        kind
    }

    /// The same, with another way to give up its connection.
    pub fn resetting(self, reset: bool) -> Self {
        Self { reset, ..self }
    }

    fn body(&mut self, bytes: u64) {
        let joined = bytes.min(JOINED);
        self.start.extend_from_slice(&BODY[..joined as usize]);
        let rest = bytes - joined;
        self.blocks = rest / BODY.len() as u64;
        self.tail = vec![b'x'; (rest % BODY.len() as u64) as usize];
    }

    /// Records, and the empty one that ends them.
    fn body_in_records(&mut self, bytes: u64) {
        let record = |length: usize| [&gateway::body_header(length)[..], &BODY[..length]].concat();
        self.blocks = bytes / BLOCK as u64;
        let rest = (bytes % BLOCK as u64) as usize;
        self.tail = if rest > 0 { record(rest) } else { Vec::new() };
        self.tail.extend_from_slice(&gateway::body_header(0));
        if self.blocks == 0 {
            self.start.append(&mut self.tail);
        } else {
            self.block = Cow::Owned(record(BLOCK));
        }
    }

    /// What is to be written after `at` bytes, or the beginning of it.
    pub fn rest(&self, at: u64) -> &[u8] {
        let start = self.start.len() as u64;
        if at < start {
            return &self.start[at as usize..];
        }
        let (at, block) = (at - start, self.block.len() as u64);
        if at < self.blocks * block {
            return &self.block[(at % block) as usize..];
        }
        &self.tail[(at - self.blocks * block) as usize..]
    }
}

fn http_head(request: &Request, host: &str, keep: bool) -> Vec<u8> {
    let mut head = format!("{} {} HTTP/1.1\r\n", request.method, request.path);
    let says = |name: &str| request.headers.iter().any(|(n, _)| n.eq_ignore_ascii_case(name));
    if !says("host") {
        let _ = write!(head, "Host: {host}\r\n");
    }
    for (name, value) in &request.headers {
        let _ = write!(head, "{name}: {value}\r\n");
    }
    let takes_body = matches!(request.method.as_str(), "POST" | "PUT" | "PATCH");
    if request.body_bytes > 0 || takes_body {
        let _ = write!(head, "Content-Length: {}\r\n", request.body_bytes);
    }
    head.push_str(if keep { "\r\n" } else { "Connection: close\r\n\r\n" });
    head.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::Kind;
    use crate::door::Door;
    use crate::plan::Request;

    fn whole(kind: &Kind) -> Vec<u8> {
        let mut all = Vec::new();
        while (all.len() as u64) < kind.length {
            all.extend_from_slice(kind.rest(all.len() as u64));
        }
        all
    }

    #[test]
    fn a_request_without_a_body() {
        let kind = Kind::new(&Request::default(), Door::Http, "h:1", true);
        assert_eq!(whole(&kind), b"GET / HTTP/1.1\r\nHost: h:1\r\n\r\n");
        let close = Kind::new(&Request::default(), Door::Http, "h:1", false);
        assert_eq!(whole(&close), b"GET / HTTP/1.1\r\nHost: h:1\r\nConnection: close\r\n\r\n");
    }

    #[test]
    fn a_body_of_any_length() {
        let request = Request { body_bytes: 1 << 30, ..Request::default() };
        let huge = Kind::new(&request, Door::Http, "h", true);
        assert!(huge.start.len() < 20_000 && huge.tail.len() < 65_536, "not in memory");
        for body_bytes in [0, 1, 16_384, 16_385, 65_536, 1_000_000] {
            let headers = vec![("host".into(), "x".into())];
            let request =
                Request { method: "POST".into(), body_bytes, headers, ..Request::default() };
            let all =
                String::from_utf8(whole(&Kind::new(&request, Door::Http, "h", true))).unwrap();
            let (head, body) = all.split_once("\r\n\r\n").unwrap();
            assert_eq!(head, format!("POST / HTTP/1.1\r\nhost: x\r\nContent-Length: {body_bytes}"));
            assert!(body.len() as u64 == body_bytes && body.bytes().all(|byte| byte == b'x'));
        }
    }

    #[test]
    fn a_body_in_records() {
        for body_bytes in [0, 1, 32_767, 32_768, 32_769, 100_000] {
            let request = Request { method: "POST".into(), body_bytes, ..Request::default() };
            let all = whole(&Kind::new(&request, Door::FastCgi, "h", true));
            let (mut at, mut body, mut ended) = (0, 0, false);
            while at < all.len() {
                let length = usize::from(u16::from_be_bytes([all[at + 4], all[at + 5]]));
                let content = &all[at + 8..at + 8 + length];
                if all[at + 1] == 5 {
                    assert!(!ended && content.iter().all(|byte| *byte == b'x'));
                    (body, ended) = (body + length as u64, length == 0);
                }
                at += 8 + length;
            }
            assert_eq!((at, body, ended), (all.len(), body_bytes, true));
        }
    }

    #[test]
    fn scgi_keeps_no_connection() {
        assert!(!Kind::new(&Request::default(), Door::Scgi, "h", true).keep);
        assert!(Kind::new(&Request::default(), Door::FastCgi, "h", true).keep);
    }
}
