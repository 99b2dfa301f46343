//! What HTTP allows in an app's reply, whatever the engine. A refusal is a sentence for the log.

use std::fmt;

/// What becomes of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// The client gets it.
    Send,
    /// Framing and connection are the front's: it is left out.
    Drop,
    /// The body comes in a transfer coding: that is to be undone first.
    Coded,
}

/// Why a reply cannot go out. Plain data: an engine's exceptions may pass over it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bad<'a> {
    /// No status of a final reply.
    Status(i64),
    /// A Content-Length that is none.
    Length(&'a [u8]),
    /// Two of them.
    TwoLengths,
}

impl fmt::Display for Bad<'_> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Bad::Status(status) => {
                write!(f, "the app's status is {status}, not between 200 and 999")
            }
            Bad::Length(value) => {
                write!(f, "the app's Content-Length is \"{}\", not a number", value.escape_ascii())
            }
            Bad::TwoLengths => f.write_str("the app's reply has two Content-Lengths"),
        }
    }
}

/// The rules for one reply's headers.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    status: u16,
    content_length: bool,
}

impl Rules {
    /// For a reply with this status. Below 200 a client waits on for the real answer.
    pub fn new(status: i64) -> Result<Rules, Bad<'static>> {
        match u16::try_from(status) {
            Ok(status @ 200..=999) => Ok(Rules { status, content_length: false }),
            _ => Err(Bad::Status(status)),
        }
    }

    /// The status.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// Judges one line. Length and connection: RFC 9110, sections 7.6.1 and 8.6.
    pub fn judge<'a>(&mut self, name: &[u8], value: &'a [u8]) -> Result<Field, Bad<'a>> {
        let is = |other: &[u8]| name.eq_ignore_ascii_case(other);
        let sent = match name.len() {
            10 if is(b"connection") => {
                let words = || value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
                let says = |word: &[u8]| words().any(|w| w.eq_ignore_ascii_case(word));
                says(b"close") || says(b"upgrade")
            }
            10 => !is(b"keep-alive"),
            14 if is(b"content-length") => {
                self.length(value)?;
                self.status != 204
            }
            16 => !is(b"proxy-connection"),
            17 if is(b"transfer-encoding") => return Ok(Field::Coded),
            _ => true,
        };
        Ok(if sent { Field::Send } else { Field::Drop })
    }

    fn length<'a>(&mut self, value: &'a [u8]) -> Result<(), Bad<'a>> {
        if value.is_empty() || value.len() > 18 || !value.iter().all(u8::is_ascii_digit) {
            return Err(Bad::Length(value));
        }
        if std::mem::replace(&mut self.content_length, true) {
            return Err(Bad::TwoLengths);
        }
        Ok(())
    }
}

/// Whether this is a header's name: RFC 9110, section 5.6.2.
pub fn is_name(name: &[u8]) -> bool {
    !name.is_empty() && name.iter().all(|byte| NAME_BYTES[*byte as usize])
}

/// Whether a value may hold it: RFC 9110, section 5.5, and the bytes above ASCII.
pub fn is_value_byte(byte: u8) -> bool {
    byte >= b' ' && byte != 0x7f || byte == b'\t'
}

static NAME_BYTES: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = (byte as u8).is_ascii_alphanumeric();
        byte += 1;
    }
    let others = b"!#$%&'*+-.^_`|~";
    let mut index = 0;
    while index < others.len() {
        table[others[index] as usize] = true;
        index += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_names_and_values_are_http() {
        assert!(Rules::new(199).is_err() && Rules::new(1000).is_err() && Rules::new(-1).is_err());
        assert!(is_name(b"x-a_b") && !is_name(b"") && !is_name(b"a b") && !is_name(b"a:"));
        assert!(is_value_byte(b'\t') && is_value_byte(0xe9) && !is_value_byte(b'\r'));
    }

    #[test]
    fn the_connection_is_the_fronts() {
        let mut rules = Rules::new(200).unwrap();
        let mut judge =
            |name: &str, value: &'static str| rules.judge(name.as_bytes(), value.as_bytes());
        assert_eq!(judge("Connection", "keep-alive"), Ok(Field::Drop));
        assert_eq!(judge("connection", "a, Close"), Ok(Field::Send));
        assert_eq!(judge("Keep-Alive", "5"), Ok(Field::Drop));
        assert_eq!(judge("Transfer-Encoding", "chunked"), Ok(Field::Coded));
        assert_eq!(judge("X", ""), Ok(Field::Send));
        assert!(judge("Content-Length", "x").is_err());
        assert_eq!(judge("Content-Length", "5"), Ok(Field::Send));
        assert!(judge("content-length", "5").is_err());
        assert_eq!(Rules::new(204).unwrap().judge(b"content-length", b"0"), Ok(Field::Drop));
    }
}
