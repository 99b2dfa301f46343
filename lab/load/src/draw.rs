//! What is drawn by lot, from the plan's seed: the same for all servers.

use fastrand::Rng;

use crate::plan::{Request, Step};

/// Which request is next: shuffled blocks, in which each occurs as often as its weight says.
#[derive(Debug)]
pub struct Mix {
    block: Vec<usize>,
    at: usize,
    rng: Rng,
}

impl Mix {
    /// The weights are divided by their greatest common divisor.
    pub fn new(requests: &[Request], seed: u64) -> Result<Self, String> {
        let divisor = requests.iter().fold(0, |all, request| gcd(all, request.weight));
        if divisor == 0 {
            return Err("requests: none has a weight above 0".into());
        }
        let times = |request: &Request| (request.weight / divisor) as usize;
        let block: Vec<usize> = requests
            .iter()
            .enumerate()
            .flat_map(|(nr, request)| std::iter::repeat_n(nr, times(request)))
            .collect();
        Ok(Self { at: block.len(), block, rng: Rng::with_seed(seed) })
    }

    /// The index of the next request.
    pub fn draw(&mut self) -> usize {
        if self.at == self.block.len() {
            self.rng.shuffle(&mut self.block);
            self.at = 0;
        }
        self.at += 1;
        self.block[self.at - 1]
    }
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// The moments at which the requests of an open loop are due, in nanoseconds.
#[derive(Debug)]
pub struct Schedule<'p> {
    steps: std::slice::Iter<'p, Step>,
    step: Step,
    begin: f64,
    /// Requests of this step so far; random intervals: nanoseconds since its beginning.
    nr: f64,
    rng: Option<Rng>,
}

impl<'p> Schedule<'p> {
    /// Equal intervals, or exponentially distributed ones.
    pub fn new(steps: &'p [Step], poisson: bool, seed: u64) -> Self {
        Self {
            steps: steps.iter(),
            step: Step { rate: 0.0, seconds: 0.0 },
            begin: 0.0,
            nr: 0.0,
            rng: poisson.then(|| Rng::with_seed(seed)),
        }
    }
}

impl Iterator for Schedule<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        loop {
            let interval = 1e9 / self.step.rate;
            let passed = match &mut self.rng {
                Some(rng) => {
                    self.nr += -(1.0 - rng.f64()).ln() * interval;
                    self.nr
                }
                None => self.nr * interval,
            };
            // A rate of 0 is a pause: its first interval is endless, or none at all (0 x inf).
            if passed < self.step.seconds * 1e9 {
                if self.rng.is_none() {
                    self.nr += 1.0;
                }
                return Some((self.begin + passed) as u64);
            }
            self.begin += self.step.seconds * 1e9;
            self.step = *self.steps.next()?;
            self.nr = 0.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Mix, Schedule};
    use crate::plan::{Request, Step};

    #[test]
    fn each_block_holds_what_the_weights_say_and_the_seed_fixes_the_order() {
        let of = |weight| Request { weight, ..Request::default() };
        let requests = [of(95), of(0), of(5)];
        let block = |mix: &mut Mix| (0..20).map(|_| mix.draw()).collect::<Vec<_>>();
        let (mut one, mut two) = (Mix::new(&requests, 1).unwrap(), Mix::new(&requests, 1).unwrap());
        let mut orders = std::collections::HashSet::new();
        for _ in 0..100 {
            let drawn = block(&mut one);
            assert_eq!(drawn.iter().filter(|&&nr| nr == 2).count(), 1);
            assert!(!drawn.contains(&1));
            assert_eq!(drawn, block(&mut two));
            orders.insert(drawn);
        }
        assert!(orders.len() > 10, "they are shuffled");
        assert!(Mix::new(&[of(0)], 1).is_err());
    }

    #[test]
    fn equal_intervals_in_steps() {
        let step = |rate, seconds| Step { rate, seconds };
        let steps = [step(4.0, 1.0), step(0.0, 2.0), step(2.0, 1.0)];
        let due: Vec<u64> = Schedule::new(&steps, false, 0).map(|at| at / 1_000_000).collect();
        assert_eq!(due, [0, 250, 500, 750, 3_000, 3_500]);
    }

    #[test]
    fn random_intervals_have_the_right_mean_and_spread() {
        let steps = [Step { rate: 1_000.0, seconds: 20.0 }];
        let due: Vec<u64> = Schedule::new(&steps, true, 7).collect();
        assert!(due.is_sorted() && *due.last().unwrap() < 20_000_000_000);
        assert!((19_500..20_500).contains(&due.len()), "{}", due.len());
        let gaps: Vec<f64> = due.windows(2).map(|two| (two[1] - two[0]) as f64 / 1e6).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let square = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        assert!((square.sqrt() / mean - 1.0).abs() < 0.05, "exponential: deviation equals mean");
    }
}
