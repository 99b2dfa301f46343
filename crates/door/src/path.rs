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
    let mut bytes = segment.iter();
    let digit = |c: &u8| (*c as char).to_digit(16);
    while let Some(byte) = bytes.next() {
        let byte = match byte {
            b'%' => (digit(bytes.next()?)? * 16 + digit(bytes.next()?)?) as u8,
            byte => *byte,
        };
        if matches!(byte, 0 | b'/') {
            return None;
        }
        decoded.push(byte);
    }
    Some(())
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

    proptest! {
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
