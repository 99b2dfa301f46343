//! From Ruby's syntax of regular expressions to that of the engine (`fancy_regex`).
//!
//! What differs, after Onigmo's `doc/RE`: `m` is "dot matches newline" and `^`/`$` always know
//! lines; `\d \w \s \h` are ASCII and POSIX brackets are Unicode; plain groups do not capture
//! beside named ones; options in the middle hold to the end of their group, alternatives
//! included; blanks in a class count even under `x`. Every literal is written in a form that
//! means the same anywhere.

use super::escapes::{self, Piece};
use super::{Options, Syntax, class};

/// The most that a pattern may ask to be repeated, as Onigmo has it.
const REPEATS: u32 = 100_000;

/// What Ruby's source became.
#[derive(Debug, PartialEq, Eq)]
pub struct Translated {
    /// In the engine's syntax.
    pub pattern: String,
    /// How many groups capture.
    pub groups: usize,
    /// The named ones, in order.
    pub names: Vec<(String, usize)>,
}

/// A place in Ruby's source.
pub(super) struct Source<'s> {
    rest: &'s str,
    pub(super) options: Options,
}

impl<'s> Source<'s> {
    pub(super) fn next(&mut self) -> Option<char> {
        let char = self.peek()?;
        self.rest = &self.rest[char.len_utf8()..];
        Some(char)
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    /// Takes `text` if it comes next.
    pub(super) fn take(&mut self, text: &str) -> bool {
        let rest = self.rest.strip_prefix(text);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    /// Takes what comes before `end`, and `end`.
    pub(super) fn until(&mut self, end: char) -> Option<&'s str> {
        let (before, rest) = self.rest.split_once(end)?;
        self.rest = rest;
        Some(before)
    }

    /// Takes at most `most` characters that `fits` likes.
    pub(super) fn run(&mut self, most: usize, fits: impl Fn(char) -> bool) -> &'s str {
        let length = self.rest.chars().take(most).take_while(|c| fits(*c)).map(char::len_utf8);
        let (run, rest) = self.rest.split_at(length.sum());
        self.rest = rest;
        run
    }

    pub(super) fn rest(&self) -> &'s str {
        self.rest
    }
}

struct Translator<'s> {
    source: Source<'s>,
    out: String,
    /// Options outside of each open group, and how many brackets more its end closes.
    open: Vec<(Options, usize)>,
    /// Brackets that the pattern's end closes.
    closes: usize,
    has_names: bool,
    /// Capturing groups in the whole pattern.
    captures: usize,
    groups: usize,
    names: Vec<(String, usize)>,
}

/// Translates `source`; the error is what Ruby would say, without the source.
pub fn translate(source: &str, options: Options) -> Result<Translated, Syntax> {
    let (captures, has_names) = count(source);
    let mut translator = Translator {
        source: Source { rest: source, options },
        out: String::with_capacity(source.len() + 16),
        open: Vec::new(),
        closes: 0,
        has_names,
        captures,
        groups: 0,
        names: Vec::new(),
    };
    while let Some(char) = translator.source.next() {
        translator.step(char)?;
    }
    if !translator.open.is_empty() {
        return Err("end pattern with unmatched parenthesis".into());
    }
    translator.out.extend(std::iter::repeat_n(')', translator.closes));
    Ok(Translated { pattern: translator.out, groups: translator.groups, names: translator.names })
}

/// How many plain groups there are, and whether there are named ones.
fn count(source: &str) -> (usize, bool) {
    let (mut plain, mut named, mut in_class) = (0, false, 0_usize);
    let mut chars = source.char_indices();
    while let Some((at, char)) = chars.next() {
        let rest = &source[at + char.len_utf8()..];
        match char {
            '\\' => drop(chars.next()),
            '[' => in_class += 1,
            ']' => in_class = in_class.saturating_sub(1),
            '(' if in_class > 0 => {}
            '(' if !rest.starts_with('?') => plain += 1,
            '(' => {
                let name =
                    rest.strip_prefix("?<").is_some_and(|name| !name.starts_with(['=', '!']));
                named |= name || rest.starts_with("?'");
            }
            _ => {}
        }
    }
    (plain, named)
}

impl Translator<'_> {
    fn step(&mut self, char: char) -> Result<(), Syntax> {
        match char {
            '\\' => self.escape()?,
            '[' => class::translate(&mut self.source, &mut self.out, 0)?,
            '(' => self.group()?,
            ')' => self.close()?,
            '{' => self.interval()?,
            '#' if self.source.options.extended => drop(self.source.run(usize::MAX, |c| c != '\n')),
            c if self.source.options.extended && c.is_ascii_whitespace() => {}
            '.' | '^' | '$' | '|' | '*' | '+' | '?' => self.out.push(char),
            _ => escapes::literal(&mut self.out, char),
        }
        Ok(())
    }

    fn escape(&mut self) -> Result<(), Syntax> {
        match self.source.peek() {
            Some('1'..='9') => return self.back_reference(),
            Some(name @ ('k' | 'g')) => {
                self.source.next();
                let close = match self.source.next() {
                    Some('<') => '>',
                    Some('\'') => '\'',
                    _ => return Err(format!("invalid backref number/name: \\{name}").into()),
                };
                let group = self.source.until(close).ok_or("invalid group name <>")?;
                self.out.push_str(&format!("\\{name}<{group}>"));
            }
            Some('Z') => {
                self.source.next();
                self.out.push_str(r"(?=\n?\z)");
            }
            // What means the same to the engine.
            Some(same @ ('A' | 'z' | 'G' | 'K' | 'b' | 'B' | 'R' | 'X')) => {
                self.source.next();
                self.out.extend(['\\', same]);
            }
            _ => match escapes::read(&mut self.source)? {
                Piece::Char(char) => escapes::literal(&mut self.out, char),
                Piece::Byte(byte) => self.out.push_str(&format!("\\x{byte:02x}")),
                Piece::Class(class) => self.out.push_str(&class),
            },
        }
        Ok(())
    }

    /// `\10` is a group if there are ten of them, else a character in octal.
    fn back_reference(&mut self) -> Result<(), Syntax> {
        let digits = self.source.rest();
        let length = digits.bytes().take_while(u8::is_ascii_digit).count().min(3);
        let number: usize = digits[..length].parse().unwrap_or(usize::MAX);
        if number > 9 && number > self.captures {
            let octal = self.source.run(3, |c| c.is_digit(8));
            let value = u32::from_str_radix(octal, 8).ok().and_then(char::from_u32);
            escapes::literal(&mut self.out, value.ok_or("invalid backref number/name")?);
            return Ok(());
        }
        if self.has_names {
            return Err("numbered backref/call is not allowed. (use name)".into());
        }
        if number > self.captures {
            return Err("invalid backref number/name".into());
        }
        self.source.run(length, |_| true);
        self.out.push_str(&format!("\\k<{number}>"));
        Ok(())
    }

    fn group(&mut self) -> Result<(), Syntax> {
        let outside = self.source.options;
        if !self.source.take("?") {
            self.out.push_str(if self.has_names { "(?:" } else { "(" });
            self.groups += usize::from(!self.has_names);
        } else if self.source.take("#") {
            self.source.until(')').ok_or("end pattern in group")?;
            return Ok(());
        } else if let Some(kind) =
            [":", "=", "!", ">", "<=", "<!"].into_iter().find(|kind| self.source.take(kind))
        {
            self.out.push_str("(?");
            self.out.push_str(kind);
        } else if self.source.take("<") {
            self.named('>')?;
        } else if self.source.take("'") {
            self.named('\'')?;
        } else if self.source.take("(") {
            let condition = self.source.until(')').ok_or("invalid conditional pattern")?;
            self.out.push_str(&format!("(?({condition})"));
        } else if !self.options()? {
            return Ok(());
        }
        self.open.push((outside, std::mem::take(&mut self.closes)));
        Ok(())
    }

    fn named(&mut self, end: char) -> Result<(), Syntax> {
        let name = self.source.until(end).ok_or("invalid group name <>")?;
        let starts_well = name.starts_with(|c: char| c.is_alphabetic() || c == '_');
        if !starts_well || !name.chars().all(|c| c.is_alphanumeric() || c == '_') {
            return Err(format!("invalid group name <{name}>").into());
        }
        self.groups += 1;
        self.names.push((name.to_owned(), self.groups));
        self.out.push_str(&format!("(?<{name}>"));
        Ok(())
    }

    /// `(?mi-x)` and `(?mi-x:`; true if a group was opened.
    fn options(&mut self) -> Result<bool, Syntax> {
        let mut on = true;
        let opens = loop {
            let options = &mut self.source.options;
            match self.source.rest.chars().next() {
                Some('-') => on = false,
                Some('i') => options.ignore_case = on,
                Some('m') => options.multiline = on,
                Some('x') => options.extended = on,
                Some('u') if on => options.unicode = true,
                Some('a' | 'd') if on => options.unicode = false,
                Some(':') => break true,
                Some(')') => break false,
                _ => return Err("undefined group option".into()),
            }
            self.source.next();
        };
        self.source.next();
        let Options { ignore_case, multiline, .. } = self.source.options;
        self.out.push_str(match (ignore_case, multiline) {
            (true, true) => "(?is:",
            (true, false) => "(?i-s:",
            (false, true) => "(?s-i:",
            (false, false) => "(?-is:",
        });
        self.closes += usize::from(!opens);
        Ok(opens)
    }

    fn close(&mut self) -> Result<(), Syntax> {
        let (outside, closes) = self.open.pop().ok_or("unmatched close parenthesis")?;
        self.out.extend(std::iter::repeat_n(')', self.closes + 1));
        (self.source.options, self.closes) = (outside, closes);
        Ok(())
    }

    /// `{1}`, `{1,}`, `{,2}` and `{1,2}` repeat; any other brace is itself.
    fn interval(&mut self) -> Result<(), Syntax> {
        let inside = self.source.rest.split_once('}').map(|(inside, _)| inside);
        let repeats = |inside: &&str| {
            let (least, most) = inside.split_once(',').unwrap_or((inside, "0"));
            let number = |digits: &str| digits.bytes().all(|digit| digit.is_ascii_digit());
            *inside != "," && !inside.is_empty() && number(least) && number(most)
        };
        let Some(inside) = inside.filter(repeats) else {
            escapes::literal(&mut self.out, '{');
            return Ok(());
        };
        self.source.until('}');
        let number =
            |digits: &str, none: u32| if digits.is_empty() { Ok(none) } else { digits.parse() };
        let (least, most) = inside.split_once(',').unwrap_or((inside, inside));
        let too_big = "too big number is specified";
        let (from, to) = (number(least, 0), number(most, REPEATS));
        let (from, to) = (from.map_err(|_| too_big)?, to.map_err(|_| too_big)?);
        if to > REPEATS || from > to {
            return Err(too_big.into());
        }
        self.out.push_str(&match inside.strip_suffix(',') {
            Some(_) => format!("{{{from},}}"),
            None => format!("{{{from},{to}}}"),
        });
        Ok(())
    }
}
