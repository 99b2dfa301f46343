//! A kind of request, as it goes over the wire.

use std::fmt::Write as _;

use crate::plan::Request;

/// Every body comes out of this, however long it is.
static BODY: [u8; 64 * 1024] = [b'x'; 64 * 1024];

/// So much of a body stands behind the head, so that a small one needs no second send.
const JOINED: u64 = 16 * 1024;

/// A kind of request.
#[derive(Debug)]
pub struct Kind {
    start: Vec<u8>,
    /// Of head and body, in bytes.
    pub length: u64,
    /// The answer will have no body.
    pub is_head: bool,
    /// The connection is kept.
    pub keep: bool,
    /// Reads no faster than so many bytes a second; 0 for no limit.
    pub read_rate: u64,
}

impl Kind {
    /// Writes the head, once for the whole run.
    pub fn new(request: &Request, host: &str, keep: bool) -> Self {
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
        let length = head.len() as u64 + request.body_bytes;
        let mut start = head.into_bytes();
        start.extend_from_slice(&BODY[..request.body_bytes.min(JOINED) as usize]);
        Self {
            start,
            length,
            is_head: request.method == "HEAD",
            keep,
            read_rate: request.read_bytes_per_second,
        }
    }

    /// What is to be written after `at` bytes, or the beginning of it.
    pub fn rest(&self, at: u64) -> &[u8] {
        let start = self.start.len() as u64;
        if at < start {
            return &self.start[at as usize..];
        }
        &BODY[..(self.length - at).min(BODY.len() as u64) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::Kind;
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
        let kind = Kind::new(&Request::default(), "h:1", true);
        assert_eq!(whole(&kind), b"GET / HTTP/1.1\r\nHost: h:1\r\n\r\n");
        let close = Kind::new(&Request::default(), "h:1", false);
        assert_eq!(whole(&close), b"GET / HTTP/1.1\r\nHost: h:1\r\nConnection: close\r\n\r\n");
    }

    #[test]
    fn a_body_of_any_length() {
        let request = Request { body_bytes: 1 << 30, ..Request::default() };
        let huge = Kind::new(&request, "h", true);
        assert!(huge.start.len() < 20_000 && huge.rest(1 << 29).len() == 65_536, "not in memory");
        for body_bytes in [0, 1, 16_384, 16_385, 65_536, 1_000_000] {
            let headers = vec![("host".into(), "x".into())];
            let request =
                Request { method: "POST".into(), body_bytes, headers, ..Request::default() };
            let all = String::from_utf8(whole(&Kind::new(&request, "h", true))).unwrap();
            let (head, body) = all.split_once("\r\n\r\n").unwrap();
            assert_eq!(head, format!("POST / HTTP/1.1\r\nhost: x\r\nContent-Length: {body_bytes}"));
            assert!(body.len() as u64 == body_bytes && body.bytes().all(|byte| byte == b'x'));
        }
    }
}
