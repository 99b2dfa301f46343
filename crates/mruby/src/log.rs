//! What goes to the server's log: text for people, or records.

use crate::exception::Exception;
use serde_json::{Map, Value, json};
use std::io::Write;
use std::sync::RwLock;

static MARK: RwLock<Option<(String, Map<String, Value>)>> = RwLock::new(None);

/// From now on exceptions are records: what tells the supervisor's log that a line is one, and who
/// writes them.
pub fn records(mark: &str, who: Value) {
    let who = who.as_object().cloned().unwrap_or_default();
    if let Ok(mut place) = MARK.write() {
        *place = Some((mark.into(), who));
    }
}

/// Adds to who writes them.
pub fn record_as(name: &str, value: Value) {
    if let Ok(mut place) = MARK.write()
        && let Some((_, who)) = place.as_mut()
    {
        who.insert(name.into(), value);
    }
}

/// Text as it is, in one piece.
pub fn raw(text: &str) {
    // Without a log there is nobody to tell.
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// An exception: `place` is what it belongs to, for people; `fields` are the same for records.
pub fn exception(place: &str, fields: Value, error: &Exception) {
    let mark = MARK.read().ok().and_then(|mark| mark.clone());
    let Some((mark, mut record)) = mark else {
        return raw(&format!("oribi: {place}{}\n", error.full()));
    };
    record.insert("message".into(), json!(format!("{}: {}", error.class_name(), error.message())));
    record.insert("exception".into(), json!(error.class_name()));
    record.extend(fields.as_object().cloned().unwrap_or_default());
    record.insert("backtrace".into(), json!(error.backtrace()));
    raw(&format!("{mark}{}\n", Value::Object(record)));
}
