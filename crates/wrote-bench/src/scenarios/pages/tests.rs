//! Tests of the plan and the answers, and a few rows on this machine's disk.

use super::{NAME, answer, pages};
use crate::calibration::Calibration;
use crate::plan::Plan;
use crate::sample::{Asked, asked, evidence, place, row, target};
use crate::scenario::Scenario as _;
use crate::scratch::Scratch;
use std::collections::BTreeSet;
use std::time::Duration;
use wrote_jobs::findings::Evidence;
use wrote_result::Stop;
use wrote_result::document::{Row, Survives, Torn};

fn planned(request: &Asked) -> Vec<Plan<'static>> {
    request.plan(&place(1 << 40, 1 << 39), |of, call| of.pages.plan(call)).unwrap()
}

#[test]
fn all_ways_sizes_and_clients_are_rows_which_end_within_a_minute_and_the_bytes_announced() {
    let plan = planned(&asked(&[NAME])).remove(0);
    let names: BTreeSet<String> = plan.rows.iter().map(|spec| spec.row.name.clone()).collect();
    assert_eq!((plan.rows.len(), names.len()), (5 * 4 * 2, 40));
    assert!(names.contains("pages/doublewrite-16k-16"));
    assert!(plan.time(Some(&Calibration::UNKNOWN)) < Duration::from_secs(60));
    assert!(plan.written_bytes_max() <= 10_000_000_000 && plan.space_bytes < 400 << 20);
    // The most common page size is the last to be left out.
    let first = plan.rows.iter().min_by_key(|spec| spec.importance).unwrap();
    assert!(first.row.name.contains("-16k-"));
    assert!(planned(&asked(&[])).is_empty());
    assert_eq!(planned(&asked(&["pages/atomic"]))[0].rows.len(), 8);
    assert_eq!(planned(&asked(&["pages/plain-4k-1", "rand"]))[0].rows.len(), 1);
}

#[test]
fn a_disk_without_room_is_refused() {
    let plan = |free_bytes| {
        asked(&[NAME]).plan(&place(1 << 30, free_bytes), |of, call| {
            of.pages.plan(call).map(|plans| plans.len())
        })
    };
    assert!(plan(600 << 20).is_ok());
    assert!(plan(1 << 20).unwrap_err().to_string().ends_with("Free some space first"));
}

#[test]
fn only_a_plain_page_is_torn_unless_flushes_reach_no_disk() {
    let torn = |survives_flushes: bool| {
        let mut target = place(1 << 40, 1 << 39);
        target.in_memory = !survives_flushes;
        let rows: Vec<Row> = pages().map(|page| page.composed(&target)).collect();
        let never = rows.iter().filter(|row| row.torn == Some(Torn::Never));
        assert!(never.clone().all(|row| row.survives == Some(Survives::PowerLoss)));
        never.count()
    };
    assert_eq!([torn(true), torn(false)], [4 * 4 * 2, 0]);
}

#[test]
fn a_page_counts_once_and_atomic_ones_are_measured_or_left_out_with_the_reason() {
    let folder = fixtures::folder();
    let only = ["pages/atomic-4k-1", "pages/log-image-4k-1", "pages/doublewrite-4k-16"];
    let request = Asked {
        runs: Some(2),
        time: Some(Duration::from_millis(30)),
        path: folder.path().into(),
        ..asked(&only)
    };
    let scratch = Scratch::make(folder.path()).unwrap();
    let measured = request.measured(&scratch, &Stop::new(), false).unwrap();
    assert_eq!(measured.scenario.rows.len() + measured.left_out.len(), 3);
    for (row, because) in &measured.left_out {
        assert!(row == only[0] && because.contains("no atomic writes here"), "{row}: {because}");
    }
    for row in &measured.scenario.rows {
        let run = &row.runs[0];
        assert!((run.iops * run.elapsed_s * 4096.0 - run.bytes as f64).abs() < 1.0, "{run:?}");
        assert_eq!(run.iodepth_reached, row.settings.effective.numjobs);
    }
    assert_eq!(fixtures::names(scratch.path()), ["lock"], "no file is left");
}

/// Returns a row with this number of pages per second.
fn measured(name: &str, per_s: f64) -> Row {
    let rates = [0.99, 1.0, 1.01].map(|share| share * per_s * 16384.0);
    let mut row = row(name, "power-loss", &rates);
    row.runs.iter_mut().for_each(|run| run.iops = run.throughput_bytes_per_s / 16384.0);
    let is_plain = name.contains("plain");
    row.torn = Some(if is_plain { Torn::Possible } else { Torn::Never });
    row
}

/// Returns the parts of the answer that follows from these rows with one client.
fn told(rows: &[(&str, f64)], left_out: &[(String, String)]) -> [String; 3] {
    let name = |way: &str| format!("pages/{way}-16k-1");
    let rows: Vec<Row> = rows.iter().map(|(way, per_s)| measured(&name(way), *per_s)).collect();
    let left_out = left_out.to_vec();
    let target = target();
    let evidence = Evidence { left_out, ..evidence(&target, &rows) };
    assert!(answer(&evidence, 16 << 10, 16).is_none());
    let answer = answer(&evidence, 16 << 10, 1).unwrap();
    [answer.question, answer.how, answer.note.unwrap_or_default()]
}

#[test]
fn the_answer_names_the_fastest_that_is_never_torn_and_what_it_costs() {
    let rows = [("plain", 2000.0), ("doublewrite", 600.0), ("log-image", 700.0)];
    let atomic = told(&[&rows[..], &[("atomic", 1200.0)]].concat(), &[]);
    assert_eq!(
        atomic,
        [
            "Never torn, 16 KiB, 1 client",
            "RWF_ATOMIC",
            "0.60 times a plain write (2.00 k/s), which a power loss may tear; RWF_ATOMIC: 2.00 \
             times a double write"
        ]
    );
    let left_out = ["pages/atomic-16k-1", "no atomic writes here: btrfs has none"];
    let left_out = [left_out.map(str::to_owned).into()];
    let none = told(&rows, &left_out);
    assert_eq!(none[1], "image in a log");
    assert_eq!(
        none[2],
        "0.35 times a plain write (2.00 k/s), which a power loss may tear; no atomic writes here: \
         btrfs has none"
    );
}

#[test]
fn no_winner_is_named_where_intervals_touch_and_no_page_is_safe_where_all_may_be_torn() {
    let rows = [("plain", 1000.0), ("doublewrite", 1001.0), ("new-place", 1003.0)];
    let level = told(&rows, &[]);
    // The simplest of the methods between which no difference was found.
    assert_eq!(level[1], "double write");
    assert_eq!(
        level[2],
        "no difference found from new place and pointer; no difference found from a plain write \
         (1.00 k/s), which a power loss may tear"
    );
    let lost = Row { torn: Some(Torn::Possible), ..measured("pages/doublewrite-16k-1", 1.0) };
    assert!(answer(&evidence(&target(), &[lost]), 16 << 10, 1).is_none());
}
