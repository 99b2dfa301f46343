//! SCGI (the specification at python.ca/scgi/protocol.txt): a netstring of variables, then the body.

use crate::Fault;
use memchr::memchr;

/// The variables of a request, in order: names and values.
#[derive(Clone, Debug)]
pub struct Block<'a>(&'a [u8]);

impl<'a> Block<'a> {
    /// Up to the next NUL, which goes.
    fn cut(&mut self) -> Option<&'a [u8]> {
        let end = memchr(0, self.0)?;
        let part = &self.0[..end];
        self.0 = &self.0[end + 1..];
        Some(part)
    }
}

impl<'a> Iterator for Block<'a> {
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        Some((self.cut()?, self.cut()?))
    }
}

/// The variables at the beginning of `bytes`, and where the body begins. None: not all of them are
/// there yet. A block of more than `limit` bytes is a fault as soon as its length has come.
pub fn headers(bytes: &[u8], limit: usize) -> Result<Option<(Block<'_>, usize)>, Fault> {
    let digits = bytes.iter().take_while(|c| c.is_ascii_digit()).count();
    let Some(length) = length(&bytes[..digits], bytes.get(digits), limit)? else { return Ok(None) };
    let begin = digits + 1;
    let end = begin + length;
    let block = &bytes[begin..bytes.len().min(end)];
    if !agrees(block, b"CONTENT_LENGTH\0") {
        return Err(Fault::BadScgi);
    }
    let Some(comma) = bytes.get(end) else { return Ok(None) };
    // Every name and value ends with a NUL, and one more than none is SCGI's own.
    if *comma != b',' || block.last() != Some(&0) {
        return Err(Fault::BadScgi);
    }
    let mut versions = 0;
    for (name, value) in Block(block) {
        match (name, value) {
            (b"SCGI", b"1") => versions += 1,
            (b"SCGI" | b"", _) => return Err(Fault::BadScgi),
            _ => {}
        }
    }
    let paired = memchr::memchr_iter(0, block).count().is_multiple_of(2);
    if versions != 1 || !paired {
        return Err(Fault::BadScgi);
    }
    Ok(Some((Block(block), end + 1)))
}

/// The length that a netstring begins with, if all of it has come: digits without a zero in front,
/// and a colon.
fn length(digits: &[u8], next: Option<&u8>, limit: usize) -> Result<Option<usize>, Fault> {
    if digits.first() == Some(&b'0') || digits.is_empty() && next.is_some() {
        return Err(Fault::BadScgi);
    }
    let add = |sum: usize, c: &u8| sum.saturating_mul(10).saturating_add(usize::from(c - b'0'));
    let length = digits.iter().fold(0, add);
    match next {
        _ if length > limit => Err(Fault::HeadTooLong),
        None => Ok(None),
        Some(b':') => Ok(Some(length)),
        Some(_) => Err(Fault::BadScgi),
    }
}

/// True if `bytes` and `start` agree as far as both go.
fn agrees(bytes: &[u8], start: &[u8]) -> bool {
    bytes.iter().zip(start).all(|(a, b)| a == b)
}

/// Appends a block of variables; CONTENT_LENGTH comes first and SCGI is among them. None of them has
/// a NUL in it.
pub fn put_headers<'a>(
    out: &mut Vec<u8>,
    pairs: impl Iterator<Item = (&'a [u8], &'a [u8])> + Clone,
) {
    let length: usize = pairs.clone().map(|(name, value)| name.len() + value.len() + 2).sum();
    out.extend_from_slice(length.to_string().as_bytes());
    out.push(b':');
    for part in pairs.flat_map(|(name, value)| [name, value]) {
        out.extend_from_slice(part);
        out.push(0);
    }
    out.push(b',');
}
