//! Reply frames: what a worker writes into its slot's reply window and the front relays.
//!
//! A frame is four bytes (kind above bit 24, length below) and its payload. A reply is one HEAD,
//! any number of BODY and one END. A slot that is DONE without an END was cut short: its worker
//! died or gave up. Before the HEAD there may be INTERIM frames. A FILE stands where the BODY frames
//! would, a HIJACK where the HEAD would; an INTERIM in front of it that is a final head, or a 101, is
//! what the client gets first. The fd of both has been passed over the exchange before
//! (`wire::exchange`). ERRORS may stand anywhere before the END, where the door has a way for them.

/// The response's status and headers.
pub const HEAD: u8 = 1;
/// Bytes of the response body.
pub const BODY: u8 = 2;
/// The reply is whole.
pub const END: u8 = 3;

/// The response body is a part of a file: offset and length, eight bytes each.
pub const FILE: u8 = 4;
/// From here on the client's connection is the app's, raw; no payload, nothing but END follows.
pub const HIJACK: u8 = 5;
/// Status and headers of an interim (1xx) response.
pub const INTERIM: u8 = 6;
/// Bytes that the app wrote to `rack.errors`.
pub const ERRORS: u8 = 7;

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

/// The payload of a FILE frame.
pub fn file(offset: u64, length: u64) -> [u8; 16] {
    let mut payload = [0; 16];
    payload[..8].copy_from_slice(&offset.to_le_bytes());
    payload[8..].copy_from_slice(&length.to_le_bytes());
    payload
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
    /// Some bytes of `rack.errors`, not always a whole frame.
    Errors(&'a [u8]),
    /// The body is this part of the passed file.
    File {
        /// Where it begins in the file.
        offset: u64,
        /// How many bytes it has.
        length: u64,
    },
    /// The connection goes to the app.
    Hijack,
    /// A whole INTERIM payload, of HEAD's form.
    Interim(&'a [u8]),
    /// The end.
    End,
}

/// Reads frames from a stream that arrives in pieces.
#[derive(Default)]
pub struct Decoder {
    /// The bytes of a frame header of which only a part has arrived, and how many.
    header: ([u8; 4], usize),
    /// A payload that is given whole and arrives in pieces.
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
            let whole = matches!(kind, HEAD | INTERIM | FILE);
            self.current = (left > 0 || whole).then_some((kind, left));
            match kind {
                _ if whole && self.head.len() + part.len() + left > HEAD_MAX => {
                    return Err(Malformed);
                }
                _ if whole && left > 0 => {
                    self.head.extend_from_slice(part);
                    return Ok(None);
                }
                _ if whole => {
                    self.current = None;
                    if self.head.is_empty() {
                        return event(kind, part).map(Some);
                    }
                    self.head.extend_from_slice(part);
                    return event(kind, &self.head).map(Some);
                }
                BODY if !part.is_empty() => return Ok(Some(Event::Body(part))),
                ERRORS if !part.is_empty() => return Ok(Some(Event::Errors(part))),
                BODY | ERRORS if left > 0 => return Ok(None),
                BODY | ERRORS => {}
                END if left == 0 && part.is_empty() => return Ok(Some(Event::End)),
                HIJACK if left == 0 && part.is_empty() => return Ok(Some(Event::Hijack)),
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

/// What a payload says that is given whole.
fn event(kind: u8, payload: &[u8]) -> Result<Event<'_>, Malformed> {
    match kind {
        HEAD => Ok(Event::Head(payload)),
        INTERIM => Ok(Event::Interim(payload)),
        _ => {
            let (offset, length) = payload.split_first_chunk::<8>().ok_or(Malformed)?;
            let length = length.try_into().map_err(|_| Malformed)?;
            let (offset, length) = (u64::from_le_bytes(*offset), u64::from_le_bytes(length));
            offset.checked_add(length).ok_or(Malformed)?;
            Ok(Event::File { offset, length })
        }
    }
}

/// Cuts at most `length` bytes from the front of `input`.
fn cut<'a>(input: &mut &'a [u8], length: usize) -> &'a [u8] {
    let (part, rest) = input.split_at(length.min(input.len()));
    *input = rest;
    part
}
