//! Histograms of microseconds, three significant digits, as pairs in JSON.

use hdrhistogram::Histogram;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A histogram of microseconds (1 to an hour, three significant digits).
#[derive(Clone, Debug)]
pub struct Hist(Histogram<u64>);

const HOUR: u64 = 3_600_000_000;

impl Default for Hist {
    fn default() -> Self {
        // Grows as needed: most slices hold a narrow range.
        let mut histogram = Histogram::new(3).expect("three digits are allowed");
        histogram.auto(true);
        Self(histogram)
    }
}

impl Hist {
    /// Counts one latency in microseconds.
    pub fn record(&mut self, micros: u64) {
        self.record_n(micros, 1);
    }

    /// Counts a latency several times.
    pub fn record_n(&mut self, micros: u64, times: u64) {
        self.0.record_n(micros.clamp(1, HOUR), times).expect("the histogram grows");
    }

    /// Adds all of another.
    pub fn add(&mut self, other: &Hist) {
        self.0.add(&other.0).expect("the histogram grows");
    }

    /// How many.
    pub fn len(&self) -> u64 {
        self.0.len()
    }

    /// True when nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The latency that `part` (0 to 1) of all do not exceed, in milliseconds; None when empty.
    pub fn percentile_ms(&self, part: f64) -> Option<f64> {
        (!self.is_empty()).then(|| self.0.value_at_quantile(part) as f64 / 1e3)
    }

    /// The mean in milliseconds.
    pub fn mean_ms(&self) -> Option<f64> {
        (!self.is_empty()).then(|| self.0.mean() / 1e3)
    }

    /// The largest in milliseconds.
    pub fn max_ms(&self) -> Option<f64> {
        (!self.is_empty()).then(|| self.0.max() as f64 / 1e3)
    }

    /// Value in microseconds and count, ascending.
    pub fn pairs(&self) -> impl Iterator<Item = (u64, u64)> {
        self.0.iter_recorded().map(|step| (step.value_iterated_to(), step.count_at_value()))
    }
}

impl Serialize for Hist {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.pairs())
    }
}

impl<'de> Deserialize<'de> for Hist {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let pairs = Vec::<(u64, u64)>::deserialize(from)?;
        let mut all = Self::default();
        for (micros, times) in pairs {
            all.record_n(micros, times);
        }
        Ok(all)
    }
}
