//! Chance, the same for each seed.

use std::time::Duration;

/// xorshift64*: the same seed, the same world.
pub(in super::super) struct Luck(u64);

impl Luck {
    pub(in super::super) fn new(seed: u64) -> Luck {
        Luck(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11
    }

    pub(in super::super) fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    pub(in super::super) fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    pub(in super::super) fn millis(&mut self, from: u64, to: u64) -> Duration {
        Duration::from_millis(from + self.below(to - from + 1))
    }
}
