//! MatchData, and the globals that say what matched last.

use crate::{Call, Class, Exception, Interp, Kind, Value};
use std::rc::Rc;
use text::regexp::{Regexp, Spans};
use text::replacement;

/// What a MatchData is in Rust; the text is the object's `@string`.
struct Matched {
    compiled: Rc<Regexp>,
    spans: Spans,
}

pub(super) fn install(interp: &Interp) -> Result<(), Exception> {
    interp.define_class("MatchData", define)?;
    Ok(())
}

fn define(class: &Class) -> Result<(), Exception> {
    class.holds_data()?;
    class.method("string", 0..=0, |call| call.this().ivar("@string"))?;
    class.method("regexp", 0..=0, |call| call.this().ivar("@regexp"))?;
    class.method("__group", 1..=1, |call| {
        let number = group(call, call.arg(0))?;
        number.map_or(Ok(call.interp().nil()), |number| text(call.this(), number))
    })?;
    class.method("__next", 0..=0, next)?;
    class.method("__remember", 0..=0, |call| set_last(call.interp(), Some(call.this())))?;
    class.method("begin", 1..=1, |call| edge(call, |span| span.0))?;
    class.method("end", 1..=1, |call| edge(call, |span| span.1))?;
    class.method("to_a", 0..=0, |call| list(call, 0))?;
    class.method("captures", 0..=0, |call| list(call, 1))?;
    class.method("names", 0..=0, |call| names(call.interp(), &of(call.this())?.compiled))?;
    class.method("size", 0..=0, |call| {
        call.interp().int(i64::try_from(of(call.this())?.spans.len()).unwrap_or(0))
    })?;
    class.method("pre_match", 0..=0, |call| {
        let (from, _) = whole(of(call.this())?);
        slice(call.this(), 0, from)
    })?;
    class.method("post_match", 0..=0, |call| {
        let (_, to) = whole(of(call.this())?);
        slice(call.this(), to, usize::MAX)
    })
}

/// A MatchData of what `regexp` has found in `text`.
pub(super) fn make<'a>(
    regexp: Value<'a>,
    text: Value<'a>,
    compiled: Rc<Regexp>,
    spans: Spans,
) -> Result<Value<'a>, Exception> {
    let interp = regexp.interp();
    // A frozen copy, which shares the bytes: what is matched stays what it was.
    let string = text.call("dup", &[])?.freeze()?;
    let made = interp.class("MatchData")?.instance(Matched { compiled, spans })?;
    made.set_ivar("@string", string)?;
    made.set_ivar("@regexp", regexp)?;
    Ok(made)
}

/// Sets `$~`, `$1` and so on, which are plain globals in mruby; the match, or nil.
pub(super) fn set_last<'a>(
    interp: &'a Interp,
    found: Option<Value<'a>>,
) -> Result<Value<'a>, Exception> {
    let groups = |value: Value| value.data::<Matched>().map_or(0, |its| its.spans.len() - 1);
    let before = interp.global("$~")?;
    let value = found.unwrap_or_else(|| interp.nil());
    if found.is_none() && before.is_nil() {
        return Ok(value);
    }
    interp.set_global("$~", value)?;
    let most = groups(before).max(groups(value)).min(9);
    let mut last = interp.nil();
    for number in 1..=most {
        let group = if number <= groups(value) { text(value, number)? } else { interp.nil() };
        last = if group.is_nil() { last } else { group };
        interp.set_global(&format!("${number}"), group)?;
    }
    interp.set_global("$+", last)?;
    let parts = match found.map(of).transpose()?.map(whole) {
        Some((from, to)) => [slice(value, 0, from)?, slice(value, to, usize::MAX)?],
        None => [value, value],
    };
    interp.set_global("$`", parts[0])?;
    interp.set_global("$'", parts[1])?;
    let whole = if found.is_some() { text(value, 0)? } else { interp.nil() };
    interp.set_global("$&", whole)?;
    Ok(value)
}

/// The names of a pattern's groups, each once.
pub(super) fn names<'a>(interp: &'a Interp, compiled: &Regexp) -> Result<Value<'a>, Exception> {
    let list = interp.array(&[])?;
    let all = compiled.names();
    for (at, (name, _)) in all.iter().enumerate() {
        if all[..at].iter().all(|(before, _)| before != name) {
            list.push(interp.str(name)?)?;
        }
    }
    Ok(list)
}

fn of(this: Value<'_>) -> Result<&Matched, Exception> {
    this.data().ok_or_else(|| Exception::wrong_type(this, "a MatchData"))
}

fn whole(matched: &Matched) -> (usize, usize) {
    matched.spans.first().copied().flatten().unwrap_or((0, 0))
}

/// A part of the text. A long one shares its bytes: a loop over matches would copy the text with
/// each of them.
fn slice(this: Value, from: usize, to: usize) -> Result<Value, Exception> {
    const SHORT: usize = 64;
    let string = this.ivar("@string")?;
    let length = string.with_bytes(<[u8]>::len).unwrap_or(0);
    let (from, to) = (from.min(length), to.min(length));
    if to - from > SHORT {
        let number = |value| this.interp().int(i64::try_from(value).unwrap_or(i64::MAX));
        return string.call("byteslice", &[number(from)?, number(to - from)?]);
    }
    let bytes = string.with_bytes(|all| all[from..to].to_vec());
    this.interp().str(bytes.unwrap_or_default())
}

fn text(this: Value, number: usize) -> Result<Value, Exception> {
    match of(this)?.spans.get(number).copied().flatten() {
        Some((from, to)) => slice(this, from, to),
        None => Ok(this.interp().nil()),
    }
}

/// The group that an Integer, a name or a Symbol means; IndexError for a name that is not there.
fn group(call: &Call, name: Value) -> Result<Option<usize>, Exception> {
    let matched = of(call.this())?;
    match name.kind() {
        Kind::Int => {
            let (at, count) = (name.int()?, i64::try_from(matched.spans.len()).unwrap_or(i64::MAX));
            Ok(usize::try_from(if at < 0 { at + count } else { at }).ok())
        }
        _ => {
            let name = super::string(name)?.text()?;
            let named = matched.compiled.names();
            let known = named.iter().any(|(its, _)| *its == name);
            let found = replacement::number(name.as_bytes(), &matched.spans, named);
            found.filter(|_| known).map(Some).ok_or_else(|| {
                Exception::new("IndexError", format!("undefined group name reference: {name}"))
            })
        }
    }
}

fn edge<'a>(call: &Call<'a>, pick: fn((usize, usize)) -> usize) -> Result<Value<'a>, Exception> {
    let spans = &of(call.this())?.spans;
    let number = group(call, call.arg(0))?.filter(|number| *number < spans.len());
    let number = number.ok_or_else(|| {
        let what = call.arg(0).to_s().unwrap_or_default();
        Exception::new("IndexError", format!("index {what} out of matches"))
    })?;
    match spans[number] {
        Some(span) => call.interp().int(i64::try_from(pick(span)).unwrap_or(i64::MAX)),
        None => Ok(call.interp().nil()),
    }
}

fn list<'a>(call: &Call<'a>, from: usize) -> Result<Value<'a>, Exception> {
    let list = call.interp().array(&[])?;
    for number in from..of(call.this())?.spans.len() {
        list.push(text(call.this(), number)?)?;
    }
    Ok(list)
}

/// Where to look for the next match: behind this one, and a character further if it is empty.
fn next<'a>(call: &Call<'a>) -> Result<Value<'a>, Exception> {
    let (from, to) = whole(of(call.this())?);
    let step = |text: &[u8]| if from == to { super::strings::step(text, to) } else { to };
    let next = call.this().ivar("@string")?.with_bytes(step).unwrap_or(to);
    call.interp().int(i64::try_from(next).unwrap_or(i64::MAX))
}
