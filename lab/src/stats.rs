//! Plain arithmetic on figures.

/// The middle value; the mean of the two middle ones of an even number.
pub fn median(values: &[f64]) -> Option<f64> {
    percentile(values, 0.5)
}

/// The value that `part` (0 to 1) of all do not exceed, linear between neighbours.
pub fn percentile(values: &[f64], part: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    percentile_of_sorted(&sorted, part)
}

/// [`percentile`] of values that ascend.
pub fn percentile_of_sorted(sorted: &[f64], part: f64) -> Option<f64> {
    let at = part.clamp(0.0, 1.0) * sorted.len().checked_sub(1)? as f64;
    let (low, high) = (sorted[at.floor() as usize], sorted[at.ceil() as usize]);
    Some(low + (high - low) * at.fract())
}

/// The mean.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The variance of a sample (divided by n - 1); None for fewer than two values.
pub fn variance(values: &[f64]) -> Option<f64> {
    let mean = mean(values).filter(|_| values.len() > 1)?;
    let squares = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
    Some(squares / (values.len() - 1) as f64)
}

/// Jain's index of fairness: 1 when all are equal, 1/n when one has everything; None when nobody
/// has anything.
pub fn jain(shares: &[f64]) -> Option<f64> {
    let (sum, squares) = shares
        .iter()
        .fold((0.0, 0.0), |(sum, squares), share| (sum + share, squares + share * share));
    (squares > 0.0).then(|| sum * sum / (shares.len() as f64 * squares))
}

/// Index of dispersion, variance over mean of counts: 1 for a Poisson process, 0 for a clockwork.
pub fn dispersion(counts: &[f64]) -> Option<f64> {
    let mean = mean(counts).filter(|mean| *mean > 0.0)?;
    Some(variance(counts)? / mean)
}

/// 90th over 10th percentile: 1 when nothing varies.
pub fn spread(values: &[f64]) -> Option<f64> {
    let low = percentile(values, 0.1).filter(|low| *low > 0.0)?;
    Some(percentile(values, 0.9)? / low)
}
