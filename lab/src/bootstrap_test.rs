use fastrand::Rng;

use super::{Interval, Pair, ratio};

/// A cell's figure with so much noise, and replicates that vary as much.
fn cell(level: f64, noise: f64, rng: &mut Rng) -> (f64, Vec<f64>) {
    let value = level * (1.0 + noise * gauss(rng));
    (value, (0..200).map(|_| value * (1.0 + noise * gauss(rng))).collect())
}

fn gauss(rng: &mut Rng) -> f64 {
    // The sum of twelve uniform ones: variance 1.
    (0..12).map(|_| rng.f64()).sum::<f64>() - 6.0
}

fn trial(rounds: usize, levels: (f64, f64), noise: f64, seed: u64) -> Interval {
    let mut rng = Rng::with_seed(seed);
    let sides: Vec<_> = (0..rounds)
        .map(|_| {
            // What disturbs a round disturbs both sides.
            let mood = 1.0 + 0.3 * rng.f64();
            (cell(levels.0 * mood, noise, &mut rng), cell(levels.1 * mood, noise, &mut rng))
        })
        .collect();
    let pairs: Vec<Pair> = sides
        .iter()
        .map(|(of, over)| Pair { of: (of.0, &of.1), over: (over.0, &over.1) })
        .collect();
    ratio(&pairs, &mut rng).unwrap()
}

#[test]
fn equals_are_told_apart_no_more_often_than_promised() {
    for rounds in [1, 3, 5] {
        let held = (0..200)
            .map(|seed| trial(rounds, (1000.0, 1000.0), 0.02, seed))
            .filter(|interval| interval.low <= 1.0 && 1.0 <= interval.high)
            .count();
        assert!(held >= 184, "{rounds} rounds: 1 is in {held} of 200 intervals");
    }
}

#[test]
fn twice_as_fast_is_found_as_such() {
    for seed in 0..50 {
        let found = trial(3, (2000.0, 1000.0), 0.02, seed);
        assert!(found.low > 1.8 && found.high < 2.2, "{found:?}");
        assert!(found.low <= found.ratio && found.ratio <= found.high, "{found:?}");
        assert!(found.low < found.high, "{found:?}");
    }
}

#[test]
fn the_same_seed_gives_the_same_interval() {
    assert_eq!(trial(3, (1.5, 1.0), 0.05, 7), trial(3, (1.5, 1.0), 0.05, 7));
    assert_ne!(trial(3, (1.5, 1.0), 0.05, 7), trial(3, (1.5, 1.0), 0.05, 8));
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
    assert_eq!(found, Interval { ratio: 1.1, low: 1.0, high: 1.2 });
    let alone = ratio(&pairs[..1], &mut Rng::with_seed(1)).unwrap();
    assert_eq!(alone, Interval { ratio: 1.0, low: 1.0, high: 1.0 });
    assert_eq!(ratio(&[], &mut Rng::with_seed(1)), None);
}
