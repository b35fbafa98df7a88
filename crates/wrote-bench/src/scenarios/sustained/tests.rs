//! Tests of changes in synthetic series: whether they are detected, and how often falsely.

use super::change::changes;
use super::made_up::{Noise, samples, step};
use wrote_result::document::Change;

const GB_PER_S: f64 = 1e9;
/// The number of series for each kind of noise.
const SEEDS: u64 = 20;

fn found(seed: u64, noise: Noise, throughputs: &[(usize, f64)]) -> Vec<Change> {
    let count = throughputs.iter().map(|(length, _)| length).sum();
    let levels: Vec<(usize, f64)> =
        throughputs.iter().map(|(length, bytes_per_s)| (*length, bytes_per_s.ln())).collect();
    shaped(seed, noise, &step(count, &levels))
}

fn shaped(seed: u64, noise: Noise, shape: &[f64]) -> Vec<Change> {
    let noisy: Vec<f64> = noise
        .series(seed, shape.len())
        .iter()
        .zip(shape)
        .map(|(noise, level)| noise + level)
        .collect();
    changes(&samples(&noisy))
}

/// Returns the kinds of noise.
fn noises() -> [(&'static str, Noise); 5] {
    let plain = Noise::default();
    [
        ("white", plain),
        ("steady", Noise { deviation: 0.001, ..plain }),
        ("correlated", Noise { correlation: 0.8, deviation: 0.15, ..plain }),
        ("heavy", Noise { deviation: 0.4, ..plain }),
        ("spikes", Noise { correlation: 0.5, spikes_share: 0.05, ..plain }),
    ]
}

/// Returns shapes without a change.
fn shapes(count: usize) -> [(&'static str, Vec<f64>); 4] {
    let part = |at: usize| at as f64 / count as f64;
    let of = |shape: &dyn Fn(usize) -> f64| (0..count).map(shape).collect::<Vec<f64>>();
    [
        ("level", of(&|_| 21.0)),
        // The end is a fifth slower than the start.
        ("drift", of(&|at| 21.0 - 0.22 * part(at))),
        ("halved slowly", of(&|at| 21.0 - 0.7 * part(at))),
        // Garbage collection now and then: a fifth of the throughput for a while.
        ("dips", of(&|at| if at % 50 < 5 { 19.4 } else { 21.0 })),
    ]
}

fn near(found: f64, truth: f64, share: f64) -> bool {
    (found / truth - 1.0).abs() <= share
}

/// Returns whether exactly one change was found, within 5 % of this position, and, if rates are
/// given, between these rates within 10 %.
fn is_cliff(changes: &[Change], at: usize, rates: Option<(f64, f64)>) -> bool {
    let [change] = changes else { return false };
    near(change.at_bytes as f64, at as f64 * 1e6, 0.05)
        && rates.is_none_or(|(before, after)| {
            near(change.before_bytes_per_s, before, 0.1)
                && near(change.after_bytes_per_s, after, 0.1)
        })
}

#[test]
#[ignore = "nightly"]
fn in_a_hundred_series_without_a_change_one_is_found_at_most() {
    let (mut series, mut false_alarms) = (0, Vec::new());
    for count in [200, 700] {
        for (noise_name, noise) in noises() {
            for (shape_name, shape) in shapes(count) {
                for seed in 0..SEEDS {
                    series += 1;
                    if !shaped(seed, noise, &shape).is_empty() {
                        false_alarms.push(format!("{count} {noise_name} {shape_name} {seed}"));
                    }
                }
            }
        }
    }
    let alarms = false_alarms.len();
    assert!(alarms * 100 <= series, "{alarms} of {series}: {false_alarms:?}");
}

#[test]
#[ignore = "nightly"]
fn a_cliff_to_a_tenth_is_found_where_it_is_with_both_rates() {
    for (name, noise) in noises() {
        for (before, after) in [(200, 800), (500, 500), (900, 100), (100, 150)] {
            for seed in 0..SEEDS / 2 {
                let rates = (2.0 * GB_PER_S, 0.2 * GB_PER_S);
                let changes = found(seed, noise, &[(before, rates.0), (after, rates.1)]);
                // If the noise has a long tail on one side, the bytes over time differ from the
                // level.
                let rates = (name == "white" || name == "steady").then_some(rates);
                assert!(is_cliff(&changes, before, rates), "{name} {before} {after}: {changes:?}");
            }
        }
    }
}

#[test]
fn a_cliff_by_a_third_is_found_in_plain_noise() {
    for seed in 0..SEEDS {
        let rates = (3.0 * GB_PER_S, 2.0 * GB_PER_S);
        let changes = found(seed, Noise::default(), &[(300, rates.0), (300, rates.1)]);
        assert!(is_cliff(&changes, 300, Some(rates)), "{seed}: {changes:?}");
    }
}

#[test]
fn two_cliffs_are_two() {
    for (name, noise) in noises() {
        for seed in 0..SEEDS / 2 {
            let levels = [(300, 4.5 * GB_PER_S), (200, 2.0 * GB_PER_S), (200, 0.5 * GB_PER_S)];
            let changes = found(seed, noise, &levels);
            let places: Vec<f64> = changes.iter().map(|change| change.at_bytes as f64).collect();
            let [first, second] = places[..] else { panic!("{name} {seed}: {changes:?}") };
            assert!(near(first, 300e6, 0.05) && near(second, 500e6, 0.05), "{name}: {changes:?}");
        }
    }
}

#[test]
fn a_rise_is_a_change_too() {
    for (name, noise) in noises() {
        for seed in 0..SEEDS / 2 {
            let levels = [(100, GB_PER_S), (300, 5.0 * GB_PER_S), (200, GB_PER_S)];
            let changes = found(seed, noise, &levels);
            let up: Vec<bool> = changes
                .iter()
                .map(|change| change.after_bytes_per_s > change.before_bytes_per_s)
                .collect();
            assert_eq!(up, [true, false], "{name} {seed}: {changes:?}");
        }
    }
}

#[test]
fn too_few_samples_say_nothing() {
    let levels = [(15, GB_PER_S), (16, GB_PER_S / 10.0)];
    assert!(found(1, Noise::default(), &levels).is_empty());
}
