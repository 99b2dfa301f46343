//! How figures are written: medians, spread, ratios; and what a metric's full name is made of.

use crate::metrics::{self, Metric};
use crate::results::{CaseResult, Comparison, Summary};
use crate::scenario::Case;

/// What stands where there is no figure.
pub const NONE: &str = "–";

/// Rounds below which an interval is no claim.
pub const ROUNDS_OF_A_CLAIM: usize = 3;

/// A metric's full name, taken apart.
#[derive(Clone)]
pub struct Column {
    /// As in a cell.
    pub full: String,
    /// Empty for a metric of the whole cell.
    pub phase: String,
    /// Empty for all classes.
    pub class: String,
    /// None for a name the lab has no definition of.
    pub metric: Option<&'static Metric>,
}

impl Column {
    /// `PHASE.NAME.CLASS`, taken apart.
    pub fn of(full: &str) -> Self {
        let metric = metrics::find(full);
        let parts: Vec<&str> = full.split('.').collect();
        let at = metric.and_then(|metric| parts.iter().position(|part| *part == metric.name));
        let (phase, class) = match at {
            Some(at) => (parts[..at].join("."), parts[at + 1..].join(".")),
            None => Default::default(),
        };
        Self { full: full.into(), phase, class, metric }
    }

    /// Its short name.
    pub fn head(&self) -> &str {
        self.metric.map_or(&self.full, |metric| metric.head)
    }

    /// Its unit; empty for a pure number.
    pub fn unit(&self) -> &'static str {
        self.metric.map_or("", |metric| metric.unit)
    }

    /// Phase and class, whichever there are.
    pub fn part(&self) -> String {
        [self.phase.as_str(), &self.class]
            .into_iter()
            .filter(|p| !p.is_empty())
            .collect::<Vec<_>>()
            .join(" ")
    }

    /// With phase, class and unit, in one line.
    pub fn long(&self) -> String {
        let part = self.part();
        let unit = self.unit();
        let mut long = self.head().to_owned();
        if !part.is_empty() {
            long = format!("{long}, {part}");
        }
        if unit.is_empty() { long } else { format!("{long} ({unit})") }
    }

    /// A value of it.
    pub fn text(&self, value: f64) -> String {
        number(value, self.metric.map_or(2, |metric| metric.digits))
    }

    /// True when anything above 0 is a failure.
    pub fn counts_failures(&self) -> bool {
        let name = self.metric.map_or("", |metric| metric.name);
        ["failed", "failed_share", "lost_per_kill", "lost_per_deploy"].contains(&name)
    }

    /// True when larger is better.
    pub fn more_is_better(&self) -> bool {
        self.metric.is_none_or(|metric| metric.more_is_better)
    }
}

/// `fair/stuck`: the name of a case in a run.
pub fn label(case: &Case) -> String {
    if case.case.is_empty() { case.name.clone() } else { format!("{}/{}", case.name, case.case) }
}

/// The columns of a case's table.
pub fn columns(result: &CaseResult) -> Vec<Column> {
    result.case.show.iter().map(|full| Column::of(full)).collect()
}

/// What a contender's sound rounds come to in a metric.
pub fn summary<'a>(result: &'a CaseResult, contender: &str, full: &str) -> Option<&'a Summary> {
    let its = |summary: &&Summary| summary.contender == contender && summary.metric == full;
    result.summary.iter().find(its).filter(|summary| summary.median.is_finite())
}

/// A number with at least so many digits behind the point, more if it would lose its second
/// significant one, and its thousands apart.
pub fn number(value: f64, digits: usize) -> String {
    if !value.is_finite() {
        return NONE.into();
    }
    let whole = value.fract() == 0.0;
    let needed = if whole { 0.0 } else { 1.0 - value.abs().log10().floor() };
    let digits = digits.max((needed.max(0.0) as usize).min(6));
    let text = format!("{value:.digits$}");
    let (sign, text) = text.strip_prefix('-').map_or(("", &*text), |rest| ("-", rest));
    let (whole, rest) = text.split_once('.').map_or((text, None), |(w, r)| (w, Some(r)));
    let mut apart = String::new();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) {
            apart.push(',');
        }
        apart.push(digit);
    }
    match rest {
        Some(rest) => format!("{sign}{apart}.{rest}"),
        None => format!("{sign}{apart}"),
    }
}

/// A number with four significant digits, all of those before the point, and its thousands apart.
pub fn four(value: f64) -> String {
    let before = value.abs().log10().floor();
    number(value, (3.0 - before).clamp(0.0, 3.0) as usize)
}

/// Three significant digits of a number, without unit or thousands.
fn three(value: f64) -> String {
    if value == 0.0 {
        return "0".into();
    }
    let behind = 2.0 - value.abs().log10().floor();
    format!("{value:.digits$}", digits = (behind.max(0.0) as usize).min(6))
}

/// The suffix for a number of this size, and what it stands for.
fn scale(value: f64) -> (f64, &'static str) {
    match value.abs() {
        v if v >= 1e6 => (1e6, "M"),
        v if v >= 1e4 => (1e3, "k"),
        _ => (1.0, ""),
    }
}

/// A number in little space: `41.2k`.
pub fn short(value: f64) -> String {
    if !value.is_finite() {
        return NONE.into();
    }
    let (by, suffix) = scale(value);
    three(value / by) + suffix
}

/// From the smallest to the largest in little space: `40.8–41.9k`.
pub fn spread(min: f64, max: f64) -> String {
    if !min.is_finite() || !max.is_finite() {
        return NONE.into();
    }
    let (by, suffix) = scale(max);
    format!("{}–{}{suffix}", three(min / by), three(max / by))
}

/// A ratio: `1.38x`.
pub fn ratio(value: f64) -> String {
    if !value.is_finite() {
        return NONE.into();
    }
    three(value) + "x"
}

/// What a comparison says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// The interval lies on the good side of 1.
    Better,
    /// It lies on the bad side.
    Worse,
    /// It includes 1.
    Alike,
    /// Too few rounds, or no interval.
    Unclaimed,
}

impl Told {
    /// In a word.
    pub fn word(self) -> &'static str {
        match self {
            Told::Better => "better",
            Told::Worse => "worse",
            Told::Alike => "not told apart",
            Told::Unclaimed => "no claim",
        }
    }

    /// In a sign that does not need colour.
    pub fn sign(self) -> &'static str {
        match self {
            Told::Better => "▲",
            Told::Worse => "▼",
            Told::Alike => "=",
            Told::Unclaimed => "?",
        }
    }
}

/// What a comparison of this case says.
pub fn told(result: &CaseResult, comparison: &Comparison) -> Told {
    let rounds = |who: &str| summary(result, who, &comparison.metric).map_or(0, |s| s.rounds);
    let enough = rounds(&comparison.of).min(rounds(&comparison.over)) >= ROUNDS_OF_A_CLAIM;
    let Comparison { low, high, more_is_better, .. } = *comparison;
    if !enough || !low.is_finite() || !high.is_finite() {
        Told::Unclaimed
    } else if low <= 1.0 && high >= 1.0 {
        Told::Alike
    } else if (low > 1.0) == more_is_better {
        Told::Better
    } else {
        Told::Worse
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_what_matters_of_them() {
        let shown = [(41_234.4, 0), (0.0, 2), (4.0, 0), (3.2, 0), (0.0034, 2), (1_234_567.891, 1)];
        let texts: Vec<String> = shown.iter().map(|(v, d)| number(*v, *d)).collect();
        assert_eq!(texts, ["41,234", "0.00", "4", "3.2", "0.0034", "1,234,567.9"]);
        assert_eq!(number(-1234.5, 1), "-1,234.5");
        assert_eq!(number(f64::NAN, 1), NONE);
        let shown = [1.3774, 61.5, 41_234.6, 0.0, 0.98765, f64::NAN].map(four);
        assert_eq!(shown, ["1.377", "61.50", "41,235", "0.000", "0.988", NONE]);
        assert_eq!(number(f64::INFINITY, 1), NONE);
    }

    #[test]
    fn spread_is_compact() {
        assert_eq!(spread(40_801.0, 41_902.0), "40.8–41.9k");
        assert_eq!(spread(0.0, 12.345), "0–12.3");
        assert_eq!(spread(0.041_23, 0.051), "0.0412–0.0510");
        assert_eq!(short(2_345_678.0), "2.35M");
        assert_eq!(ratio(1.377), "1.38x");
        assert_eq!(ratio(f64::NAN), NONE);
    }

    #[test]
    fn names_are_taken_apart() {
        let column = Column::of("main.p99_ms.slow");
        assert_eq!((&*column.phase, column.head(), &*column.class), ("main", "p99", "slow"));
        assert_eq!(column.long(), "p99, main slow (ms)");
        assert_eq!(Column::of("pss_mb").part(), "");
        assert_eq!(Column::of("nobody.knows").head(), "nobody.knows");
    }
}
