//! What has to be said beside the figures: who was absent, what failed, how far to trust it.

use oribi_load::outcome::Failures;

use crate::results::{CaseResult, ContenderFacts, Noise};

use super::figure::number;

/// Something the reader must not miss.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// `absent`, `void`, `failed` or `note`.
    pub kind: &'static str,
    /// The contender.
    pub who: String,
    /// Counted from 1; empty where it is about all.
    pub rounds: Vec<usize>,
    /// What it is.
    pub text: String,
    /// The last lines of the server's log.
    pub log: Vec<String>,
}

impl Note {
    /// `round 2`, `rounds 1, 3`, or nothing.
    pub fn which(&self) -> String {
        let list: Vec<String> = self.rounds.iter().map(usize::to_string).collect();
        match list.len() {
            0 => String::new(),
            1 => format!("round {}", list[0]),
            _ => format!("rounds {}", list.join(", ")),
        }
    }

    /// True when it is a failure.
    pub fn bad(&self) -> bool {
        self.kind == "void" || self.kind == "failed"
    }
}

/// Everything of a case that has to be said, contender by contender.
pub fn notes(result: &CaseResult) -> Vec<Note> {
    let mut notes = Vec::new();
    for (at, facts) in result.contenders.iter().enumerate() {
        let mut say = |kind, round: Option<usize>, text: String, log: &[String]| {
            let same =
                |note: &&mut Note| note.who == facts.name && note.kind == kind && note.text == text;
            match notes.iter_mut().find(same) {
                Some(note) => note.rounds.extend(round),
                None => notes.push(Note {
                    kind,
                    who: facts.name.clone(),
                    rounds: round.into_iter().collect(),
                    text,
                    log: log.to_vec(),
                }),
            }
        };
        if let Some(why) = &facts.absent {
            say("absent", None, why.clone(), &[]);
        }
        let mut expected = Failures::default();
        for (round, cells) in result.rounds.iter().enumerate() {
            let Some(cell) = cells.get(at).filter(|_| facts.absent.is_none()) else { continue };
            let round = Some(round + 1);
            if let Some(error) = &cell.error {
                say("void", round, error.clone(), &cell.log);
            }
            if cell.unexpected_failures > 0 {
                let count = number(cell.unexpected_failures as f64, 0);
                let causes = causes(&cell.failures);
                let text = if cell.unexpected_failures == cell.failures.total() {
                    format!("{count} failed: {causes}")
                } else {
                    format!("{count} failed unexpectedly; with the expected ones: {causes}")
                };
                say("void", round, text, &cell.log);
            } else {
                expected.add(&cell.failures);
            }
            for complaint in &cell.complaints {
                say("note", round, complaint.clone(), &cell.log);
            }
        }
        if expected.total() > 0 {
            let text = format!(
                "{} failed, as this case expects: {}",
                number(expected.total() as f64, 0),
                causes(&expected)
            );
            say("failed", None, text, &[]);
        }
    }
    notes
}

/// Causes and counts: `503 × 14, timeout × 2`.
fn causes(failures: &Failures) -> String {
    let named = [
        ("timeout", failures.timeout),
        ("refused", failures.refused),
        ("reset", failures.reset),
        ("no HTTP", failures.garbage),
    ];
    let status = failures.status.iter().map(|(status, count)| (status.to_string(), *count));
    let named = named.into_iter().map(|(name, count)| (name.to_owned(), count));
    status
        .chain(named)
        .filter(|(_, count)| *count > 0)
        .map(|(name, count)| format!("{name} × {}", number(count as f64, 0)))
        .collect::<Vec<_>>()
        .join(", ")
}

/// Sound rounds of a contender, and all there were; none of an absent one.
pub fn rounds(result: &CaseResult, contender: &str) -> (usize, usize) {
    let absent = |its: &ContenderFacts| its.name == contender && its.absent.is_some();
    if result.contenders.iter().any(absent) {
        return (0, 0);
    }
    let cells = || result.rounds.iter().flatten().filter(|cell| cell.contender == contender);
    (cells().filter(|cell| cell.sound()).count(), cells().count())
}

/// How far a run may be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Nothing is known.
    Unknown,
    /// As it should be.
    Quiet,
    /// With care.
    Unsteady,
    /// Hardly.
    Noisy,
}

impl Trust {
    /// For a style class.
    pub fn word(self) -> &'static str {
        match self {
            Trust::Unknown => "unknown",
            Trust::Quiet => "quiet",
            Trust::Unsteady => "unsteady",
            Trust::Noisy => "noisy",
        }
    }
}

/// How noisy the machine was, and what that means for the figures.
pub fn trust(noise: &Noise) -> (Trust, String) {
    let figures = [noise.spread, noise.steal, noise.others];
    if noise.samples_ms.is_empty() || figures.iter().any(|figure| !figure.is_finite()) {
        let text = "How noisy the machine was is not measured: believe no small difference.";
        return (Trust::Unknown, text.into());
    }
    let varied = (noise.spread - 1.0).max(0.0) * 100.0;
    let seen = format!(
        "the same piece of work varied by {varied:.0} %, the hypervisor took {:.1} % of the CPU \
         time and other processes {:.1} %",
        noise.steal * 100.0,
        noise.others * 100.0
    );
    let within = |varied_at_most: f64, steal: f64, others: f64| {
        varied <= varied_at_most && noise.steal <= steal && noise.others <= others
    };
    if within(5.0, 0.01, 0.05) {
        (Trust::Quiet, format!("A quiet machine ({seen}): ratios mean what their intervals say."))
    } else if within(15.0, 0.05, 0.15) {
        let text = format!(
            "An unsteady machine ({seen}): ratios whose interval excludes 1 hold; single figures \
             may be off by {:.0} % or so.",
            varied.max(5.0)
        );
        (Trust::Unsteady, text)
    } else {
        let text = format!(
            "A noisy machine ({seen}): only large differences mean anything; measure again when \
             it is quiet before you decide by these figures."
        );
        (Trust::Noisy, text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trust_falls_with_noise() {
        let noise = |spread, steal, others| Noise { samples_ms: vec![1.0], spread, steal, others };
        let of = |noise: &Noise| trust(noise).0;
        assert_eq!(of(&noise(1.02, 0.0, 0.01)), Trust::Quiet);
        assert_eq!(of(&noise(1.10, 0.0, 0.01)), Trust::Unsteady);
        assert_eq!(of(&noise(1.02, 0.03, 0.01)), Trust::Unsteady);
        assert_eq!(of(&noise(1.50, 0.0, 0.01)), Trust::Noisy);
        assert_eq!(of(&noise(1.02, 0.2, 0.01)), Trust::Noisy);
        assert_eq!(of(&noise(f64::NAN, 0.0, 0.0)), Trust::Unknown);
        assert_eq!(of(&Noise::default()), Trust::Unknown);
    }
}
