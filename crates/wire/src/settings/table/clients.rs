//! What clients may do, and what is written down.

use crate::settings::{Fallback, Kind, OF_MOUNT, PLAIN, Setting};

pub(super) const LIMITS: &[Setting] = &[
    Setting {
        name: "uri_limit",
        metavar: "BYTES",
        doc: "Longest request target; a longer one is answered with 414",
        kind: Kind::Bytes,
        fallback: Fallback::Fixed("16k"),
        ..PLAIN
    },
    Setting {
        name: "head_limit",
        metavar: "BYTES",
        doc: "Longest request head, target and headers together; a longer one is answered with 431",
        kind: Kind::Bytes,
        fallback: Fallback::Fixed("32k"),
        ..PLAIN
    },
    Setting {
        name: "header_count",
        doc: "Most header lines of a request; more are answered with 431",
        kind: Kind::Count { min: 1, max: 1000 },
        fallback: Fallback::Fixed("100"),
        ..PLAIN
    },
    Setting {
        name: "body_limit",
        metavar: "BYTES",
        doc: "Longest request body; a longer one is answered with 413; 0: no limit",
        kind: Kind::Bytes,
        fallback: Fallback::Fixed("2g"),
        ..OF_MOUNT
    },
    Setting {
        name: "first_byte_timeout",
        metavar: "SECONDS",
        doc: "How long a new connection may stay silent before it is closed; 0: for ever",
        kind: Kind::Seconds,
        fallback: Fallback::Fixed("30"),
        ..PLAIN
    },
    Setting {
        name: "head_timeout",
        metavar: "SECONDS",
        doc: "How long a request's head may take from its first byte, else 408; 0: for ever",
        kind: Kind::Seconds,
        fallback: Fallback::Fixed("15"),
        ..PLAIN
    },
    Setting {
        name: "body_timeout",
        metavar: "SECONDS",
        doc: "How long a client may pause within a request's body, else 408; 0: for ever",
        kind: Kind::Seconds,
        fallback: Fallback::Fixed("30"),
        ..PLAIN
    },
    Setting {
        name: "timeout",
        metavar: "SECONDS",
        doc: "As in Rhebok how long a client may keep one waiting: first_byte_timeout, \
              head_timeout, body_timeout and write_timeout at once. For the time the app may \
              take see request_timeout",
        kind: Kind::Seconds,
        ..PLAIN
    },
    Setting {
        name: "keep_alive_timeout",
        metavar: "SECONDS",
        doc: "How long a connection is kept for the next request; 0: for ever",
        kind: Kind::Seconds,
        fallback: Fallback::Fixed("75"),
        ..PLAIN
    },
    Setting {
        name: "write_timeout",
        metavar: "SECONDS",
        doc: "How long a client may take nothing of a reply before it is cut off; 0: for ever",
        kind: Kind::Seconds,
        fallback: Fallback::Fixed("60"),
        ..PLAIN
    },
    Setting {
        name: "half_close_timeout",
        metavar: "SECONDS",
        doc: "How long a client that has closed its sending side is still answered while its \
              request waits in the queue or its reply stands still; 0: not at all",
        kind: Kind::Seconds,
        fallback: Fallback::Fixed("5"),
        ..PLAIN
    },
    Setting {
        name: "connections",
        doc: "Most connections of a listener at once; more are answered with 503; 0: no limit",
        kind: Kind::Count { min: 0, max: 1_000_000 },
        fallback: Fallback::Fixed("0"),
        ..PLAIN
    },
    Setting {
        name: "connections_per_peer",
        doc: "Most connections of one client address at once; more are answered with 429; 0: no \
              limit",
        kind: Kind::Count { min: 0, max: 1_000_000 },
        fallback: Fallback::Fixed("0"),
        ..PLAIN
    },
];

pub(super) const PROXIES: &[Setting] = &[
    Setting {
        name: "trusted_proxies",
        metavar: "NETWORK",
        doc: "Believe what clients of this network (or unix) say of whom they speak for; may be \
              given several times",
        kind: Kind::Network,
        repeatable: true,
        ..PLAIN
    },
    Setting {
        name: "forwarded",
        metavar: "HEADER",
        doc: "The header trusted proxies set",
        kind: Kind::Choice(&["x-forwarded", "forwarded", "none"]),
        fallback: Fallback::Fixed("x-forwarded"),
        ..PLAIN
    },
    Setting {
        name: "proxy_protocol",
        metavar: "BOOL",
        doc: "Connections of trusted proxies begin with a PROXY header (version 1 or 2)",
        kind: Kind::Flag,
        fallback: Fallback::Fixed("false"),
        ..PLAIN
    },
];

pub(super) const SPOOLING: &[Setting] = &[
    Setting {
        name: "spool_dir",
        metavar: "PATH",
        doc: "Directory on a disk for request bodies and replies too large for memory",
        kind: Kind::Path,
        fallback: Fallback::Fixed("/var/tmp"),
        ..PLAIN
    },
    Setting {
        name: "reply_spool",
        metavar: "BYTES",
        doc: "How much of a reply is put on disk for a slow client, so that its worker is free; \
              0: nothing",
        kind: Kind::Bytes,
        fallback: Fallback::Fixed("1g"),
        ..OF_MOUNT
    },
];

pub(super) const LOGS: &[Setting] = &[
    Setting {
        name: "access_log",
        metavar: "FILE",
        doc: "Log requests to this file, or to stdout or stderr",
        kind: Kind::Path,
        ..PLAIN
    },
    Setting {
        name: "access_log_format",
        metavar: "FORMAT",
        doc: "Form of the access log's lines",
        kind: Kind::Choice(&["common", "combined", "json", "ltsv"]),
        fallback: Fallback::Fixed("combined"),
        ..PLAIN
    },
    Setting {
        name: "error_log",
        metavar: "FILE",
        doc: "Log errors to this file, or to stdout or stderr",
        kind: Kind::Path,
        fallback: Fallback::Fixed("stderr"),
        ..PLAIN
    },
    Setting {
        name: "error_log_format",
        metavar: "FORMAT",
        doc: "Form of the error log's lines",
        kind: Kind::Choice(&["text", "json"]),
        fallback: Fallback::Fixed("text"),
        ..PLAIN
    },
];
