//! A cell's figure taken apart into what happened in each half second, so that it can be told how
//! much the figure would vary if the cell were run again.

use fastrand::Rng;
use oribi_load::hist::Hist;
use oribi_load::outcome::Class;

use crate::figures::{PERCENTILES, TICK_MS, whole_ticks};
use crate::results::{CPU_SAMPLE_MS, Cell, PhaseResult};

/// Neighbours are joined until there are no more than so many: a long cell's blocks become longer,
/// which also keeps together what hangs together.
const MOST: usize = 40;
/// With fewer there is nothing to learn from them.
const LEAST: usize = 4;
const TICKS: usize = (CPU_SAMPLE_MS / TICK_MS) as usize;

/// A figure's blocks.
#[derive(Debug)]
pub enum Blocks {
    /// The sum of the first parts over the sum of the second ones.
    Quotient(Vec<(f64, f64)>),
    /// A percentile (over another one, if there is one) of all latencies.
    Percentile(f64, Option<f64>, Latencies),
    /// The figure cannot be taken apart.
    Whole,
}

/// Values and how often they occur, ascending; a value may stand more than once.
type Counts = Vec<(u64, u64)>;

/// Latencies of each block. A percentile of any draw of blocks is found by halving, without adding
/// up their histograms: a run asks for it a million times.
#[derive(Debug, Default)]
pub struct Latencies {
    /// The values that occur anywhere, ascending.
    values: Vec<u64>,
    /// How many latencies of a block are at most the value of the same index.
    blocks: Vec<Vec<u64>>,
}

/// The blocks of the metric with this full name.
pub fn of(cell: &Cell, metric: &str) -> Blocks {
    let (phase, rest) = metric.split_once('.').unwrap_or_default();
    let Some(result) = cell.phases.iter().find(|result| result.name == phase) else {
        return Blocks::Whole;
    };
    let (name, class) = match rest.split_once('.') {
        Some((name, class)) => (name, Some(class)),
        None => (rest, None),
    };
    let percentile = PERCENTILES.iter().find(|(metric, _)| *metric == name).map(|(_, part)| *part);
    let blocks = match (name, percentile) {
        ("rps" | "mb_per_s", _) => Blocks::Quotient(answers(result, class)),
        ("per_cpu", _) => Blocks::Quotient(answers_and_cpu(result)),
        ("cpu_us", _) => Blocks::Quotient(
            answers_and_cpu(result).into_iter().map(|(ok, cpu)| (cpu, ok)).collect(),
        ),
        ("mean_ms", _) => Blocks::Quotient(sums(result, class)),
        ("tail", _) => Blocks::Percentile(0.99, Some(0.5), latencies(result, class)),
        (_, Some(part)) => Blocks::Percentile(part, None, latencies(result, class)),
        _ => Blocks::Whole,
    };
    let count = match &blocks {
        Blocks::Quotient(pairs) => pairs.len(),
        Blocks::Percentile(_, _, latencies) => latencies.blocks.len(),
        Blocks::Whole => 0,
    };
    if count < LEAST { Blocks::Whole } else { blocks }
}

impl Blocks {
    /// `value` as it would have come out in cells made of blocks that are drawn from this one's,
    /// with replacement.
    pub fn replicates(&self, value: f64, count: usize, rng: &mut Rng) -> Vec<f64> {
        let factors: Vec<f64> = match self {
            Self::Quotient(pairs) => {
                let quotient = |pairs: &mut dyn Iterator<Item = &(f64, f64)>| {
                    let (over, under) =
                        pairs.fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
                    over / under
                };
                let whole = quotient(&mut pairs.iter());
                let draws = pairs.len();
                let mut one = || quotient(&mut (0..draws).map(|_| &pairs[rng.usize(..draws)]));
                (0..count).map(|_| one() / whole).collect()
            }
            Self::Percentile(over, under, latencies) => {
                latencies.factors(*over, *under, count, rng)
            }
            Self::Whole => Vec::new(),
        };
        let good = factors.iter().all(|factor| factor.is_finite() && *factor > 0.0);
        if factors.is_empty() || !good {
            return vec![value];
        }
        factors.into_iter().map(|factor| factor * value).collect()
    }
}

impl Latencies {
    fn new(slices: &[Counts]) -> Self {
        let mut values: Vec<u64> =
            slices.iter().flat_map(|slice| slice.iter().map(|pair| pair.0)).collect();
        values.sort_unstable();
        values.dedup();
        let block = |slice: &Counts| {
            let (mut sum, mut rest) = (0, slice.iter().peekable());
            let mut up_to = |value: &u64| {
                while let Some(pair) = rest.next_if(|pair| pair.0 <= *value) {
                    sum += pair.1;
                }
                sum
            };
            values.iter().map(&mut up_to).collect()
        };
        let blocks = slices.iter().map(block).collect();
        Self { values, blocks }
    }

    fn factors(&self, over: f64, under: Option<f64>, count: usize, rng: &mut Rng) -> Vec<f64> {
        let figure = |drawn: &[usize]| {
            let over = self.percentile(drawn, over);
            over / under.map_or(1.0, |under| self.percentile(drawn, under))
        };
        let mut drawn: Vec<usize> = (0..self.blocks.len()).collect();
        let whole = figure(&drawn);
        let mut one = || {
            drawn.fill_with(|| rng.usize(..self.blocks.len()));
            figure(&drawn) / whole
        };
        (0..count).map(|_| one()).collect()
    }

    fn percentile(&self, drawn: &[usize], part: f64) -> f64 {
        let up_to = |index: usize| drawn.iter().map(|at| self.blocks[*at][index]).sum::<u64>();
        let Some(last) = self.values.len().checked_sub(1) else { return f64::NAN };
        let wanted = ((up_to(last) as f64 * part).ceil() as u64).max(1);
        let (mut low, mut high) = (0, last);
        while low < high {
            let middle = (low + high) / 2;
            if up_to(middle) >= wanted { high = middle } else { low = middle + 1 }
        }
        // Blocks without any answer have no percentile.
        if up_to(last) == 0 { f64::NAN } else { self.values[low] as f64 }
    }
}

/// Good answers of each block; classes are counted by when their requests were due.
fn answers(result: &PhaseResult, class: Option<&str>) -> Vec<(f64, f64)> {
    let outcome = &result.outcome;
    let counts: Vec<f64> = match class {
        None => {
            let ticks: Vec<f64> = whole_ticks(outcome).map(|tick| f64::from(tick.ok)).collect();
            ticks.chunks_exact(TICKS).map(|block| block.iter().sum()).collect()
        }
        Some(_) => {
            let whole = (outcome.seconds * 1e3 / CPU_SAMPLE_MS as f64 + 1e-6) as usize;
            let of_slice = |at| {
                let slices = classes(result, class).filter_map(|class| class.slices.get(at));
                slices.map(Hist::len).sum::<u64>() as f64
            };
            (0..whole).map(of_slice).collect()
        }
    };
    joined(&counts, |block| (block.iter().sum(), block.len() as f64))
}

fn answers_and_cpu(result: &PhaseResult) -> Vec<(f64, f64)> {
    let pairs: Vec<(f64, f64)> = result
        .cpu
        .windows(2)
        .zip(result.outcome.ticks.chunks_exact(TICKS))
        .map(|(cpu, ticks)| (ticks.iter().map(|tick| f64::from(tick.ok)).sum(), cpu[1] - cpu[0]))
        .collect();
    joined(&pairs, |block| {
        block.iter().fold((0.0, 0.0), |sum, (ok, cpu)| (sum.0 + ok, sum.1 + cpu))
    })
}

/// The sum of the latencies and their number.
fn sums(result: &PhaseResult, class: Option<&str>) -> Vec<(f64, f64)> {
    let sum = |slice: &Counts| {
        slice.iter().fold((0.0, 0.0), |sum, (micros, times)| {
            (sum.0 + *micros as f64 * *times as f64, sum.1 + *times as f64)
        })
    };
    slices(result, class).iter().map(sum).collect()
}

fn latencies(result: &PhaseResult, class: Option<&str>) -> Latencies {
    Latencies::new(&slices(result, class))
}

fn slices(result: &PhaseResult, class: Option<&str>) -> Vec<Counts> {
    let most = classes(result, class).map(|class| class.slices.len()).max().unwrap_or(0);
    let all: Vec<usize> = (0..most).collect();
    joined(&all, |block| {
        let hists = classes(result, class)
            .flat_map(|class| block.iter().filter_map(|at| class.slices.get(*at)));
        let mut counts: Counts = hists.flat_map(Hist::pairs).collect();
        counts.sort_unstable();
        counts
    })
}

/// The class, or all that do not run beside. A class that runs beside is only meant where no
/// other has its name.
fn classes<'a>(result: &'a PhaseResult, name: Option<&'a str>) -> impl Iterator<Item = &'a Class> {
    let all = &result.outcome.classes;
    let named = move |class: &&Class| name.is_none_or(|name| class.class == name);
    let beside = name.is_some() && !all.iter().any(|class| !class.beside && named(&class));
    all.iter().filter(move |class| class.beside == beside && named(class))
}

fn joined<T, U>(blocks: &[T], join: impl Fn(&[T]) -> U) -> Vec<U> {
    blocks.chunks(blocks.len().div_ceil(MOST).max(1)).map(join).collect()
}

#[cfg(test)]
#[path = "blocks_test.rs"]
mod tests;
