//! Finds the end of a response, and nothing more than that needs. Heads, chunk sizes and trailers
//! are httparse's.

use std::mem::{MaybeUninit, take};

use httparse::{EMPTY_HEADER, Header, ParserConfig, Status};

/// More than this in a head, a chunk's first line or a trailer is no answer that anyone expects.
const LONGEST_PART: usize = 64 * 1024;
const MOST_HEADERS: usize = 100;

/// What the bytes so far amount to.
#[derive(Debug, PartialEq, Eq)]
pub enum Progress {
    /// The response is not complete.
    More,
    /// The response is complete.
    Done,
    /// These bytes are no response to one request.
    Garbage,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Part {
    #[default]
    Head,
    /// So many bytes of a body of known length are to come.
    Length(u64),
    UntilEof,
    ChunkSize,
    /// So many bytes of the chunk and of the line end behind it are to come.
    Chunk(u64),
    Trailer,
}

/// The state of one response between reads.
#[derive(Debug, Default)]
pub struct Response {
    /// Its status code, once the head is there.
    pub status: u16,
    /// The server will close the connection.
    pub close: bool,
    /// Bytes of the body so far, without the framing of chunks.
    pub bytes: u64,
    /// Where `X-Lab-Worker` was found: the name's place in [`Workers`].
    pub worker: Option<u32>,
    part: Part,
    no_body: bool,
    /// The beginning of a part that did not come in one read.
    begun: Vec<u8>,
}

impl Response {
    /// Forgets everything but the buffer. The answer to HEAD has no body whatever it says.
    pub fn reset(&mut self, to_head: bool) {
        let mut begun = take(&mut self.begun);
        begun.clear();
        *self = Self { begun, no_body: to_head, ..Self::default() };
    }

    /// Takes what was read.
    pub fn feed(&mut self, data: &[u8], workers: &mut Workers) -> Progress {
        // The usual case is a response in one read: look at it where it lies.
        if self.begun.is_empty() {
            return self.take(data, workers);
        }
        let mut all = take(&mut self.begun);
        all.extend_from_slice(data);
        self.take(&all, workers)
    }

    /// The server has closed the connection: true when that completes the response.
    pub fn end(&mut self) -> bool {
        self.close = true;
        self.part == Part::UntilEof
    }

    fn take(&mut self, mut data: &[u8], workers: &mut Workers) -> Progress {
        loop {
            let taken = match self.part {
                Part::Length(left) => {
                    self.bytes += left.min(data.len() as u64);
                    return match left.checked_sub(data.len() as u64) {
                        None => Progress::Garbage,
                        Some(0) => Progress::Done,
                        Some(left) => {
                            self.part = Part::Length(left);
                            Progress::More
                        }
                    };
                }
                Part::UntilEof => {
                    self.bytes += data.len() as u64;
                    return Progress::More;
                }
                Part::Chunk(left) => {
                    let step = left.min(data.len() as u64);
                    self.part =
                        if step == left { Part::ChunkSize } else { Part::Chunk(left - step) };
                    Ok(Status::Complete(step as usize))
                }
                Part::Head => self.take_head(data, workers),
                Part::ChunkSize => self.take_chunk_size(data),
                Part::Trailer => {
                    let mut headers = [EMPTY_HEADER; MOST_HEADERS];
                    return match httparse::parse_headers(data, &mut headers) {
                        Ok(Status::Complete((end, _))) if end == data.len() => Progress::Done,
                        Ok(Status::Partial) => self.keep(data),
                        _ => Progress::Garbage,
                    };
                }
            };
            match taken {
                Ok(Status::Complete(taken)) => data = &data[taken..],
                Ok(Status::Partial) => return self.keep(data),
                Err(()) => return Progress::Garbage,
            }
            if data.is_empty() && self.part != Part::Length(0) {
                return Progress::More;
            }
        }
    }

    fn keep(&mut self, data: &[u8]) -> Progress {
        if data.len() > LONGEST_PART {
            return Progress::Garbage;
        }
        self.begun.extend_from_slice(data);
        Progress::More
    }

    fn take_chunk_size(&mut self, data: &[u8]) -> Result<Status<usize>, ()> {
        // The parser takes a line without a digit for the last chunk.
        if !data[0].is_ascii_hexdigit() {
            return Err(());
        }
        let Status::Complete((end, size)) = httparse::parse_chunk_size(data).map_err(|_| ())?
        else {
            return Ok(Status::Partial);
        };
        self.bytes += size;
        let whole = size.checked_add(2).ok_or(())?;
        self.part = if size == 0 { Part::Trailer } else { Part::Chunk(whole) };
        Ok(Status::Complete(end))
    }

    fn take_head(&mut self, data: &[u8], workers: &mut Workers) -> Result<Status<usize>, ()> {
        let mut headers = [const { MaybeUninit::<Header>::uninit() }; MOST_HEADERS];
        let mut head = httparse::Response::new(&mut []);
        let Status::Complete(end) = ParserConfig::default()
            .parse_response_with_uninit_headers(&mut head, data, &mut headers)
            .map_err(|_| ())?
        else {
            return Ok(Status::Partial);
        };
        let status = head.code.ok_or(())?;
        if (100..200).contains(&status) && status != 101 {
            return Ok(Status::Complete(end));
        }
        self.status = status;
        self.close = head.version == Some(0);
        self.part = Part::UntilEof;
        for header in head.headers.iter() {
            self.take_header(header, workers)?;
        }
        if self.no_body || matches!(status, 101 | 204 | 304) {
            self.part = Part::Length(0);
        }
        Ok(Status::Complete(end))
    }

    fn take_header(&mut self, header: &Header, workers: &mut Workers) -> Result<(), ()> {
        let (name, value) = (header.name, header.value.trim_ascii());
        // By length first: most fields are none of these.
        match name.len() {
            14 if name.eq_ignore_ascii_case("content-length") => {
                let text = std::str::from_utf8(value).map_err(|_| ())?;
                let length = Part::Length(text.parse().map_err(|_| ())?);
                match self.part {
                    // A body in chunks says its length itself.
                    Part::ChunkSize => {}
                    Part::Length(_) if self.part != length => return Err(()),
                    _ => self.part = length,
                }
            }
            17 if name.eq_ignore_ascii_case("transfer-encoding") => {
                let last = value.rsplit(|&byte| byte == b',').next().unwrap_or_default();
                let chunked = last.trim_ascii().eq_ignore_ascii_case(b"chunked");
                self.part = if chunked { Part::ChunkSize } else { Part::UntilEof };
            }
            10 if name.eq_ignore_ascii_case("connection") => {
                for token in value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii) {
                    if token.eq_ignore_ascii_case(b"close") {
                        self.close = true;
                    } else if token.eq_ignore_ascii_case(b"keep-alive") {
                        self.close = false;
                    }
                }
            }
            12 if name.eq_ignore_ascii_case("x-lab-worker") => {
                self.worker = Some(workers.place(value));
            }
            _ => {}
        }
        Ok(())
    }
}

/// The names of workers that answered, each once.
#[derive(Debug, Default)]
pub struct Workers {
    names: Vec<Vec<u8>>,
    places: std::collections::HashMap<Vec<u8>, u32>,
}

impl Workers {
    fn place(&mut self, name: &[u8]) -> u32 {
        if let Some(place) = self.places.get(name) {
            return *place;
        }
        let place = self.names.len() as u32;
        self.names.push(name.to_vec());
        self.places.insert(name.to_vec(), place);
        place
    }

    /// The name at a place.
    pub fn name(&self, place: usize) -> String {
        String::from_utf8_lossy(&self.names[place]).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::{Progress, Response, Workers};

    /// However the bytes are cut, the answer is the same, and it comes with the last byte.
    fn every_cut(bytes: &[u8], status: u16, close: bool, body: u64) {
        let mut workers = Workers::default();
        for cut in 1..=bytes.len() {
            let mut response = Response::default();
            if cut < bytes.len() {
                assert_eq!(response.feed(&bytes[..cut], &mut workers), Progress::More, "{cut}");
                assert_eq!(response.feed(&bytes[cut..], &mut workers), Progress::Done, "{cut}");
            } else {
                assert_eq!(response.feed(bytes, &mut workers), Progress::Done);
            }
            let found = (response.status, response.close, response.bytes);
            assert_eq!(found, (status, close, body), "cut at {cut}");
        }
        let mut response = Response::default();
        let (last, first) = bytes.split_last().unwrap();
        for byte in first {
            assert_eq!(response.feed(&[*byte], &mut workers), Progress::More);
        }
        assert_eq!(response.feed(&[*last], &mut workers), Progress::Done);
    }

    fn feed(bytes: &[u8]) -> (Response, Progress) {
        let mut response = Response::default();
        let progress = response.feed(bytes, &mut Workers::default());
        (response, progress)
    }

    #[test]
    fn a_length() {
        every_cut(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 200, false, 5);
        every_cut(
            b"HTTP/1.1 500 No\r\ncontent-length:2\r\nConnection: close\r\n\r\nno",
            500,
            true,
            2,
        );
        every_cut(b"HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\n!", 200, true, 1);
        every_cut(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 200, false, 0);
    }

    #[test]
    fn what_the_connection_field_says() {
        for (version, value, close) in [
            (1, "keep-alive", false),
            (1, "x, Close", true),
            (1, "upgrade", false),
            (0, "Keep-Alive", false),
            (0, "upgrade", true),
        ] {
            let head = format!("HTTP/1.{version} 204 N\r\nConnection: {value}\r\n\r\n");
            every_cut(head.as_bytes(), 204, close, 0);
        }
    }

    #[test]
    fn chunks() {
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        every_cut(format!("{head}5\r\nhello\r\n0\r\n\r\n").as_bytes(), 200, false, 5);
        let more = format!("{head}A;x=0\r\n0123456789\r\n1\r\n-\r\n0\r\na: b\r\n\r\n");
        every_cut(more.as_bytes(), 200, false, 11);
        every_cut(format!("{head}0\r\n\r\n").as_bytes(), 200, false, 0);
        for wrong in ["\r\n", "x\r\n", "3\r\nhello\r\n0\r\n\r\n", "0\r\n\r\nmore", "0\r\n\0\r\n"] {
            assert_eq!(feed(format!("{head}{wrong}").as_bytes()).1, Progress::Garbage, "{wrong:?}");
        }
    }

    #[test]
    fn no_body_whatever_the_head_says() {
        every_cut(b"HTTP/1.1 204 No Content\r\n\r\n", 204, false, 0);
        every_cut(b"HTTP/1.1 304 Same\r\nContent-Length: 7\r\n\r\n", 304, false, 0);
        let mut response = Response::default();
        response.reset(true);
        let bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n";
        assert_eq!(response.feed(bytes, &mut Workers::default()), Progress::Done);
    }

    #[test]
    fn an_interim_response_is_passed_over() {
        let bytes =
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 E\r\nLink: x\r\n\r\nHTTP/1.1 204 N\r\n\r\n";
        every_cut(bytes, 204, false, 0);
    }

    #[test]
    fn until_the_end() {
        let (mut response, progress) = feed(b"HTTP/1.0 200 OK\r\n\r\nsome");
        assert_eq!((progress, response.bytes), (Progress::More, 4));
        assert!(response.end() && response.close);
        let (mut response, _) = feed(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello");
        assert!(!response.end(), "a length that was not kept");
        assert!(!Response::default().end(), "no answer at all");
    }

    #[test]
    fn what_is_no_answer() {
        for bytes in [
            &b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nhello"[..],
            b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n!",
            b"SSH-2.0-x\r\n\r\n",
            b"HTTP/2.0 200 OK\r\n\r\n",
            b"<html>",
        ] {
            assert_eq!(feed(bytes).1, Progress::Garbage, "{}", String::from_utf8_lossy(bytes));
        }
        let endless = [b"HTTP/1.1 200 OK\r\nX: ".to_vec(), vec![b'x'; 70_000]].concat();
        assert_eq!(feed(&endless).1, Progress::Garbage);
    }

    #[test]
    fn workers_are_told_apart() {
        let mut workers = Workers::default();
        let mut ask = |name: &str| {
            let mut response = Response::default();
            let text = format!("HTTP/1.1 204 N\r\nx-LAB-worker: {name}\r\n\r\n");
            assert_eq!(response.feed(text.as_bytes(), &mut workers), Progress::Done);
            response.worker.unwrap()
        };
        assert_eq!([ask("12"), ask("34"), ask("12")], [0, 1, 0]);
        assert_eq!([workers.name(0), workers.name(1)], ["12", "34"]);
    }
}
