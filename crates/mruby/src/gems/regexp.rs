//! Regexp, MatchData, and what String does with them.

use super::{matchdata, run_prelude, strings};
use crate::{Call, Class, Exception, Gem, Interp, Kind, Value};
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use text::regexp::{self, GaveUp, Options};

/// The class Regexp, with MatchData and String's methods for patterns.
pub struct Regexp;

/// What a Regexp is in Rust.
pub(super) struct Pattern {
    pub(super) source: String,
    pub(super) options: Options,
    pub(super) compiled: Rc<regexp::Regexp>,
}

/// Patterns kept compiled. A literal is compiled whenever mruby comes past it.
const KEPT: usize = 512;

thread_local! {
    static COMPILED: RefCell<HashMap<(String, Options), Rc<regexp::Regexp>>> = RefCell::default();
}

fn compile(source: &str, options: Options) -> Result<Rc<regexp::Regexp>, Exception> {
    let key = (source.to_owned(), options);
    if let Some(found) = COMPILED.with_borrow(|all| all.get(&key).cloned()) {
        return Ok(found);
    }
    let refused = |why| Exception::new("RegexpError", format!("{why}: /{source}/"));
    let made = Rc::new(regexp::Regexp::new(source, options).map_err(refused)?);
    COMPILED.with_borrow_mut(|all| {
        if all.len() >= KEPT {
            all.clear();
        }
        all.insert(key, Rc::clone(&made));
    });
    Ok(made)
}

impl Pattern {
    fn of<'a>(value: Value<'a>) -> Result<&'a Pattern, Exception> {
        value.data().ok_or_else(|| Exception::wrong_type(value, "a Regexp"))
    }

    fn new(source: Vec<u8>, options: Options) -> Result<Pattern, Exception> {
        let source = String::from_utf8(source)
            .map_err(|_| Exception::new("RegexpError", "invalid multibyte character"))?;
        Ok(Pattern { compiled: compile(&source, options)?, source, options })
    }

    /// As `Regexp#to_s` has it: means the same within another pattern.
    fn embedded(&self) -> String {
        let on = self.options.letters();
        let off: String = "mix".chars().filter(|letter| !on.contains(*letter)).collect();
        let minus = if off.is_empty() { "" } else { "-" };
        format!("(?{on}{minus}{off}:{})", self.source)
    }
}

pub(super) fn gave_up(error: GaveUp) -> Exception {
    Exception::new("Regexp::TimeoutError", error.to_string())
}

impl Gem for Regexp {
    const NAME: &'static str = "regexp";

    fn install(interp: &Interp) -> Result<(), Exception> {
        interp.define_class("Regexp", define)?;
        let error = interp.class("RegexpError")?;
        interp.define_class_of("Regexp::TimeoutError", Some(&error), |_| Ok(()))?;
        matchdata::install(interp)?;
        run_prelude(interp, "regexp.rb", include_str!("regexp.rb"))
    }
}

fn define(class: &Class) -> Result<(), Exception> {
    class.holds_data()?;
    let interp = class.value().interp();
    for (name, bit) in [("IGNORECASE", 1), ("EXTENDED", 2), ("MULTILINE", 4), ("NOENCODING", 32)] {
        class.constant(name, interp.int(bit)?)?;
    }
    class.singleton_method("escape", 1..=1, escape)?;
    class.singleton_method("quote", 1..=1, escape)?;
    class.singleton_method("__union", 1..=1, union)?;
    class.method("initialize", 1..=3, initialize)?;
    class.method("source", 0..=0, |call| call.interp().str(&Pattern::of(call.this())?.source))?;
    class.method("options", 0..=0, |call| {
        call.interp().int(Pattern::of(call.this())?.options.bits())
    })?;
    class.method("casefold?", 0..=0, |call| {
        Ok(call.interp().bool(Pattern::of(call.this())?.options.ignore_case))
    })?;
    class.method("to_s", 0..=0, |call| call.interp().str(Pattern::of(call.this())?.embedded()))?;
    class.method("inspect", 0..=0, inspect)?;
    class.method("==", 1..=1, equals)?;
    class.method("eql?", 1..=1, equals)?;
    class.method("hash", 0..=0, |call| {
        let pattern = Pattern::of(call.this())?;
        call.interp()
            .str(format!("{}/{}", pattern.source, pattern.options.bits()))?
            .call("hash", &[])
    })?;
    class.method("names", 0..=0, names)?;
    class.method("named_captures", 0..=0, named_captures)?;
    class.method("match?", 1..=2, is_match)?;
    class.method("===", 1..=1, triple_equals)?;
    class.method("=~", 1..=1, tilde)?;
    class.method("__search", 2..=2, search)?;
    class.method("__rsearch", 2..=2, search_back)?;
    class.method("__sub", 3..=3, strings::substitute)?;
    class.method("__scan", 1..=1, strings::scan)?;
    class.method("__split", 2..=2, strings::split)
}

fn initialize<'a>(call: &Call<'a>) -> Result<Value<'a>, Exception> {
    let source = call.arg(0);
    let pattern = match source.data::<Pattern>() {
        Some(same) => {
            Pattern { source: same.source.clone(), compiled: same.compiled.clone(), ..*same }
        }
        None => {
            let letters = |value: Value| value.as_text().unwrap_or_default();
            let mut options = match call.arg(1).kind() {
                Kind::Int => Options::from_bits(call.arg(1).int()?),
                Kind::Str => Options::from_letters(&letters(call.arg(1))),
                _ => Options { ignore_case: call.arg(1).truthy(), ..Options::default() },
            };
            options.binary |= letters(call.arg(2)).contains('n');
            Pattern::new(super::string(source)?.bytes()?, options)?
        }
    };
    call.this().set_data(pattern)?;
    Ok(call.this())
}

fn escape<'a>(call: &Call<'a>) -> Result<Value<'a>, Exception> {
    call.interp().str(regexp::escape(&super::string(call.arg(0))?.bytes()?))
}

/// The source of a pattern that matches what any of these do.
fn union<'a>(call: &Call<'a>) -> Result<Value<'a>, Exception> {
    let mut parts = Vec::new();
    let all = call.arg(0).items();
    for part in &all {
        parts.push(match part.data::<Pattern>() {
            Some(pattern) if all.len() == 1 => pattern.source.clone().into_bytes(),
            Some(pattern) => pattern.embedded().into_bytes(),
            None => regexp::escape(&super::string(*part)?.bytes()?),
        });
    }
    call.interp().str(if parts.is_empty() { b"(?!)".to_vec() } else { parts.join(&b'|') })
}

fn inspect<'a>(call: &Call<'a>) -> Result<Value<'a>, Exception> {
    let pattern = Pattern::of(call.this())?;
    let mut out = String::from("/");
    let mut escaped = false;
    for char in pattern.source.chars() {
        match char {
            '/' if !escaped => out.push_str("\\/"),
            '\n' => out.push_str("\\n"),
            _ => out.push(char),
        }
        escaped = char == '\\' && !escaped;
    }
    let encoding = if pattern.options.binary { "n" } else { "" };
    call.interp().str(format!("{out}/{}{encoding}", pattern.options.letters()))
}

fn equals<'a>(call: &Call<'a>) -> Result<Value<'a>, Exception> {
    let this = Pattern::of(call.this())?;
    let same = call
        .arg(0)
        .data::<Pattern>()
        .is_some_and(|other| this.source == other.source && this.options == other.options);
    Ok(call.interp().bool(same))
}

fn names<'a>(call: &Call<'a>) -> Result<Value<'a>, Exception> {
    matchdata::names(call.interp(), &Pattern::of(call.this())?.compiled)
}

fn named_captures<'a>(call: &Call<'a>) -> Result<Value<'a>, Exception> {
    let interp = call.interp();
    let hash = interp.hash()?;
    for (name, number) in Pattern::of(call.this())?.compiled.names() {
        let name = interp.str(name)?;
        let found = hash.get(name)?;
        let list = if found.is_nil() { interp.array(&[])? } else { found };
        list.push(interp.int(i64::try_from(*number).unwrap_or(i64::MAX))?)?;
        hash.set(name, list)?;
    }
    Ok(hash)
}

/// A position as Ruby counts it, from the end below zero; `None` beyond the text.
pub(super) fn position(at: Value, length: usize) -> Result<Option<usize>, Exception> {
    let at = if at.is_nil() { 0 } else { at.int()? };
    let length_signed = i64::try_from(length).unwrap_or(i64::MAX);
    let from_start = if at < 0 { at + length_signed } else { at };
    Ok(usize::try_from(from_start).ok().filter(|at| *at <= length))
}

fn length(text: Value) -> usize {
    text.with_bytes(<[u8]>::len).unwrap_or(0)
}

fn is_match<'a>(call: &Call<'a>) -> Result<Value<'a>, Exception> {
    let pattern = Pattern::of(call.this())?;
    if call.arg(0).is_nil() {
        return Ok(call.interp().bool(false));
    }
    let text = super::string(call.arg(0))?;
    let Some(at) = position(call.arg(1), length(text))? else {
        return Ok(call.interp().bool(false));
    };
    let found = text.with_bytes(|text| pattern.compiled.is_match(text, at));
    Ok(call.interp().bool(found.transpose().map_err(gave_up)?.unwrap_or(false)))
}

/// The first match from a position on, which becomes `$~`.
fn search<'a>(call: &Call<'a>) -> Result<Value<'a>, Exception> {
    if call.arg(0).is_nil() {
        return matchdata::set_last(call.interp(), None);
    }
    let text = super::string(call.arg(0))?;
    match position(call.arg(1), length(text))? {
        Some(at) => find(call.this(), text, at),
        None => matchdata::set_last(call.interp(), None),
    }
}

/// The same as a method for `text`.
pub(super) fn find<'a>(
    this: Value<'a>,
    text: Value<'a>,
    at: usize,
) -> Result<Value<'a>, Exception> {
    let compiled = &Pattern::of(this)?.compiled;
    let found = text.with_bytes(|text| compiled.search(text, at)).transpose().map_err(gave_up)?;
    let interp = this.interp();
    match found.flatten() {
        Some(spans) => {
            let made = matchdata::make(this, text, Rc::clone(compiled), spans)?;
            matchdata::set_last(interp, Some(made))
        }
        None => matchdata::set_last(interp, None),
    }
}

/// The last match that begins at a position or before it.
fn search_back<'a>(call: &Call<'a>) -> Result<Value<'a>, Exception> {
    let text = super::string(call.arg(0))?;
    let compiled = &Pattern::of(call.this())?.compiled;
    let Some(last) = position(call.arg(1), length(text))? else {
        return matchdata::set_last(call.interp(), None);
    };
    // Forwards from one beginning to the next: backwards, each step might look at all the text.
    let begins = |at| -> Result<Option<usize>, Exception> {
        let found =
            text.with_bytes(|text| compiled.search(text, at)).transpose().map_err(gave_up)?;
        let begin = found.flatten().and_then(|spans| spans[0]).map(|(from, _)| from);
        Ok(begin.filter(|from| *from <= last))
    };
    let (mut at, mut best) = (0, None);
    while let Some(from) = begins(at)? {
        (at, best) = (from + 1, Some(from));
    }
    match best {
        Some(from) => find(call.this(), text, from),
        None => matchdata::set_last(call.interp(), None),
    }
}

/// False for what is no text at all.
fn triple_equals<'a>(call: &Call<'a>) -> Result<Value<'a>, Exception> {
    if !matches!(call.arg(0).kind(), Kind::Str | Kind::Symbol) {
        matchdata::set_last(call.interp(), None)?;
        return Ok(call.interp().bool(false));
    }
    let found = find(call.this(), super::string(call.arg(0))?, 0)?;
    Ok(call.interp().bool(found.truthy()))
}

fn tilde<'a>(call: &Call<'a>) -> Result<Value<'a>, Exception> {
    if call.arg(0).is_nil() {
        return matchdata::set_last(call.interp(), None);
    }
    let found = find(call.this(), super::string(call.arg(0))?, 0)?;
    if found.is_nil() { Ok(found) } else { found.call("begin", &[call.interp().int(0)?]) }
}

/// The compiled pattern of a Regexp.
pub(super) fn compiled<'a>(value: Value<'a>) -> Result<&'a Rc<regexp::Regexp>, Exception> {
    Ok(&Pattern::of(value)?.compiled)
}
