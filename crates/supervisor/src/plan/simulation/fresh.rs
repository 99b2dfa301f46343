//! Fresh workers under a load that never ends: a request each, never more at once than wanted,
//! always one ready, whatever dies.

use super::super::mount::fresh::UNDISTURBED;
use super::*;

fn busy(seed: u64) -> World {
    let mut world = World::fresh(seed, 1 + (seed % 5) as u16);
    world.turn_for(Duration::from_secs(30));
    world.assert_calm(seed);
    world.busy = true;
    // Those that stand ready have been let in already: the clients find them after a restart.
    world.tell(Event::Restart(FIRST));
    world.turn_for(Duration::from_secs(30));
    world
}

#[test]
fn used_workers_are_replaced_without_a_word_and_without_waiting() {
    let mut each = Vec::new();
    for seed in 0..20 {
        let mut world = busy(seed);
        let before = world.answered;
        world.turn_for(Duration::from_secs(10));
        each.push((world.answered - before) / world.target());
        world.busy = false;
        settles(world, seed);
    }
    // One lasts 100 ms and the next comes 25 ms later; a fork takes 20 ms, which do not count.
    let mean = each.iter().sum::<usize>() / each.len();
    assert!(mean > 10_000 / 135, "{mean} requests of each in 10 s: {each:?}");
}

#[test]
fn after_any_chaos_spares_stand_ready() {
    for seed in 0..60 {
        let mut world = busy(seed);
        world.turn_through_chaos();
        (world.chaos, world.busy) = (false, false);
        settles(world, seed);
    }
}

#[test]
fn a_stop_under_load_ends() {
    for seed in 0..40 {
        let mut world = busy(seed);
        world.chaos = seed % 2 == 0;
        world.later(Duration::ZERO, Fate::Chaos);
        world.turn_for(Duration::from_secs(5));
        world.stop(Event::Stop);
        world.turn_for(TIMEOUT + 3 * GRACE + LAST_WAIT);
        assert!(world.exited.is_some(), "seed {seed}: still there");
    }
}

#[test]
fn a_crash_in_a_request_does_not_make_the_next_one_wait() {
    let mut world = busy(3);
    world.limit(|limits| limits.err_respawn_interval = Duration::ZERO);
    let mut crashes = 0;
    let end = world.now + Duration::from_secs(10);
    while world.now < end {
        let running = world.workers.iter().find(|(_, w)| w.used && !w.spent);
        if let Some(((generation, nr), id)) = running.map(|(key, w)| (*key, w.id)) {
            crashes += 1;
            world.later(Duration::ZERO, Fate::WorkerDies(generation, nr, id));
        }
        world.turn_for(Duration::from_millis(10));
    }
    assert!(crashes > 50, "{crashes}: they are replaced at once");
}

#[test]
fn a_successor_waits_for_the_answer_while_enough_stand_ready() {
    let mut world = World::fresh(1, 2);
    world.turn_for(CALM);
    let mut keys = world.workers.keys().copied();
    let (Some((generation, one)), Some((_, other))) = (keys.next(), keys.next()) else {
        panic!("there are workers")
    };
    let take = |world: &mut World, nr| world.tell(Event::Worn { generation, nr, at_limit: true });
    let before = world.actions;
    take(&mut world, one);
    assert_eq!(world.actions, before, "nothing is forked beside the request");
    world.tell(Event::Spent(generation, one));
    assert!(world.actions > before, "it is once that is answered");
    world.turn_for(CALM);
    let before = world.actions;
    take(&mut world, other);
    world.turn_for(UNDISTURBED * 2);
    assert!(world.actions > before, "or takes long");
}
