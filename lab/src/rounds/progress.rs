//! How far a run is and how long it will take: a bar on a terminal, plain lines elsewhere. Both go
//! to standard error, so that the tables can be kept apart.

use std::collections::HashMap;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// One cell to come.
#[derive(Clone, Debug)]
pub struct Step {
    /// What is shown: scenario and case.
    pub case: String,
    /// Who.
    pub contender: String,
    /// `round 2 of 3`.
    pub round: String,
    /// Seconds its phases are known to take.
    pub planned: f64,
}

/// What a cell takes beyond its phases (start, calibration, end) until one has been seen.
pub const OVERHEAD_SECONDS: f64 = 3.0;

/// Seconds left, from what is planned and what was seen.
#[derive(Debug, Default)]
struct Clock {
    steps: Vec<Step>,
    at: usize,
    /// What the last cell of a contender in a case really took.
    seen: HashMap<(String, String), f64>,
    /// Of all cells so far: seconds beyond the plan.
    beyond: Vec<f64>,
}

impl Clock {
    fn expected(&self, step: &Step) -> f64 {
        let key = (step.case.clone(), step.contender.clone());
        let usual = match self.beyond.len() {
            0 => OVERHEAD_SECONDS,
            cells => self.beyond.iter().sum::<f64>() / cells as f64,
        };
        self.seen.get(&key).copied().unwrap_or((step.planned + usual).max(0.0))
    }

    fn ended(&mut self, took: f64) {
        if let Some(step) = self.steps.get(self.at) {
            self.beyond.push(took - step.planned);
            self.seen.insert((step.case.clone(), step.contender.clone()), took);
            self.at += 1;
        }
    }

    /// `into` are the seconds the current step has been running.
    fn left(&self, into: f64) -> f64 {
        let mut rest = self.steps.iter().skip(self.at).map(|step| self.expected(step));
        let now = rest.next().unwrap_or(0.0);
        (now - into).max(0.0) + rest.sum::<f64>()
    }
}

/// The bar, or the lines.
#[derive(Debug)]
pub struct Progress {
    clock: Clock,
    bar: Option<ProgressBar>,
    began: Instant,
    step_began: Instant,
}

impl Progress {
    /// For all cells to come.
    pub fn new(steps: Vec<Step>) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let style = ProgressStyle::with_template("{bar:24} {msg}").expect("a fixed template");
            ProgressBar::new(1000).with_style(style)
        });
        let now = Instant::now();
        let clock = Clock { steps, ..Clock::default() };
        Self { clock, bar, began: now, step_began: now }
    }

    /// The next cell begins.
    pub fn begin(&mut self) {
        self.step_began = Instant::now();
        self.tick("");
        if let (None, Some(step)) = (&self.bar, self.clock.steps.get(self.clock.at)) {
            eprintln!("{} ({} left)", line(step), human(self.clock.left(0.0)));
        }
    }

    /// A cell goes on; `what` it does at the moment.
    pub fn tick(&self, what: &str) {
        let (Some(bar), Some(step)) = (&self.bar, self.clock.steps.get(self.clock.at)) else {
            return;
        };
        let left = self.clock.left(self.step_began.elapsed().as_secs_f64());
        let done = self.began.elapsed().as_secs_f64();
        bar.set_position((1000.0 * done / (done + left).max(0.1)) as u64);
        let what = if what.is_empty() { String::new() } else { format!(", {what}") };
        bar.set_message(format!("{}{what}: {} left", line(step), human(left)));
    }

    /// The cell is over.
    pub fn end(&mut self) {
        self.clock.ended(self.step_began.elapsed().as_secs_f64());
    }

    /// Prints something without the bar in its way.
    pub fn aside<T>(&self, print: impl FnOnce() -> T) -> T {
        match &self.bar {
            Some(bar) => bar.suspend(print),
            None => print(),
        }
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

fn line(step: &Step) -> String {
    format!("{}, {}: {}", step.case, step.round, step.contender)
}

/// `40 s`, `12 min`, `3 h 5 min`.
pub fn human(seconds: f64) -> String {
    let length = Duration::from_secs_f64(seconds.clamp(0.0, 1e9)).as_secs();
    match length {
        0..=99 => format!("{length} s"),
        100..=5999 => format!("{} min", (length + 30) / 60),
        _ => format!("{} h {} min", length / 3600, length % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(contender: &str, planned: f64) -> Step {
        let (case, round) = ("hello".into(), "round 1 of 2".into());
        Step { case, contender: contender.into(), round, planned }
    }

    #[test]
    fn time_left_learns_from_what_was_seen() {
        let steps = ["a", "b", "a", "b"].map(|name| step(name, 10.0)).to_vec();
        let mut clock = Clock { steps, ..Clock::default() };
        assert_eq!(clock.left(0.0), 52.0);
        assert_eq!(clock.left(4.0), 48.0);
        assert_eq!(clock.left(99.0), 39.0, "a late cell takes nothing from the others");
        clock.ended(20.0);
        // b is not known yet: its plan and what the others needed beyond theirs.
        assert_eq!(clock.left(0.0), 20.0 + 20.0 + 20.0);
        clock.ended(12.0);
        assert_eq!(clock.left(0.0), 20.0 + 12.0);
        clock.ended(20.0);
        clock.ended(12.0);
        assert_eq!(clock.left(0.0), 0.0);
    }

    #[test]
    fn lengths_are_readable() {
        let texts = [40.4, 100.0, 719.0, 11_100.0].map(human);
        assert_eq!(texts, ["40 s", "2 min", "12 min", "3 h 5 min"]);
    }
}
