//! What a generator is asked to do. The lab sends a plan as one JSON text to the generator's
//! standard input.

use serde::{Deserialize, Serialize};

/// One run of the generator against one address.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// `tcp://HOST:PORT` or `unix://PATH`; for another door than HTTP `fastcgi://HOST:PORT`,
    /// `fastcgi+unix://PATH`, `scgi://HOST:PORT`, `scgi+unix://PATH`.
    pub to: String,
    /// What is asked. Several requests are mixed by weight: shuffled blocks in which each request
    /// occurs exactly as often as its weight says, divided by the greatest common divisor.
    pub requests: Vec<Request>,
    /// How the requests are spread over time.
    pub shape: Shape,
    /// Requests that go on beside, each on connections of its own, for the whole run.
    #[serde(default)]
    pub beside: Vec<Beside>,
    /// A request whose answer is not complete within so many milliseconds is a failure.
    pub timeout_ms: u64,
    /// Seed of every shuffle and every random interval: the same for all servers.
    pub seed: u64,
    /// Latencies are kept for each part of the run of so many milliseconds.
    pub slice_ms: u64,
}

/// A kind of request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// Results are kept for each class; several requests may share one.
    #[serde(default = "Request::class")]
    pub class: String,
    /// The request target.
    #[serde(default = "Request::path")]
    pub path: String,
    /// The method.
    #[serde(default = "Request::method")]
    pub method: String,
    /// More header fields; Host is always sent, Content-Length where there is a body.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<(String, String)>,
    /// Length of the body in bytes; 0 sends none.
    #[serde(default)]
    pub body_bytes: u64,
    /// How often it occurs beside the others.
    #[serde(default = "Request::weight")]
    pub weight: u32,
    /// Reads the answer no faster than so many bytes a second; 0 as fast as it comes.
    #[serde(default)]
    pub read_bytes_per_second: u64,
}

impl Request {
    fn class() -> String {
        "all".into()
    }
    fn path() -> String {
        "/".into()
    }
    fn method() -> String {
        "GET".into()
    }
    fn weight() -> u32 {
        1
    }
}

impl Default for Request {
    fn default() -> Self {
        Self {
            class: Self::class(),
            path: Self::path(),
            method: Self::method(),
            headers: Vec::new(),
            body_bytes: 0,
            weight: 1,
            read_bytes_per_second: 0,
        }
    }
}

/// How requests are spread over time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum Shape {
    /// Each connection sends its next request when it has the answer.
    Closed {
        /// How many at once.
        connections: usize,
        /// Whether connections are kept; without it every request opens one and says
        /// `Connection: close`.
        keep_alive: bool,
        /// A connection that is not kept is given up by a reset once its answer is complete, which
        /// leaves nothing in the kernel; otherwise it is closed.
        #[serde(default)]
        reset: bool,
        /// Length of the run in seconds.
        seconds: f64,
    },
    /// Requests start when they are due, whether or not earlier ones have been answered. Latency
    /// counts from that moment, so a stall costs every request that was due during it.
    Open {
        /// One after the other.
        steps: Vec<Step>,
        /// At most so many connections; a request that finds none free waits, and its wait counts.
        max_connections: usize,
        /// Whether connections are kept.
        keep_alive: bool,
        /// Exponentially distributed intervals instead of equal ones.
        #[serde(default)]
        poisson: bool,
    },
    /// So many requests at the same instant, each on a connection of its own; then waits for all.
    Burst {
        /// Requests in one burst.
        at_once: usize,
        /// How many bursts.
        times: usize,
        /// Milliseconds between the last answer of one and the next.
        pause_ms: u64,
        /// Whether the next burst goes over the same connections; else over new ones.
        #[serde(default)]
        keep_alive: bool,
    },
}

/// A part of an open loop.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Requests a second.
    pub rate: f64,
    /// Seconds.
    pub seconds: f64,
}

/// Requests that go on beside the others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Beside {
    /// What is asked.
    pub request: Request,
    /// On so many connections; with a `rate` on so many at most.
    pub connections: usize,
    /// Requests a second, which start when they are due, whether or not earlier ones have been
    /// answered. 0: a closed loop on each connection.
    #[serde(default)]
    pub rate: f64,
    /// In a scenario: a closed phase, of whose requests/s the rate is a multiple. In a plan the rate
    /// is one already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// Whether they are kept.
    #[serde(default)]
    pub keep_alive: bool,
    /// Milliseconds between an answer and the next request on that connection.
    #[serde(default)]
    pub pause_ms: u64,
}
