//! Tests of `wrote compare` and `wrote bench --vs`: their output, refusals and exit codes.

use crate::support::{assert_golden, wrote};
use fixtures::{Finished, finish, folder, names, samples};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use wrote_report::{Content, Format, Screen};
use wrote_result::compare::{Comparison, compare};
use wrote_result::document::{Direction, Document, Latency, Run};
use wrote_result::stats;

const PLAIN: Screen = Screen { width: 80, colour: false, unicode: true };

/// Returns the sample with five runs of each row, and a different kernel.
fn before() -> Document {
    let mut document = samples::document();
    document.host.kernel = "6.17.1".into();
    document.findings.clear();
    for row in &mut document.scenarios[0].rows {
        let template = row.runs[0].clone();
        let run = |factor: f64| {
            let throughput_bytes_per_s = template.throughput_bytes_per_s * factor;
            let p99 = (1e6 / factor) as u64;
            let latency_ns = Some(Latency { p99, count: 1000, ..Latency::default() });
            Run { throughput_bytes_per_s, latency_ns, ..template.clone() }
        };
        row.runs = [1.0, 1.02, 0.98, 1.01, 0.99].map(run).to_vec();
    }
    document
}

/// Returns [`before`], but with slower small writes and one faster stream.
fn after() -> Document {
    let mut document = before();
    document.host.kernel = "6.18.5-arch1-1".into();
    document.started_at = "2026-04-21T09:30:00Z".into();
    document.findings = samples::document().findings;
    let rows = &mut document.scenarios[0].rows;
    for row in rows.iter_mut() {
        let factor = match row.name.as_str() {
            "stream/cached-fdatasync" => 1.21,
            name if name.starts_with("small/") => 0.8,
            _ => 1.0,
        };
        for run in &mut row.runs {
            run.throughput_bytes_per_s *= factor;
            let latency = run.latency_ns.as_mut().expect("it was made with one");
            latency.p99 = (latency.p99 as f64 / factor) as u64;
        }
        let rates: Vec<f64> = row.runs.iter().map(|run| run.throughput_bytes_per_s).collect();
        row.throughput_bytes_per_s = stats::interval(&rates);
    }
    rows[2].settings.asked.iodepth = 4;
    rows.pop();
    document
}

fn comparison() -> Comparison {
    let mut comparison = compare(&before(), &after()).expect("they have rows in common");
    comparison.old.name = "before.json".into();
    comparison.new.name = "after.json".into();
    comparison
}

fn exported(format: Format, screen: Screen) -> String {
    let mut text = Vec::new();
    let content = Content::Comparison(Box::new(comparison()));
    content.write(format, screen, &mut text).expect("memory takes everything");
    String::from_utf8(text).expect("exports are UTF-8")
}

#[test]
fn a_comparison_is_the_golden_one_in_every_format() {
    assert_golden("compare-80.txt", &exported(Format::Table, PLAIN));
    assert_golden("compare-120.txt", &exported(Format::Table, Screen { width: 120, ..PLAIN }));
    assert_golden("compare.md", &exported(Format::Markdown, PLAIN));
    assert_golden("compare.csv", &exported(Format::Csv, PLAIN));
}

/// Writes a result to a file in the folder.
fn file(folder: &Path, name: &str, document: &Document) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, serde_json::to_string(document).expect("it is JSON")).expect("a file");
    path
}

fn compared(old: &Path, new: &Path, more: &str) -> Finished {
    finish(wrote(&["compare"]).arg(old).arg(new).args(more.split_whitespace()))
}

#[test]
fn two_files_are_compared_and_the_gate_fails_after_the_comparison_is_written() {
    let folder = folder();
    let (old, new) = (file(folder.path(), "a", &before()), file(folder.path(), "b", &after()));
    let fine = compared(&old, &new, "");
    assert_eq!((fine.code(), fine.stderr.as_str()), (Some(0), ""));
    assert!(fine.stdout.contains("slower") && fine.stdout.contains("faster"), "{}", fine.stdout);
    let slower = compared(&old, &new, "--fail-if-slower 5%");
    assert_eq!((slower.code(), &slower.stdout), (Some(1), &fine.stdout));
    assert!(slower.stderr.starts_with("wrote: slower by more than 5 %: small/"), "{slower:?}");
    assert_eq!(slower.stderr.lines().count(), 1);
    let missing = compared(&old, &new, "--fail-if-slower 50%");
    assert_eq!(missing.code(), Some(1));
    assert!(missing.stderr.contains("some rows of OLD were not compared"), "{missing:?}");
    assert_eq!(compared(&old, &old, "--fail-if-slower 5%").code(), Some(0));
}

#[test]
fn one_of_the_two_may_come_from_standard_input_and_the_comparison_go_to_a_file() {
    let folder = folder();
    let (old, out) = (file(folder.path(), "a", &before()), folder.path().join("out"));
    let mut command = wrote(&["compare"]);
    command.arg("-").arg(&old).args(["--format", "csv", "-o"]).arg(&out);
    command.stdin(Stdio::from(fs::File::open(&old).expect("it is there")));
    let finished = finish(&mut command);
    assert_eq!((finished.code(), finished.stdout.as_str()), (Some(0), ""), "{finished:?}");
    assert_eq!(fs::read_to_string(&out).expect("it is written").lines().count(), 12);
    assert_eq!(names(folder.path()), ["a", "out"]);
    let both = compared(Path::new("-"), Path::new("-"), "");
    assert_eq!(both.code(), Some(2));
    assert!(both.complaint().contains("one result, not two"), "{both:?}");
}

#[test]
fn the_schema_takes_a_comparison_and_refuses_another_schema() {
    let schema = finish(&mut wrote(&["compare", "--schema"]));
    let schema: Value = serde_json::from_str(&schema.stdout).expect("it is JSON");
    assert_eq!(schema["properties"]["schema"]["const"], "wrote.compare/1");
    let keys = |value: &Value| -> Vec<String> {
        value.as_object().into_iter().flatten().map(|(key, _)| key.clone()).collect()
    };
    let written = serde_json::to_value(comparison()).expect("it is JSON");
    let known = keys(&schema["properties"]);
    assert!(keys(&written).iter().all(|key| known.contains(key)), "{known:?}");
    let row = keys(&schema["$defs"]["RowComparison"]["properties"]);
    assert!(keys(&written["rows"][0]).iter().all(|key| row.contains(key)), "{row:?}");
}

#[test]
fn two_settings_are_measured_in_turn_and_nothing_is_left() {
    let folder = folder();
    let mut command = wrote(&["bench"]);
    command.arg(folder.path()).args(["--only", "small/direct-psync", "--size", "1M"]);
    command.args(["--time", "20ms", "--runs", "3", "--format", "json", "--vs", "--bs 4K,64K"]);
    let finished = finish(&mut command);
    assert_eq!(finished.code(), Some(0), "{finished:?}");
    let comparison: Comparison = serde_json::from_str(&finished.stdout).expect("a comparison");
    let row = &comparison.rows[0];
    assert_eq!((row.throughput_bytes_per_s.old_runs, row.throughput_bytes_per_s.new_runs), (3, 3));
    assert_eq!(row.differences[0].key, "asked.bs_bytes");
    assert_eq!((comparison.new.name.as_str(), comparison.results.len()), ("--bs 4K,64K", 2));
    let both = comparison.results.iter().flat_map(|document| &document.scenarios[0].rows);
    for row in both {
        assert_eq!((row.direction, row.runs.len()), (Direction::Write, 3));
        assert!(row.latency_ns.is_some_and(|latency| latency.count > 0));
    }
    assert_eq!(finished.stderr.matches("writes at most").count(), 1, "{}", finished.stderr);
    assert!(names(folder.path()).is_empty());
}
