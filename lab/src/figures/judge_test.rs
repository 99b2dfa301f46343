use fastrand::Rng;
use oribi_load::hist::Hist;
use oribi_load::outcome::{Class, Outcome, Tick};

use super::judge;
use crate::figures;
use crate::results::{CaseResult, Cell, Comparison, ContenderFacts, PhaseResult, Verdict};
use crate::scenario::{Case, Phase};

fn case(more: &str) -> Case {
    toml::from_str(&format!("name = \"a\"\ntitle = \"b\"\n{more}")).unwrap()
}

fn facts(names: &[&str]) -> Vec<ContenderFacts> {
    let one = |name: &&str| ContenderFacts { name: name.to_string(), ..Default::default() };
    names.iter().map(one).collect()
}

fn cell(contender: &str, metrics: &[(&str, f64)]) -> Cell {
    let metrics = metrics.iter().map(|(name, value)| (name.to_string(), *value)).collect();
    Cell { contender: contender.into(), metrics, ..Cell::default() }
}

/// Rounds of `a` and `b` with the metric `load.rps`.
fn rounds(pairs: &[(f64, f64)]) -> Vec<Vec<Cell>> {
    let round =
        |(a, b): &(f64, f64)| vec![cell("a", &[("load.rps", *a)]), cell("b", &[("load.rps", *b)])];
    pairs.iter().map(round).collect()
}

fn judged(more: &str, rounds: Vec<Vec<Cell>>) -> CaseResult {
    judge(case(more), facts(&["a", "b"]), rounds)
}

fn verdict(target: &str, rounds: Vec<Vec<Cell>>) -> Verdict {
    let target = format!("[[target]]\nlabel = \"l\"\nmetric = \"load.rps\"\nof = \"a\"\n{target}");
    judged(&target, rounds).verdicts.remove(0)
}

#[test]
fn the_summary_is_of_sound_rounds() {
    let mut rounds = rounds(&[(10.0, 1.0), (30.0, 2.0), (20.0, 3.0), (999.0, 4.0)]);
    rounds[3][0].unexpected_failures = 1;
    let found = judged("", rounds);
    let of_a = &found.summary[0];
    assert_eq!((of_a.contender.as_str(), of_a.metric.as_str()), ("a", "load.rps"));
    assert_eq!((of_a.median, of_a.min, of_a.max, of_a.rounds), (20.0, 10.0, 30.0, 3));
    assert_eq!(found.summary[1].rounds, 4);
    assert_eq!(found.summary.len(), 2);
}

const COMPARE: &str = "show = [\"load.rps\", \"load.p99_ms\", \"pss_mb\"]\nbaseline = [\"b\"]";

#[test]
fn ratios_are_taken_within_a_round() {
    // Each round is twice as fast as the one before it; the ratios know nothing of it.
    let found = judged(COMPARE, rounds(&[(15.0, 10.0), (36.0, 20.0), (64.0, 40.0)])).comparisons;
    assert_eq!(found.len(), 1, "b is not compared with itself, and nobody has a p99");
    let Comparison { of, over, ratio, low, high, more_is_better, .. } = &found[0];
    assert_eq!((of.as_str(), over.as_str(), *more_is_better), ("a", "b", true));
    assert_eq!(*ratio, 1.6);
    assert!(*low > 1.1 && *low < 1.5 && *high > 1.8 && *high < 2.3, "{low} to {high}");
}

#[test]
fn void_cells_take_part_in_no_comparison() {
    let mut all = rounds(&[(20.0, 10.0), (20.0, 10.0), (90.0, 10.0), (90.0, 0.0)]);
    all[2][0].error = Some("did not start".into());
    let found = judged(COMPARE, all.clone());
    assert_eq!((found.comparisons[0].ratio, found.comparisons[0].high), (2.0, 2.0));
    all.iter_mut().for_each(|round| round[1].unexpected_failures = 3);
    assert!(judged(COMPARE, all).comparisons.is_empty());
}

#[test]
fn bounds_and_goals() {
    let three = || rounds(&[(10.0, 5.0), (30.0, 10.0), (20.0, 5.0)]);
    let least = verdict("at_least = 15\ngoal = 25", three());
    assert_eq!((least.measured, least.ok, least.goal), (Some(20.0), true, Some((25.0, false))));
    assert_eq!(least.target, "at least 15");
    let most = verdict("at_most = 19.5\ngoal = 30", three());
    assert_eq!((most.measured, most.ok, most.goal), (Some(20.0), false, Some((30.0, true))));
    assert_eq!(most.target, "at most 19.5");
    let ratio = verdict("over = [\"b\"]\nat_least = 3", three());
    assert_eq!((ratio.measured, ratio.ok), (Some(3.0), true));
    let apart = verdict("over = [\"b\"]\ndifference = true\nat_least = 15", three());
    assert_eq!((apart.measured, apart.ok), (Some(15.0), true));
    let worst = verdict("over = [\"b\"]\nat_least = 3\ntake = \"worst\"", three());
    assert_eq!((worst.measured, worst.ok), (Some(2.0), false));
    let slowest = verdict("over = [\"b\"]\nat_most = 3.5\ntake = \"worst\"", three());
    assert_eq!((slowest.measured, slowest.ok), (Some(4.0), false));
}

#[test]
fn the_divisor_may_be_a_sum_and_another_metric() {
    let round = vec![
        cell("a", &[("load.cpu_us", 30.0)]),
        cell("b", &[("floor", 20.0)]),
        cell("c", &[("floor", 5.0)]),
    ];
    let target = "[[target]]\nlabel = \"l\"\nmetric = \"load.cpu_us\"\nof = \"a\"\n\
                  over = [\"b\", \"c\"]\nover_metric = \"floor\"\nat_most = 1.2";
    let found = judge(case(target), facts(&["a", "b", "c"]), vec![round; 3]).verdicts.remove(0);
    assert_eq!((found.measured, found.ok), (Some(1.2), true));
}

#[test]
fn a_missing_figure_is_a_miss() {
    let three = || rounds(&[(10.0, 5.0), (30.0, 10.0), (20.0, 5.0)]);
    let miss = |found: Verdict| found.measured.is_none() && !found.ok;
    let broken = |contender: usize| {
        let mut all = three();
        all[1][contender].unexpected_failures = 1;
        all
    };
    assert!(miss(verdict("at_most = 100", broken(0))), "its own failure, in one round only");
    assert!(miss(verdict("over = [\"c\"]\nat_least = 0", three())), "nobody of that name");
    assert!(miss(verdict("at_least = 0\ngoal = 0", Vec::new())));
    let other = verdict("over = [\"b\"]\nat_least = 3", broken(1));
    assert_eq!((other.measured, other.ok), (Some(3.0), true), "the other's round does not count");
    assert!(miss(verdict("over = [\"b\"]\nat_least = 0\ntake = \"worst\"", broken(1))));
}

#[test]
fn failures_of_all_rounds_can_be_promised() {
    let target = "[[target]]\nlabel = \"l\"\nmetric = \"failures\"\nof = \"a\"\nat_most = 0";
    let none = judged(target, rounds(&[(1.0, 1.0), (1.0, 1.0)])).verdicts.remove(0);
    assert_eq!((none.measured, none.ok), (Some(0.0), true));
    let mut all = rounds(&[(1.0, 1.0), (1.0, 1.0)]);
    all[0][0].unexpected_failures = 3;
    all[1][0].error = Some("died".into());
    all[1][0].complaints = vec!["left a process behind".into()];
    all[1][1].unexpected_failures = 50;
    let some = judged(target, all).verdicts.remove(0);
    assert_eq!((some.measured, some.ok), (Some(5.0), false));
    let absent = judge(case(target), facts(&["b"]), vec![vec![cell("b", &[])]]).verdicts.remove(0);
    assert_eq!((absent.measured, absent.ok), (None, false));
}

#[test]
fn what_others_published_stands_beside_ours() {
    let more = "[[published]]\nwhat = \"w\"\nratio = 1.5\nsource = \"s\"\n\
                metric = \"load.rps\"\nof = \"a\"\nover = \"b\"\n\
                [[published]]\nwhat = \"w\"\nratio = 1.5\nsource = \"s\"";
    let found = judged(more, rounds(&[(10.0, 5.0), (30.0, 10.0), (20.0, 5.0)])).published;
    assert_eq!(found[0].measured, Some(3.0));
    assert_eq!((found[1].measured, found[1].published.ratio), (None, 1.5));
}

/// A whole cell of four seconds: so many answers a second by chance, with latencies by chance.
fn noisy(contender: &str, rps: f64, rng: &mut Rng) -> Cell {
    let mut outcome = Outcome { seconds: 4.0, ..Outcome::default() };
    let mut class = Class { class: "all".into(), ..Class::default() };
    let mut cpu = vec![0.0];
    for _ in 0..8 {
        let mut slice = Hist::default();
        for _ in 0..5 {
            // A Poisson process: exponential intervals.
            let (mut at, mut ok) = (0.0, 0);
            while {
                at -= (1.0 - rng.f64()).ln() / rps;
                at < 0.1
            } {
                ok += 1;
                slice.record((-(1.0 - rng.f64()).ln() * 1e9 / rps) as u64);
            }
            outcome.ticks.push(Tick { ok, failed: 0 });
            class.ok += u64::from(ok);
        }
        cpu.push(cpu.last().unwrap() + 0.25 + 0.05 * rng.f64());
        class.latency.add(&slice);
        class.slices.push(slice);
    }
    (class.sent, class.ok_in_time) = (class.ok, class.ok);
    outcome.classes.push(class);
    let result = PhaseResult { name: "load".into(), outcome, cpu, ..PhaseResult::default() };
    let phase: Phase =
        toml::from_str("name = \"load\"\nkind = \"closed\"\nconnections = 1\nseconds = 4.0")
            .unwrap();
    let metrics = figures::of_phase(&case(""), &phase, &result, 1.0, &Default::default());
    Cell { contender: contender.into(), metrics, phases: vec![result], ..Cell::default() }
}

fn compared(rps: (f64, f64), rounds: usize, seed: u64) -> Vec<Comparison> {
    let mut rng = Rng::with_seed(seed);
    let round = |rng: &mut Rng| vec![noisy("a", rps.0, rng), noisy("b", rps.1, rng)];
    let rounds = (0..rounds).map(|_| round(&mut rng)).collect();
    let more = "show = [\"load.rps\", \"load.per_cpu\", \"load.p50_ms\", \"load.p90_ms\"]\n\
                baseline = [\"b\"]";
    judged(more, rounds).comparisons
}

#[test]
fn equal_servers_are_told_apart_no_more_often_than_promised() {
    let mut held = [0; 4];
    for seed in 0..40 {
        for (at, one) in compared((100.0, 100.0), 3, seed).iter().enumerate() {
            assert!(one.low <= one.ratio && one.ratio <= one.high, "{one:?}");
            held[at] += usize::from(one.low <= 1.0 && 1.0 <= one.high);
        }
    }
    assert!(held.iter().all(|held| *held >= 36), "{held:?} of 40");
}

#[test]
fn a_server_twice_as_fast_is_found_as_such() {
    for one in compared((600.0, 300.0), 3, 1) {
        let (low, high) = if one.more_is_better { (1.7, 2.3) } else { (0.4, 0.62) };
        assert!(one.low > low && one.high < high, "{one:?}");
        assert!(one.low < one.ratio && one.ratio < one.high, "{one:?}");
    }
    let again = |_| serde_json::to_string(&compared((600.0, 300.0), 2, 1)).unwrap();
    assert_eq!(again(1), again(2));
    let alone = compared((600.0, 300.0), 1, 1);
    assert!(alone.iter().all(|one| one.low < one.high), "blocks tell within one round: {alone:?}");
}
