//! What String does with patterns, where no block is called.

use super::matchdata;
use super::regexp::{compiled, find, gave_up};
use crate::{Call, Exception, Interp, Kind, Value};
use text::regexp::{Regexp, Spans};
use text::replacement::{self, Part};

/// Bytes that a text may grow to in Rust, where mruby's own limit does not hold.
const MOST: usize = 128 << 20;

/// The position of the character behind `at`.
pub(super) fn step(text: &[u8], at: usize) -> usize {
    let trails = |byte: &&u8| (0x80..0xc0).contains(*byte);
    let rest = text.get(at + 1..).unwrap_or_default();
    let leads = text.get(at).is_some_and(|byte| *byte >= 0xc0);
    at + 1 + if leads { rest.iter().take(3).take_while(trails).count() } else { 0 }
}

/// Every match, one behind the other; what `each` does with a match comes before the next search.
fn matches(
    pattern: &Regexp,
    text: &[u8],
    mut each: impl FnMut(&Spans) -> Result<bool, Exception>,
) -> Result<(), Exception> {
    let mut at = 0;
    while let Some(spans) = pattern.search(text, at).map_err(gave_up)? {
        let (from, to) = spans[0].unwrap_or((at, at));
        if !each(&spans)? {
            break;
        }
        at = if from == to { step(text, to) } else { to };
    }
    Ok(())
}

/// `__sub(text, replacement, all)`: the new text, or nil if nothing matched. `$~` is the last match.
pub(super) fn substitute<'a>(call: &Call<'a>) -> Result<Value<'a>, Exception> {
    let interp = call.interp();
    let (subject, by, all) = (super::string(call.arg(0))?, call.arg(1), call.arg(2).truthy());
    let pattern = compiled(call.this())?;
    let text = subject.bytes()?;
    let template = if by.kind() == Kind::Hash { Vec::new() } else { super::string(by)?.bytes()? };
    let parts = replacement::parse(&template);
    let (mut out, mut copied, mut last) = (Vec::with_capacity(text.len()), 0, None);
    matches(pattern, &text, |spans| {
        let (from, to) = spans[0].unwrap_or((0, 0));
        out.extend_from_slice(&text[copied..from]);
        if by.kind() == Kind::Hash {
            // Each round's values are let go.
            let looked_up = interp.scope(|| look_up(interp, by, &text[from..to]))?;
            out.extend_from_slice(&looked_up);
        } else {
            put(&mut out, &parts, &text, spans, pattern)?;
        }
        (copied, last) = (to, Some(from));
        if out.len() > MOST {
            return Err(Exception::new("NoMemoryError", "the new text would be too long"));
        }
        Ok(all)
    })?;
    let Some(last) = last else { return matchdata::set_last(interp, None) };
    out.extend_from_slice(&text[copied..]);
    find(call.this(), subject, last)?;
    interp.str(out)
}

fn look_up(interp: &Interp, hash: Value, key: &[u8]) -> Result<Vec<u8>, Exception> {
    // By `[]`, so that a default, too, is asked for.
    Ok(hash.call("[]", &[interp.str(key)?])?.to_s()?.into_bytes())
}

fn put(
    out: &mut Vec<u8>,
    parts: &[Part],
    text: &[u8],
    spans: &Spans,
    pattern: &Regexp,
) -> Result<(), Exception> {
    replacement::expand(out, parts, text, spans, pattern.names()).map_err(|name| {
        let name = String::from_utf8_lossy(name);
        Exception::new("IndexError", format!("undefined group name reference: {name}"))
    })
}

/// `__scan(text)`: matches, or lists of their groups where there are groups.
pub(super) fn scan<'a>(call: &Call<'a>) -> Result<Value<'a>, Exception> {
    let interp = call.interp();
    let subject = super::string(call.arg(0))?;
    let (pattern, text) = (compiled(call.this())?, subject.bytes()?);
    let (list, mut last) = (interp.array(&[])?, None);
    matches(pattern, &text, |spans| {
        last = spans[0].map(|(from, _)| from);
        interp.scope(|| list.push(found(interp, &text, spans)?)).map(|()| true)
    })?;
    match last {
        Some(at) => find(call.this(), subject, at)?,
        None => matchdata::set_last(interp, None)?,
    };
    Ok(list)
}

fn found<'a>(interp: &'a Interp, text: &[u8], spans: &Spans) -> Result<Value<'a>, Exception> {
    let value = |span: &Option<(usize, usize)>| match span {
        Some((from, to)) => interp.str(&text[*from..*to]),
        None => Ok(interp.nil()),
    };
    if spans.len() == 1 {
        return value(&spans[0]);
    }
    let groups: Vec<Value> = spans[1..].iter().map(value).collect::<Result<_, _>>()?;
    interp.array(&groups)
}

/// `__split(text, limit)`, as `String#split` has it.
pub(super) fn split<'a>(call: &Call<'a>) -> Result<Value<'a>, Exception> {
    let interp = call.interp();
    let text = super::string(call.arg(0))?.bytes()?;
    let limit = if call.arg(1).is_nil() { 0 } else { call.arg(1).int()? };
    let mut parts: Vec<&[u8]> = Vec::new();
    let (mut begin, mut pieces) = (0, 1);
    matches(compiled(call.this())?, &text, |spans| {
        let (from, to) = spans[0].unwrap_or((0, 0));
        if limit > 0 && pieces >= limit || from == text.len() && from == to {
            return Ok(false);
        }
        // Nothing matched between two characters: it cuts there, but not at the start.
        if from == to && from == begin && from == 0 {
            return Ok(true);
        }
        parts.push(&text[begin..from]);
        parts.extend(spans[1..].iter().flatten().map(|(from, to)| &text[*from..*to]));
        (begin, pieces) = (to, pieces + 1);
        Ok(true)
    })?;
    if !text.is_empty() {
        parts.push(&text[begin..]);
    }
    if limit == 0 {
        let kept = parts.iter().rposition(|part| !part.is_empty()).map_or(0, |last| last + 1);
        parts.truncate(kept);
    }
    let list = interp.array(&[])?;
    for part in parts {
        interp.scope(|| list.push(interp.str(part)?))?;
    }
    Ok(list)
}
