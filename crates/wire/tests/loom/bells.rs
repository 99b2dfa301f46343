//! Sleeping and waking: no request waits while a seat that could take it sleeps.

use crate::crew::Crew;
use crate::kit::*;
use loom::sync::Mutex;
use std::sync::Arc;
use wire::State;
use wire::sync::Ordering::*;

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
    explore(2, || {
        let world = World::new(2);
        let seats = [one_request(&world, 0, 1), one_request(&world, 1, 1)];
        world.put(0, 1);
        world.put(1, 2);
        let [first, second] = seats.map(|seat| seat.join().unwrap().unwrap().slot);
        assert_ne!(first, second);
    });
}

/// A seat that keeps a wake to itself leaves a request waiting beside an idle seat: the model
/// finds it, so the rule of passing on is needed.
#[test]
#[should_panic(expected = "deadlock")]
fn a_wake_kept_is_a_wake_lost() {
    explore(2, || {
        let world = World::new(2);
        world.selfish.store(true, std::sync::atomic::Ordering::SeqCst);
        let seats = [one_request(&world, 0, 1), one_request(&world, 1, 1)];
        world.put(0, 1);
        world.put(1, 2);
        for seat in seats {
            seat.join().unwrap();
        }
    });
}

/// A seat that is told to leave while it lies down does not oversleep it.
#[test]
fn retirement_reaches_a_seat_that_lies_down() {
    explore(4, || {
        let world = World::new(1);
        let seat = worker(&world, 0, 1);
        world.dismiss();
        seat.join().unwrap();
    });
}

/// A request that is put around a switch is taken by the old generation before it or by the new
/// one after it; no seat of the serving generation sleeps through.
#[test]
fn a_switch_reaches_the_sleepers() {
    explore(2, || {
        let world = World::new(1);
        let old = worker(&world, 0, 1);
        let new = worker(&world, 1, 2);
        let front = thread(&world, |world| {
            world.put(0, 1);
        });
        world.board.header.serving.store(2, Release);
        world.board.ring_all();
        front.join().unwrap();
        old.join().unwrap();
        new.join().unwrap();
        assert_eq!(world.state(0), State::Done);
    });
}

/// Two threads of one process, as `worker::Seat` plays them on the real `Crew`: the first that
/// takes makes the other the one to be woken, so that both are busy with a request each.
#[test]
fn a_sibling_is_armed_when_its_process_gets_busy() {
    explore(2, || {
        let world = World::new(2);
        let process = Arc::new((Crew::default(), Mutex::new(())));
        let seats = [0, 1].map(|index| {
            let process = process.clone();
            thread(&world, move |world| one_request_of_a_crew(world, &process, index))
        });
        world.put(0, 1);
        world.put(1, 2);
        for seat in seats {
            seat.join().unwrap();
        }
    });
}

/// A seat that steps aside after a reply takes its sibling's announcement back, and whoever is put
/// meanwhile rings nobody: it is found, and the sibling announced, when the seat has come back.
#[test]
fn a_sibling_is_armed_again_when_its_process_comes_back() {
    explore(2, || {
        let world = World::new(2);
        let process = Arc::new((Crew::default(), Mutex::new(())));
        // It has served a request, and not looked for another yet.
        process.0.begun(&world.board);
        let aside = process.clone();
        let seats = [
            thread(&world, move |world| back_from_aside(world, &aside, 0)),
            thread(&world, move |world| one_request_of_a_crew(world, &process, 1)),
        ];
        world.put(0, 1);
        world.put(1, 2);
        for seat in seats {
            seat.join().unwrap();
        }
    });
}

/// `worker::Seat::step_aside`, `come_back`, and `turn` for one more request.
fn back_from_aside(world: &World, process: &(Crew, Mutex<()>), index: u16) {
    let (board, (crew, interpreter)) = (&world.board, process);
    let pass_on = |owed: bool| {
        if owed && board.first_waiting().is_some() {
            board.ring_one();
        }
    };
    let guard = interpreter.lock().unwrap();
    pass_on(crew.step_aside(board));
    pass_on(crew.come_back(board));
    if board.take(index, 1).is_none() {
        crew.finished();
        drop(guard);
        one_request_of_a_crew(world, process, index);
    }
}

/// `worker::Seat::turn` and `sleep` until one request is taken, which then lasts for ever. The
/// lock is the interpreter's. Whoever takes gets up first and then says that it is busy: the other
/// way round it would keep the announcement that its sibling needs.
fn one_request_of_a_crew(world: &World, (crew, interpreter): &(Crew, Mutex<()>), index: u16) {
    let board = &world.board;
    let pass_on = |owed: bool| {
        if owed && board.first_waiting().is_some() {
            board.ring_one();
        }
    };
    loop {
        let guard = interpreter.lock().unwrap();
        board.seats[index as usize].prepare();
        crew.lie_down(board, index, true);
        if board.take(index, 1).is_some() {
            let owed = crew.get_up(board, index);
            return pass_on(crew.begun(board) || owed);
        }
        drop(guard);
        board.seats[index as usize].sleep(None);
        let _guard = interpreter.lock().unwrap();
        let owed = crew.get_up(board, index);
        if board.take(index, 1).is_some() {
            return pass_on(crew.begun(board) || owed);
        }
        pass_on(owed);
    }
}

/// A process that may take one request, with two threads, beside another process: whichever of its
/// threads takes, the second request reaches the other process, even if the wake for it was meant
/// for the thread that may not take it.
#[test]
fn a_spent_process_keeps_no_wake() {
    explore(2, || {
        let world = World::with_seats(3, 2);
        let process = Arc::new((Crew::new(0, 1), Mutex::new(())));
        let seats = [0, 1].map(|index| {
            let process = process.clone();
            thread(&world, move |world| one_request_of_a_limit(world, &process, index))
        });
        let other = worker(&world, 2, 1);
        world.put(0, 1);
        world.put(1, 2);
        let taken = seats.map(|seat| u32::from(seat.join().unwrap())).iter().sum::<u32>();
        other.join().unwrap();
        assert!(taken <= 1, "no more than its limit");
    });
}

/// As `one_request_of_a_crew`, within the process's limit, until the seat is dismissed. True if it
/// has taken one, which is over at once.
fn one_request_of_a_limit(
    world: &World,
    (crew, interpreter): &(Crew, Mutex<()>),
    index: u16,
) -> bool {
    let board = &world.board;
    let pass_on = |owed: bool| {
        if owed && board.first_waiting().is_some() {
            board.ring_one();
        }
    };
    let mut taken = false;
    loop {
        let guard = interpreter.lock().unwrap();
        board.seats[index as usize].prepare();
        crew.lie_down(board, index, true);
        let claim = if crew.may_take() { board.take(index, 1) } else { None };
        if let Some(claim) = claim {
            crew.count(board);
            let owed = crew.get_up(board, index);
            pass_on(crew.begun(board) || owed);
            taken = true;
            world.run(claim);
            board.complete(claim);
            world.closed();
            crew.finished();
        } else if board.seats[index as usize].retire.load(Relaxed) == 0 {
            drop(guard);
            board.seats[index as usize].sleep(None);
            let _guard = interpreter.lock().unwrap();
            pass_on(crew.get_up(board, index));
        } else {
            pass_on(crew.get_up(board, index));
            return taken;
        }
    }
}
