//! Mounts as people declare them: what is said, and where.

use crate::layers::{self, Given, Layer, Origin, given};
use std::path::Path;
use wire::settings;

/// What a configuration file says.
#[derive(Debug, Default, PartialEq)]
pub struct Content {
    /// Of the server, and of all mounts that do not say otherwise.
    pub layer: Layer,
    /// Of mounts, in order.
    pub mounts: Vec<Declared>,
}

/// A mount somebody has declared.
#[derive(Clone, Debug, PartialEq)]
pub struct Declared {
    /// Where it begins.
    pub origin: Origin,
    /// What is said in it: its words and its options, with hooks under their names.
    pub said: Layer,
    /// Hooks of its own, by name and place.
    pub hooks: Vec<(String, String)>,
}

impl Declared {
    /// A rackup file at a path.
    pub fn app(origin: &Origin, path: &str, rackup: &Path) -> Declared {
        let mut declared = Declared { origin: origin.clone(), said: Layer::new(), hooks: vec![] };
        declared.say("path", path);
        declared.say("rackup", &rackup.to_string_lossy());
        declared
    }

    /// Reads `PATH=FILE` or `HOST/PATH=FILE` of the command line, which has no way to name it: one
    /// of a host is called by both, for its path alone may well be that of another host's.
    pub fn read(text: &str) -> Result<Declared, String> {
        let refuse = || {
            format!(
                "mount: {text:?} is no mount: write --mount PATH=FILE or HOST/PATH=FILE, as in --mount /shop=shop/config.ru"
            )
        };
        let (place, file) = text.split_once('=').ok_or_else(refuse)?;
        let slash = place.find('/').filter(|_| !file.is_empty()).ok_or_else(refuse)?;
        let (host, path) = place.split_at(slash);
        let mut declared = Declared::app(&Origin::CommandLine, path, Path::new(file));
        if !host.is_empty() {
            declared.say("host", host);
            declared.say("name", place.trim_end_matches('/'));
        }
        Ok(declared)
    }

    fn say(&mut self, word: &'static str, text: &str) {
        self.said.insert(word, given([text.into()], &self.origin));
    }

    /// What is said about this, if anything is.
    pub fn word(&self, name: &str) -> Option<&Given> {
        self.said.get(name).and_then(|values| values.last())
    }

    /// All that is said about this.
    pub fn words(&self, name: &str) -> impl Iterator<Item = &Given> {
        self.said.get(name).into_iter().flatten()
    }

    /// Its path as it is written, for messages.
    pub fn shown(&self) -> &str {
        self.word("path").map_or("", |path| &path.text)
    }

    /// A line about the whole of it.
    pub fn blame(&self, why: &str) -> String {
        let whole = Given { text: String::new(), origin: self.origin.clone() };
        whole.blame(&format!("mount {}: {why}", self.shown()))
    }

    /// A line about one of its words, or about the whole where that is not said.
    pub fn blame_word(&self, name: &str, why: &str) -> String {
        match self.word(name) {
            Some(given) => given.blame(&format!("mount {}: {why}", self.shown())),
            None => self.blame(why),
        }
    }

    /// Whether each value is one that may be said there.
    pub fn check(&self) -> Result<(), String> {
        for (name, values) in &self.said {
            let setting = settings::find_in_mount(name)
                .ok_or_else(|| self.blame_word(name, &format!("no option {name}")))?;
            values.iter().try_for_each(|given| layers::check_one(setting, given))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_declares_path_host_and_file() {
        let read = |text: &str| {
            let read = Declared::read(text).unwrap();
            ["host", "path", "rackup", "name"]
                .map(|word| read.word(word).map_or("-", |w| &w.text).to_owned())
        };
        assert_eq!(read("/shop=shop.ru"), ["-", "/shop", "shop.ru", "-"]);
        assert_eq!(read("/=a=b.ru"), ["-", "/", "a=b.ru", "-"]);
        assert_eq!(read("*.example/a=a.ru"), ["*.example", "/a", "a.ru", "*.example/a"]);
        assert_eq!(read("a.example/=a.ru"), ["a.example", "/", "a.ru", "a.example"]);
        for wrong in ["", "/shop", "shop=shop.ru", "/shop=", "=a.ru"] {
            let error = Declared::read(wrong).unwrap_err();
            assert!(error.starts_with(&format!("mount: {wrong:?} is no mount")), "{error}");
        }
    }
}
