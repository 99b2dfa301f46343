//! A process's limit of requests: what its seats take, announce and tell.

use rustix::event::{EventfdFlags, eventfd};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering::*;
use wire::doorbell::{FRESH, ONCE, SHUT, SPENT, WORN};
use wire::{Board, Segment, State};
use worker::{Crew, Fronts, Next, Seat};

fn bells() -> &'static [OwnedFd; 2] {
    let bell = || eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).expect("an eventfd");
    Box::leak(Box::new([bell(), bell()]))
}

/// Seats 3 and 4, of a process that takes at most `limit` requests.
fn process(limit: u64) -> (&'static Board, [Seat; 2], &'static OwnedFd) {
    crew(Crew::new(3, limit))
}

fn crew(crew: Crew) -> (&'static Board, [Seat; 2], &'static OwnedFd) {
    let segment = Segment::create().expect("a segment").forever();
    let board: &'static Board = segment.board();
    board.header.serving.store(1, Release);
    board.bells.seats_used.store(5, Release);
    let [front, supervisor] = bells();
    let crew = Arc::new(crew);
    let fronts = Fronts { bells: std::slice::from_ref(front), exchanges: &[], supervisor };
    let seats = [3, 4].map(|index| Seat::new(segment, fronts, crew.clone(), index, 1));
    (board, seats, supervisor)
}

fn put(board: &Board, slot: u32) {
    board.slots[slot as usize].state.store(State::Filling as u64, Relaxed);
    board.put(slot).expect("there is room");
}

/// How often the supervisor was rung since the last time.
fn rung(bell: &OwnedFd) -> u64 {
    let mut count = [0; 8];
    rustix::io::read(bell, &mut count).map_or(0, |_| u64::from_ne_bytes(count))
}

fn wear(board: &Board) -> u32 {
    board.seats[3].wear.load(Relaxed)
}

#[test]
fn seats_of_a_spent_process_are_not_announced() {
    let (board, [mut first, mut second], supervisor) = process(2);
    assert_eq!(second.turn(), Next::Sleep);
    assert_eq!(board.armed(), 1);
    put(board, 0);
    assert_eq!(first.turn(), Next::Request);
    assert_eq!((wear(board), rung(supervisor)), (WORN, 1));
    assert!(first.begin());
    assert_eq!(board.armed(), 1, "one more may be taken");
    first.finish();
    put(board, 1);
    put(board, 2);
    assert_eq!(first.turn(), Next::Request);
    assert_eq!(board.armed(), 0, "nobody of this process is of use to what still waits");
    assert!(first.begin());
    assert_eq!((wear(board), rung(supervisor)), (WORN, 0), "it has yet to reply");
    assert_eq!(second.turn(), Next::Sleep);
    first.finish();
    assert_eq!(first.turn(), Next::Sleep);
    assert_eq!((wear(board), rung(supervisor)), (SPENT, 1));
    assert_eq!((board.armed(), board.ring_one()), (0, false));
    assert_eq!(board.first_waiting(), Some(2));
    first.retire();
    assert_eq!((first.turn(), second.turn()), (Next::Leave, Next::Sleep));
    assert_eq!(rung(supervisor), 0);
}

#[test]
fn a_request_that_no_app_was_called_for_does_not_count() {
    let (board, [mut first, mut second], supervisor) = process(1);
    put(board, 0);
    put(board, 1);
    assert_eq!(first.turn(), Next::Request);
    assert_eq!(second.turn(), Next::Sleep);
    board.abandon(0);
    assert!(!first.begin());
    assert_eq!((wear(board), rung(supervisor)), (WORN, 1));
    assert_eq!(first.turn(), Next::Request);
    assert!(first.begin());
    first.finish();
    assert_eq!(first.turn(), Next::Sleep);
    assert_eq!(wear(board), SPENT);
}

#[test]
fn with_the_last_one_given_up_a_seat_is_announced_again() {
    let (board, [mut first, mut second], _) = process(1);
    put(board, 0);
    assert_eq!(first.turn(), Next::Request);
    assert_eq!(second.turn(), Next::Sleep);
    first.decline();
    assert_eq!(first.turn(), Next::Sleep);
    assert_eq!((board.armed(), wear(board)), (1, WORN));
    put(board, 1);
    assert!(board.ring_one());
}

#[test]
fn without_a_limit_nothing_is_told() {
    let (board, [mut first, _], supervisor) = process(0);
    for _ in 0..20 {
        put(board, 0);
        assert_eq!(first.turn(), Next::Request);
        assert!(first.begin());
        first.finish();
    }
    assert_eq!(first.turn(), Next::Sleep);
    assert_eq!((wear(board), rung(supervisor), board.armed()), (FRESH, 0, 1));
}

#[test]
fn relief_is_wanted_with_a_fifth_of_the_requests_left() {
    for (limit, at) in [(1, 1), (2, 1), (5, 4), (9, 8), (10, 8), (50, 40)] {
        let (board, [mut first, _], _) = process(limit);
        let mut taken = 0;
        while wear(board) == FRESH {
            put(board, 0);
            assert_eq!(first.turn(), Next::Request);
            taken += 1;
            assert!(first.begin());
            first.finish();
        }
        assert_eq!(taken, at, "of a limit of {limit}");
    }
}

/// Seat 3, of a process that gets one request.
fn fresh() -> (&'static Board, Seat, &'static OwnedFd) {
    let (board, [seat, _], supervisor) = crew(Crew::once(3));
    (board, seat, supervisor)
}

#[test]
fn a_fresh_process_leaves_after_its_request_without_being_told() {
    let (board, mut seat, supervisor) = fresh();
    put(board, 0);
    put(board, 1);
    assert_eq!(seat.turn(), Next::Request);
    assert_eq!((wear(board), rung(supervisor)), (WORN, 1), "the next can be forked");
    assert!(seat.begin());
    seat.finish();
    assert_eq!(seat.turn(), Next::Leave);
    assert_eq!((wear(board), rung(supervisor)), (SPENT, 1), "the next can be let in");
    assert_eq!((board.armed(), board.first_waiting()), (0, Some(1)));
}

#[test]
fn a_fresh_process_is_used_even_if_no_app_was_called() {
    let (board, mut seat, supervisor) = fresh();
    put(board, 0);
    put(board, 1);
    assert_eq!(seat.turn(), Next::Request);
    board.abandon(0);
    assert!(!seat.begin());
    assert_eq!(seat.turn(), Next::Leave);
    assert_eq!((wear(board), rung(supervisor)), (SPENT, 2));

    let (board, mut seat, _) = fresh();
    put(board, 0);
    put(board, 1);
    assert_eq!(seat.turn(), Next::Request);
    seat.decline();
    assert_eq!(seat.turn(), Next::Leave);
}

#[test]
fn a_spare_neither_takes_nor_is_woken_before_it_is_let_in() {
    let (board, mut seat, _) = fresh();
    board.seats[3].gate.store(SHUT, Release);
    put(board, 0);
    assert_eq!(seat.turn(), Next::Sleep);
    assert_eq!((board.armed(), board.ring_one()), (0, false));
    board.seats[3].gate.store(ONCE, Release);
    board.seats[3].ring();
    seat.sleep();
    assert_eq!(seat.turn(), Next::Request);
}
