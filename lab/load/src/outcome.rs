//! What became of a plan. The generator writes it as one JSON text to its standard output.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::hist::Hist;

/// The outcome of one plan. All moments are milliseconds since the run began.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Outcome {
    /// Length of the offered load in seconds, as it really was.
    pub seconds: f64,
    /// Seconds until the last answer was in (or given up).
    pub drained: f64,
    /// One for each class of request, in the order of the plan; those beside come last.
    pub classes: Vec<Class>,
    /// Answers by the moment at which they were complete, one entry for each 100 ms, all classes
    /// except those beside.
    pub ticks: Vec<Tick>,
    /// The longest time without any good answer while requests were under way, in milliseconds.
    pub gap_ms: f64,
    /// When that gap began.
    pub gap_at_ms: f64,
    /// Good answers by the value of their `X-Lab-Worker` header, if the application sends one.
    pub workers: BTreeMap<String, u64>,
    /// Requests that were due or sent and had no answer when the offered load ended.
    pub unanswered_at_end: u64,
    /// The same at the end of each step of an open loop.
    pub unanswered_at_step_end: Vec<u64>,
    /// The most connections that were open at once.
    pub connections: usize,
    /// Connections that were opened.
    pub connects: u64,
    /// CPU seconds of the generator itself.
    pub generator_cpu: f64,
}

/// Answers complete within the same 100 ms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tick {
    /// 2xx, whole.
    pub ok: u32,
    /// Everything else.
    pub failed: u32,
}

/// The outcome of one class of request.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Class {
    /// Its name.
    pub class: String,
    /// Whether it ran beside the others.
    pub beside: bool,
    /// Requests due (open loop, burst) or sent (closed loop).
    pub sent: u64,
    /// Answered with 2xx, whole.
    pub ok: u64,
    /// Those of them that were complete before the offered load ended: what makes requests/s.
    pub ok_in_time: u64,
    /// The other good ones: microseconds from the end of the offered load to their last byte.
    #[serde(default)]
    pub late: Hist,
    /// Bytes of bodies of good answers.
    pub bytes: u64,
    /// Why the others were none.
    pub failures: Failures,
    /// Microseconds from the moment the request was due (closed loop: sent) to its last byte; good
    /// answers only.
    pub latency: Hist,
    /// Microseconds from the moment the request was really sent. Equal to `latency` in a closed
    /// loop; in an open loop what a generator with the usual mistake (coordinated omission) would
    /// report.
    pub uncorrected: Hist,
    /// `latency` by the moment the request was due, one for each slice of the plan's `slice_ms`.
    pub slices: Vec<Hist>,
}

/// Requests that got no good answer, by cause.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failures {
    /// An answer outside of 2xx, by status.
    pub status: BTreeMap<u16, u64>,
    /// No complete answer in time.
    pub timeout: u64,
    /// Connection refused.
    pub refused: u64,
    /// Connection reset or closed before the answer was complete.
    pub reset: u64,
    /// Bytes that are no HTTP answer.
    pub garbage: u64,
}

impl Failures {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.status.values().sum::<u64>() + self.timeout + self.refused + self.reset + self.garbage
    }

    /// Adds those of another.
    pub fn add(&mut self, other: &Failures) {
        for (status, count) in &other.status {
            *self.status.entry(*status).or_default() += count;
        }
        self.timeout += other.timeout;
        self.refused += other.refused;
        self.reset += other.reset;
        self.garbage += other.garbage;
    }
}
