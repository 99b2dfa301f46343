use std::collections::BTreeMap;

use oribi_load::hist::Hist;
use oribi_load::outcome::{Class, Outcome, Tick};

use super::figures;
use crate::scenario::Phase;

/// 2 s calm, 2 s of three times the capacity of 1000/s, 6 s calm.
fn phase() -> Phase {
    let text = "name = \"over\"\nkind = \"overload\"\nof = \"cap\"\nfactor = 3.0\nseconds = 2.0\n\
                calm = 0.5\nbefore_seconds = 2.0\nafter_seconds = 6.0";
    toml::from_str(text).unwrap()
}

fn same(ms: u64, times: u64) -> Hist {
    let mut hist = Hist::default();
    if times > 0 {
        hist.record_n(ms * 1000, times);
    }
    hist
}

/// A queue served in order: 4000 wait at the end; with 500/s behind them they take 4 s.
fn in_order() -> Outcome {
    let mut slices = vec![same(10, 250); 4];
    slices.extend([1000, 2000, 3000, 4000].map(|ms| same(ms, 1500)));
    // Due at 4.0 to 4.5 s: the queue before them shrinks by half a second in each second.
    slices.extend((0..8).map(|at| same(4000 - 500 * at, 250)));
    slices.extend(vec![same(10, 250); 4]);
    let tick = |ok| Tick { ok, failed: 0 };
    let mut ticks = vec![tick(50); 20];
    ticks.extend(vec![tick(100); 20]);
    ticks.extend(vec![tick(100); 40]);
    ticks.extend(vec![tick(50); 20]);
    let class = Class { class: "all".into(), sent: 1, slices, ..Class::default() };
    Outcome {
        seconds: 10.0,
        classes: vec![class],
        ticks,
        unanswered_at_step_end: vec![5, 4000, 0],
        ..Outcome::default()
    }
}

fn found(outcome: &Outcome) -> BTreeMap<&'static str, f64> {
    let earlier = [("cap.rps".to_string(), 1000.0)].into();
    figures(&phase(), outcome, &earlier).into_iter().collect()
}

#[track_caller]
fn near(found: &BTreeMap<&'static str, f64>, name: &str, wanted: f64) {
    let value = found[name];
    assert!((value - wanted).abs() <= wanted.abs() * 2e-3, "{name}: {value}, not {wanted}");
}

#[test]
fn a_queue_served_in_order_drains_in_the_ideal_time() {
    let found = found(&in_order());
    near(&found, "goodput", 1.0);
    near(&found, "queued", 4000.0);
    near(&found, "drain_ms", 4000.0);
    near(&found, "drain_ratio", 1.0);
    // The slices due at 4.0 to 8.0 s are slow, those from then on are not.
    near(&found, "recovery_ms", 4000.0);
}

#[test]
fn nothing_without_capacity_or_overload() {
    assert!(figures(&phase(), &in_order(), &BTreeMap::new()).is_empty());
    let closed: Phase =
        toml::from_str("name = \"a\"\nkind = \"closed\"\nconnections = 1\nseconds = 1.0").unwrap();
    let earlier = [("cap.rps".to_string(), 1000.0)].into();
    assert!(figures(&closed, &in_order(), &earlier).is_empty());
}

#[test]
fn who_refuses_what_it_cannot_serve_has_nothing_to_drain() {
    let mut outcome = in_order();
    let mut slices = vec![same(10, 250); 4];
    slices.extend(vec![same(10, 500); 4]);
    slices.extend(vec![same(10, 250); 12]);
    outcome.classes[0].slices = slices;
    outcome.ticks = vec![Tick { ok: 50, failed: 0 }; 100];
    outcome.ticks[20..40].fill(Tick { ok: 100, failed: 200 });
    let found = found(&outcome);
    near(&found, "goodput", 1.0);
    near(&found, "drain_ms", 10.0);
    near(&found, "recovery_ms", 0.0);
    assert!(!found.contains_key("drain_ratio"), "nobody was queued");
}

#[test]
fn recovery_needs_answers_and_lasts_to_the_end() {
    let recovered = |change: &dyn Fn(&mut Vec<Hist>)| {
        let mut outcome = in_order();
        change(&mut outcome.classes[0].slices);
        found(&outcome).get("recovery_ms").copied()
    };
    // 50 ms above the calm 10 are allowed.
    assert_eq!(recovered(&|slices| slices[17] = same(59, 250)), Some(4000.0));
    assert_eq!(recovered(&|slices| slices[17] = same(61, 250)), Some(5000.0));
    // One request more or less is due in a slice, and 1 % may be lost; not more.
    assert_eq!(recovered(&|slices| slices[17] = same(10, 247)), Some(4000.0));
    assert_eq!(recovered(&|slices| slices[17] = same(10, 240)), Some(5000.0));
    assert_eq!(recovered(&|slices| slices[19] = same(900, 250)), None);
    assert_eq!(recovered(&|slices| slices.truncate(19)), None, "no answer at all");
    // Where 400 ms are calm, up to 600 are normal, and the last slow slice takes 500.
    assert_eq!(recovered(&|slices| slices[..4].fill(same(400, 250))), Some(3500.0));
}
