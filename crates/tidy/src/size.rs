//! Files of at most 400 lines, functions of at most 70.

use crate::lexer::{self, Line};
use crate::{Complaint, File};

/// The longest file, in lines.
pub const FILE_LINES: usize = 400;
/// The longest function, in lines from its head to its end.
pub const FUNCTION_LINES: usize = 70;

/// A function found in a file.
#[derive(Debug, PartialEq, Eq)]
struct Function {
    name: String,
    line: usize,
    length: usize,
}

/// Checks a Rust or Ruby file.
pub fn check(file: &File) -> Vec<Complaint> {
    let functions = if file.is("rs") {
        rust_functions(&file.text)
    } else if is_ruby(file) {
        ruby_functions(&file.text)
    } else {
        return Vec::new();
    };
    let length = file.text.lines().count();
    let too_long = (length > FILE_LINES)
        .then(|| file.complain(FILE_LINES + 1, format!("{length} lines; {FILE_LINES} at most")));
    let long = functions.into_iter().filter(|function| function.length > FUNCTION_LINES).map(|f| {
        let what = format!("`{}` has {} lines; {FUNCTION_LINES} at most", f.name, f.length);
        file.complain(f.line, what)
    });
    too_long.into_iter().chain(long).collect()
}

fn is_ruby(file: &File) -> bool {
    let shebang =
        file.text.lines().next().is_some_and(|l| l.starts_with("#!") && l.contains("ruby"));
    file.is("rb") || file.is("ru") || file.is("gemspec") || shebang
}

/// Counts from each `fn` to the brace that closes its body; declarations have none.
fn rust_functions(text: &str) -> Vec<Function> {
    let lines = lexer::lines(text);
    let mut functions = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let Some((before, after)) = line.code.split_once("fn ") else { continue };
        if before.ends_with(|c: char| c.is_alphanumeric() || c == '_') {
            continue;
        }
        let name = lexer::words(after).next().unwrap_or_default().to_owned();
        if let Some(length) = body_length(&lines[index..], before.len()) {
            functions.push(Function { name, line: index + 1, length });
        }
    }
    functions
}

fn body_length(lines: &[Line], from: usize) -> Option<usize> {
    let (mut depth, mut opened) = (0, false);
    for (count, line) in lines.iter().enumerate() {
        let skip = if count == 0 { from } else { 0 };
        for c in line.code[skip..].chars() {
            match c {
                '(' | '[' | '{' => depth += 1,
                ')' | ']' | '}' => depth -= 1,
                ';' if depth == 0 => return None,
                _ => {}
            }
            opened |= c == '{' && depth == 1;
            if depth == 0 && opened && c == '}' {
                return Some(count + 1);
            }
        }
    }
    None
}

/// Counts from each `def` to the `end` that is indented like it.
fn ruby_functions(text: &str) -> Vec<Function> {
    let lines: Vec<&str> = text.lines().collect();
    let mut functions = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let trimmed = line.trim_start();
        let indent = line.len() - trimmed.len();
        let Some(head) = ["", "private ", "module_function ", "private_class_method "]
            .iter()
            .find_map(|prefix| trimmed.strip_prefix(prefix)?.strip_prefix("def "))
        else {
            continue;
        };
        let ends = |line: &&str| {
            let inner = line.trim_start();
            line.len() - inner.len() == indent && lexer::words(inner).next() == Some("end")
        };
        let one_liner = head.contains(") = ") || head.contains("; end");
        let name = head.split(['(', ' ', ';']).next().unwrap_or_default().to_owned();
        if let Some(length) = lines[index + 1..].iter().position(ends).filter(|_| !one_liner) {
            functions.push(Function { name, line: index + 1, length: length + 2 });
        }
    }
    functions
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(functions: &[Function]) -> Vec<(&str, usize, usize)> {
        functions.iter().map(|f| (f.name.as_str(), f.line, f.length)).collect()
    }

    #[test]
    fn rust_functions_are_measured() {
        let text = "trait T { fn declared(&self); }\n\
                    fn one() -> [u8; 2] { [1, 2] }\n\
                    pub unsafe extern \"C\" fn two(\n  f: fn (u8),\n) {\n  let s = \"}\"; // }\n}\n";
        assert_eq!(found(&rust_functions(text)), [("one", 2, 1), ("two", 3, 5)]);
    }

    #[test]
    fn ruby_functions_are_measured() {
        let text = "class A\n  def one(x) = x\n  def two\n    if x\n    end\n  end\n  \
                    private def self.three(a)\n    1\n  end\nend\n";
        assert_eq!(found(&ruby_functions(text)), [("two", 3, 4), ("self.three", 7, 3)]);
    }

    #[test]
    fn the_limits_are_limits() {
        let function = |lines| format!("fn long() {{\n{}}}\n", "    x;\n".repeat(lines - 2));
        let check = |path, text: &str| check(&File::sample(path, text));
        assert_eq!(check("a.rs", &function(FUNCTION_LINES)), []);
        let complaints = check("a.rs", &function(FUNCTION_LINES + 1));
        assert_eq!(complaints[0].to_string(), "a.rs:1: `long` has 71 lines; 70 at most");
        assert_eq!(check("a.rb", &"x\n".repeat(FILE_LINES)), []);
        assert_eq!(check("a.rb", &"x\n".repeat(FILE_LINES + 1))[0].line, FILE_LINES + 1);
        let method = format!("def long\n{}end\n", "  x\n".repeat(FUNCTION_LINES));
        assert_eq!(check("bin", &format!("#!/usr/bin/env ruby\n{method}"))[0].line, 2);
        assert_eq!(check("notes.md", &"x\n".repeat(999)), []);
    }
}
