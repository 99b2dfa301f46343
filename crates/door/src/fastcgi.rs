//! FastCGI 1.0 (its specification's sections are named): records, and the names and values in them.
//! Nothing here keeps state: a reader asks for the record at the beginning of what has come.

mod write;

pub use write::{
    put_begin, put_end, put_header, put_pair, put_stream, put_stream_end, put_unknown_type,
    put_values,
};

use crate::Fault;

/// Length of a record's header in bytes (section 3.3).
pub const HEADER: usize = 8;
/// Longest content of a record in bytes (section 3.3).
pub const CONTENT_MAX: usize = 65535;
/// Of what speaks FastCGI there is one version (section 3.3).
const VERSION: u8 = 1;

/// Types of records (section 8).
pub mod kind {
    #![allow(missing_docs)]
    pub const BEGIN_REQUEST: u8 = 1;
    pub const ABORT_REQUEST: u8 = 2;
    pub const END_REQUEST: u8 = 3;
    pub const PARAMS: u8 = 4;
    pub const STDIN: u8 = 5;
    pub const STDOUT: u8 = 6;
    pub const STDERR: u8 = 7;
    pub const DATA: u8 = 8;
    pub const GET_VALUES: u8 = 9;
    pub const GET_VALUES_RESULT: u8 = 10;
    pub const UNKNOWN_TYPE: u8 = 11;
}

/// Roles of an application (section 6).
pub mod role {
    #![allow(missing_docs)]
    pub const RESPONDER: u16 = 1;
    pub const AUTHORIZER: u16 = 2;
    pub const FILTER: u16 = 3;
}

/// What END_REQUEST says of how the protocol went (section 5.5).
pub mod status {
    #![allow(missing_docs)]
    pub const REQUEST_COMPLETE: u8 = 0;
    pub const CANT_MPX_CONN: u8 = 1;
    pub const OVERLOADED: u8 = 2;
    pub const UNKNOWN_ROLE: u8 = 3;
}

/// A record without its padding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// One of `kind`, or another.
    pub kind: u8,
    /// The request it belongs to; 0: the connection itself (section 3.3).
    pub id: u16,
    /// Its content.
    pub content: &'a [u8],
}

/// The record at the beginning of `bytes` and its whole length (header, content, padding) in bytes.
/// None: not all of it is there yet.
pub fn record(bytes: &[u8]) -> Result<Option<(Record<'_>, usize)>, Fault> {
    match bytes.first() {
        None => return Ok(None),
        Some(&VERSION) => {}
        Some(_) => return Err(Fault::BadVersion),
    }
    let Some((&[_, kind, id1, id0, length1, length0, padding, _], rest)) =
        bytes.split_first_chunk::<HEADER>()
    else {
        return Ok(None);
    };
    let length = usize::from(u16::from_be_bytes([length1, length0]));
    let whole = length + usize::from(padding);
    if rest.len() < whole {
        return Ok(None);
    }
    let id = u16::from_be_bytes([id1, id0]);
    Ok(Some((Record { kind, id, content: &rest[..length] }, HEADER + whole)))
}

/// What BEGIN_REQUEST says (section 5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Begin {
    /// One of `role`, or another.
    pub role: u16,
    /// Whether the connection is kept when the request has ended.
    pub keep: bool,
}

impl Begin {
    /// Reads a record's content.
    pub fn parse(content: &[u8]) -> Result<Begin, Fault> {
        let [role1, role0, flags, ..] = body(content)?;
        Ok(Begin { role: u16::from_be_bytes([role1, role0]), keep: flags & 1 != 0 })
    }
}

/// What END_REQUEST says (section 5.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// The exit status of a program that CGI would have run.
    pub app_status: u32,
    /// One of `status`, or another.
    pub protocol_status: u8,
}

impl End {
    /// Reads a record's content.
    pub fn parse(content: &[u8]) -> Result<End, Fault> {
        let [a, b, c, d, protocol_status, ..] = body(content)?;
        Ok(End { app_status: u32::from_be_bytes([a, b, c, d]), protocol_status })
    }
}

/// A content that is always of the same length.
fn body(content: &[u8]) -> Result<[u8; 8], Fault> {
    content.try_into().map_err(|_| Fault::BadRecord)
}

/// Names and values (section 3.4), one after another. After a fault there are no more.
#[derive(Clone, Debug)]
pub struct Pairs<'a>(&'a [u8]);

/// The names and values of a whole stream of PARAMS, or of GET_VALUES and its answer.
pub fn pairs(content: &[u8]) -> Pairs<'_> {
    Pairs(content)
}

impl<'a> Pairs<'a> {
    /// One byte, or four with the first bit set.
    fn length(&mut self) -> Option<usize> {
        match *self.0 {
            [length @ 0..=127, ref rest @ ..] => {
                self.0 = rest;
                Some(usize::from(length))
            }
            [a, b, c, d, ref rest @ ..] => {
                self.0 = rest;
                Some(u32::from_be_bytes([a & 127, b, c, d]) as usize)
            }
            _ => None,
        }
    }

    fn cut(&mut self, length: usize) -> Option<&'a [u8]> {
        let (part, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(part)
    }

    fn pair(&mut self) -> Option<(&'a [u8], &'a [u8])> {
        let (name, value) = (self.length()?, self.length()?);
        Some((self.cut(name)?, self.cut(value)?))
    }
}

impl<'a> Iterator for Pairs<'a> {
    type Item = Result<(&'a [u8], &'a [u8]), Fault>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let pair = self.pair();
        if pair.is_none() {
            self.0 = &[];
        }
        Some(pair.ok_or(Fault::BadPairs))
    }
}

#[cfg(test)]
mod tests;
