//! Finds the end of a response, and nothing more than that needs.

/// What the bytes so far amount to.
#[derive(Debug, PartialEq, Eq)]
pub enum Progress {
    /// The response is not complete.
    More,
    /// The response is complete.
    Done {
        /// Its status code.
        status: u16,
        /// The server will close the connection, or has.
        close: bool,
    },
    /// These bytes are no response to one request.
    Garbage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Body {
    Length(u64),
    Chunked(Chunk),
    UntilEof,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Chunk {
    /// In the size line; the size so far, and whether digits may still follow.
    Size(u64, bool),
    /// In the data and the line end behind it.
    Data(u64),
    /// In a line of the trailer; its length so far.
    Trailer(usize),
    End,
}

/// The state of one response between reads.
#[derive(Debug, Default)]
pub struct Response {
    head: Vec<u8>,
    status: u16,
    close: bool,
    body: Option<Body>,
}

impl Response {
    /// Forgets everything; the head's buffer is kept.
    pub fn reset(&mut self) {
        self.head.clear();
        self.status = 0;
        self.close = false;
        self.body = None;
    }

    /// Takes what was read.
    pub fn feed(&mut self, data: &[u8]) -> Progress {
        if self.body.is_some() {
            return self.feed_body(data);
        }
        // The usual case is a response in one read: look at it where it lies.
        if self.head.is_empty() {
            return match end_of_head(data) {
                Some(end) => self.take_head(&data[..end], &data[end..]),
                None => {
                    self.head.extend_from_slice(data);
                    Progress::More
                }
            };
        }
        self.head.extend_from_slice(data);
        let Some(end) = end_of_head(&self.head) else { return Progress::More };
        let all = std::mem::take(&mut self.head);
        self.take_head(&all[..end], &all[end..])
    }

    /// The server has closed the connection.
    pub fn end(&mut self) -> Option<Progress> {
        let complete = self.body == Some(Body::UntilEof);
        complete.then_some(Progress::Done { status: self.status, close: true })
    }

    fn take_head(&mut self, head: &[u8], rest: &[u8]) -> Progress {
        let Some(status) = status(head) else { return Progress::Garbage };
        if (100..200).contains(&status) {
            self.reset();
            return if rest.is_empty() { Progress::More } else { self.feed(rest) };
        }
        self.status = status;
        let mut body = Body::UntilEof;
        self.close = head.starts_with(b"HTTP/1.0");
        for line in head.split(|&byte| byte == b'\n').skip(1) {
            let Some(colon) = line.iter().position(|&byte| byte == b':') else { continue };
            let (name, value) = (&line[..colon], line[colon + 1..].trim_ascii());
            if name.eq_ignore_ascii_case(b"content-length") {
                let Some(length) = decimal(value) else { return Progress::Garbage };
                body = Body::Length(length);
            } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
                body = Body::Chunked(Chunk::Size(0, true));
            } else if name.eq_ignore_ascii_case(b"connection") {
                self.close = !value.eq_ignore_ascii_case(b"keep-alive");
            }
        }
        if status == 204 || status == 304 {
            body = Body::Length(0);
        }
        self.body = Some(body);
        self.feed_body(rest)
    }

    fn feed_body(&mut self, data: &[u8]) -> Progress {
        match self.body {
            Some(Body::Length(left)) => match left.checked_sub(data.len() as u64) {
                None => Progress::Garbage,
                Some(0) => Progress::Done { status: self.status, close: self.close },
                Some(left) => {
                    self.body = Some(Body::Length(left));
                    Progress::More
                }
            },
            Some(Body::Chunked(chunk)) => match chunked(chunk, data) {
                None => Progress::Garbage,
                Some(Chunk::End) => Progress::Done { status: self.status, close: self.close },
                Some(chunk) => {
                    self.body = Some(Body::Chunked(chunk));
                    Progress::More
                }
            },
            Some(Body::UntilEof) => Progress::More,
            None => Progress::Garbage,
        }
    }
}

fn end_of_head(data: &[u8]) -> Option<usize> {
    data.windows(4).position(|four| four == b"\r\n\r\n").map(|at| at + 4)
}

fn status(head: &[u8]) -> Option<u16> {
    let line = head.strip_prefix(b"HTTP/1.")?;
    let code = line.get(2..5)?;
    decimal(code).and_then(|code| u16::try_from(code).ok())
}

fn decimal(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

fn chunked(mut state: Chunk, mut data: &[u8]) -> Option<Chunk> {
    while let Some((&byte, rest)) = data.split_first() {
        state = match state {
            Chunk::Data(left) => {
                let step = left.min(data.len() as u64);
                data = &data[usize::try_from(step).ok()?..];
                state = if step == left { Chunk::Size(0, true) } else { Chunk::Data(left - step) };
                continue;
            }
            Chunk::Size(0, _) if byte == b'\n' => Chunk::Trailer(0),
            // The data and the two bytes of its line end.
            Chunk::Size(size, _) if byte == b'\n' => Chunk::Data(size + 2),
            Chunk::Size(size, true) => match char::from(byte).to_digit(16) {
                Some(digit) => Chunk::Size((size << 4) | u64::from(digit), true),
                None => Chunk::Size(size, false),
            },
            Chunk::Size(size, false) => Chunk::Size(size, false),
            Chunk::Trailer(0) if byte == b'\n' => Chunk::End,
            Chunk::Trailer(_) if byte == b'\n' => Chunk::Trailer(0),
            Chunk::Trailer(length) if byte == b'\r' => Chunk::Trailer(length),
            Chunk::Trailer(length) => Chunk::Trailer(length + 1),
            Chunk::End => return None,
        };
        data = rest;
    }
    Some(state)
}

#[cfg(test)]
mod tests {
    use super::{Progress, Response};

    /// However the bytes are cut, the answer is the same, and it comes with the last byte.
    fn every_cut(bytes: &[u8], status: u16, close: bool) {
        for cut in 1..bytes.len() {
            let mut response = Response::default();
            assert_eq!(response.feed(&bytes[..cut]), Progress::More, "cut at {cut}");
            assert_eq!(response.feed(&bytes[cut..]), Progress::Done { status, close });
        }
        let mut response = Response::default();
        assert_eq!(response.feed(bytes), Progress::Done { status, close });
    }

    #[test]
    fn a_length() {
        every_cut(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 200, false);
        every_cut(b"HTTP/1.1 500 Oh\r\ncontent-length:2\r\nConnection: close\r\n\r\nno", 500, true);
        every_cut(b"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\n!", 200, true);
    }

    #[test]
    fn chunks() {
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        every_cut(format!("{head}5\r\nhello\r\n0\r\n\r\n").as_bytes(), 200, false);
        every_cut(format!("{head}A;x=0\r\n0123456789\r\n0\r\na: b\r\n\r\n").as_bytes(), 200, false);
    }

    #[test]
    fn an_interim_response_is_passed_over() {
        let bytes = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n";
        every_cut(bytes, 204, false);
    }

    #[test]
    fn until_the_end() {
        let mut response = Response::default();
        assert_eq!(response.feed(b"HTTP/1.0 200 OK\r\n\r\nsome"), Progress::More);
        assert_eq!(response.end(), Some(Progress::Done { status: 200, close: true }));
    }

    #[test]
    fn too_much_or_too_little() {
        let mut response = Response::default();
        let long = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nhello";
        assert_eq!(response.feed(long), Progress::Garbage);
        response.reset();
        assert_eq!(
            response.feed(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello"),
            Progress::More
        );
        assert_eq!(response.end(), None);
        response.reset();
        assert_eq!(response.feed(b"SSH-2.0-x\r\n\r\n"), Progress::Garbage);
    }
}
