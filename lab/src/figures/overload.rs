//! The metrics of an overload: what is done during it, how long its queue takes, when it is over.

use oribi_load::hist::Hist;
use oribi_load::outcome::{Class, Outcome};
use std::collections::BTreeMap;

use crate::figures::{TICK_MS, together};
use crate::results::CPU_SAMPLE_MS;
use crate::scenario::{Phase, PhaseLoad};

/// Above it a slice counts with its 99th percentile, below with its 90th, which a single request
/// does not decide.
const MANY: f64 = 100.0;

/// The figures of an overload phase; none for any other, or without the capacity it is a multiple
/// of. The moments are as exact as the generator's slices and ticks.
///
/// - `goodput`: good answers a second while the overload lasts, over capacity.
/// - `queued`: requests that were due and had no answer when it ended.
/// - `drain_ms`: from its end until the last good answer to a request that was due before it.
/// - `drain_ratio`: that time over what capacity needs for those of the queued that were answered
///   well; none when nobody was.
/// - `recovery_ms`: from its end until the first moment from which on every slice of requests due
///   is *normal* until the end of the phase; none if the last one is not. Normal: its p99 (p90 in
///   slices of fewer than 100) is at most 1.5 times the p99 of all requests before the overload,
///   or at most 50 ms above it, and requests without a good answer are no more than 1 % (10 %).
pub fn figures(
    phase: &Phase,
    outcome: &Outcome,
    earlier: &BTreeMap<String, f64>,
) -> Vec<(&'static str, f64)> {
    let PhaseLoad::Overload { of, seconds, calm, before_seconds, after_seconds, .. } = &phase.load
    else {
        return Vec::new();
    };
    let Some(capacity) = earlier.get(&format!("{of}.rps")).copied().filter(|rps| *rps > 0.0) else {
        return Vec::new();
    };
    let main = outcome.classes.iter().filter(|class| !class.beside).collect();
    let view = View {
        outcome,
        main,
        from: before_seconds * 1e3,
        to: (before_seconds + seconds) * 1e3,
        end: (before_seconds + seconds + after_seconds) * 1e3,
        capacity,
        calm: calm * capacity,
    };
    let mut found = vec![("goodput", view.goodput(*seconds))];
    if let Some(queued) = outcome.unanswered_at_step_end.get(1) {
        found.push(("queued", *queued as f64));
    }
    let drain = view.drain_ms();
    found.push(("drain_ms", drain));
    found.extend(view.drain_ratio(drain).map(|ratio| ("drain_ratio", ratio)));
    found.extend(view.recovery_ms().map(|recovery| ("recovery_ms", recovery)));
    found
}

/// All moments in milliseconds since the phase began.
struct View<'a> {
    outcome: &'a Outcome,
    main: Vec<&'a Class>,
    from: f64,
    to: f64,
    end: f64,
    /// Requests a second.
    capacity: f64,
    /// The same, offered before and after.
    calm: f64,
}

impl View<'_> {
    fn ok_between(&self, from: f64, to: f64) -> f64 {
        let tick = TICK_MS as f64;
        let range = (from / tick).round() as usize..(to / tick).round() as usize;
        range.filter_map(|at| self.outcome.ticks.get(at)).map(|tick| f64::from(tick.ok)).sum()
    }

    fn goodput(&self, seconds: f64) -> f64 {
        self.ok_between(self.from, self.to) / seconds / self.capacity
    }

    /// The slices due between two moments, with the moment where each ends. One that straddles
    /// the first moment belongs to what was before.
    fn slices(&self, from: f64, to: f64) -> impl Iterator<Item = (f64, Hist)> {
        let slice = CPU_SAMPLE_MS as f64;
        let range = (from / slice).ceil() as usize..(to / slice).ceil() as usize;
        range.map(move |at| {
            let hists = self.main.iter().filter_map(|class| class.slices.get(at));
            (((at + 1) as f64 * slice).min(to), together(hists))
        })
    }

    /// A request is taken to be due at the end of its slice, which is so for the last ones of a
    /// queue that is served in order; with any other it is too much by no more than a slice.
    fn drain_ms(&self) -> f64 {
        let last = self
            .slices(0.0, self.to)
            .filter_map(|(end, hist)| Some(end + hist.max_ms()?))
            .fold(self.to, f64::max);
        last - self.to
    }

    fn drain_ratio(&self, drain: f64) -> Option<f64> {
        let due: u64 = self.slices(0.0, self.to).map(|(_, hist)| hist.len()).sum();
        let queued = due as f64 - self.ok_between(0.0, self.to);
        (queued > 0.0).then(|| drain / (queued / self.capacity * 1e3))
    }

    fn recovery_ms(&self) -> Option<f64> {
        let mut calm = Hist::default();
        self.slices(0.0, self.from).for_each(|(_, hist)| calm.add(&hist));
        let calm = calm.percentile_ms(0.99)?;
        let bound = (1.5 * calm).max(calm + 50.0);
        let due = self.calm * CPU_SAMPLE_MS as f64 / 1e3;
        let mut since = self.to;
        let mut last = None;
        // A slice that the end of the phase cuts has no count to be held to.
        for (end, hist) in self.slices(self.to, self.end) {
            if end % CPU_SAMPLE_MS as f64 > 1e-6 {
                continue;
            }
            last = Some(end);
            if !normal(&hist, due, bound) {
                since = end;
            }
        }
        // Where even the last slice is not normal, nobody knows when one would have been.
        (last? > since).then_some(since - self.to)
    }
}

fn normal(hist: &Hist, due: f64, bound: f64) -> bool {
    let (part, allowed) = if due >= MANY { (0.99, 0.01) } else { (0.9, 0.1) };
    // Equal intervals put one request more or less into a slice.
    let lost = due - hist.len() as f64 - 1.0;
    lost <= allowed * due && hist.percentile_ms(part).is_some_and(|ms| ms <= bound)
}

#[cfg(test)]
#[path = "overload_test.rs"]
mod tests;
