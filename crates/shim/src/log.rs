//! What the server has said, in the file `log` of the run directory.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::OpenOptionsExt as _;

use crate::place::Place;

/// When a new server begins a new log, in bytes.
const LONG: u64 = 1024 * 1024;
/// How far back a line is looked for, and how much of it is told.
const TAIL: u64 = 8192;
const LINE: usize = 500;

/// Bytes in the log.
pub fn length(place: &Place) -> u64 {
    std::fs::metadata(place.file("log")).map_or(0, |seen| seen.len())
}

/// Opens it for a server that starts.
pub fn open(place: &Place) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let file = options.append(true).create(true).mode(0o600).open(place.file("log"))?;
    if file.metadata()?.len() > LONG {
        file.set_len(0)?;
    }
    Ok(file)
}

/// The last line that was written after the first `from` bytes, and where the others are.
pub fn last_line(place: &Place, from: u64) -> String {
    let path = place.file("log");
    match read_tail(place, from).as_deref().and_then(telling) {
        Some(line) => format!("{line} (all of it: {})", path.display()),
        None => format!("it said nothing into {}", path.display()),
    }
}

fn read_tail(place: &Place, from: u64) -> Option<String> {
    let mut file = File::open(place.file("log")).ok()?;
    let length = file.metadata().ok()?.len();
    // A log that was begun anew is shorter than it was.
    let from = if from > length { 0 } else { from };
    file.seek(SeekFrom::Start(from.max(length.saturating_sub(TAIL)))).ok()?;
    let mut bytes = Vec::new();
    file.take(TAIL).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The last line that is no part of a backtrace, which Ruby indents.
fn telling(text: &str) -> Option<&str> {
    let mut lines = text.lines().rev();
    let line = lines.find(|line| !line.trim().is_empty() && !line.starts_with([' ', '\t']))?;
    Some(match line.char_indices().nth(LINE) {
        Some((end, _)) => &line[..end],
        None => line,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_told_and_not_where_it_came_from() {
        let text = "a.rb:1:in `x': no (RuntimeError)\n\tfrom a.rb:2\n  3: b\n\n";
        assert_eq!(telling(text), Some("a.rb:1:in `x': no (RuntimeError)"));
        assert_eq!(telling("\n \n"), None);
        assert_eq!(telling(&"é".repeat(600)), Some(&*"é".repeat(500)));
    }
}
