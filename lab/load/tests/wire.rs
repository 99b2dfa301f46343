//! Framing, sockets, bodies, bursts, and what goes on beside.

mod synthetic;

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use oribi_load::outcome::Outcome;
use oribi_load::plan::{Beside, Request, Shape};
use synthetic::{Answer, Server, closed, hello, open, plan, raw, run, within};

fn request(path: &str, class: &str) -> Request {
    Request { path: path.into(), class: class.into(), ..Request::default() }
}

fn class<'o>(outcome: &'o Outcome, name: &str) -> &'o oribi_load::outcome::Class {
    outcome.classes.iter().find(|class| class.class == name).unwrap()
}

#[test]
fn every_framing() {
    let server = Server::tcp(|asked| match asked.path.as_str() {
        "/chunked" => raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
                           4\r\nabcd\r\n3\r\nefg\r\n0\r\n\r\n"),
        "/until-end" => Answer::Last(b"HTTP/1.0 200 OK\r\n\r\nabc".to_vec()),
        "/interim" => raw("HTTP/1.1 103 Soon\r\nLink: x\r\n\r\n\
                           HTTP/1.1 201 Made\r\nContent-Length: 2\r\n\r\nok"),
        "/empty" => raw("HTTP/1.1 204 No Content\r\n\r\n"),
        "/head" if asked.method == "HEAD" => raw("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n"),
        "/close" => Answer::Last(
            b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\n-".to_vec(),
        ),
        path => panic!("{path}"),
    });
    let mut all = plan(&server.to, open(120.0, 0.5, 8));
    let names = ["chunked", "until-end", "interim", "empty", "head", "close"];
    all.requests = names.map(|name| request(&format!("/{name}"), name)).to_vec();
    all.requests[4].method = "HEAD".into();
    let outcome = run(&all);
    let found: Vec<_> =
        outcome.classes.iter().map(|c| (c.class.as_str(), c.ok, c.bytes / c.ok)).collect();
    let each = |(name, bytes)| (name, 10, bytes);
    assert_eq!(found, names.into_iter().zip([7, 3, 2, 0, 0, 1]).map(each).collect::<Vec<_>>());
    within(outcome.connects as f64, 20.0, 29.0);
}

#[test]
fn over_a_unix_socket() {
    let server = Server::unix(|asked| {
        assert_eq!(asked.headers["host"], "localhost");
        hello()
    });
    let outcome = run(&plan(&server.to, closed(3, 0.3)));
    assert!(outcome.classes[0].ok > 100 && outcome.classes[0].failures.total() == 0);
    assert_eq!((outcome.connects, outcome.connections), (3, 3));
}

#[test]
fn a_connection_for_each_request() {
    let server = Server::tcp(|asked| {
        assert_eq!(asked.headers["connection"], "close");
        hello()
    });
    let shape = Shape::Closed { connections: 2, keep_alive: false, reset: false, seconds: 0.2 };
    let outcome = run(&plan(&server.to, shape));
    assert_eq!((outcome.connects, outcome.connections), (outcome.classes[0].ok, 2));
    assert_eq!(outcome.connects, server.requests());
}

#[test]
fn headers_are_sent_and_workers_told_apart() {
    let server = Server::tcp(|asked| {
        assert_eq!((asked.headers["cookie"].as_str(), asked.method.as_str()), ("a=b", "PUT"));
        assert_eq!(asked.headers["content-length"], "3");
        let worker = if asked.nr % 3 == 0 { "77" } else { "78" };
        let status = if asked.nr % 2 == 0 { 200 } else { 500 };
        raw(&format!("HTTP/1.1 {status} X\r\nx-lab-WORKER: {worker}\r\nContent-Length: 0\r\n\r\n"))
    });
    let mut headers = plan(&server.to, open(120.0, 0.5, 1));
    headers.requests[0].headers = vec![("Cookie".into(), "a=b".into())];
    (headers.requests[0].method, headers.requests[0].body_bytes) = ("PUT".into(), 3);
    let outcome = run(&headers);
    let expected = [("77".to_string(), 10), ("78".to_string(), 20)];
    assert!(outcome.workers.into_iter().eq(expected), "good answers only");
}

#[test]
fn a_burst_is_so_many_at_once() {
    let arrived = AtomicU64::new(0);
    let server = Server::tcp(move |_| {
        // Nobody is answered before all of a burst are there.
        let burst = (arrived.fetch_add(1, Ordering::SeqCst) / 40 + 1) * 40;
        let begin = Instant::now();
        while arrived.load(Ordering::SeqCst) < burst && begin.elapsed() < Duration::from_secs(3) {
            sleep(Duration::from_millis(1));
        }
        sleep(Duration::from_millis(50));
        hello()
    });
    let burst = Shape::Burst { at_once: 40, times: 3, pause_ms: 100, keep_alive: false };
    let mut bursts = plan(&server.to, burst);
    bursts.requests = vec![request("/", "common"), request("/", "rare")];
    bursts.requests[0].weight = 9;
    let outcome = run(&bursts);
    assert_eq!((server.most(), server.requests()), (40, 120));
    assert_eq!((outcome.connections, outcome.connects), (40, 120));
    assert_eq!(
        (class(&outcome, "common").ok_in_time, class(&outcome, "rare").ok_in_time),
        (108, 12)
    );
    assert_eq!((outcome.unanswered_at_end, outcome.unanswered_at_step_end.len()), (0, 0));
    within(outcome.classes[0].latency.max_ms().unwrap(), 50.0, 300.0);
    within(outcome.seconds, 0.35, 1.2);
    // Between bursts nobody waits for anything.
    within(outcome.gap_ms, 50.0, 300.0);
}

#[test]
fn bursts_may_keep_their_connections() {
    let server = Server::tcp(|_| hello());
    let burst = Shape::Burst { at_once: 8, times: 5, pause_ms: 0, keep_alive: true };
    let outcome = run(&plan(&server.to, burst));
    assert_eq!((server.requests(), outcome.connects), (40, 8));
}

#[test]
fn an_upload_arrives_whole() {
    let server = Server::tcp(|asked| {
        let echo = asked.body.to_string();
        Answer::Plain(if asked.path == format!("/{echo}") { 200 } else { 500 }, echo.into_bytes())
    });
    for bytes in [1, 16_384, 100_000, 64 << 20] {
        let burst = Shape::Burst { at_once: 2, times: 1, pause_ms: 0, keep_alive: false };
        let mut upload = plan(&server.to, burst);
        upload.requests[0] = Request {
            method: "POST".into(),
            body_bytes: bytes,
            path: format!("/{bytes}"),
            ..Request::default()
        };
        let outcome = run(&upload);
        assert_eq!((outcome.classes[0].ok, server.most() > 0), (2, true), "{bytes}: {outcome:?}");
    }
}

#[test]
fn an_upload_that_is_refused_early_is_an_answer() {
    // The head is all it reads; it answers and shuts the door while the body still comes.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let to = format!("tcp://{}", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        use std::io::{Read, Write};
        let (mut stream, _) = listener.accept().unwrap();
        stream.read_exact(&mut [0; 1_000]).unwrap();
        stream.write_all(b"HTTP/1.1 413 Much\r\nContent-Length: 0\r\n\r\n").unwrap();
        let _ = std::io::copy(&mut stream.take(1 << 20), &mut std::io::sink());
    });
    let mut upload =
        plan(&to, Shape::Burst { at_once: 1, times: 1, pause_ms: 0, keep_alive: false });
    (upload.requests[0].method, upload.requests[0].body_bytes) = ("POST".into(), 1 << 30);
    let outcome = run(&upload);
    server.join().unwrap();
    assert_eq!(outcome.classes[0].failures.status.get(&413), Some(&1), "{:?}", outcome.classes[0]);
}

#[test]
fn what_goes_on_beside() {
    let server = Server::tcp(|asked| {
        sleep(Duration::from_millis(if asked.path == "/beside" { 50 } else { 5 }));
        hello()
    });
    let mut two = plan(&server.to, closed(2, 1.0));
    let beside = |path: &str, pause_ms| Beside {
        request: request(path, "all"),
        connections: 2,
        keep_alive: pause_ms > 0,
        pause_ms,
        rate: 0.0,
        of: None,
    };
    two.beside = vec![beside("/beside", 50)];
    let outcome = run(&two);
    let (mixed, by) = (&outcome.classes[0], &outcome.classes[1]);
    assert_eq!((mixed.class.as_str(), mixed.beside), ("all", false));
    assert_eq!((by.class.as_str(), by.beside), ("all", true), "last, and not mixed up");
    // Two connections, 50 ms each for the answer and the pause.
    within(by.ok as f64, 10.0, 20.0);
    within(by.latency.percentile_ms(0.5).unwrap(), 50.0, 75.0);
    within(mixed.latency.percentile_ms(0.5).unwrap(), 5.0, 25.0);
    assert_eq!(server.paths()["/beside"], by.sent);
    assert_eq!((outcome.connects, outcome.connections), (4, 4));
    within(outcome.unanswered_at_end as f64, 1.0, 2.0);

    two.shape = open(50.0, 0.5, 10);
    two.beside = vec![beside("/beside", 0)];
    let outcome = run(&two);
    assert_eq!(outcome.classes[0].ok, 25);
    within(outcome.classes[1].ok as f64, 10.0, 22.0);

    // With a rate they do not wait for answers, as far as connections reach.
    let flood = |connections| Beside { connections, rate: 100.0, ..beside("/beside", 1) };
    two.beside = vec![flood(20), beside("/beside", 0)];
    two.beside[0].request.class = "flood".into();
    let outcome = run(&two);
    let sent: Vec<u64> = outcome.classes.iter().map(|class| class.sent).collect();
    assert_eq!((sent[0], sent[1], outcome.classes[1].ok), (25, 50, 50));
    within(sent[2] as f64, 10.0, 22.0);
    two.beside = vec![flood(1)];
    within(run(&two).classes[1].ok as f64, 5.0, 11.0);
}

#[test]
fn a_slow_reader_takes_its_time() {
    let server = Server::tcp(|_| Answer::Plain(200, vec![b'x'; 200_000]));
    let mut slow = plan(&server.to, closed(2, 0.1));
    slow.requests[0].read_bytes_per_second = 400_000;
    let outcome = run(&slow);
    let class = &outcome.classes[0];
    assert_eq!((class.ok, class.bytes), (2, 400_000));
    within(class.latency.percentile_ms(0.01).unwrap(), 500.0, 620.0);
    within(class.latency.max_ms().unwrap(), 500.0, 800.0);
    slow.requests[0].read_bytes_per_second = 0;
    within(run(&slow).classes[0].latency.percentile_ms(0.5).unwrap(), 0.0, 200.0);
    // Its time runs out like anybody's.
    (slow.requests[0].read_bytes_per_second, slow.timeout_ms) = (1_000, 300);
    assert_eq!(run(&slow).classes[0].failures.timeout, 2);
}
