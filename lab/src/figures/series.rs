//! What a long run shows over time: trend, scatter, cycles.

use std::f64::consts::TAU;

use oribi_load::hist::Hist;

use crate::figures::stats;
use crate::figures::{TICK_MS, together};
use crate::results::{CPU_SAMPLE_MS, Cycle, PhaseResult, Sample, SeriesResult};

/// Fewer values show no cycle.
const LEAST: usize = 16;
/// A cycle is one that pure noise would show in one of a hundred series.
const CHANCE: f64 = 0.01;

/// The time series of a sampled phase; empty where nothing was sampled. Each value stands at the
/// moment of a sample, for the time since the one before it (memory and fds: for that moment);
/// failures are those of that time.
pub fn of_soak(result: &PhaseResult) -> Vec<SeriesResult> {
    let spans: Vec<Span> =
        result.samples.windows(2).filter_map(|pair| Span::new(result, pair)).collect();
    let series = |name: &str, title: &str, unit: &str, value: &dyn Fn(&Span) -> Option<f64>| {
        let points = spans.iter().filter_map(|span| Some((span.to.at, value(span)?)));
        of_points(name, title, unit, points.collect())
    };
    let all = [
        series("rps", "requests/s", "1/s", &|span| Some(span.ticks().0 / span.seconds)),
        series("p99_ms", "p99", "ms", &|span| span.latency().percentile_ms(0.99)),
        series("pss_mb", "PSS", "MB", &|span| Some(span.to.pss_mb)),
        series("fds", "open fds", "", &|span| Some(span.to.fds as f64)),
        series("gc_ms_per_s", "GC", "ms/s", &|span| {
            Some((span.to.gc_ms? - span.from.gc_ms?) / span.seconds)
        }),
        series("cpu_share", "CPU", "cores", &|span| {
            Some((span.to.cpu - span.from.cpu) / span.seconds)
        }),
        series("failures", "failures", "", &|span| Some(span.ticks().1)),
    ];
    all.into_iter().flatten().collect()
}

/// The time between two samples.
struct Span<'a> {
    result: &'a PhaseResult,
    from: Sample,
    to: Sample,
    seconds: f64,
}

impl<'a> Span<'a> {
    /// None for one that reaches beyond the offered load.
    fn new(result: &'a PhaseResult, pair: &[Sample]) -> Option<Self> {
        let (from, to) = (pair[0], pair[1]);
        // A sample is taken a moment after it is due.
        let inside = to.at <= result.outcome.seconds + 0.5;
        (to.at > from.at && inside).then_some(Self { result, from, to, seconds: to.at - from.at })
    }

    /// The parts of so many milliseconds that begin within it: none is in two spans.
    fn parts(&self, of_ms: u64) -> std::ops::Range<usize> {
        let part = |at: f64| (at * 1e3 / of_ms as f64).round() as usize;
        part(self.from.at)..part(self.to.at)
    }

    /// Good answers and failures.
    fn ticks(&self) -> (f64, f64) {
        let ticks = self.parts(TICK_MS).filter_map(|at| self.result.outcome.ticks.get(at));
        ticks.fold((0.0, 0.0), |sum, tick| {
            (sum.0 + f64::from(tick.ok), sum.1 + f64::from(tick.failed))
        })
    }

    fn latency(&self) -> Hist {
        let classes = self.result.outcome.classes.iter().filter(|class| !class.beside);
        let slices = classes
            .flat_map(|class| self.parts(CPU_SAMPLE_MS).filter_map(|at| class.slices.get(at)));
        together(slices)
    }
}

/// Mean, deviation, trend and cycle of a series; None without points.
pub fn of_points(
    name: &str,
    title: &str,
    unit: &str,
    points: Vec<(f64, f64)>,
) -> Option<SeriesResult> {
    let values: Vec<f64> = points.iter().map(|point| point.1).collect();
    let line = Line::through(&points);
    let cycle = line.as_ref().and_then(|line| {
        let rest: Vec<f64> = points.iter().map(|(at, value)| value - line.at(*at)).collect();
        let step = (points.last()?.0 - points.first()?.0) / (points.len() - 1) as f64;
        cycle(&rest, step)
    });
    Some(SeriesResult {
        name: name.into(),
        title: title.into(),
        unit: unit.into(),
        mean: stats::mean(&values)?,
        deviation: stats::variance(&values).unwrap_or(0.0).sqrt(),
        slope_per_hour: line.as_ref().map(|line| line.slope * 3600.0),
        slope_error: line.as_ref().map(|line| line.slope_error * 3600.0),
        cycle,
        points,
    })
}

/// A straight line by least squares.
struct Line {
    middle: (f64, f64),
    slope: f64,
    slope_error: f64,
}

impl Line {
    /// None for fewer than three points, which leave nothing to tell the error from.
    fn through(points: &[(f64, f64)]) -> Option<Self> {
        let count = points.len() as f64;
        let sum = points.iter().fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        let middle = (sum.0 / count, sum.1 / count);
        let width: f64 = points.iter().map(|(x, _)| (x - middle.0).powi(2)).sum();
        if points.len() < 3 || width <= 0.0 {
            return None;
        }
        let both: f64 = points.iter().map(|(x, y)| (x - middle.0) * (y - middle.1)).sum();
        let mut line = Self { middle, slope: both / width, slope_error: 0.0 };
        let rest: f64 = points.iter().map(|(x, y)| (y - line.at(*x)).powi(2)).sum();
        line.slope_error = (rest / (count - 2.0) / width).sqrt();
        Some(line)
    }

    fn at(&self, x: f64) -> f64 {
        self.middle.1 + self.slope * (x - self.middle.0)
    }
}

/// The strongest cycle of a series without trend whose values are `step` seconds apart: at least
/// two periods long, and found by Fisher's test in the periodogram.
///
/// Memory and load wander: each value hangs together with the one before it, and such a series has
/// its power in the long periods without any cycle. So each frequency is held against what a
/// series would have there whose neighbours correlate as much (a first order autoregression).
pub fn cycle(values: &[f64], step: f64) -> Option<Cycle> {
    let count = values.len();
    let total: f64 = values.iter().map(|value| value * value).sum();
    // What rounding leaves of a constant is no noise.
    let largest = values.iter().fold(0.0_f64, |most, value| most.max(value.abs()));
    if count < LEAST || largest < 1e-9 {
        return None;
    }
    let neighbours: f64 = values.windows(2).map(|pair| pair[0] * pair[1]).sum();
    let tie = (neighbours / total).max(0.0);
    let expected = |turn: f64| 1.0 / (1.0 + tie * tie - 2.0 * tie * turn.cos());
    let powers: Vec<(usize, f64, f64)> = (2..=(count - 1) / 2)
        .map(|periods| {
            let turn = TAU * periods as f64 / count as f64;
            let power = power(values, turn);
            (periods, power, power / expected(turn))
        })
        .collect();
    let best = powers.iter().max_by(|a, b| a.2.total_cmp(&b.2))?;
    let share = best.2 / powers.iter().map(|one| one.2).sum::<f64>();
    // The first term of Fisher's sum: an upper bound, and exact enough where it is small.
    let chance = powers.len() as f64 * (1.0 - share).powi(powers.len() as i32 - 1);
    (chance < CHANCE).then(|| Cycle {
        seconds: count as f64 * step / best.0 as f64,
        share: (2.0 * best.1 / (count as f64 * total)).min(1.0),
    })
}

/// The squared length of the Fourier coefficient at `turn` radians a step.
fn power(values: &[f64], turn: f64) -> f64 {
    let sum = values.iter().enumerate().fold((0.0, 0.0), |sum, (at, value)| {
        let (sin, cos) = (turn * at as f64).sin_cos();
        (sum.0 + value * cos, sum.1 + value * sin)
    });
    sum.0 * sum.0 + sum.1 * sum.1
}

#[cfg(test)]
#[path = "series_test.rs"]
mod tests;
