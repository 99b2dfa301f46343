//! How noisy the machine is: a fixed piece of work, timed again and again, and what the kernel says
//! about the CPU time that others took.

use std::fs;
use std::hint::black_box;
use std::time::Instant;

use crate::figures::stats;
use crate::results::Noise;

/// Collects from its creation on.
pub struct Meter {
    samples_ms: Vec<f64>,
    begun: Times,
    /// While something was measured: CPU seconds there were, and those that others used.
    measured: f64,
    others: f64,
}

/// The begin of a stretch in which something is measured.
#[derive(Clone, Copy, Debug)]
pub struct Mark(Times);

/// CPU seconds of the whole machine since it booted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Times {
    all: f64,
    busy: f64,
    steal: f64,
}

/// Steps that take about 20 ms.
const STEPS: u64 = 10_000_000;

impl Meter {
    /// Begins.
    pub fn new() -> Self {
        Self { samples_ms: Vec::new(), begun: Times::now(), measured: 0.0, others: 0.0 }
    }

    /// Does the piece of work (about 20 ms) and keeps its time.
    pub fn sample(&mut self) {
        let begun = Instant::now();
        black_box(work(black_box(STEPS)));
        self.samples_ms.push(begun.elapsed().as_secs_f64() * 1e3);
    }

    /// A stretch of measuring begins.
    pub fn begin(&self) -> Mark {
        Mark(Times::now())
    }

    /// It ends; `ours` are the CPU seconds of server, generator and lab meanwhile.
    pub fn end(&mut self, begun: Mark, ours: f64) {
        self.add(begun.0, Times::now(), ours);
    }

    /// What has come together so far.
    pub fn noise(&self) -> Noise {
        let (begun, now) = (self.begun, Times::now());
        Noise {
            samples_ms: self.samples_ms.clone(),
            spread: stats::spread(&self.samples_ms).unwrap_or(1.0),
            steal: part(now.steal - begun.steal, now.all - begun.all),
            others: part(self.others, self.measured),
        }
    }

    fn add(&mut self, begun: Times, ended: Times, ours: f64) {
        self.measured += ended.all - begun.all;
        // Ticks are coarse: in a short stretch `ours` may seem more than there was.
        self.others += (ended.busy - begun.busy - ours).max(0.0);
    }
}

impl Times {
    fn now() -> Self {
        Self::parse(&fs::read_to_string("/proc/stat").unwrap_or_default())
    }

    /// user nice system idle iowait irq softirq steal; what guests use is in user already.
    fn parse(text: &str) -> Self {
        let line = text.lines().find_map(|line| line.strip_prefix("cpu ")).unwrap_or_default();
        let hertz = procfs::ticks_per_second() as f64;
        let fields = line.split_whitespace().map_while(|field| field.parse::<f64>().ok());
        let seconds: Vec<f64> = fields.take(8).map(|ticks| ticks / hertz).collect();
        let at = |index: usize| seconds.get(index).copied().unwrap_or(0.0);
        let all = seconds.iter().sum();
        Self { all, busy: all - at(3) - at(4) - at(7), steal: at(7) }
    }
}

/// A chain of integer operations, none of which can begin before the one before it has ended.
fn work(steps: u64) -> u64 {
    (0..steps).fold(0x9e37_79b9_7f4a_7c15, |state: u64, _| {
        let state = state ^ (state << 13);
        let state = state ^ (state >> 7);
        state ^ (state << 17)
    })
}

fn part(some: f64, all: f64) -> f64 {
    if all > 0.0 { (some / all).clamp(0.0, 1.0) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_are_what_is_busy_beyond_ours() {
        let hertz = procfs::ticks_per_second();
        let line = |user: u64, idle: u64, steal: u64| {
            let (user, idle, steal) = (user * hertz, idle * hertz, steal * hertz);
            Times::parse(&format!("cpu  {user} 0 0 {idle} 0 0 0 {steal} 7 7\ncpu0 1 1"))
        };
        let mut meter = Meter::new();
        meter.add(line(100, 100, 0), line(106, 103, 1), 4.0);
        let noise = meter.noise();
        assert!((noise.others - 0.2).abs() < 1e-9, "{noise:?}");
        assert_eq!(line(106, 103, 1).steal - line(100, 100, 0).steal, 1.0);
        assert_eq!(line(6, 3, 1).busy, 6.0);
    }

    #[test]
    fn a_sample_is_kept_and_takes_its_time() {
        let mut meter = Meter::new();
        meter.sample();
        meter.sample();
        let noise = meter.noise();
        assert_eq!(noise.samples_ms.len(), 2);
        assert!(noise.samples_ms.iter().all(|its| *its > 1.0), "{noise:?}");
        assert!((0.0..=1.0).contains(&noise.steal), "{noise:?}");
        // The same steps, the same result: nothing is left out.
        assert_ne!(work(1000), work(1001));
    }
}
