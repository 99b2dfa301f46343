//! Character classes: `[a-z&&[^aeiou][:digit:]\h]`.

use super::Syntax;
use super::escapes::{self, Piece};
use super::translate::Source;

/// How deep classes may lie in each other.
const DEPTH: usize = 50;

/// Translates what follows an opening bracket, to its closing one.
pub(super) fn translate(source: &mut Source, out: &mut String, depth: usize) -> Result<(), Syntax> {
    if depth > DEPTH {
        return Err("too deep nest level char-class".into());
    }
    out.push('[');
    if source.take("^") {
        out.push('^');
    }
    let mut first = true;
    loop {
        let char = source.next().ok_or("premature end of char-class")?;
        match char {
            ']' if !first => break,
            ']' if !source.rest().contains(']') => return Err("empty char-class".into()),
            '[' => bracket(source, out, depth)?,
            '&' if source.take("&") => out.push_str("&&"),
            _ => {
                let start = piece(source, char)?;
                range(source, out, start)?;
            }
        }
        first = false;
    }
    out.push(']');
    Ok(())
}

/// A class in the class, or a POSIX bracket.
fn bracket(source: &mut Source, out: &mut String, depth: usize) -> Result<(), Syntax> {
    let posix = source.rest().strip_prefix(':').and_then(|rest| rest.split_once(":]"));
    if let Some((name, _)) = posix {
        let (bare, negated) = match name.strip_prefix('^') {
            Some(bare) => (bare, true),
            None => (name, false),
        };
        if let Some(class) = escapes::posix(bare, negated) {
            source.take(&format!(":{name}:]"));
            out.push_str(&class);
            return Ok(());
        }
        if !bare.is_empty() && bare.bytes().all(|byte| byte.is_ascii_alphabetic()) {
            return Err("invalid POSIX bracket type".into());
        }
    }
    translate(source, out, depth + 1)
}

fn piece(source: &mut Source, char: char) -> Result<Piece, Syntax> {
    if char != '\\' {
        return Ok(Piece::Char(char));
    }
    match source.peek() {
        Some('b') => {
            source.next();
            Ok(Piece::Char('\x08'))
        }
        Some('R' | 'X') => Err("not possible in a char-class".into()),
        _ => escapes::read(source),
    }
}

fn put(out: &mut String, piece: &Piece) {
    match piece {
        Piece::Char(char) => escapes::literal(out, *char),
        Piece::Byte(byte) => out.push_str(&format!("\\x{byte:02x}")),
        Piece::Class(class) => out.push_str(class),
    }
}

/// One member, or a range from it to another.
fn range(source: &mut Source, out: &mut String, start: Piece) -> Result<(), Syntax> {
    put(out, &start);
    let ahead = source.rest();
    let is_range = ahead.starts_with('-')
        && !matches!(ahead[1..].chars().next(), None | Some(']' | '['))
        && !ahead.starts_with("-&&")
        && !matches!(start, Piece::Class(_));
    if !is_range {
        return Ok(());
    }
    source.next();
    let char = source.next().ok_or("premature end of char-class")?;
    let end = piece(source, char)?;
    if let Piece::Class(_) = end {
        escapes::literal(out, '-');
    } else {
        let value = |piece: &Piece| match piece {
            Piece::Char(char) => u32::from(*char),
            Piece::Byte(byte) => u32::from(*byte),
            Piece::Class(_) => 0,
        };
        if value(&start) > value(&end) {
            return Err("empty range in char class".into());
        }
        out.push('-');
    }
    put(out, &end);
    Ok(())
}
