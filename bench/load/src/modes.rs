//! The four ways to put load on a server. Each is a loop around [`Engine::wait`].

use std::collections::VecDeque;

use crate::args::{Mode, Options};
use crate::engine::{Done, Engine};
use crate::stats::Stats;

const FAST: usize = 0;
const SLOW: usize = 1;
const SECOND: u64 = 1_000_000_000;

/// Runs what the options ask for; the answer is one line of JSON.
pub fn run(options: &Options) -> Result<String, String> {
    match options.mode {
        Mode::Closed => closed(options),
        Mode::Mix => mix(options),
        Mode::Stuck => stuck(options),
        Mode::Open => open(options),
    }
}

fn engine(options: &Options, connections: usize, paths: &[&str]) -> Result<Engine, String> {
    Engine::new(&options.to, connections, paths, options.close, options.timeout)
}

fn length(options: &Options) -> u64 {
    u64::try_from(options.length.as_nanos()).unwrap_or(u64::MAX)
}

fn slow_path(options: &Options) -> &str {
    options.slow.as_deref().unwrap_or("/slow")
}

/// What is under way at the end is waited for: its latency counts, and one that never comes is a
/// failure. Only answers before the end count for the throughput.
fn closed(options: &Options) -> Result<String, String> {
    let mut engine = engine(options, options.connections, &[&options.path])?;
    let (mut stats, mut done, mut in_time) = (Stats::default(), Vec::new(), 0);
    let begin = engine.now();
    let end = begin + length(options);
    for conn in 0..options.connections {
        engine.start(conn, FAST, engine.now());
    }
    loop {
        let running = engine.now() < end;
        if !running && engine.outstanding() == 0 {
            break;
        }
        engine.wait(if running { end } else { engine.now() + SECOND }, &mut done)?;
        for one in &done {
            stats.record(one.end - one.start, one.outcome);
            if one.end < end {
                in_time += u64::from(one.outcome.is_ok());
                engine.start(one.conn, FAST, engine.now());
            }
        }
    }
    write_samples(options, &stats)?;
    let seconds = options.length.as_secs_f64();
    Ok(format!("{{\"mode\":\"closed\",\"seconds\":{seconds},{}}}", stats.json(in_time, seconds)))
}

/// A closed loop in which each shuffled block of 20 requests has one that is slow.
///
/// `served` is the part of what its workers could have done that the server did: each request
/// counts with the time that it takes by itself. A request whose service runs beyond the end
/// counts with the part before it, so that the length of the run leaves no edge.
fn mix(options: &Options) -> Result<String, String> {
    let mut engine = engine(options, options.connections, &[&options.fast, slow_path(options)])?;
    let mut draw = Blocks::new(options.seed);
    let (mut stats, mut done) = ([Stats::default(), Stats::default()], Vec::new());
    let service = [options.fast_ms * 1e6, options.slow_ms * 1e6];
    let mut worked = 0.0;
    let end = engine.now() + length(options);
    for conn in 0..options.connections {
        engine.start(conn, draw.next(), engine.now());
    }
    while engine.outstanding() > 0 || engine.now() < end {
        engine.wait(end.max(engine.now() + SECOND), &mut done)?;
        for one in &done {
            let late = one.end.saturating_sub(end) as f64;
            if one.outcome.is_ok() {
                worked += (service[one.kind] - late).max(0.0);
            }
            if one.end <= end || one.outcome.is_err() {
                stats[one.kind].record(one.end - one.start, one.outcome);
            }
            if one.end < end {
                engine.start(one.conn, draw.next(), engine.now());
            }
        }
    }
    let seconds = options.length.as_secs_f64();
    let possible = f64::from(options.workers) * length(options) as f64;
    Ok(format!(
        "{{\"mode\":\"mix\",\"seconds\":{seconds},\"rps\":{:.3},\"served\":{:.5},{}}}",
        stats.iter().map(Stats::requests).sum::<usize>() as f64 / seconds,
        worked / possible,
        fast_and_slow(stats, seconds),
    ))
}

fn fast_and_slow([mut fast, mut slow]: [Stats; 2], seconds: f64) -> String {
    let (in_time, slow_in_time) = (fast.requests() as u64, slow.requests() as u64);
    format!(
        "\"fast\":{{{}}},\"slow\":{{{}}}",
        fast.json(in_time, seconds),
        slow.json(slow_in_time, seconds),
    )
}

/// Fast requests on kept connections; while they run, one slow request on its own connection, and
/// another one until enough fast requests were seen. A fast request belongs to the slow one during
/// which it was *sent*: one that is stuck behind it must not escape by ending after it.
fn stuck(options: &Options) -> Result<String, String> {
    let fast_conns = options.connections;
    let mut engine = engine(options, fast_conns + 1, &[&options.fast, slow_path(options)])?;
    let [mut fast, mut slow] = [Stats::default(), Stats::default()];
    let (mut done, mut span) = (Vec::new(), Span::default());
    let begin = engine.now();
    let mut sent = vec![begin; fast_conns];
    for conn in 0..fast_conns {
        engine.start(conn, FAST, begin);
    }
    // The fast ones reach their stride before the first slow one comes.
    let mut next_slow = begin + SECOND / 5;
    while fast.requests() < options.requests || span.running {
        let now = engine.now();
        if now - begin > 60 * SECOND {
            return Err("stuck: not enough fast requests within a minute".into());
        }
        let settled = !span.running && sent.iter().all(|&start| start >= span.to);
        if settled && now >= next_slow && fast.requests() < options.requests {
            span = Span { from: now, to: u64::MAX, running: true };
            engine.start(fast_conns, SLOW, now);
        }
        engine.wait(if span.running { now + SECOND } else { now + SECOND / 100 }, &mut done)?;
        for one in &done {
            if one.kind == SLOW {
                slow.record(one.end - one.start, one.outcome);
                (span.to, span.running) = (one.end, false);
                next_slow = one.end;
                continue;
            }
            if span.holds(one) {
                fast.record(one.end - one.start, one.outcome);
            }
            sent[one.conn] = engine.now();
            engine.start(one.conn, FAST, sent[one.conn]);
        }
    }
    let seconds = (engine.now() - begin) as f64 / SECOND as f64;
    Ok(format!(
        "{{\"mode\":\"stuck\",\"seconds\":{seconds:.3},{}}}",
        fast_and_slow([fast, slow], seconds),
    ))
}

/// When the slow request of `stuck` was under way.
#[derive(Default)]
struct Span {
    from: u64,
    to: u64,
    running: bool,
}

impl Span {
    fn holds(&self, one: &Done) -> bool {
        self.to > 0 && one.start >= self.from && one.start < self.to
    }
}

/// A constant rate on a pool of kept connections. A request that finds no free connection waits
/// for one, and that counts: the latency is from the intended start.
fn open(options: &Options) -> Result<String, String> {
    let pool = options.connections;
    let slow_path = options.slow.as_deref();
    let paths = [options.fast.as_str(), slow_path.unwrap_or("/")];
    let mut engine = engine(options, pool + 1, &paths)?;
    let [mut fast, mut slow] = [Stats::default(), Stats::default()];
    let (mut free, mut waiting) = ((0..pool).collect::<Vec<_>>(), VecDeque::new());
    let (mut done, begin) = (Vec::new(), engine.now());
    let total = (options.rate * options.length.as_secs_f64()).round() as u64;
    let due = |nr: u64| begin + (nr as f64 * SECOND as f64 / options.rate) as u64;
    if slow_path.is_some() {
        engine.start(pool, SLOW, begin);
    }
    let mut next = 0;
    while next < total || !waiting.is_empty() || engine.outstanding() > 0 {
        while next < total && due(next) <= engine.now() {
            waiting.push_back(due(next));
            next += 1;
        }
        while !waiting.is_empty() {
            let Some(conn) = free.pop() else { break };
            engine.start(conn, FAST, waiting.pop_front().unwrap_or(begin));
        }
        let until = if next < total { due(next) } else { engine.now() + SECOND };
        engine.wait(until, &mut done)?;
        for one in &done {
            if one.kind == FAST {
                fast.record(one.end - one.start, one.outcome);
                free.push(one.conn);
                continue;
            }
            slow.record(one.end - one.start, one.outcome);
            if next < total {
                engine.start(pool, SLOW, engine.now());
            }
        }
    }
    write_samples(options, &fast)?;
    let seconds = (engine.now() - begin) as f64 / SECOND as f64;
    Ok(format!(
        "{{\"mode\":\"open\",\"seconds\":{seconds:.3},{}}}",
        fast_and_slow([fast, slow], seconds),
    ))
}

fn write_samples(options: &Options, stats: &Stats) -> Result<(), String> {
    let Some(file) = &options.samples else { return Ok(()) };
    std::fs::write(file, stats.bytes()).map_err(|error| format!("{file}: {error}"))
}

/// Kinds of requests in shuffled blocks of 20 with one slow each; the seed makes it the same
/// sequence in every run.
struct Blocks {
    state: u64,
    block: Vec<usize>,
}

impl Blocks {
    fn new(seed: u64) -> Self {
        Self { state: seed, block: Vec::new() }
    }

    fn next(&mut self) -> usize {
        if self.block.is_empty() {
            self.block = vec![FAST; 20];
            let at = (self.random() % 20) as usize;
            self.block[at] = SLOW;
        }
        self.block.pop().unwrap_or(FAST)
    }

    /// SplitMix64.
    fn random(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::{Blocks, SLOW};

    #[test]
    fn each_block_has_one_slow_request_and_the_seed_fixes_where() {
        let (mut one, mut two) = (Blocks::new(20), Blocks::new(20));
        for _ in 0..100 {
            let block: Vec<usize> = (0..20).map(|_| one.next()).collect();
            assert_eq!(block.iter().filter(|&&kind| kind == SLOW).count(), 1);
            assert_eq!(block, (0..20).map(|_| two.next()).collect::<Vec<_>>());
        }
    }
}
