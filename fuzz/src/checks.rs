//! One function for each fuzz target: takes any bytes, panics if a promise is broken.

use std::sync::OnceLock;
use wire::doorbell::Rank;
use wire::frame::{self, Decoder, Event, Head};
use wire::request::{self, Key, Pairs};
use wire::sync::Ordering::Relaxed;
use wire::{SEATS, Segment};

/// Takes any bytes.
pub type Check = fn(&[u8]);

/// Every check by the name of its target and of its directory in the corpus.
pub const ALL: [(&str, Check); 3] = [("frames", frames), ("record", record), ("board", board)];

/// A stream of reply frames says the same however it is cut, and no head is too long.
pub fn frames(data: &[u8]) {
    let Some((size, stream)) = data.split_first() else { return };
    let whole = decode(stream, stream.len().max(1));
    let pieces = decode(stream, usize::from(*size) + 1);
    assert_eq!(whole, pieces);
}

/// What the stream says, in a form in which the pieces of a body do not show.
fn decode(stream: &[u8], size: usize) -> Vec<u8> {
    let (mut decoder, mut said) = (Decoder::default(), Vec::new());
    let (mut in_body, mut in_errors) = (false, false);
    for mut piece in stream.chunks(size) {
        while let Some(event) = match decoder.next(&mut piece) {
            Ok(event) => event,
            Err(_) => {
                said.push(b'!');
                return said;
            }
        } {
            match event {
                Event::Head(payload) => {
                    assert!(payload.len() <= frame::HEAD_MAX);
                    let fields = Head::parse(payload).map_or(0, |head| head.flatten().count());
                    said.extend_from_slice(format!("H{fields}:").as_bytes());
                    said.extend_from_slice(payload);
                }
                Event::Body(part) => {
                    if !in_body {
                        said.push(b'B');
                    }
                    said.extend_from_slice(part);
                }
                Event::Errors(part) => {
                    if !in_errors {
                        said.push(b'R');
                    }
                    said.extend_from_slice(part);
                }
                Event::End => said.push(b'E'),
                Event::Hijack => said.push(b'J'),
                Event::File { offset, length } => {
                    said.extend_from_slice(&frame::file(offset, length));
                }
                Event::Interim(payload) => said.extend_from_slice(payload),
            }
            in_body = matches!(event, Event::Body(_));
            in_errors = matches!(event, Event::Errors(_));
        }
    }
    said
}

/// What is read of a record is what was written: encoding it again gives the same bytes.
pub fn record(data: &[u8]) {
    let mut pairs = Pairs(data);
    let mut again = Vec::new();
    let mut read = 0;
    while let Some((key, value)) = pairs.next() {
        read = data.len() - pairs.0.len();
        match key {
            Key::Known(key) => request::push(&mut again, key, value),
            Key::Named(name) => {
                again.push(request::key::NAMED);
                again.extend_from_slice(&(name.len() as u16).to_le_bytes());
                again.extend_from_slice(name);
                again.extend_from_slice(&(value.len() as u32).to_le_bytes());
                again.extend_from_slice(value);
            }
        }
    }
    assert_eq!(again, data[..read]);
}

/// A worker may write anything into the board; front and supervisor neither panic nor hang on it.
///
/// Each nine bytes store a value somewhere, or make the front or the supervisor do something.
pub fn board(data: &[u8]) {
    static SEGMENT: OnceLock<Segment> = OnceLock::new();
    let segment = SEGMENT.get_or_init(|| Segment::create().expect("a segment"));
    for step in data.chunks_exact(9).take(32) {
        let value = u64::from_le_bytes([1, 2, 3, 4, 5, 6, 7, 8].map(|i| step[i]));
        scribble(segment, step[0], value);
        act(segment, step[0], value);
    }
    wipe(segment);
}

/// Slots and ring positions that are scribbled on.
const TOUCHED: usize = 8;

fn scribble(segment: &Segment, what: u8, value: u64) {
    let board = segment.board();
    let slot = &board.slots[usize::from(what >> 4) % TOUCHED];
    match what & 15 {
        0 => board.queue.head.store(value, Relaxed),
        1 => board.queue.tail.store(value, Relaxed),
        2 => board.queue.returned.store(value, Relaxed),
        3 => board.queue.ring[usize::from(what >> 4) % TOUCHED].store(value, Relaxed),
        4 => slot.state.store(value, Relaxed),
        5 => slot.front.store(value as u32, Relaxed),
        6 => slot.written.store(value as u32, Relaxed),
        7 => board.bells.seats_used.store(value as u32, Relaxed),
        8 => board.bells.arm((value % SEATS as u64) as u16, Rank::Second),
        _ => {}
    }
}

fn act(segment: &Segment, what: u8, value: u64) {
    let board = segment.board();
    let slot = (value % TOUCHED as u64) as u32;
    match what & 15 {
        9 => drop(board.put(slot)),
        10 => {
            // Seats are the supervisor's own: these do exist.
            let first = (value % (SEATS as u64 - 8)) as u16;
            board.seats[usize::from(first)].deadline_ns.store(value, Relaxed);
            board.strike(first, value);
            board.settle_seats(first, (value >> 32) as u16 % 8, true);
        }
        11 => board.settle_front(),
        12 => drop(board.cancel(slot, value >> 8)),
        13 => drop(board.ring_one() || board.prune_returned()),
        14 => {
            let room = board.slots[slot as usize].room_beyond(value as u32);
            assert!(room as usize <= wire::REPLY_BYTES);
            board.fronts[0].drain(|slot| assert!((slot as usize) < wire::SLOTS));
        }
        15 => drop(board.first_waiting()),
        _ => {}
    }
}

/// Makes the board as it was, for the next run.
fn wipe(segment: &Segment) {
    let board = segment.board();
    board.ring_one();
    for what in 0..7 {
        (0..TOUCHED as u8).for_each(|index| scribble(segment, index << 4 | what, 0));
    }
    board.slots.iter().for_each(|slot| slot.state.store(0, Relaxed));
    board.queue.ring.iter().for_each(|entry| entry.store(0, Relaxed));
    for seat in 0..SEATS as u16 {
        board.bells.disarm(seat, Rank::Second);
    }
    board.bells.seats_used.store(0, Relaxed);
    board.fronts.iter().for_each(|front| front.drain(|_| {}));
}
