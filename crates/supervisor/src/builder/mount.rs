//! A mount as the embedding program says it, and as the supervisor wants it.

use super::{Error, read_layer};
use crate::layers::{Layer, Said};
use crate::options::{self, Serves};
use crate::place::Place;
use std::fmt;
use std::path::PathBuf;
use wire::settings::{self, Scope};

/// What the requests of an app share; docs/isolation.md says what each level promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Isolation {
    /// An interpreter, `0` requests of which run at the same time. CRuby only.
    Threads(u16),
    /// An interpreter, one request after the other.
    Prefork {
        /// Another interpreter after exactly so many; 0: never.
        max_requests: u32,
    },
    /// Nothing: each request has an interpreter that no other has used.
    Fresh,
}

/// An app under a path.
///
/// ```
/// use oribi::{Isolation, Mount};
///
/// let shop = Mount::cruby("shop/config.ru", "/shop")
///     .host("shop.example")
///     .isolation(Isolation::Prefork { max_requests: 1000 })
///     .workers(4)
///     .set("request_timeout", 10);
/// ```
pub struct Mount {
    path: String,
    name: Option<String>,
    hosts: Vec<String>,
    app: App,
    said: Vec<(String, Vec<String>)>,
}

/// Where an app comes from.
enum App {
    File(PathBuf),
}

impl Mount {
    /// A rackup file, served by CRuby, the usual Ruby, which must be installed. `path` is where in
    /// the URL space the app lies: `/` or `/shop`. Relative file names start at the program's working
    /// directory.
    pub fn cruby(rackup: impl Into<PathBuf>, path: &str) -> Mount {
        Mount::new(App::File(rackup.into()), path).set("engine", "cruby")
    }

    fn new(app: App, path: &str) -> Mount {
        Mount { path: path.into(), name: None, hosts: Vec::new(), app, said: Vec::new() }
    }

    /// What commands such as `oribi restart NAME` and log lines call it, instead of its path.
    pub fn name(mut self, name: &str) -> Mount {
        self.name = Some(name.into());
        self
    }

    /// Only for this host; `*.example` is every subdomain. Called again, for that too.
    pub fn host(mut self, host: &str) -> Mount {
        self.hosts.push(host.to_ascii_lowercase());
        self
    }

    /// How much its requests are kept from each other.
    pub fn isolation(self, level: Isolation) -> Mount {
        match level {
            Isolation::Threads(count) => self.set("isolation", "threads").set("threads", count),
            Isolation::Prefork { max_requests } => {
                self.set("isolation", "prefork").set("max_requests", max_requests)
            }
            Isolation::Fresh => self.set("isolation", "fresh"),
        }
    }

    /// So many workers.
    pub fn workers(self, count: u16) -> Mount {
        self.set("workers", count)
    }

    /// Sets an option that mounts may have by its name, such as `("weight", 300)`. The last call
    /// wins, also over what [`Builder::set`](super::Builder::set) says for all.
    pub fn set(mut self, option: &str, value: impl fmt::Display) -> Mount {
        self.said.retain(|(name, _)| name != option);
        self.said.push((option.into(), vec![value.to_string()]));
        self
    }
}

/// The mounts as the supervisor wants them; `common` is what holds for all that do not say otherwise.
pub(super) fn read(mounts: Vec<Mount>, common: &Layer) -> Result<Vec<options::Mount>, Error> {
    if mounts.is_empty() {
        return Err(Error::Mount("no mount: what is to be served? See Builder::add_mount".into()));
    }
    let mounts = mounts.into_iter().map(|mount| mount.read(common));
    let mounts = mounts.collect::<Result<Vec<_>, _>>()?;
    for (index, mount) in mounts.iter().enumerate() {
        let others = &mounts[..index];
        if others.iter().any(|other| (&other.path, &other.hosts) == (&mount.path, &mount.hosts)) {
            let shown = if mount.path.is_empty() { "/" } else { &mount.path };
            return Err(Error::Mount(format!("two mounts at {shown}: leave one out")));
        }
        if others.iter().any(|other| other.name == mount.name) {
            let name = &mount.name;
            let line =
                format!("two mounts with the name {name}: give one another with Mount::name");
            return Err(Error::Mount(line));
        }
    }
    Ok(mounts)
}

impl Mount {
    fn read(self, common: &Layer) -> Result<options::Mount, Error> {
        let path = self.path.strip_suffix('/').unwrap_or(&self.path);
        let usual = |c: char| c.is_ascii_graphic() && !"?#%".contains(c);
        let begins = path.is_empty() || path.starts_with('/');
        if self.path.is_empty() || !begins || path.contains("//") || !path.chars().all(usual) {
            return Err(Error::Mount(format!("mount {:?} is not a path such as /app", self.path)));
        }
        let blame = |line: String| Error::Setting(format!("mount {}: {line}", self.path));
        let said = read_layer(&self.said).map_err(blame)?;
        if let Some(name) = said.keys().find(|name| !is_of_mount(name)) {
            return Err(blame(format!("{name} is an option of the server: say it to the Builder")));
        }
        let serves = match &self.app {
            App::File(rackup) => Serves::App { rackup: Some(rackup.clone()) },
        };
        let layers = [said, common.clone()];
        let mount = options::Mount::of(&Said(&layers), serves).map_err(blame)?;
        let name = self.name.unwrap_or_else(|| options::name_of(path));
        Ok(options::Mount { name, hosts: self.hosts, path: path.into(), ..mount })
    }
}

fn is_of_mount(name: &str) -> bool {
    settings::find(name).is_some_and(|setting| setting.scope == Scope::Mount)
}

/// The app's file by its whole name.
pub(super) fn find_rackup(mount: &mut options::Mount, place: &Place) -> Result<(), String> {
    let Serves::App { rackup: Some(rackup) } = &mut mount.serves else { return Ok(()) };
    *rackup = place.file(rackup);
    match rackup.is_file() {
        true => Ok(()),
        false => Err(format!("{} is not there: name a rackup file", rackup.display())),
    }
}
