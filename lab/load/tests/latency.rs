//! Known latencies in, known percentiles out.

mod synthetic;

use std::thread::sleep;
use std::time::Duration;

use oribi_load::outcome::Class;
use oribi_load::plan::{Request, Shape, Step};
use synthetic::{Server, closed, hello, open, plan, run, within};

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn p(class: &Class, part: f64) -> f64 {
    class.latency.percentile_ms(part).unwrap()
}

#[test]
fn constant() {
    let server = Server::tcp(|_| {
        sleep(ms(20));
        hello()
    });
    for shape in [closed(4, 1.0), open(100.0, 1.0, 50)] {
        let outcome = run(&plan(&server.to, shape));
        let class = &outcome.classes[0];
        within(p(class, 0.01), 20.0, 30.0);
        within(p(class, 0.5), 20.0, 40.0);
        within(class.latency.mean_ms().unwrap(), 20.0, 60.0);
        within(class.ok_in_time as f64, 60.0, 200.0);
        within(outcome.drained, 1.0, 1.6);
        assert_eq!((outcome.seconds, class.bytes), (1.0, class.ok * 5));
        assert_eq!(class.failures.total(), 0);
        assert_eq!(class.slices.len(), 2, "one for each half of a second");
    }
}

#[test]
fn bimodal() {
    let server = Server::tcp(|asked| {
        sleep(if asked.path == "/slow" { ms(80) } else { ms(4) });
        hello()
    });
    let slow =
        Request { path: "/slow".into(), class: "slow".into(), weight: 5, ..Request::default() };
    let fast = Request { weight: 95, ..Request::default() };
    let mut mixed = plan(&server.to, open(200.0, 2.0, 100));
    mixed.requests = vec![fast, slow];
    let outcome = run(&mixed);
    let (fast, slow) = (&outcome.classes[0], &outcome.classes[1]);
    assert_eq!((fast.sent, slow.sent), (380, 20), "the mix is exact");
    let paths = [("/".to_string(), 380), ("/slow".to_string(), 20)];
    assert!(server.paths().into_iter().eq(paths));
    let mut all = fast.latency.clone();
    all.add(&slow.latency);
    within(all.percentile_ms(0.5).unwrap(), 4.0, 30.0);
    within(all.percentile_ms(0.9).unwrap(), 4.0, 70.0);
    within(all.percentile_ms(0.99).unwrap(), 80.0, 150.0);
    within(p(slow, 0.01), 80.0, 110.0);
}

/// Stands still for the first half of a second of every three.
fn stalling(asked: &synthetic::Asked) -> synthetic::Answer {
    let into = asked.since.as_millis() as u64 % 3_000;
    sleep(if into < 500 { ms(500 - into) } else { ms(1) });
    hello()
}

#[test]
fn a_stall_costs_every_request_that_was_due_in_it() {
    let server = Server::tcp(stalling);
    let outcome = run(&plan(&server.to, open(100.0, 6.0, 2)));
    let class = &outcome.classes[0];
    assert_eq!((class.sent, class.failures.total()), (600, 0));
    // A sixth is due in a stall and waits for what is left of it, evenly from 500 ms to 0. The
    // slowest 1 % of all are the slowest 6 % of those: they wait at least 470 ms; a tenth of all,
    // the slowest 60 % of those, at least 200 ms. (Two connections drain the queue within 50 ms.)
    within(p(class, 0.99), 460.0, 600.0);
    within(p(class, 0.9), 190.0, 330.0);
    within(p(class, 0.5), 0.5, 60.0);
    // What a generator reports that counts from the real send: only two were sent in each stall.
    within(class.uncorrected.percentile_ms(0.99).unwrap(), 0.5, 150.0);
    within(class.uncorrected.max_ms().unwrap(), 400.0, 650.0);
    // The stall is in the slices in which its requests were due.
    within(class.slices[0].percentile_ms(0.5).unwrap(), 220.0, 380.0);
    within(class.slices[2].percentile_ms(0.5).unwrap(), 0.5, 60.0);
    within(outcome.gap_ms, 450.0, 650.0);
}

#[test]
fn a_closed_loop_does_not_see_the_stall() {
    let server = Server::tcp(stalling);
    let outcome = run(&plan(&server.to, closed(2, 6.0)));
    let class = &outcome.classes[0];
    within(p(class, 0.99), 1.0, 150.0);
    within(class.latency.max_ms().unwrap(), 400.0, 650.0);
    assert!(class.latency.pairs().eq(class.uncorrected.pairs()));
    within(outcome.gap_ms, 450.0, 650.0);
}

#[test]
fn random_intervals_and_pauses_between_steps() {
    let server = Server::tcp(|_| hello());
    let step = |rate, seconds| Step { rate, seconds };
    let steps = vec![step(300.0, 0.5), step(0.0, 0.5), step(100.0, 0.5)];
    let shape = Shape::Open { steps, max_connections: 20, keep_alive: true, poisson: true };
    let outcome = run(&plan(&server.to, shape));
    within(outcome.classes[0].ok as f64, 140.0, 260.0);
    assert_eq!(outcome.unanswered_at_step_end.len(), 3);
    assert_eq!(outcome.ticks[7].ok, 0, "a rate of 0 is a pause");
    assert!(outcome.ticks[2].ok > 10 && outcome.ticks[12].ok > 1);
    within(outcome.gap_ms, 0.0, 200.0);
    within(outcome.generator_cpu, 0.000_1, 1.0);
}

#[test]
fn overload_leaves_a_queue_at_the_end_of_its_step() {
    let turn = std::sync::Mutex::new(());
    let server = Server::tcp(move |_| {
        let _mine = turn.lock().unwrap();
        sleep(ms(20));
        hello()
    });
    let step = |rate, seconds| Step { rate, seconds };
    let steps = vec![step(100.0, 1.0), step(1.0, 2.0)];
    let shape = Shape::Open { steps, max_connections: 500, keep_alive: true, poisson: false };
    let outcome = run(&plan(&server.to, shape));
    // It was asked 100 times and answers at most 50 times a second.
    within(outcome.unanswered_at_step_end[0] as f64, 50.0, 72.0);
    assert_eq!(outcome.unanswered_at_step_end.len(), 2);
    within(outcome.unanswered_at_end as f64, 0.0, 10.0);
    within(outcome.connections as f64, 49.0, 74.0);
    within(p(&outcome.classes[0], 1.0), 900.0, 2_500.0);
}
