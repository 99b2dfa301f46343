//! The plan against years of bad luck: a seeded world of processes that boot slowly, fail, crash,
//! hang and are killed, while people restart and resize. After the bad luck the world calms down,
//! and what should be must be.

mod fresh;
mod world;

use super::*;
use std::collections::BTreeSet;
use world::{FIRST, Fate, TIMEOUT, World, first};

/// Long enough for every slow boot, back-off and patience to end.
const CALM: Duration = Duration::from_secs(120);

fn booted(seed: u64) -> World {
    let mut world = World::new(seed, 1 + (seed % 5) as u16, 1 + (seed % 3) as u16);
    world.turn_for(Duration::from_secs(30));
    world.assert_calm(seed);
    world
}

/// One to three mounts.
fn crowded(seed: u64) -> World {
    let (workers, threads) = (1 + (seed % 5) as u16, 1 + (seed % 3) as u16);
    let mut world = World::of(seed, 1 + (seed % 3) as u16, world::limits(seed, workers, threads));
    world.turn_for(Duration::from_secs(30));
    world.assert_calm(seed);
    world
}

fn through_chaos(seed: u64) -> World {
    let mut world = crowded(seed);
    world.turn_through_chaos();
    world
}

/// Nothing hits it any more: all is as it should be, and stays so.
fn settles(mut world: World, seed: u64) {
    world.turn_for(CALM);
    world.assert_calm(seed);
    let before = world.actions;
    world.turn_for(CALM);
    assert_eq!(world.actions, before, "seed {seed}: nothing is done when nothing happens");
}

#[test]
fn after_any_chaos_the_wanted_workers_serve() {
    for seed in 0..200 {
        let mut world = through_chaos(seed);
        world.chaos = false;
        settles(world, seed);
    }
}

#[test]
fn a_graceful_stop_always_ends() {
    for seed in 0..200 {
        let mut world = through_chaos(seed);
        let began = world.now;
        world.stop(Event::Stop);
        world.turn_for(TIMEOUT + 3 * GRACE + LAST_WAIT);
        assert!(world.exited.is_some(), "seed {seed}: still there after {:?}", world.now - began);
        for event in
            [Event::Stop, Event::Restart(FIRST), Event::FrontDied, Event::Tick, Event::More(FIRST)]
        {
            world.tell(event);
        }
    }
}

#[test]
fn a_stop_without_bad_luck_exits_zero_and_leaves_nothing() {
    for seed in 0..200 {
        let mut world = crowded(seed);
        world.stop(Event::Stop);
        world.turn_for(TIMEOUT + 3 * GRACE + LAST_WAIT);
        assert_eq!(world.exited, Some(0), "seed {seed}");
        assert!(world.workers.is_empty() && world.molds.is_empty() && world.front.is_none());
    }
}

#[test]
fn stopping_at_once_is_prompt_at_any_time() {
    for seed in 0..400 {
        let mut world = World::new(seed, 3, 2);
        world.chaos = seed % 2 == 0;
        let after = world.luck.millis(0, 2000);
        world.turn_for(after);
        if world.exited.is_some() {
            continue;
        }
        if seed % 3 == 0 {
            world.stop(Event::Stop);
        }
        let gone = world.exited.is_some();
        world.stop(Event::StopNow(130));
        world.turn_for(LAST_WAIT);
        let code = world.exited.unwrap_or_else(|| panic!("seed {seed}: still there"));
        assert!(gone || code == 130 || code == 0, "seed {seed}: {code}");
        assert!(world.workers.values().all(|worker| !worker.exists), "seed {seed}");
    }
}

#[test]
fn a_first_boot_that_fails_ends_with_one() {
    let mut world = World::new(1, 2, 1);
    let id = world.molds[&first(1)].0;
    world.later(Duration::ZERO, Fate::MoldFails(first(1), id));
    world.turn_for(LAST_WAIT);
    assert_eq!(world.exited, Some(1));
}

#[test]
fn a_generation_that_fails_leaves_the_old_one_serving() {
    let mut world = booted(3);
    world.tell(Event::Restart(FIRST));
    let id = world.molds[&first(2)].0;
    world.later(Duration::ZERO, Fate::MoldFails(first(2), id));
    world.turn_for(CALM);
    assert_eq!(world.serving(), 1);
    world.assert_calm(3);
}

#[test]
fn two_generations_stand_side_by_side_until_the_new_one_is_whole() {
    let mut world = booted(4);
    world.tell(Event::Restart(FIRST));
    let mut seen = BTreeSet::new();
    while world.serving() == 1 {
        assert_eq!(world.existing(first(1)), world.target(), "the old one is whole");
        seen.insert(world.existing(first(2)));
        world.turn_for(Duration::from_millis(1));
    }
    assert!(seen.len() > 1, "the new one grew beside it: {seen:?}");
    assert_eq!(world.existing(first(2)), world.target());
    world.turn_for(CALM);
    world.assert_calm(4);
}

#[test]
fn workers_that_die_young_are_replaced_ever_more_slowly() {
    let mut world = World::new(6, 1, 1);
    world.turn_for(Duration::from_secs(30));
    let mut births = Vec::new();
    for _ in 0..9 {
        let ((generation, nr), id) =
            world.workers.iter().map(|(key, worker)| (*key, worker.id)).next().unwrap();
        births.push(world.now);
        // Before it could serve anything.
        world.workers.get_mut(&(generation, nr)).unwrap().born = world.now;
        world.later(Duration::ZERO, Fate::WorkerDies(generation, nr, id));
        world.turn_for(Duration::ZERO);
        while !world.workers.values().any(|worker| worker.exists) {
            world.turn_for(Duration::from_millis(1));
        }
    }
    let waits: Vec<u128> = births.windows(2).map(|two| (two[1] - two[0]).as_millis()).collect();
    assert!(waits[0] < 50, "the first is replaced at once: {waits:?}");
    assert!(waits[7] > 3_000, "the eighth is not: {waits:?}");
}

#[test]
fn a_front_that_never_gets_ready_ends_the_start() {
    let mut world = World::new(6, 1, 1);
    for _ in 0..FRONT_TRIES {
        while world.front.is_none() {
            world.turn_for(Duration::from_millis(1));
        }
        let front = world.front.expect("another try");
        world.later(Duration::ZERO, Fate::FrontDies(front));
        world.turn_for(Duration::ZERO);
    }
    world.turn_for(LAST_WAIT);
    assert_eq!(world.exited, Some(1));
}

#[test]
fn a_front_that_keeps_dying_is_started_ever_more_slowly() {
    let mut world = booted(7);
    let mut waits = Vec::new();
    for _ in 0..8 {
        let front = world.front.expect("a front");
        world.later(Duration::ZERO, Fate::FrontDies(front));
        world.turn_for(Duration::ZERO);
        let died = world.now;
        while world.front.is_none() {
            world.turn_for(Duration::from_millis(1));
        }
        waits.push((world.now - died).as_millis());
    }
    assert_eq!(waits[0], 0, "a front that has lived is replaced at once: {waits:?}");
    assert!(waits[7] > 500, "one that cannot live is not: {waits:?}");
    world.turn_for(CALM);
    world.assert_calm(7);
}

#[test]
fn a_front_that_dies_while_it_drains_has_drained() {
    let mut world = booted(8);
    world.stop(Event::Stop);
    let front = world.front.expect("a front that drains");
    world.later(Duration::ZERO, Fate::FrontDies(front));
    world.turn_for(Duration::ZERO);
    let generations = world.state.mounts.values().flat_map(|mount| mount.generations.values());
    let retiring = generations.into_iter().all(|g| g.role == Role::Leaving);
    assert!(retiring && world.exited.is_none(), "workers are next, long before the timeout");
}

#[test]
fn a_mold_that_hangs_over_a_fork_does_not_keep_the_server_from_ending() {
    let mut world = booted(9);
    let serving = world.serving();
    // Asked for one more, it answers neither that nor anything else.
    let mount = world.state.mounts.get_mut(&FIRST).expect("the mount");
    let stuck = generation::Worker::asked(mount.seats.take().expect("a seat"));
    mount.generations.get_mut(&serving).expect("the generation").workers.insert(99, stuck);
    world.stop(Event::Stop);
    world.turn_for(TIMEOUT + 3 * GRACE + LAST_WAIT);
    assert_eq!(world.exited, Some(1));
}

/// Workers that take requests: ready, told nothing, not spent.
fn taking(world: &World) -> usize {
    let serving = world.workers.iter().filter(|((g, _), _)| *g == first(world.serving()));
    serving.filter(|(_, w)| w.up && !w.retired && !w.spent).count()
}

#[test]
fn a_worker_leaves_only_when_its_relief_is_ready() {
    for seed in 0..100 {
        let mut world = booted(seed);
        let target = world.target();
        let before: BTreeSet<u64> = world.workers.values().map(|w| w.id).collect();
        world.tell(Event::Recycle(FIRST));
        let mut most = target;
        while world.workers.values().any(|w| before.contains(&w.id) && !w.retired) {
            assert!(taking(&world) >= target, "seed {seed}: one has left too early");
            most = most.max(world.workers.values().filter(|w| !w.retired).count());
            world.turn_for(Duration::from_millis(1));
        }
        assert_eq!(most, target + 1, "seed {seed}: one after the other");
        world.turn_for(CALM);
        world.assert_calm(seed);
    }
}

#[test]
fn a_worker_that_never_gets_ready_is_killed_and_its_generation_given_up() {
    let mut world = booted(16);
    world.tell(Event::Restart(FIRST));
    while world.existing(first(2)) == 0 {
        world.turn_for(Duration::from_millis(1));
    }
    let hangs = |fate: &Fate| matches!(fate, Fate::Up(GenerationId { number: 2, .. }, ..));
    world.fates.retain(|next| !hangs(&next.0.2));
    world.turn_for(Duration::from_secs(25));
    assert_eq!(world.serving(), 1);
    assert!(!world.state.mounts[&FIRST].generations.contains_key(&2), "it is given up");
    world.turn_for(CALM);
    world.assert_calm(16);
}

#[test]
fn one_that_nears_its_limit_stays_until_it_has_reached_it() {
    let mut world = booted(12);
    let ((generation, nr), id) =
        world.workers.iter().map(|(key, w)| (*key, w.id)).next().expect("a worker");
    world.tell(Event::Worn { generation, nr, at_limit: true });
    world.turn_for(CALM);
    assert_eq!(world.workers.len(), world.target() + 1, "and its relief");
    assert!(world.workers.values().any(|w| w.id == id && !w.retired));
    world.later(Duration::ZERO, Fate::Spent(generation, nr, id));
    world.turn_for(CALM);
    assert!(world.workers.values().all(|w| w.id != id));
    world.assert_calm(12);
}

#[test]
fn a_held_generation_can_serve_again_until_its_time_is_over() {
    let mut world = booted(13);
    let target = world.target();
    world.tell(Event::Restart(FIRST));
    while world.serving() == 1 {
        world.turn_for(Duration::from_millis(1));
    }
    assert_eq!((world.existing(first(1)), world.existing(first(2))), (target, target));
    world.tell(Event::Rollback(FIRST));
    assert_eq!(world.serving(), 1, "one store, and no waiting");
    world.turn_for(CALM);
    world.assert_calm(13);
    world.tell(Event::Rollback(FIRST));
    assert_eq!(world.serving(), 1, "nobody is held any more");

    world.tell(Event::Restart(FIRST));
    world.turn_for(CALM);
    assert_eq!(world.serving(), 3);
    world.assert_calm(13);
}

#[test]
fn in_a_slow_stop_one_worker_leaves_after_the_other() {
    let mut world = booted(14);
    let interval = Duration::from_secs(5);
    world.limit(|limits| limits.spawn_interval = interval);
    let target = world.target();
    assert!(target > 2, "or the test shows nothing");
    world.tell(Event::SlowStop);
    for gone in 1..target {
        assert_eq!(taking(&world), target - gone, "{gone} have been told");
        assert!(world.exited.is_none());
        world.turn_for(interval);
    }
    world.stopping = true;
    world.turn_for(TIMEOUT + 3 * GRACE + LAST_WAIT);
    assert_eq!(world.exited, Some(0));
}

#[test]
fn forks_keep_their_interval() {
    let mut world = booted(15);
    let interval = Duration::from_secs(5);
    world.limit(|limits| limits.spawn_interval = interval);
    world.tell(Event::Restart(FIRST));
    let mut births = BTreeSet::new();
    while world.serving() == 1 {
        let born = world.workers.iter().filter(|((g, _), w)| *g == first(2) && w.exists);
        births.extend(born.map(|(_, w)| w.born));
        world.turn_for(Duration::from_millis(10));
    }
    let births: Vec<Duration> = births.into_iter().collect();
    assert_eq!(births.len(), world.target());
    let close = interval - Duration::from_millis(20);
    assert!(births.windows(2).all(|two| two[1] - two[0] >= close), "{births:?}");
}

#[test]
fn a_mount_comes_and_goes_while_the_others_serve() {
    let mut world = crowded(17);
    let before: BTreeSet<u64> = world.workers.values().map(|w| w.id).collect();
    world.mount();
    let new = MountId(world.mounts - 1);
    assert_eq!(world.state.standing(new), "booting");
    assert!(!world.routed.contains(&new), "nothing goes there yet");
    world.turn_for(CALM);
    world.assert_calm(17);
    assert!(world.routed.contains(&new) && world.state.standing(new) == "serving");
    world.tell(Event::Unmount(new));
    assert!(!world.routed.contains(&new));
    assert!(world.workers.keys().any(|(g, _)| g.mount == new), "what runs there is finished");
    world.turn_for(CALM);
    world.assert_calm(17);
    assert_eq!(world.state.standing(new), "absent");
    assert!(
        before.iter().all(|id| world.workers.values().any(|w| w.id == *id)),
        "none was touched"
    );
}

#[test]
fn a_mount_that_does_not_load_is_taken_back_and_ends_nothing() {
    let mut world = crowded(18);
    world.mount();
    let new = GenerationId { mount: MountId(world.mounts - 1), number: 1 };
    let id = world.molds[&new].0;
    world.later(Duration::ZERO, Fate::MoldFails(new, id));
    world.turn_for(CALM);
    assert_eq!(world.state.standing(new.mount), "absent");
    world.assert_calm(18);
}

#[test]
fn nobody_comes_in_before_every_mount_serves() {
    let mut world = World::of(19, 3, world::limits(19, 2, 1));
    while world.serving.len() < 3 {
        assert!(!world.accepting);
        world.turn_for(Duration::from_millis(1));
    }
    world.turn_for(CALM);
    world.assert_calm(19);
}
