//! What requests and workers may do.

use crate::settings::{Fallback, Kind, OF_MOUNT, Setting};

pub(super) const REQUESTS: &[Setting] = &[
    Setting {
        name: "queue_timeout",
        metavar: "SECONDS",
        doc: "How long a request may wait in the queue before it is answered with 503; 0: for ever",
        kind: Kind::Seconds,
        fallback: Fallback::Fixed("0"),
        ..OF_MOUNT
    },
    Setting {
        name: "request_timeout",
        metavar: "SECONDS",
        doc: "How long a request may run before it is answered with 504 and its worker replaced; the app can extend it; 0: for ever",
        kind: Kind::Seconds,
        fallback: Fallback::Fixed("0"),
        ..OF_MOUNT
    },
    Setting {
        name: "request_timeout_soft",
        metavar: "SECONDS",
        doc: "How long a request may run before its backtrace is logged; 0: it is not",
        kind: Kind::Seconds,
        fallback: Fallback::Fixed("0"),
        ..OF_MOUNT
    },
    Setting {
        name: "retry_idempotent",
        metavar: "BOOL",
        doc: "Run a GET, HEAD or OPTIONS request again when its worker died before replying",
        kind: Kind::Flag,
        fallback: Fallback::Fixed("false"),
        ..OF_MOUNT
    },
    Setting {
        name: "early_hints",
        metavar: "BOOL",
        doc: "Let the app send 103 Early Hints, which proxies of HTTP/1.1 may not understand",
        kind: Kind::Flag,
        fallback: Fallback::Fixed("false"),
        ..OF_MOUNT
    },
    Setting {
        name: "chunked_transfer",
        metavar: "BOOL",
        doc: "Send replies of unknown length in chunks; otherwise the end of the connection ends them",
        kind: Kind::Flag,
        fallback: Fallback::Fixed("true"),
        ..OF_MOUNT
    },
];

pub(super) const RECYCLING: &[Setting] = &[
    Setting {
        name: "max_requests",
        also: &["max_request_per_child"],
        doc: "Requests after which a worker is replaced; 0: never",
        kind: Kind::Count { min: 0, max: 1_000_000_000 },
        fallback: Fallback::Fixed("0"),
        ..OF_MOUNT
    },
    Setting {
        name: "min_requests",
        also: &["min_request_per_child"],
        doc: "With this each worker is replaced after a random number of requests between it and max_requests",
        kind: Kind::Count { min: 0, max: 1_000_000_000 },
        fallback: Fallback::Fixed("0"),
        ..OF_MOUNT
    },
    Setting {
        name: "max_rss",
        metavar: "BYTES",
        doc: "Resident memory beyond which a worker is replaced; 0: no limit",
        kind: Kind::Bytes,
        fallback: Fallback::Fixed("0"),
        ..OF_MOUNT
    },
    Setting {
        name: "max_pss",
        metavar: "BYTES",
        doc: "The same for its proportional share of memory (PSS); 0: no limit",
        kind: Kind::Bytes,
        fallback: Fallback::Fixed("0"),
        ..OF_MOUNT
    },
    Setting {
        name: "max_age",
        metavar: "SECONDS",
        doc: "Age at which a worker is replaced, less up to a tenth; 0: none",
        kind: Kind::Seconds,
        fallback: Fallback::Fixed("0"),
        ..OF_MOUNT
    },
];

pub(super) const COLLECTING: &[Setting] = &[
    Setting {
        name: "oob_gc",
        also: &["oobgc"],
        metavar: "BOOL",
        doc: "Collect garbage between requests, out of the queue",
        kind: Kind::Flag,
        fallback: Fallback::Fixed("false"),
        ..OF_MOUNT
    },
    Setting {
        name: "max_gc_per_request",
        doc: "With oob_gc: requests after which a worker collects at the latest; 0: never",
        kind: Kind::Count { min: 0, max: 1_000_000_000 },
        fallback: Fallback::Found("when it would have to within the next request"),
        ..OF_MOUNT
    },
    Setting {
        name: "min_gc_per_request",
        doc: "With oob_gc: requests after which it may collect where max_gc_per_request is set; 0: half of that",
        kind: Kind::Count { min: 0, max: 1_000_000_000 },
        fallback: Fallback::Fixed("0"),
        ..OF_MOUNT
    },
    Setting {
        name: "oob_gc_cap",
        metavar: "BYTES",
        doc: "With oob_gc: memory not collected yet at which a worker collects however many wait",
        kind: Kind::Bytes,
        fallback: Fallback::Fixed("128m"),
        ..OF_MOUNT
    },
];

pub(super) const ISOLATION: &[Setting] = &[
    Setting {
        name: "engine",
        metavar: "ENGINE",
        doc: "Which Ruby runs the app",
        kind: Kind::Choice(&["cruby", "mruby"]),
        fallback: Fallback::Fixed("cruby"),
        ..OF_MOUNT
    },
    Setting {
        name: "isolation",
        metavar: "LEVEL",
        doc: "What requests share: an interpreter at the same time, one after the other, or none",
        kind: Kind::Choice(&["threads", "prefork", "fresh"]),
        fallback: Fallback::Found("prefork, threads with more than one thread"),
        ..OF_MOUNT
    },
    Setting {
        name: "weight",
        doc: "Share of processor time beside other mounts that want it too",
        kind: Kind::Count { min: 1, max: 10_000 },
        fallback: Fallback::Fixed("100"),
        ..OF_MOUNT
    },
    Setting {
        name: "limit_memory",
        metavar: "BYTES",
        doc: "Memory of its own a process of the app may have (RLIMIT_DATA); 0: no limit",
        kind: Kind::Bytes,
        fallback: Fallback::Fixed("0"),
        ..OF_MOUNT
    },
    Setting {
        name: "limit_cpu",
        metavar: "SECONDS",
        doc: "Processor time a worker may use in its life, whole seconds (RLIMIT_CPU); 0: no limit",
        kind: Kind::Count { min: 0, max: 1_000_000_000 },
        fallback: Fallback::Fixed("0"),
        ..OF_MOUNT
    },
    Setting {
        name: "limit_files",
        doc: "Descriptors it may have open (RLIMIT_NOFILE); 0: as it is",
        kind: Kind::Count { min: 0, max: 1_000_000_000 },
        fallback: Fallback::Fixed("0"),
        ..OF_MOUNT
    },
    Setting {
        name: "limit_processes",
        doc: "Processes and threads its user may have (RLIMIT_NPROC); 0: as it is",
        kind: Kind::Count { min: 0, max: 1_000_000_000 },
        fallback: Fallback::Fixed("0"),
        ..OF_MOUNT
    },
    Setting {
        name: "limit_file_size",
        metavar: "BYTES",
        doc: "Size of a file it may write (RLIMIT_FSIZE); 0: no limit",
        kind: Kind::Bytes,
        fallback: Fallback::Fixed("0"),
        ..OF_MOUNT
    },
];
