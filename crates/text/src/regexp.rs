//! Ruby's regular expressions: translated, and matched by `fancy_regex`. A pattern without
//! look-around and back-references takes linear time; any other gives up after a bounded number
//! of steps back.

mod class;
mod escapes;
pub mod translate;

use fancy_regex::{BytesMode, CompileError, RegexInput, RegexOptionsBuilder, RuntimeError};
use std::borrow::Cow;
use std::fmt;

/// Steps back after which a match is given up: some 50 ms.
pub const BACKTRACKS: usize = 500_000;
/// What a compiled pattern may take, in bytes (of each of its parts) and instructions.
const SIZE: usize = 2 << 20;
const INSTRUCTIONS: usize = 50_000;

/// `Regexp::IGNORECASE`, `EXTENDED`, `MULTILINE`, `NOENCODING` and inner `(?u)`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Options {
    /// `i`: letters in either case.
    pub ignore_case: bool,
    /// `m`: a dot matches a newline, too.
    pub multiline: bool,
    /// `x`: blanks and comments do not count.
    pub extended: bool,
    /// `n`: bytes, not characters.
    pub binary: bool,
    /// `(?u)`: `\w` and the like know all letters.
    pub unicode: bool,
}

impl Options {
    /// From the letters behind a literal; others are not looked at.
    pub fn from_letters(letters: &str) -> Options {
        Options {
            ignore_case: letters.contains('i'),
            multiline: letters.contains('m'),
            extended: letters.contains('x'),
            binary: letters.contains('n'),
            unicode: false,
        }
    }

    /// From Ruby's number.
    pub fn from_bits(bits: i64) -> Options {
        Options {
            ignore_case: bits & 1 != 0,
            extended: bits & 2 != 0,
            multiline: bits & 4 != 0,
            binary: bits & 32 != 0,
            unicode: false,
        }
    }

    /// Ruby's number.
    pub fn bits(self) -> i64 {
        i64::from(self.ignore_case)
            | i64::from(self.extended) << 1
            | i64::from(self.multiline) << 2
            | i64::from(self.binary) << 5
    }

    /// The letters of what is on, in Ruby's order.
    pub fn letters(self) -> String {
        let letters = [(self.multiline, 'm'), (self.ignore_case, 'i'), (self.extended, 'x')];
        letters.into_iter().filter_map(|(on, letter)| on.then_some(letter)).collect()
    }
}

/// Why a pattern cannot be used, in Ruby's words where Ruby has some.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Syntax(Cow<'static, str>);

impl From<&'static str> for Syntax {
    fn from(text: &'static str) -> Syntax {
        Syntax(text.into())
    }
}

impl From<String> for Syntax {
    fn from(text: String) -> Syntax {
        Syntax(text.into())
    }
}

impl fmt::Display for Syntax {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A match was given up: it took too many steps back or too much memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GaveUp;

impl fmt::Display for GaveUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "regexp match timeout: it steps back too often; write it without nested repeats",
        )
    }
}

/// Where a match and its groups begin and end, in bytes. The match itself is always there.
pub type Spans = Vec<Option<(usize, usize)>>;

/// A compiled pattern.
#[derive(Debug)]
pub struct Regexp {
    engine: fancy_regex::Regex,
    groups: usize,
    names: Vec<(String, usize)>,
}

impl Regexp {
    /// Compiles Ruby's `source`.
    pub fn new(source: &str, options: Options) -> Result<Regexp, Syntax> {
        let translated = translate::translate(source, options)?;
        let mode = if options.binary { BytesMode::Ascii } else { BytesMode::UnicodeBytes };
        let engine = RegexOptionsBuilder::new()
            .multi_line(true)
            .case_insensitive(options.ignore_case)
            .dot_matches_new_line(options.multiline)
            .unicode_mode(!options.binary)
            .bytes_mode(mode)
            .oniguruma_mode(true)
            .backtrack_limit(BACKTRACKS)
            .delegate_size_limit(SIZE)
            .delegate_dfa_size_limit(SIZE)
            .max_prog_size(INSTRUCTIONS)
            .build(translated.pattern)
            .map_err(refused)?;
        Ok(Regexp { engine, groups: translated.groups, names: translated.names })
    }

    /// The first match that begins at byte `from` or behind it.
    pub fn search(&self, text: &[u8], from: usize) -> Result<Option<Spans>, GaveUp> {
        if from > text.len() {
            return Ok(None);
        }
        let found = self.engine.captures_input(RegexInput::new(text).from_pos(from));
        let Some(captures) = found.map_err(gave_up)? else { return Ok(None) };
        let span = |group| captures.get(group).map(|found| (found.start(), found.end()));
        Ok(Some((0..=self.groups).map(span).collect()))
    }

    /// True when it matches anywhere from byte `from` on.
    pub fn is_match(&self, text: &[u8], from: usize) -> Result<bool, GaveUp> {
        let input = RegexInput::new(text).from_pos(from);
        if from > text.len() {
            Ok(false)
        } else {
            self.engine.is_match_input(input).map_err(gave_up)
        }
    }

    /// How many groups capture.
    pub fn groups(&self) -> usize {
        self.groups
    }

    /// The named groups with their numbers, in order. A name may stand more than once.
    pub fn names(&self) -> &[(String, usize)] {
        &self.names
    }
}

fn refused(error: fancy_regex::Error) -> Syntax {
    match error {
        fancy_regex::Error::CompileError(error) => match *error {
            CompileError::PatternTooComplex | CompileError::InnerError(_) => {
                "too big pattern, or an unknown property".into()
            }
            error => error.to_string().into(),
        },
        error => error.to_string().into(),
    }
}

fn gave_up(error: fancy_regex::Error) -> GaveUp {
    debug_assert!(
        matches!(
            error,
            fancy_regex::Error::RuntimeError(
                RuntimeError::BacktrackLimitExceeded | RuntimeError::StackOverflow
            )
        ),
        "{error}"
    );
    GaveUp
}

/// `Regexp.escape`: matches `text` itself.
pub fn escape(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + 8);
    for byte in text {
        let letter = match byte {
            b'\n' => b'n',
            b'\t' => b't',
            b'\r' => b'r',
            b'\x0c' => b'f',
            b'\x0b' => b'v',
            b' ' | b'#' | b'$' | b'(' | b')' | b'*' | b'+' | b'-' | b'.' | b'?' | b'[' | b'\\'
            | b']' | b'^' | b'{' | b'|' | b'}' => *byte,
            _ => {
                out.push(*byte);
                continue;
            }
        };
        out.extend([b'\\', letter]);
    }
    out
}
