//! Tells Rust code from its comments and strings, line by line: enough for the rules, no more.

/// One line of Rust taken apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line {
    /// The code, with the insides of strings and characters left out.
    pub code: String,
    /// The text of comments.
    pub comment: String,
}

#[derive(Clone, Copy)]
enum In {
    Code,
    LineComment,
    /// Nested so deep.
    BlockComment(u32),
    /// `Some(n)`: raw, ended by a quote and n hashes.
    String(Option<usize>),
}

/// Takes a whole file apart.
pub fn lines(text: &str) -> Vec<Line> {
    let chars: Vec<char> = text.chars().collect();
    let mut lines = vec![Line::default()];
    let mut state = In::Code;
    let mut at = 0;
    while at < chars.len() {
        let rest = &chars[at..];
        if rest[0] == '\n' {
            lines.push(Line::default());
            if let In::LineComment = state {
                state = In::Code;
            }
            at += 1;
            continue;
        }
        let line = lines.last_mut().expect("there is always one");
        let (used, next) = match state {
            In::Code => code(rest, line),
            In::LineComment => {
                line.comment.push(rest[0]);
                (1, state)
            }
            In::BlockComment(depth) => comment(rest, line, depth),
            In::String(raw) => string(rest, line, raw),
        };
        at += used;
        state = next;
    }
    lines
}

fn code(rest: &[char], line: &mut Line) -> (usize, In) {
    match rest {
        ['/', '/', ..] => return (2, In::LineComment),
        ['/', '*', ..] => return (2, In::BlockComment(1)),
        ['\'', ..] => {
            let length = character(rest);
            line.code.push_str(if length > 1 { "''" } else { "'" });
            return (length, In::Code);
        }
        ['"', ..] => {
            line.code.push('"');
            return (1, In::String(None));
        }
        ['r', '"' | '#', ..] if !ends_in_word(&line.code, &["b", "c"]) => {
            let hashes = rest[1..].iter().take_while(|c| **c == '#').count();
            if rest.get(1 + hashes) == Some(&'"') {
                line.code.push('"');
                return (2 + hashes, In::String(Some(hashes)));
            }
        }
        _ => {}
    }
    line.code.push(rest[0]);
    (1, In::Code)
}

/// True when the code ends in a letter of a longer word, so that an `r` does not start a string.
fn ends_in_word(code: &str, prefixes: &[&str]) -> bool {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    let last = code.rsplit(|c| !word(c)).next().unwrap_or("");
    !last.is_empty() && !prefixes.contains(&last)
}

/// The length of a character literal at the start of `rest`; 1 for a lifetime's tick.
fn character(rest: &[char]) -> usize {
    match rest {
        ['\'', '\\', _, after @ ..] => {
            3 + after.iter().position(|c| *c == '\'').map_or(0, |end| end + 1)
        }
        ['\'', _, '\'', ..] => 3,
        _ => 1,
    }
}

fn comment(rest: &[char], line: &mut Line, depth: u32) -> (usize, In) {
    match rest {
        ['/', '*', ..] => (2, In::BlockComment(depth + 1)),
        ['*', '/', ..] if depth == 1 => (2, In::Code),
        ['*', '/', ..] => (2, In::BlockComment(depth - 1)),
        _ => {
            line.comment.push(rest[0]);
            (1, In::BlockComment(depth))
        }
    }
}

fn string(rest: &[char], line: &mut Line, raw: Option<usize>) -> (usize, In) {
    match (rest, raw) {
        // An escaped end of line is left for the line counter.
        (['\\', escaped, ..], None) if *escaped != '\n' => (2, In::String(raw)),
        (['"', after @ ..], _) => {
            let hashes = raw.unwrap_or(0);
            if after.len() >= hashes && after[..hashes].iter().all(|c| *c == '#') {
                line.code.push('"');
                return (1 + hashes, In::Code);
            }
            (1, In::String(raw))
        }
        _ => (1, In::String(raw)),
    }
}

/// The words of a line of code.
pub fn words(code: &str) -> impl Iterator<Item = &str> {
    code.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn codes(text: &str) -> Vec<String> {
        lines(text).into_iter().map(|line| line.code).collect()
    }

    #[test]
    fn comments_and_strings_are_not_code() {
        assert_eq!(codes("a // unsafe {"), ["a "]);
        assert_eq!(codes("a /* { /* } */\n { */ b"), ["a ", " b"]);
        assert_eq!(codes(r#"f("{ \" }", '{', b'\'', "x")"#), [r#"f("", '', b'', "")"#]);
        assert_eq!(codes("r#\"{ \" }\"# + br\"{\\\" }"), ["\"\" + b\"\" }"]);
        assert_eq!(codes("fn f<'a>(x: &'a str) {}"), ["fn f<'a>(x: &'a str) {}"]);
        assert_eq!(codes("\"one \\\n two\" }"), ["\"", "\" }"]);
        assert_eq!(codes("for r in x { r#type }"), ["for r in x { r#type }"]);
    }

    #[test]
    fn comments_are_kept_apart() {
        assert_eq!(lines("x; // SAFETY: y")[0].comment, " SAFETY: y");
    }
}
