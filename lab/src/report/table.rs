//! Tables for the terminal.

use crate::results::{CaseResult, Run};

/// One case.
pub fn case(result: &CaseResult) -> String {
    result.case.title.clone() + "\n"
}

/// All verdicts.
pub fn verdicts(run: &Run) -> String {
    run.name.clone() + "\n"
}
