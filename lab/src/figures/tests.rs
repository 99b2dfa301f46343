use std::collections::BTreeMap;

use oribi_load::hist::Hist;
use oribi_load::outcome::{Class, Failures, Outcome, Tick};

use super::of_phase;
use crate::results::{DeployResult, PhaseResult};
use crate::scenario::{Case, Phase};

fn case(requests: &str) -> Case {
    toml::from_str(&format!("name = \"a\"\ntitle = \"b\"\n{requests}")).unwrap()
}

fn phase(more: &str) -> Phase {
    let closed = "name = \"load\"\nkind = \"closed\"\nconnections = 1\nseconds = 2.0\n";
    toml::from_str(&format!("{closed}{more}")).unwrap()
}

fn hist(millis: &[(u64, u64)]) -> Hist {
    let mut hist = Hist::default();
    millis.iter().for_each(|(ms, times)| hist.record_n(ms * 1000, *times));
    hist
}

fn class(name: &str, sent: u64, ok: u64, in_time: u64) -> Class {
    Class { class: name.into(), sent, ok, ok_in_time: in_time, ..Class::default() }
}

fn result(classes: Vec<Class>) -> PhaseResult {
    let outcome = Outcome { seconds: 2.0, classes, ..Outcome::default() };
    PhaseResult { name: "load".into(), outcome, ..PhaseResult::default() }
}

fn figures(result: &PhaseResult, workers: f64) -> BTreeMap<String, f64> {
    of_phase(&case(""), &phase(""), result, workers, &BTreeMap::new())
}

#[track_caller]
fn near(all: &BTreeMap<String, f64>, name: &str, wanted: f64) {
    let found = all.get(name).unwrap_or_else(|| panic!("no {name} in {all:?}"));
    assert!((found - wanted).abs() <= wanted.abs() * 1e-3, "{name}: {found}, not {wanted}");
}

#[test]
fn rates_count_what_came_in_time_and_cpu_what_was_answered() {
    let mut all = class("all", 110, 100, 90);
    all.bytes = 2_000_000;
    all.failures = Failures { timeout: 4, reset: 6, ..Failures::default() };
    let mut seen = result(vec![all]);
    seen.cpu = vec![3.0, 3.2, 3.5];
    let found = figures(&seen, 1.0);
    near(&found, "load.rps", 45.0);
    near(&found, "load.per_cpu", 200.0);
    near(&found, "load.cpu_us", 5000.0);
    near(&found, "load.failed", 10.0);
    near(&found, "load.failed_share", 100.0 * 10.0 / 110.0);
    near(&found, "load.mb_per_s", 0.9);
    assert!(!found.contains_key("load.rps.all"), "the only class needs no figures of its own");
}

#[test]
fn what_was_not_measured_is_absent() {
    let found = figures(&result(vec![class("all", 10, 0, 0)]), 2.0);
    near(&found, "load.rps", 0.0);
    for name in ["p99_ms", "mean_ms", "max_ms", "tail", "per_cpu", "jain", "served", "gap_ms"] {
        assert!(!found.contains_key(&format!("load.{name}")), "{name}");
    }
    let failed = figures(&PhaseResult { name: "load".into(), ..PhaseResult::default() }, 1.0);
    assert!(failed.is_empty(), "{failed:?}");
}

#[test]
fn latencies_are_of_each_class_and_of_all_that_do_not_run_beside() {
    let mut fast = class("fast", 98, 98, 98);
    fast.latency = hist(&[(1, 50), (3, 48)]);
    let mut slow = class("slow", 2, 2, 2);
    slow.latency = hist(&[(400, 2)]);
    let mut beside = class("stuck", 41, 40, 40);
    beside.latency = hist(&[(5000, 40)]);
    (beside.beside, beside.failures.timeout) = (true, 1);
    let found = figures(&result(vec![fast, slow, beside]), 1.0);
    near(&found, "load.p50_ms", 1.0);
    near(&found, "load.p95_ms", 3.0);
    near(&found, "load.p99_ms", 400.0);
    near(&found, "load.tail", 400.0);
    near(&found, "load.mean_ms", (50.0 + 144.0 + 800.0) / 100.0);
    near(&found, "load.p99_ms.fast", 3.0);
    near(&found, "load.tail.fast", 3.0);
    near(&found, "load.max_ms.slow", 400.0);
    near(&found, "load.rps.slow", 1.0);
    near(&found, "load.rps", 50.0);
    near(&found, "load.p99_ms.stuck", 5000.0);
    near(&found, "load.failed", 1.0);
    near(&found, "load.failed.stuck", 1.0);
    near(&found, "load.failed.fast", 0.0);
    assert!(!found.contains_key("load.uncorrected_p99_ms"), "a closed loop has nothing to correct");
}

#[test]
fn an_open_loop_also_tells_what_a_naive_generator_would() {
    let mut all = class("all", 100, 100, 100);
    (all.latency, all.uncorrected) = (hist(&[(1, 50), (900, 50)]), hist(&[(1, 100)]));
    let open: Phase =
        toml::from_str("name = \"load\"\nkind = \"open\"\nrate = 50.0\nseconds = 2.0").unwrap();
    let found = of_phase(&case(""), &open, &result(vec![all]), 1.0, &BTreeMap::new());
    near(&found, "load.p99_ms", 900.0);
    near(&found, "load.uncorrected_p99_ms", 1.0);
}

#[test]
fn uploads_count_with_their_bodies_by_weight() {
    let requests = "[[request]]\nmethod = \"POST\"\nbody_bytes = 1000000\nweight = 3\n\
                    [[request]]\nmethod = \"POST\"\nbody_bytes = 5000000\nweight = 1\n";
    let mut all = class("all", 8, 8, 6);
    all.bytes = 16;
    let result = result(vec![all]);
    let found = of_phase(&case(requests), &phase(""), &result, 1.0, &BTreeMap::new());
    // 2 MB in the mean, six in time, two seconds.
    near(&found, "load.mb_per_s", 6.0);
}

#[test]
fn dispersion_is_of_the_whole_ticks_of_the_load() {
    let mut seen = result(vec![class("all", 30, 30, 30)]);
    seen.outcome.seconds = 0.45;
    // 2, 4, 6, 0 and what came after them: mean 3, variance 20/3.
    seen.outcome.ticks =
        [2, 4, 6, 0, 99, 99].iter().map(|ok| Tick { ok: *ok, failed: 0 }).collect();
    near(&figures(&seen, 1.0), "load.dispersion", 20.0 / 9.0);
    seen.outcome.ticks.truncate(3);
    near(&figures(&seen, 1.0), "load.dispersion", 20.0 / 9.0);
}

#[test]
fn workers_that_answered_nothing_count() {
    let mut seen = result(vec![class("all", 8, 8, 8)]);
    seen.outcome.workers = [("1".to_string(), 2), ("2".to_string(), 6)].into();
    let found = figures(&seen, 4.0);
    near(&found, "load.workers_seen", 2.0);
    near(&found, "load.most_share", 75.0);
    // (2 + 6)² / (4 × (4 + 36)).
    near(&found, "load.jain", 0.4);
    near(&figures(&seen, 1.0), "load.jain", 0.8);
}

#[test]
fn served_cuts_what_runs_beyond_the_end() {
    let mut slow = class("slow", 4, 4, 2);
    // 0.4 s each: one has done 0.3 s of it, the other came so late that it began after the end.
    slow.late = hist(&[(100, 1), (700, 1)]);
    let seen = result(vec![class("fast", 20, 20, 20), slow]);
    let phase = phase("[service_seconds]\nfast = 0.01\nslow = 0.4");
    let found = of_phase(&case(""), &phase, &seen, 2.0, &BTreeMap::new());
    near(&found, "load.served", (0.2 + 0.8 + 0.3) / 4.0);
}

#[test]
fn of_deploys_the_slowest_counts() {
    let mut all = class("all", 103, 100, 100);
    all.failures.reset = 3;
    let mut seen = result(vec![all]);
    let one = |at_ms, new_ms, old_ms| DeployResult { at_ms, new_ms, old_ms };
    seen.deploys = vec![one(500.0, 300.0, 900.0), one(1500.0, 400.0, 700.0)];
    let deploying = phase("[deploy]\nat_ms = [500, 1500]");
    let found = of_phase(&case(""), &deploying, &seen, 2.0, &BTreeMap::new());
    near(&found, "load.deploys", 2.0);
    near(&found, "load.new_ms", 400.0);
    near(&found, "load.old_ms", 900.0);
    near(&found, "load.lost_per_deploy", 1.5);
    seen.deploys.clear();
    let none = of_phase(&case(""), &deploying, &seen, 2.0, &BTreeMap::new());
    near(&none, "load.deploys", 0.0);
    assert!(!none.contains_key("load.new_ms"));
    assert!(!figures(&seen, 2.0).contains_key("load.deploys"));
}

#[test]
fn kills_are_counted_with_what_they_cost() {
    let mut all = class("all", 103, 100, 100);
    all.failures.reset = 3;
    let mut seen = result(vec![all]);
    seen.kills_ms = vec![500.0, 1500.0];
    let killing = phase("[kill]\nevery_ms = 1000\nsignal = \"KILL\"");
    let found = of_phase(&case(""), &killing, &seen, 2.0, &BTreeMap::new());
    near(&found, "load.kills", 2.0);
    near(&found, "load.lost_per_kill", 1.5);
    seen.kills_ms.clear();
    let none = of_phase(&case(""), &killing, &seen, 2.0, &BTreeMap::new());
    near(&none, "load.kills", 0.0);
    assert!(!none.contains_key("load.lost_per_kill"));
    assert!(!figures(&seen, 2.0).contains_key("load.kills"));
}
