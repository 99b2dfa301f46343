//! The mapping: what is refused, and bytes that go in and out.
#![cfg(not(loom))]

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use std::os::fd::{AsFd, OwnedFd};
use wire::layout::*;
use wire::sync::Ordering::*;
use wire::{Segment, State};

fn same(segment: &Segment) -> OwnedFd {
    segment.as_fd().try_clone_to_owned().unwrap()
}

fn refusal(fd: OwnedFd) -> String {
    Segment::open(fd).err().expect("it must be refused").to_string()
}

fn memfd(length: usize) -> OwnedFd {
    let fd = memfd_create("test", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).unwrap();
    ftruncate(&fd, length as u64).unwrap();
    fd
}

#[test]
fn two_mappings_are_one_segment() {
    let first = Segment::create().unwrap();
    let second = Segment::open(same(&first)).unwrap();
    first.board().header.serving.store(7, Release);
    assert_eq!(second.board().header.serving.load(Acquire), 7);
    assert!(second.board().all_free());
    assert!(second.board().first_waiting().is_none());
    first.write_chunk(CHUNKS - 1, b"end");
    assert!(ftruncate(&first, 1).is_err(), "a segment cannot shrink under its readers");
}

#[test]
fn anything_else_is_refused_with_a_reason() {
    let message = refusal(memfd(4096));
    assert!(message.contains("4096 bytes") && message.contains("rebuild both"), "{message}");
    let message = refusal(memfd(SEGMENT_BYTES));
    assert!(message.contains("sealed"), "{message}");
    let file = std::fs::File::open("Cargo.toml").unwrap();
    assert!(Segment::open(file.into()).is_err());
}

#[test]
fn another_layout_is_refused_by_its_number() {
    let segment = Segment::create().unwrap();
    segment.board().header.version.store(VERSION + 1, Relaxed);
    let message = refusal(same(&segment));
    let numbers = format!("layout {} where {VERSION}", VERSION + 1);
    assert!(message.contains(&numbers), "{message}");
    segment.board().header.version.store(VERSION, Relaxed);
    segment.board().header.magic.store(0, Relaxed);
    refusal(same(&segment));
}

#[test]
fn the_reply_window_wraps() {
    let segment = Segment::create().unwrap();
    let bytes: Vec<u8> = (0..REPLY_BYTES).map(|i| i as u8).collect();
    for at in [0, 1, REPLY_BYTES as u32 - 1, REPLY_BYTES as u32, u32::MAX - 5] {
        segment.write_reply(3, at, &bytes);
        let mut read = Vec::new();
        segment.append_reply(3, at, REPLY_BYTES, &mut read);
        assert!(read == bytes, "at {at}");
        let mut part = vec![7];
        segment.append_reply(3, at.wrapping_add(100), 2, &mut part);
        assert_eq!(part, [7, 100, 101], "at {at}");
    }
    let head = &segment.board().slots[3];
    head.read.store(u32::MAX - 9, Relaxed);
    assert_eq!(head.room_beyond(u32::MAX - 9), REPLY_BYTES as u32);
    assert_eq!(head.room_beyond(10), REPLY_BYTES as u32 - 20, "positions wrap too");
    assert_eq!(head.room_beyond(u32::MAX - 10), 0, "a worker that lies gets no room");
}

#[test]
fn neighbours_are_left_alone() {
    let segment = Segment::create().unwrap();
    let full = vec![0xff; REPLY_BYTES];
    for slot in [0, 2] {
        segment.write_request(slot, 0, &vec![0xff; REQUEST_BYTES]);
        segment.write_reply(slot, 5, &full);
    }
    segment.board().slots[1].head_len.store(REQUEST_BYTES as u32, Relaxed);
    assert!(segment.record(1).iter().all(|byte| *byte == 0));
    let mut reply = Vec::new();
    segment.append_reply(1, 0, REPLY_BYTES, &mut reply);
    assert!(reply.iter().all(|byte| *byte == 0));
    assert!(segment.board().slots.iter().all(|slot| slot.word().state == State::Free));
}

#[test]
fn a_body_lies_behind_its_record_or_in_chunks() {
    let segment = Segment::create().unwrap();
    let head = &segment.board().slots[9];
    segment.write_request(9, 0, b"recordbody");
    head.head_len.store(6, Relaxed);
    head.body_len.store(4, Relaxed);
    assert_eq!(segment.record(9), b"record");
    assert_eq!(segment.body_parts(9).collect::<Vec<_>>(), [b"body"]);

    let body: Vec<u8> = (0..CHUNK_BYTES + 10).map(|i| (i / 7) as u8).collect();
    for (chunk, part) in [20, 4].into_iter().zip(body.chunks(CHUNK_BYTES)) {
        segment.write_chunk(chunk, part);
    }
    head.body_chunks.store((4 + 1) << 16 | (20 + 1), Relaxed);
    head.body_len.store(body.len() as u32, Relaxed);
    assert!(segment.body_parts(9).collect::<Vec<_>>().concat() == body);

    segment.write_chunk(0, b"long record");
    head.head_chunk.store(1, Relaxed);
    head.head_len.store(11, Relaxed);
    assert_eq!(segment.record(9), b"long record");
    assert_eq!(head.chunks().collect::<Vec<_>>(), [0, 20, 4]);

    // With the record in a chunk the slot has room for a whole inline body.
    head.body_chunks.store(0, Relaxed);
    head.body_len.store(10, Relaxed);
    assert_eq!(segment.body_parts(9).collect::<Vec<_>>(), [b"recordbody"]);
}

#[test]
fn lengths_a_hostile_worker_wrote_stay_inside() {
    let segment = Segment::create().unwrap();
    let head = &segment.board().slots[0];
    for length in [REQUEST_BYTES as u32 + 1, u32::MAX] {
        head.head_len.store(length, Relaxed);
        head.body_len.store(length, Relaxed);
        assert_eq!(segment.record(0).len(), REQUEST_BYTES);
        assert_eq!(segment.body_parts(0).map(<[u8]>::len).sum::<usize>(), 0);
    }
    head.front.store(u32::MAX, Relaxed);
    head.state.store(u64::from(State::Taken as u8), Relaxed);
    segment.board().settle_seats(0, 1, false);
    segment.board().settle_front();
}

#[test]
fn memory_of_a_long_reply_is_given_back() {
    let segment = Segment::create().unwrap();
    let blocks = || rustix::fs::fstat(&segment).unwrap().st_blocks as usize * 512;
    for slot in [1, 2] {
        segment.write_reply(slot, 0, &vec![7; REPLY_BYTES]);
    }
    let before = blocks();
    segment.give_back(1);
    assert!(before - blocks() >= REPLY_BYTES - REPLY_KEPT - 2 * 4096, "{before} {}", blocks());
    for (slot, kept) in [(1, REPLY_KEPT), (2, REPLY_BYTES)] {
        let mut reply = Vec::new();
        segment.append_reply(slot, 0, kept, &mut reply);
        assert!(reply.iter().all(|byte| *byte == 7), "slot {slot}");
    }
}
