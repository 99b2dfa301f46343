//! The metrics of one phase, from what the generator and the sampler saw.

use std::collections::BTreeMap;

use crate::results::PhaseResult;
use crate::scenario::{Case, Phase};

/// All metrics of a phase, named `PHASE.NAME` or `PHASE.NAME.CLASS`; what was not measured is not
/// in it. `stack_workers` is the number of workers of the whole stack, `earlier` what the cell's
/// earlier phases gave.
pub fn of_phase(
    _case: &Case,
    _phase: &Phase,
    _result: &PhaseResult,
    _stack_workers: f64,
    _earlier: &BTreeMap<String, f64>,
) -> BTreeMap<String, f64> {
    BTreeMap::new()
}
