use fastrand::Rng;
use oribi_load::hist::Hist;
use oribi_load::outcome::{Class, Outcome, Tick};

use super::{Blocks, of};
use crate::figures::stats;
use crate::results::{Cell, PhaseResult};

fn hist(pairs: &[(u64, u64)]) -> Hist {
    let mut hist = Hist::default();
    pairs.iter().for_each(|(micros, times)| hist.record_n(*micros, *times));
    hist
}

/// Two seconds of `fast`, in half seconds with 10, 20, 30 and 40 answers of 100, 200, 300 and
/// 400 µs that take 0.1, 0.2, 0.3 and 0.4 s of CPU; a class beside that nobody asked for.
fn cell() -> Cell {
    let slices = (1..=4).map(|at| hist(&[(100 * at, 10 * at)])).collect();
    let beside = Class {
        class: "beside".into(),
        beside: true,
        slices: vec![hist(&[(9000, 5)]); 4],
        ..Class::default()
    };
    let ticks = (0..20).map(|at| Tick { ok: 2 * (at / 5 + 1), failed: 0 }).collect();
    let outcome = Outcome {
        seconds: 2.0,
        ticks,
        classes: vec![Class { class: "fast".into(), slices, ..Class::default() }, beside],
        ..Outcome::default()
    };
    let cpu = vec![5.0, 5.1, 5.3, 5.6, 6.0];
    let phases = vec![PhaseResult { name: "load".into(), outcome, cpu, ..PhaseResult::default() }];
    Cell { phases, ..Cell::default() }
}

fn quotient(metric: &str) -> Vec<(f64, f64)> {
    match of(&cell(), metric) {
        Blocks::Quotient(pairs) => {
            pairs.iter().map(|(a, b)| ((a * 1e6).round() / 1e6, (b * 1e6).round() / 1e6)).collect()
        }
        other => panic!("{metric}: {other:?}"),
    }
}

#[test]
fn answers_and_cpu_by_half_second() {
    let counts = [(10.0, 1.0), (20.0, 1.0), (30.0, 1.0), (40.0, 1.0)];
    assert_eq!(quotient("load.rps"), counts);
    assert_eq!(quotient("load.rps.fast"), counts);
    assert_eq!(quotient("load.rps.beside"), [(5.0, 1.0); 4]);
    assert_eq!(quotient("load.per_cpu"), [(10.0, 0.1), (20.0, 0.2), (30.0, 0.3), (40.0, 0.4)]);
    assert_eq!(quotient("load.cpu_us"), [(0.1, 10.0), (0.2, 20.0), (0.3, 30.0), (0.4, 40.0)]);
    assert_eq!(quotient("load.mean_ms")[2], (9000.0, 30.0));
}

#[test]
fn what_has_no_blocks_is_whole() {
    for metric in ["pss_mb", "load.jain", "load.max_ms", "other.rps", "load.rps.nobody"] {
        let blocks = of(&cell(), metric);
        let found = blocks.replicates(7.0, 10, &mut Rng::with_seed(1));
        assert_eq!(found, [7.0], "{metric}: {blocks:?}");
    }
    let mut short = cell();
    short.phases[0].outcome.seconds = 1.9;
    assert!(matches!(of(&short, "load.rps"), Blocks::Whole), "three whole ones");
}

#[test]
fn replicates_are_centred_on_what_was_measured() {
    // 50 answers a second, give or take the spread of 10, 20, 30, 40 in draws of four: the error
    // of their mean is √125 / 2 = 5.6 of 25.
    let blocks = of(&cell(), "load.rps");
    let found = blocks.replicates(50.0, 4000, &mut Rng::with_seed(3));
    let (mean, deviation) = (stats::mean(&found), stats::variance(&found).map(f64::sqrt));
    assert!((mean.unwrap() - 50.0).abs() < 1.0, "{mean:?}");
    assert!((deviation.unwrap() - 11.18).abs() < 0.5, "{deviation:?}");
    // Each answer costs the same: whatever is drawn, CPU for each is the same.
    let steady = of(&cell(), "load.cpu_us").replicates(10_000.0, 100, &mut Rng::with_seed(3));
    assert!(steady.iter().all(|value| (value - 10_000.0).abs() < 1e-6), "{steady:?}");
}

#[test]
fn percentiles_are_of_the_blocks_that_were_drawn() {
    let blocks = of(&cell(), "load.p50_ms");
    let found = blocks.replicates(0.3, 400, &mut Rng::with_seed(3));
    let tenths: Vec<f64> = found.iter().map(|value| (value * 10.0).round()).collect();
    assert!(found.iter().zip(&tenths).all(|(one, tenth)| (one * 10.0 - tenth).abs() < 1e-9));
    for tenth in [2.0, 3.0, 4.0] {
        assert!(tenths.contains(&tenth), "{tenth} in {tenths:?}");
    }
    // With draws of four the p99 is that of the slowest block drawn: the slowest of all is in
    // 1 - (3/4)⁴ = 68 % of them.
    let slow = of(&cell(), "load.p99_ms.fast").replicates(0.4, 2000, &mut Rng::with_seed(3));
    let slowest = slow.iter().filter(|value| **value > 0.399).count();
    assert!((1300..1430).contains(&slowest), "{slowest}");
    let tail = of(&cell(), "load.tail").replicates(4.0 / 3.0, 400, &mut Rng::with_seed(3));
    assert!(tail.iter().all(|value| (0.99..=4.01).contains(value)), "{tail:?}");
    let beside = of(&cell(), "load.p99_ms.beside").replicates(9.0, 5, &mut Rng::with_seed(3));
    assert_eq!(beside, [9.0; 5]);
}

#[test]
fn a_long_cell_has_longer_blocks_and_loses_none() {
    let mut long = cell();
    let outcome = &mut long.phases[0].outcome;
    outcome.seconds = 60.0;
    outcome.ticks = vec![Tick { ok: 3, failed: 0 }; 600];
    let Blocks::Quotient(pairs) = of(&long, "load.rps") else { panic!("no blocks") };
    assert_eq!(pairs.len(), 40);
    let sum = pairs.iter().fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    assert_eq!(sum, (1800.0, 120.0));
}
