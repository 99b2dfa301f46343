//! Finds the end of a response, and nothing more than that needs. Heads, chunk sizes and trailers
//! are httparse's. What a FastCGI or SCGI server answers has a head without a status line (RFC 3875,
//! section 6), and FastCGI cuts it into records.

use std::mem::{MaybeUninit, take};

use httparse::{EMPTY_HEADER, Header, ParserConfig, Status};

use crate::door::Door;
use crate::records::{Piece, Records};

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
    door: Door,
    records: Records,
    /// The beginning of a part that did not come in one read.
    begun: Vec<u8>,
}

impl Response {
    /// Forgets everything but the buffer. The answer to HEAD has no body whatever it says.
    pub fn reset(&mut self, door: Door, to_head: bool) {
        let mut begun = take(&mut self.begun);
        begun.clear();
        *self = Self { begun, door, no_body: to_head, ..Self::default() };
    }

    /// Takes what was read.
    pub fn feed(&mut self, mut data: &[u8], workers: &mut Workers) -> Progress {
        if self.door != Door::FastCgi {
            return self.feed_plain(data, workers);
        }
        loop {
            match self.records.next(&mut data) {
                Ok(None) => return Progress::More,
                Ok(Some(Piece::Out(bytes)))
                    if self.feed_plain(bytes, workers) != Progress::Garbage => {}
                // Nothing was asked that could be answered by more.
                Ok(Some(Piece::End(status))) if data.is_empty() => return self.ended(status),
                _ => return Progress::Garbage,
            }
        }
    }

    /// FastCGI's END_REQUEST came.
    fn ended(&mut self, protocol_status: u8) -> Progress {
        const OVERLOADED: u8 = 2;
        match (protocol_status, self.part) {
            (0, Part::UntilEof | Part::Length(0)) => Progress::Done,
            // What web servers make of it.
            (OVERLOADED, Part::Head) => {
                self.status = 503;
                Progress::Done
            }
            _ => Progress::Garbage,
        }
    }

    fn feed_plain(&mut self, data: &[u8], workers: &mut Workers) -> Progress {
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
        self.part == Part::UntilEof && self.door != Door::FastCgi
    }

    fn take(&mut self, mut data: &[u8], workers: &mut Workers) -> Progress {
        loop {
            let taken = match self.part {
                Part::Length(left) => {
                    self.bytes += left.min(data.len() as u64);
                    let Some(left) = left.checked_sub(data.len() as u64) else {
                        return Progress::Garbage;
                    };
                    self.part = Part::Length(left);
                    return if left == 0 { Progress::Done } else { Progress::More };
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
                Part::Head if self.door == Door::Http => self.take_head(data, workers),
                Part::Head => self.take_cgi_head(data, workers),
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
        self.without_body();
        Ok(Status::Complete(end))
    }

    fn take_cgi_head(&mut self, data: &[u8], workers: &mut Workers) -> Result<Status<usize>, ()> {
        let mut headers = [EMPTY_HEADER; MOST_HEADERS];
        let parsed = httparse::parse_headers(data, &mut headers).map_err(|_| ())?;
        let Status::Complete((end, headers)) = parsed else { return Ok(Status::Partial) };
        if headers.is_empty() {
            return Err(());
        }
        (self.status, self.part) = (200, Part::UntilEof);
        if headers.iter().any(|header| header.name.eq_ignore_ascii_case("location")) {
            self.status = 302;
        }
        for header in headers {
            if header.name.eq_ignore_ascii_case("status") {
                let code = header.value.get(..3).and_then(|code| std::str::from_utf8(code).ok());
                self.status = code.and_then(|code| code.parse().ok()).ok_or(())?;
            } else if !header.name.eq_ignore_ascii_case("transfer-encoding") {
                self.take_header(header, workers)?;
            }
        }
        self.without_body();
        Ok(Status::Complete(end))
    }

    fn without_body(&mut self) {
        if self.no_body || matches!(self.status, 101 | 204 | 304) {
            self.part = Part::Length(0);
        }
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
#[path = "response_test.rs"]
mod tests;
