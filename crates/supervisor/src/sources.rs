//! Where settings come from: the command line, the configuration file it names, and a handler that
//! has defaults of its own (`-s Rhebok`).

use crate::layers::{Layer, Origin, given, merge};
use crate::place::Place;
use crate::ruby::Ruby;
use crate::spawn::COMMAND;
use serde_json::Value;
use std::path::{Path, PathBuf};
use wire::settings;

/// All that has been said.
pub struct Sources {
    /// The first one wins.
    pub layers: Vec<Layer>,
    /// The configuration file, by its whole path.
    pub config: Option<PathBuf>,
}

impl Sources {
    /// What the command line says, and what it leads to.
    pub fn read(mut line: Layer, ruby: &Ruby) -> Result<Sources, String> {
        let named = line.remove("config").and_then(|mut files| files.pop());
        let config = named.map(|given| absolute(Path::new(&given.text))).transpose()?;
        let file = config.as_deref().map(|file| ruby.configuration(file)).transpose()?;
        let handler = Handler::from_environment();
        let mut layers = match file {
            Some(file) if handler.config_wins => vec![merge(file, line)],
            Some(file) => vec![line, file],
            None if handler.called => vec![merge(line, Layer::new())],
            None => vec![line],
        };
        layers.push(handler.defaults);
        Ok(Sources { layers, config })
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
