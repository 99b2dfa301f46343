//! What the terminal shows of the sample.

use super::grid::{RED, WIDTH};
use super::{facts, sample, table};

fn plain(styled: &str) -> String {
    anstream::adapter::strip_str(styled).to_string()
}

/// Every stretch of red.
fn red(styled: &str) -> Vec<String> {
    let start = RED.to_string();
    let ends = |rest: &str| rest.split('\u{1b}').next().unwrap_or("").to_owned();
    styled.split(&start).skip(1).map(ends).collect()
}

#[test]
fn a_case_is_readable_in_a_hundred_columns() {
    for result in &sample::run().cases {
        let text = plain(&table::case(result));
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
    }
}

#[test]
fn medians_stand_with_their_spread() {
    let text = plain(&table::case(&sample::run().cases[0]));
    assert!(text.contains("41,000 (39.8–41.8k)"), "{text}");
    assert!(text.contains("req/s (1/s)"), "{text}");
    // A metric that was not measured is not 0.
    assert!(text.contains("not measured"), "{text}");
}

#[test]
fn failures_are_red() {
    let run = sample::run();
    let red = red(&table::case(&run.cases[0]));
    let has = |text: &str| red.iter().any(|stretch| stretch.contains(text));
    assert!(has("puma round 2: 14 failed: 503 × 12, timeout × 2"), "{red:?}");
    assert!(has("unicorn rounds 1, 2, 3: did not answer"), "{red:?}");
    assert!(has("2 of 3") && has("void") && has("missed"), "{red:?}");
    assert!(!has("passenger") && !has("oribi over puma"), "{red:?}");
    let red = self::red(&table::case(&run.cases[1]));
    assert!(red.iter().any(|text| text.contains("81 failed, as this case expects: reset × 81")));
    assert!(red.contains(&"9.00".to_owned()), "lost for each kill: {red:?}");
}

#[test]
fn who_is_absent_is_named_with_the_package() {
    let text = plain(&table::case(&sample::run().cases[0]));
    assert!(
        text.contains("  absent  passenger: phusion-passenger is not installed: apt"),
        "{text}"
    );
}

#[test]
fn ratios_have_intervals_and_say_what_they_tell() {
    let mut run = sample::run();
    let text = plain(&table::case(&run.cases[0]));
    assert!(text.contains("over puma"), "{text}");
    assert!(!text.contains("\n  over unicorn "), "nothing was compared with it: {text}");
    // Two sound rounds of puma: no claim.
    assert!(text.contains("1.38x ?"), "{text}");
    for summary in &mut run.cases[0].summary {
        summary.rounds = 3;
    }
    let text = plain(&table::case(&run.cases[0]));
    assert!(text.contains("1.38x (1.31–1.46) ▲"), "{text}");
    assert!(text.contains("1.02x (0.910–1.13) ="), "{text}");
    assert!(text.contains("0.420x (0.400–0.440) ▼"), "{text}");
}

#[test]
fn targets_are_kept_or_missed_and_goals_open() {
    let run = sample::run();
    let text = plain(&table::verdicts(&run));
    let ok = "hello  ok      oribi over puma, requests/s: 1.377 (at least 1.3; goal 1.6 open)";
    assert!(text.contains(ok), "{text}");
    assert!(text.contains("missed  unicorn over puma: not measured (at least 0.5)"), "{text}");
    assert!(text.contains("An unsteady machine"), "{text}");
    let remark = red(&table::verdicts(&run)).into_iter().any(|text| text.contains("Interrupted"));
    assert!(remark);
    let text = plain(&table::case(&run.cases[0]));
    assert!(text.contains("rhebok over unicorn: 1.50x (its README); here 1.44x"), "{text}");
}

#[test]
fn nothing_that_is_no_number_is_shown_as_one() {
    let mut run = sample::run();
    for summary in &mut run.cases[0].summary {
        (summary.median, summary.max) = (f64::NAN, f64::INFINITY);
    }
    for comparison in &mut run.cases[0].comparisons {
        (comparison.ratio, comparison.low) = (f64::NAN, f64::NAN);
    }
    run.cases[0].verdicts[0].measured = Some(f64::NAN);
    let text = plain(&table::case(&run.cases[0]));
    assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
}

#[test]
fn the_same_words_of_several_rounds_are_said_once() {
    let notes = facts::notes(&sample::run().cases[0]);
    let complaint = notes.iter().find(|note| note.kind == "note").expect("puma's complaint");
    assert_eq!((complaint.who.as_str(), complaint.which()), ("puma", "rounds 1, 3".to_owned()));
}
