//! The metrics that apps name: a table in which whoever comes first inserts, without a lock.
//!
//! A cell is written in full while nobody else looks at it, and becomes a metric by one
//! compare-and-swap of a word of the index. A process may die between any two instructions: until
//! that swap nobody knows of the cell, which is then lost (one of many, and nobody waits for it);
//! from then on it never changes but for its values. The index is a hash table of which no word is
//! ever cleared, so that two that insert the same name meet at the same word.

use crate::layout::Line;
use crate::sync::{AtomicU32, AtomicU64, Ordering::*};
use std::array::from_fn;

/// Metrics that the table holds.
pub const CELLS: usize = if cfg!(loom) { 3 } else { 1024 };
/// Words of the index: twice the cells, so that the way to a name is short.
const INDEX: usize = 2 * CELLS;
/// Longest name in bytes.
pub const NAME_BYTES: usize = if cfg!(loom) { 8 } else { 64 };
/// Most bounds of a histogram's buckets; there is one bucket more than bounds.
pub const BOUNDS: usize = if cfg!(loom) { 1 } else { 24 };
/// Where a histogram's sum is, behind its buckets.
const SUM: usize = BOUNDS + 1;

/// What a metric is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Kind {
    /// Goes up only.
    Counter = 1,
    /// Goes up and down.
    Gauge = 2,
    /// Sorts what it is told into buckets.
    Histogram = 3,
}

impl Kind {
    /// As people and Prometheus call it.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        }
    }
}

/// A metric to find, or to insert.
#[derive(Clone, Copy, Debug)]
pub struct Definition<'a> {
    /// At most `NAME_BYTES` of it, without a zero byte.
    pub name: &'a str,
    /// A name has one kind.
    pub kind: Kind,
    /// At most `BOUNDS` of them; whoever inserts decides.
    pub bounds: &'a [f64],
}

/// Why there is no cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// The name is taken by a metric of this kind.
    Kind(Kind),
    /// All cells are used; the flag is true for the first to learn it.
    Full(bool),
}

/// All metrics. All zeroes is a valid, empty table.
#[repr(C)]
pub struct Table {
    /// Not zero: somebody has learned that the table is full.
    full: AtomicU32,
    /// One more than the number of a cell, or 0.
    index: [AtomicU32; INDEX],
    cells: [Cell; CELLS],
}

/// One metric.
#[repr(C, align(64))]
pub struct Cell {
    /// Not zero: a metric, or about to become one.
    used: AtomicU32,
    kind: AtomicU32,
    name: [AtomicU64; NAME_BYTES / 8],
    /// Bits of f64; what follows the last bound is zero.
    bounds: [AtomicU64; BOUNDS],
    bounds_used: AtomicU32,
    /// A counter's or gauge's value, or a histogram's buckets and its sum.
    values: Line<[AtomicU64; BOUNDS + 2]>,
}

/// FNV-1a: the same in every process and version.
fn hash(name: &str) -> usize {
    let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    name.bytes().fold(0xcbf2_9ce4_8422_2325, mix) as usize
}

fn name_words(name: &str) -> [u64; NAME_BYTES / 8] {
    let mut bytes = [0; NAME_BYTES];
    bytes[..name.len()].copy_from_slice(name.as_bytes());
    from_fn(|i| u64::from_le_bytes(from_fn(|j| bytes[8 * i + j])))
}

impl Table {
    /// The metric of this name, made if there is none.
    pub fn find(&self, wanted: &Definition) -> Result<&Cell, Missing> {
        let words = name_words(wanted.name);
        let mut draft = None;
        let start = hash(wanted.name);
        for step in 0..INDEX {
            let entry = &self.index[start.wrapping_add(step) % INDEX];
            let mut found = entry.load(Acquire);
            if found == 0 {
                if draft.is_none() {
                    draft = self.draft(wanted, &words);
                }
                let published = match draft {
                    Some(number) => entry.compare_exchange(0, number + 1, AcqRel, Acquire),
                    // No cell is free; but what was seen above may be old.
                    None => Err(entry.fetch_or(0, Acquire)),
                };
                match (published, draft) {
                    (Ok(_), Some(number)) => return Ok(&self.cells[number as usize]),
                    (Err(other), _) if other != 0 => found = other,
                    _ => break,
                }
            }
            // A number that is none was written by somebody who should not have.
            let Some(cell) = self.cells.get(found as usize - 1) else { continue };
            if cell.is_called(&words) {
                self.discard(draft);
                let kind = cell.kind().filter(|kind| *kind != wanted.kind);
                return kind.map_or(Ok(cell), |kind| Err(Missing::Kind(kind)));
            }
        }
        self.discard(draft);
        Err(Missing::Full(self.full.swap(1, Relaxed) == 0))
    }

    /// A cell of one's own that says what is wanted.
    fn draft(&self, wanted: &Definition, name: &[u64; NAME_BYTES / 8]) -> Option<u32> {
        let claim = |cell: &Cell| cell.used.compare_exchange(0, 1, Acquire, Relaxed).is_ok();
        let number = self.cells.iter().position(claim)?;
        let cell = &self.cells[number];
        cell.kind.store(wanted.kind as u32, Relaxed);
        for (word, value) in cell.name.iter().zip(name) {
            word.store(*value, Relaxed);
        }
        for (bound, value) in cell.bounds.iter().zip(wanted.bounds) {
            bound.store(value.to_bits(), Relaxed);
        }
        cell.bounds_used.store(wanted.bounds.len() as u32, Relaxed);
        Some(number as u32)
    }

    /// Somebody else has made the metric meanwhile: the cell is free for another.
    fn discard(&self, draft: Option<u32>) {
        if let Some(number) = draft {
            self.cells[number as usize].used.store(0, Release);
        }
    }

    /// Every metric there is.
    pub fn metrics(&self) -> impl Iterator<Item = &Cell> {
        let numbers = self.index.iter().map(|entry| entry.load(Acquire));
        numbers.filter_map(|number| self.cells.get((number as usize).wrapping_sub(1)))
    }
}

impl Cell {
    fn is_called(&self, name: &[u64; NAME_BYTES / 8]) -> bool {
        self.name.iter().zip(name).all(|(word, value)| word.load(Relaxed) == *value)
    }

    /// What it is; None if somebody has written nonsense there.
    pub fn kind(&self) -> Option<Kind> {
        let kind = self.kind.load(Relaxed);
        [Kind::Counter, Kind::Gauge, Kind::Histogram].into_iter().find(|one| *one as u32 == kind)
    }

    /// Its name, as far as it can be read.
    pub fn name(&self) -> String {
        let bytes: Vec<u8> =
            self.name.iter().flat_map(|word| word.load(Relaxed).to_le_bytes()).collect();
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        String::from_utf8_lossy(&bytes[..end]).into_owned()
    }

    fn bounds(&self) -> impl Iterator<Item = f64> {
        let used = self.bounds_used.load(Relaxed) as usize;
        self.bounds[..used.min(BOUNDS)].iter().map(|bits| f64::from_bits(bits.load(Relaxed)))
    }

    /// Adds to a counter or gauge.
    #[inline]
    pub fn add(&self, by: u64) {
        self.values[0].fetch_add(by, Relaxed);
    }

    /// Sets a gauge.
    pub fn set(&self, value: u64) {
        self.values[0].store(value, Relaxed);
    }

    /// The value of a counter or gauge.
    pub fn get(&self) -> u64 {
        self.values[0].load(Relaxed)
    }

    /// Tells a histogram a value. What is no number is ignored: it belongs into no bucket, and
    /// would spoil the sum for good.
    pub fn observe(&self, value: f64) {
        if value.is_nan() {
            return;
        }
        let bucket = self.bounds().take_while(|bound| value > *bound).count();
        self.values[bucket].fetch_add(1, Relaxed);
        self.add_to_sum(value);
    }

    /// Adds what another histogram was told, as far as its bounds are the same.
    pub fn merge(&self, other: &Cell) {
        let (bounds, buckets, sum) = other.buckets();
        if self.bounds().eq(bounds) {
            for (bucket, more) in self.values.iter().zip(buckets) {
                bucket.fetch_add(more, Relaxed);
            }
            self.add_to_sum(sum);
        }
    }

    fn add_to_sum(&self, value: f64) {
        let sum = &self.values[SUM];
        let mut seen = sum.load(Relaxed);
        loop {
            let more = (f64::from_bits(seen) + value).to_bits();
            match sum.compare_exchange(seen, more, Relaxed, Relaxed) {
                Ok(_) => return,
                Err(other) => seen = other,
            }
        }
    }

    /// A histogram's bounds, how often it was told something that belongs into each bucket (one more
    /// than bounds, not added up), and the sum of all.
    pub fn buckets(&self) -> (Vec<f64>, Vec<u64>, f64) {
        let bounds: Vec<f64> = self.bounds().collect();
        let buckets = self.values[..=bounds.len()].iter().map(|one| one.load(Relaxed)).collect();
        (bounds, buckets, f64::from_bits(self.values[SUM].load(Relaxed)))
    }
}

#[cfg(any(loom, test))]
impl Table {
    /// An empty table on the heap, for models and unit tests.
    pub fn boxed() -> Box<Table> {
        let cell = |_| Cell {
            used: AtomicU32::default(),
            kind: AtomicU32::default(),
            name: from_fn(|_| AtomicU64::default()),
            bounds: from_fn(|_| AtomicU64::default()),
            bounds_used: AtomicU32::default(),
            values: Line(from_fn(|_| AtomicU64::default())),
        };
        Box::new(Table {
            full: AtomicU32::default(),
            index: from_fn(|_| AtomicU32::default()),
            cells: from_fn(cell),
        })
    }
}
