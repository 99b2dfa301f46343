//! Reads a plan as JSON, writes its outcome as JSON.

use std::process::ExitCode;

fn main() -> ExitCode {
    oribi_load::serve_stdin()
}
