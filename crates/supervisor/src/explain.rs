//! `oribi config`: what holds, and who says so.

use crate::answer::print;
use crate::layers::{Given, Origin, Said};
use crate::sources::Sources;
use serde_json::json;
use wire::settings::{Fallback, GROUPS, Group, Setting, Value};

/// How it is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// As a configuration file.
    File,
    /// As a table with origins.
    Table,
    /// As JSON with origins.
    Json,
}

/// A setting and its values.
struct Row {
    group: &'static Group,
    setting: &'static Setting,
    values: Vec<Given>,
}

impl Row {
    fn text(&self) -> String {
        let texts: Vec<&str> = self.values.iter().map(|given| given.text.as_str()).collect();
        if texts.is_empty() { "-".into() } else { texts.join(", ") }
    }

    fn origin(&self) -> String {
        let mut origins: Vec<String> = self.values.iter().map(|g| g.origin.to_string()).collect();
        origins.dedup();
        match (origins.is_empty(), self.setting.fallback) {
            (false, _) => origins.join(", "),
            (true, Fallback::Found(words)) => format!("{}: {words}", Origin::Default),
            (true, _) => Origin::Default.to_string(),
        }
    }
}

/// Prints what holds; says what is wrong with it instead.
pub fn explain(sources: &Sources, form: Form) -> Result<(), String> {
    sources.settings()?;
    let rows = rows(&Said(&sources.layers))?;
    print(&match form {
        Form::File => file(&rows),
        Form::Table => table(&rows, sources),
        Form::Json => as_json(&rows),
    });
    Ok(())
}

/// Every setting but those that are short for others.
fn rows(said: &Said) -> Result<Vec<Row>, String> {
    let mut rows = Vec::new();
    for group in GROUPS {
        for setting in group.settings {
            let values = match setting.name {
                "host" | "port" | "path" | "timeout" | "config" => continue,
                "bind" => {
                    let binds = said.binds()?.into_iter();
                    binds.map(|(a, origin)| Given { text: a.to_string(), origin }).collect()
                }
                _ => said.all(setting).into_iter().map(|given| plainly(setting, given)).collect(),
            };
            rows.push(Row { group, setting, values });
        }
    }
    Ok(rows)
}

/// A flag may have been said in several ways.
fn plainly(setting: &Setting, given: Given) -> Given {
    match setting.check(&given.text) {
        Ok(Value::Flag(on)) => Given { text: on.to_string(), ..given },
        _ => given,
    }
}

/// Lines that a configuration file may have.
fn file(rows: &[Row]) -> String {
    let lines = rows.iter().filter(|row| !row.values.is_empty()).map(|row| {
        let values: Vec<String> = row.values.iter().map(|given| quoted(&given.text)).collect();
        format!("{} {}", row.setting.name, values.join(", "))
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// As a Ruby string in which nothing is special.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}

fn table(rows: &[Row], sources: &Sources) -> String {
    let width = |cell: fn(&Row) -> usize| rows.iter().map(cell).max().unwrap_or(0);
    let names = width(|row| row.setting.name.len());
    // A long value pushes its own origin aside, not all of them.
    let values = width(|row| row.text().len()).min(32);
    let mut lines = Vec::new();
    let mut heading = "";
    for row in rows {
        if row.group.heading != heading {
            heading = row.group.heading;
            lines.push(format!("\n{heading}"));
        }
        let (name, text, origin) = (row.setting.name, row.text(), row.origin());
        lines.push(format!("  {name:names$}  {text:values$}  {origin}"));
    }
    if let Some(file) = &sources.config {
        lines.push(format!("\nConfiguration file: {}", file.display()));
    }
    lines.join("\n").trim_start().into()
}

fn as_json(rows: &[Row]) -> String {
    let rows = rows.iter().map(|row| {
        let texts: Vec<&str> = row.values.iter().map(|given| given.text.as_str()).collect();
        json!({
            "group": row.group.heading,
            "name": row.setting.name,
            "values": texts,
            "origin": row.origin(),
        })
    });
    serde_json::Value::Array(rows.collect()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_quoted_for_ruby() {
        assert_eq!(quoted(r"a'b\#{c}"), r"'a\'b\\#{c}'");
    }
}
