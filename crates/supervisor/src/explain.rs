//! `oribi config`: what holds, and who says so.

use crate::answer::print;
use crate::declared::Declared;
use crate::layers::{Given, Layer, Origin, Said};
use crate::options::{self, Mount};
use crate::sources::Sources;
use serde_json::json;
use wire::settings::{Fallback, GROUPS, MOUNT_WORDS, Scope, Setting, Value};

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
    /// What it is among.
    heading: &'static str,
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

/// What holds for one mount.
struct OfMount<'a> {
    mount: &'a Mount,
    declared: &'a Declared,
    rows: Vec<Row>,
}

/// Prints what holds; says what is wrong with it instead.
pub fn explain(sources: &Sources, form: Form) -> Result<(), String> {
    let settings = sources.settings()?;
    let rows = rows(&Said(&sources.layers))?;
    let mounts: Vec<OfMount> = (settings.mounts.iter().zip(&sources.mounts))
        .map(|(mount, declared)| {
            let rows = rows_of_mount(mount, declared, &sources.layers);
            OfMount { mount, declared, rows }
        })
        .collect();
    print(&match form {
        Form::File => file(&rows, &mounts),
        Form::Table => table(&rows, &mounts, sources),
        Form::Json => as_json(&rows, &mounts),
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
            rows.push(Row { heading: group.heading, setting, values });
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

/// What a mount says of itself, and what it has of all that mounts may have.
fn rows_of_mount(mount: &Mount, declared: &Declared, layers: &[Layer]) -> Vec<Row> {
    let own: Vec<Layer> =
        std::iter::once(declared.said.clone()).chain(layers.iter().cloned()).collect();
    let words = MOUNT_WORDS.iter().map(|setting| Row {
        heading: "Mounts",
        setting,
        values: match (setting.name, declared.word("name")) {
            ("name", None) => {
                vec![Given { text: mount.name.clone(), origin: Origin::Default }]
            }
            _ => declared.words(setting.name).cloned().collect(),
        },
    });
    let groups = GROUPS.iter().flat_map(|group| group.settings.iter().map(move |s| (group, s)));
    let all = groups.filter(|(_, setting)| setting.scope == Scope::Mount);
    let useful = all.filter(|(_, setting)| options::concerns(setting, &mount.serves));
    let options = useful.map(|(group, setting)| {
        let of_server = match setting.name {
            // Not where the server is, and the group of the user who is named.
            "chdir" => false,
            "group" => declared.word("user").is_none(),
            _ => true,
        };
        let values = match of_server {
            true => Said(&own).all(setting),
            false => declared.words(setting.name).cloned().collect(),
        };
        let values = values.into_iter().map(|given| plainly(setting, given)).collect();
        Row { heading: group.heading, setting, values }
    });
    words.chain(options).collect()
}

/// Lines that a configuration file may have.
fn file(rows: &[Row], mounts: &[OfMount]) -> String {
    let mut lines: Vec<String> = rows.iter().filter_map(line).collect();
    for one in mounts {
        lines.push(format!("\nmount {} do", quoted(one.declared.shown())));
        let said = one.rows.iter().filter(|row| one.declared.said.contains_key(row.setting.name));
        let said = said.filter(|row| row.setting.name != "path").filter_map(line);
        lines.extend(said.map(|line| format!("  {line}")));
        lines.push("end".into());
    }
    lines.join("\n")
}

fn line(row: &Row) -> Option<String> {
    let values: Vec<String> = row.values.iter().map(|given| quoted(&given.text)).collect();
    (!values.is_empty()).then(|| format!("{} {}", row.setting.name, values.join(", ")))
}

/// As a Ruby string in which nothing is special.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}

fn table(rows: &[Row], mounts: &[OfMount], sources: &Sources) -> String {
    let all = || rows.iter().chain(mounts.iter().flat_map(|one| &one.rows));
    let width = |cell: fn(&Row) -> usize| all().map(cell).max().unwrap_or(0);
    let names = width(|row| row.setting.name.len());
    // A long value pushes its own origin aside, not all of them.
    let values = width(|row| row.text().len()).min(32);
    let line = |row: &Row| {
        let (name, text, origin) = (row.setting.name, row.text(), row.origin());
        format!("  {name:names$}  {text:values$}  {origin}")
    };
    let mut lines = Vec::new();
    let mut heading = "";
    for row in rows {
        if row.heading != heading {
            heading = row.heading;
            lines.push(format!("\n{heading}"));
        }
        lines.push(line(row));
    }
    for one in mounts {
        lines.push(format!("\nMount {} ({})", one.mount.name, one.declared.origin));
        lines.extend(one.rows.iter().map(line));
    }
    if let Some(file) = &sources.config {
        lines.push(format!("\nConfiguration file: {}", file.display()));
    }
    lines.join("\n").trim_start().into()
}

fn as_json(rows: &[Row], mounts: &[OfMount]) -> String {
    let row = |row: &Row| {
        let texts: Vec<&str> = row.values.iter().map(|given| given.text.as_str()).collect();
        json!({
            "group": row.heading,
            "name": row.setting.name,
            "values": texts,
            "origin": row.origin(),
        })
    };
    let of_mounts = mounts.iter().flat_map(|one| {
        one.rows.iter().map(move |own| {
            let mut value = row(own);
            value["mount"] = one.mount.name.as_str().into();
            value
        })
    });
    serde_json::Value::Array(rows.iter().map(row).chain(of_mounts).collect()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_quoted_for_ruby() {
        assert_eq!(quoted(r"a'b\#{c}"), r"'a\'b\\#{c}'");
    }
}
