//! What people have said about the options, by source, and which source wins.

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZero;
use std::time::Duration;
use wire::settings::{self, Address, Fallback, SEATS_PER_GENERATION, Setting, Socket, Value};

/// Who has said something.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// The command line, or whoever called the handler.
    CommandLine,
    /// A line of the configuration file: `FILE:LINE`.
    Line(String),
    /// A program that the server is a part of.
    Program,
    /// A handler that has defaults of its own, by its name.
    Handler(String),
    /// This variable of the environment.
    Variable(&'static str),
    /// Nobody.
    Default,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Origin::CommandLine => f.write_str("command line"),
            Origin::Line(place) => f.write_str(place),
            Origin::Program => f.write_str("the program"),
            Origin::Handler(name) => write!(f, "default of {name}"),
            Origin::Variable(name) => f.write_str(name),
            Origin::Default => f.write_str("default"),
        }
    }
}

/// A value as somebody has written it.
#[derive(Clone, Debug, PartialEq)]
pub struct Given {
    /// Unchecked.
    pub text: String,
    /// By whom.
    pub origin: Origin,
}

impl Given {
    /// What is wrong with it begins with its place, if it has one.
    pub fn blame(&self, why: &str) -> String {
        match &self.origin {
            Origin::Line(place) => format!("{place}: {why}"),
            Origin::Handler(_) => format!("{}: {why}", self.origin),
            _ => why.into(),
        }
    }

    fn check(&self, setting: &Setting) -> Result<Value, String> {
        setting.check(&self.text).map_err(|why| self.blame(&why))
    }
}

/// What one source says: values by option.
pub type Layer = BTreeMap<&'static str, Vec<Given>>;

/// These values, said by one source.
pub fn given(texts: impl IntoIterator<Item = String>, origin: &Origin) -> Vec<Given> {
    texts.into_iter().map(|text| Given { text, origin: origin.clone() }).collect()
}

/// What `strong` says, and what only `weak` says. A socket's path or a whole address in either
/// leaves no meaning to a host and a port.
pub fn merge(strong: Layer, weak: Layer) -> Layer {
    let mut merged = weak;
    merged.extend(strong);
    if merged.contains_key("bind") || merged.contains_key("path") {
        merged.remove("host");
        merged.remove("port");
    }
    merged
}

/// What the layers say, option by option; where they say nothing, its fallback.
#[derive(Clone, Copy)]
pub struct Said<'a>(pub &'a [Layer]);

impl Said<'_> {
    /// The values of the first layer that has any, or the fallback's. None: there is no value.
    pub fn all(&self, setting: &Setting) -> Vec<Given> {
        if let Some(said) = self.said(setting.name) {
            return said.to_vec();
        }
        fallback(setting).into_iter().collect()
    }

    /// `timeout` is short for several, but who names one of them means it.
    fn said(&self, name: &str) -> Option<&[Given]> {
        const SHORT: &[&str] =
            &["first_byte_timeout", "head_timeout", "body_timeout", "write_timeout"];
        let short = if SHORT.contains(&name) { "timeout" } else { name };
        let said = self.0.iter().find_map(|layer| layer.get(name).or_else(|| layer.get(short)));
        said.map(Vec::as_slice).filter(|values| !values.is_empty())
    }

    fn value(&self, name: &str) -> Result<Value, String> {
        let setting = settings::find(name).ok_or_else(|| format!("no option {name}"))?;
        match self.all(setting).last() {
            Some(given) => given.check(setting),
            None => setting.check(""),
        }
    }

    /// What somebody has said last.
    pub fn given(&self, name: &str) -> Option<&Given> {
        self.said(name).and_then(|values| values.last())
    }

    /// True: somebody has said something.
    pub fn is_said(&self, name: &str) -> bool {
        self.said(name).is_some()
    }

    /// Text, if there is any.
    pub fn maybe(&self, name: &str) -> Result<Option<String>, String> {
        self.is_said(name).then(|| self.text(name)).transpose()
    }

    /// A whole number.
    pub fn count(&self, name: &str) -> Result<u32, String> {
        match self.value(name)? {
            Value::Count(n) => Ok(n),
            other => Err(format!("{name}: {other:?} is not a number")),
        }
    }

    /// Text.
    pub fn text(&self, name: &str) -> Result<String, String> {
        match self.value(name)? {
            Value::Text(text) => Ok(text),
            other => Err(format!("{name}: {other:?} is no text")),
        }
    }

    /// A number of bytes.
    pub fn bytes(&self, name: &str) -> Result<u64, String> {
        match self.value(name)? {
            Value::Bytes(count) => Ok(count),
            other => Err(format!("{name}: {other:?} is no number of bytes")),
        }
    }

    /// A duration.
    pub fn seconds(&self, name: &str) -> Result<Duration, String> {
        match self.value(name)? {
            Value::Seconds(seconds) => Ok(Duration::from_secs_f64(seconds)),
            other => Err(format!("{name}: {other:?} is no duration")),
        }
    }

    /// On or off.
    pub fn flag(&self, name: &str) -> Result<bool, String> {
        Ok(self.value(name)? == Value::Flag(true))
    }

    /// All values of an option that may be given several times.
    pub fn list(&self, name: &str) -> Result<Vec<String>, String> {
        let setting = settings::find(name).ok_or_else(|| format!("no option {name}"))?;
        let said = self.said(name).unwrap_or_default();
        said.iter().map(|given| given.check(setting).map(|_| given.text.clone())).collect()
    }

    /// The path under which a server's only app lies. It begins with a slash and does not end with
    /// one, unless it is `/`, which is everything; empty: a web server may say it.
    pub fn prefix(&self) -> Result<String, String> {
        let Some(text) = self.maybe("prefix")? else { return Ok(String::new()) };
        let usual = |c: char| c.is_ascii_graphic() && !"?#%".contains(c);
        let right = text.starts_with('/') && !text.contains("//") && text.chars().all(usual);
        match right {
            true if text == "/" => Ok(text),
            true => Ok(text.trim_end_matches('/').into()),
            false => Err(format!("prefix: {text:?} is not a path such as /app")),
        }
    }

    /// Where to listen, and who says so. The first layer that names whole addresses has named them
    /// all; a host and a port complete each other across layers, as long as none stronger has
    /// named an address.
    pub fn binds(&self) -> Result<Vec<(Address, Origin)>, String> {
        let (mut host, mut port) = (None, None);
        for layer in self.0 {
            let mut binds = whole_addresses(layer)?;
            let half = |name| layer.get(name).and_then(|all: &Vec<Given>| all.last());
            if !binds.is_empty() && host.is_none() && port.is_none() {
                binds.extend(tcp(half("host"), half("port"))?);
                return Ok(binds);
            }
            if !binds.is_empty() {
                break;
            }
            host = host.or(half("host"));
            port = port.or(half("port"));
        }
        if let Some(bind) = tcp(host, port)? {
            return Ok(vec![bind]);
        }
        let bind = settings::find("bind").and_then(fallback).ok_or("no option bind")?;
        Ok(vec![(Address::parse(&bind.text)?, Origin::Default)])
    }
}

fn whole_addresses(layer: &Layer) -> Result<Vec<(Address, Origin)>, String> {
    let mut binds = Vec::new();
    for name in ["bind", "path"] {
        let setting = settings::find(name).ok_or_else(|| format!("no option {name}"))?;
        for given in layer.get(name).into_iter().flatten() {
            given.check(setting)?;
            let address = match name {
                "path" => Address::http(Socket::Unix(given.text.clone())),
                _ => Address::parse(&given.text)?,
            };
            binds.push((address, given.origin.clone()));
        }
    }
    Ok(binds)
}

/// The address that a host and a port make.
fn tcp(host: Option<&Given>, port: Option<&Given>) -> Result<Option<(Address, Origin)>, String> {
    let Some(origin) = port.or(host).map(|given| given.origin.clone()) else { return Ok(None) };
    let value = |name: &str, given: Option<&Given>| {
        let setting = settings::find(name).ok_or_else(|| format!("no option {name}"))?;
        given.map(|given| given.check(setting)).transpose()
    };
    let port = match value("port", port)? {
        Some(Value::Count(port)) => port as u16,
        _ => 9292,
    };
    let host = match value("host", host)? {
        Some(Value::Text(host)) => host,
        _ => "127.0.0.1".into(),
    };
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(&host);
    Ok(Some((Address::http(Socket::Tcp(host.into(), port)), origin)))
}

fn fallback(setting: &Setting) -> Option<Given> {
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    let found = |text: String| Some(Given { text, origin: Origin::Default });
    match (setting.fallback, setting.name) {
        (Fallback::Fixed(text), _) => found(text.into()),
        (_, "workers") => found(cores.clamp(2, SEATS_PER_GENERATION as usize).to_string()),
        (_, "front_threads") => found((cores / 4).clamp(1, wire::FRONTS).to_string()),
        (_, "environment") => match std::env::var("RACK_ENV") {
            Ok(text) if !text.is_empty() => {
                Some(Given { text, origin: Origin::Variable("RACK_ENV") })
            }
            _ => found("development".into()),
        },
        _ => None,
    }
}

/// Whether each value is one that its option may have, also where another one wins over it.
pub fn check(layers: &[Layer]) -> Result<(), String> {
    for (name, values) in layers.iter().flatten() {
        let setting = settings::find(name).ok_or_else(|| format!("no option {name}"))?;
        values.iter().try_for_each(|given| check_one(setting, given))?;
    }
    Ok(())
}

/// Whether a value is one that its option may have.
pub fn check_one(setting: &Setting, given: &Given) -> Result<(), String> {
    given.check(setting).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layer(pairs: &[(&'static str, &[&str])]) -> Layer {
        let said = |values: &[&str]| {
            given(values.iter().map(ToString::to_string), &Origin::Line("a.rb:1".into()))
        };
        pairs.iter().map(|(name, values)| (*name, said(values))).collect()
    }

    fn binds(layers: &[Layer]) -> Vec<String> {
        let binds = Said(layers).binds().unwrap();
        binds.into_iter().map(|(address, _)| address.to_string()).collect()
    }

    #[test]
    fn host_and_port_complete_each_other_until_somebody_names_an_address() {
        let host = layer(&[("host", &["[::1]"])]);
        let port = layer(&[("port", &["80"])]);
        let path = layer(&[("path", &["/a"]), ("port", &["81"])]);
        assert_eq!(binds(&[host.clone(), port.clone()]), ["tcp://[::1]:80"]);
        assert_eq!(binds(&[port.clone(), path.clone(), host.clone()]), ["tcp://127.0.0.1:80"]);
        assert_eq!(binds(&[path.clone(), host.clone()]), ["unix:///a", "tcp://127.0.0.1:81"]);
        assert_eq!(binds(std::slice::from_ref(&host)), ["tcp://[::1]:9292"]);
        assert_eq!(binds(&[merge(host, path)]), ["unix:///a"]);
        assert_eq!(binds(&[]), ["tcp://127.0.0.1:9292"]);
    }

    #[test]
    fn one_timeout_is_short_for_several_in_its_own_layer_and_below() {
        let strong = layer(&[("head_timeout", &["5"])]);
        let weak = layer(&[("timeout", &["300"]), ("body_timeout", &["7"])]);
        let layers = [strong, weak];
        let seconds = |name| Said(&layers).seconds(name).unwrap().as_secs();
        assert_eq!([seconds("head_timeout"), seconds("body_timeout")], [5, 7]);
        assert_eq!([seconds("write_timeout"), seconds("first_byte_timeout")], [300, 300]);
        assert_eq!(seconds("keep_alive_timeout"), 75);
    }

    #[test]
    fn what_is_wrong_is_blamed_on_its_line() {
        let layers = [layer(&[("workers", &["many"]), ("bind", &["x"]), ("port", &["1"])])];
        let said = Said(&layers);
        let error = said.count("workers").unwrap_err();
        assert_eq!(check(&layers).unwrap_err(), said.binds().unwrap_err());
        assert_eq!(error, "a.rb:1: workers: \"many\" is not a number from 1 to 512");
        assert!(said.binds().unwrap_err().starts_with("a.rb:1: bind: \"x\" is no address"));
    }
}
