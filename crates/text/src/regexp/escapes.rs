//! What follows a backslash, in a class and outside.

use super::Syntax;
use super::translate::Source;

/// What an escape stands for.
pub(super) enum Piece {
    /// One character.
    Char(char),
    /// A byte that is no character; only with the option `n`.
    Byte(u8),
    /// A set of characters, as a class of the engine.
    Class(String),
}

/// Writes a character so that it means itself to the engine, wherever it stands.
pub(super) fn literal(out: &mut String, char: char) {
    if char.is_ascii_alphanumeric() || char == '_' || !char.is_ascii() {
        out.push(char);
    } else {
        out.push_str(&format!("\\x{{{:x}}}", u32::from(char)));
    }
}

/// Reads what stands behind a backslash, but for what only means something outside of a class.
pub(super) fn read(source: &mut Source) -> Result<Piece, Syntax> {
    let char = source.next().ok_or("too short escape sequence")?;
    let piece = match char {
        't' => '\t',
        'n' => '\n',
        'r' => '\r',
        'f' => '\x0c',
        'v' => '\x0b',
        'a' => '\x07',
        'e' => '\x1b',
        '0'..='7' => {
            let more = source.run(2, |c| c.is_digit(8));
            return byte(source, u8::from_str_radix(&format!("{char}{more}"), 8));
        }
        'x' => {
            let digits = source.run(2, |c| c.is_ascii_hexdigit());
            return byte(source, u8::from_str_radix(digits, 16));
        }
        'u' => return unicode(source),
        'c' => control(source.next())?,
        'C' if source.take("-") => control(source.next())?,
        'M' => return Err("meta escapes are not supported".into()),
        'd' | 'D' | 'w' | 'W' | 's' | 'S' | 'h' | 'H' => {
            return Ok(Piece::Class(shorthand(char, source.options.unicode)));
        }
        'p' | 'P' => return property(source, char == 'P').map(Piece::Class),
        itself => itself,
    };
    Ok(Piece::Char(piece))
}

fn control(char: Option<char>) -> Result<char, Syntax> {
    let char = char.filter(char::is_ascii).ok_or("too short control sequence")?;
    Ok(char::from(char as u8 & 0x1f))
}

/// A byte above 127 begins a character in UTF-8, whose other bytes follow as escapes.
fn byte<E>(source: &mut Source, first: Result<u8, E>) -> Result<Piece, Syntax> {
    let first = first.map_err(|_| "invalid hex escape")?;
    if first < 0x80 {
        return Ok(Piece::Char(char::from(first)));
    }
    if source.options.binary {
        return Ok(Piece::Byte(first));
    }
    let mut bytes = vec![first];
    while bytes.len() < 4 && std::str::from_utf8(&bytes).is_err() && source.take("\\x") {
        let digits = source.run(2, |c| c.is_ascii_hexdigit());
        bytes.push(u8::from_str_radix(digits, 16).map_err(|_| "invalid hex escape")?);
    }
    let char = std::str::from_utf8(&bytes).ok().and_then(|text| text.chars().next());
    Ok(Piece::Char(char.ok_or("invalid multibyte escape")?))
}

fn unicode(source: &mut Source) -> Result<Piece, Syntax> {
    let digits = if source.take("{") {
        source.until('}').ok_or("unterminated Unicode escape")?.trim()
    } else {
        source.run(4, |c| c.is_ascii_hexdigit())
    };
    let value = u32::from_str_radix(digits, 16).map_err(|_| "invalid Unicode escape")?;
    Ok(Piece::Char(char::from_u32(value).ok_or("invalid Unicode range")?))
}

fn shorthand(char: char, unicode: bool) -> String {
    let set = match (char.to_ascii_lowercase(), unicode) {
        ('d', false) => "0-9",
        ('w', false) => "0-9A-Z_a-z",
        ('s', false) => r"\x{9}-\x{d}\x{20}",
        ('d', true) => r"\p{Nd}",
        ('w', true) => r"\p{Alphabetic}\p{M}\p{Nd}\p{Pc}",
        ('s', true) => r"\p{White_Space}",
        _ => "0-9A-Fa-f",
    };
    set_of(set, char.is_ascii_uppercase())
}

/// A class of the engine, or what it leaves out.
fn set_of(set: &str, negated: bool) -> String {
    format!("[{}{set}]", if negated { "^" } else { "" })
}

/// The POSIX bracket or property that Ruby calls so, in Unicode as Ruby has it.
pub(super) fn posix(name: &str, negated: bool) -> Option<String> {
    let set = match name.to_ascii_lowercase().as_str() {
        "alpha" => r"\p{Alphabetic}",
        "digit" => r"\p{Nd}",
        "alnum" => r"\p{Alphabetic}\p{Nd}",
        "upper" => r"\p{Uppercase}",
        "lower" => r"\p{Lowercase}",
        "space" => r"\p{White_Space}",
        "blank" => r"\x{9}\p{Zs}",
        "cntrl" => r"\p{Cc}",
        "punct" => r"\p{P}$+<=>^`|~",
        "graph" => r"[^\p{White_Space}\p{Cc}\p{Cn}\p{Cs}]",
        "print" => r"[^\p{Cc}\p{Cn}\p{Cs}\p{Zl}\p{Zp}]",
        "xdigit" => "0-9A-Fa-f",
        "word" => r"\p{Alphabetic}\p{M}\p{Nd}\p{Pc}",
        "ascii" => r"\x{0}-\x{7f}",
        _ => return None,
    };
    Some(set_of(set, negated))
}

/// `\p{Alpha}`, `\p{^Greek}`, `\P{L}`.
fn property(source: &mut Source, negated: bool) -> Result<String, Syntax> {
    let unclosed = "invalid character property name {p}";
    let name =
        if source.take("{") { source.until('}').ok_or(unclosed)? } else { source.run(1, |_| true) };
    let (name, negated) = match name.strip_prefix('^') {
        Some(name) => (name, !negated),
        None => (name, negated),
    };
    if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_ -".contains(&b)) {
        return Err(format!("invalid character property name {{{name}}}").into());
    }
    let own = posix(name, negated);
    Ok(own.unwrap_or_else(|| set_of(&format!("\\p{{{name}}}"), negated)))
}
