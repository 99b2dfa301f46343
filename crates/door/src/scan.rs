//! Reads a connection's bytes beside the HTTP library and finds what its parser lets pass and then
//! hides: line ends without CR, a repeated Content-Length, one beside Transfer-Encoding, fragments,
//! and freedoms of chunked bodies. It keeps a few bytes of state and copies nothing but lines that
//! are cut in two.

use crate::Fault;
use crate::http::read_length;
use memchr::{memchr, memchr2};

/// So much is kept of a line that comes in pieces; the lines that count are shorter.
const KEPT: usize = 128;

/// Where in a request the next byte belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Before a request line.
    Between,
    RequestLine,
    Field,
    /// In a body, with so many bytes to come.
    Body(u64),
    ChunkSize,
    /// In a chunk, with so many bytes to come.
    Chunk(u64),
    ChunkCr,
    ChunkLf,
    Trailer,
    /// Not looking any more.
    Off,
}

/// The state of one connection.
#[derive(Debug)]
pub struct Scan {
    place: Place,
    /// Request heads that have begun.
    heads: u64,
    /// Bytes of the last one's request line.
    line: usize,
    /// The head's Content-Length.
    length: Option<u64>,
    /// Whether the head has a Transfer-Encoding.
    chunked: bool,
    /// The beginning of a line whose end has not come, and its last byte.
    kept: Vec<u8>,
    last: u8,
    /// Whether the line is longer than what is kept.
    cut: bool,
}

impl Default for Scan {
    fn default() -> Scan {
        let (place, kept) = (Place::Between, Vec::new());
        Scan { place, heads: 0, line: 0, length: None, chunked: false, kept, last: 0, cut: false }
    }
}

impl Scan {
    /// Takes what was read from the client. A fault is one of request `heads()`; it is the last.
    pub fn feed(&mut self, bytes: &[u8]) -> Option<Fault> {
        let fault = self.take(bytes).err();
        if fault.is_some() {
            self.stop();
        }
        fault
    }

    /// The number of the request that is being read or was read last; the first is 1.
    pub fn heads(&self) -> u64 {
        self.heads
    }

    /// How much of that request's line has come, in bytes.
    pub fn line_length(&self) -> usize {
        self.line
    }

    /// True if all of that request has come, and nothing of another.
    pub fn is_between(&self) -> bool {
        self.place == Place::Between
    }

    /// Looks at nothing more: what follows is no HTTP.
    pub fn stop(&mut self) {
        (self.place, self.kept) = (Place::Off, Vec::new());
    }

    fn take(&mut self, mut bytes: &[u8]) -> Result<(), Fault> {
        while let Some(first) = bytes.first() {
            let taken = match self.place {
                Place::Off => return Ok(()),
                Place::Between => {
                    // Empty lines in front of a request are skipped (RFC 9112, section 2.2).
                    if matches!(first, b'\r' | b'\n') {
                        1
                    } else {
                        (self.length, self.chunked) = (None, false);
                        (self.heads, self.line) = (self.heads + 1, 0);
                        self.place = Place::RequestLine;
                        0
                    }
                }
                Place::Body(left) => self.skip(bytes, left, Place::Body, Place::Between),
                Place::Chunk(left) => self.skip(bytes, left, Place::Chunk, Place::ChunkCr),
                Place::ChunkCr => self.expect(*first, b'\r', Place::ChunkLf)?,
                Place::ChunkLf => self.expect(*first, b'\n', Place::ChunkSize)?,
                _ => self.line(bytes)?,
            };
            bytes = &bytes[taken..];
        }
        Ok(())
    }

    fn skip(&mut self, bytes: &[u8], left: u64, here: fn(u64) -> Place, then: Place) -> usize {
        let taken = left.min(bytes.len() as u64);
        self.place = if taken == left { then } else { here(left - taken) };
        taken as usize
    }

    fn expect(&mut self, found: u8, wanted: u8, then: Place) -> Result<usize, Fault> {
        self.place = then;
        if found == wanted { Ok(1) } else { Err(Fault::BadChunk) }
    }

    /// Takes a line, or the part of one that is there; gives its length.
    #[inline]
    fn line(&mut self, bytes: &[u8]) -> Result<usize, Fault> {
        let end = match self.place {
            Place::RequestLine => {
                let end = memchr2(b'\n', b'#', bytes);
                self.line += end.unwrap_or(bytes.len());
                end
            }
            _ => memchr(b'\n', bytes),
        };
        let Some(end) = end else {
            self.keep(bytes);
            return Ok(bytes.len());
        };
        if bytes[end] == b'#' {
            return Err(Fault::Fragment);
        }
        let part = &bytes[..end];
        if self.kept.is_empty() {
            match part.split_last() {
                Some((b'\r', line)) => self.whole(line, part.len() > KEPT)?,
                _ => return Err(Fault::BareLineFeed),
            }
        } else {
            self.keep(part);
            if self.last != b'\r' {
                return Err(Fault::BareLineFeed);
            }
            let mut kept = std::mem::take(&mut self.kept);
            let cut = std::mem::take(&mut self.cut);
            if !cut {
                kept.pop();
            }
            self.whole(&kept, cut)?;
        }
        Ok(end + 1)
    }

    fn keep(&mut self, part: &[u8]) {
        let Some(last) = part.last() else { return };
        let room = KEPT - self.kept.len();
        self.last = *last;
        self.cut |= part.len() > room;
        self.kept.extend_from_slice(&part[..part.len().min(room)]);
    }

    /// Judges a line without its end. One longer than `KEPT` is `cut`: maybe not all of it is there.
    fn whole(&mut self, line: &[u8], cut: bool) -> Result<(), Fault> {
        match self.place {
            Place::RequestLine => self.place = Place::Field,
            Place::Field if line.is_empty() => {
                self.place = match self.length {
                    _ if self.chunked => Place::ChunkSize,
                    Some(length) if length > 0 => Place::Body(length),
                    _ => Place::Between,
                };
            }
            Place::Field => self.field(line, cut)?,
            Place::ChunkSize => {
                self.place = match chunk_size(line, cut)? {
                    0 => Place::Trailer,
                    size => Place::Chunk(size),
                };
            }
            Place::Trailer if line.is_empty() => self.place = Place::Between,
            _ => {}
        }
        Ok(())
    }

    /// Looks for the two fields that say where a request ends (RFC 9112, section 6.3), and for a
    /// line that is folded (section 5.2).
    fn field(&mut self, line: &[u8], cut: bool) -> Result<(), Fault> {
        match line.first() {
            Some(b' ' | b'\t') => return Err(Fault::Folded),
            Some(b'c' | b'C' | b't' | b'T') => {}
            // Most lines are neither, and their first byte says so.
            _ => return Ok(()),
        }
        if let Some(value) = value_of(line, b"content-length:") {
            if self.chunked {
                return Err(Fault::LengthAndCoding);
            }
            let length = read_length(value).filter(|_| !cut).ok_or(Fault::BadLength)?;
            if self.length.replace(length).is_some() {
                return Err(Fault::Lengths);
            }
        } else if let Some(value) = value_of(line, b"transfer-encoding:") {
            if self.length.is_some() {
                return Err(Fault::LengthAndCoding);
            }
            if cut || self.chunked || !value.eq_ignore_ascii_case(b"chunked") {
                return Err(Fault::BadCoding);
            }
            self.chunked = true;
        }
        Ok(())
    }
}

/// The value of a line that begins with `name` and its colon, without the blanks around it.
fn value_of<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let (start, value) = line.split_at_checked(name.len())?;
    start.eq_ignore_ascii_case(name).then(|| trim(value))
}

fn trim(mut value: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = value {
        value = rest;
    }
    value
}

/// The size that begins a chunk: hexadecimal digits, then nothing or extensions, which mean
/// nothing here (RFC 9112, section 7.1), and no long ones (section 7.1.1).
fn chunk_size(line: &[u8], cut: bool) -> Result<u64, Fault> {
    let digits = line.iter().take_while(|c| c.is_ascii_hexdigit()).count();
    let extension = &line[digits..];
    let blanks = extension.iter().take_while(|c| matches!(c, b' ' | b'\t')).count();
    let fits = !cut && (1..=16).contains(&digits);
    let closed = extension.is_empty() || extension.get(blanks) == Some(&b';');
    if !fits || !closed || extension.iter().any(|c| c.is_ascii_control() && *c != b'\t') {
        return Err(Fault::BadChunk);
    }
    let value = |c: &u8| (*c as char).to_digit(16).map_or(0, u64::from);
    Ok(line[..digits].iter().fold(0, |size, c| size << 4 | value(c)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The number of the last head and what is wrong with it, fed in pieces of `size`.
    fn scan(bytes: &[u8], size: usize) -> (u64, Option<Fault>) {
        let mut scan = Scan::default();
        let fault = bytes.chunks(size).find_map(|piece| scan.feed(piece));
        (scan.heads(), fault)
    }

    fn fault(bytes: &str) -> Option<Fault> {
        let whole = scan(bytes.as_bytes(), bytes.len());
        for size in 1..bytes.len() {
            assert_eq!(scan(bytes.as_bytes(), size), whole, "{bytes:?} in pieces of {size}");
        }
        whole.1
    }

    fn post(fields: &str, body: &str) -> Option<Fault> {
        fault(&format!("POST / HTTP/1.1\r\nHost: a\r\n{fields}\r\n{body}"))
    }

    #[test]
    fn requests_are_counted() {
        let one = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
        let sized = "POST / HTTP/1.1\r\nCONTENT-length:\t 5 \r\n\r\nGET /\r\n";
        let chunks = "POST / HTTP/1.1\r\ntransfer-encoding: CHUNKED\r\n\r\n\
                      3\r\nGET\r\n00a;x=\"y\"\r\n0123456789\r\n0\r\nA: b\r\n\r\n";
        let all = [one, sized, "\r\n", chunks, one].concat();
        for size in 1..all.len() {
            assert_eq!(scan(all.as_bytes(), size), (4, None));
        }
        let bad = [&all, "GET / HTTP/1.1\n"].concat();
        assert_eq!(scan(bad.as_bytes(), 7), (5, Some(Fault::BareLineFeed)));
    }

    #[test]
    fn bare_line_feeds() {
        let bare = Some(Fault::BareLineFeed);
        assert_eq!(fault("GET / HTTP/1.1\nHost: a\r\n\r\n"), bare);
        assert_eq!(fault("GET / HTTP/1.1\r\nHost: a\n\r\n"), bare);
        assert_eq!(fault("GET / HTTP/1.1\r\nHost: a\r\n\n"), bare);
        let chunked = "Transfer-Encoding: chunked\r\n";
        assert_eq!(post(chunked, "1\na\r\n0\r\n\r\n"), bare);
        assert_eq!(post(chunked, "0\n\r\n"), bare);
        assert_eq!(post(chunked, "0\r\nA: b\n\r\n"), bare);
        assert_eq!(post(chunked, "0\r\n\n"), bare);
        assert_eq!(fault("\n\r\n\nGET / HTTP/1.1\r\n\r\n"), None);
    }

    #[test]
    fn what_the_library_would_fold_into_one() {
        let length = "Content-Length: 1\r\n";
        let coding = "Transfer-Encoding: chunked\r\n";
        assert_eq!(post(length, "a"), None);
        assert_eq!(post(&[length, length].concat(), "a"), Some(Fault::Lengths));
        assert_eq!(post(&[length, coding].concat(), ""), Some(Fault::LengthAndCoding));
        assert_eq!(post(&[coding, length].concat(), ""), Some(Fault::LengthAndCoding));
        assert_eq!(post(&[coding, coding].concat(), ""), Some(Fault::BadCoding));
        assert_eq!(post("Content-Length: 1, 1\r\n", ""), Some(Fault::BadLength));
        let long = format!("Content-Length: {}1\r\n", " ".repeat(KEPT));
        assert!(scan(format!("POST / HTTP/1.1\r\n{long}").as_bytes(), 1).1.is_some());
    }

    #[test]
    fn folded_lines() {
        assert_eq!(post("X: y\r\n z\r\n", ""), Some(Fault::Folded));
        assert_eq!(fault("GET / HTTP/1.1\r\n\tHost: a\r\n\r\n"), Some(Fault::Folded));
    }

    #[test]
    fn fragments() {
        assert_eq!(fault("GET /a#b HTTP/1.1\r\n\r\n"), Some(Fault::Fragment));
        assert_eq!(fault("GET /a HTTP/1.1\r\nA: #\r\n\r\n"), None);
    }

    #[test]
    fn chunks() {
        let chunked = |body| post("Transfer-Encoding: chunked\r\n", body);
        for bad in [
            "\r\n",
            ";a\r\n",
            "x\r\n",
            "0x1\r\na\r\n",
            "-1\r\n",
            "+1\r\na\r\n",
            " 1\r\na\r\n",
            "1 \r\na\r\n",
            "1 a\r\na\r\n",
            "1;\0\r\na\r\n",
            "1;a\rb\r\na\r\n",
            "1\r\nab\r\n",
            "1\r\na\n",
            "1\r\na\rb",
            "00000000000000001\r\na\r\n",
            "10000000000000000\r\n",
        ] {
            assert_eq!(chunked(bad), Some(Fault::BadChunk), "{bad:?}");
        }
        for fine in [
            "1\r\na\r\n0\r\n\r\n",
            "1 ;a\r\na\r\n",
            "01\t;a;b=c\r\na\r\n",
            "ffffffffffffffff\r\na",
            "0\r\nA: b\r\nB:\r\n\r\n",
        ] {
            assert_eq!(chunked(fine), None, "{fine:?}");
        }
    }

    #[test]
    fn long_lines_in_pieces_need_no_room() {
        let line = format!("GET /{} HTTP/1.1\r\nX: {}\r\n\r\n", "a".repeat(9000), "b".repeat(9000));
        let mut scan = Scan::default();
        for piece in line.as_bytes().chunks(1000) {
            assert_eq!(scan.feed(piece), None);
            assert!(scan.kept.len() <= KEPT);
        }
        assert_eq!(scan.line_length(), "GET / HTTP/1.1\r".len() + 9000);
        assert!(scan.is_between());
    }

    proptest! {
        #[test]
        fn pieces_make_no_difference(
            lines in prop::collection::vec("(GET / HTTP/1.1|Content-Length: [0-9]|\
                Transfer-Encoding: chunked|[0-9a-f]{1,2}(;a)?|[a#\\n\\r]{0,3}|)(\r\n|\n)", 0..12),
            size in 1usize..40,
        ) {
            let bytes = lines.concat().into_bytes();
            prop_assert_eq!(scan(&bytes, size), scan(&bytes, bytes.len().max(1)));
        }
    }
}
