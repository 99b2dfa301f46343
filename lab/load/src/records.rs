//! A FastCGI server's records, read as they come.

use crate::gateway::{HEADER, ID};

const END_REQUEST: u8 = 3;
const STDOUT: u8 = 6;
const STDERR: u8 = 7;

/// A record that does not belong here.
#[derive(Debug, PartialEq, Eq)]
pub struct Misplaced;

/// What a record brought.
#[derive(Debug, PartialEq, Eq)]
pub enum Piece<'d> {
    /// A part of the answer.
    Out(&'d [u8]),
    /// The end, with the protocol's status (section 5.5; 0 is success).
    End(u8),
}

#[derive(Clone, Copy, Debug, Default)]
enum Part {
    #[default]
    Header,
    Content,
    Padding,
}

/// Where in a record the next byte belongs.
#[derive(Debug, Default)]
pub struct Records {
    part: Part,
    header: [u8; HEADER],
    /// Bytes of the header that are there, or of the part that are to come.
    count: usize,
    /// The content of END_REQUEST.
    end: [u8; 8],
    /// The answer's stream has ended.
    closed: bool,
}

impl Records {
    /// The next piece of `data`, which is moved on; None when it is used up.
    pub fn next<'d>(&mut self, data: &mut &'d [u8]) -> Result<Option<Piece<'d>>, Misplaced> {
        loop {
            let kind = self.header[1];
            match self.part {
                Part::Header => {
                    let room = &mut self.header[self.count..];
                    let step = room.len().min(data.len());
                    room[..step].copy_from_slice(&data[..step]);
                    *data = &data[step..];
                    self.count += step;
                    if self.count < HEADER {
                        return Ok(None);
                    }
                    self.begin()?;
                }
                Part::Content if self.count == 0 => {
                    (self.part, self.count) = (Part::Padding, usize::from(self.header[6]));
                }
                Part::Padding if self.count == 0 => {
                    self.part = Part::Header;
                    if kind == END_REQUEST {
                        return Ok(Some(Piece::End(self.end[4])));
                    }
                }
                Part::Content | Part::Padding => {
                    if data.is_empty() {
                        return Ok(None);
                    }
                    let (piece, rest) = data.split_at(self.count.min(data.len()));
                    *data = rest;
                    let at = self.end.len().saturating_sub(self.count);
                    self.count -= piece.len();
                    match (self.part, kind) {
                        (Part::Content, STDOUT) => return Ok(Some(Piece::Out(piece))),
                        (Part::Content, END_REQUEST) => {
                            self.end[at..at + piece.len()].copy_from_slice(piece);
                        }
                        _ => {}
                    }
                }
            }
        }
    }

    /// A whole header is there.
    fn begin(&mut self) -> Result<(), Misplaced> {
        let [version, kind, id1, id0, length1, length0, _, _] = self.header;
        let length = usize::from(u16::from_be_bytes([length1, length0]));
        let fits = match kind {
            STDOUT => !self.closed,
            STDERR => true,
            END_REQUEST => length == self.end.len(),
            _ => false,
        };
        if version != 1 || u16::from_be_bytes([id1, id0]) != ID || !fits {
            return Err(Misplaced);
        }
        self.closed |= kind == STDOUT && length == 0;
        (self.part, self.count) = (Part::Content, length);
        Ok(())
    }
}

/// What an answer in records amounts to, when the request has ended well: what the server wrote.
pub fn whole(mut data: &[u8]) -> Option<Vec<u8>> {
    let (mut records, mut out) = (Records::default(), Vec::new());
    loop {
        match records.next(&mut data) {
            Ok(Some(Piece::Out(piece))) => out.extend_from_slice(piece),
            Ok(Some(Piece::End(0))) => return Some(out),
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Misplaced, Piece, Records, whole};

    const ANSWER: &[u8] = b"\x01\x07\0\x01\0\x03\x05\0err.....\x01\x06\0\x01\0\x05\x03\0hello...\
        \x01\x06\0\x01\0\x01\0\0!\x01\x06\0\x01\0\0\0\0\x01\x03\0\x01\0\x08\x02\0\0\0\0\x07\0\0\0\0..";

    #[test]
    fn however_the_bytes_are_cut() {
        for cut in 1..ANSWER.len() {
            let (mut records, mut out, mut ends) = (Records::default(), Vec::new(), 0);
            for part in ANSWER.chunks(cut) {
                let mut data = part;
                while let Some(piece) = records.next(&mut data).expect("sound") {
                    match piece {
                        Piece::Out(bytes) => out.extend_from_slice(bytes),
                        Piece::End(status) => ends += 1 + u32::from(status),
                    }
                }
                assert!(data.is_empty());
            }
            assert_eq!((out.as_slice(), ends), (&b"hello!"[..], 1), "cut at {cut}");
        }
        assert_eq!(whole(ANSWER).as_deref(), Some(&b"hello!"[..]));
        assert_eq!(whole(&ANSWER[..ANSWER.len() - 1]), None);
    }

    #[test]
    fn records_that_do_not_belong_here() {
        for wrong in [
            &b"HTTP/1.1 200 OK\r\n"[..],
            b"\x02\x06\0\x01\0\0\0\0",
            b"\x01\x06\0\x02\0\0\0\0",
            b"\x01\x05\0\x01\0\0\0\0",
            b"\x01\x03\0\x01\0\x07\0\0",
            b"\x01\x06\0\x01\0\0\0\0\x01\x06\0\x01\0\x01\0\0!",
        ] {
            assert_eq!(Records::default().next(&mut &wrong[..]), Err(Misplaced), "{wrong:?}");
        }
    }
}
