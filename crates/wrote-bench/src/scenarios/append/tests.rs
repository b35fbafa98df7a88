//! Tests that every method either writes what was sent, or is reported not to, and leaves no files.

use super::*;
use crate::sample::{Asked, entries};
use crate::scratch::Scratch;
use fixtures::folder;
use std::collections::HashSet;
use std::path::Path;
use std::time::Duration;
use wrote::device;
use wrote_jobs::rate::{Amount, Rate};
use wrote_result::document::{Process, Row};
use wrote_result::{Error, Stop};

const MESSAGES: u64 = 700;

fn request(folder: &Path, only: &str, runs: u32) -> Asked {
    Asked {
        only: vec![only.into()],
        messages: Some(MESSAGES as u32),
        producers: vec![3],
        runs: Some(runs),
        ..Asked::new(folder.to_owned())
    }
}

/// Measures a method, and checks that it leaves no files.
fn row(request: &Asked) -> Row {
    let scratch = Scratch::make(&request.path).unwrap();
    let outcome = request.measured(&scratch, &Stop::new(), false).unwrap();
    assert!(entries(scratch.path()).is_empty(), "{:?}", request.only);
    let [row] = &outcome.scenario.rows[..] else { panic!("{:?}: one row", request.only) };
    row.clone()
}

/// Asserts that every message of each run was found once and intact.
fn assert_has_all(row: &Row) {
    for run in &row.runs {
        let records = run.records.unwrap();
        assert!(records.are_whole() && records.sent == MESSAGES, "{}: {records:?}", row.name);
        assert!(run.bytes >= 300 * MESSAGES && run.bytes <= 2000 * MESSAGES, "{}", row.name);
        assert!(run.elapsed_s > 0.0 && run.iops > 0.0, "{}", row.name);
    }
    assert_eq!(row.latency_ns.unwrap().count, row.runs.len() as u64 * MESSAGES, "{}", row.name);
    assert!(row.has_all_records() && row.view() == wrote_result::document::View::Messages);
}

#[test]
fn at_a_rate_every_way_writes_what_was_sent_and_says_what_it_was_held_to() {
    let folder = folder();
    let rate = Rate { amount: Amount::OperationsPerS(50_000), process: Process::Poisson };
    for strategy in STRATEGIES.iter().filter(|strategy| strategy.name != "append/flume-10-files") {
        let row = row(&Asked { rate: Some(rate), ..request(folder.path(), strategy.name, 1) });
        assert_has_all(&row);
        assert!(row.is_open_loop(), "{}", row.name);
        assert_eq!(row.settings.asked.rate_iops, Some(50_000.0));
        assert_eq!(row.settings.effective.rate_process, Some(Process::Poisson));
    }
}

#[test]
fn a_run_at_a_rate_has_as_many_messages_as_are_due_in_its_time() {
    let folder = folder();
    let target = device::examine(folder.path()).unwrap();
    let plan = |amount| {
        let rate = Some(Rate { amount, process: Process::Linear });
        let asked = Asked {
            messages: None,
            message_size: Some((500, 1500)),
            time: Some(Duration::from_secs(3)),
            rate,
            ..request(folder.path(), "append/log-no", 1)
        };
        asked.plan(&target, |of, call| Amounts::new(&of.append, call, 1 << 34)).map(Option::unwrap)
    };
    let messages = |amount| {
        let plan = plan(amount).unwrap();
        assert_eq!(plan.slice(), None, "a number of messages ends it");
        plan.messages_of(&plan.ways[0])
    };
    assert_eq!(messages(Amount::OperationsPerS(100)), 300);
    assert_eq!(messages(Amount::BytesPerS(100_000)), 300);
    assert!(matches!(plan(Amount::OperationsPerS(2)), Err(Error::Usage(_))), "of three producers");
}

fn strategies(are_ours: bool) -> impl Iterator<Item = &'static Strategy> {
    STRATEGIES.iter().filter(move |strategy| matches!(strategy.kind, Log(_)) == are_ours)
}

#[test]
fn every_usual_way_but_that_of_ten_handles_writes_what_was_sent() {
    let folder = folder();
    for strategy in strategies(false) {
        let row = row(&request(folder.path(), strategy.name, 2));
        assert_eq!((row.name.as_str(), row.runs.len()), (strategy.name, 2));
        if strategy.kind != (FlumeWriters(Opened::Each)) {
            assert_has_all(&row);
        }
    }
}

#[test]
fn a_loop_keeps_the_order() {
    let folder = folder();
    let row = row(&request(folder.path(), "append/loop", 1));
    assert_eq!(row.runs[0].records.unwrap().out_of_order, 0);
    assert_eq!(row.settings.asked.producers, Some(1));
}

#[test]
fn losses_by_ten_handles_are_counted() {
    let folder = folder();
    let scratch = Scratch::make(folder.path()).unwrap();
    let request = request(folder.path(), "append/flume-10-files", 1);
    let row = &request.measured(&scratch, &Stop::new(), true).unwrap().scenario.rows[0];
    let records = row.runs[0].records.unwrap();
    assert_eq!((records.sent, records.whole + records.lost), (MESSAGES, MESSAGES));
    // Each of the ten writers starts at the beginning of the file. The file is as long as the
    // messages only if a single writer received all of them.
    let len = entries(scratch.path())[0].metadata().unwrap().len();
    assert_eq!(records.lost > 0, len < row.runs[0].bytes, "{records:?}");
    assert_eq!(row.has_all_records(), len == row.runs[0].bytes, "{records:?}");
}

#[test]
fn a_log_has_every_message_in_its_producers_order() {
    // W9
    let folder = folder();
    for strategy in strategies(true) {
        let row = row(&request(folder.path(), strategy.name, 2));
        assert_has_all(&row);
        assert!(row.runs.iter().all(|run| run.records.unwrap().out_of_order == 0), "{row:?}");
        assert_eq!(row.name, format!("{}/3", strategy.name));
        assert_eq!(row.settings.asked.producers_are.as_deref(), Some("threads"));
    }
}

#[test]
fn all_ways_in_turn_leave_no_file() {
    let folder = folder();
    let scratch = Scratch::make(folder.path()).unwrap();
    let request = Asked {
        messages: None,
        message_size: Some((32, 64)),
        producers: vec![1, 2],
        ..request(folder.path(), "append/loop", 2)
    };
    let outcome = request.measured(&scratch, &Stop::new(), false).unwrap();
    assert!(entries(scratch.path()).is_empty());
    let row = &outcome.scenario.rows[0];
    let sent: HashSet<u64> = row.runs.iter().map(|run| run.records.unwrap().sent).collect();
    assert_eq!(sent.into_iter().collect::<Vec<_>>(), [row.settings.asked.messages.unwrap()]);
    assert_eq!(row.settings.asked.size_bytes, row.runs[0].bytes);
    assert_eq!(outcome.written_bytes, 2 * row.runs[0].bytes);
    assert_eq!(row.runs[0].records.unwrap().sent, 10_000);
}

#[test]
fn a_logs_run_without_a_number_ends_after_its_slice_with_all_that_was_sent() {
    let folder = folder();
    let request = Asked { messages: None, ..request(folder.path(), "append/log-always", 1) };
    let row = row(&request);
    let (run, records) = (&row.runs[0], row.runs[0].records.unwrap());
    assert!(records.are_whole() && records.sent <= 100_000, "{run:?}");
    assert_eq!(row.latency_ns.unwrap().count, records.sent);
    assert_eq!(row.settings.effective.messages, Some(records.sent));
    assert_eq!(row.settings.effective.size_bytes, run.bytes);
    assert_eq!(row.settings.asked.messages, Some(100_000));
}

#[test]
fn the_last_file_stays_where_that_was_asked_for() {
    let folder = folder();
    let scratch = Scratch::make(folder.path()).unwrap();
    let request = request(folder.path(), "append/mpsc", 1);
    request.measured(&scratch, &Stop::new(), true).unwrap();
    let [file] = &entries(scratch.path())[..] else { panic!("one file") };
    assert!(file.metadata().unwrap().len() >= 300 * MESSAGES);
}

#[test]
fn a_run_that_was_stopped_has_no_result_and_leaves_nothing() {
    request(folder().path(), NAME, 1).assert_stops();
}

#[test]
fn every_way_has_a_name_of_its_own_and_words_that_fit() {
    let names: HashSet<_> = STRATEGIES.iter().map(|strategy| strategy.name).collect();
    assert_eq!(names.len(), STRATEGIES.len());
    for strategy in STRATEGIES {
        assert!(strategy.name.starts_with("append/"), "{}", strategy.name);
        assert!(strategy.words.len() <= 26, "{}", strategy.words);
        assert!(
            Append::default().knows(strategy.name)
                && Append::default().knows(NAME)
                && !Append::default().knows("append/")
        );
    }
}

#[test]
fn only_what_was_waited_for_until_durable_survives_a_power_loss() {
    // M3
    for strategy in STRATEGIES {
        let expected = match strategy.kind {
            Kind::Log(Promise { waits: true, sync: SyncPolicy::Always }) => Survives::PowerLoss,
            Kind::Log(Promise { waits: true, .. }) => Survives::ProcessCrash,
            Kind::FlumeWriters(_) | Kind::Rendezvous => Survives::ProcessCrash,
            _ => Survives::Nothing,
        };
        assert_eq!(strategy.survives, expected, "{}", strategy.name);
    }
}
