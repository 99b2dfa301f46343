//! Lines for people.

use std::io::Write;

/// One line to standard error, under the server's name, in one write, so that no other process's
/// line gets into it. A closed standard error is no reason to stop serving.
pub fn say(line: &str) {
    let _ = std::io::stderr().write_all(format!("oribi: {line}\n").as_bytes());
}

/// Text to standard output, for commands that answer something.
pub fn print(text: &str) {
    let _ = writeln!(std::io::stdout(), "{text}");
}
