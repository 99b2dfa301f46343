//! Taking, cancelling, returning: every request ends exactly once, and in order.

use crate::kit::*;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use wire::Claim;
use wire::sync::Ordering::*;

/// Takes until nothing is left, as a worker of generation 1 on seat `owner`.
fn take_all(world: &World, owner: u16) -> Vec<Claim> {
    let claims: Vec<Claim> = std::iter::from_fn(|| world.board.take(owner, 1)).collect();
    for claim in &claims {
        world.run(*claim);
    }
    claims
}

fn taker(world: &Arc<World>, owner: u16) -> loom::thread::JoinHandle<Vec<Claim>> {
    thread(world, move |world| take_all(world, owner))
}

fn runs(world: &World) -> Vec<u32> {
    world.begun.iter().map(|n| n.load(SeqCst)).collect()
}

/// Two takers never get the same request, and leave none.
#[test]
fn two_takers_share_two_requests() {
    explore(3, || {
        let world = World::new(2);
        world.put(0, 1);
        world.put(1, 2);
        let other = taker(&world, 1);
        let mine = take_all(&world, 0);
        let others = other.join().unwrap();
        assert_eq!(mine.len() + others.len(), 2);
        assert_eq!(runs(&world)[..2], [1, 1]);
        assert!(mine.is_sorted_by_key(|claim| claim.position));
    });
}

/// A cancelled request is not taken, a taken one not cancelled; the slot's next request is
/// neither lost nor mixed up with it.
#[test]
fn a_cancel_races_a_take() {
    explore(3, || {
        let world = World::new(2);
        let position = world.put(0, 1);
        let other = taker(&world, 0);
        let cancelled = world.board.cancel(0, position);
        if cancelled {
            world.put(0, 2);
        }
        other.join().unwrap();
        take_all(&world, 1);
        let expected = if cancelled { [0, 1] } else { [1, 0] };
        assert_eq!(runs(&world)[..2], expected);
    });
}

/// What is shed is not taken, what is taken not shed, and nothing stays.
#[test]
fn a_shed_races_a_take() {
    explore(3, || {
        let world = World::new(2);
        world.put(0, 1);
        world.put(1, 2);
        let other = taker(&world, 0);
        let shed = std::cell::Cell::new([0, 0]);
        world.board.shed(&(0..2), 1, |slot| {
            let mut slots = shed.get();
            slots[slot as usize] += 1;
            shed.set(slots);
        });
        other.join().unwrap();
        let [first, second] = shed.get();
        assert_eq!(runs(&world)[..2], [1 - first, 1 - second]);
        assert!(take_all(&world, 1).is_empty());
    });
}

/// Two front threads put while a worker takes: the ring is not full, and the hole between one's
/// position and its slot hides nothing for good.
#[test]
fn two_front_threads_put_at_once() {
    explore(2, || {
        let world = World::new(2);
        let front = thread(&world, |world| {
            world.put(1, 2);
        });
        let seat = worker(&world, 0, 1);
        world.put(0, 1);
        front.join().unwrap();
        seat.join().unwrap();
        assert_eq!(runs(&world)[..2], [1, 1]);
    });
}

/// After a switch has been seen, the old generation takes nothing; before it, the new one nothing.
#[test]
fn a_switch_races_a_take() {
    explore(3, || {
        let world = World::new(2);
        world.put(0, 1);
        world.put(1, 2);
        let old = thread(&world, |world| {
            let first = world.board.take(0, 1);
            let switched = world.board.header.serving.load(Acquire) == 2;
            let second = world.board.take(0, 1);
            assert!(!switched || second.is_none(), "taken after the switch");
            u32::from(first.is_some()) + u32::from(second.is_some())
        });
        assert!(world.board.take(1, 2).is_none(), "taken before the switch");
        world.board.header.serving.store(2, Release);
        let mut taken = 0;
        while world.board.take(1, 2).is_some() {
            taken += 1;
        }
        taken += old.join().unwrap();
        while world.board.take(1, 2).is_some() {
            taken += 1;
        }
        assert_eq!(taken, 2);
    });
}

/// A request goes back to its place while others take, advance the head past it, and prune.
#[test]
fn a_request_returns_among_takers() {
    explore(3, || {
        let world = World::new(2);
        world.put(0, 1);
        world.put(1, 2);
        let dead = world.board.take(0, 1).unwrap();
        assert_eq!(dead.slot, 0);
        let other = taker(&world, 1);
        let settled = world.board.settle_seats(0, 1, false);
        assert_eq!((settled.returned, settled.lost), (1, 0));
        world.board.prune_returned();
        let mine = take_all(&world, 2);
        other.join().unwrap();
        assert!(mine.is_sorted_by_key(|claim| claim.position), "the returned one goes first");
        assert_eq!(runs(&world)[..2], [1, 1]);
        assert!(world.board.prune_returned(), "a hint is left behind");
    });
}

/// A returned request may be cancelled like any other, and its slot used again.
#[test]
fn a_returned_request_is_cancelled() {
    explore(2, || {
        let world = World::new(2);
        let position = world.put(0, 1);
        world.board.take(0, 1).unwrap();
        let other = taker(&world, 1);
        let supervisor = thread(&world, |world| {
            world.board.settle_seats(0, 1, false);
            world.board.prune_returned();
        });
        let cancelled = world.board.cancel(0, position);
        if cancelled {
            world.put(0, 2);
        }
        supervisor.join().unwrap();
        other.join().unwrap();
        take_all(&world, 2);
        let expected = if cancelled { [0, 1] } else { [1, 0] };
        assert_eq!(runs(&world)[..2], expected);
    });
}

/// What a dead front had running is finished into the void, and its slot comes back by the note.
#[test]
fn a_front_is_settled_while_a_worker_completes() {
    explore(3, || {
        let world = World::new(2);
        world.put(0, 1);
        world.put(1, 2);
        let seat = thread(&world, |world| {
            while let Some(claim) = world.board.take(0, 1) {
                world.run(claim);
                world.finish(claim);
            }
        });
        world.board.settle_front();
        world.sweep();
        seat.join().unwrap();
        world.sweep();
        world.all_settled(1);
    });
}

/// Positions go round the ring: an old entry is never taken for a new one.
#[test]
fn the_ring_goes_round() {
    explore(2, || {
        let world = World::new(0);
        let put_and_cancel = || {
            world.fill(0, 1);
            let position = world.board.put(0).expect("the ring is not full");
            world.board.cancel(0, position)
        };
        assert!((0..wire::layout::RING).all(|_| put_and_cancel()));
        let other = thread(&world, |world| world.board.take(1, 1).is_some());
        let taken = !put_and_cancel();
        assert_eq!(other.join().unwrap(), taken);
    });
}
