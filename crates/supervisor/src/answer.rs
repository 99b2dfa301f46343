//! Lines for people.

use std::io::Write;

/// One line to standard error, under the server's name. A closed standard error is no reason to
/// stop serving.
pub fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "oribi: {line}");
}

/// Text to standard output, for commands that answer something.
pub fn print(text: &str) {
    let _ = writeln!(std::io::stdout(), "{text}");
}
