//! How long to wait before starting again what has just died.

use std::time::Duration;

const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(10);
/// After this long without an early death the past is forgotten.
const FORGET: Duration = Duration::from_secs(30);

/// Early deaths in a row, and when the next start is due.
#[derive(Clone, Debug)]
pub struct Backoff {
    streak: u32,
    free: u32,
    last: Duration,
    due: Duration,
}

impl Backoff {
    /// The first `free` early deaths of a streak cost no waiting.
    pub fn new(free: u32) -> Backoff {
        Backoff { streak: 0, free, last: Duration::ZERO, due: Duration::ZERO }
    }

    /// Notes a death. One that is not early ends the streak.
    pub fn note(&mut self, now: Duration, early: bool) {
        if !early || now.saturating_sub(self.last) > FORGET {
            self.streak = 0;
        }
        if early {
            self.streak += 1;
        }
        self.last = now;
        self.due = now + self.delay();
    }

    /// The wait that the present streak asks for.
    pub fn delay(&self) -> Duration {
        match self.streak.saturating_sub(self.free) {
            0 => Duration::ZERO,
            over => LONGEST.min(FIRST * (1 << (over - 1).min(10))),
        }
    }

    /// Early deaths in a row.
    pub fn streak(&self) -> u32 {
        self.streak
    }

    /// When the next start may happen.
    pub fn due(&self) -> Duration {
        self.due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_limit_and_a_good_life_ends_them() {
        let mut backoff = Backoff::new(1);
        let mut now = Duration::from_secs(1);
        let mut waits = Vec::new();
        for _ in 0..10 {
            backoff.note(now, true);
            waits.push((backoff.due() - now).as_millis());
            now = backoff.due();
        }
        assert_eq!(waits, [0, 100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000]);
        backoff.note(now, false);
        assert_eq!(backoff.due(), now);
        backoff.note(now, true);
        backoff.note(now, true);
        assert_eq!(backoff.delay(), FIRST);
        backoff.note(now + FORGET * 2, true);
        assert_eq!(backoff.delay(), Duration::ZERO);
    }
}
