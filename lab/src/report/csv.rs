//! STUB

use std::io;

use crate::results::Run;

/// The text.
pub fn text(run: &Run) -> io::Result<String> {
    let _ = run;
    Ok(String::new())
}
