//! Unsafe code only in named files, and never without its `// SAFETY:` note.

use crate::lexer::{self, Line};
use crate::{Complaint, File};

/// The files that may hold unsafe code. To add one is a decision, not an oversight.
const ALLOWED: &[&str] = &[
    "crates/mruby/src/process.rs",
    "crates/mruby/src/region.rs",
    "crates/mruby/src/sys.rs",
    "crates/mruby/src/sys/back.rs",
    "crates/mruby/src/sys/read.rs",
    "crates/shim/src/main.rs",
    "crates/wire/src/counters.rs",
    "crates/wire/src/memory.rs",
    "crates/wire/src/segment.rs",
    "crates/wire/src/sched.rs",
    "crates/wire/src/unsent.rs",
    "crates/supervisor/src/inherit.rs",
    "crates/supervisor/src/listen/defer.rs",
    "ext/oribi/src/counters.rs",
    "ext/oribi/src/env.rs",
    "ext/oribi/src/errors.rs",
    "ext/oribi/src/garbage.rs",
    "ext/oribi/src/gvl.rs",
    "ext/oribi/src/head.rs",
    "ext/oribi/src/lib.rs",
    "ext/oribi/src/process.rs",
    "ext/oribi/src/reply.rs",
    "ext/oribi/src/ruby.rs",
    "ext/oribi/src/seat.rs",
    "ext/oribi/src/timeout.rs",
];

/// Crate roots that must refuse unsafe code themselves, and the attribute that does it: `deny`
/// where one of the files above belongs to the crate, else `forbid`.
const ROOTS: &[(&str, &str)] = &[
    ("crates/mruby/src/lib.rs", "#![deny(unsafe_code)]"),
    ("crates/door/src/lib.rs", "#![forbid(unsafe_code)]"),
    ("crates/front/src/lib.rs", "#![forbid(unsafe_code)]"),
    ("crates/text/src/lib.rs", "#![forbid(unsafe_code)]"),
    ("crates/tidy/src/lib.rs", "#![forbid(unsafe_code)]"),
    ("crates/worker/src/lib.rs", "#![forbid(unsafe_code)]"),
    ("crates/shim/src/main.rs", "#![deny(unsafe_code)]"),
    ("crates/supervisor/src/lib.rs", "#![deny(unsafe_code)]"),
    ("crates/supervisor/src/main.rs", "#![forbid(unsafe_code)]"),
];

/// Checks a Rust file.
pub fn check(file: &File) -> Vec<Complaint> {
    if !file.is("rs") {
        return Vec::new();
    }
    let lines = lexer::lines(&file.text);
    let mut complaints = Vec::new();
    if let Some((_, attribute)) = ROOTS.iter().find(|(path, _)| *path == file.path)
        && !lines.iter().any(|line| line.code.trim() == *attribute)
    {
        complaints.push(file.complain(1, format!("must say {attribute}")));
    }
    for (index, line) in lines.iter().enumerate() {
        if !lexer::words(&line.code).any(|word| word == "unsafe") {
            continue;
        }
        if !ALLOWED.contains(&file.path.as_str()) {
            let what = "unsafe code outside of the files that may hold it (crates/tidy lists them)";
            complaints.push(file.complain(index + 1, what));
        }
        if needs_note(&line.code) && !has_note(&lines, index) {
            complaints
                .push(file.complain(index + 1, "unsafe without a `// SAFETY:` note above it"));
        }
    }
    complaints
}

/// Blocks and impls do; an unsafe fn or extern declaration passes the duty to its callers.
fn needs_note(code: &str) -> bool {
    code.match_indices("unsafe").any(|(at, word)| {
        let rest = code[at + word.len()..].trim_start();
        rest.starts_with('{') || rest.starts_with("impl ") || rest.is_empty()
    })
}

/// A note stands on the line itself or above it, before the previous statement ends.
fn has_note(lines: &[Line], index: usize) -> bool {
    let ends_statement =
        |line: &Line| line.code.trim_end().ends_with([';', '{', '}']) && line.comment.is_empty();
    let above = lines[..index].iter().rev().take_while(|line| !ends_statement(line));
    std::iter::once(&lines[index]).chain(above).any(|line| line.comment.contains("SAFETY:"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(path: &str, text: &str) -> Vec<usize> {
        check(&File::sample(path, text)).iter().map(|complaint| complaint.line).collect()
    }

    #[test]
    fn unsafe_code_stays_in_its_files() {
        let noted = "fn f() {\n    // SAFETY: it is.\n    unsafe { g() }\n}\n";
        assert_eq!(complaints("crates/wire/src/segment.rs", noted), []);
        assert_eq!(complaints("crates/wire/src/queue.rs", noted), [3]);
        let comment = "// this is not unsafe\nlet s = \"unsafe { }\";\n";
        assert_eq!(complaints("crates/wire/src/queue.rs", comment), []);
    }

    #[test]
    fn a_note_is_asked_for() {
        let check = |text| complaints("ext/oribi/src/env.rs", text);
        assert_eq!(check("let a = unsafe { b() };"), [1]);
        assert_eq!(check("// SAFETY: fine.\nlet a =\n    unsafe { b() };"), []);
        assert_eq!(check("// SAFETY: fine.\na();\nunsafe { b() };"), [3]);
        assert_eq!(check("unsafe impl Send for A {}"), [1]);
        assert_eq!(check("// SAFETY: as above.\nunsafe impl Send for A {}"), []);
        assert_eq!(check("unsafe extern \"C\" fn f() {}"), []);
    }

    #[test]
    fn a_root_must_forbid() {
        assert_eq!(complaints("crates/front/src/lib.rs", "//! Front.\n"), [1]);
        assert_eq!(complaints("crates/front/src/lib.rs", "#![forbid(unsafe_code)]\n"), []);
        assert_eq!(complaints("crates/supervisor/src/main.rs", "fn main() {}\n"), [1]);
    }
}
