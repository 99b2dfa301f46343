//! The reply window and the front's doorbell.

use crate::kit::*;
use wire::sync::Ordering::*;
use wire::{REPLY_BYTES, REPLY_ROOM, State};

const FULL: u32 = REPLY_BYTES as u32;
const ENOUGH: u32 = REPLY_ROOM as u32;

/// What the front reads was published before.
fn publish_all(world: &World) {
    world.board.slots[0].written.store(FULL, Release);
}

/// A writer that finds the window full sleeps until there is room, or nobody reads any more.
fn writer(world: &World) {
    let slot = &world.board.slots[0];
    while slot.room_beyond(FULL) == 0 && slot.cancelled.load(Acquire) == 0 {
        slot.wait_for_room(FULL);
    }
}

/// Announce, fence, look for room, sleep against make room, fence, look for a sleeper, wake.
#[test]
fn room_reaches_a_waiting_writer() {
    explore(4, || {
        let world = World::new(0);
        publish_all(&world);
        let writer = thread(&world, writer);
        world.board.slots[0].consumed(ENOUGH);
        writer.join().unwrap();
    });
}

/// The same when the front gives the reply up.
#[test]
fn abandonment_reaches_a_waiting_writer() {
    explore(4, || {
        let world = World::new(0);
        let writer = thread(&world, writer);
        world.board.abandon(0);
        writer.join().unwrap();
    });
}

/// A front that dies while it gives room back leaves no writer asleep.
#[test]
fn a_front_dies_before_a_waiting_writer() {
    explore_deaths(3, |death| {
        let world = World::new(1);
        world.put(0, 1);
        let claim = world.board.take(0, 1).unwrap();
        world.run(claim);
        publish_all(&world);
        let seat = thread(&world, move |world| {
            writer(world);
            world.finish(claim);
        });
        let front = thread(&world, move |world| {
            death.strikes(|| world.board.slots[0].consumed(ENOUGH)).is_some()
        });
        if !front.join().unwrap() {
            world.board.settle_front();
        }
        seat.join().unwrap();
        world.sweep();
        world.all_settled(1);
    });
}

/// Parts of a reply and its end reach a front that sleeps, and what was published with them.
#[test]
fn a_reply_reaches_a_sleeping_front() {
    explore(3, || {
        let world = World::new(1);
        world.put(0, 1);
        let seat = thread(&world, |world| {
            let claim = world.board.take(0, 1).unwrap();
            world.run(claim);
            world.board.slots[0].written.store(10, Release);
            world.board.fronts[0].note(0);
            if world.board.fronts[0].must_ring() {
                world.eventfd.ring();
            }
            world.board.slots[0].written.store(20, Release);
            world.finish(claim);
        });
        let mut read = 0;
        while world.state(0) != State::Free {
            world.front_turn(|slot| {
                let done = world.state(slot) == State::Done;
                read = world.board.slots[0].written.load(Acquire);
                if done {
                    assert_eq!(read, 20, "DONE is seen before the reply's last bytes");
                    world.free(slot);
                }
            });
        }
        seat.join().unwrap();
    });
}

/// Two workers complete at the same time; the front sleeps in between and misses neither.
#[test]
fn two_completions_reach_a_sleeping_front() {
    explore(2, || {
        let world = World::new(2);
        world.put(0, 1);
        world.put(1, 2);
        let seats = [0, 1].map(|seat| {
            let claim = world.board.take(seat, 1).unwrap();
            thread(&world, move |world| world.finish(claim))
        });
        let mut freed = 0;
        while freed < 2 {
            world.front_turn(|slot| {
                if world.state(slot) == State::Done {
                    world.free(slot);
                    freed += 1;
                }
            });
        }
        for seat in seats {
            seat.join().unwrap();
        }
    });
}
