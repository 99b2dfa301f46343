//! Words that do not appear: notes of unfinished work, and the host names of package registries.

use crate::{Complaint, File};

/// Spelled in halves, so that this file keeps its own rule.
const UNFINISHED: [(&str, &str); 5] =
    [("TO", "DO"), ("FIX", "ME"), ("XX", "X:"), ("todo", "!("), ("unimplemented", "!(")];

/// Where packages come from is for the reader's own configuration to say.
const REGISTRIES: [(&str, &str); 8] = [
    ("rubygems", ".org"),
    ("crates", ".io"),
    ("registry.npmjs", ".org"),
    ("pypi", ".org"),
    ("docker", ".io"),
    ("ghcr", ".io"),
    ("proxy.golang", ".org"),
    ("sh.rustup", ".rs"),
];

/// Checks any text file.
pub fn check(file: &File) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        for (a, b) in UNFINISHED {
            if line.contains(&format!("{a}{b}")) {
                complaints.push(file.complain(index + 1, format!("{a}{b}: finish it, or say why")));
            }
        }
        for (a, b) in REGISTRIES {
            if line.contains(&format!("{a}{b}")) {
                let what = format!("names the registry {a}{b}: leave that to the user's set-up");
                complaints.push(file.complain(index + 1, what));
            }
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_word_is_found() {
        for (a, b) in UNFINISHED.into_iter().chain(REGISTRIES) {
            let file = File::sample("lib/a.rb", &format!("fine\n# see {a}{b} here\n"));
            let complaints = check(&file);
            assert_eq!(complaints.len(), 1, "{a}{b}");
            assert_eq!(complaints[0].line, 2);
        }
        assert_eq!(check(&File::sample("a.rs", "let todos = 1;\n")), []);
    }
}
