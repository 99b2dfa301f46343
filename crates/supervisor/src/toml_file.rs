//! A configuration file in TOML: for machines without Ruby, and for programs that write such files.
//! The names are the options'; each `[[mount]]` is a mount.

use crate::declared::{Content, Declared};
use crate::layers::{Given, Layer, Origin};
use std::path::Path;
use toml::Spanned;
use toml::de::{DeTable, DeValue};
use wire::settings::{self, Kind, MOUNT_WORDS, Place, Scope, Setting};

/// Below this two names are not alike.
const ALIKE: f64 = 0.8;

/// Reads the file. What is wrong with it begins with its name and the line.
pub fn read(file: &Path) -> Result<Content, String> {
    let shown = file.display();
    let text = std::fs::read_to_string(file)
        .map_err(|error| format!("{shown}: {error}: name a configuration file with -C"))?;
    Reader { file: shown.to_string(), text: &text }.content()
}

struct Reader<'a> {
    file: String,
    text: &'a str,
}

type Key<'a> = Spanned<std::borrow::Cow<'a, str>>;

impl Reader<'_> {
    fn content(&self) -> Result<Content, String> {
        let table = DeTable::parse(self.text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            let why = error.message().lines().collect::<Vec<_>>().join(", ");
            format!("{}: {why}", self.place(at))
        })?;
        let mut content = Content::default();
        for (key, value) in table.into_inner() {
            match key.get_ref().as_ref() {
                "mount" => content.mounts = self.mounts(&key, value)?,
                _ => self.said(&mut content.layer, &key, &value, self.option(&key)?)?,
            }
        }
        Ok(content)
    }

    /// `FILE:LINE` of this byte.
    fn place(&self, at: usize) -> String {
        let before = &self.text.as_bytes()[..at.min(self.text.len())];
        format!("{}:{}", self.file, 1 + before.iter().filter(|byte| **byte == b'\n').count())
    }

    fn wrong<T>(&self, key: &Key, why: &str) -> Result<T, String> {
        Err(format!("{}: {why}", self.place(key.span().start)))
    }

    fn option(&self, key: &Key) -> Result<&'static Setting, String> {
        let name = key.get_ref().as_ref();
        match settings::find(name) {
            Some(setting) if setting.place == Place::Anywhere => Ok(setting),
            Some(_) => self.wrong(key, &format!("{name} can be given on the command line only")),
            None if MOUNT_WORDS.iter().any(|word| word.name == name) => {
                self.wrong(key, &format!("{name} is said of a mount: write it below [[mount]]"))
            }
            None => self.wrong(key, &unknown(name, settings::all().map(|setting| setting.name))),
        }
    }

    fn mounts(&self, key: &Key, value: Spanned<DeValue>) -> Result<Vec<Declared>, String> {
        let DeValue::Array(tables) = value.into_inner() else {
            return self.wrong(key, "mount is a list: write [[mount]] for each");
        };
        tables.into_iter().map(|table| self.mount(key, table)).collect()
    }

    fn mount(&self, key: &Key, table: Spanned<DeValue>) -> Result<Declared, String> {
        let origin = Origin::Line(self.place(table.span().start));
        let DeValue::Table(words) = table.into_inner() else {
            return self.wrong(key, "mount is a list of tables: write [[mount]] for each");
        };
        let mut said = Layer::new();
        for (key, value) in words {
            let setting = self.of_mount(&key)?;
            self.said(&mut said, &key, &value, setting)?;
        }
        Ok(Declared { origin, said, hooks: Vec::new() })
    }

    fn of_mount(&self, key: &Key) -> Result<&'static Setting, String> {
        let name = key.get_ref().as_ref();
        match (settings::find_in_mount(name), settings::find(name)) {
            (Some(setting), _) => Ok(setting),
            (None, Some(_)) => {
                self.wrong(key, &format!("{name} is the server's: write it above all mounts"))
            }
            (None, None) => {
                let options = settings::all().filter(|setting| setting.scope == Scope::Mount);
                let known = MOUNT_WORDS.iter().chain(options).map(|setting| setting.name);
                self.wrong(key, &unknown(name, known))
            }
        }
    }

    fn said(
        &self,
        layer: &mut Layer,
        key: &Key,
        value: &Spanned<DeValue>,
        setting: &'static Setting,
    ) -> Result<(), String> {
        let many = match value.get_ref() {
            DeValue::Array(values) if setting.repeatable => values.iter().collect(),
            _ => vec![value],
        };
        let given = many.into_iter().map(|value| {
            let place = self.place(value.span().start);
            match text(value.get_ref(), setting.kind) {
                Some(text) => Ok(Given { text, origin: Origin::Line(place) }),
                None => {
                    let what = value.get_ref().type_str();
                    Err(format!("{place}: {} takes no {what}", setting.name))
                }
            }
        });
        let given = given.collect::<Result<Vec<_>, String>>()?;
        match layer.insert(setting.name, given) {
            None => Ok(()),
            Some(_) => self.wrong(key, &format!("{} is said twice", setting.name)),
        }
    }
}

/// A single value as the command line would write it.
fn text(value: &DeValue, kind: Kind) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Boolean(on) => Some(on.to_string()),
        DeValue::Integer(number) => {
            let value = i128::from_str_radix(number.as_str(), number.radix()).ok()?;
            Some(if kind == Kind::Mode { format!("{value:04o}") } else { value.to_string() })
        }
        DeValue::Float(number) => {
            let value: f64 = number.as_str().parse().ok()?;
            Some(value.to_string())
        }
        DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => None,
    }
}

fn unknown(name: &str, known: impl Iterator<Item = &'static str>) -> String {
    let near = known.map(|known| (strsim::jaro_winkler(name, known), known));
    let near = near.filter(|(alike, _)| *alike > ALIKE).max_by(|a, b| a.0.total_cmp(&b.0));
    let hint = near.map_or(String::new(), |(_, known)| format!(", do you mean {known}?"));
    format!("no option {name}{hint}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(text: &str) -> Result<Content, String> {
        Reader { file: "a.toml".into(), text }.content()
    }

    #[test]
    fn values_and_their_lines() {
        let content = content(concat!(
            "workers = 3\nbind = [\n  \"unix:///a\",\n  \"tcp://[::1]:1\",\n]\n",
            "queue_timeout = 0.5\nsocket_mode = 0o660\noob_gc = true\nmax_requests = 1_000\n",
            "shutdown_timeout = 4.0\n\n[[mount]]\npath = \"/shop\"\nhost = \"shop.example\"\nthreads = 2\n\n",
            "[[mount]]\npath = \"/\"\nproxy = [\"unix:/a\", \"127.0.0.1:1\"]\n"
        ));
        let content = content.unwrap();
        let said = |layer: &Layer, name: &str| -> Vec<String> {
            layer[name].iter().map(|one| format!("{} {}", one.text, one.origin)).collect()
        };
        let top = &content.layer;
        assert_eq!(said(top, "workers"), ["3 a.toml:1"]);
        assert_eq!(said(top, "bind"), ["unix:///a a.toml:3", "tcp://[::1]:1 a.toml:4"]);
        assert_eq!(said(top, "queue_timeout"), ["0.5 a.toml:6"]);
        assert_eq!(said(top, "socket_mode"), ["0660 a.toml:7"]);
        assert_eq!(said(top, "oob_gc"), ["true a.toml:8"]);
        assert_eq!(said(top, "max_requests"), ["1000 a.toml:9"]);
        assert_eq!(said(top, "shutdown_timeout"), ["4 a.toml:10"]);
        let [shop, root] = &content.mounts[..] else { panic!("{content:?}") };
        assert_eq!(shop.origin, Origin::Line("a.toml:12".into()));
        assert_eq!(said(&shop.said, "threads"), ["2 a.toml:15"]);
        assert_eq!(said(&root.said, "proxy"), ["unix:/a a.toml:19", "127.0.0.1:1 a.toml:19"]);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        for (text, message) in [
            ("workers = 1\nwrokers = 2", "a.toml:2: no option wrokers, do you mean workers?"),
            ("\nconfig = \"a\"", "a.toml:2: config can be given on the command line only"),
            ("rackup = \"a.ru\"", "a.toml:1: rackup is said of a mount: write it below [[mount]]"),
            ("workers = [1, 2]", "a.toml:1: workers takes no array"),
            ("\n[workers]\nn = 1", "a.toml:2: workers takes no table"),
            ("bind = [\"a:1\", 1979-05-27]", "a.toml:1: bind takes no datetime"),
            ("workers = 1\nmax_workers = 2", "a.toml:1: workers is said twice"),
            ("mount = 3", "a.toml:1: mount is a list: write [[mount]] for each"),
            ("[mount]\npath = \"/\"", "a.toml:1: mount is a list: write [[mount]] for each"),
            ("mount = [3]", "a.toml:1: mount is a list of tables: write [[mount]] for each"),
            (
                "[[mount]]\nbind = \"a:1\"",
                "a.toml:2: bind is the server's: write it above all mounts",
            ),
            ("[[mount]]\n\npth = \"/\"", "a.toml:3: no option pth, do you mean path?"),
            ("workers = 1\nworkers = 2", "a.toml:2: duplicate key"),
            ("workers = 1\n[[mount", "a.toml:2: unclosed array table, expected `]]`"),
        ] {
            assert_eq!(content(text).unwrap_err(), message);
        }
    }
}
