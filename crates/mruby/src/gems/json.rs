//! JSON.

use super::{option, run_prelude};
use crate::{Call, Class, Exception, Gem, Interp, Kind, Value};
use text::json::{self, NESTING, Refused};

/// The module JSON, and `to_json` everywhere.
pub struct Json;

impl Gem for Json {
    const NAME: &'static str = "json";

    fn install(interp: &Interp) -> Result<(), Exception> {
        interp.define_module("JSON", define)?;
        let standard = interp.class("StandardError")?;
        let error = interp.define_class_of("JSON::JSONError", Some(&standard), |_| Ok(()))?;
        let parser = interp.define_class_of("JSON::ParserError", Some(&error), |_| Ok(()))?;
        interp.define_class_of("JSON::NestingError", Some(&parser), |_| Ok(()))?;
        interp.define_class_of("JSON::GeneratorError", Some(&error), |_| Ok(()))?;
        run_prelude(interp, "json.rb", include_str!("json.rb"))
    }
}

fn define(module: &Class) -> Result<(), Exception> {
    module.singleton_method("parse", 1..=2, parse)?;
    module.singleton_method("generate", 1..=2, |call| {
        let script_safe = option(call, "script_safe", 1)?.truthy();
        generate(call.arg(0), Writer { script_safe, ..Writer::default() })
    })?;
    module.singleton_method("pretty_generate", 1..=2, |call| {
        generate(call.arg(0), Writer { pretty: true, ..Writer::default() })
    })
}

fn parse<'a>(call: &Call<'a>) -> Result<Value<'a>, Exception> {
    let most = option(call, "max_nesting", 1)?;
    let nesting = match most.kind() {
        Kind::Int if most.int()? > 0 => usize::try_from(most.int()?).unwrap_or(NESTING),
        Kind::Int | Kind::Bool => usize::MAX,
        _ => NESTING,
    };
    let symbols = option(call, "symbolize_names", 1)?.truthy();
    let text = super::string(call.arg(0))?.bytes()?;
    let value = json::parse(&text, nesting).map_err(|refused| match refused {
        Refused::Syntax(line) => Exception::new("JSON::ParserError", line),
        Refused::Nesting(line) => Exception::new("JSON::NestingError", line),
    })?;
    build(call.interp(), &value, symbols)
}

fn build<'a>(
    interp: &'a Interp,
    value: &json::Json,
    symbols: bool,
) -> Result<Value<'a>, Exception> {
    match value {
        json::Json::Null => Ok(interp.nil()),
        json::Json::Bool(value) => Ok(interp.bool(*value)),
        json::Json::Int(value) => interp.int(*value),
        json::Json::Float(value) => interp.float(*value),
        json::Json::Text(text) => interp.str(text),
        json::Json::Array(items) => {
            let list = interp.array(&[])?;
            for item in items {
                interp.scope(|| list.push(build(interp, item, symbols)?))?;
            }
            Ok(list)
        }
        json::Json::Object(pairs) => {
            let hash = interp.hash()?;
            for (name, value) in pairs {
                interp.scope(|| {
                    let key =
                        if symbols { interp.symbol(name)? } else { interp.str(name)?.freeze()? };
                    hash.set(key, build(interp, value, symbols)?)
                })?;
            }
            Ok(hash)
        }
    }
}

fn generate<'a>(value: Value<'a>, mut writer: Writer) -> Result<Value<'a>, Exception> {
    writer.put(value)?;
    value.interp().str(writer.out)
}

#[derive(Default)]
struct Writer {
    out: Vec<u8>,
    pretty: bool,
    script_safe: bool,
    depth: usize,
}

impl Writer {
    fn put(&mut self, value: Value) -> Result<(), Exception> {
        let interp = value.interp();
        match value.kind() {
            Kind::Nil => self.out.extend_from_slice(b"null"),
            Kind::Bool => {
                self.out.extend_from_slice(if value.truthy() { b"true" } else { b"false" })
            }
            Kind::Int => self.out.extend_from_slice(value.int()?.to_string().as_bytes()),
            Kind::Float => self.put_float(value.float()?)?,
            Kind::Str => self.put_text(&value.bytes()?)?,
            Kind::Symbol => self.put_text(value.text()?.as_bytes())?,
            Kind::Array => {
                self.open(b'[')?;
                for at in 0..value.len() {
                    self.separate(at == 0);
                    interp.scope(|| self.put(value.entry(at)))?;
                }
                self.close(b']', value.is_empty());
            }
            Kind::Hash => {
                self.open(b'{')?;
                let pairs = value.pairs()?;
                for (at, (key, value)) in pairs.iter().enumerate() {
                    self.separate(at == 0);
                    interp.scope(|| self.put_pair(*key, *value))?;
                }
                self.close(b'}', pairs.is_empty());
            }
            // What its class says; Object#to_json is its to_s in quotes.
            _ => self.out.extend_from_slice(&value.call("to_json", &[])?.bytes()?),
        }
        Ok(())
    }

    fn put_pair(&mut self, key: Value, value: Value) -> Result<(), Exception> {
        match key.kind() {
            Kind::Str => self.put_text(&key.bytes()?)?,
            _ => self.put_text(key.to_s()?.as_bytes())?,
        }
        self.out.extend_from_slice(if self.pretty { b": " } else { b":" });
        self.put(value)
    }

    fn put_float(&mut self, value: f64) -> Result<(), Exception> {
        if !value.is_finite() {
            let line = format!("{value} is not allowed in JSON");
            return Err(Exception::new("JSON::GeneratorError", line));
        }
        // mruby keeps all but the last two bits of a Float: 15 digits are right.
        let right = format!("{value:.14e}").parse().unwrap_or(value);
        self.out.extend_from_slice(json::float(right).as_bytes());
        Ok(())
    }

    fn put_text(&mut self, text: &[u8]) -> Result<(), Exception> {
        let text = std::str::from_utf8(text).map_err(|_| {
            Exception::new("JSON::GeneratorError", "source sequence is illegal/malformed utf-8")
        })?;
        json::put_text(&mut self.out, text, self.script_safe);
        Ok(())
    }

    fn open(&mut self, bracket: u8) -> Result<(), Exception> {
        self.out.push(bracket);
        self.depth += 1;
        if self.depth > NESTING {
            let line = format!("nesting of {} is too deep", self.depth);
            return Err(Exception::new("JSON::NestingError", line));
        }
        Ok(())
    }

    fn separate(&mut self, first: bool) {
        if !first {
            self.out.push(b',');
        }
        self.indent();
    }

    fn close(&mut self, bracket: u8, empty: bool) {
        self.depth -= 1;
        if !empty {
            self.indent();
        }
        self.out.push(bracket);
    }

    fn indent(&mut self) {
        if self.pretty {
            self.out.push(b'\n');
            self.out.extend(std::iter::repeat_n(b' ', self.depth * 2));
        }
    }
}
