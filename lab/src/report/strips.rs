//! Small charts one below the other, one for each contender: answers over time, requests by worker.

use std::collections::BTreeMap;

use oribi_load::outcome::Tick;

use super::chart::{Scale, Svg, WIDTH, tick, ticks};
use super::curves::unit_of_time;

const ROW: f64 = 62.0;
const HEAD: f64 = 16.0;
const TALL: f64 = 40.0;
const FOOT: f64 = 30.0;
/// More columns than this cannot be seen.
const COLUMNS: usize = 210;

/// One contender's answers over time.
pub struct Answers<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its colour.
    pub class: String,
    /// For each 100 ms.
    pub ticks: &'a [Tick],
    /// What befell it: milliseconds since the phase began.
    pub events_ms: Vec<f64>,
}

/// Good answers upwards, failed ones in red upon them, what befell the server as lines; `marks` are seconds at which
/// the load changes.
pub fn answers(title: &str, rows: &[Answers], marks: &[f64]) -> Option<String> {
    let longest = rows.iter().map(|row| row.ticks.len()).max().filter(|ticks| *ticks > 1)?;
    let each = longest.div_ceil(COLUMNS);
    let rate = |ticks: &[Tick], count: fn(&Tick) -> u32| {
        ticks.iter().map(count).map(f64::from).sum::<f64>() * 10.0 / ticks.len() as f64
    };
    let high = |row: &Answers| {
        row.ticks
            .chunks(each)
            .map(|part| rate(part, |tick| tick.ok + tick.failed))
            .fold(0.0, f64::max)
    };
    let high = rows.iter().map(high).fold(1.0, f64::max);
    let desc = rows.iter().map(|row| {
        let failed: u64 = row.ticks.iter().map(|tick| u64::from(tick.failed)).sum();
        format!("{}: {failed} failed, {} lines. ", row.name, row.events_ms.len())
    });
    let height = ROW * rows.len() as f64 + FOOT;
    let mut svg = Svg::new(title, &desc.collect::<String>(), height);
    let end = longest as f64 / 10.0;
    let x = Scale::linear((0.0, end), (0.0, WIDTH));
    let wide = x.at(each as f64 / 10.0);
    for (at, row) in rows.iter().enumerate() {
        let bottom = ROW * at as f64 + HEAD + TALL;
        let y = Scale::linear((0.0, high), (0.0, TALL));
        svg.text("", (0.0, bottom - TALL - 4.0), row.name);
        if at == 0 {
            let top = format!("full height: {}/s", tick(high));
            svg.text("end none", (WIDTH, bottom - TALL - 4.0), &top);
        }
        for (column, part) in row.ticks.chunks(each).enumerate() {
            let left = x.at((column * each) as f64 / 10.0);
            let good = y.at(rate(part, |tick| tick.ok));
            let all = y.at(rate(part, |tick| tick.ok + tick.failed));
            if good > 0.05 {
                svg.bar(&row.class, (left, bottom - good), (wide, good));
            }
            if all > good {
                // Few failures among many answers must still be seen.
                let tall = (all - good).max(2.0);
                svg.bar("failed", (left, bottom - good - tall), (wide, tall));
            }
        }
        for event in &row.events_ms {
            let at = x.at(event / 1e3);
            svg.line("kill", (at, bottom - TALL), (at, bottom + 3.0));
        }
        for mark in marks.iter().filter(|mark| **mark < end) {
            svg.line("mark", (x.at(*mark), bottom - TALL), (x.at(*mark), bottom));
        }
        svg.line("axis", (0.0, bottom), (WIDTH, bottom));
    }
    let (by, name) = unit_of_time(end);
    for value in ticks(0.0, end / by, 6).into_iter().skip(1) {
        svg.text("middle", (x.at(value * by).min(WIDTH - 10.0), height - 16.0), &tick(value));
    }
    svg.text("middle", (WIDTH / 2.0, height - 3.0), name);
    Some(svg.finish())
}

/// One contender's requests by worker.
pub struct Workers<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its colour.
    pub class: String,
    /// Good answers by worker.
    pub counts: &'a BTreeMap<String, u64>,
}

/// The share of each worker, the busiest first; the dashed line is an even share.
pub fn workers(title: &str, rows: &[Workers]) -> Option<String> {
    let most = rows.iter().map(|row| row.counts.len()).max().filter(|most| *most > 0)?;
    let share = |row: &Workers| {
        let mut counts: Vec<u64> = row.counts.values().copied().collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let all = counts.iter().sum::<u64>().max(1) as f64;
        counts.into_iter().map(|count| count as f64 / all).collect::<Vec<_>>()
    };
    let high = rows.iter().flat_map(|row| share(row).first().copied()).fold(0.0, f64::max);
    let y = Scale::linear((0.0, high), (0.0, TALL));
    let step = (WIDTH / most as f64).min(60.0);
    let mut desc = String::new();
    let mut svg_rows = Vec::new();
    for row in rows {
        let shares = share(row);
        let top = shares.first().map_or(0.0, |share| share * 100.0);
        desc += &format!("{}: {} workers, the busiest had {top:.1} %. ", row.name, shares.len());
        svg_rows.push((row, shares, top));
    }
    let mut svg = Svg::new(title, &desc, ROW * rows.len() as f64);
    for (at, (row, shares, top)) in svg_rows.into_iter().enumerate() {
        let bottom = ROW * at as f64 + HEAD + TALL;
        svg.text("", (0.0, bottom - TALL - 4.0), row.name);
        let said = format!("{} workers, busiest {top:.1} %", shares.len());
        svg.text("end none", (WIDTH, bottom - TALL - 4.0), &said);
        for (worker, share) in shares.iter().enumerate() {
            let tall = y.at(*share).max(0.5);
            let left = worker as f64 * step;
            svg.bar(&row.class, (left, bottom - tall), (step * 0.85, tall));
        }
        let even = bottom - y.at(1.0 / shares.len().max(1) as f64);
        svg.line("mark", (0.0, even), (step * shares.len() as f64, even));
        svg.line("axis", (0.0, bottom), (WIDTH, bottom));
    }
    Some(svg.finish())
}
