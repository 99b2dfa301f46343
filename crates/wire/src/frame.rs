//! Reply frames: what a worker writes into its slot's reply window and the front relays.
//!
//! A frame is four bytes (kind above bit 24, length below) and its payload. A reply is one HEAD,
//! any number of BODY and one END. A slot that is DONE without an END was cut short: its worker
//! died or gave up. Kinds 4 (file descriptor over the worker's socketpair) and 5 (hijack) are
//! reserved.

/// The response's status and headers.
pub const HEAD: u8 = 1;
/// Bytes of the response body.
pub const BODY: u8 = 2;
/// The reply is whole.
pub const END: u8 = 3;

/// Longest payload of one frame; longer bodies are several frames.
pub const PAYLOAD_MAX: usize = 0xff_ffff;
/// Longest response head the front accepts.
pub const HEAD_MAX: usize = 256 * 1024;

/// The four bytes before a payload.
pub fn header(kind: u8, length: usize) -> [u8; 4] {
    debug_assert!(length <= PAYLOAD_MAX);
    (u32::from(kind) << 24 | length as u32).to_le_bytes()
}

/// Starts a HEAD payload.
pub fn start_head(head: &mut Vec<u8>, status: u16) {
    head.clear();
    head.extend_from_slice(&status.to_le_bytes());
}

/// Adds a header to a HEAD payload; false when name or value is too long to travel.
pub fn push_field(head: &mut Vec<u8>, name: &[u8], value: &[u8]) -> bool {
    let (Ok(n), Ok(v)) = (u16::try_from(name.len()), u16::try_from(value.len())) else {
        return false;
    };
    head.extend_from_slice(&n.to_le_bytes());
    head.extend_from_slice(&v.to_le_bytes());
    head.extend_from_slice(name);
    head.extend_from_slice(value);
    true
}

/// What a worker wrote makes no sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// A HEAD payload being read: the status, then the fields.
pub struct Head<'a> {
    /// Status code as the app gave it.
    pub status: u16,
    rest: &'a [u8],
}

impl<'a> Head<'a> {
    /// Reads the status.
    pub fn parse(payload: &'a [u8]) -> Result<Head<'a>, Malformed> {
        let (status, rest) = payload.split_at_checked(2).ok_or(Malformed)?;
        Ok(Head { status: u16::from_le_bytes([status[0], status[1]]), rest })
    }

    fn field(&mut self) -> Option<(&'a [u8], &'a [u8])> {
        let (lengths, rest) = self.rest.split_at_checked(4)?;
        let name = u16::from_le_bytes([lengths[0], lengths[1]]) as usize;
        let value = u16::from_le_bytes([lengths[2], lengths[3]]) as usize;
        let (name, rest) = rest.split_at_checked(name)?;
        let (value, rest) = rest.split_at_checked(value)?;
        self.rest = rest;
        Some((name, value))
    }
}

impl<'a> Iterator for Head<'a> {
    type Item = Result<(&'a [u8], &'a [u8]), Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_none() {
            self.rest = &[];
        }
        Some(field.ok_or(Malformed))
    }
}

/// One thing found in the stream of frames.
#[derive(Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// A whole HEAD payload.
    Head(&'a [u8]),
    /// Some bytes of the body, not always a whole frame.
    Body(&'a [u8]),
    /// The end.
    End,
}

/// Reads frames from a stream that arrives in pieces.
#[derive(Default)]
pub struct Decoder {
    /// The bytes of a frame header of which only a part has arrived, and how many.
    header: ([u8; 4], usize),
    /// A HEAD payload that arrives in pieces.
    head: Vec<u8>,
    /// Kind and bytes still to come of the frame being read.
    current: Option<(u8, usize)>,
}

impl Decoder {
    /// Reads from `input`, moving it on past what was read; `None` when more is needed.
    ///
    /// The event borrows from `input` where the piece is whole, else from the decoder.
    pub fn next<'s, 'i: 's>(
        &'s mut self,
        input: &mut &'i [u8],
    ) -> Result<Option<Event<'s>>, Malformed> {
        loop {
            let Some((kind, left)) = self.current else {
                if !self.read_header(input) {
                    return Ok(None);
                }
                continue;
            };
            let part = cut(input, left);
            let left = left - part.len();
            self.current = (left > 0 || kind == HEAD).then_some((kind, left));
            match kind {
                HEAD if part.len() + left > HEAD_MAX => return Err(Malformed),
                HEAD if left > 0 => {
                    self.head.extend_from_slice(part);
                    return Ok(None);
                }
                HEAD => {
                    self.current = None;
                    if self.head.is_empty() {
                        return Ok(Some(Event::Head(part)));
                    }
                    self.head.extend_from_slice(part);
                    return Ok(Some(Event::Head(&self.head)));
                }
                BODY if !part.is_empty() => return Ok(Some(Event::Body(part))),
                BODY if left > 0 => return Ok(None),
                BODY => {}
                END if left == 0 && part.is_empty() => return Ok(Some(Event::End)),
                _ => return Err(Malformed),
            }
        }
    }

    /// Reads the four bytes before a payload; false when some are still to come.
    fn read_header(&mut self, input: &mut &[u8]) -> bool {
        let (bytes, have) = &mut self.header;
        let part = cut(input, 4 - *have);
        bytes[*have..*have + part.len()].copy_from_slice(part);
        *have += part.len();
        if *have < 4 {
            return false;
        }
        let word = u32::from_le_bytes(*bytes);
        *have = 0;
        self.head.clear();
        self.current = Some(((word >> 24) as u8, (word & 0xff_ffff) as usize));
        true
    }
}

/// Cuts at most `length` bytes from the front of `input`.
fn cut<'a>(input: &mut &'a [u8], length: usize) -> &'a [u8] {
    let (part, rest) = input.split_at(length.min(input.len()));
    *input = rest;
    part
}
