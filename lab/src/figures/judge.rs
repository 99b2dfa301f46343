//! What the rounds of a case come to: medians, ratios with their uncertainty, promises kept.

use std::collections::{BTreeMap, BTreeSet};

use fastrand::Rng;

use crate::figures::blocks;
use crate::figures::bootstrap::{self, Pair, REPLICATES};
use crate::figures::stats;
use crate::metrics;
use crate::results::{
    CaseResult, Cell, Comparison, ContenderFacts, PublishedRow, Summary, Verdict,
};
use crate::scenario::{Case, Published, Take, Target};

/// The same rounds give the same intervals each time.
const SEED: u64 = 20;
/// A metric that targets may name, and no cell has: unexpected failures, errors and complaints of
/// all rounds together.
const FAILURES: &str = "failures";

/// Sums up a case. `rounds` holds the cells, round by round.
pub fn judge(case: Case, contenders: Vec<ContenderFacts>, rounds: Vec<Vec<Cell>>) -> CaseResult {
    let bench = Bench { case: &case, contenders: &contenders, rounds: &rounds };
    let summary = bench.summary();
    let comparisons = bench.comparisons();
    let verdicts = case.target.iter().map(|target| bench.verdict(target)).collect();
    let published = case.published.iter().map(|one| bench.published(one)).collect();
    CaseResult { case, contenders, rounds, summary, comparisons, verdicts, published }
}

struct Bench<'a> {
    case: &'a Case,
    contenders: &'a [ContenderFacts],
    rounds: &'a [Vec<Cell>],
}

/// A figure as measured and replicated; None where there is none.
type Figure = Option<(f64, Vec<f64>)>;

impl Bench<'_> {
    fn cell(&self, round: usize, contender: &str) -> Option<&Cell> {
        self.rounds[round].iter().find(|cell| cell.contender == contender)
    }

    /// A figure of a sound cell.
    fn value(&self, round: usize, contender: &str, metric: &str) -> Option<f64> {
        let cell = self.cell(round, contender).filter(|cell| cell.sound())?;
        cell.metrics.get(metric).copied().filter(|value| value.is_finite())
    }

    fn values(&self, contender: &str, metric: &str) -> Vec<f64> {
        (0..self.rounds.len()).filter_map(|round| self.value(round, contender, metric)).collect()
    }

    fn summary(&self) -> Vec<Summary> {
        let mut all = Vec::new();
        for contender in self.contenders {
            let cells = self.rounds.iter().flatten();
            let cells = cells.filter(|cell| cell.contender == contender.name && cell.sound());
            let metrics: BTreeSet<&String> = cells.flat_map(|cell| cell.metrics.keys()).collect();
            for metric in metrics {
                let values = self.values(&contender.name, metric);
                let Some(median) = stats::median(&values) else { continue };
                all.push(Summary {
                    contender: contender.name.clone(),
                    metric: metric.clone(),
                    median,
                    min: values.iter().copied().fold(f64::INFINITY, f64::min),
                    max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
                    rounds: values.len(),
                });
            }
        }
        all
    }

    fn comparisons(&self) -> Vec<Comparison> {
        let mut rng = Rng::with_seed(SEED);
        let mut all = Vec::new();
        if self.case.baseline.is_empty() {
            return all;
        }
        for metric in &self.case.show {
            let Some(definition) = metrics::find(metric) else { continue };
            let replicated: BTreeMap<&str, Vec<Figure>> = self
                .contenders
                .iter()
                .map(|one| (one.name.as_str(), self.replicated(&one.name, metric, &mut rng)))
                .collect();
            for over in &self.case.baseline {
                for of in self.contenders.iter().filter(|of| of.name != *over) {
                    let sides = (replicated.get(of.name.as_str()), replicated.get(over.as_str()));
                    let (Some(above), Some(below)) = sides else { continue };
                    let Some(found) = bootstrap::ratio(&pairs(above, below), &mut rng) else {
                        continue;
                    };
                    all.push(Comparison {
                        metric: metric.clone(),
                        of: of.name.clone(),
                        over: over.clone(),
                        ratio: found.ratio,
                        low: found.low,
                        high: found.high,
                        more_is_better: definition.more_is_better,
                    });
                }
            }
        }
        all
    }

    fn replicated(&self, contender: &str, metric: &str, rng: &mut Rng) -> Vec<Figure> {
        let mut of_round = |round| {
            let value = self.value(round, contender, metric)?;
            let blocks = blocks::of(self.cell(round, contender)?, metric);
            Some((value, blocks.replicates(value, REPLICATES, rng)))
        };
        (0..self.rounds.len()).map(&mut of_round).collect()
    }

    fn verdict(&self, target: &Target) -> Verdict {
        let measured = if target.metric == FAILURES && target.over.is_empty() {
            self.failures(&target.of)
        } else {
            self.measured(target)
        };
        let kept = |value: f64| {
            target.at_least.is_none_or(|bound| value >= bound)
                && target.at_most.is_none_or(|bound| value <= bound)
        };
        let more = more_is_better(target);
        let reached = |goal: f64| {
            measured.is_some_and(|value| if more { value >= goal } else { value <= goal })
        };
        Verdict {
            label: target.label.clone(),
            target: bounds(target),
            measured,
            ok: measured.is_some_and(kept),
            goal: target.goal.map(|goal| (goal, reached(goal))),
        }
    }

    /// The figure of a target. A round in which its contender has none is a miss: what fails now
    /// and then keeps no promise. A round in which one of the others has none does not count,
    /// except where the worst round does.
    fn measured(&self, target: &Target) -> Option<f64> {
        let over_metric = target.over_metric.as_ref().unwrap_or(&target.metric);
        let mut found = Vec::new();
        for round in 0..self.rounds.len() {
            let above = self.value(round, &target.of, &target.metric)?;
            if target.over.is_empty() {
                found.push(above);
                continue;
            }
            let below = target.over.iter().map(|over| self.value(round, over, over_metric));
            match below.sum::<Option<f64>>().filter(|below| target.difference || *below != 0.0) {
                Some(below) if target.difference => found.push(above - below),
                Some(below) => found.push(above / below),
                None if target.take == Take::Worst => return None,
                None => {}
            }
        }
        match (target.take, more_is_better(target)) {
            (Take::Median, _) => stats::median(&found),
            (Take::Worst, true) => found.into_iter().reduce(f64::min),
            (Take::Worst, false) => found.into_iter().reduce(f64::max),
        }
    }

    /// None for a contender that did not take part in every round.
    fn failures(&self, contender: &str) -> Option<f64> {
        let cells: Option<Vec<&Cell>> =
            (0..self.rounds.len()).map(|round| self.cell(round, contender)).collect();
        let of_cell = |cell: &Cell| {
            cell.unexpected_failures as f64
                + f64::from(u8::from(cell.error.is_some()))
                + cell.complaints.len() as f64
        };
        Some(cells.filter(|cells| !cells.is_empty())?.into_iter().map(of_cell).sum())
    }

    fn published(&self, published: &Published) -> PublishedRow {
        let ratio = |round| {
            let above = self.value(round, &published.of, &published.metric)?;
            let below = self.value(round, &published.over, &published.metric)?;
            Some(above / below).filter(|ratio| ratio.is_finite())
        };
        let ratios: Vec<f64> = (0..self.rounds.len()).filter_map(ratio).collect();
        PublishedRow { published: published.clone(), measured: stats::median(&ratios) }
    }
}

/// The rounds in which both sides have a figure, and the lower one can be divided by.
fn pairs<'a>(above: &'a [Figure], below: &'a [Figure]) -> Vec<Pair<'a>> {
    let pair = |(of, over): (&'a Figure, &'a Figure)| {
        let ((of, of_all), (over, over_all)) = (of.as_ref()?, over.as_ref()?);
        (*over != 0.0).then_some(Pair { of: (*of, of_all), over: (*over, over_all) })
    };
    above.iter().zip(below).filter_map(pair).collect()
}

/// The way the bound points; without one, the way the metric does.
fn more_is_better(target: &Target) -> bool {
    match (target.at_least, target.at_most) {
        (Some(_), None) => true,
        (None, Some(_)) => false,
        _ => metrics::find(&target.metric).is_none_or(|metric| metric.more_is_better),
    }
}

fn bounds(target: &Target) -> String {
    let least = target.at_least.map(|bound| format!("at least {bound}"));
    let most = target.at_most.map(|bound| format!("at most {bound}"));
    least.into_iter().chain(most).collect::<Vec<_>>().join(" and ")
}

#[cfg(test)]
#[path = "judge_test.rs"]
mod tests;
