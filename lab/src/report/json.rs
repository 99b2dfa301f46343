//! A whole run as JSON, and back.

use std::fs;
use std::io;
use std::path::Path;

use crate::results::{Run, SCHEMA};

/// The text of `run.json`.
pub fn text(run: &Run) -> io::Result<String> {
    Ok(serde_json::to_string_pretty(run)? + "\n")
}

/// Reads a run: `given` is a folder that holds a `run.json`, such a file itself, or the name of a
/// folder in `runs`.
pub fn read(given: &str, runs: &Path) -> Result<Run, String> {
    let named = runs.join(given);
    let path = [Path::new(given), named.as_path()]
        .into_iter()
        .flat_map(|path| [path.join("run.json"), path.to_owned()])
        .find(|path| path.is_file())
        .ok_or_else(|| {
            let runs = runs.display();
            format!("no run {given}: neither a folder with a run.json nor a name in {runs}")
        })?;
    let shown = path.display();
    let text = fs::read_to_string(&path).map_err(|error| format!("{shown}: {error}"))?;
    // The shape's number is looked at first: another one explains itself better than what serde
    // would say about the field it misses.
    let value: serde_json::Value = serde_json::from_str(&text)
        .map_err(|error| format!("{shown} is not the JSON of a run: {error}"))?;
    let schema = value.get("schema").and_then(serde_json::Value::as_u64);
    if schema != Some(SCHEMA.into()) {
        let its = schema.map_or("none".to_owned(), |its| its.to_string());
        return Err(format!(
            "{shown} is of shape {its}, this lab reads {SCHEMA}: run the scenario again"
        ));
    }
    serde_json::from_str(&text)
        .map_err(|error| format!("{shown} is not the JSON of a run: {error}"))
}
