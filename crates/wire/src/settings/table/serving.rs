//! Where and as what the server runs, and how it ends and begins anew.

use crate::settings::{Fallback, Kind, OF_MOUNT, PLAIN, Place, SEATS_PER_GENERATION, Setting};

pub(super) const GENERAL: &[Setting] = &[
    Setting {
        name: "bind",
        short: Some('b'),
        metavar: "ADDRESS",
        doc: "Listen on tcp://HOST:PORT or unix://PATH for HTTP, fastcgi://HOST:PORT or \
              fastcgi+unix://PATH for FastCGI, scgi://HOST:PORT or scgi+unix://PATH for SCGI; may \
              be given several times",
        kind: Kind::Address,
        fallback: Fallback::Fixed("tcp://127.0.0.1:9292"),
        repeatable: true,
        ..PLAIN
    },
    Setting {
        name: "port",
        short: Some('p'),
        metavar: "PORT",
        doc: "Listen on this port of 127.0.0.1 or of the host named, short for -b tcp://HOST:PORT",
        kind: Kind::Count { min: 0, max: 65535 },
        ..PLAIN
    },
    Setting {
        name: "host",
        short: Some('o'),
        metavar: "HOST",
        doc: "Listen on port 9292 of this host, or on the port named",
        ..PLAIN
    },
    Setting {
        name: "path",
        metavar: "PATH",
        doc: "Listen on this unix socket, short for -b unix://PATH",
        kind: Kind::Path,
        ..PLAIN
    },
    Setting {
        name: "workers",
        short: Some('w'),
        also: &["max_workers"],
        doc: "Worker processes",
        kind: Kind::Count { min: 1, max: SEATS_PER_GENERATION },
        fallback: Fallback::Found("as many as there are cores, at least 2"),
        ..OF_MOUNT
    },
    Setting {
        name: "threads",
        short: Some('t'),
        doc: "Threads of each worker, that is requests it runs at once",
        kind: Kind::Count { min: 1, max: 64 },
        fallback: Fallback::Fixed("1"),
        ..OF_MOUNT
    },
    Setting {
        name: "affinity",
        metavar: "AFFINITY",
        doc: "Which worker runs a request: any of them, or always the same single one, with one \
              thread, in order of arrival",
        kind: Kind::Choice(&["any", "single"]),
        fallback: Fallback::Fixed("any"),
        ..OF_MOUNT
    },
    Setting {
        name: "prefix",
        metavar: "PATH",
        doc: "Path under which the app lies, such as /app: its SCRIPT_NAME; what lies elsewhere \
              is not found. Unsaid, a web server that speaks FastCGI or SCGI says it; / means the \
              root whatever that says",
        kind: Kind::Text,
        ..PLAIN
    },
    Setting {
        name: "environment",
        short: Some('e'),
        metavar: "NAME",
        doc: "Rack environment",
        fallback: Fallback::Found("RACK_ENV, else development"),
        ..OF_MOUNT
    },
    Setting {
        name: "config",
        short: Some('C'),
        also: &["config_file"],
        metavar: "FILE",
        doc: "Configuration file in Ruby, or in TOML if it ends in .toml; the command line wins over it, but not over what it says of a mount",
        kind: Kind::Path,
        place: Place::CommandLine,
        ..PLAIN
    },
    Setting {
        name: "front_threads",
        doc: "Threads of the front, which holds the clients' connections",
        kind: Kind::Count { min: 1, max: crate::FRONTS as u32 },
        fallback: Fallback::Found("one for every four cores, at least 1"),
        ..PLAIN
    },
    Setting {
        name: "backlog",
        doc: "Connections the kernel holds for each listener until they are accepted",
        kind: Kind::Count { min: 1, max: 65535 },
        fallback: Fallback::Fixed("1024"),
        ..PLAIN
    },
    Setting {
        name: "socket_mode",
        metavar: "MODE",
        doc: "Permissions of unix sockets; otherwise as the umask says",
        kind: Kind::Mode,
        ..PLAIN
    },
    Setting {
        name: "reuse_port",
        also: &["reuseport"],
        metavar: "BOOL",
        doc: "Let other servers listen on the same TCP port (SO_REUSEPORT)",
        kind: Kind::Flag,
        fallback: Fallback::Fixed("false"),
        ..PLAIN
    },
    Setting {
        name: "defer_accept",
        metavar: "BOOL",
        doc: "Let the kernel hold back TCP connections that have sent nothing yet (TCP_DEFER_ACCEPT)",
        kind: Kind::Flag,
        fallback: Fallback::Fixed("false"),
        ..PLAIN
    },
];

pub(super) const PROCESS: &[Setting] = &[
    Setting {
        name: "control",
        metavar: "FILE",
        doc: "Unix socket that oribi status, restart and their like speak to",
        kind: Kind::Path,
        fallback: Fallback::Found("one named by the pid in the runtime directory"),
        ..PLAIN
    },
    Setting {
        name: "admin",
        metavar: "ADDRESS",
        doc: "Serve /metrics, /healthz, /readyz and /status there: unix://PATH, or tcp://HOST:PORT \
              of a loopback address",
        kind: Kind::Local,
        ..PLAIN
    },
    Setting {
        name: "pid_file",
        metavar: "FILE",
        doc: "File to write the pid into",
        kind: Kind::Path,
        ..PLAIN
    },
    Setting {
        name: "daemonize",
        short: Some('d'),
        metavar: "BOOL",
        doc: "Run in the background",
        kind: Kind::Flag,
        fallback: Fallback::Fixed("false"),
        ..PLAIN
    },
    Setting {
        name: "user",
        metavar: "NAME",
        doc: "User to run front, app and workers as, when started as root",
        kind: Kind::Text,
        ..OF_MOUNT
    },
    Setting {
        name: "group",
        metavar: "NAME",
        doc: "Group to run them as",
        kind: Kind::Text,
        fallback: Fallback::Found("the user's"),
        ..OF_MOUNT
    },
    Setting {
        name: "chdir",
        metavar: "DIRECTORY",
        doc: "Directory to go to first",
        kind: Kind::Path,
        ..OF_MOUNT
    },
    Setting {
        name: "idle_timeout",
        metavar: "SECONDS",
        doc: "End the server when no request has come for so long; 0: never",
        kind: Kind::Seconds,
        fallback: Fallback::Fixed("0"),
        ..PLAIN
    },
    Setting {
        name: "hup_action",
        metavar: "ACTION",
        doc: "What HUP does",
        kind: Kind::Choice(&["reload", "recycle", "exit"]),
        fallback: Fallback::Found("reload; exit under start_server"),
        ..PLAIN
    },
];

pub(super) const RESTARTS: &[Setting] = &[
    Setting {
        name: "shutdown_timeout",
        metavar: "SECONDS",
        doc: "How long running requests may take to finish before their worker is killed",
        kind: Kind::Seconds,
        fallback: Fallback::Fixed("30"),
        ..PLAIN
    },
    Setting {
        name: "start_timeout",
        metavar: "SECONDS",
        doc: "How long a new worker may take for its hooks and its warm-up before it is killed; \
              0: for ever",
        kind: Kind::Seconds,
        fallback: Fallback::Fixed("60"),
        ..OF_MOUNT
    },
    Setting {
        name: "warm_up",
        metavar: "PATH",
        doc: "Path that each new worker (where isolation is fresh: the mold) asks its app for before it takes requests; it must answer with 2xx or 3xx",
        kind: Kind::Text,
        ..OF_MOUNT
    },
    Setting {
        name: "rollback_window",
        metavar: "SECONDS",
        doc: "How long the workers of the old generation are kept after a restart, for a rollback; 0: not at all",
        kind: Kind::Seconds,
        fallback: Fallback::Fixed("60"),
        ..OF_MOUNT
    },
    Setting {
        name: "watch",
        metavar: "FILE",
        doc: "Restart when this file, or one that this pattern finds, changes; may be given several \
              times",
        kind: Kind::Text,
        repeatable: true,
        ..OF_MOUNT
    },
    Setting {
        name: "spawn_interval",
        metavar: "SECONDS",
        doc: "Time between two forks, and between two workers that leave after USR1",
        kind: Kind::Seconds,
        fallback: Fallback::Fixed("0"),
        ..OF_MOUNT
    },
    Setting {
        name: "err_respawn_interval",
        metavar: "SECONDS",
        doc: "How long no worker is forked after one has ended with an error",
        kind: Kind::Seconds,
        fallback: Fallback::Fixed("0"),
        ..OF_MOUNT
    },
];
