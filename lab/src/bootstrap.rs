//! How sure a ratio of two contenders is.

use fastrand::Rng;

use crate::stats;

/// Replicates of each cell; enough for the tails, few enough for a run of hundreds of cells.
pub const REPLICATES: usize = 400;
/// Draws of the rounds.
const RESAMPLES: usize = 2_000;

/// Both sides of one round: the figure as measured, and its replicates (at least one).
#[derive(Clone, Copy, Debug)]
pub struct Pair<'a> {
    /// Above the line.
    pub of: (f64, &'a [f64]),
    /// Below it.
    pub over: (f64, &'a [f64]),
}

/// A ratio and the interval around it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The median of the rounds' ratios.
    pub ratio: f64,
    /// 2.5 % of the resamples are below.
    pub low: f64,
    /// 2.5 % of the resamples are above.
    pub high: f64,
}

/// The median of the rounds' ratios, with a hierarchical bootstrap's interval of 95 %: rounds are
/// drawn with replacement, the same for both sides, and in each of them a replicate of either
/// side's cell.
///
/// Where the rounds differ by more than their blocks explain, the interval reaches from about the
/// least to the largest of their ratios, which holds the true median with a probability of
/// 1 - 2 / 2^rounds: 75 % for three rounds, 94 % for five. With a single round it knows only what
/// varies within a cell, and is empty where a figure has no blocks.
pub fn ratio(rounds: &[Pair], rng: &mut Rng) -> Option<Interval> {
    let measured: Vec<f64> = rounds.iter().map(|pair| pair.of.0 / pair.over.0).collect();
    let ratio = stats::median(&measured).filter(|ratio| ratio.is_finite())?;
    let mut drawn = vec![0.0; rounds.len()];
    let mut resamples: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            for one in &mut drawn {
                let pair = &rounds[rng.usize(..rounds.len())];
                *one = pick(pair.of.1, rng) / pick(pair.over.1, rng);
            }
            drawn.sort_unstable_by(f64::total_cmp);
            stats::percentile_of_sorted(&drawn, 0.5).unwrap_or(ratio)
        })
        .collect();
    resamples.sort_unstable_by(f64::total_cmp);
    let low = stats::percentile_of_sorted(&resamples, 0.025)?.min(ratio);
    let high = stats::percentile_of_sorted(&resamples, 0.975)?.max(ratio);
    Some(Interval { ratio, low, high })
}

fn pick(replicates: &[f64], rng: &mut Rng) -> f64 {
    replicates[rng.usize(..replicates.len())]
}

#[cfg(test)]
#[path = "bootstrap_test.rs"]
mod tests;
