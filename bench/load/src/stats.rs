//! Every latency, exactly; percentiles are read from the sorted samples.

use std::fmt::Write as _;

/// Why a request was none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Connection refused, reset, closed early, or an answer that is none.
    Connection,
    /// A status outside of 200 to 299.
    Status(u16),
    /// No answer in time.
    Timeout,
}

/// The answers to one kind of request.
#[derive(Default, Debug)]
pub struct Stats {
    /// Latencies in nanoseconds, in order of arrival until sorted.
    samples: Vec<u64>,
    connection: u64,
    status: u64,
    timeout: u64,
    last_status: Option<u16>,
}

impl Stats {
    /// Counts one request.
    pub fn record(&mut self, latency: u64, outcome: Result<(), Failure>) {
        match outcome {
            Ok(()) => self.samples.push(latency),
            Err(Failure::Connection) => self.connection += 1,
            Err(Failure::Timeout) => self.timeout += 1,
            Err(Failure::Status(code)) => {
                self.status += 1;
                self.last_status = Some(code);
            }
        }
    }

    /// Requests answered with 2xx.
    pub fn requests(&self) -> usize {
        self.samples.len()
    }

    /// The samples in microseconds, for a file.
    pub fn bytes(&self) -> Vec<u8> {
        let micros = |nanos: &u64| u32::try_from((nanos + 500) / 1_000).unwrap_or(u32::MAX);
        self.samples.iter().flat_map(|nanos| micros(nanos).to_le_bytes()).collect()
    }

    /// The fields of a JSON object, without its braces; `in_time` requests make the throughput.
    pub fn json(&mut self, in_time: u64, seconds: f64) -> String {
        self.samples.sort_unstable();
        let (count, failures) = (self.samples.len(), self.connection + self.status + self.timeout);
        let mut out = format!(
            "\"requests\":{count},\"rps\":{:.3},\"failures\":{failures},\"failed\":{{\
             \"connection\":{},\"status\":{},\"timeout\":{},\"last_status\":{}}}",
            in_time as f64 / seconds,
            self.connection,
            self.status,
            self.timeout,
            self.last_status.map_or("null".into(), |code| code.to_string()),
        );
        out.push_str(",\"latency_us\":");
        if count == 0 {
            out.push_str("null");
            return out;
        }
        let mean = self.samples.iter().sum::<u64>() as f64 / count as f64;
        let _ = write!(out, "{{\"mean\":{:.1}", mean / 1e3);
        for (name, part) in [("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99), ("max", 1.0)]
        {
            let _ = write!(out, ",\"{name}\":{:.1}", percentile(&self.samples, part) as f64 / 1e3);
        }
        out.push('}');
        out
    }
}

/// The smallest sample that at least `part` of all samples do not exceed.
fn percentile(sorted: &[u64], part: f64) -> u64 {
    let rank = (part * sorted.len() as f64).ceil() as usize;
    sorted[rank.clamp(1, sorted.len()) - 1]
}

#[cfg(test)]
mod tests {
    use super::{Failure, Stats, percentile};

    #[test]
    fn percentiles_are_samples() {
        let sorted: Vec<u64> = (1..=100).collect();
        assert_eq!(percentile(&sorted, 0.5), 50);
        assert_eq!(percentile(&sorted, 0.99), 99);
        assert_eq!(percentile(&sorted, 1.0), 100);
        assert_eq!(percentile(&[7], 0.5), 7);
        assert_eq!(percentile(&[1, 2, 3], 0.9), 3);
    }

    #[test]
    fn failures_are_no_samples() {
        let mut stats = Stats::default();
        stats.record(2_000, Ok(()));
        stats.record(1, Err(Failure::Status(503)));
        stats.record(1, Err(Failure::Timeout));
        stats.record(1, Err(Failure::Connection));
        let json = stats.json(1, 2.0);
        assert!(json.starts_with("\"requests\":1,\"rps\":0.500,\"failures\":3"), "{json}");
        assert!(json.contains("\"last_status\":503") && json.contains("\"p99\":2.0"), "{json}");
        assert_eq!(stats.bytes(), 2_u32.to_le_bytes());
    }
}
