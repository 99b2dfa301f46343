//! One role dies after step n, for every n; the supervisor settles; then everything must go on.

use crate::kit::*;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use wire::State;

/// A worker that takes one request and may die at it; once it is dead, its process is settled.
fn mortal_worker(world: &Arc<World>, death: Death) -> loom::thread::JoinHandle<bool> {
    thread(world, move |world| {
        let lived = death.strikes(|| {
            if let Some(claim) = (Seat { world, index: 0, generation: 1 }).next() {
                world.run(claim);
                world.finish(claim);
            }
        });
        lived.is_some()
    })
}

/// Closes what the worker of seat 0 had made DONE, or the settlement in its place.
fn close_what_seat_0_had(world: &World) {
    for slot in &world.board.slots {
        let word = slot.word();
        if word.state == State::Done && word.owner == 0 {
            world.closed();
        }
    }
}

/// Whatever a worker was at (asleep, claiming, passing a wake on, running, replying), the other
/// worker gets what still waits, and no request runs twice.
#[test]
fn a_worker_dies_beside_another() {
    explore_deaths(1, |death| {
        let world = World::new(2);
        let dying = mortal_worker(&world, death);
        let living = worker(&world, 1, 1);
        world.put(0, 1);
        world.put(1, 2);
        if !dying.join().unwrap() {
            world.board.settle_seats(0, 1, false);
        }
        close_what_seat_0_had(&world);
        living.join().unwrap();
        for slot in [0, 1] {
            assert_eq!(world.state(slot), State::Done);
            world.free(slot);
        }
        world.all_settled(1);
    });
}

/// A worker dies while it passes a wake on: the sleeper it has claimed, and nobody else can find,
/// still gets the request.
#[test]
fn a_worker_dies_passing_a_wake_on() {
    explore_deaths(1, |death| {
        let world = World::new(2);
        let living = worker(&world, 1, 1);
        let dying = thread(&world, move |world| {
            for (slot, number) in [(0, 1), (1, 2)] {
                world.fill(slot, number);
                world.board.put(slot).unwrap();
            }
            let seat = Seat { world, index: 0, generation: 1 };
            let lived = death.strikes(|| {
                let claim = world.board.take(0, 1);
                seat.pass_wake_on();
                claim.into_iter().for_each(|claim| world.finish(claim));
            });
            lived.is_some()
        });
        if !dying.join().unwrap() {
            world.board.settle_seats(0, 1, false);
        }
        close_what_seat_0_had(&world);
        living.join().unwrap();
        assert!([0, 1].iter().all(|slot| world.state(*slot) == State::Done));
    });
}

/// A worker dies while it replies; the front that sleeps hears of everything that is DONE.
#[test]
fn a_worker_dies_before_a_sleeping_front() {
    explore_deaths(1, |death| {
        let world = World::new(2);
        world.put(0, 1);
        world.put(1, 2);
        let front = thread(&world, |world| {
            let mut freed = 0;
            while freed < 2 {
                world.front_turn(|slot| {
                    if world.state(slot) == State::Done {
                        world.free(slot);
                        freed += 1;
                    }
                });
            }
        });
        let dying = thread(&world, move |world| {
            let lived = death.strikes(|| {
                for _ in 0..2 {
                    let claim = world.board.take(0, 1).unwrap();
                    world.run(claim);
                    world.finish(claim);
                }
            });
            lived.is_some()
        });
        if !dying.join().unwrap() {
            let settled = world.board.settle_seats(0, 1, false);
            if settled.ring_fronts & 1 != 0 {
                world.eventfd.ring();
            }
            while let Some(claim) = world.board.take(1, 1) {
                world.run(claim);
                world.finish(claim);
            }
        }
        front.join().unwrap();
        world.all_settled(1);
    });
}

/// A front dies while it fills, puts, rings, cancels, looks at replies and frees. The next front
/// finds every slot again, and the worker that slept through it wakes for the next request.
#[test]
fn a_front_dies_beside_a_worker() {
    explore_deaths(1, |death| {
        let world = World::new(1);
        let seat = worker_for_ever(&world);
        let front = thread(&world, move |world| {
            death.strikes(|| {
                let position = world.put(0, 1);
                if world.board.cancel(0, position) {
                    world.free(0);
                }
                world.sweep();
            });
        });
        front.join().unwrap();
        world.board.settle_front();
        let wait_for_free = || {
            while world.state(0) != State::Free {
                world.front_turn(|slot| world.free_done(slot));
            }
        };
        wait_for_free();
        world.put(0, 2);
        wait_for_free();
        world.dismiss();
        seat.join().unwrap();
        world.all_settled(1);
        assert_eq!(world.begun[1].load(SeqCst), 1);
    });
}
