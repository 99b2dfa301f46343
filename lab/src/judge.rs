//! What the rounds of a case come to: medians, ratios with their uncertainty, promises kept.

use crate::results::{CaseResult, Cell, ContenderFacts};
use crate::scenario::Case;

/// Sums up a case. `rounds` holds the cells, round by round.
pub fn judge(case: Case, contenders: Vec<ContenderFacts>, rounds: Vec<Vec<Cell>>) -> CaseResult {
    CaseResult {
        case,
        contenders,
        rounds,
        summary: Vec::new(),
        comparisons: Vec::new(),
        verdicts: Vec::new(),
        published: Vec::new(),
    }
}
