//! What is said of a mount and of nothing else.

use crate::settings::{Fallback, Kind, OF_MOUNT, Setting};

/// The words that only a mount has. `host` and `path` are not those of the listeners.
pub const MOUNT_WORDS: &[Setting] = &[
    Setting {
        name: "path",
        metavar: "PATH",
        doc: "Path under which it lies, such as /shop; / is what no other mount has",
        ..OF_MOUNT
    },
    Setting {
        name: "host",
        metavar: "HOST",
        doc: "Host it answers for; *.example is every subdomain; may be a list; unsaid: any",
        repeatable: true,
        ..OF_MOUNT
    },
    Setting {
        name: "name",
        metavar: "NAME",
        doc: "What commands and log lines call it",
        fallback: Fallback::Found("the path without its first slash"),
        ..OF_MOUNT
    },
    Setting {
        name: "rackup",
        metavar: "FILE",
        doc: "Rackup file of its app, seen from chdir",
        kind: Kind::Path,
        fallback: Fallback::Found("config.ru"),
        ..OF_MOUNT
    },
    Setting {
        name: "proxy",
        metavar: "SOCKET",
        doc: "Server that it passes requests on to, unix:PATH or HOST:PORT; may be a list",
        kind: Kind::Socket,
        repeatable: true,
        ..OF_MOUNT
    },
    Setting {
        name: "max",
        doc: "With proxy: requests that each of these servers gets at once",
        kind: Kind::Count { min: 1, max: 1024 },
        fallback: Fallback::Fixed("1"),
        ..OF_MOUNT
    },
];
