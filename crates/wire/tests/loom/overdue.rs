//! A request ends while the supervisor finds that its time is up.

use crate::kit::*;
use wire::sync::Ordering::*;
use wire::{Claim, State};

/// When the first request is due, and that its backtrace is wanted then.
const DUE: u64 = 7;

/// Worker of seat 0: ends a claim as `worker::Seat` does.
fn end(world: &World, claim: Claim) {
    world.board.seats[0].count_served();
    world.finish(claim);
}

/// The worker begins what waits; only the first request has a deadline.
fn begin(world: &World, deadline: u64) -> Option<Claim> {
    let claim = world.board.take(0, 1)?;
    world.run(claim);
    if deadline != 0 {
        world.board.seats[0].set_due(deadline, 0);
    }
    Some(claim)
}

/// Supervisor: what it does when it looks once. The slot it has found, if the worker is to be
/// killed.
fn look(world: &World) -> Option<u32> {
    let seen = world.board.seats[0].deadline_ns.load(Acquire);
    if seen == 0 { None } else { world.board.strike(0, seen) }
}

/// No worker is killed for a request that it has ended: not for the next one of that worker, in
/// the same slot or another one.
#[test]
fn the_next_request_is_not_struck() {
    for second in [0, 1] {
        explore(3, move || {
            let world = World::new(2);
            let first = world.put(0, 1);
            let worker = thread(&world, move |world| {
                let claim = begin(world, DUE).unwrap();
                end(world, claim);
                if second == 0 {
                    world.free(0);
                }
                world.put(second, 2);
                let claim = begin(world, 0).unwrap();
                end(world, claim);
                claim.position
            });
            let struck = look(&world);
            let next = worker.join().unwrap();
            assert!(struck.is_none_or(|slot| slot == 0));
            assert!(!world.board.slots[second as usize].is_overdue(next));
            if struck.is_some() && second == 1 {
                assert!(world.board.slots[0].is_overdue(first));
            }
        });
    }
}

/// A request whose time is up is not run again, though its worker may die at any step of it, its
/// method allows it and so does the server; one whose time is not up is.
#[test]
fn a_struck_request_does_not_return() {
    explore_deaths(2, |death| {
        let world = World::new(1);
        let position = world.put(0, 1);
        world.board.slots[0].idempotent.store(1, Relaxed);
        let worker = thread(&world, move |world| {
            death.strikes(|| {
                let claim = begin(world, DUE).unwrap();
                end(world, claim);
            });
        });
        let struck = look(&world);
        worker.join().unwrap();
        world.board.settle_seats(0, 1, true);
        if struck.is_some() {
            assert!(world.board.slots[0].is_overdue(position));
        }
        let state = world.state(0);
        assert!(state == State::Done || struck.is_none() && state == State::Queued);
    });
}

/// The front thread hears of a struck request before its worker is dead.
#[test]
fn a_struck_request_reaches_a_sleeping_front() {
    explore(3, || {
        let world = World::new(1);
        let position = world.put(0, 1);
        begin(&world, DUE).unwrap();
        let front = thread(&world, move |world| {
            let mut heard = false;
            while !heard {
                world.front_turn(|slot| {
                    heard = world.board.slots[slot as usize].is_overdue(position)
                });
            }
        });
        assert_eq!(look(&world), Some(0));
        // The supervisor rings whether or not the thread sleeps.
        world.eventfd.ring();
        front.join().unwrap();
    });
}

/// An extension and the end of the time: one of them wins.
#[test]
fn an_extension_races_the_deadline() {
    explore(3, || {
        let world = World::new(1);
        world.put(0, 1);
        begin(&world, DUE).unwrap();
        let extending = thread(&world, |world| world.board.seats[0].extend(10));
        let struck = look(&world).is_some();
        extending.join().unwrap();
        let deadline = world.board.seats[0].deadline_ns.load(Relaxed);
        assert_eq!(deadline, if struck { 0 } else { DUE + 10 });
    });
}

/// A listener that sleeps gets its alarm, once.
#[test]
fn an_alarm_reaches_the_listener() {
    explore(3, || {
        let world = World::new(1);
        world.board.seats[0].set_due(0, DUE);
        let listener = thread(&world, |world| {
            let seat = &world.board.seats[0];
            loop {
                let seen = seat.alarms.load(Acquire);
                if seat.take_alarm() {
                    break;
                }
                seat.wait_for_alarm(seen);
            }
        });
        let seat = &world.board.seats[0];
        assert!(seat.raise_alarm(DUE));
        seat.ring_alarm();
        listener.join().unwrap();
        assert!(!seat.take_alarm());
    });
}

/// The listener shares the interpreter with the worker, so it looks between two of its steps.
#[test]
fn an_alarm_is_not_for_the_next_request() {
    explore(3, || {
        let world = World::new(1);
        let seat = &world.board.seats[0];
        seat.set_due(0, DUE);
        let supervisor = thread(&world, |world| {
            let seat = &world.board.seats[0];
            let seen = seat.soft_ns.load(Acquire);
            seen == DUE && seat.raise_alarm(seen)
        });
        seat.count_served();
        assert!(!seat.take_alarm());
        seat.set_due(0, DUE + 1);
        assert!(!seat.take_alarm());
        supervisor.join().unwrap();
        assert!(!seat.take_alarm());
        assert_eq!(seat.soft_ns.load(Relaxed), DUE + 1);
    });
}
