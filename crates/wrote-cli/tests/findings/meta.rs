//! Findings on names and small files, from made-up measurements: removals count for minutes.

use fixtures::samples;
use wrote_bench::{Meta, Scenario};
use wrote_jobs::findings::Evidence;
use wrote_result::document::{Latency, Row, Target};

/// A row whose runs have these rates. Each operation took `p50` ns.
fn row(kind: &str, iops: [f64; 3], p50: u64) -> Row {
    let mut row = samples::document().scenarios[0].rows[0].clone();
    (row.name, row.workload) = (format!("meta/own/{kind}"), "meta/own".into());
    row.settings.asked.rw = kind.into();
    row.latency_ns = Some(Latency { p50, ..Latency::default() });
    let run = row.runs[0].clone();
    row.runs = iops.map(|iops| wrote_result::document::Run { iops, ..run.clone() }).to_vec();
    row
}

/// The ids of the findings on these rows, on ext4 mounted with `option`.
fn ids(option: &str, has_journal: bool, rows: &[Row]) -> Vec<String> {
    let mount_options = vec![option.to_owned()];
    let has_journal = Some(has_journal);
    let target = Target { mount_options, has_journal, ..samples::document().target };
    let evidence = Evidence::of_rows(&target, rows);
    Meta::default().findings(&evidence).into_iter().map(|finding| finding.id).collect()
}

#[test]
fn slower_each_round_is_said_of_rates_that_fall() {
    assert_eq!(ids("rw", true, &[row("create", [4e4, 2e4, 1e4], 20)]), ["slower-each-round"]);
}

#[test]
fn slower_each_round_is_not_said_of_rates_that_rise_once() {
    assert!(ids("rw", true, &[row("create", [4e4, 1e4, 2e4], 20)]).is_empty());
}

#[test]
fn removed_inodes_is_said_of_creations_that_take_many_times_a_rename() {
    let rows = [row("create", [2e3; 3], 500), row("rename", [5e4; 3], 16)];
    assert_eq!(ids("rw", false, &rows), ["removed-inodes"]);
}

#[test]
fn removed_inodes_is_not_said_where_there_is_a_journal() {
    let rows = [row("create", [2e3; 3], 500), row("rename", [5e4; 3], 16)];
    assert!(ids("rw", true, &rows).is_empty());
}

#[test]
fn discard_at_removal_is_said_without_a_journal() {
    assert_eq!(ids("discard", false, &[row("unlink", [300.0; 3], 20)]), ["discard-at-removal"]);
}

#[test]
fn discard_at_removal_is_not_said_with_a_journal() {
    assert!(ids("discard", true, &[row("unlink", [300.0; 3], 20)]).is_empty());
}
