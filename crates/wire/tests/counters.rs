//! Counters: against a simple map, from several mappings and threads, and what is refused.
#![cfg(not(loom))]

use proptest::prelude::*;
use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};
use wire::counters::table::CELLS;
use wire::counters::{Counters, Metric, Refused, Value};

fn again(counters: &Counters) -> Counters {
    let fd: OwnedFd = counters.as_fd().try_clone_to_owned().unwrap();
    Counters::open(fd).unwrap()
}

fn wrong(refused: Result<impl Sized, Refused>) -> String {
    match refused.err() {
        Some(Refused::Wrong(line)) => line,
        other => panic!("{other:?} where the call is wrong"),
    }
}

fn nowhere(refused: Result<impl Sized, Refused>) -> Option<String> {
    match refused.err() {
        Some(Refused::Nowhere(line)) => line,
        other => panic!("{other:?} where there is no place"),
    }
}

/// One thing that a process does to a metric.
#[derive(Clone, Debug)]
enum Step {
    Count(u8, u8),
    Set(u8, i8),
    Observe(u8, u8),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..12u8, any::<u8>()).prop_map(|(name, by)| Step::Count(name, by)),
        (0..12u8, any::<i8>()).prop_map(|(name, to)| Step::Set(name, to)),
        (0..12u8, 0..40u8).prop_map(|(name, value)| Step::Observe(name, value)),
    ]
}

proptest! {
    /// What two mappings do in turn is what one map would hold.
    #[test]
    fn as_a_map_would(steps in proptest::collection::vec((any::<bool>(), step()), 1..80)) {
        let first = Counters::create().unwrap();
        let second = again(&first);
        let mut map: BTreeMap<String, Value> = BTreeMap::new();
        for (which, step) in steps {
            let counters = if which { &first } else { &second };
            match step {
                Step::Count(name, by) => {
                    let name = format!("c{name}_total");
                    counters.counter(&name).unwrap().increment(by.into());
                    let Value::Counter(value) = map.entry(name).or_insert(Value::Counter(0))
                    else { unreachable!() };
                    *value += u64::from(by);
                }
                Step::Set(name, to) => {
                    let name = format!("g{name}");
                    let gauge = counters.gauge(&name).unwrap();
                    gauge.set(to.into());
                    gauge.add(-1);
                    map.insert(name, Value::Gauge(i64::from(to) - 1));
                }
                Step::Observe(name, value) => {
                    let name = format!("h{name}");
                    counters.histogram(&name, &[10.0, 20.0]).unwrap().observe(value.into());
                    let fresh = Value::Histogram {
                        bounds: vec![10.0, 20.0], buckets: vec![0; 3], sum: 0.0,
                    };
                    let Value::Histogram { buckets, sum, .. } = map.entry(name).or_insert(fresh)
                    else { unreachable!() };
                    buckets[usize::from(value > 10) + usize::from(value > 20)] += 1;
                    *sum += f64::from(value);
                }
            }
        }
        let expected: Vec<Metric> =
            map.into_iter().map(|(name, value)| Metric { name, value }).collect();
        prop_assert_eq!(first.metrics(), expected.clone());
        prop_assert_eq!(second.metrics(), expected);
    }
}

/// Threads stand for processes: each has its own mapping and comes to every name at once.
#[test]
fn many_insert_at_once() {
    let first = Counters::create().unwrap();
    let (threads, names) = (8, 200);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            let mine = again(&first);
            scope.spawn(move || {
                for round in 0..5 {
                    for name in 0..names {
                        mine.counter(&format!("name_{name}")).unwrap().increment(round);
                        mine.histogram("seconds", &[0.5]).unwrap().observe(1.0);
                    }
                }
            });
        }
    });
    let metrics = first.metrics();
    assert_eq!(metrics.len(), names + 1);
    assert!(metrics[..names].iter().all(|one| one.value == Value::Counter(10 * threads)));
    let observed = threads * 5 * names as u64;
    assert_eq!(first.histogram("seconds", &[9.0]).unwrap().get(), (observed, observed as f64));
    // None of the cells that were written in vain is lost.
    for more in 0..CELLS - metrics.len() {
        first.counter(&format!("more_{more}")).unwrap();
    }
    assert!(nowhere(first.counter("one_too_many")).is_some());
}

#[test]
fn a_full_table_says_so_once_and_keeps_what_it_has() {
    let counters = Counters::create().unwrap();
    for number in 0..CELLS {
        counters.counter(&format!("number_{number}")).unwrap().increment(number as u64);
    }
    let line = nowhere(again(&counters).gauge("late")).unwrap();
    assert!(line.contains("gauge late") && line.contains("1024"), "{line}");
    assert_eq!(nowhere(counters.counter("later")), None);
    assert_eq!(counters.counter("number_1023").unwrap().get(), 1023);
    assert_eq!(counters.metrics().len(), CELLS);
    let lost = wire::counters::Counter::default();
    lost.increment(1);
    assert_eq!(lost.get(), 0);
}

#[test]
fn names_and_buckets_are_checked() {
    let counters = Counters::create().unwrap();
    for name in ["", "9lives", "Upper", "with-dash", "with blank", "a{b=\"c\"}", "ünder", "a\0"] {
        assert!(wrong(counters.counter(name)).contains("a to z"), "{name:?}");
    }
    assert!(wrong(counters.counter(&"a".repeat(65))).contains("64 bytes, this one 65"));
    assert!(wrong(counters.gauge("oribi_requests_total")).contains("server's own"));
    counters.counter(&"a".repeat(64)).unwrap();
    counters.counter("shop:orders_total").unwrap();
    let histogram = |bounds: &[f64]| wrong(counters.histogram("h", bounds));
    assert!(histogram(&[]).contains("1 to 24"));
    assert!(histogram(&[1.0; 25]).contains("1 to 24"));
    assert!(histogram(&[1.0, 1.0]).contains("rise"));
    assert!(histogram(&[1.0, f64::INFINITY]).contains("finite"));
    assert!(histogram(&[f64::NAN]).contains("finite"));
    assert_eq!(counters.metrics().len(), 2);
}

#[test]
fn a_name_keeps_its_kind_and_its_buckets() {
    let counters = Counters::create().unwrap();
    counters.counter("thing").unwrap().increment(3);
    let line = nowhere(counters.gauge("thing")).unwrap();
    assert!(line.contains("the gauge thing") && line.contains("is a counter"), "{line}");
    assert_eq!(counters.counter("thing").unwrap().get(), 3);
    counters.histogram("seconds", &[1.0, 2.0]).unwrap().observe(2.0);
    let other = counters.histogram("seconds", &[7.0]).unwrap();
    other.observe(f64::NAN);
    other.observe(f64::INFINITY);
    assert_eq!(other.get(), (2, f64::INFINITY));
    let Value::Histogram { bounds, buckets, .. } = counters.metrics().remove(0).value else {
        panic!()
    };
    assert_eq!((bounds, buckets), (vec![1.0, 2.0], vec![0, 1, 1]));
}

#[test]
fn anything_else_is_refused_with_a_reason() {
    let refusal = |fd: OwnedFd| Counters::open(fd).err().unwrap().to_string();
    let line = refusal(std::fs::File::open("Cargo.toml").unwrap().into());
    assert!(line.contains("not counters") && line.contains("rebuild both"), "{line}");
    let segment = wire::Segment::create().unwrap();
    refusal(segment.as_fd().try_clone_to_owned().unwrap());
}

/// Whatever is written into the memory, it is read without harm.
#[test]
fn nonsense_spoils_numbers_only() {
    let counters = Counters::create().unwrap();
    counters.counter("fine").unwrap().increment(1);
    let file = std::fs::File::from(counters.as_fd().try_clone_to_owned().unwrap());
    let length = file.metadata().unwrap().len();
    let mut noise = proptest::test_runner::TestRng::deterministic_rng(Default::default());
    for _ in 0..20 {
        let mut bytes = vec![0; 4096];
        noise.fill_bytes(&mut bytes);
        let at = u64::from(noise.next_u32()) % (length - 4096);
        std::os::unix::fs::FileExt::write_all_at(&file, &bytes, at).unwrap();
        counters.metrics();
        let _ = counters.counter("fine").map(|one| one.increment(1));
        let _ = counters.histogram("more", &[1.0]).map(|one| one.observe(0.5));
    }
}

#[test]
fn a_mount_has_one_row_and_the_last_is_for_many() {
    let counters = Counters::create().unwrap();
    let server = counters.server();
    assert_eq!((server.row("shop"), server.rows().count()), (0, 0));
    let shop = server.claim_row("shop");
    let long = "ü".repeat(100);
    assert_ne!((shop, server.claim_row(&long)), (0, shop));
    assert_eq!((again(&counters).server().row("shop"), server.claim_row("shop")), (shop, shop));
    let rows: Vec<usize> = (0..300).map(|number| server.claim_row(&format!("m{number}"))).collect();
    assert_eq!(rows[299], rows[298]);
    assert_eq!(server.rows().last().unwrap().1, "others");
    assert_eq!(server.rows().nth(1).unwrap().1, "ü".repeat(64));
}

#[test]
fn times_fall_into_buckets() {
    let counters = Counters::create().unwrap();
    let queue = &counters.server().threads[3].traffic[0].queue;
    for ns in [0, 100_000, 100_001, 60_000_000_000, u64::MAX / 2] {
        queue.observe(ns);
    }
    let (buckets, _) = queue.get();
    assert_eq!((buckets[0], buckets[1], buckets[17], buckets[18]), (2, 1, 1, 1));
}
