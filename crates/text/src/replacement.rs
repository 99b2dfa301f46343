//! The replacement strings of `String#sub` and `gsub`: `\1`, `\k<name>`, `\0`, `\&`, `` \` ``,
//! `\'`, `\\`.

/// What stands in place of a match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part<'r> {
    /// These bytes.
    Text(&'r [u8]),
    /// What a group matched; 0 is the match itself.
    Group(usize),
    /// What a group of this name matched.
    Name(&'r [u8]),
    /// What stands before the match.
    Before,
    /// What stands behind the match.
    After,
}

/// Takes a replacement apart. A backslash before anything else stands for itself.
pub fn parse(replacement: &[u8]) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let mut rest = replacement;
    while let Some(at) = rest.iter().position(|byte| *byte == b'\\') {
        let (part, used) = match &rest[at + 1..] {
            [digit @ b'0'..=b'9', ..] => (Part::Group(usize::from(digit - b'0')), 2),
            [b'&', ..] => (Part::Group(0), 2),
            [b'`', ..] => (Part::Before, 2),
            [b'\'', ..] => (Part::After, 2),
            [b'\\', ..] => (Part::Text(b"\\"), 2),
            [b'k', b'<', name @ ..] => match name.iter().position(|byte| *byte == b'>') {
                Some(end) => (Part::Name(&name[..end]), end + 4),
                None => (Part::Text(b"\\"), 1),
            },
            _ => (Part::Text(b"\\"), 1),
        };
        parts.extend([Part::Text(&rest[..at]), part]);
        rest = &rest[at + used..];
    }
    parts.push(Part::Text(rest));
    parts.retain(|part| *part != Part::Text(b""));
    parts
}

/// Writes what `parts` stand for. `names` finds the groups of a name, the last one first; the
/// error is a name that nobody knows.
pub fn expand<'r>(
    out: &mut Vec<u8>,
    parts: &[Part<'r>],
    text: &[u8],
    spans: &[Option<(usize, usize)>],
    names: &[(String, usize)],
) -> Result<(), &'r [u8]> {
    let (from, to) = spans.first().copied().flatten().unwrap_or((0, 0));
    let group = |number: usize| {
        let span = spans.get(number).copied().flatten();
        span.map_or(&b""[..], |(from, to)| &text[from..to])
    };
    for part in parts {
        out.extend_from_slice(match part {
            Part::Text(text) => text,
            Part::Group(number) => group(*number),
            Part::Before => &text[..from],
            Part::After => &text[to..],
            Part::Name(name) => group(number(name, spans, names).ok_or(*name)?),
        });
    }
    Ok(())
}

/// The number of the group that is called so, or counted so: the last of them that took part.
pub fn number(
    name: &[u8],
    spans: &[Option<(usize, usize)>],
    names: &[(String, usize)],
) -> Option<usize> {
    let numbers = || names.iter().rev().filter(|(its, _)| its.as_bytes() == name).map(|its| its.1);
    let took_part = |number: &usize| spans.get(*number).copied().flatten().is_some();
    let counted = || std::str::from_utf8(name).ok()?.parse().ok().filter(|n| *n < spans.len());
    numbers().find(took_part).or_else(|| numbers().next()).or_else(counted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_known() {
        let parts = parse(br"a\1\0\&\`\'\\\k<n>\k<\z\");
        let text = |text| Part::Text(text);
        let want = [
            text(&b"a"[..]),
            Part::Group(1),
            Part::Group(0),
            Part::Group(0),
            Part::Before,
            Part::After,
            text(b"\\"),
            Part::Name(b"n"),
            text(b"\\"),
            text(b"k<"),
            text(b"\\"),
            text(b"z"),
            text(b"\\"),
        ];
        assert_eq!(parts, want);
    }

    #[test]
    fn it_is_written_out() {
        let names = [("n".to_owned(), 1), ("n".to_owned(), 2)];
        let spans = [Some((1, 3)), Some((1, 2)), None];
        let write = |replacement: &'static [u8]| {
            let mut out = Vec::new();
            expand(&mut out, &parse(replacement), b"abcd", &spans, &names).map(|()| out)
        };
        assert_eq!(write(br"<\0|\1|\2|\9|\k<n>|\`|\'>").unwrap(), b"<bc|b|||b|a|d>");
        assert_eq!(write(br"\k<1>").unwrap(), b"b");
        assert_eq!(write(br"\k<no>").unwrap_err(), b"no");
    }
}
