//! What is no good answer is a failure, by its cause, and never counts as speed.

mod synthetic;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::{Duration, Instant};

use oribi_load::outcome::{Failures, Tick};
use oribi_load::plan::Shape;
use synthetic::{Answer, Server, closed, hello, open, plan, run, within};

#[test]
fn a_server_that_lies_with_503() {
    let server = Server::tcp(|asked| {
        sleep(Duration::from_millis(2));
        if asked.nr % 4 == 0 { hello() } else { Answer::Plain(503, b"no".to_vec()) }
    });
    let outcome = run(&plan(&server.to, closed(2, 0.5)));
    let class = &outcome.classes[0];
    let refused = class.failures.status[&503];
    assert_eq!(class.failures, Failures { status: [(503, refused)].into(), ..Failures::default() });
    assert!(class.ok > 10 && refused.abs_diff(3 * class.ok) <= 6, "{} {refused}", class.ok);
    assert_eq!(class.bytes, 5 * class.ok, "bodies of good answers only");
    let failed: u32 = outcome.ticks.iter().map(|tick| tick.failed).sum();
    assert_eq!(u64::from(failed), refused);
    assert_eq!((outcome.connects, outcome.connections), (2, 2), "an answer keeps its connection");
}

#[test]
fn a_server_that_says_nothing_but_503() {
    let server = Server::tcp(|_| Answer::Plain(503, Vec::new()));
    let outcome = run(&plan(&server.to, open(100.0, 0.5, 10)));
    let class = &outcome.classes[0];
    assert_eq!(
        (class.sent, class.ok, class.ok_in_time, class.failures.status[&503]),
        (50, 0, 0, 50)
    );
    assert_eq!(class.latency.percentile_ms(0.5), None);
    // It was asked all the time, and never answered well: one gap.
    within(outcome.gap_ms, 480.0, 500.0);
    within(outcome.gap_at_ms, 0.0, 20.0);
}

#[test]
fn a_server_that_dies() {
    let served = Arc::new(AtomicBool::new(false));
    let (seen, begin) = (Arc::clone(&served), Instant::now());
    let mut server = Server::tcp(move |_| {
        seen.store(true, Ordering::SeqCst);
        sleep(Duration::from_millis(5));
        hello()
    });
    let to = server.to.clone();
    let killer = std::thread::spawn(move || {
        while !served.load(Ordering::SeqCst) {
            sleep(Duration::from_millis(1));
        }
        sleep(Duration::from_millis(500));
        server.die();
        server
    });
    let outcome = run(&plan(&to, closed(4, 1.5)));
    within(begin.elapsed().as_secs_f64(), 1.5, 2.5);
    killer.join().unwrap();
    let class = &outcome.classes[0];
    assert!(class.ok > 100);
    within(class.failures.reset as f64, 1.0, 8.0);
    // Four connections that rest for 10 ms between their tries, for a second: no spin.
    within(class.failures.refused as f64, 100.0, 410.0);
    assert_eq!(class.failures.total(), class.failures.reset + class.failures.refused);
    within(outcome.gap_ms, 900.0, 1_010.0);
    within(outcome.gap_at_ms, 480.0, 620.0);
    assert!(outcome.ticks.len() >= 15);
    let dead: Vec<&Tick> = outcome.ticks[7..15].iter().collect();
    assert!(dead.iter().all(|tick| tick.ok == 0 && tick.failed > 0), "{dead:?}");
}

#[test]
fn nobody_listens() {
    let to = Server::tcp(|_| hello()).to.clone();
    let outcome = run(&plan(&to, open(200.0, 0.3, 10)));
    let class = &outcome.classes[0];
    assert_eq!((class.sent, class.failures.refused), (60, 60));
    assert_eq!((outcome.connects, outcome.connections), (0, 0));
    let missing = synthetic::unix_path();
    let outcome = run(&plan(&format!("unix://{}", missing.display()), open(100.0, 0.1, 10)));
    assert_eq!(outcome.classes[0].failures.refused, 10);
}

#[test]
fn resets_and_garbage() {
    let server = Server::tcp(|asked| match asked.nr % 5 {
        0 => Answer::Reset,
        1 => Answer::Last(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf".to_vec()),
        2 => Answer::Last(Vec::new()),
        3 => Answer::Raw(b"SSH-2.0-OpenSSH\r\n\r\n".to_vec()),
        _ => hello(),
    });
    let outcome = run(&plan(&server.to, open(200.0, 0.5, 20)));
    let class = &outcome.classes[0];
    assert_eq!((class.sent, class.ok), (100, 20));
    let expected = Failures { reset: 60, garbage: 20, ..Failures::default() };
    assert_eq!(class.failures, expected);
    assert!(outcome.connects >= 80, "whatever broke is not used again");
}

#[test]
fn what_hangs_is_given_up_while_the_run_goes_on() {
    let server = Server::tcp(|_| Answer::Silence);
    let mut hanging = plan(&server.to, closed(4, 1.0));
    hanging.timeout_ms = 200;
    let outcome = run(&hanging);
    // 0.2 s, and then a rest of 10 ms: five times on each connection.
    within(outcome.classes[0].failures.timeout as f64, 16.0, 20.0);
    assert_eq!(outcome.classes[0].failures.total(), outcome.classes[0].failures.timeout);
    assert_eq!(outcome.connects, outcome.classes[0].sent, "and its connection with it");
    within(outcome.drained, 1.0, 1.3);
    assert_eq!(outcome.unanswered_at_end, 4);
    within(outcome.gap_ms, 990.0, 1_000.0);

    // Each at its own time, wherever the others are.
    hanging.shape = open(50.0, 1.0, 100);
    let outcome = run(&hanging);
    within(outcome.drained, 1.1, 1.4);
    let by_tick: Vec<u32> = outcome.ticks.iter().map(|tick| tick.failed).collect();
    assert_eq!(by_tick.iter().sum::<u32>(), 50);
    assert!(by_tick[3..11].iter().all(|failed| (2..=8).contains(failed)), "{by_tick:?}");
}

#[test]
fn who_waits_for_a_connection_in_vain_is_given_up_too() {
    let server = Server::tcp(|_| Answer::Silence);
    let mut hanging = plan(&server.to, open(1_000.0, 0.3, 1));
    hanging.timeout_ms = 300;
    let outcome = run(&hanging);
    assert_eq!((outcome.classes[0].failures.timeout, outcome.connections), (300, 1));
    within(outcome.drained, 0.59, 0.9);
    within(outcome.unanswered_at_end as f64, 295.0, 300.0);
}

#[test]
fn a_late_answer_counts_as_latency_but_not_as_speed() {
    let server = Server::tcp(|_| {
        sleep(Duration::from_millis(400));
        hello()
    });
    let outcome = run(&plan(&server.to, closed(3, 0.2)));
    let class = &outcome.classes[0];
    assert_eq!((class.sent, class.ok, class.ok_in_time), (3, 3, 0));
    within(outcome.drained, 0.4, 0.6);
    within(outcome.gap_ms, 190.0, 200.0);
}

#[test]
fn a_full_queue_of_a_unix_socket_refuses() {
    let path = synthetic::unix_path();
    let socket = {
        use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, bind, listen, socket};
        let fd = socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap();
        bind(&fd, &SocketAddrUnix::new(&path).unwrap()).unwrap();
        listen(&fd, 2).unwrap();
        fd
    };
    let burst = Shape::Burst { at_once: 10, times: 1, pause_ms: 0, keep_alive: false };
    let mut full = plan(&format!("unix://{}", path.display()), burst);
    full.timeout_ms = 200;
    let outcome = run(&full);
    let failures = &outcome.classes[0].failures;
    // The kernel lets one more in than the queue's length.
    assert_eq!((failures.timeout, failures.refused), (3, 7));
    drop(socket);
    std::fs::remove_file(path).unwrap();
}

#[test]
fn a_pause_shows_in_gap_and_ticks() {
    let gate = Mutex::new(());
    let server = Server::tcp(move |asked| {
        let _one_at_a_time = gate.lock().unwrap();
        let at = asked.since.as_millis() as u64;
        sleep(Duration::from_millis(if (500..800).contains(&at) { 800 - at } else { 2 }));
        hello()
    });
    let outcome = run(&plan(&server.to, closed(1, 1.2)));
    within(outcome.gap_ms, 280.0, 340.0);
    within(outcome.gap_at_ms, 480.0, 560.0);
    assert_eq!(outcome.ticks[6], Tick::default());
    assert!(outcome.ticks[3].ok >= 5 && outcome.ticks[10].ok >= 5, "{:?}", outcome.ticks);
    assert!((12..=13).contains(&outcome.ticks.len()));
}

#[test]
fn plans_without_sense() {
    let sound = plan("tcp://127.0.0.1:1", closed(1, 1.0));
    type Spoil = fn(&mut oribi_load::plan::Plan);
    let spoils: [(Spoil, &str); 6] = [
        (|plan| plan.to = "localhost:80".into(), "tcp://HOST:PORT"),
        (|plan| plan.requests.clear(), "requests"),
        (|plan| plan.timeout_ms = 0, "timeout_ms"),
        (|plan| plan.requests[0].path = "/a b".into(), "/a b"),
        (|plan| plan.shape = open(-1.0, 1.0, 1), "rate"),
        (|plan| plan.shape = closed(0, 1.0), "connections"),
    ];
    for (spoil, named) in spoils {
        let mut plan = sound.clone();
        spoil(&mut plan);
        let message = oribi_load::run(&plan).unwrap_err();
        assert!(message.contains(named) && !message.contains('\n'), "{message}");
    }
}
