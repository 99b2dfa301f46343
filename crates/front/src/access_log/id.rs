//! Ids of requests: what a client sent, if it is harmless, or one of ours.

use hyper::header::HeaderValue;
use std::cell::Cell;
use std::hash::{BuildHasher, Hasher, RandomState};

/// Longest id that is taken from a client, in bytes.
const LONGEST: usize = 128;

/// Whether an id may go into logs and to the app as it is.
pub fn is_sane(id: &HeaderValue) -> bool {
    let harmless = |c: &u8| c.is_ascii_alphanumeric() || b"-_.".contains(c);
    (1..=LONGEST).contains(&id.len()) && id.as_bytes().iter().all(harmless)
}

/// A new id: 64 random bits that are the thread's own, and a count.
pub fn new() -> HeaderValue {
    thread_local! {
        static NEXT: (u64, Cell<u64>) = (RandomState::new().build_hasher().finish(), Cell::new(0));
    }
    NEXT.with(|(prefix, count)| {
        count.set(count.get() + 1);
        let id = format!("{prefix:016x}-{:08x}", count.get());
        HeaderValue::try_from(id).expect("hexadecimal digits are a header's")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_harmless_ids_pass() {
        let sane = |id: &str| is_sane(&HeaderValue::from_bytes(id.as_bytes()).unwrap());
        assert!(sane("7b5a-1_C.x") && sane(&"a".repeat(128)));
        for bad in ["", "a b", "a\"b", "a\tb", "ä", "a/b", "a,b", &"a".repeat(129)] {
            assert!(!sane(bad), "{bad:?}");
        }
    }

    #[test]
    fn ids_are_sane_and_differ() {
        let ids: std::collections::HashSet<_> = (0..100).map(|_| new()).collect();
        let other = std::thread::spawn(new).join().unwrap();
        assert!(ids.len() == 100 && ids.iter().all(is_sane) && !ids.contains(&other));
    }
}
