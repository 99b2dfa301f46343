//! Sleeping and waking: no request waits while a seat that could take it sleeps.

use crate::kit::*;

/// Announce, fence, look again, sleep against publish, fence, look for sleepers, wake. Needs the
/// fences of `arm` and of `ring_one`.
#[test]
fn a_put_reaches_the_only_sleeper() {
    explore(3, || {
        let world = World::new(1);
        let seat = one_request(&world, 0, 1);
        world.put(0, 1);
        assert!(seat.join().unwrap().is_some());
    });
}

/// Two puts, two seats, each busy with its one request from then on. Needs the armed swap and the
/// rule that a wake is passed on.
#[test]
fn two_puts_reach_two_sleepers() {
    explore(3, || {
        let world = World::new(2);
        let seats = [one_request(&world, 0, 1), one_request(&world, 1, 1)];
        world.put(0, 1);
        world.put(1, 2);
        let [first, second] = seats.map(|seat| seat.join().unwrap().unwrap().slot);
        assert_ne!(first, second);
    });
}
