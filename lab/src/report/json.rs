//! A whole run as JSON, and back.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::Formatter;

use crate::results::{Run, SCHEMA};

/// The text of `run.json`.
pub fn text(run: &Run) -> io::Result<String> {
    let mut bytes = Vec::new();
    run.serialize(&mut Serializer::with_formatter(&mut bytes, Outline::default()))?;
    bytes.push(b'\n');
    String::from_utf8(bytes).map_err(io::Error::other)
}

/// Levels that get lines of their own: down to the keys of a cell. Below there are thousands of
/// numbers, which would be a line each.
const LEVELS: usize = 7;

/// Indents the upper levels only.
#[derive(Default)]
struct Outline {
    depth: usize,
}

impl Outline {
    fn open<W: ?Sized + Write>(&mut self, to: &mut W, bracket: &[u8]) -> io::Result<()> {
        self.depth += 1;
        to.write_all(bracket)
    }

    fn close<W: ?Sized + Write>(&mut self, to: &mut W, bracket: &[u8]) -> io::Result<()> {
        self.depth -= 1;
        if self.depth < LEVELS {
            self.line(to)?;
        }
        to.write_all(bracket)
    }

    fn next<W: ?Sized + Write>(&mut self, to: &mut W, first: bool) -> io::Result<()> {
        if !first {
            to.write_all(b",")?;
        }
        if self.depth <= LEVELS { self.line(to) } else { Ok(()) }
    }

    fn line<W: ?Sized + Write>(&self, to: &mut W) -> io::Result<()> {
        to.write_all(b"\n")?;
        to.write_all(" ".repeat(self.depth).as_bytes())
    }
}

impl Formatter for Outline {
    fn begin_array<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        self.open(to, b"[")
    }

    fn end_array<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        self.close(to, b"]")
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, to: &mut W, first: bool) -> io::Result<()> {
        self.next(to, first)
    }

    fn begin_object<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        self.open(to, b"{")
    }

    fn end_object<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        self.close(to, b"}")
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, to: &mut W, first: bool) -> io::Result<()> {
        self.next(to, first)
    }
}

/// Where the `run.json` of a run is that was given by its folder, its file, or its name in `runs`.
pub fn find(given: &str, runs: &Path) -> Result<PathBuf, String> {
    let named = runs.join(given);
    [Path::new(given), named.as_path()]
        .into_iter()
        .flat_map(|path| [path.join("run.json"), path.to_owned()])
        .find(|path| path.is_file())
        .ok_or_else(|| {
            let runs = runs.display();
            format!("no run {given}: neither a folder with a run.json nor a name in {runs}")
        })
}

/// Reads a run: `given` is a folder that holds a `run.json`, such a file itself, or the name of a
/// folder in `runs`.
pub fn read(given: &str, runs: &Path) -> Result<Run, String> {
    let path = find(given, runs)?;
    let shown = path.display();
    let text = fs::read_to_string(&path).map_err(|error| format!("{shown}: {error}"))?;
    // The shape's number is looked at first: another one explains itself better than what serde
    // would say about the field it misses.
    let value: serde_json::Value = serde_json::from_str(&text)
        .map_err(|error| format!("{shown} is not the JSON of a run: {error}"))?;
    let schema = value.get("schema").and_then(serde_json::Value::as_u64);
    if schema != Some(SCHEMA.into()) {
        let its = schema.map_or("none".to_owned(), |its| its.to_string());
        return Err(format!(
            "{shown} is of shape {its}, this lab reads {SCHEMA}: run the scenario again"
        ));
    }
    serde_json::from_str(&text)
        .map_err(|error| format!("{shown} is not the JSON of a run: {error}"))
}

#[cfg(test)]
mod tests {
    use super::super::{sample, write};
    use super::*;

    /// A folder of its own, gone when the test is.
    struct Folder(std::path::PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let name = format!("oribi-lab-{name}-{}", std::process::id());
            Self(std::env::temp_dir().join(name))
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_run_is_read_as_it_was_written() {
        let (run, runs) = (sample::run(), Folder::new("written"));
        write(&run, &runs.0.join("sample")).unwrap();
        let by_name = read("sample", &runs.0).unwrap();
        let differs = |(a, b): &(String, String)| a != b;
        let lines = |run: &Run| text(run).unwrap().lines().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(lines(&by_name).into_iter().zip(lines(&run)).find(differs), None);
        let folder = runs.0.join("sample");
        for given in [folder.join("run.json"), folder.clone()] {
            assert_eq!(read(given.to_str().unwrap(), Path::new("/")).unwrap().name, "sample");
        }
        assert!(folder.join("cells.csv").is_file() && folder.join("report.html").is_file());
        assert!(read("other", &runs.0).unwrap_err().starts_with("no run other: neither a folder"));
    }

    #[test]
    fn what_is_no_run_of_this_shape_is_named() {
        let runs = Folder::new("shapes");
        fs::create_dir_all(&runs.0).unwrap();
        for (text, message) in [
            ("{", "is not the JSON of a run"),
            ("{}", "is of shape none, this lab reads 1"),
            ("{\"schema\": 2}", "is of shape 2, this lab reads 1"),
            ("{\"schema\": 1}", "is not the JSON of a run: missing field"),
        ] {
            fs::write(runs.0.join("run.json"), text).unwrap();
            let error = read(runs.0.to_str().unwrap(), Path::new("/")).unwrap_err();
            assert!(error.contains(message), "{error}");
        }
    }
}
