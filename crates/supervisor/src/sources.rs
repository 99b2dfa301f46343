//! Where settings come from: the command line, the configuration file it names, and a handler that
//! has defaults of its own (`-s Rhebok`).

use crate::declared::{Content, Declared};
use crate::layers::{Layer, Origin, given, merge};
use crate::options::{self, Mount, Serves, Settings};
use crate::place::Place;
use crate::ruby::Ruby;
use crate::spawn::COMMAND;
use crate::toml_file;
use serde_json::Value;
use std::path::{Path, PathBuf};
use wire::settings;

/// The rackup file where none is named.
const RACKUP: &str = "config.ru";

/// What the command line says.
#[derive(Clone, Debug, Default)]
pub struct Line {
    /// Its options.
    pub said: Layer,
    /// Its mounts, as they are written.
    pub mounts: Vec<String>,
    /// The rackup file it names.
    pub rackup: Option<PathBuf>,
}

/// All that has been said.
#[derive(Clone, Default)]
pub struct Sources {
    /// The first one wins.
    pub layers: Vec<Layer>,
    /// Mounts: the file's, then the command line's.
    pub mounts: Vec<Declared>,
    /// The configuration file, by its whole path.
    pub config: Option<PathBuf>,
    /// The rackup file, if it is named.
    pub rackup: Option<PathBuf>,
    /// What the command line says.
    pub line: Line,
    /// True: a calling process has loaded the app.
    pub handed: bool,
}

impl Sources {
    /// What the command line says, and what it leads to.
    pub fn read(mut line: Line) -> Result<Sources, String> {
        let named = line.said.get("config").and_then(|files| files.last());
        let config = named.map(|given| absolute(Path::new(&given.text))).transpose()?;
        if let Some(file) = &config {
            // To be found again from anywhere.
            let whole = file.to_string_lossy().into_owned();
            line.said.insert("config", given([whole], &Origin::CommandLine));
        }
        let handler = Handler::from_environment();
        let Content { layer, mut mounts } =
            config.as_deref().map_or(Ok(Content::default()), content)?;
        let mut said = line.said.clone();
        said.remove("config");
        let mut layers = match &config {
            Some(_) if handler.config_wins => vec![merge(layer, said)],
            Some(_) => vec![said, layer],
            None if handler.called => vec![merge(said, Layer::new())],
            None => vec![said],
        };
        layers.push(handler.defaults);
        for mount in &line.mounts {
            mounts.push(Declared::read(mount)?);
        }
        if let Some(rackup) = line.rackup.as_deref().filter(|_| !mounts.is_empty()) {
            mounts.push(Declared::app(&Origin::CommandLine, "/", rackup));
        }
        if let Some(mount) = mounts.first().filter(|_| handler.called) {
            return Err(mount.blame(
                "an app that is handed over, as rackup does, is the only one: leave mounts out, or \
                 start the server with `oribi -C FILE`",
            ));
        }
        let rackup = line.rackup.clone();
        Ok(Sources { layers, mounts, config, rackup, line, handed: handler.called })
    }

    /// What holds, with paths as they are written.
    pub fn settings(&self) -> Result<Settings, String> {
        let mut settings = options::resolve(&self.layers, &self.mounts)?;
        let hooks = self.config.as_ref().filter(|file| !is_toml(file));
        for mount in &mut settings.mounts {
            mount.worker.config = hooks.map(|file| file.to_string_lossy().into_owned());
        }
        Ok(settings)
    }

    /// What holds for a server at this place, with paths that are whole; files and directories of
    /// apps are looked for.
    pub fn settings_at(&self, place: &Place) -> Result<Settings, String> {
        let mut settings = self.settings()?;
        settings.make_absolute(place);
        for (index, mount) in settings.mounts.iter_mut().enumerate() {
            match self.mounts.get(index) {
                Some(declared) => locate(mount, declared, place)?,
                None if self.handed => {}
                None => {
                    mount.serves =
                        Serves::App { rackup: Some(only(self.rackup.as_deref(), place)?) }
                }
            }
        }
        Ok(settings)
    }
}

/// What a configuration file says.
fn content(file: &Path) -> Result<Content, String> {
    if is_toml(file) { toml_file::read(file) } else { Ruby::find()?.configuration(file) }
}

fn is_toml(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension == "toml")
}

/// Finds a declared mount's directory and file.
pub fn locate(mount: &mut Mount, declared: &Declared, place: &Place) -> Result<(), String> {
    let Serves::App { rackup } = &mut mount.serves else { return Ok(()) };
    let base = match &mut mount.chdir {
        None => place.clone(),
        Some(directory) => {
            *directory = place.file(directory);
            if !directory.is_dir() {
                let why = format!("chdir: {} is no directory: name the app's", directory.display());
                return Err(declared.blame_word("chdir", &why));
            }
            Place::of(directory.clone())
        }
    };
    let file = base.file(rackup.as_deref().unwrap_or(Path::new(RACKUP)));
    if !file.is_file() {
        let shown = file.strip_prefix(&place.directory).unwrap_or(&file).display();
        let why = format!("{shown} is not there: name the app's rackup file");
        return Err(declared.blame_word("rackup", &why));
    }
    *rackup = Some(file);
    Ok(())
}

/// The file of the only app, by its name, which may lead elsewhere when the next mold loads it.
fn only(named: Option<&Path>, place: &Place) -> Result<PathBuf, String> {
    let file = place.file(named.unwrap_or(Path::new(RACKUP)));
    match (file.is_file(), named) {
        (true, _) => Ok(file),
        (false, Some(file)) => {
            Err(format!("{} is not there: name your app's rackup file", file.display()))
        }
        (false, None) => Err("config.ru is not here: run oribi in your app's directory, or name \
                              the file: oribi path/to/config.ru"
            .into()),
    }
}

/// What a calling process's handler has said about itself.
#[derive(Default)]
struct Handler {
    called: bool,
    defaults: Layer,
    config_wins: bool,
}

impl Handler {
    fn from_environment() -> Handler {
        let Ok(text) = std::env::var(COMMAND) else { return Handler::default() };
        let said: Value = serde_json::from_str(&text).unwrap_or_default();
        let origin = Origin::Handler(said["handler"].as_str().unwrap_or("the handler").into());
        let pairs = said["defaults"].as_object().into_iter().flatten();
        let defaults = pairs.filter_map(|(name, value)| {
            let setting = settings::find(name)?;
            Some((setting.name, given([value.as_str()?.to_owned()], &origin)))
        });
        Handler {
            called: true,
            defaults: defaults.collect(),
            config_wins: said["config_wins"].as_bool().unwrap_or_default(),
        }
    }
}

/// The path by which the file will be found again from anywhere, after a deploy too: a `current`
/// that the shell has gone through stays in it.
fn absolute(file: &Path) -> Result<PathBuf, String> {
    let shown = file.display();
    if !file.is_file() {
        return Err(format!("{shown} is not there: name a configuration file with -C"));
    }
    let here = Place::here().map_err(|error| format!("{shown}: {error}"))?;
    Ok(here.file(file))
}
