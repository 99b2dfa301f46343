use super::*;

fn case(text: &str) -> Case {
    toml::from_str(&format!("name = \"x\"\ntitle = \"X\"\n{text}")).expect("a case")
}

fn common(rounds: Option<u32>, quick: bool) -> cli::Common {
    cli::Common { rounds, quick, name: None, out: cli::RUNS.into() }
}

const PHASES: &str = r#"
    warmup_seconds = 1
    [[phase]]
    name = "closed"
    kind = "closed"
    connections = 4
    seconds = 10
    [[phase]]
    name = "open"
    kind = "open"
    of = "closed"
    steps = [{ rate = 0.5, seconds = 2 }, { rate = 0.9, seconds = 6 }]
    [[phase]]
    name = "burst"
    kind = "burst"
    at_once = 10
    times = 10
"#;

fn lengths(case: &Case) -> Vec<f64> {
    case.phase.iter().map(|phase| seconds(&phase.load)).collect()
}

#[test]
fn a_quick_run_is_a_quarter_as_long_and_not_a_claim() {
    let mut one = case(PHASES);
    adapt(&mut one, &common(None, true));
    assert_eq!(lengths(&one), [2.5, 1.0 + 1.5, 0.0]);
    assert_eq!((one.rounds, one.warmup_seconds), (1, 0.5));
    let PhaseLoad::Burst { times, .. } = one.phase[2].load else { panic!("no burst") };
    assert_eq!(times, 3);
    assert_eq!(remarks(&[one], true).len(), 2);
}

#[test]
fn rounds_are_what_was_asked_for() {
    let mut one = case(PHASES);
    adapt(&mut one, &common(Some(5), false));
    assert_eq!(one.rounds, 5);
    assert_eq!(remarks(&[one], false), Vec::<String>::new());
}

#[test]
fn seconds_are_those_of_the_longest_phase() {
    let mut one = case(PHASES);
    set_main_seconds(&mut one, 20.0).expect("there is one");
    assert_eq!(lengths(&one), [20.0, 8.0, 0.0]);
    assert_eq!(planned_seconds(&one), 29.0);
    assert!(set_main_seconds(&mut case(""), 20.0).is_err());
}

#[test]
fn a_case_is_chosen_by_name() {
    let named = |name: &str| Case { case: name.into(), ..Case::named("x") };
    let all = || vec![named("a"), named("b")];
    assert_eq!(one_case(all(), "b", "x").map(|case| case.case), Ok("b".into()));
    let error = one_case(all(), "c", "x").expect_err("there is no c");
    assert_eq!(error, "x has no case c: it has a, b");
}
