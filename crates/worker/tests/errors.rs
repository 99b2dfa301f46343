//! What is written before a reply: seen by the front without being woken, kept when the reply is
//! begun anew, and no part of it.

use rustix::event::{EventfdFlags, eventfd};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering::*;
use wire::frame::{self, header};
use wire::slot::{SlotHead, door};
use wire::{Segment, State};
use worker::{Crew, Fronts, Next, Seat};

/// A seat that has begun a request in slot 0, and the bell of its front, which sleeps.
fn begun() -> (Seat, &'static Segment, &'static OwnedFd) {
    let bell = || eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).expect("an eventfd");
    let [front, supervisor] = Box::leak(Box::new([bell(), bell()]));
    let segment = Segment::create().expect("a segment").forever();
    let board = segment.board();
    board.header.serving.store(1, Release);
    board.bells.seats_used.store(1, Release);
    let fronts = Fronts { bells: std::slice::from_ref(front), exchanges: &[], supervisor };
    let mut seat = Seat::new(segment, fronts, Arc::new(Crew::new(0, 0)), 0, 1);
    board.slots[0].state.store(State::Filling as u64, Relaxed);
    board.slots[0].door.store(door::GATEWAY_WITH_ERRORS, Relaxed);
    board.put(0).expect("there is room");
    assert_eq!(seat.turn(), Next::Request);
    assert!(seat.begin());
    assert!(board.fronts[0].announce_sleep());
    (seat, segment, front)
}

fn slot(segment: &'static Segment) -> &'static SlotHead {
    &segment.board().slots[0]
}

fn was_rung(bell: &OwnedFd) -> bool {
    rustix::io::read(bell, &mut [0; 8]).is_ok()
}

fn complain(seat: &mut Seat, text: &[u8]) -> u32 {
    for part in [&header(frame::ERRORS, text.len())[..], text] {
        assert_eq!(seat.write(part), part.len());
    }
    4 + text.len() as u32
}

#[test]
fn errors_are_there_for_who_looks_and_wake_nobody() {
    let (mut seat, segment, bell) = begun();
    assert_eq!(seat.door(), door::GATEWAY_WITH_ERRORS);
    let length = complain(&mut seat, b"early");
    seat.show_interim();
    assert_eq!(slot(segment).written.load(Relaxed), length);
    assert!(!seat.reply_started() && !was_rung(bell));
    seat.publish();
    assert!(was_rung(bell), "what was only shown is still to be published");
}

#[test]
fn a_reply_begun_anew_forgets_itself_and_no_errors() {
    let (mut seat, segment, _) = begun();
    let length = complain(&mut seat, b"early");
    seat.show_interim();
    seat.start_head(200);
    assert_eq!(seat.write(b"a head"), 6);
    seat.start_head(500);
    assert_eq!(seat.write(b"another"), 7);
    seat.publish();
    assert!(seat.reply_started());
    let mut written = Vec::new();
    segment.append_reply(0, 0, (length + 7) as usize, &mut written);
    assert!(written.ends_with(b"earlyanother"));
    assert_eq!(slot(segment).written.load(Relaxed), length + 7);
}

#[test]
fn errors_within_a_reply_leave_it_started() {
    let (mut seat, _, bell) = begun();
    assert_eq!(seat.write(b"a head"), 6);
    complain(&mut seat, b"within");
    seat.show();
    assert!(seat.reply_started() && !was_rung(bell));
    seat.finish();
    assert!(was_rung(bell));
}
