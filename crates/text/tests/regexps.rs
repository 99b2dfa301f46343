//! Patterns as CRuby matches them: `test/mruby_gems_test.rb` asks CRuby about the same file.

use serde_json::Value;
use text::regexp::{Options, Regexp};

/// What differs, and how.
const UNLIKE: [(&str, &str); 3] = [
    ("(a*)*", "the empty round at the end is not taken"),
    ("(?~ab)", "absent operators are refused"),
    (r"[\d-x]+", "a minus behind a class is itself; CRuby calls it an error"),
];

fn ours(source: &str, options: &str, subject: &str) -> Value {
    match Regexp::new(source, Options::from_letters(options)) {
        Err(_) => "error".into(),
        Ok(regexp) => match regexp.search(subject.as_bytes(), 0).expect("these are quick") {
            None => Value::Null,
            Some(spans) => spans
                .into_iter()
                .map(|span| span.map_or(Value::Null, |(from, to)| vec![from, to].into()))
                .collect(),
        },
    }
}

#[test]
fn patterns_match_as_in_cruby() {
    let cases: Vec<(String, String, String, Value)> =
        serde_json::from_str(include_str!("regexps.json")).expect("it is JSON");
    let mut wrong = Vec::new();
    for (source, options, subject, want) in cases {
        let got = ours(&source, &options, &subject);
        let known = UNLIKE.iter().any(|(unlike, _)| *unlike == source);
        if (got == want) == known {
            wrong.push(format!("/{source}/{options} on {subject:?}: {got}, and CRuby has {want}"));
        }
    }
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

#[test]
fn no_pattern_runs_away() {
    let long = "a".repeat(20_000) + "!";
    let mut given_up = 0;
    for source in [r"^(a+)+$", r"^(a|aa)+b", r"^(a+)+\1$", r"^(?:(?=a)a+)+b", r"(a*)*\1b"] {
        let begun = std::time::Instant::now();
        let regexp = Regexp::new(source, Options::default()).expect("it is right");
        let result = regexp.search(long.as_bytes(), 0);
        println!("{source}: {:?} {result:?}", begun.elapsed());
        assert!(begun.elapsed().as_secs() < 10, "{source}");
        given_up += usize::from(result.is_err());
    }
    assert!(given_up > 1, "{given_up}");
    for huge in [
        "(?:a{1000}){1000}",
        "((((a{100}){100}){100}){100})",
        "(?<a>x\\g<a>\\g<a>|y)",
        &"(".repeat(5_000),
        &format!("{}a{}", "(".repeat(5_000), ")".repeat(5_000)),
    ] {
        let begun = std::time::Instant::now();
        let made = Regexp::new(huge, Options::default());
        println!("{:?} {:?}", begun.elapsed(), made.map(drop));
        assert!(begun.elapsed().as_secs() < 10);
    }
}

#[test]
fn bytes_need_not_be_text() {
    let regexp = |source, letters| Regexp::new(source, Options::from_letters(letters)).unwrap();
    let found = |source, letters| regexp(source, letters).search(b"a\xff\xfeb\xc3\xa9", 0).unwrap();
    assert_eq!(found("b", ""), Some(vec![Some((3, 4))]));
    assert_eq!(found("é", ""), Some(vec![Some((4, 6))]));
    assert_eq!(found("[^a]", ""), Some(vec![Some((3, 4))]));
    assert_eq!(found("[\\x80-\\xff]+", "n"), Some(vec![Some((1, 3))]));
    assert_eq!(found("\\xfe(?=b)", "n"), Some(vec![Some((2, 3))]));
    assert!(!regexp("b", "").is_match(b"b", 2).unwrap());
}
