//! SCGI (the specification at python.ca/scgi/protocol.txt): a netstring of variables, then the body.

use crate::Fault;
use memchr::{Memchr, memchr_iter};

/// The variables of a request, in order: names and values.
#[derive(Clone, Debug)]
pub struct Block<'a> {
    bytes: &'a [u8],
    /// Where names and values end.
    ends: Memchr<'a>,
    at: usize,
}

impl<'a> Block<'a> {
    fn new(bytes: &'a [u8]) -> Block<'a> {
        Block { bytes, ends: memchr_iter(0, bytes), at: 0 }
    }

    /// Up to the next NUL, which goes.
    fn cut(&mut self) -> Option<&'a [u8]> {
        let end = self.ends.next()?;
        let part = &self.bytes[self.at..end];
        self.at = end + 1;
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
    for (name, value) in Block::new(block) {
        match (name, value) {
            (b"SCGI", b"1") => versions += 1,
            (b"SCGI" | b"", _) => return Err(Fault::BadScgi),
            _ => {}
        }
    }
    let paired = memchr_iter(0, block).count().is_multiple_of(2);
    if versions != 1 || !paired {
        return Err(Fault::BadScgi);
    }
    Ok(Some((Block::new(block), end + 1)))
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(pairs: &[(&str, &str)]) -> Vec<u8> {
        let mut out = Vec::new();
        let pairs = pairs.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        put_headers(&mut out, pairs);
        out
    }

    /// A block as it is, in its netstring.
    fn wrapped(block: &[u8]) -> Vec<u8> {
        [format!("{}:", block.len()).as_bytes(), block, b","].concat()
    }

    fn fault(bytes: &[u8]) -> Option<Fault> {
        headers(bytes, 1000).err()
    }

    const PLAIN: [(&str, &str); 4] =
        [("CONTENT_LENGTH", "27"), ("SCGI", "1"), ("REQUEST_METHOD", "POST"), ("QUERY_STRING", "")];

    #[test]
    fn the_example_of_the_specification() {
        let sent = b"70:CONTENT_LENGTH\x0027\0SCGI\x001\0REQUEST_METHOD\0POST\0\
            REQUEST_URI\0/deepthought\0,What is the answer to life?";
        let (block, body) = headers(sent, 1000).unwrap().unwrap();
        assert_eq!(&sent[body..], b"What is the answer to life?");
        let wanted = [&PLAIN[..3], &[("REQUEST_URI", "/deepthought")]].concat();
        let wanted: Vec<_> = wanted.iter().map(|(n, v)| (n.as_bytes(), v.as_bytes())).collect();
        assert_eq!(block.collect::<Vec<_>>(), wanted);
        assert_eq!(
            &sent[..body],
            written(&[&PLAIN[..3], &[("REQUEST_URI", "/deepthought")]].concat())
        );
    }

    #[test]
    fn what_is_no_netstring() {
        for bytes in
            ["GET / HTTP/1.1\r\n", ":", "-1:", "+9:", " 9:", "0:,", "07:", "9;", "9 :", "\x01"]
        {
            assert_eq!(fault(bytes.as_bytes()), Some(Fault::BadScgi), "{bytes}");
        }
        let whole = written(&PLAIN);
        let mut other = whole.clone();
        *other.last_mut().unwrap() = b';';
        assert_eq!(fault(&other), Some(Fault::BadScgi));
        for more in ["", "1", "70", "999"] {
            assert_eq!(headers(more.as_bytes(), 1000).map(|found| found.is_none()), Ok(true));
        }
    }

    #[test]
    fn what_is_too_long_is_seen_in_its_length() {
        let whole = written(&PLAIN);
        let length = whole.len() - 4;
        assert!(headers(&whole, length).unwrap().is_some());
        assert_eq!(headers(&whole, length - 1).err(), Some(Fault::HeadTooLong));
        for long in ["1001", "1001:", "99999", "18446744073709551621:"] {
            assert_eq!(fault(long.as_bytes()), Some(Fault::HeadTooLong), "{long}");
        }
        assert_eq!(fault(b"1000:"), None);
    }

    #[test]
    fn what_is_no_block_of_variables() {
        for block in [
            // CONTENT_LENGTH comes first, SCGI is there once and is 1.
            &b"SCGI\x001\0CONTENT_LENGTH\x000\0"[..],
            b"content_length\x000\0SCGI\x001\0",
            b"CONTENT_LENGTHS\x000\0SCGI\x001\0",
            b"CONTENT_LENGTH\x000\0",
            b"CONTENT_LENGTH\x000\0SCGI\x002\0",
            b"CONTENT_LENGTH\x000\0SCGI\0\0",
            b"CONTENT_LENGTH\x000\0SCGI\x001\0SCGI\x001\0",
            // Names without values, values without ends, names without letters.
            b"CONTENT_LENGTH\x000\0SCGI\x001\0A\0",
            b"CONTENT_LENGTH\x000\0SCGI\x001\0A\0b",
            b"CONTENT_LENGTH\x000\0SCGI\x001\0A",
            b"CONTENT_LENGTH\x000\0SCGI\x001",
            b"CONTENT_LENGTH\x000\0SCGI\x001\0\0b\0",
            b"CONTENT_LENGTH\0",
            b"\0\0",
        ] {
            assert_eq!(fault(&wrapped(block)), Some(Fault::BadScgi), "{block:?}");
        }
        // At once, not when all of it has come.
        assert_eq!(fault(b"900:SCGI"), Some(Fault::BadScgi));
        assert_eq!(fault(b"900:CONTENT_LENGTH"), None);
    }

    #[test]
    fn names_may_come_twice() {
        let twice = [&PLAIN[..], &[("HTTP_X", "a"), ("HTTP_X", "b")]].concat();
        assert_eq!(headers(&written(&twice), 1000).unwrap().unwrap().0.count(), 6);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            others in prop::collection::vec(("[A-Z_]{1,9}X", "[^\0]{0,30}"), 0..9),
            body in prop::collection::vec(any::<u8>(), 0..20),
        ) {
            let others = others.iter().map(|(name, value)| (&name[..], &value[..]));
            let pairs: Vec<_> = PLAIN.into_iter().chain(others).collect();
            let head = written(&pairs);
            let sent = [&head[..], &body].concat();
            for cut in 0..head.len() {
                prop_assert!(headers(&sent[..cut], 9999).unwrap().is_none());
            }
            for cut in head.len()..=sent.len() {
                let (block, end) = headers(&sent[..cut], 9999).unwrap().unwrap();
                prop_assert_eq!(end, head.len());
                let wanted = pairs.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
                prop_assert!(block.eq(wanted));
            }
        }

        #[test]
        fn cut_anywhere_it_says_the_same(sent in "[0-9]{0,2}[:;]?(CONTENT_LENGTH\0[0-9]{0,2}\0)?(SCGI\0[12]\0)?([A-C]{0,2}\0){0,4}[,]?[a-z\0]{0,4}") {
            let ends = |bytes: &[u8]| headers(bytes, 60).map(|found| found.map(|(_, end)| end));
            let whole = ends(sent.as_bytes());
            for cut in 0..sent.len() {
                let early = ends(&sent.as_bytes()[..cut]);
                prop_assert!(early == Ok(None) || early == whole, "{:?} then {:?}", early, whole);
            }
        }
    }
}
