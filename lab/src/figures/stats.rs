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

/// The quantile of 97.5 % of Student's t distribution with so many degrees of freedom: 12.7 for one,
/// less for more, 1.96 in the end.
pub fn student(freedom: usize) -> f64 {
    const FEW: [f64; 10] = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228];
    const NORMAL: f64 = 1.959_964;
    // The first terms of the series in 1 / freedom.
    let many = |freedom: f64| {
        let first = (NORMAL.powi(3) + NORMAL) / 4.0;
        let second = (5.0 * NORMAL.powi(5) + 16.0 * NORMAL.powi(3) + 3.0 * NORMAL) / 96.0;
        NORMAL + first / freedom + second / freedom.powi(2)
    };
    match freedom {
        0 => f64::INFINITY,
        _ => FEW.get(freedom - 1).copied().unwrap_or_else(|| many(freedom as f64)),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_and_other_parts() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(percentile(&[10.0, 20.0, 30.0], 0.9), Some(28.0));
        assert_eq!(percentile(&[10.0, 20.0, 30.0], 0.0), Some(10.0));
        assert_eq!(percentile(&[10.0, 20.0, 30.0], 1.0), Some(30.0));
        assert_eq!(percentile(&[7.0], 0.3), Some(7.0));
    }

    #[test]
    fn variance_is_that_of_a_sample() {
        assert_eq!(variance(&[2.0, 4.0, 6.0]), Some(4.0));
        assert_eq!(variance(&[2.0]), None);
    }

    #[test]
    fn student_asks_for_less_the_more_is_known() {
        assert_eq!((student(0), student(1), student(2)), (f64::INFINITY, 12.706, 4.303));
        for (freedom, value) in [(11, 2.201), (20, 2.086), (60, 2.000), (100_000, 1.960)] {
            assert!((student(freedom) - value).abs() < 0.003, "{freedom}: {}", student(freedom));
        }
        assert!((0..50).all(|freedom| student(freedom) > student(freedom + 1)));
    }

    #[test]
    fn fairness_by_hand() {
        assert_eq!(jain(&[5.0, 5.0, 5.0, 5.0]), Some(1.0));
        assert_eq!(jain(&[20.0, 0.0, 0.0, 0.0]), Some(0.25));
        assert_eq!(jain(&[1.0, 3.0]), Some(0.8));
        assert_eq!(jain(&[0.0, 0.0]), None);
        assert_eq!(jain(&[]), None);
    }

    #[test]
    fn fairness_lies_between_one_worker_and_all() {
        let mut rng = fastrand::Rng::with_seed(1);
        for _ in 0..200 {
            let shares: Vec<f64> = (0..rng.usize(1..20)).map(|_| rng.f64() + 1e-3).collect();
            let found = jain(&shares).unwrap();
            assert!(found <= 1.0 + 1e-12 && found >= 1.0 / shares.len() as f64, "{shares:?}");
            let tenfold: Vec<f64> = shares.iter().map(|share| share * 10.0).collect();
            assert!((jain(&tenfold).unwrap() - found).abs() < 1e-12, "the unit does not matter");
        }
    }

    #[test]
    fn dispersion_tells_clockwork_chance_and_clusters_apart() {
        assert_eq!(dispersion(&[2.0, 4.0, 6.0]), Some(1.0));
        assert_eq!(dispersion(&[5.0, 5.0, 5.0]), Some(0.0));
        assert_eq!(dispersion(&[0.0, 0.0]), None);
        let mut rng = fastrand::Rng::with_seed(2);
        let mut counts = vec![0.0; 2_000];
        (0..20_000).for_each(|_| counts[rng.usize(..2_000)] += 1.0);
        assert!((dispersion(&counts).unwrap() - 1.0).abs() < 0.1, "thrown at random");
        let pairs: Vec<f64> = counts.iter().map(|count| count * 2.0).collect();
        assert!((dispersion(&pairs).unwrap() - 2.0).abs() < 0.2, "always two at once");
    }

    #[test]
    fn spread_of_a_quiet_machine_is_one() {
        assert_eq!(spread(&[3.0, 3.0, 3.0]), Some(1.0));
        let hundred: Vec<f64> = (0..=10).map(|ten| 100.0 + 10.0 * f64::from(ten)).collect();
        assert!((spread(&hundred).unwrap() - 190.0 / 110.0).abs() < 1e-12);
        assert_eq!(spread(&[]), None);
    }
}
