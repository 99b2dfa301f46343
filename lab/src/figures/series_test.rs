use std::f64::consts::TAU;

use fastrand::Rng;
use oribi_load::hist::Hist;
use oribi_load::outcome::{Class, Outcome, Tick};

use super::{cycle, of_points, of_soak};
use crate::results::{PhaseResult, Sample};

fn gauss(rng: &mut Rng) -> f64 {
    (0..12).map(|_| rng.f64()).sum::<f64>() - 6.0
}

fn close(found: f64, wanted: f64) -> bool {
    (found - wanted).abs() <= 1e-6 * wanted.abs().max(1.0)
}

#[test]
fn a_line_by_hand() {
    let points = vec![(0.0, 1.0), (1.0, 3.0), (2.0, 2.0)];
    let found = of_points("a", "b", "c", points).unwrap();
    assert!(close(found.mean, 2.0) && close(found.deviation, 1.0), "{found:?}");
    // Slope 1/2; the rest is -1/2, 1, -1/2, whose squares are 3/2; over one degree of freedom and
    // the width of 2 that is an error of √(3/4).
    assert!(close(found.slope_per_hour.unwrap(), 1800.0), "{found:?}");
    assert!(close(found.slope_error.unwrap(), 3600.0 * 0.75_f64.sqrt()), "{found:?}");
}

#[test]
fn too_few_points_have_no_slope_and_none_no_series() {
    assert!(of_points("a", "b", "c", Vec::new()).is_none());
    let two = of_points("a", "b", "c", vec![(0.0, 5.0), (1.0, 7.0)]).unwrap();
    assert!(close(two.mean, 6.0) && two.slope_per_hour.is_none() && two.cycle.is_none());
}

#[test]
fn a_steady_leak_is_a_slope_and_no_cycle() {
    let points = (0..120).map(|at| (f64::from(at) * 5.0, 100.0 + f64::from(at) * 0.1)).collect();
    let found = of_points("pss_mb", "PSS", "MB", points).unwrap();
    assert!(close(found.slope_per_hour.unwrap(), 72.0), "{found:?}");
    assert!(found.slope_error.unwrap() < 1e-6 && found.cycle.is_none(), "{found:?}");
}

#[test]
fn white_noise_has_a_cycle_in_one_of_a_hundred_series() {
    let false_alarms = (0..1000)
        .filter(|seed| {
            let mut rng = Rng::with_seed(*seed);
            let noise: Vec<f64> = (0..120).map(|_| gauss(&mut rng)).collect();
            cycle(&noise, 5.0).is_some()
        })
        .count();
    assert!((1..=25).contains(&false_alarms), "{false_alarms} of 1000");
}

#[test]
fn what_wanders_has_no_cycle() {
    let false_alarms = (0..300)
        .filter(|seed| {
            let mut rng = Rng::with_seed(*seed);
            let mut at = 0.0;
            let points = (0..120).map(|step| {
                at += gauss(&mut rng);
                (f64::from(step), at)
            });
            of_points("a", "b", "c", points.collect()).unwrap().cycle.is_some()
        })
        .count();
    assert!(false_alarms <= 15, "{false_alarms} of 300");
}

#[test]
fn a_sine_under_noise_and_on_a_slope_is_found() {
    for seed in 0..100 {
        let mut rng = Rng::with_seed(seed);
        let phase = rng.f64();
        let points = (0..200).map(|step| {
            let at = f64::from(step) * 3.0;
            let wave = (TAU * (at / 60.0 + phase)).sin();
            (at, 1000.0 + 0.05 * at + 10.0 * wave + 7.0 * gauss(&mut rng))
        });
        let found = of_points("a", "b", "c", points.collect()).unwrap().cycle;
        let found = found.unwrap_or_else(|| panic!("seed {seed}: none"));
        assert!((found.seconds - 60.0).abs() < 3.1, "seed {seed}: {found:?}");
        // 50 of 99 parts of the variance.
        assert!((found.share - 0.505).abs() < 0.15, "seed {seed}: {found:?}");
    }
}

#[test]
fn a_pure_sine_is_all_of_its_variance() {
    let sine: Vec<f64> = (0..100).map(|at| (TAU * f64::from(at) / 10.0).sin()).collect();
    let found = cycle(&sine, 2.0).unwrap();
    assert!(close(found.seconds, 20.0) && close(found.share, 1.0), "{found:?}");
    assert!(cycle(&sine[..15], 2.0).is_none(), "too short");
    assert!(cycle(&[0.0; 100], 2.0).is_none(), "nothing varies");
}

#[test]
fn a_soak_has_a_series_of_each_kind() {
    let sample = |at: f64, cpu, gc| Sample {
        at,
        cpu,
        pss_mb: 50.0 + at,
        fds: 7,
        processes: 2,
        gc_count: None,
        gc_ms: gc,
    };
    let mut slow = Hist::default();
    slow.record_n(30_000, 10);
    let mut fast = Hist::default();
    fast.record_n(2_000, 10);
    let slices = vec![fast.clone(), fast.clone(), slow, fast];
    let mut ticks = vec![Tick { ok: 5, failed: 0 }; 10];
    ticks.extend([Tick { ok: 8, failed: 1 }; 10]);
    let result = PhaseResult {
        outcome: Outcome {
            seconds: 2.0,
            ticks,
            classes: vec![Class { slices, ..Class::default() }],
            ..Outcome::default()
        },
        samples: vec![
            sample(0.0, 0.0, Some(4.0)),
            sample(1.0, 0.5, Some(9.0)),
            sample(2.01, 2.01 * 0.75 + 0.5 - 0.75, None),
            sample(9.0, 3.0, None),
        ],
        ..PhaseResult::default()
    };
    let all = of_soak(&result);
    let points = |name: &str| {
        let one = all.iter().find(|series| series.name == name).unwrap();
        one.points.iter().map(|point| (point.1 * 100.0).round() / 100.0).collect::<Vec<_>>()
    };
    assert_eq!(points("rps"), [50.0, (80.0_f64 / 1.01 * 100.0).round() / 100.0]);
    assert_eq!(points("p99_ms"), [2.0, 30.02]);
    assert_eq!(points("pss_mb"), [51.0, 52.01]);
    assert_eq!(points("fds"), [7.0, 7.0]);
    assert_eq!(points("cpu_share"), [0.5, 0.75]);
    assert_eq!(points("failures"), [0.0, 10.0]);
    assert_eq!(points("gc_ms_per_s"), [5.0], "unknown is not zero");
    assert!(of_soak(&PhaseResult::default()).is_empty());
}
