//! The requests that workers have in hand, read from the slot table without disturbing anybody.

use std::borrow::Cow;
use std::time::Duration;
use wire::request::{Key, Pairs, key};
use wire::slot::Word;
use wire::sync::Ordering::{Acquire, Relaxed};
use wire::sync::fence;
use wire::{Segment, State};

/// A text for people is cut at so many characters.
const SHOWN: usize = 1024;

/// A request that a worker thread has taken and not answered to the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Current {
    /// The thread's seat.
    pub seat: u16,
    /// As the client wrote it.
    pub method: String,
    /// Without the query. Safe to print.
    pub path: String,
    /// How long it waited in the queue.
    pub waited: Duration,
    /// How long the worker has had it.
    pub age: Duration,
}

/// All of them, by slot. `now_ns` is the clock of `wire::now_ns`.
pub fn all(segment: &Segment, now_ns: u64) -> impl Iterator<Item = Current> {
    let taken = move |slot: u32| {
        let word = segment.board().slots[slot as usize].word();
        in_hand(word).then(|| read(segment, slot, word, now_ns)).flatten()
    };
    (0..wire::SLOTS as u32).filter_map(taken)
}

/// What a seat has in hand.
pub fn of_seat(segment: &Segment, seat: u16, now_ns: u64) -> Option<Current> {
    let slot = segment.board().slots.iter().position(|slot| {
        let word = slot.word();
        in_hand(word) && word.owner == seat
    })?;
    let word = segment.board().slots[slot].word();
    read(segment, slot as u32, word, now_ns).filter(|current| current.seat == seat)
}

/// How many requests no worker has taken, and how long the oldest has waited.
pub fn waiting(segment: &Segment, now_ns: u64) -> (u64, Option<Duration>) {
    let queued = segment.board().slots.iter().filter_map(|slot| {
        let word = slot.word();
        let since = slot.queued_ns.load(Acquire);
        (word.state == State::Queued && slot.word() == word).then_some(since)
    });
    let (count, oldest) = queued.fold((0, u64::MAX), |(n, old), at| (n + 1, old.min(at)));
    let age = Duration::from_nanos(now_ns.saturating_sub(oldest));
    (count, (count > 0).then_some(age))
}

fn in_hand(word: Word) -> bool {
    matches!(word.state, State::Taken | State::Begun)
}

/// None when the slot has moved on meanwhile: what was copied may then be of two requests.
fn read(segment: &Segment, slot: u32, word: Word, now_ns: u64) -> Option<Current> {
    let head = &segment.board().slots[slot as usize];
    let queued = head.queued_ns.load(Relaxed);
    // Stamped after the claim: for an instant it is still the slot's last request's.
    let taken = Some(head.taken_ns.load(Relaxed)).filter(|at| *at >= queued).unwrap_or(now_ns);
    let record = segment.copy_record(slot);
    fence(Acquire);
    let after = head.word();
    // One that was taken has begun: it is still the same request.
    if (after.position, after.owner) != (word.position, word.owner) || !in_hand(after) {
        return None;
    }
    let (method, path) = line(&record);
    Some(Current {
        seat: word.owner,
        method,
        path,
        waited: Duration::from_nanos(taken.saturating_sub(queued)),
        age: Duration::from_nanos(now_ns.saturating_sub(taken)),
    })
}

/// Method and path of a record. What every other request has is left out of it (`front::admit`).
fn line(record: &[u8]) -> (String, String) {
    let (mut method, mut script, mut path): (&[u8], &[u8], &[u8]) = (b"GET", b"", b"");
    for (name, value) in Pairs(record) {
        match name {
            Key::Known(key::REQUEST_METHOD) => method = value,
            Key::Known(key::SCRIPT_NAME) => script = value,
            Key::Known(key::PATH_INFO) => path = value,
            _ => {}
        }
    }
    let whole = [script, path].concat();
    (printable(method), printable(if whole.is_empty() { b"*" } else { &whole }))
}

/// Text that does nothing to a terminal and nothing to a log, whoever wrote it.
pub fn printable(bytes: &[u8]) -> String {
    let text: Cow<str> = String::from_utf8_lossy(bytes);
    let mut shown = String::new();
    for (index, character) in text.chars().enumerate() {
        match character {
            _ if index == SHOWN => {
                shown.push('…');
                break;
            }
            '"' | '\'' | '\\' => shown.push(character),
            other => shown.extend(other.escape_debug()),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::request::push;

    /// A request that waits, as the front puts it.
    fn put(segment: &Segment, slot: u32, pairs: &[(u8, &str)]) -> u64 {
        let mut record = Vec::new();
        pairs.iter().for_each(|(key, value)| push(&mut record, *key, value.as_bytes()));
        segment.write_request(slot, 0, &record);
        let head = &segment.board().slots[slot as usize];
        head.head_len.store(record.len() as u32, Relaxed);
        head.queued_ns.store(1_000_000_000, Relaxed);
        segment.board().put(slot).unwrap()
    }

    #[test]
    fn what_is_taken_is_named_and_what_waits_or_is_done_is_not() {
        let segment = Segment::create().unwrap();
        let board = segment.board();
        board.header.serving.store(1, Relaxed);
        put(&segment, 7, &[(key::REQUEST_METHOD, "POST"), (key::PATH_INFO, "/a")]);
        put(&segment, 8, &[(key::PATH_INFO, "/b")]);
        assert_eq!(all(&segment, 0).count(), 0);

        let claim = board.take(5, 1).unwrap();
        board.slots[7].taken_ns.store(1_250_000_000, Relaxed);
        let current = of_seat(&segment, 5, 1_750_000_000).unwrap();
        assert_eq!((current.seat, &*current.method, &*current.path), (5, "POST", "/a"));
        assert_eq!(current.waited, Duration::from_millis(250));
        assert_eq!(current.age, Duration::from_millis(500));
        assert!(board.begin(claim));
        assert_eq!(all(&segment, 1_750_000_000).collect::<Vec<_>>(), [current]);
        assert_eq!(of_seat(&segment, 4, 1_750_000_000), None);
        board.complete(claim);
        assert_eq!(of_seat(&segment, 5, 0), None);
    }

    #[test]
    fn one_that_is_not_stamped_yet_has_no_age() {
        let segment = Segment::create().unwrap();
        segment.board().header.serving.store(1, Relaxed);
        put(&segment, 0, &[]);
        segment.board().take(1, 1).unwrap();
        segment.board().slots[0].taken_ns.store(1, Relaxed);
        let current = of_seat(&segment, 1, 3_000_000_000).unwrap();
        assert_eq!((current.age, current.waited), (Duration::ZERO, Duration::from_secs(2)));
        assert_eq!((&*current.method, &*current.path), ("GET", "*"));
    }

    #[test]
    fn a_slot_that_moved_on_is_not_read() {
        let segment = Segment::create().unwrap();
        segment.board().header.serving.store(1, Relaxed);
        put(&segment, 3, &[(key::PATH_INFO, "/first")]);
        segment.board().take(2, 1).unwrap();
        let before = segment.board().slots[3].word();
        put(&segment, 3, &[(key::PATH_INFO, "/second")]);
        segment.board().take(2, 1).unwrap();
        assert_eq!(read(&segment, 3, before, 0), None);
        // Whatever a worker has scribbled over it, it is read within its bounds.
        let head = &segment.board().slots[3];
        head.head_len.store(u32::MAX, Relaxed);
        assert_eq!(of_seat(&segment, 2, 0).map(|c| c.path), Some("/second".into()));
        head.head_chunk.store(u32::MAX, Relaxed);
        assert_eq!(of_seat(&segment, 2, 0).map(|c| c.path), Some("*".into()));
    }

    #[test]
    fn nothing_reaches_a_terminal() {
        assert_eq!(printable("/ä/\"q\"/\\".as_bytes()), "/ä/\"q\"/\\");
        assert_eq!(printable(b"/\x1b[2J\n\xff"), "/\\u{1b}[2J\\n\u{fffd}");
        assert_eq!(printable("\u{202e}\u{9b}".as_bytes()), "\\u{202e}\\u{9b}");
        assert_eq!(printable(&[b'a'; 5000]).chars().count(), SHOWN + 1);
    }
}
