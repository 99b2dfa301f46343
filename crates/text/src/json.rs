//! JSON: read into plain values, and written piece by piece as Ruby's `json` writes it.

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// How deep values may lie in each other, if nothing else is said: Ruby's `max_nesting`.
pub const NESTING: usize = 100;

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum Json {
    /// null.
    Null,
    /// true or false.
    Bool(bool),
    /// A whole number that 64 bits hold.
    Int(i64),
    /// Any other number.
    Float(f64),
    /// Text.
    Text(String),
    /// A list.
    Array(Vec<Json>),
    /// Pairs, as they stand there.
    Object(Vec<(String, Json)>),
}

/// Why a text is refused.
#[derive(Debug)]
pub enum Refused {
    /// It is no JSON; where and why.
    Syntax(String),
    /// It lies too deep in itself.
    Nesting(String),
}

/// What the visitor says, and `parse` hears.
const TOO_DEEP: &str = "nesting of ";

/// Reads a text. Values may lie `nesting` deep, 127 at most.
pub fn parse(text: &[u8], nesting: usize) -> Result<Json, Refused> {
    let mut source = serde_json::Deserializer::from_slice(text);
    let seed = Seed { depth: 0, most: nesting };
    seed.deserialize(&mut source).and_then(|value| source.end().map(|()| value)).map_err(|error| {
        let line = error.to_string();
        match line.starts_with(TOO_DEEP) || line.starts_with("recursion limit") {
            true => Refused::Nesting(line),
            false => Refused::Syntax(line),
        }
    })
}

#[derive(Clone, Copy)]
struct Seed {
    depth: usize,
    most: usize,
}

impl Seed {
    fn deeper<E: Error>(self) -> Result<Seed, E> {
        let depth = self.depth + 1;
        if depth > self.most {
            return Err(E::custom(format_args!("{TOO_DEEP}{depth} is too deep")));
        }
        Ok(Seed { depth, ..self })
    }
}

impl<'de> DeserializeSeed<'de> for Seed {
    type Value = Json;

    fn deserialize<D: Deserializer<'de>>(self, source: D) -> Result<Json, D::Error> {
        source.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(Json::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Json, E> {
        Ok(Json::Int(value))
    }

    #[expect(clippy::cast_precision_loss)] // There are no greater integers in mruby 3.1.
    fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
        Ok(i64::try_from(value).map_or(Json::Float(value as f64), Json::Int))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Json, E> {
        Ok(Json::Float(value))
    }

    fn visit_str<E>(self, text: &str) -> Result<Json, E> {
        Ok(Json::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Json, A::Error> {
        let inner = self.deeper()?;
        let mut items = Vec::new();
        while let Some(item) = list.next_element_seed(inner)? {
            items.push(item);
        }
        Ok(Json::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Json, A::Error> {
        let inner = self.deeper()?;
        let mut pairs = Vec::new();
        while let Some(key) = map.next_key()? {
            pairs.push((key, map.next_value_seed(inner)?));
        }
        Ok(Json::Object(pairs))
    }
}

/// Adds a text in quotes. With `script_safe` it can stand in a `<script>`.
pub fn put_text(out: &mut Vec<u8>, text: &str, script_safe: bool) {
    out.push(b'"');
    let bytes = text.as_bytes();
    let mut done = 0;
    for (at, byte) in bytes.iter().enumerate() {
        let separator = script_safe
            && bytes[at..].starts_with(b"\xe2\x80")
            && matches!(bytes.get(at + 2), Some(0xa8 | 0xa9));
        let (escape, length) = match byte {
            b'"' => ("\\\"".to_owned(), 1),
            b'\\' => ("\\\\".to_owned(), 1),
            b'\n' => ("\\n".to_owned(), 1),
            b'\r' => ("\\r".to_owned(), 1),
            b'\t' => ("\\t".to_owned(), 1),
            0x08 => ("\\b".to_owned(), 1),
            0x0c => ("\\f".to_owned(), 1),
            0..0x20 => (format!("\\u{byte:04x}"), 1),
            b'/' if script_safe => ("\\/".to_owned(), 1),
            _ if separator => (format!("\\u20{:02x}", bytes[at + 2] - 0x80), 3),
            _ => continue,
        };
        out.extend_from_slice(&bytes[done..at]);
        out.extend_from_slice(escape.as_bytes());
        done = at + length;
    }
    out.extend_from_slice(&bytes[done..]);
    out.push(b'"');
}

/// A finite number as Ruby's `Float#to_s` writes it: the fewest digits that say it.
pub fn float(value: f64) -> String {
    let scientific = format!("{value:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..16).contains(&exponent) {
        let plain = value.to_string();
        return if plain.contains('.') { plain } else { plain + ".0" };
    }
    let point = if digits.contains('.') { "" } else { ".0" };
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}{point}e{sign}{:02}", exponent.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Json {
        parse(text.as_bytes(), NESTING).expect("it is JSON")
    }

    #[test]
    fn values_are_read() {
        let text = r#" {"b": [1, -2.5, true, null], "a": "\u00e9\n", "b": {}, "c": 1e3} "#;
        let Json::Object(pairs) = read(text) else { panic!("no object") };
        let numbers = [Json::Int(1), Json::Float(-2.5), Json::Bool(true), Json::Null];
        assert_eq!(pairs[0], ("b".to_owned(), Json::Array(numbers.to_vec())));
        assert_eq!(pairs[1], ("a".to_owned(), Json::Text("é\n".to_owned())));
        assert_eq!(pairs[2], ("b".to_owned(), Json::Object(Vec::new())));
        assert_eq!(pairs[3], ("c".to_owned(), Json::Float(1000.0)));
        assert_eq!(read("9223372036854775807"), Json::Int(i64::MAX));
        assert_eq!(read("9223372036854775808"), Json::Float(9.223_372_036_854_776e18));
        assert_eq!(read("123456789012345678901234567890"), Json::Float(1.2345678901234568e29));
    }

    #[test]
    fn wrong_texts_are_refused_with_their_place() {
        for (text, place) in [
            ("", "line 1 column 0"),
            ("{\n\"a\": x}", "line 2 column 6"),
            ("[1,]", "column 4"),
            ("[1] 2", "column 5"),
            ("NaN", "column 1"),
            ("\"\\ud800\"", "column"),
        ] {
            match parse(text.as_bytes(), NESTING) {
                Err(Refused::Syntax(line)) => assert!(line.contains(place), "{text}: {line}"),
                other => panic!("{text}: {other:?}"),
            }
        }
        assert!(matches!(parse(b"\"\xff\"", NESTING), Err(Refused::Syntax(_))));
    }

    #[test]
    fn depth_has_a_limit() {
        let deep = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        assert!(parse(deep(100).as_bytes(), 100).is_ok());
        assert!(
            matches!(parse(deep(101).as_bytes(), 100), Err(Refused::Nesting(line)) if line.starts_with("nesting of 101"))
        );
        assert!(matches!(parse(deep(100_000).as_bytes(), usize::MAX), Err(Refused::Nesting(_))));
    }

    #[test]
    fn texts_and_numbers_are_written() {
        let text = |text, safe| {
            let mut out = Vec::new();
            put_text(&mut out, text, safe);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(text("é\"\\\n\u{1}\u{7f}/", false), "\"é\\\"\\\\\\n\\u0001\u{7f}/\"");
        assert_eq!(text("</a>\u{2028}\u{2029}", true), "\"<\\/a>\\u2028\\u2029\"");
        for (number, want) in [
            (1.0, "1.0"),
            (0.1, "0.1"),
            (-0.0, "-0.0"),
            (1e15, "1000000000000000.0"),
            (1e16, "1.0e+16"),
            (1e-4, "0.0001"),
            (1.5e-5, "1.5e-05"),
            (1e100, "1.0e+100"),
            (123456.789, "123456.789"),
        ] {
            assert_eq!(float(number), want);
        }
    }
}
