//! A run made up by hand, for the tests of all that shows one: sound, absent and void contenders,
//! failures that were expected and some that were not, kills, series, workers.

use oribi_load::hist::Hist;
use oribi_load::outcome::{Class, Failures, Outcome, Tick};

use crate::results::{
    CaseResult, Cell, Comparison, ContenderFacts, Cycle, Machine, Noise, PhaseResult, ProcessUse,
    PublishedRow, Run, SCHEMA, SeriesResult, Summary, Verdict,
};
use crate::scenario::Case;

/// The whole run: `hello` and `kill/hard`.
pub fn run() -> Run {
    let settings = [("net.core.somaxconn", "4096"), ("governor", "performance")];
    Run {
        schema: SCHEMA,
        name: "sample".into(),
        started: "2026-01-30T10:00:00Z".into(),
        finished: "2026-01-30T10:09:30Z".into(),
        arguments: ["oribi", "lab", "run", "hello", "kill"].map(String::from).to_vec(),
        machine: Machine {
            identity: "one".into(),
            cpu: "A processor <of> 2 \"GHz\"".into(),
            cores: 2,
            memory_mb: 7_964,
            kernel: "6.12.0".into(),
            system: "Debian 13".into(),
            ruby: "ruby 3.3.8".into(),
            settings: settings.map(|(name, value)| (name.into(), value.into())).into(),
            load: 0.12,
        },
        noise: Noise {
            samples_ms: vec![10.0, 10.4, 11.0],
            spread: 1.08,
            steal: 0.004,
            others: 0.02,
        },
        remarks: vec!["Interrupted: the last case is missing".into()],
        cases: vec![hello(), kill()],
    }
}

fn case(text: &str) -> Case {
    toml::from_str(text).expect("the sample is a case")
}

fn hello() -> CaseResult {
    let case = case(
        r#"
        name = "hello"
        title = "Hello <world> & others, kept connections"
        about = "What a server costs by itself."
        show = ["main.rps", "main.per_cpu", "open.p50_ms", "open.p99_ms", "open.p999_ms",
                "open.uncorrected_p99_ms", "main.failed", "main.jain", "pss_mb", "start_ms"]
        baseline = ["puma", "unicorn"]
        servers = ["oribi", "puma", "unicorn", "passenger", "nginx <round robin> → 3 thin"]
        processes = true
        [[phase]]
        name = "main"
        kind = "closed"
        connections = 16
        seconds = 5
        [[phase]]
        name = "open"
        kind = "open"
        rate = 500
        seconds = 5
        "#,
    );
    let names = ["oribi", "puma", "unicorn", "passenger", "nginx <round robin> → 3 thin"];
    let speeds = [41_000.0, 21_500.0, 15_200.0, 0.0, 9_000.0];
    let rounds = (0..3).map(|round| hello_round(round, &names, &speeds)).collect();
    let mut summary = Vec::new();
    for (name, speed) in names.iter().zip(speeds).filter(|(_, speed)| *speed > 0.0) {
        let sound = if *name == "unicorn" { 0 } else { 3 - usize::from(*name == "puma") };
        for (metric, value) in metrics(speed).into_iter().filter(|_| sound > 0) {
            let (min, max) = (value * 0.97, value * 1.02);
            let (contender, median) = ((*name).into(), value);
            summary.push(Summary { contender, metric, median, min, max, rounds: sound });
        }
    }
    let over = |of: &str, metric: &str, ratio: f64, low: f64, high: f64| Comparison {
        metric: metric.into(),
        of: of.into(),
        over: "puma".into(),
        ratio,
        low,
        high,
        more_is_better: !metric.ends_with("ms"),
    };
    let fourth = names[4];
    CaseResult {
        contenders: names.iter().map(|name| facts(name)).collect(),
        rounds,
        summary,
        comparisons: vec![
            over("oribi", "main.rps", 1.377, 1.31, 1.46),
            over("oribi", "open.p99_ms", 1.02, 0.91, 1.13),
            over(fourth, "main.rps", 0.42, 0.40, 0.44),
        ],
        verdicts: vec![
            verdict("oribi over puma, requests/s", "at least 1.3", Some(1.377), true),
            verdict("oribi's memory", "at most 40", Some(61.5), false),
            verdict("unicorn over puma", "at least 0.5", None, false),
        ],
        published: vec![PublishedRow {
            published: toml::from_str(
                "what = \"rhebok over unicorn\"\nratio = 1.5\nsource = \"its README\"",
            )
            .expect("published"),
            measured: Some(1.44),
        }],
        case,
    }
}

fn verdict(label: &str, target: &str, measured: Option<f64>, ok: bool) -> Verdict {
    let goal = ok.then_some((1.6, false));
    Verdict { label: label.into(), target: target.into(), measured, ok, goal }
}

fn facts(name: &str) -> ContenderFacts {
    let absent = "phusion-passenger is not installed: apt install passenger";
    ContenderFacts {
        name: name.into(),
        servers: vec![name.split(' ').next().unwrap_or(name).into()],
        versions: vec!["1.2.3".into()],
        commands: vec![format!("{name} --bind tcp://127.0.0.1:9292 --workers 2 config.ru")],
        absent: (name == "passenger").then(|| absent.into()),
    }
}

fn metrics(speed: f64) -> Vec<(String, f64)> {
    let all = [
        ("main.rps", speed),
        ("main.per_cpu", speed * 1.21),
        ("open.p50_ms", 4e3 / speed),
        ("open.p99_ms", 9e4 / speed),
        ("open.p999_ms", 4e5 / speed),
        ("main.failed", 0.0),
        ("main.jain", 0.987),
        ("pss_mb", 61.53),
        ("start_ms", 212.0),
    ];
    all.map(|(name, value)| (name.into(), value)).to_vec()
}

fn hello_round(round: usize, names: &[&str], speeds: &[f64]) -> Vec<Cell> {
    let cell = |(name, speed): (&&str, &f64)| {
        let mut cell = Cell { contender: (*name).into(), ..Cell::default() };
        match *name {
            "passenger" => return cell,
            "unicorn" => {
                cell.error = Some("did not answer within 10 s: see its log".into());
                cell.log = vec!["boot".into(), "<error> no such file -- config.ru".into()];
                return cell;
            }
            "puma" if round == 1 => {
                cell.failures.status.insert(503, 12);
                cell.failures.timeout = 2;
                cell.unexpected_failures = 14;
            }
            "puma" => cell.complaints.push("left a process behind".into()),
            _ => {}
        }
        cell.metrics = metrics(*speed).into_iter().collect();
        cell.phases = vec![phase("main", *speed, 50), phase("open", *speed, 50)];
        let process = |title: &str, cpu_us, calls| ProcessUse {
            title: title.into(),
            cpu_us,
            wakeups: 0.51,
            preempted: 0.002,
            calls,
        };
        cell.processes = vec![process("master", 0.3, None), process("worker", 19.2, Some(4.0))];
        cell
    };
    names.iter().zip(speeds).map(cell).collect()
}

/// A phase whose latencies have a tail.
pub fn phase(name: &str, speed: f64, ticks: usize) -> PhaseResult {
    let (mut latency, mut uncorrected) = (Hist::default(), Hist::default());
    for at in 1..4_000_u64 {
        let micros = 4e6 / speed * (1.0 + 30.0 / (4_001 - at) as f64);
        latency.record(if at > 3_900 { micros as u64 * 9 } else { micros as u64 });
        uncorrected.record(micros as u64);
    }
    let wave = |at: usize| 1.0 + 0.2 * (at as f64 / 4.0).sin();
    let ok = |at: usize| (speed / 10.0 * wave(at)) as u32;
    let workers = [(101, 0.5), (102, 0.3), (103, 0.2)];
    PhaseResult {
        name: name.into(),
        outcome: Outcome {
            seconds: ticks as f64 / 10.0,
            classes: vec![Class {
                class: "all".into(),
                sent: 4_000,
                ok: 4_000,
                latency,
                uncorrected,
                ..Class::default()
            }],
            ticks: (0..ticks).map(|at| Tick { ok: ok(at), failed: 0 }).collect(),
            workers: workers.map(|(pid, part)| (pid.to_string(), (speed * part) as u64)).into(),
            ..Outcome::default()
        },
        ..PhaseResult::default()
    }
}

fn kill() -> CaseResult {
    let case = case(
        r#"
        name = "kill"
        case = "hard"
        title = "A worker dies every second"
        show = ["main.rps", "main.kills", "main.lost_per_kill", "main.gap_ms"]
        servers = ["oribi"]
        sample_seconds = 1
        [[phase]]
        name = "main"
        kind = "closed"
        connections = 4
        seconds = 10
        failures_expected = true
        kill = { every_ms = 1000, signal = "KILL" }
        "#,
    );
    let mut main = phase("main", 800.0, 100);
    main.kills_ms = (1..10).map(|second| f64::from(second) * 1e3).collect();
    main.outcome.ticks.iter_mut().skip(9).step_by(10).for_each(|tick| tick.failed = 9);
    main.series = [("rps", "1/s", 800.0), ("pss_mb", "MB", 61.0)].map(series).to_vec();
    let failures = Failures { reset: 81, ..Failures::default() };
    let metrics = [("rps", 800.0), ("kills", 9.0), ("lost_per_kill", 9.0), ("gap_ms", 31.0)];
    let metrics = metrics.map(|(name, value)| (format!("main.{name}"), value));
    let summary = metrics.clone().map(|(metric, median)| Summary {
        contender: "oribi".into(),
        metric,
        median,
        min: median,
        max: median,
        rounds: 1,
    });
    let cell = Cell {
        contender: "oribi".into(),
        metrics: metrics.into(),
        failures,
        phases: vec![main],
        ..Cell::default()
    };
    CaseResult {
        case,
        contenders: vec![facts("oribi")],
        rounds: vec![vec![cell]],
        summary: summary.into(),
        comparisons: Vec::new(),
        verdicts: Vec::new(),
        published: Vec::new(),
    }
}

fn series((name, unit, mean): (&str, &str, f64)) -> SeriesResult {
    let point = |at: u32| (f64::from(at), mean + mean / 20.0 * f64::from(at % 4));
    SeriesResult {
        name: name.into(),
        title: name.replace('_', " "),
        unit: unit.into(),
        points: (0..10).map(point).collect(),
        mean,
        deviation: mean / 20.0,
        slope_per_hour: Some(12.0),
        slope_error: Some(3.0),
        cycle: Some(Cycle { seconds: 4.0, share: 0.93 }),
    }
}
