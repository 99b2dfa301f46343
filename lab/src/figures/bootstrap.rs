//! How sure a ratio of two contenders is.

use std::f64::consts::FRAC_PI_2;

use fastrand::Rng;

use crate::figures::stats;

/// Replicates of each cell; enough for the tails, few enough for a run of hundreds of cells.
pub const REPLICATES: usize = 400;
/// Draws of a replicate for each cell.
const RESAMPLES: usize = 1_000;
/// Fewer do not tell how rounds differ.
const ROUNDS_OF_A_CLAIM: usize = 3;

/// Both sides of one round: the figure as measured, and its replicates (at least one).
#[derive(Clone, Copy, Debug)]
pub struct Pair<'a> {
    /// Above the line.
    pub of: (f64, &'a [f64]),
    /// Below it.
    pub over: (f64, &'a [f64]),
}

/// A ratio and its interval of 95 %.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The median of the rounds' ratios.
    pub ratio: f64,
    /// Its lower end, at most the ratio.
    pub low: f64,
    /// Its upper end, at least the ratio.
    pub high: f64,
}

/// The median of the rounds' ratios, with an interval that spans two: what the rounds' differences
/// say by Student's t, and what the blocks within the cells say by bootstrap. The second counts
/// where rounds happen to agree better than their cells allow.
///
/// It holds the true median with a probability of at least 95 % where the logarithms of the rounds'
/// ratios are normal or have heavier tails. One round knows only what varies within a cell, two
/// know next to nothing of how rounds differ: their interval reaches to 1 at least, so that it
/// never claims a difference.
pub fn ratio(rounds: &[Pair], rng: &mut Rng) -> Option<Interval> {
    let measured: Vec<f64> = rounds.iter().map(|pair| pair.of.0 / pair.over.0).collect();
    let ratio = stats::median(&measured).filter(|ratio| ratio.is_finite())?;
    let ends = [by_blocks(rounds, rng), by_rounds(&measured, ratio)];
    let claimless = (rounds.len() < ROUNDS_OF_A_CLAIM).then_some((1.0, 1.0));
    let (low, high) = ends
        .into_iter()
        .flatten()
        .chain(claimless)
        .fold((ratio, ratio), |all, one| (all.0.min(one.0), all.1.max(one.1)));
    Some(Interval { ratio, low, high })
}

/// As many standard errors of a median to either side as Student's t asks for so few rounds. On the
/// scale of logarithms, where twice is as far from 1 as half is; ratios of 0 have none.
fn by_rounds(measured: &[f64], ratio: f64) -> Option<(f64, f64)> {
    let reach = |values: &[f64]| {
        // A normal sample's median varies by up to pi / 2 more than its mean.
        let error = (stats::variance(values)? / values.len() as f64 * FRAC_PI_2).sqrt();
        Some(error * stats::student(values.len() - 1))
    };
    if measured.iter().all(|ratio| *ratio > 0.0) {
        let logarithms: Vec<f64> = measured.iter().map(|ratio| ratio.ln()).collect();
        let factor = reach(&logarithms)?.exp();
        return Some((ratio / factor, ratio * factor));
    }
    let reach = reach(measured)?;
    Some(((ratio - reach).max(0.0), ratio + reach))
}

/// How the median varies when each round's cells are replaced by replicates of theirs.
fn by_blocks(rounds: &[Pair], rng: &mut Rng) -> Option<(f64, f64)> {
    let mut drawn = vec![0.0; rounds.len()];
    let mut medians = Vec::with_capacity(RESAMPLES);
    for _ in 0..RESAMPLES {
        for (one, pair) in drawn.iter_mut().zip(rounds) {
            *one = pick(pair.of.1, rng) / pick(pair.over.1, rng);
        }
        drawn.sort_unstable_by(f64::total_cmp);
        medians.push(stats::percentile_of_sorted(&drawn, 0.5)?);
    }
    medians.sort_unstable_by(f64::total_cmp);
    let end = |part| stats::percentile_of_sorted(&medians, part);
    Some((end(0.025)?, end(0.975)?))
}

fn pick(replicates: &[f64], rng: &mut Rng) -> f64 {
    replicates[rng.usize(..replicates.len())]
}

#[cfg(test)]
#[path = "bootstrap_test.rs"]
mod tests;
