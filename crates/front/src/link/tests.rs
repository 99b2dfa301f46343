use super::*;

fn options() -> Options {
    let second = Duration::from_secs(1);
    Options {
        first_byte_timeout: 2 * second,
        head_timeout: 3 * second,
        keep_alive_timeout: 4 * second,
        write_timeout: 5 * second,
        half_close_timeout: 6 * second,
        ..Options::default()
    }
}

/// What is due at that second; the clock stood at its beginning for everything before.
fn at(link: &Link, second: u64, queued: bool) -> Option<Due> {
    let moment = Moment { now: second * 1000 + 1, draining: None, lag: 0 };
    link.judge(moment, &options(), |_, _, _| queued)
}

/// A request under way, its client's side closed or not.
fn asked(ended: bool) -> Link {
    let link = Link::default();
    link.received(b"GET");
    link.head_is_whole(false);
    if ended {
        link.end_is_hidden();
    }
    link
}

#[test]
fn a_kept_connection_may_ask_once_more_when_the_front_drains() {
    let link = Link::default();
    link.enter(Phase::Idle);
    link.rests(true);
    let at =
        |now, draining| link.judge(Moment { now, draining, lag: 0 }, &options(), |_, _, _| false);
    assert_eq!(at(3000, None), None);
    assert_eq!(at(3000, Some(2600)), None);
    assert_eq!(at(3000, Some(2500)), Some(Due::Close));
}

#[test]
fn each_phase_has_its_patience() {
    let link = Link::default();
    link.received(b"\r\n");
    assert_eq!((at(&link, 1, false), at(&link, 2, false)), (None, Some(Due::Close)));
    link.received(b"\r\nG");
    assert_eq!((at(&link, 2, false), at(&link, 3, false)), (None, Some(Due::TooSlow)));
    link.head_is_whole(true);
    assert_eq!(at(&link, 1000, false), None);
    link.body_is_whole();
    assert_eq!(at(&link, 1000, true), None);
    link.reply_begins();
    link.wrote(9, 9);
    assert_eq!(at(&link, 1000, false), None);
    link.wrote(5, 9);
    assert_eq!((at(&link, 4, false), at(&link, 6, false)), (None, Some(Due::Stuck)));
    link.reply_ends();
    assert_eq!(at(&link, 6, false), Some(Due::Stuck));
    link.wrote(4, 4);
    assert_eq!(at(&link, 1000, false), None);
    assert!(!link.flushed());
    assert_eq!((at(&link, 1, false), at(&link, 4, false)), (Some(Due::Rest), Some(Due::Close)));
    link.rests(true);
    assert_eq!((at(&link, 1, false), at(&link, 4, false)), (None, Some(Due::Close)));
}

#[test]
fn the_draining_wait_for_nobody_for_long() {
    let moment = Moment { now: 600, draining: Some(0), lag: 0 };
    let due = |link: &Link| link.judge(moment, &Options::default(), |_, _, _| false);
    let link = Link::default();
    assert_eq!(due(&link), Some(Due::Close));
    link.received(b"G");
    assert_eq!(due(&link), Some(Due::TooSlow));
    link.refuse();
    assert_eq!(due(&link), Some(Due::Close));
    assert_eq!(due(&asked(false)), None);
}

#[test]
fn who_has_closed_his_side_is_waited_for_while_something_moves() {
    let link = asked(true);
    assert_eq!((at(&link, 5, true), at(&link, 7, true)), (None, Some(Due::Gone)));
    // A worker has it.
    assert_eq!(at(&link, 1000, false), None);
    link.reply_begins();
    assert_eq!((at(&link, 5, false), at(&link, 7, false)), (None, Some(Due::Gone)));
    link.reply_ends();
    assert_eq!(at(&link, 1000, false), None);
    assert!(link.flushed());
    assert_eq!(at(&asked(false), 1000, true), None);
}

#[test]
fn an_end_is_hidden_while_a_whole_request_is_under_way() {
    let link = Link::default();
    assert!(!link.hides_end(true));
    link.received(b"G");
    assert!(!link.hides_end(true));
    link.head_is_whole(true);
    assert!(link.hides_end(true) && !link.hides_end(false));
    link.body_is_whole();
    assert!(link.hides_end(false));
    link.reply_begins();
    link.reply_ends();
    assert!(link.hides_end(false));
    link.flushed();
    assert!(!link.hides_end(true));
    link.refuse();
    assert!(!link.hides_end(true));
}
