//! Lines: latency by percentile, and figures over time.

use oribi_load::hist::Hist;

use super::chart::{Scale, Svg, WIDTH, tick, ticks};

const HEIGHT: f64 = 240.0;
const LEFT: f64 = 40.0;
const RIGHT: f64 = WIDTH - 8.0;
const TOP: f64 = 26.0;
const BOTTOM: f64 = HEIGHT - 30.0;

/// One line of a chart.
pub struct Line {
    /// In words, for those who do not see it.
    pub name: String,
    /// Colour, and whether it is dashed.
    pub class: String,
    /// Values; those that are not finite are left out.
    pub points: Vec<(f64, f64)>,
}

/// Latencies as a curve: x is 1 / (1 - part), y milliseconds. None for an empty histogram.
pub fn percentiles(hist: &Hist) -> Option<Vec<(f64, f64)>> {
    const STEPS: usize = 120;
    let last = (hist.len() as f64).log10();
    if hist.is_empty() {
        return None;
    }
    let point = |at: usize| {
        let x = 10_f64.powf(last * at as f64 / STEPS as f64);
        Some((x, hist.percentile_ms(1.0 - 1.0 / x)?.max(0.001)))
    };
    let mut points: Vec<(f64, f64)> = (0..STEPS).map(point).collect::<Option<_>>()?;
    points.push((hist.len() as f64, hist.max_ms()?));
    Some(points)
}

/// The chart of percentiles, both axes in even factors.
pub fn latency(title: &str, lines: &[Line]) -> Option<String> {
    let points = || lines.iter().flat_map(|line| &line.points);
    let most = points().map(|(x, _)| *x).fold(10.0, f64::max);
    let (low, high) = range(points().map(|(_, y)| *y))?;
    // One factor of ten at least, or the axis has no ticks.
    let (low, high) = (10_f64.powf(low.log10().floor()), 10_f64.powf(high.log10().ceil()));
    let high = if high > low { high } else { low * 10.0 };
    let desc = lines.iter().map(|line| {
        let at = |x: f64| line.points.iter().take_while(|point| point.0 <= x * 1.001).last();
        let (half, worst) = (at(2.0).map_or(0.0, |p| p.1), line.points.last().map_or(0.0, |p| p.1));
        format!("{}: half below {} ms, slowest {} ms. ", line.name, tick(half), tick(worst))
    });
    let mut svg = Svg::new(title, &desc.collect::<String>(), HEIGHT);
    let (x, y) = (Scale::log((1.0, most), (LEFT, RIGHT)), Scale::log((low, high), (BOTTOM, TOP)));
    svg.text("", (0.0, 11.0), "ms");
    let mut value = low;
    while value <= high * 1.001 {
        horizontal(&mut svg, y.at(value), &tick(value));
        value *= 10.0;
    }
    let parts = [(1.0, "0"), (2.0, "50"), (10.0, "90"), (100.0, "99"), (1e3, "99.9")];
    let finer = [(1e4, "99.99"), (1e5, "99.999"), (1e6, "99.9999")];
    for (at, name) in parts.into_iter().chain(finer).filter(|(at, _)| *at <= most * 1.001) {
        vertical(&mut svg, x.at(at), name);
    }
    svg.text("middle", ((LEFT + RIGHT) / 2.0, HEIGHT - 3.0), "% of the good answers were faster");
    draw(&mut svg, lines, x, y);
    Some(svg.finish())
}

/// The chart of a figure over time; None without any value.
pub fn time(title: &str, unit: &str, lines: &[Line]) -> Option<String> {
    let points = || lines.iter().flat_map(|line| &line.points);
    let end = points().map(|(x, _)| *x).filter(|x| x.is_finite()).fold(0.0, f64::max);
    let (low, high) = range(points().map(|(_, y)| *y))?;
    // A flat line high above 0 would hide what it does.
    let low = if low > high / 2.0 { low - (high - low) * 0.1 } else { low.min(0.0) };
    let high = if high > low { high } else { low + 1.0 };
    let desc: String = lines.iter().map(|line| described(line, unit)).collect();
    let mut svg = Svg::new(title, &desc, HEIGHT);
    let (x, y) =
        (Scale::linear((0.0, end), (LEFT, RIGHT)), Scale::linear((low, high), (BOTTOM, TOP)));
    svg.text("", (0.0, 11.0), unit);
    if low > 0.0 {
        svg.text("end none", (RIGHT, 11.0), "the axis does not begin at 0");
    }
    for value in ticks(low, high, 5) {
        horizontal(&mut svg, y.at(value), &tick(value));
    }
    let (by, name) = unit_of_time(end);
    for value in ticks(0.0, end / by, 6) {
        vertical(&mut svg, x.at(value * by), &tick(value));
    }
    svg.text("middle", ((LEFT + RIGHT) / 2.0, HEIGHT - 3.0), name);
    draw(&mut svg, lines, x, y);
    Some(svg.finish())
}

/// Seconds of the unit that suits so many seconds, and its name.
pub fn unit_of_time(seconds: f64) -> (f64, &'static str) {
    match seconds {
        s if s > 2.0 * 3_600.0 => (3_600.0, "hours"),
        s if s > 180.0 => (60.0, "minutes"),
        _ => (1.0, "seconds"),
    }
}

fn described(line: &Line, unit: &str) -> String {
    match range(line.points.iter().map(|point| point.1)) {
        Some((low, high)) => {
            format!("{}: between {} and {} {unit}. ", line.name, tick(low), tick(high))
        }
        None => String::new(),
    }
}

fn range(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    let wider = |range: Option<(f64, f64)>, value: f64| match range {
        Some((low, high)) => Some((f64::min(low, value), f64::max(high, value))),
        None => Some((value, value)),
    };
    values.filter(|value| value.is_finite()).fold(None, wider)
}

fn horizontal(svg: &mut Svg, y: f64, name: &str) {
    svg.line("grid", (LEFT, y), (RIGHT, y));
    svg.text("end", (LEFT - 4.0, y + 4.0), name);
}

fn vertical(svg: &mut Svg, x: f64, name: &str) {
    svg.line("grid", (x, TOP), (x, BOTTOM));
    let half = 3.5 * name.chars().count() as f64;
    svg.text("middle", (x.min(WIDTH - half), BOTTOM + 13.0), name);
}

fn draw(svg: &mut Svg, lines: &[Line], x: Scale, y: Scale) {
    for line in lines {
        let finite = line.points.iter().filter(|(x, y)| x.is_finite() && y.is_finite());
        let places: Vec<_> = finite.map(|point| (x.at(point.0), y.at(point.1))).collect();
        svg.path(&format!("line {}", line.class), &places);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_ends_with_the_slowest() {
        let mut hist = Hist::default();
        hist.record_n(1_000, 99);
        hist.record(50_000);
        let curve = percentiles(&hist).expect("not empty");
        assert!((curve[0].1 - 1.0).abs() < 0.01, "{:?}", curve[0]);
        let last = curve.last().copied().expect("not empty");
        assert!(last.0 == 100.0 && (last.1 - 50.0).abs() < 0.1, "{last:?}");
        assert!(percentiles(&Hist::default()).is_none());
    }

    #[test]
    fn nothing_gives_no_chart() {
        assert!(latency("none", &[]).is_none());
        let line = Line { name: "a".into(), class: "s0".into(), points: vec![(1.0, f64::NAN)] };
        assert!(time("none", "s", &[line]).is_none());
    }
}
