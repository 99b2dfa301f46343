use fastrand::Rng;

use super::{Interval, Pair, by_rounds, ratio};
use crate::figures::stats;

fn gauss(rng: &mut Rng) -> f64 {
    // The sum of twelve uniform ones: variance 1.
    (0..12).map(|_| rng.f64()).sum::<f64>() - 6.0
}

/// What a round does to one side's logarithm, which its blocks know nothing of.
type Noise = fn(&mut Rng) -> f64;

const NOISES: [(&str, Noise); 5] = [
    ("2 %", |rng| 0.02 * gauss(rng)),
    ("10 %", |rng| 0.1 * gauss(rng)),
    ("heavy tails", |rng| 0.05 * gauss(rng) / (-(1.0 - rng.f64()).ln()).sqrt()),
    ("outliers", |rng| 0.02 * gauss(rng) * if rng.f64() < 0.2 { 10.0 } else { 1.0 }),
    ("half speed now and then", |rng| 0.03 * gauss(rng) - if rng.f64() < 0.1 { 0.7 } else { 0.0 }),
];

/// Both sides of each round, with what disturbs them alike.
fn disturbed(rounds: usize, truth: f64, noise: Noise, rng: &mut Rng) -> Vec<(f64, f64)> {
    let mut round = || {
        let mood = 1000.0 * (0.3 * gauss(rng)).exp();
        (truth * mood * noise(rng).exp(), mood * noise(rng).exp())
    };
    (0..rounds).map(|_| round()).collect()
}

/// The interval of figures whose replicates vary by so much.
fn interval(sides: &[(f64, f64)], within: f64, rng: &mut Rng) -> Interval {
    let mut replicates =
        |value: f64| [-1.0, 0.0, 1.0].map(|step| value * (1.0 + within * step * rng.f64()));
    let all: Vec<_> = sides.iter().map(|(of, over)| (replicates(*of), replicates(*over))).collect();
    let pairs: Vec<Pair> = sides
        .iter()
        .zip(&all)
        .map(|(side, all)| Pair { of: (side.0, &all.0), over: (side.1, &all.1) })
        .collect();
    ratio(&pairs, rng).unwrap()
}

#[test]
fn the_truth_is_covered_as_often_as_promised() {
    const TRIALS: usize = 2_000;
    let mut rng = Rng::with_seed(4);
    for (name, noise) in NOISES {
        for rounds in [3, 4, 5, 8] {
            for truth in [1.0, 1.7] {
                let covered = (0..TRIALS).filter(|_| {
                    let sides = disturbed(rounds, truth, noise, &mut rng);
                    let ratios: Vec<f64> = sides.iter().map(|(of, over)| of / over).collect();
                    let ratio = stats::median(&ratios).unwrap();
                    let (low, high) = by_rounds(&ratios, ratio).unwrap();
                    assert!(low <= ratio && ratio <= high, "{ratios:?}");
                    low <= truth && truth <= high
                });
                let share = covered.count() as f64 / TRIALS as f64;
                assert!(share >= 0.93, "{name}, {rounds} rounds, {truth}x: {share}");
            }
        }
    }
}

#[test]
fn equals_are_told_apart_no_more_often_than_promised() {
    const TRIALS: usize = 150;
    let mut rng = Rng::with_seed(5);
    for (name, noise) in NOISES {
        for rounds in [3, 5] {
            let held = (0..TRIALS).filter(|_| {
                let sides = disturbed(rounds, 1.0, noise, &mut rng);
                let found = interval(&sides, 0.005, &mut rng);
                assert!(found.low <= found.ratio && found.ratio <= found.high, "{found:?}");
                found.low <= 1.0 && 1.0 <= found.high
            });
            let share = held.count() as f64 / TRIALS as f64;
            assert!(share >= 0.93, "{name}, {rounds} rounds: {share}");
        }
    }
}

#[test]
fn three_noisy_rounds_tell_twice_from_once() {
    let mut rng = Rng::with_seed(6);
    let told = (0..200).filter(|_| {
        let sides = disturbed(3, 2.0, |rng| 0.05 * gauss(rng), &mut rng);
        interval(&sides, 0.005, &mut rng).low > 1.0
    });
    assert!(told.count() >= 194);
}

#[test]
fn fewer_than_three_rounds_claim_nothing() {
    let mut rng = Rng::with_seed(7);
    for sides in [&[(1000.0, 10.0); 2][..], &[(1000.0, 10.0)], &[(10.0, 1000.0)]] {
        let found = interval(sides, 0.01, &mut rng);
        assert!(found.low <= 1.0 && 1.0 <= found.high, "{found:?}");
    }
    assert!(interval(&[(1000.0, 10.0); 3], 0.01, &mut rng).low > 90.0);
}

#[test]
fn rounds_that_agree_by_chance_are_no_surer_than_their_cells() {
    let found = interval(&[(1.1, 1.0); 3], 0.3, &mut Rng::with_seed(8));
    assert!(found.low < 1.0 && found.high > 1.2, "{found:?}");
}

#[test]
fn ratios_of_nothing_are_compared_without_logarithms() {
    let found = |all: [f64; 3]| interval(&all.map(|of| (of, 100.0)), 0.0, &mut Rng::with_seed(9));
    assert_eq!(found([0.0; 3]), Interval { ratio: 0.0, low: 0.0, high: 0.0 });
    let some = found([0.0, 10.0, 0.0]);
    assert!(some.low == 0.0 && some.high > 0.1 && some.high < 1.0, "{some:?}");
}

#[test]
fn the_same_seed_gives_the_same_interval() {
    let seeded = |seed| interval(&[(1.5, 1.0); 3], 0.05, &mut Rng::with_seed(seed));
    assert_eq!(seeded(7), seeded(7));
    assert_ne!(seeded(7), seeded(8));
}

#[test]
fn figures_without_blocks_vary_by_their_rounds_only() {
    let side = |values: [f64; 3]| values.map(|value| (value, vec![value]));
    let (of, over) = (side([10.0, 12.0, 11.0]), side([10.0, 10.0, 10.0]));
    let pairs: Vec<Pair> = of
        .iter()
        .zip(&over)
        .map(|(of, over)| Pair { of: (of.0, &of.1), over: (over.0, &over.1) })
        .collect();
    let found = ratio(&pairs, &mut Rng::with_seed(1)).unwrap();
    // The logarithms' standard deviation is 0.0912; times 4.303 * sqrt(pi / 2 / 3) it is 0.2840.
    assert!((found.high / 1.1 - 0.2840_f64.exp()).abs() < 1e-3, "{found:?}");
    assert!((found.low / 1.1 - (-0.2840_f64).exp()).abs() < 1e-3, "{found:?}");
    let alone = ratio(&pairs[..1], &mut Rng::with_seed(1)).unwrap();
    assert_eq!(alone, Interval { ratio: 1.0, low: 1.0, high: 1.0 });
    assert_eq!(ratio(&[], &mut Rng::with_seed(1)), None);
}
