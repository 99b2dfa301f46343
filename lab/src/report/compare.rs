//! Two runs side by side.

use crate::results::Run;

/// What has changed from `a` to `b`, as text for [`anstream`]; an error when the machines differ
/// and it is not to be done `anyway`.
pub fn compare(a: &Run, b: &Run, anyway: bool) -> Result<String, String> {
    let _ = (a, b, anyway);
    Ok(String::new())
}
