use super::*;

type Tested = Arc<Queue<&'static str>>;

fn turn(queue: &Tested) -> Turn<&'static str> {
    match queue.ask(None) {
        Ok(Asked::Turn(turn)) => turn,
        _ => panic!("there should be a free backend"),
    }
}

fn waiting(queue: &Tested, number: Option<u64>) -> Waiting<&'static str> {
    match queue.ask(number) {
        Ok(Asked::Waits(waiting)) => waiting,
        _ => panic!("nothing should be free"),
    }
}

fn granted(waiting: &mut Waiting<&'static str>) -> Option<Turn<&'static str>> {
    waiting.granted.try_recv().ok().and_then(Result::ok)
}

#[test]
fn first_come_first_served_and_never_more_than_the_limit() {
    let queue: Tested = Queue::new(2, 1);
    let (one, two) = (turn(&queue), turn(&queue));
    assert_eq!((one.backend, two.backend), (0, 1));
    let mut waits: Vec<_> = (0..3).map(|_| waiting(&queue, None)).collect();
    drop(two);
    let first = granted(&mut waits[0]).unwrap();
    assert_eq!(first.backend, 1);
    assert!(granted(&mut waits[1]).is_none() && granted(&mut waits[2]).is_none());
    // Who leaves the queue is passed over.
    drop(waits.remove(1));
    drop(one);
    assert_eq!(granted(&mut waits[1]).unwrap().backend, 0);
    drop(first);
    assert_eq!(queue.look().1, 0);
}

#[test]
fn a_turn_that_nobody_takes_goes_to_the_next() {
    let queue: Tested = Queue::new(1, 1);
    let (one, left, mut next) = (turn(&queue), waiting(&queue, None), waiting(&queue, None));
    drop(one);
    // Granted, and its client leaves before it has looked.
    drop(left);
    assert!(granted(&mut next).is_some());
}

#[test]
fn of_idle_backends_the_one_used_last_has_the_next_and_its_connection() {
    let queue: Tested = Queue::new(3, 2);
    let turns: Vec<_> = (0..3).map(|_| turn(&queue)).collect();
    let busiest: Vec<_> = turns.iter().map(|turn| turn.backend).collect();
    assert_eq!(busiest, [0, 1, 2], "each has one before any has two");
    for turn in turns {
        turn.keep("kept");
    }
    let mut again = turn(&queue);
    assert_eq!((again.backend, again.take_kept()), (2, Some("kept")));
    drop(again);
    let mut without = turn(&queue);
    assert_eq!((without.backend, without.take_kept()), (2, None));
}

#[test]
fn a_backend_that_cannot_be_reached_is_passed_over_until_it_can() {
    let queue: Tested = Queue::new(2, 1);
    let (one, two) = (turn(&queue), turn(&queue));
    let (number, mut later) = (one.number, waiting(&queue, None));
    assert!(one.has_failed());
    assert!(granted(&mut later).is_none());
    // Who has had a turn in vain is before those who came later.
    let mut again = waiting(&queue, Some(number));
    drop(two);
    let two = granted(&mut again).unwrap();
    assert_eq!(two.backend, 1);
    assert!(granted(&mut later).is_none());
    queue.comes_up(0);
    assert_eq!(granted(&mut later).unwrap().backend, 0);
    let (seen, waiting) = queue.look();
    assert_eq!((seen[1], waiting), (Seen { up: true, in_flight: 1 }, 0));
}

#[test]
fn the_last_to_fail_makes_it_dark_and_then_nobody_waits() {
    let queue: Tested = Queue::new(1, 2);
    let (one, two) = (turn(&queue), turn(&queue));
    assert!(one.has_failed());
    assert!(!two.has_failed(), "it is known already");
    let mut waits = waiting(&queue, None);
    assert!(!queue.refuse_in_the_dark());
    queue.lock().dark = Instant::now().checked_sub(DARK);
    assert!(queue.refuse_in_the_dark());
    assert!(matches!(waits.granted.try_recv(), Ok(Err(Refusal::NoBackend))));
    assert!(matches!(queue.ask(None), Err(Refusal::NoBackend)));
    queue.comes_up(0);
    drop(turn(&queue));
}

#[test]
fn the_queue_has_an_end() {
    let queue: Tested = Queue::new(1, 1);
    let _one = turn(&queue);
    let waits: Vec<_> = (0..WAITING).map(|_| waiting(&queue, None)).collect();
    assert!(matches!(queue.ask(None), Err(Refusal::Overloaded)));
    drop(waits);
    waiting(&queue, None);
}

#[test]
fn an_old_connection_is_not_used_again() {
    let queue: Tested = Queue::new(1, 1);
    turn(&queue).keep("kept");
    let stale = Instant::now().checked_sub(FRESH).unwrap();
    queue.lock().backends[0].kept[0].1 = stale;
    assert!(turn(&queue).take_kept().is_none());
    assert!(queue.lock().backends[0].kept.is_empty());
}
