//! The path of a target as files and mounts may see it. Apps get it as it was sent.

use std::borrow::Cow;

/// The path decoded and without dot segments or repeated slashes (RFC 3986, sections 2.4, 5.2.4 and
/// 6.2.2), decoded once and never again. None for one that means different things to different
/// programs: a segment with an encoded slash or a NUL, an encoding that is none, dots that climb
/// above the root, or no slash at its beginning.
pub fn clean(path: &[u8]) -> Option<Cow<'_, [u8]>> {
    if is_clean(path) {
        return Some(Cow::Borrowed(path));
    }
    let mut segments = path.strip_prefix(b"/")?.split(|c| *c == b'/').peekable();
    let mut cleaned = Vec::with_capacity(path.len());
    // Where each segment begins, its slash included.
    let mut starts = Vec::new();
    while let Some(segment) = segments.next() {
        let last = segments.peek().is_none();
        let start = cleaned.len();
        cleaned.push(b'/');
        decode(segment, &mut cleaned)?;
        let drop = match &cleaned[start + 1..] {
            b"" | b"." => start,
            b".." => starts.pop()?,
            _ => {
                starts.push(start);
                continue;
            }
        };
        cleaned.truncate(drop);
        if last {
            // `/a/`, `/a/.` and `/a/b/..` all name the directory.
            cleaned.push(b'/');
        }
    }
    Some(Cow::Owned(cleaned))
}

/// Whether nothing of the path needs a closer look: no segment begins with a dot or is empty.
fn is_clean(path: &[u8]) -> bool {
    let plain = |pair: &[u8]| !matches!(pair, b"//" | b"/.");
    path.first() == Some(&b'/')
        && memchr::memchr2(b'%', 0, path).is_none()
        && path.windows(2).all(plain)
}

/// Appends a segment decoded.
fn decode(segment: &[u8], decoded: &mut Vec<u8>) -> Option<()> {
    for letter in Letters(segment) {
        let (byte, _) = letter?;
        if matches!(byte, 0 | b'/') {
            return None;
        }
        decoded.push(byte);
    }
    Some(())
}

/// Splits a path as it was sent into a prefix and what follows, on a path boundary: `/app` is the
/// prefix of `/app`, `/app/` and `/app/x`, not of `/apple`. The prefix is plain text, with or without
/// a slash at its end; it may have been sent percent-encoded, and stays as it was sent. None: the
/// path lies elsewhere.
pub fn split<'a>(path: &'a str, prefix: &str) -> Option<(&'a str, &'a str)> {
    let prefix = prefix.trim_end_matches('/');
    path.split_at_checked(boundary(path.as_bytes(), prefix.as_bytes())?)
}

/// Where in a path as it was sent a prefix ends, if that is a boundary.
pub fn boundary(path: &[u8], prefix: &[u8]) -> Option<usize> {
    let end = if path.starts_with(prefix) { prefix.len() } else { spelt(path, prefix)? };
    matches!(path.get(end), None | Some(b'/')).then_some(end)
}

/// How much of an encoded path spells a plain text. An encoded slash is no slash.
fn spelt(path: &[u8], text: &[u8]) -> Option<usize> {
    let mut letters = Letters(path);
    for wanted in text {
        let (letter, encoded) = letters.next()??;
        if letter != *wanted || encoded && letter == b'/' {
            return None;
        }
    }
    Some(path.len() - letters.0.len())
}

/// Reads an encoded path byte by byte: each decoded, and whether it was encoded. None for an
/// encoding that is none; there is nothing behind it.
pub(crate) struct Letters<'a>(pub &'a [u8]);

impl Iterator for Letters<'_> {
    type Item = Option<(u8, bool)>;

    fn next(&mut self) -> Option<Self::Item> {
        let digit = |c: u8| (c as char).to_digit(16);
        let (&first, rest) = self.0.split_first()?;
        let (letter, rest) = match (first, rest) {
            (b'%', &[high, low, ref rest @ ..]) => match (digit(high), digit(low)) {
                (Some(high), Some(low)) => (Some(((high * 16 + low) as u8, true)), rest),
                _ => (None, &[][..]),
            },
            (b'%', _) => (None, &[][..]),
            (plain, rest) => (Some((plain, false)), rest),
        };
        self.0 = rest;
        Some(letter)
    }
}

/// Bytes that a path may have as they are (RFC 3986, section 3.3).
const PLAIN: [bool; 256] = {
    let mut table = [false; 256];
    let mut c = 0;
    while c < 128 {
        table[c] = matches!(c as u8, b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_'
            | b'~' | b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*' | b'+' | b',' | b';' | b'='
            | b':' | b'@' | b'/');
        c += 1;
    }
    table
};

/// A decoded path encoded again.
pub fn encode(path: &[u8]) -> Cow<'_, [u8]> {
    if path.iter().all(|c| PLAIN[usize::from(*c)]) {
        return Cow::Borrowed(path);
    }
    let mut encoded = Vec::with_capacity(path.len() + 16);
    for c in path {
        match PLAIN[usize::from(*c)] {
            true => encoded.push(*c),
            false => {
                let digit = |n: u8| b"0123456789ABCDEF"[usize::from(n)];
                encoded.extend_from_slice(&[b'%', digit(c >> 4), digit(c & 15)]);
            }
        }
    }
    Cow::Owned(encoded)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cleaned(path: &str) -> Option<String> {
        clean(path.as_bytes()).map(|path| String::from_utf8_lossy(&path).into_owned())
    }

    #[test]
    fn paths_are_decoded_and_resolved() {
        for (path, wanted) in [
            ("/", "/"),
            ("/a/b", "/a/b"),
            ("/a%20b", "/a b"),
            ("//a///b", "/a/b"),
            ("/a//", "/a/"),
            ("/./a", "/a"),
            ("/a/.", "/a/"),
            ("/a/..", "/"),
            ("/a/../b", "/b"),
            ("/a/%2e%2E/b", "/b"),
            ("/a/.%2e/b/", "/b/"),
            ("/a/b/../..", "/"),
            ("/.a/..b/...", "/.a/..b/..."),
            ("/%252e%252e/x", "/%2e%2e/x"),
            ("/a%5cb", "/a\\b"),
        ] {
            assert_eq!(cleaned(path).as_deref(), Some(wanted), "{path}");
        }
    }

    #[test]
    fn paths_that_mean_different_things_are_none() {
        for path in [
            "",
            "a",
            "*",
            "/..",
            "/a/../..",
            "/a/../../a",
            "/%2e%2e",
            "/a%2fb",
            "/a/%2F..",
            "/%00",
            "/%",
            "/%2",
            "/%zz",
            "/a\0b",
            "/%2x/..",
        ] {
            assert_eq!(cleaned(path), None, "{path}");
        }
    }

    #[test]
    fn prefixes_end_at_boundaries() {
        for (path, prefix, wanted) in [
            ("/app", "/app", Some(("/app", ""))),
            ("/app/", "/app", Some(("/app", "/"))),
            ("/app/x", "/app", Some(("/app", "/x"))),
            ("/app//x", "/app", Some(("/app", "//x"))),
            ("/app/x", "/app/", Some(("/app", "/x"))),
            ("/%61pp/x%2f", "/app", Some(("/%61pp", "/x%2f"))),
            ("/a/b%5D/c", "/a/b]", Some(("/a/b%5D", "/c"))),
            ("/x", "", Some(("", "/x"))),
            ("/", "/", Some(("", "/"))),
            ("//x", "/", Some(("", "//x"))),
            ("/apple", "/app", None),
            ("/ap", "/app", None),
            ("/%61pple", "/app", None),
            ("/APP/x", "/app", None),
            ("//app/x", "/app", None),
            ("/./app/x", "/app", None),
            ("/app%2Fx", "/app", None),
            ("/a%2Fb/x", "/a/b", None),
            ("/%zzpp/x", "/app", None),
            ("/app%", "/app", None),
            ("", "/app", None),
            ("x", "", None),
        ] {
            assert_eq!(split(path, prefix), wanted, "{path} under {prefix}");
        }
    }

    #[test]
    fn paths_are_encoded_where_they_need_it() {
        let all: Vec<u8> = (0..=255).collect();
        let encoded = encode(&all);
        let decoded: Option<Vec<u8>> = Letters(&encoded).map(|letter| Some(letter?.0)).collect();
        assert_eq!(decoded.as_deref(), Some(&all[..]));
        assert!(encoded.iter().all(|c| c.is_ascii_graphic() && !b"\"#<>?[\\]^`{|}".contains(c)));
        assert!(matches!(encode(b"/a-b._~!$&'()*+,;=:@"), Cow::Borrowed(_)));
        assert_eq!(&*encode("/a%20b é?".as_bytes()), b"/a%2520b%20%C3%A9%3F");
    }

    proptest! {
        #[test]
        fn prefix_and_rest_are_the_path(path in "(/|%2[fF]|%61|a|p){0,8}", prefix in "(/[ap]{1,2}){0,2}") {
            if let Some((script, info)) = split(&path, &prefix) {
                prop_assert_eq!(script.to_owned() + info, &path[..]);
                prop_assert!(matches!(info.as_bytes().first(), None | Some(b'/')));
                let spelt: Vec<u8> = Letters(script.as_bytes()).map(|letter| letter.unwrap().0).collect();
                prop_assert_eq!(spelt, prefix.as_bytes());
            }
        }

        #[test]
        fn nothing_dangerous_is_left(path in "/?((%2[eEfF]|%00|%25|[./a%2eE\\\\ ])|[a-z]{1,3}/){0,12}") {
            let Some(path) = clean(path.as_bytes()) else { return Ok(()) };
            prop_assert_eq!(path.first(), Some(&b'/'));
            prop_assert!(!path.contains(&0));
            let inner: Vec<_> = path[1..].split(|c| *c == b'/').collect();
            let (last, others) = inner.split_last().unwrap();
            prop_assert!(others.iter().all(|s| !matches!(*s, b"" | b"." | b"..")));
            prop_assert!(!matches!(*last, b"." | b".."));
            // What is clean stays as it is, unless it holds a literal percent sign.
            if !path.contains(&b'%') {
                prop_assert_eq!(clean(&path), Some(path.clone()));
            }
        }
    }
}
