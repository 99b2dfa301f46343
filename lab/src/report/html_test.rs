//! The page of the sample: well-formed, by itself, and free of what is no number.

use super::{html, sample};

/// Elements that have no end.
const VOID: [&str; 3] = ["meta", "br", "hr"];

/// The first thing that is wrong with the nesting of elements.
fn broken(page: &str) -> Option<String> {
    let (style, end) = (page.find("<style>")?, page.find("</style>")?);
    let page = page[..style + 7].to_owned() + &page[end..];
    let mut open: Vec<String> = Vec::new();
    for (at, _) in page.match_indices('<') {
        let Some(tag) = page[at + 1..].split('>').next() else { return Some("no end".into()) };
        let name = tag.split([' ', '\n', '/']).find(|part| !part.is_empty()).unwrap_or("");
        if tag.contains('<') || tag.matches('"').count() % 2 == 1 {
            return Some(format!("an open tag: <{tag}>"));
        }
        if tag.starts_with('!') || tag.ends_with('/') || VOID.contains(&name) {
            continue;
        }
        if !tag.starts_with('/') {
            open.push(name.to_owned());
        } else if open.pop().as_deref() != Some(name) {
            return Some(format!("</{name}> at ...{}", &page[at.saturating_sub(200)..at]));
        }
    }
    open.pop().map(|name| format!("{name} has no end"))
}

/// The sample's page. To look at it: `ORIBI_LAB_SAMPLE=sample.html cargo test elements_are`.
fn page() -> String {
    let page = html::text(&sample::run()).expect("it is rendered");
    if let Some(path) = std::env::var_os("ORIBI_LAB_SAMPLE") {
        std::fs::write(path, &page).expect("it is written");
    }
    page
}

#[test]
fn elements_are_nested() {
    assert_eq!(broken(&page()), None);
    // And the check can fail.
    let cut = page().replacen("</td>", "", 1);
    assert!(broken(&cut).is_some());
}

#[test]
fn the_page_needs_nothing_else() {
    let page = page();
    for load in ["http://", "https://", "<link", " src=", "@import", "url(", "<script", "<iframe"] {
        assert!(!page.contains(load), "{load}");
    }
    let targets = page.split(" href=\"").skip(1).map(|rest| &rest[..rest.find('"').unwrap()]);
    for target in targets {
        let id = target.strip_prefix('#').expect("a place on the page");
        assert!(page.contains(&format!("id=\"{id}\"")), "{target} leads nowhere");
    }
}

#[test]
fn what_comes_from_elsewhere_is_escaped() {
    let page = page();
    assert!(!page.contains("<world>") && !page.contains("<error>") && !page.contains("<of>"));
    assert!(!page.contains("<round"), "the names of contenders, in charts too");
    assert!(page.contains("Hello &lt;world&gt; &amp; others"));
}

#[test]
fn nothing_is_shown_that_is_no_number() {
    let mut run = sample::run();
    for result in &mut run.cases {
        let figure = &mut result.summary[0];
        (figure.median, figure.min, figure.max) = (f64::NAN, f64::NAN, f64::INFINITY);
    }
    run.cases[1].rounds[0][0].phases[0].series[0].points[3].1 = f64::NAN;
    run.cases[1].rounds[0][0].phases[0].series[1].mean = f64::NAN;
    run.noise.spread = f64::NAN;
    let page = html::text(&run).expect("it is rendered");
    let shown = page.split("</style>").nth(1).expect("a body");
    for word in ["NaN", "inf\"", ">inf", "inf,", "undefined"] {
        assert!(!shown.contains(word), "{word}");
    }
}

#[test]
fn failures_are_red_and_the_absent_are_named() {
    let page = page();
    assert!(page.contains("<li class=\"bad\"><b>void: puma</b> round 2: 14 failed: 503 × 12"));
    assert!(page.contains("<td class=\"bad\">void</td>"));
    assert!(page.contains("<td class=\"bad\">2 of 3</td>"));
    assert!(page.contains("<td class=\"words bad\">missed</td>"));
    assert!(page.contains("<li><b>absent: passenger</b>: phusion-passenger is not installed"));
    assert!(page.contains("<td class=\"bad\">9.00</td>"), "lost for each kill");
}

#[test]
fn every_chart_says_what_it_shows() {
    let page = page();
    let charts = page.matches("<svg ").count();
    assert_eq!(page.matches("role=\"img\"").count(), charts);
    assert_eq!(page.matches("<desc>").count(), charts);
    // hello: bars; latency, time, workers in each of two phases. kill: bars, latency, time,
    // workers, two series.
    assert_eq!(charts, 7 + 6);
    assert_eq!(page.matches("class=\"kill\"").count(), 9);
    assert!(page.contains(" dash\""), "an open loop shows the usual mistake beside");
}

#[test]
fn a_run_without_any_result_has_a_page() {
    let mut run = sample::run();
    run.cases.clear();
    assert_eq!(broken(&html::text(&run).expect("it is rendered")), None);
    let mut run = sample::run();
    for result in &mut run.cases {
        result.rounds.clear();
        result.summary.clear();
        result.comparisons.clear();
    }
    assert_eq!(broken(&html::text(&run).expect("it is rendered")), None);
}
