//! Which Ruby runs the molds, where our Ruby files are, and the two things a short-lived Ruby is
//! asked.

use crate::declared::{Content, Declared};
use crate::layers::{Given, Layer, Origin};
use crate::options::Mount;
use crate::place::Place;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use wire::settings::{self, Fallback, GROUPS, Kind, MOUNT_WORDS, Scope, Setting};

/// Which Ruby `exe/oribi` was run with.
pub const RUBY: &str = "ORIBI_RUBY";
/// Where our Ruby files are.
pub const LIB: &str = "ORIBI_LIB";

/// A Ruby with our library.
#[derive(Clone)]
pub struct Ruby {
    program: OsString,
    lib: PathBuf,
}

impl Ruby {
    /// What `exe/oribi` says, else `ruby` from PATH and the library next to this binary.
    pub fn find() -> Result<Ruby, String> {
        let program = std::env::var_os(RUBY).unwrap_or_else(|| "ruby".into());
        let lib = std::env::var_os(LIB).map(PathBuf::from).or_else(lib_beside_binary);
        let lib = lib.ok_or(
            "cannot find lib/oribi beside this binary: start the server with `oribi` of the gem \
             or exe/oribi of the checkout",
        )?;
        Ok(Ruby { program, lib })
    }

    /// Where our Ruby files are.
    pub fn lib(&self) -> &Path {
        &self.lib
    }

    /// The words that run `script` with our library loaded.
    pub fn line(&self, library: &str, script: &str) -> Vec<OsString> {
        let lib = self.lib.clone().into_os_string();
        let [include, require, execute] = ["-I", "-r", "-e"].map(OsString::from);
        vec![
            self.program.clone(),
            include,
            lib,
            require,
            library.into(),
            execute,
            script.into(),
            "--".into(),
        ]
    }

    fn command(&self, library: &str, script: &str) -> Command {
        let line = self.line(library, script);
        let mut command = Command::new(&line[0]);
        command.args(&line[1..]).env("ORIBI_OPTIONS", table().to_string());
        command
    }

    /// Evaluates a configuration file. What it prints goes to standard error.
    pub fn configuration(&self, file: &Path) -> Result<Content, String> {
        let shown = file.display();
        let mut command = self.command("oribi/config", "Oribi::Config.dump(ARGV.fetch(0))");
        let output = command
            .arg(file)
            .stderr(Stdio::inherit())
            .output()
            .map_err(|error| self.not_runnable(&error))?;
        // What ends Ruby itself it has said.
        let said: Said = serde_json::from_slice(&output.stdout)
            .map_err(|_| format!("{shown} was not accepted"))?;
        if let Some(why) = said.error {
            return Err(why);
        }
        let mounts = said.mounts.into_iter().map(|mount| {
            Ok(Declared {
                origin: Origin::Line(mount.place),
                said: layer(&shown, mount.values, settings::find_in_mount)?,
                hooks: mount.hooks,
            })
        });
        Ok(Content {
            mounts: mounts.collect::<Result<_, String>>()?,
            layer: layer(&shown, said.values, settings::find)?,
        })
    }

    /// Loads a mount's rackup file in a Ruby of its own; true when it loads.
    pub fn check(&self, rackup: &Path, mount: &Mount) -> Result<bool, String> {
        let mut command = self.command("oribi/mold", "Oribi::Mold.check(ARGV.fetch(0))");
        if let Some(directory) = &mount.chdir {
            Place::of(directory.clone()).enter(&mut command);
        }
        command.arg(rackup).env("RACK_ENV", &mount.environment);
        let status = command.envs(mount.bundle().into_iter().flatten()).status();
        status.map(|s| s.success()).map_err(|error| self.not_runnable(&error))
    }

    /// A line for a Ruby that does not start.
    pub fn not_runnable(&self, error: &std::io::Error) -> String {
        format!(
            "cannot run {}: {error}: install Ruby, or name one in {RUBY}",
            self.program.to_string_lossy()
        )
    }
}

/// What `Oribi::Config.dump` says: values by option, each with its place, or what is wrong.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Said {
    error: Option<String>,
    values: Values,
    mounts: Vec<SaidOfMount>,
}

#[derive(Deserialize)]
struct SaidOfMount {
    place: String,
    values: Values,
    hooks: Vec<(String, String)>,
}

type Values = BTreeMap<String, Vec<(String, String)>>;

fn layer(
    file: &impl std::fmt::Display,
    values: Values,
    find: impl Fn(&str) -> Option<&'static Setting>,
) -> Result<Layer, String> {
    let given = values.into_iter().map(|(name, values)| {
        let setting = find(&name).ok_or_else(|| format!("{file}: no option {name}"))?;
        let values = values.into_iter();
        let given = values.map(|(text, place)| Given { text, origin: Origin::Line(place) });
        Ok((setting.name, given.collect()))
    });
    given.collect()
}

/// In the checkout the binary is target/release/oribi, in the gem lib/oribi/bin/oribi.
fn lib_beside_binary() -> Option<PathBuf> {
    let binary = std::env::current_exe().ok()?;
    let candidates = ["../../../lib", "../../.."].map(|up| binary.join(up));
    let found = candidates.iter().find(|lib| lib.join("oribi/mold.rb").exists())?;
    found.canonicalize().ok()
}

/// The options table for Ruby and the docs, and what only a mount has.
pub fn table() -> Value {
    let grouped = GROUPS.iter().flat_map(|group| group.settings.iter().map(move |s| (group, s)));
    let options: Value = grouped.map(|(group, setting)| describe(group.heading, setting)).collect();
    let mount: Value = MOUNT_WORDS.iter().map(|setting| describe("Mounts", setting)).collect();
    json!({ "options": options, "mount": mount })
}

/// One sentence; with the words there are to choose from.
pub fn doc(setting: &settings::Setting) -> String {
    match setting.kind {
        Kind::Choice(words) => format!("{}: {}", setting.doc, words.join(", ")),
        _ => setting.doc.into(),
    }
}

fn describe(heading: &str, setting: &settings::Setting) -> Value {
    let (kind, min, max) = match setting.kind {
        Kind::Text => ("text", None, None),
        Kind::Path => ("path", None, None),
        Kind::Address | Kind::Local => ("address", None, None),
        Kind::Count { min, max } => ("count", Some(min), Some(max)),
        Kind::Socket => ("socket", None, None),
        Kind::Seconds => ("seconds", None, None),
        Kind::Flag => ("flag", None, None),
        Kind::Bytes => ("bytes", None, None),
        Kind::Choice(_) => ("choice", None, None),
        Kind::Mode => ("mode", None, None),
        Kind::Network => ("network", None, None),
    };
    json!({
        "group": heading,
        "name": setting.name,
        "flag": setting.flag(),
        "short": setting.short,
        "also": setting.also,
        "metavar": setting.metavar,
        "doc": doc(setting),
        "kind": kind,
        "min": min,
        "max": max,
        "default": match setting.fallback {
            Fallback::None => None,
            Fallback::Fixed(text) | Fallback::Found(text) => Some(text),
        },
        // Else it is a description of what is found out.
        "fixed": matches!(setting.fallback, Fallback::Fixed(_)),
        "repeatable": setting.repeatable,
        "in_file": setting.place == settings::Place::Anywhere,
        "in_mount": setting.scope == Scope::Mount,
    })
}
