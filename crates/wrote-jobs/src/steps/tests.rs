//! Tests of jobs of steps, on files in a temporary folder.

use super::{Done, Running, Step, Steps};
use std::path::Path;
use std::time::{Duration, Instant};
use wrote_result::{Error, Stop};

const JOURNAL: &str = r#"
    files = [
        { name = "data", bytes = 40960, start = "written" },
        { name = "journal", bytes = 8192, start = "absent" },
    ]
    each = [
        { call = "open", file = "journal" },
        { call = "write", file = "journal", bytes = 512 },
        { call = "fdatasync", file = "journal" },
        { call = "write", file = "data", bytes = 4096, random = true },
        { call = "fdatasync", file = "data" },
        { call = "unlink", file = "journal" },
    ]
"#;

fn steps(text: &str) -> Steps {
    let steps: Steps = from_toml(text);
    steps.check().unwrap();
    steps
}

fn from_toml(text: &str) -> Steps {
    toml::from_str(text).unwrap()
}

fn refused(text: &str) -> String {
    from_toml(text).check().expect_err("must be refused")
}

fn run(steps: &Steps, folder: &Path, most: u64) -> Result<Done, Error> {
    let path = |name: &str, set: u32| folder.join(format!("job-{name}-{set}.data"));
    Running::new(steps, &path, 7)?.run(Duration::from_secs(60), most, &Stop::new())
}

#[test]
fn each_transaction_makes_every_step_and_is_timed_until_the_last() {
    let folder = tempfile::tempdir().unwrap();
    let done = run(&steps(JOURNAL), folder.path(), 20).unwrap();
    assert_eq!((done.transactions, done.latencies_ns.len()), (20, 20));
    assert_eq!((done.counts.writes, done.counts.flushes), (40, 40));
    assert_eq!((done.counts.names, done.flushes_ns.len()), (40, 40));
    // M11
    assert!(done.latencies_ns.max() >= done.flushes_ns.min() * 2);
    let names: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(names.len(), 1, "the journal is gone: {names:?}");
}

#[test]
fn own_work_takes_cpu_time_before_each_transaction_and_no_part_of_its_latency() {
    let folder = tempfile::tempdir().unwrap();
    let job = steps(&format!("think_us = 50000\n{JOURNAL}"));
    let began = Instant::now();
    let done = run(&job, folder.path(), 3).unwrap();
    let (elapsed_ns, own_ns) = (began.elapsed().as_nanos() as f64, 3.0 * 50e6);
    let latencies_ns = done.latencies_ns.mean() * done.latencies_ns.len() as f64;
    assert_eq!(done.transactions, 3);
    // A thread's CPU time is at most the elapsed time, apart from the rounding of the histogram.
    assert!(latencies_ns + own_ns <= elapsed_ns * 1.01, "{latencies_ns} of {elapsed_ns}");
}

#[test]
fn a_full_file_makes_room_by_its_steps_and_without_them_begins_again() {
    let folder = tempfile::tempdir().unwrap();
    let cut = r#"
        files = [
            { name = "wal", bytes = 1000 },
            { name = "next", bytes = 1000, start = "absent" },
        ]
        each = [{ call = "write", file = "wal", bytes = 300 }]
        full = [{ file = "wal", steps = [
            { call = "truncate", file = "wal" },
            { call = "open", file = "next" },
            { call = "rename", file = "next", to = "wal" },
            { call = "fsync_folder" },
        ] }]
    "#;
    let done = run(&steps(cut), folder.path(), 4).unwrap();
    // The fourth write is the first in a new file.
    let length = || folder.path().join("job-wal-0.data").metadata().unwrap().len();
    assert_eq!(length(), 300);
    assert_eq!((done.counts.names, done.counts.flushes), (2, 1));
    let again = r#"
        files = [{ name = "wal", bytes = 1000 }]
        each = [{ call = "write", file = "wal", bytes = 300 }]
    "#;
    run(&steps(again), folder.path(), 4).unwrap();
    assert_eq!(length(), 900);
}

#[test]
fn a_page_is_written_again_with_each_record_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let pages = r#"
        files = [{ name = "wal", bytes = 65536, start = "zeros" }]
        each = [{ call = "write", file = "wal", bytes = 3000, page = 8192 }]
    "#;
    let done = run(&steps(pages), folder.path(), 4).unwrap();
    // The third record ends in the second page, which is written again with the fourth record.
    assert_eq!(done.counts.written_bytes, 8192 + 8192 + 16384 + 8192);
}

#[test]
fn clients_that_wait_are_committed_by_one_leader() {
    let folder = tempfile::tempdir().unwrap();
    let group = r#"
        clients = 8
        files = [{ name = "wal", bytes = "1MiB" }]
        each = [{ call = "write", file = "wal", bytes = 100 }, { call = "fdatasync", file = "wal" }]
    "#;
    let done = run(&steps(group), folder.path(), 400).unwrap();
    assert_eq!((done.transactions, done.latencies_ns.len()), (400, 400));
    // All bytes have been written, with one write per group.
    assert_eq!(done.counts.written_bytes, 40_000);
    assert_eq!(done.counts.writes, done.counts.flushes);
    assert!(done.counts.flushes <= 400);
}

#[test]
fn steps_beside_and_after_some_transactions_are_made_too() {
    let folder = tempfile::tempdir().unwrap();
    let every = r#"
        files = [{ name = "wal", bytes = 4096 }, { name = "data", bytes = 65536 }]
        each = [{ call = "write", file = "wal", bytes = 64 }]
        every = [{ transactions = 10, steps = [{ call = "fsync", file = "data" }] }]
        end = [{ call = "fsync", file = "wal" }]
    "#;
    assert_eq!(run(&steps(every), folder.path(), 40).unwrap().counts.flushes, 5);
}

#[test]
fn a_call_that_fails_ends_the_run_with_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let closed = r#"
        clients = 4
        files = [{ name = "wal", bytes = 4096 }]
        each = [{ call = "close", file = "wal" }, { call = "write", file = "wal", bytes = 64 }]
    "#;
    let error = run(&steps(closed), folder.path(), 40).unwrap_err().to_string();
    assert!(error.ends_with("job-wal-0.data: a step uses it while it is closed"), "{error}");
}

#[test]
fn a_job_that_makes_no_sense_is_refused_in_one_line() {
    let with = |from: &str, to: &str| refused(&JOURNAL.replacen(from, to, 1));
    assert!(with(r#"file = "journal""#, r#"file = "jurnal""#).contains("\"jurnal\": no such file"));
    assert!(with("bytes = 512", "bytes = 99999").contains("\"journal\" has 8192"));
    assert!(with("files", "clients = 0\nfiles").contains("must be 1 to 256"));
    assert!(with("\"data\"", "\"Data 1\"").contains("lower-case"));
}

#[test]
fn clients_apart_have_their_own_files_and_commit_nothing_for_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let apart = r#"
        clients = 3
        apart = true
        files = [{ name = "wal", bytes = "64KiB" }]
        each = [{ call = "write", file = "wal", bytes = 100 }, { call = "fdatasync", file = "wal" }]
        beside = [{ transactions = 30, steps = [{ call = "sync_file_range", file = "wal" }] }]
    "#;
    let done = run(&steps(apart), folder.path(), 10).unwrap();
    assert_eq!((done.transactions, done.counts.writes, done.counts.flushes), (30, 30, 30));
    for set in 0..3 {
        let file = folder.path().join(format!("job-wal-{set}.data"));
        assert_eq!(file.metadata().unwrap().len(), 1000);
    }
}

#[test]
fn a_rate_holds_clients_back_and_flushes_beside_are_timed_where_transactions_have_none() {
    let folder = tempfile::tempdir().unwrap();
    let paced = r#"
        rate = 200.0
        files = [{ name = "aof", bytes = "1MiB" }]
        each = [{ call = "write", file = "aof", bytes = 100 }]
        beside = [{ transactions = 1, steps = [{ call = "fdatasync", file = "aof" }] }]
    "#;
    let steps = steps(paced);
    let began = std::time::Instant::now();
    let done = run(&steps, folder.path(), 41).unwrap();
    // The 41st transaction is due after 0.2 s.
    assert!(began.elapsed().as_secs_f64() >= 0.19);
    assert!(steps.has_flushes() && !steps.is_durable());
    assert_eq!(done.counts.flushes, done.flushes_ns.len());
    assert!(refused(&paced.replace("200.0", "0.0")).contains("rate: must be 1 or more"));
    assert!(refused(&format!("think_us = 1000001\n{JOURNAL}")).contains("must be at most 1000000"));
}

#[test]
fn the_bytes_of_a_transaction_are_those_of_its_writes() {
    let steps = steps(JOURNAL);
    assert!(steps.is_durable() && steps.each.iter().any(Step::is_flush));
    assert_eq!((steps.transaction_bytes(), steps.moved_bytes()), (4608, 4608));
}

#[test]
fn whole_pages_reach_the_kernel_where_writes_are_direct() {
    let redo = r#"
        files = [{ name = "redo", bytes = "1MiB", start = "written", direct = true }]
        each = [{ call = "write", file = "redo", bytes = 295, page = 4096, times = 2 }]
    "#;
    assert_eq!((steps(redo).transaction_bytes(), steps(redo).moved_bytes()), (590, 8192));
    let cached = steps(&redo.replace(", direct = true", ""));
    assert_eq!(cached.moved_bytes(), 590, "the page cache joins them");
}
