use super::*;
use crate::document::{Blocks, Flush, Latency, Row, Survives};
use crate::sample;

fn rows(names: &[&str], mb_per_s: &[f64]) -> Vec<Row> {
    let rates: Vec<f64> = mb_per_s.iter().map(|rate| rate * 1e6).collect();
    names.iter().map(|name| sample::row(name, "power-loss", &rates)).collect()
}

fn document(mb_per_s: &[f64]) -> Document {
    sample::document(rows(&["stream/cached", "small/o_dsync-each"], mb_per_s))
}

const FIVE: [f64; 5] = [100.0, 103.0, 98.0, 101.0, 99.0];

fn times(factor: f64) -> Document {
    document(&FIVE.map(|rate| rate * factor))
}

fn varied(change: impl Fn(&mut Row)) -> Document {
    let mut document = times(1.0);
    document.scenarios[0].rows.iter_mut().for_each(change);
    document
}

fn verdicts(comparison: &Comparison) -> Vec<Verdict> {
    comparison.rows.iter().map(|row| row.verdict).collect()
}

#[test]
fn a_result_does_not_differ_from_itself() {
    let comparison = compare(&times(1.0), &times(1.0)).unwrap();
    assert_eq!(verdicts(&comparison), [Verdict::NoDetectableDifference; 2]);
    assert!(comparison.differences.is_empty() && comparison.not_compared.is_empty());
    assert!(comparison.notes.is_empty(), "{:?}", comparison.notes);
    let change = &comparison.rows[0].throughput_bytes_per_s;
    assert_eq!((change.ratio, change.old_runs, change.new_runs), (1.0, 5, 5));
    assert!(change.ci95_low.unwrap() < 1.0 && change.ci95_high.unwrap() > 1.0);
}

#[test]
fn a_clear_difference_is_called_faster_or_slower() {
    let faster = compare(&times(1.0), &times(1.5)).unwrap();
    assert_eq!(verdicts(&faster), [Verdict::Faster; 2]);
    let slower = compare(&times(1.0), &times(0.8)).unwrap();
    assert_eq!(verdicts(&slower), [Verdict::Slower; 2]);
    assert!((slower.rows[0].throughput_bytes_per_s.ratio - 0.8).abs() < 1e-9);
}

#[test]
fn of_one_run_nothing_can_be_said() {
    let comparison = compare(&document(&[100.0]), &times(0.1)).unwrap();
    assert_eq!(verdicts(&comparison), [Verdict::OneRun; 2]);
    assert_eq!(comparison.rows[0].throughput_bytes_per_s.ci95_low, None);
    assert!(comparison.notes[0].starts_with("one run: 2 of 2 rows can't be judged"));
}

#[test]
fn other_work_is_refused_with_both_values_unless_it_is_allowed() {
    for (change, key, values) in [
        ((|row: &mut Row| row.settings.asked.bs_bytes *= 2) as fn(&mut Row), "bs", "524288 in OLD"),
        (|row| row.settings.asked.iodepth = 7, "iodepth", "1 in OLD and 7 in NEW"),
        (|row| row.settings.asked.numjobs = 2, "numjobs", "1 in OLD and 2 in NEW"),
        (|row| row.settings.asked.direct ^= true, "direct", "false in OLD and true in NEW"),
        (|row| row.settings.asked.rw = "rw".into(), "rw", "write in OLD and rw in NEW"),
        (|row| row.settings.asked.sync = Flush::Always, "sync", "and always in NEW"),
        (
            |row| row.settings.asked.blocks = Blocks::Unknown,
            "blocks",
            "new in OLD and unknown in NEW",
        ),
        (|row| row.settings.asked.data = Some("zeros".into()), "data", "none in OLD and zeros"),
        (|row| row.settings.asked.rate_iops = Some(9.0), "rate_iops", "none in OLD and 9 in NEW"),
        (|row| row.settings.asked.message_bytes_min = Some(3), "message_bytes_min", "and 3 in NEW"),
        (
            |row| row.survives = Some(Survives::OsCrash),
            "survives",
            "power-loss in OLD and os-crash",
        ),
    ] {
        let (old, new) = (times(1.0), varied(change));
        let error = compare(&old, &new).unwrap_err();
        assert!(matches!(&error, Error::Failed(text) if text.contains(values)), "{key}: {error}");
        assert!(!error.to_string().contains('\n'));
        let allowed = Allowed::Only(vec![key.into()]);
        let comparison = compare_allowing(&old, &new, &allowed).unwrap();
        assert_eq!(comparison.rows.len(), 2, "{key}");
        assert_eq!(comparison.rows[0].differences.len(), 1, "{key}");
        assert!(allowable().iter().any(|known| pair::is_called(known, key)), "{key}");
    }
}

#[test]
fn a_row_of_other_work_is_left_out_and_the_others_are_compared() {
    let mut new = times(1.0);
    new.scenarios[0].rows[1].settings.asked.iodepth = 7;
    let comparison = compare(&times(1.0), &new).unwrap();
    assert_eq!(comparison.rows.len(), 1);
    let left_out = &comparison.not_compared[0];
    assert_eq!(left_out.because, Because::OtherWork);
    assert_eq!(left_out.differences[0].to_string(), "asked.iodepth is 1 in OLD and 7 in NEW");
}

#[test]
fn sizes_that_a_calibration_chose_may_differ_and_a_great_difference_is_said() {
    let size = |bytes: u64| {
        varied(move |row| {
            row.settings.asked.size_bytes = bytes;
            row.bytes_per_run = bytes;
        })
    };
    let near = compare(&size(1_000_000_000), &size(1_900_000_000)).unwrap();
    assert!(near.rows.len() == 2 && near.notes.is_empty(), "{:?}", near.notes);
    let far = compare(&size(1_000_000_000), &size(2_100_000_000)).unwrap();
    assert!(far.rows.len() == 2 && far.notes[0].contains("more than 2 times as long"));
}

#[test]
fn random_access_over_a_clearly_larger_file_is_other_work() {
    let random = |bytes: u64| {
        varied(move |row| {
            row.settings.asked.rw = "randwrite".into();
            row.settings.asked.size_bytes = bytes;
        })
    };
    assert!(compare(&random(1 << 30), &random(3 << 29)).is_ok());
    let error = compare(&random(1 << 30), &random(1 << 40)).unwrap_err();
    assert!(error.to_string().contains("asked.size_bytes is 1073741824 in OLD"), "{error}");
}

#[test]
fn results_without_a_common_row_name_rows_of_each() {
    let old = sample::document(rows(&["stream/cached"], &FIVE));
    let new = sample::document(rows(&["stream/direct"], &FIVE));
    let error = compare(&old, &new).unwrap_err().to_string();
    assert!(
        error.contains("OLD has rows such as stream/cached, NEW such as stream/direct"),
        "{error}"
    );
}

#[test]
fn differences_between_the_machines_are_listed() {
    let mut new = times(1.0);
    new.host.kernel = "6.18".into();
    new.target.free_bytes += 1;
    new.target.device.as_mut().unwrap().scheduler = "kyber".into();
    new.wrote.debug_build = true;
    let comparison = compare(&times(1.0), &new).unwrap();
    let keys: Vec<&str> = comparison.differences.iter().map(|of| of.key.as_str()).collect();
    assert_eq!(keys, ["host.kernel", "target.device.scheduler", "wrote.debug_build"]);
    new.target.free_bytes = 0;
    let comparison = compare(&times(1.0), &new).unwrap();
    let used = comparison.differences.last().unwrap();
    assert_eq!(used.to_string(), "target used is 50 % in OLD and 100 % in NEW");
}

#[test]
fn a_fallback_on_one_side_is_told_beside_the_row() {
    let mut new = times(1.0);
    new.scenarios[0].rows[0].settings.effective.ioengine = "threads".into();
    let comparison = compare(&times(1.0), &new).unwrap();
    assert_eq!(comparison.rows[0].differences[0].key, "effective.ioengine");
    assert!(comparison.rows[1].differences.is_empty());
}

#[test]
fn rows_of_other_names_are_paired_by_their_places_where_something_may_differ() {
    let old = sample::document(rows(&["append/log/4", "append/wait/4"], &FIVE));
    let new = sample::document(rows(&["append/log/64", "append/wait/64"], &FIVE));
    assert!(compare(&old, &new).is_err());
    let comparison = compare_allowing(&old, &new, &Allowed::Everything).unwrap();
    assert_eq!(comparison.rows[1].name, "append/wait/4");
    assert_eq!(comparison.rows[1].new_name.as_deref(), Some("append/wait/64"));
    assert!(comparison.not_compared.is_empty());
}

/// Returns a result with rows at a rate, whose runs all have the same throughput and these 99th
/// percentiles.
fn at_a_rate(p99_us: [u64; 5]) -> Document {
    let mut document = document(&[100.0; 5]);
    for row in &mut document.scenarios[0].rows {
        row.settings.asked.rate_iops = Some(1000.0);
        for (run, p99_us) in row.runs.iter_mut().zip(p99_us) {
            run.latency_ns =
                Some(Latency { p99: p99_us * 1000, count: 1000, ..Latency::default() });
        }
    }
    document
}

#[test]
fn rows_that_are_held_to_a_rate_are_judged_by_their_latency() {
    let (old, new) = (at_a_rate([100, 101, 99, 103, 98]), at_a_rate([200, 202, 198, 206, 196]));
    let comparison = compare(&old, &new).unwrap();
    assert_eq!(comparison.rows[0].by, Measure::P99LatencyNs);
    assert_eq!(verdicts(&comparison), [Verdict::Slower; 2]);
    assert!(fail_if_slower(&comparison, 0.05).is_err());
    assert_eq!(verdicts(&compare(&new, &old).unwrap()), [Verdict::Faster; 2]);
}

#[test]
fn latencies_are_compared_only_where_every_run_has_one() {
    let mut old = times(1.0);
    assert!(compare(&old, &times(1.0)).unwrap().rows[0].p99_latency_ns.is_none());
    old.scenarios[0].rows[0].runs[0].latency_ns =
        Some(Latency { p99: 5, count: 1, ..Latency::default() });
    assert!(compare(&old, &old).unwrap().rows[0].p99_latency_ns.is_none());
}

#[test]
fn the_gate_fails_where_a_row_became_slower_by_more_than_was_allowed() {
    let slower = compare(&times(1.0), &times(0.8)).unwrap();
    let error = fail_if_slower(&slower, 0.05).unwrap_err().to_string();
    assert_eq!(
        error,
        "slower by more than 5 %: stream/cached (x 0.80), small/o_dsync-each (x 0.80)"
    );
    assert!(fail_if_slower(&slower, 0.25).is_ok());
    assert!(fail_if_slower(&compare(&times(1.0), &times(1.5)).unwrap(), 0.05).is_ok());
    assert!(fail_if_slower(&compare(&times(1.0), &times(1.0)).unwrap(), 0.05).is_ok());
}

#[test]
fn the_gate_fails_where_it_has_not_looked() {
    let mut fewer = times(1.0);
    fewer.scenarios[0].rows.pop();
    let error = fail_if_slower(&compare(&times(1.0), &fewer).unwrap(), 0.05).unwrap_err();
    assert!(error.to_string().contains("were not compared: small/o_dsync-each"), "{error}");
    assert!(fail_if_slower(&compare(&fewer, &times(1.0)).unwrap(), 0.05).is_ok());
    let single = compare(&document(&[1.0]), &document(&[1.0])).unwrap();
    assert!(fail_if_slower(&single, 0.05).unwrap_err().to_string().contains("one run"));
}

#[test]
fn a_difference_that_only_many_looks_gave_is_not_called_one() {
    // One row out of forty has medians that differ by chance.
    let names: Vec<String> = (0..40).map(|number| format!("stream/{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let old = sample::document(rows(&names, &[100.0, 104.0, 96.0, 102.0, 98.0]));
    let mut new = old.clone();
    let shifted = [101.0, 110.0, 105.5, 106.0, 104.5].map(|rate| rate * 1e6);
    new.scenarios[0].rows[7] = sample::row("stream/7", "power-loss", &shifted);
    let comparison = compare(&old, &new).unwrap();
    let change = &comparison.rows[7].throughput_bytes_per_s;
    assert!(change.ci95_low.unwrap() > 1.0, "{change:?}");
    assert_eq!(change.verdict, Verdict::NoDetectableDifference, "{change:?}");
    assert!(comparison.notes[0].contains("Holm"), "{:?}", comparison.notes);
    let alone = |document: &Document| sample::document(vec![document.scenarios[0].rows[7].clone()]);
    let comparison = compare(&alone(&old), &alone(&new)).unwrap();
    assert_eq!(verdicts(&comparison), [Verdict::Faster]);
}
