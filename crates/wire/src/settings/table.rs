//! Every option there is, in groups as help and documentation show them.

mod clients;
mod mounts;
mod serving;
mod workers;

pub use mounts::MOUNT_WORDS;

use super::{Fallback, Kind, Place, Scope, Setting};

/// Options that belong together.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    /// What they are about.
    pub heading: &'static str,
    /// The options.
    pub settings: &'static [Setting],
}

/// Every option there is.
pub const GROUPS: &[Group] = &[
    Group { heading: "The server", settings: serving::GENERAL },
    Group { heading: "Requests and replies", settings: workers::REQUESTS },
    Group { heading: "Isolation and shares", settings: workers::ISOLATION },
    Group { heading: "Replacing workers", settings: workers::RECYCLING },
    Group { heading: "Garbage collection", settings: workers::COLLECTING },
    Group { heading: "Stopping and restarting", settings: serving::RESTARTS },
    Group { heading: "The server as a process", settings: serving::PROCESS },
    Group { heading: "Limits of clients", settings: clients::LIMITS },
    Group { heading: "What lies in front", settings: clients::PROXIES },
    Group { heading: "Spooling", settings: clients::SPOOLING },
    Group { heading: "Logs", settings: clients::LOGS },
];

/// Every option, group after group.
pub fn all() -> impl Iterator<Item = &'static Setting> {
    GROUPS.iter().flat_map(|group| group.settings)
}

pub(super) const PLAIN: Setting = Setting {
    name: "",
    short: None,
    metavar: "N",
    also: &[],
    doc: "",
    kind: Kind::Text,
    fallback: Fallback::None,
    repeatable: false,
    place: Place::Anywhere,
    scope: Scope::Server,
};

pub(super) const OF_MOUNT: Setting = Setting { scope: Scope::Mount, ..PLAIN };
