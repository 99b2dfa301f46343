//! What the front is told to do: the settings that are its own.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;

/// The server's settings, as `wire::settings` describes them. A zero means no limit, a zero
/// duration for ever, unless said otherwise.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Options {
    /// Longest request target in bytes.
    pub uri_limit: usize,
    /// Longest request head in bytes.
    pub head_limit: usize,
    /// Most header lines of a request.
    pub header_count: usize,
    /// How long a new connection may stay silent.
    pub first_byte_timeout: Duration,
    /// How long a request's head may take.
    pub head_timeout: Duration,
    /// How long a client may pause within a request's body.
    pub body_timeout: Duration,
    /// How long a connection is kept for the next request.
    pub keep_alive_timeout: Duration,
    /// How long a client may take nothing of a reply.
    pub write_timeout: Duration,
    /// How long a client that has closed its sending side is still answered; zero: not at all.
    pub half_close_timeout: Duration,
    /// Most connections of a listener.
    pub connections: usize,
    /// Most connections of one client address.
    pub connections_per_peer: usize,
    /// Networks whose word is taken, as `wire::settings::network` reads them, or `unix`.
    pub trusted_proxies: Vec<String>,
    /// The header trusted proxies set: `x-forwarded`, `forwarded` or `none`.
    pub forwarded: String,
    /// Whether connections of trusted proxies begin with a PROXY header.
    pub proxy_protocol: bool,
    /// Where bodies too large for memory lie.
    pub spool_dir: PathBuf,
    /// Where requests are logged, if anywhere.
    pub access_log: Option<PathBuf>,
    /// `common`, `combined`, `json` or `ltsv`.
    pub access_log_format: String,
}

/// The settings of a mount. Zeroes as above.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MountOptions {
    /// How long a request may wait in the queue.
    pub queue_timeout: Duration,
    /// Longest request body in bytes.
    pub body_limit: u64,
    /// Whether replies of unknown length are chunked; otherwise the connection's end ends them.
    pub chunked_transfer: bool,
    /// How much of a reply is put into `spool_dir` for a slow client; zero: nothing.
    pub reply_spool: u64,
    /// How long another server may take for a request. Workers are the supervisor's to look after.
    pub request_timeout: Duration,
    /// Whether a request that changes nothing is sent to a second server when the first has closed
    /// the connection instead of answering.
    pub retry_idempotent: bool,
}
