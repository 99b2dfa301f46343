//! From a TOML table to a value, or to one line that names the key that is wrong.

use serde::de::DeserializeOwned;
use toml::{Table, Value};

use crate::library::nearest::nearest;

/// What a table says, or which key is wrong and what it should have been.
pub fn understand<T: DeserializeOwned>(source: &str, table: &Table) -> Result<T, String> {
    serde_path_to_error::deserialize(table.clone()).map_err(|error| {
        let message = error.inner().message().trim();
        let blamed = message.starts_with("invalid").then(|| blame::<T>(table)).flatten();
        let place = match blamed.unwrap_or_else(|| error.path().to_string()) {
            path if path == "." => String::new(),
            path => format!("{path}: "),
        };
        // What serde says names the wrong word first, then the right ones.
        let mut quoted = message.split('`').skip(1).step_by(2);
        let near = match (message.split(' ').next(), quoted.next()) {
            (Some("unknown"), Some(wrong)) => nearest(wrong, quoted),
            (Some("missing"), Some(missed)) => slip(table, missed),
            _ => String::new(),
        };
        let message = message.split(", expected one of").next().unwrap_or(message);
        format!("{source}: {place}{message}{near}").replace('\n', " ")
    })
}

/// A key that was probably meant to be the missing one.
fn slip(table: &Table, missed: &str) -> String {
    let mut places = Vec::new();
    inside(&Value::Table(table.clone()), &[], &mut places);
    let keys = places.iter().filter_map(|place| match place.last() {
        Some(Step::Key(key)) => Some(key),
        _ => None,
    });
    let like = |key: &&String| (1..=2).contains(&strsim::damerau_levenshtein(key, missed));
    keys.into_iter().find(like).map_or(String::new(), |key| format!(" (is it `{key}`?)"))
}

/// The key with the wrong value. Serde loses it where structs are flattened; but all is well when
/// this one has another value.
fn blame<T: DeserializeOwned>(table: &Table) -> Option<String> {
    let whole = Value::Table(table.clone());
    let others = [
        Value::Integer(1),
        Value::Float(1.0),
        Value::Boolean(true),
        Value::String(String::new()),
        Value::Array(Vec::new()),
        Value::Table(Table::new()),
    ];
    let mut places = Vec::new();
    inside(&whole, &[], &mut places);
    let guilty = places.into_iter().find(|place| {
        others.iter().any(|other| {
            let mut changed = whole.clone();
            *at(&mut changed, place) = other.clone();
            T::deserialize(changed).is_ok()
        })
    })?;
    let shown = guilty.iter().map(|step| match step {
        Step::Key(key) => format!(".{key}"),
        Step::Index(index) => format!("[{index}]"),
    });
    Some(shown.collect::<String>().trim_start_matches('.').to_owned())
}

#[derive(Clone)]
enum Step {
    Key(String),
    Index(usize),
}

/// All places below a value; what is inside comes before what it is in.
fn inside(value: &Value, path: &[Step], places: &mut Vec<Vec<Step>>) {
    let below: Vec<(Step, &Value)> = match value {
        Value::Table(table) => table.iter().map(|(key, it)| (Step::Key(key.clone()), it)).collect(),
        Value::Array(all) => all.iter().enumerate().map(|(i, it)| (Step::Index(i), it)).collect(),
        _ => Vec::new(),
    };
    for (step, value) in below {
        let place = [path, &[step]].concat();
        inside(value, &place, places);
        places.push(place);
    }
}

fn at<'a>(value: &'a mut Value, place: &[Step]) -> &'a mut Value {
    place.iter().fold(value, |value, step| match step {
        Step::Key(key) => &mut value[key.as_str()],
        Step::Index(index) => &mut value[*index],
    })
}
