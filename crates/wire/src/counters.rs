//! What is counted, in shared memory of its own: made once by the supervisor, for the server's
//! life, so that a value is one across workers, generations and mounts, and survives them.
//!
//! `Counters::counter` and its like are for apps, through whichever engine runs them: they look a
//! name up, or insert it, and give a handle that is a plain address from then on. To count is one
//! relaxed addition to an atomic. A process that writes here what it should not can spoil numbers,
//! and nothing else.

pub mod server;
pub mod table;

use crate::memory;
use crate::sync::{AtomicU32, AtomicU64, Ordering::*};
use server::Server;
use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use table::{BOUNDS, CELLS, Cell, Definition, Kind, Missing, NAME_BYTES, Table};

/// First word of the memory: `oribicnt` as bytes.
const MAGIC: u64 = u64::from_le_bytes(*b"oribicnt");
/// Raised whenever the meaning of any byte changes.
const VERSION: u32 = 2;
/// Names that begin so are the server's.
const RESERVED: &str = "oribi_";

/// The shape of the memory. All zeroes is valid, and counts nothing yet.
#[repr(C)]
struct Memory {
    magic: AtomicU64,
    version: AtomicU32,
    apps: Table,
    server: Server,
}

/// The memory, mapped. It stays so until the process ends.
pub struct Counters {
    memory: &'static Memory,
    fd: OwnedFd,
}

/// Why a metric cannot be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The call is wrong wherever it is made.
    Wrong(String),
    /// The call is right, but there is no place: what it counts, it counts nowhere. A line for the
    /// log, unless somebody has it there already.
    Nowhere(Option<String>),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Refused::Wrong(line) => f.write_str(line),
            Refused::Nowhere(line) => f.write_str(line.as_deref().unwrap_or("no place")),
        }
    }
}

impl std::error::Error for Refused {}

impl Counters {
    /// Makes the memory, with nothing counted. Fails as memfd_create, ftruncate and mmap do.
    pub fn create() -> io::Result<Counters> {
        let counters = Counters::map(memory::create("oribi-counters", size_of::<Memory>())?)?;
        counters.memory.version.store(VERSION, Relaxed);
        counters.memory.magic.store(MAGIC, Release);
        Ok(counters)
    }

    /// Maps memory that another process has made; refuses anything else with a line that says why.
    pub fn open(fd: OwnedFd) -> io::Result<Counters> {
        let counters = Counters::map(fd)?;
        let found = (counters.memory.magic.load(Acquire), counters.memory.version.load(Relaxed));
        memory::check_layout("counters", found, (MAGIC, VERSION))?;
        Ok(counters)
    }

    fn map(fd: OwnedFd) -> io::Result<Counters> {
        let base: NonNull<u8> = memory::map(&fd, size_of::<Memory>(), "counters")?;
        // SAFETY: the mapping is page-aligned, as long as a `Memory`, never unmapped, and a
        // `Memory` is nothing but atomics, for which every bit pattern is valid.
        let memory = unsafe { base.cast::<Memory>().as_ref() };
        Ok(Counters { memory, fd })
    }

    /// What the server counts of its own accord.
    pub fn server(&self) -> &'static Server {
        &self.memory.server
    }

    /// A number that goes up.
    pub fn counter(&self, name: &str) -> Result<Counter, Refused> {
        self.find(name, Kind::Counter, &[]).map(|cell| Counter(Some(cell)))
    }

    /// A number that goes up and down.
    pub fn gauge(&self, name: &str) -> Result<Gauge, Refused> {
        self.find(name, Kind::Gauge, &[]).map(|cell| Gauge(Some(cell)))
    }

    /// Numbers sorted into buckets. `bounds` are the buckets' upper ones, rising, infinity left
    /// out; who makes the metric decides them, and whoever finds it has those.
    pub fn histogram(&self, name: &str, bounds: &[f64]) -> Result<Histogram, Refused> {
        check_bounds(bounds)?;
        self.find(name, Kind::Histogram, bounds).map(|cell| Histogram(Some(cell)))
    }

    fn find(&self, name: &str, kind: Kind, bounds: &[f64]) -> Result<&'static Cell, Refused> {
        check_name(name)?;
        let nowhere = |line: String| Err(Refused::Nowhere(Some(line)));
        match self.memory.apps.find(&Definition { name, kind, bounds }) {
            Ok(cell) => Ok(cell),
            Err(Missing::Kind(other)) => nowhere(format!(
                "the {} {name} counts nowhere, for {name} is a {} since the server's start: give \
                 it another name, or start the server anew",
                kind.name(),
                other.name()
            )),
            Err(Missing::Full(true)) => nowhere(format!(
                "the {} {name}, and what comes after it, counts nowhere: there are {CELLS} metrics \
                 already, which is all there can be",
                kind.name()
            )),
            Err(Missing::Full(false)) => Err(Refused::Nowhere(None)),
        }
    }

    /// Every metric of the apps, in the order of their names. What cannot be read is left out.
    pub fn metrics(&self) -> Vec<Metric> {
        let mut metrics: Vec<Metric> =
            self.memory.apps.metrics().filter_map(Metric::read).collect();
        metrics.sort_by(|a, b| a.name.cmp(&b.name));
        metrics.dedup_by(|a, b| a.name == b.name);
        metrics
    }
}

impl AsFd for Counters {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// What a metric of an app stood at.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    /// A good name, even if somebody has written over it.
    pub name: String,
    /// What it is and says.
    pub value: Value,
}

/// What a metric says.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A counter's.
    Counter(u64),
    /// A gauge's.
    Gauge(i64),
    /// A histogram's.
    Histogram {
        /// The upper bounds of all buckets but the last.
        bounds: Vec<f64>,
        /// How many fell into each bucket; one more than there are bounds.
        buckets: Vec<u64>,
        /// The sum of all.
        sum: f64,
    },
}

impl Metric {
    fn read(cell: &Cell) -> Option<Metric> {
        let name = cell.name();
        check_name(&name).ok()?;
        let value = match cell.kind()? {
            Kind::Counter => Value::Counter(cell.get()),
            Kind::Gauge => Value::Gauge(cell.get() as i64),
            Kind::Histogram => {
                let (bounds, buckets, sum) = cell.buckets();
                check_bounds(&bounds).ok()?;
                Value::Histogram { bounds, buckets, sum }
            }
        };
        Some(Metric { name, value })
    }
}

/// Names that Prometheus and people can read, and that are not the server's.
fn check_name(name: &str) -> Result<(), Refused> {
    let wrong = |why: String| Err(Refused::Wrong(format!("metric {name:?}: {why}")));
    let good = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b':');
    if name.is_empty() || !name.bytes().all(good) || name.as_bytes()[0].is_ascii_digit() {
        return wrong("a name is of a to z, 0 to 9, _ and :, and begins with no digit".into());
    }
    if name.len() > NAME_BYTES {
        return wrong(format!("a name has at most {NAME_BYTES} bytes, this one {}", name.len()));
    }
    if name.starts_with(RESERVED) {
        return wrong(format!("names that begin with {RESERVED} are the server's own"));
    }
    Ok(())
}

fn check_bounds(bounds: &[f64]) -> Result<(), Refused> {
    let wrong = |why: &str| Err(Refused::Wrong(format!("buckets {bounds:?}: {why}")));
    if bounds.is_empty() || bounds.len() > BOUNDS {
        return wrong(&format!("1 to {BOUNDS} upper bounds are possible"));
    }
    if !bounds.iter().all(|bound| bound.is_finite()) {
        return wrong("upper bounds are finite; the last bucket, to infinity, is always there");
    }
    if !bounds.is_sorted_by(|a, b| a < b) {
        return wrong("upper bounds rise");
    }
    Ok(())
}

/// A number that goes up. `default()` counts nowhere.
#[derive(Clone, Copy, Default)]
pub struct Counter(Option<&'static Cell>);

impl Counter {
    /// Adds to it.
    #[inline]
    pub fn increment(self, by: u64) {
        if let Some(cell) = self.0 {
            cell.add(by);
        }
    }

    /// What it is now.
    pub fn get(self) -> u64 {
        self.0.map_or(0, Cell::get)
    }
}

/// A number that goes up and down. `default()` stays at zero.
#[derive(Clone, Copy, Default)]
pub struct Gauge(Option<&'static Cell>);

impl Gauge {
    /// Makes it this.
    pub fn set(self, value: i64) {
        if let Some(cell) = self.0 {
            cell.set(value as u64);
        }
    }

    /// Adds to it, or takes away.
    #[inline]
    pub fn add(self, by: i64) {
        if let Some(cell) = self.0 {
            cell.add(by as u64);
        }
    }

    /// What it is now.
    pub fn get(self) -> i64 {
        self.0.map_or(0, Cell::get) as i64
    }
}

/// Numbers sorted into buckets. `default()` forgets them.
#[derive(Clone, Copy, Default)]
pub struct Histogram(Option<&'static Cell>);

impl Histogram {
    /// One more of them.
    pub fn observe(self, value: f64) {
        if let Some(cell) = self.0 {
            cell.observe(value);
        }
    }

    /// Adds all that another one has, as far as its buckets are the same.
    pub fn merge(self, other: Histogram) {
        if let (Some(cell), Some(other)) = (self.0, other.0) {
            cell.merge(other);
        }
    }

    /// How many there were, and their sum.
    pub fn get(self) -> (u64, f64) {
        let (_, buckets, sum) = self.0.map_or_else(Default::default, Cell::buckets);
        (buckets.iter().sum(), sum)
    }
}
