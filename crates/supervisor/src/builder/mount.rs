//! A mount as the embedding program says it, and as the supervisor wants it.

use super::no_option;
use crate::declared::Declared;
use crate::layers::{Layer, Origin, given};
#[cfg(feature = "mruby")]
use crate::options;
use std::fmt;
use std::path::PathBuf;
use wire::settings;

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
    /// None: its source is in the executable.
    rackup: Option<PathBuf>,
    said: Vec<(String, Vec<String>)>,
    #[cfg(feature = "mruby")]
    pub(super) own: super::mruby::Own,
}

impl Mount {
    /// A rackup file, served by CRuby, the usual Ruby, which must be installed. `path` is where in
    /// the URL space the app lies: `/` or `/shop`. Relative file names start at the program's working
    /// directory.
    pub fn cruby(rackup: impl Into<PathBuf>, path: &str) -> Mount {
        Mount::new(Some(rackup.into()), path).set("engine", "cruby")
    }

    pub(super) fn new(rackup: Option<PathBuf>, path: &str) -> Mount {
        Mount {
            path: path.into(),
            name: None,
            hosts: Vec::new(),
            rackup,
            said: Vec::new(),
            #[cfg(feature = "mruby")]
            own: Default::default(),
        }
    }

    /// What commands such as `oribi restart NAME` and log lines call it, instead of its path.
    pub fn name(mut self, name: &str) -> Mount {
        self.name = Some(name.into());
        self
    }

    /// Only for this host; `*.example` is every subdomain. Called again, for that too.
    pub fn host(mut self, host: &str) -> Mount {
        self.hosts.push(host.into());
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

impl Mount {
    /// Its name, or what it is called without one.
    #[cfg(feature = "mruby")]
    pub(super) fn known_as(&self) -> String {
        let by_path = || options::name_of(self.path.trim_end_matches('/'));
        self.name.clone().unwrap_or_else(by_path)
    }

    /// False: its rackup source is in the executable.
    pub(super) fn is_file(&self) -> bool {
        self.rackup.is_some()
    }

    /// As other sources of settings declare one.
    pub(super) fn declare(&self) -> Result<Declared, String> {
        let mut said = Layer::new();
        let mut say = |name: &str, values: Vec<String>| {
            let setting = settings::find_in_mount(name).ok_or_else(|| {
                let why = match settings::find(name) {
                    Some(_) => format!("{name} is an option of the server: say it to the Builder"),
                    None => no_option(name),
                };
                format!("mount {}: {why}", self.path)
            })?;
            said.insert(setting.name, given(values, &Origin::Program));
            Ok::<_, String>(())
        };
        say("path", vec![self.path.clone()])?;
        if let Some(name) = &self.name {
            say("name", vec![name.clone()])?;
        }
        if !self.hosts.is_empty() {
            say("host", self.hosts.clone())?;
        }
        if let Some(file) = &self.rackup {
            say("rackup", vec![file.to_string_lossy().into_owned()])?;
        }
        for (name, values) in &self.said {
            say(name, values.clone())?;
        }
        Ok(Declared { origin: Origin::Program, said, hooks: Vec::new() })
    }
}
