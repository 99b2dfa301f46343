//! The rules the code base keeps about itself: who imports whom, where unsafe code lives, how long
//! files and functions get, which words do not appear.
//!
//! Each rule takes a file and returns complaints; `tests/tree.rs` applies all to the whole tree,
//! and each rule's own tests show that it can fail.

#![forbid(unsafe_code)]

pub mod imports;
pub mod lexer;
pub mod size;
pub mod unsafety;
pub mod words;

use std::fmt;
use std::path::{Path, PathBuf};

/// A file of the tree: its path from the root, and its text.
pub struct File {
    /// With forward slashes, from the root of the repository.
    pub path: String,
    /// The whole text.
    pub text: String,
}

impl File {
    /// A file made up for a test.
    pub fn sample(path: &str, text: &str) -> File {
        File { path: path.to_owned(), text: text.to_owned() }
    }

    /// True when the name ends in a dot and `extension`.
    pub fn is(&self, extension: &str) -> bool {
        Path::new(&self.path).extension().is_some_and(|its| its == extension)
    }

    /// A complaint about line `line`, counted from 1.
    pub fn complain(&self, line: usize, what: impl Into<String>) -> Complaint {
        Complaint { path: self.path.clone(), line, what: what.into() }
    }
}

/// One broken rule.
#[derive(Debug, PartialEq, Eq)]
pub struct Complaint {
    /// The file's path from the root.
    pub path: String,
    /// Counted from 1.
    pub line: usize,
    /// What is wrong, and what would be right.
    pub what: String,
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.what)
    }
}

/// The repository's root.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every text file people wrote, in order of their paths.
pub fn tree() -> Vec<File> {
    let mut files = Vec::new();
    walk(&root(), "", &mut files);
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files
}

fn walk(directory: &Path, prefix: &str, files: &mut Vec<File>) {
    let entries = std::fs::read_dir(directory).expect("the tree can be read");
    for entry in entries.flatten() {
        let Ok(name) = entry.file_name().into_string() else { continue };
        // What git ignores, and what tools keep for themselves.
        if name.starts_with('.') || ["target", "tmp", "log"].contains(&name.as_str()) {
            continue;
        }
        let path = format!("{prefix}{name}");
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => walk(&entry.path(), &format!("{path}/"), files),
            Ok(kind) if kind.is_file() && name != "Cargo.lock" => {
                if let Ok(text) = std::fs::read_to_string(entry.path()) {
                    files.push(File { path, text });
                }
            }
            _ => {}
        }
    }
}
