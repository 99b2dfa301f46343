//! What all charts share: SVG that scales with the page, scales, ticks; and the bar chart.

use std::fmt::Write;

use minijinja::HtmlEscape;

use crate::results::CaseResult;

use super::facts;
use super::figure::{self, Column};

/// Width of every chart in its own units: about the pixels of a phone.
pub const WIDTH: f64 = 420.0;

/// A drawing in progress.
pub struct Svg {
    title: String,
    desc: String,
    height: f64,
    body: String,
}

impl Svg {
    /// `title` names it, `desc` says in words what is to be seen.
    pub fn new(title: &str, desc: &str, height: f64) -> Self {
        Self { title: title.into(), desc: desc.into(), height, body: String::new() }
    }

    /// A straight line; `class` decides about its looks.
    pub fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let ((x1, y1), (x2, y2)) = (from, to);
        self.add(format_args!(
            r#"<line class="{class}" x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}"/>"#
        ));
    }

    /// A line through points.
    pub fn path(&mut self, class: &str, points: &[(f64, f64)]) {
        let mut at = String::new();
        for (x, y) in points {
            let _ = write!(at, "{x:.1},{y:.1} ");
        }
        self.add(format_args!(r#"<polyline class="{class}" points="{}"/>"#, at.trim_end()));
    }

    /// A bar.
    pub fn bar(&mut self, class: &str, (x, y): (f64, f64), (width, height): (f64, f64)) {
        self.add(format_args!(
            r#"<rect class="{class}" x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}"/>"#
        ));
    }

    /// Words; `class` may be `end` or `middle` for where they are held.
    pub fn text(&mut self, class: &str, (x, y): (f64, f64), text: &str) {
        let text = HtmlEscape(text);
        self.add(format_args!(r#"<text class="{class}" x="{x:.1}" y="{y:.1}">{text}</text>"#));
    }

    fn add(&mut self, what: std::fmt::Arguments) {
        let _ = self.body.write_fmt(what);
    }

    /// The whole element.
    pub fn finish(self) -> String {
        let (title, desc) = (HtmlEscape(&self.title), HtmlEscape(&self.desc));
        format!(
            "<svg viewBox=\"0 0 {WIDTH} {}\" role=\"img\" aria-label=\"{title}\">\
             <title>{title}</title><desc>{desc}</desc>{}</svg>",
            self.height, self.body
        )
    }
}

/// From values to places.
#[derive(Clone, Copy)]
pub struct Scale {
    from: (f64, f64),
    to: (f64, f64),
    log: bool,
}

impl Scale {
    /// Even steps.
    pub fn linear(from: (f64, f64), to: (f64, f64)) -> Self {
        Self { from, to, log: false }
    }

    /// Even factors; `from` is above 0.
    pub fn log(from: (f64, f64), to: (f64, f64)) -> Self {
        Self { from: (from.0.log10(), from.1.log10()), to, log: true }
    }

    /// Where a value lies, never outside.
    pub fn at(&self, value: f64) -> f64 {
        let value = if self.log { value.max(f64::MIN_POSITIVE).log10() } else { value };
        let span = self.from.1 - self.from.0;
        let part = if span > 0.0 { (value - self.from.0) / span } else { 0.0 };
        self.to.0 + part.clamp(0.0, 1.0) * (self.to.1 - self.to.0)
    }
}

/// Round values between 0 (or `from`) and `to`, about `count` of them.
pub fn ticks(from: f64, to: f64, count: usize) -> Vec<f64> {
    let rough = (to - from) / count as f64;
    if !(rough > 0.0 && rough.is_finite()) {
        return vec![from];
    }
    let power = 10_f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|by| by * power);
    let step = step.into_iter().find(|step| *step >= rough * 0.999).unwrap_or(rough);
    let first = (from / step).ceil() as i64;
    (first..).map(|at| at as f64 * step).take_while(|tick| *tick <= to + step * 1e-9).collect()
}

/// A tick's number without needless zeros.
pub fn tick(value: f64) -> String {
    let text = figure::short(value);
    let (digits, suffix) = match text.strip_suffix(['k', 'M']) {
        Some(digits) => (digits.to_owned(), &text[digits.len()..]),
        None => (text.clone(), ""),
    };
    if !digits.contains('.') {
        return text;
    }
    digits.trim_end_matches('0').trim_end_matches('.').to_owned() + suffix
}

/// The class of a contender's colour: the same in all charts of a case.
pub fn colour(at: usize) -> String {
    let again = if at >= COLOURS { " again" } else { "" };
    format!("s{}{again}", at % COLOURS)
}

/// Colours that can be told apart.
const COLOURS: usize = 8;

const BAR: f64 = 34.0;

/// Bars with whiskers from the smallest to the largest round, one for each contender.
pub fn bars(result: &CaseResult, column: &Column) -> String {
    let summaries = result.contenders.iter();
    let summaries: Vec<_> =
        summaries.map(|facts| figure::summary(result, &facts.name, &column.full)).collect();
    let most = summaries.iter().flatten().map(|its| its.max.max(its.median));
    let most = most.filter(|value| value.is_finite()).fold(0.0, f64::max);
    let scale = Scale::linear((0.0, most), (0.0, WIDTH - 4.0));
    let mut desc = String::new();
    let mut rows = Vec::new();
    for (contender, summary) in result.contenders.iter().zip(&summaries) {
        let text = match summary {
            Some(its) => column.text(its.median),
            None if contender.absent.is_some() => "absent".into(),
            None if facts::rounds(result, &contender.name).0 == 0 => "void".into(),
            None => "not measured".into(),
        };
        let _ = write!(desc, "{}: {text}. ", contender.name);
        rows.push((contender, summary, text));
    }
    let mut svg = Svg::new(&column.long(), &desc, BAR * rows.len() as f64 + 2.0);
    for (at, (contender, summary, text)) in rows.into_iter().enumerate() {
        let top = BAR * at as f64;
        svg.text("", (0.0, top + 13.0), &contender.name);
        let class = match text.as_str() {
            "void" => "end void",
            _ if summary.is_none() => "end none",
            _ => "end",
        };
        svg.text(class, (WIDTH - 4.0, top + 13.0), &text);
        let Some(its) = summary else { continue };
        let (low, high) = (scale.at(its.min), scale.at(its.max));
        let middle = top + 23.0;
        svg.bar(&colour(at), (0.0, top + 18.0), (scale.at(its.median), 10.0));
        svg.line("whisker", (low, middle), (high, middle));
        for end in [low, high] {
            svg.line("whisker", (end, middle - 4.0), (end, middle + 4.0));
        }
    }
    svg.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round() {
        assert_eq!(ticks(0.0, 9.3, 5), [0.0, 2.0, 4.0, 6.0, 8.0]);
        assert_eq!(ticks(61.0, 64.0, 3), [61.0, 62.0, 63.0, 64.0]);
        assert_eq!(ticks(0.0, 0.0, 3), [0.0]);
        assert_eq!(ticks(0.0, f64::NAN, 3), [0.0]);
        let texts = [0.0, 0.5, 20.0, 15_000.0, 1e6, 100.0].map(tick);
        assert_eq!(texts, ["0", "0.5", "20", "15k", "1M", "100"]);
    }

    #[test]
    fn places_stay_on_the_chart() {
        let log = Scale::log((1.0, 100.0), (0.0, 10.0));
        assert_eq!([0.0, 1.0, 10.0, 100.0, 1e9].map(|value| log.at(value)), [0., 0., 5., 10., 10.]);
        assert_eq!(Scale::linear((3.0, 3.0), (7.0, 9.0)).at(3.0), 7.0);
    }
}
