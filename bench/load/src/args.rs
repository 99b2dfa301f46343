//! The command line.

use std::time::Duration;

use crate::target::Target;

const USAGE: &str = "\
usage: oribi-load MODE --to tcp://HOST:PORT|unix://PATH [options]

modes
  closed  every connection sends its next request when it has the answer
  mix     like closed; in each shuffled block of 20 requests one is slow
  stuck   fast requests on kept connections, meanwhile one slow request; again until --requests
  open    a constant rate, latencies from the intended start; beside it one sleeper if --slow

options
  --path P          request path of closed                     (/)
  --fast P          request path of fast requests              (/fast)
  --slow P          request path of slow requests              (/slow; open: none)
  --connections N   kept connections                           (16)
  --close           a connection per request
  --seconds S       length of the run                          (5)
  --timeout S       a request without an answer is a failure   (10)
  --requests N      stuck: fast requests to see                (400)
  --rate N          open: requests per second                  (500)
  --seed N          mix: seed of the shuffle                   (20)
  --workers N       mix: workers of the server, for its share  (3)
  --fast-ms N       mix: what a fast request takes             (10)
  --slow-ms N       mix: what a slow request takes             (400)
  --samples FILE    write every latency, as u32 microseconds, little endian";

/// What to measure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Next request when the answer is there.
    Closed,
    /// Closed loop of fast and slow requests in shuffled blocks.
    Mix,
    /// Fast requests beside one slow one.
    Stuck,
    /// Constant rate.
    Open,
}

/// The parsed command line.
#[derive(Debug)]
pub struct Options {
    pub mode: Mode,
    pub to: Target,
    pub path: String,
    pub fast: String,
    pub slow: Option<String>,
    pub connections: usize,
    pub close: bool,
    pub length: Duration,
    pub timeout: Duration,
    pub requests: usize,
    pub rate: f64,
    pub seed: u64,
    pub workers: u32,
    pub fast_ms: f64,
    pub slow_ms: f64,
    pub samples: Option<String>,
}

impl Options {
    fn new(mode: Mode) -> Self {
        Self {
            mode,
            to: Target::None,
            path: "/".into(),
            fast: "/fast".into(),
            slow: (mode != Mode::Open).then(|| "/slow".into()),
            connections: 16,
            close: false,
            length: Duration::from_secs(5),
            timeout: Duration::from_secs(10),
            requests: 400,
            rate: 500.0,
            seed: 20,
            workers: 3,
            fast_ms: 10.0,
            slow_ms: 400.0,
            samples: None,
        }
    }

    fn set(&mut self, name: &str, value: String) -> Result<(), String> {
        match name {
            "--to" => self.to = value.parse()?,
            "--path" => self.path = value,
            "--fast" => self.fast = value,
            "--slow" => self.slow = Some(value),
            "--connections" => self.connections = number(name, &value)?,
            "--seconds" => self.length = Duration::from_secs_f64(number(name, &value)?),
            "--timeout" => self.timeout = Duration::from_secs_f64(number(name, &value)?),
            "--requests" => self.requests = number(name, &value)?,
            "--rate" => self.rate = number(name, &value)?,
            "--seed" => self.seed = number(name, &value)?,
            "--workers" => self.workers = number(name, &value)?,
            "--fast-ms" => self.fast_ms = number(name, &value)?,
            "--slow-ms" => self.slow_ms = number(name, &value)?,
            "--samples" => self.samples = Some(value),
            _ => return Err(format!("unknown option {name}\n{USAGE}")),
        }
        Ok(())
    }

    fn check(self) -> Result<Self, String> {
        if matches!(self.to, Target::None) {
            return Err(format!("--to is missing\n{USAGE}"));
        }
        if self.connections == 0 || self.rate <= 0.0 || self.length.is_zero() {
            return Err("--connections, --rate and --seconds must be above 0".into());
        }
        Ok(self)
    }
}

/// Reads the arguments after the program's name.
pub fn parse(mut args: impl Iterator<Item = String>) -> Result<Options, String> {
    let mode = match args.next().as_deref() {
        Some("closed") => Mode::Closed,
        Some("mix") => Mode::Mix,
        Some("stuck") => Mode::Stuck,
        Some("open") => Mode::Open,
        _ => return Err(USAGE.into()),
    };
    let mut options = Options::new(mode);
    while let Some(name) = args.next() {
        if name == "--close" {
            options.close = true;
            continue;
        }
        let value = args.next().ok_or_else(|| format!("{name} needs a value\n{USAGE}"))?;
        options.set(&name, value)?;
    }
    options.check()
}

fn number<T: std::str::FromStr>(name: &str, value: &str) -> Result<T, String> {
    value.parse().map_err(|_| format!("{name}: {value:?} is not a number it can use"))
}
