//! Tests that every method leaves the right bytes and no other files, and states what the bytes
//! survive.

mod cut;

use super::rounds::{Place, save};
use super::*;
use crate::progress::{Observer, Progress};
use crate::sample::{Asked, entries};
use crate::scratch::Scratch;
use fixtures::folder;
use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use wrote::device;
use wrote_jobs::rate::Amount;
use wrote_result::Stop;
use wrote_result::document::Process;

const SIZE_BYTES: u64 = 700;

fn request(folder: &Path, only: &str, iterations: u32, runs: u32) -> Asked {
    Asked {
        only: vec![only.into()],
        save_size: vec![SIZE_BYTES],
        iterations: Some(iterations),
        runs: Some(runs),
        ..Asked::new(folder.to_owned())
    }
}

/// Returns every method for every state of the file.
fn all() -> impl Iterator<Item = SaveRow> {
    rows(&[SIZE_BYTES])
}

#[test]
fn every_way_puts_the_text_into_its_file_and_leaves_nothing_beside_it() {
    let (old, new) = ([b'o'; 300], [b'n'; 300]);
    for row in all() {
        let folder = folder();
        let (path, temporary) = (folder.path().join("file"), folder.path().join("temporary"));
        let place = Place { path: &path, folder: folder.path(), temporary: &temporary };
        let mut expected = new.to_vec();
        if row.state == State::Existing {
            fs::write(&path, old).unwrap();
        }
        if row.way.kind.grows(row.state) {
            expected = [old, new].concat();
        }
        save(row.way.kind, row.state, place, &new).unwrap();
        assert!(fs::read(&path).unwrap() == expected, "{}", row.name());
        assert_eq!(entries(folder.path()), [path], "{}", row.name());
    }
}

#[test]
fn a_save_that_fails_names_its_file() {
    let folder = folder();
    let path = folder.path().join("not there/file");
    let place = Place { path: &path, folder: folder.path(), temporary: &path };
    for row in all() {
        let error = save(row.way.kind, row.state, place, b"text").unwrap_err().to_string();
        assert!(error.contains("not there/file") && error.lines().count() == 1, "{error}");
    }
}

#[test]
fn the_files_that_are_kept_have_the_texts_of_the_last_run() {
    for row in all() {
        let folder = folder();
        let scratch = Scratch::make(folder.path()).unwrap();
        let request = request(folder.path(), &row.name(), 3, 1);
        let outcome = request.measured(&scratch, &Stop::new(), true).unwrap();
        let [measured] = &outcome.scenario.rows[..] else { panic!("{}: one row", row.name()) };
        let texts: Vec<Vec<u8>> =
            entries(scratch.path()).iter().map(|path| fs::read(path).unwrap()).collect();
        let (count, texts_each) = match (row.state, row.way.kind.grows(row.state)) {
            (State::New, _) => (3, 1),
            (State::Existing, false) => (1, 1),
            // The previous text and the three new ones.
            (State::Existing, true) => (1, 4),
        };
        assert_eq!(texts.len(), count, "{}", row.name());
        for text in &texts {
            assert_eq!(text.len() as u64, texts_each * SIZE_BYTES, "{}", row.name());
            assert!(text.is_ascii() && !text.contains(&0), "{}", row.name());
        }
        // M2
        assert_eq!(texts.iter().collect::<HashSet<_>>().len(), count, "{}", row.name());
        assert_eq!(measured.name, row.name());
    }
}

#[test]
fn all_ways_in_turn_leave_no_file_and_time_every_save() {
    let folder = folder();
    let scratch = Scratch::make(folder.path()).unwrap();
    let request = request(folder.path(), NAME, 7, 2);
    let target = device::examine(folder.path()).unwrap();
    let outcome = request.measured(&scratch, &Stop::new(), false).unwrap();
    assert!(entries(scratch.path()).is_empty());
    assert_eq!(outcome.scenario.rows.len(), 2 * WAYS.len());
    for (row, saved) in outcome.scenario.rows.iter().zip(all()) {
        assert_eq!((&row.name, &row.workload), (&saved.name(), &saved.workload()));
        let (all, each) = (row.latency_ns.unwrap(), row.runs.iter().map(|run| run.latency_ns));
        assert_eq!(each.map(|of| of.unwrap().count).collect::<Vec<_>>(), [4, 3]);
        assert!(all.count == 7 && all.min > 0 && all.total >= all.max, "{}: {all:?}", row.name);
        // The saves follow each other, so together they take no longer than the run.
        let elapsed_s: f64 = row.runs.iter().map(|run| run.elapsed_s).sum();
        assert!(all.mean * 7.0 <= elapsed_s * 1e9 * 1.001, "{}: {all:?}", row.name);
        assert_eq!(row.survives, Some(saved.survives(&target)));
        let leaves = saved.way.kind.leaves(saved.state);
        assert_eq!(row.crash_leaves, Some(leaves));
        assert_eq!(row.settings.asked.sync, row.settings.effective.sync);
    }
    assert_eq!(outcome.written_bytes, 7 * SIZE_BYTES * 2 * WAYS.len() as u64);
}

#[test]
fn an_open_loop_begins_no_save_before_it_is_due_and_counts_from_then() {
    // M5
    let folder = folder();
    let scratch = Scratch::make(folder.path()).unwrap();
    let row = |operations_per_s, iterations| {
        let rate =
            Rate { amount: Amount::OperationsPerS(operations_per_s), process: Process::Linear };
        let only = "latency/existing-700/write-fdatasync";
        let request = Asked { rate: Some(rate), ..request(folder.path(), only, iterations, 1) };
        request.measured(&scratch, &Stop::new(), false).unwrap().scenario.rows.remove(0)
    };
    let slow = row(20, 4);
    assert!(slow.runs[0].elapsed_s >= 0.15, "{:?}", slow.runs);
    assert_eq!(slow.settings.effective.rate_iops, Some(20.0));
    // All saves are due at once, so the latency of each includes the earlier saves.
    let late = row(u32::MAX, 200);
    let (latency, elapsed_s) = (late.latency_ns.unwrap(), late.runs[0].elapsed_s);
    assert!(latency.mean * 200.0 > 2.0 * elapsed_s * 1e9, "{latency:?} in {elapsed_s} s");
}

#[test]
fn a_run_that_was_stopped_has_no_result_and_leaves_nothing() {
    let folder = folder();
    all().for_each(|row| request(folder.path(), &row.name(), 5, 1).assert_stops());
}

#[test]
fn every_row_has_a_name_of_its_own_that_can_be_asked_for() {
    let names: HashSet<String> = all().map(|row| row.name()).collect();
    assert_eq!(names.len(), 2 * WAYS.len());
    let knows = |name: &str| Latency::default().knows(name);
    assert!(names.iter().all(|name| knows(name)));
    for listed in Latency::default().catalogue() {
        assert!(knows(listed.row) && listed.scenario == NAME && listed.way.len() <= 26);
    }
    for known in ["latency", "latency/new", "latency/existing-12345", "latency/rename-fsync"] {
        assert!(knows(known), "{known}");
    }
    for unknown in [
        "latency/",
        "latencies",
        "latency/old",
        "latency/new-",
        "latency/new-0500",
        "latency/new-+5",
        "latency/new-5/",
        "latency/new/new",
        "latency/new-5/rename/x",
        "latency/rename/new",
    ] {
        assert!(!knows(unknown), "{unknown}");
    }
}

/// For each method, the event that a save survives on a disk whose flushes reach the device, and
/// the state that a crash may leave: for a new file, and for an existing one.
const PROMISES: [(Kind, [(Survives, CrashLeaves); 2]); 9] = {
    use CrashLeaves::{Empty, OldAndPart, OldOrNew, Torn};
    const CACHED: Survives = Survives::ProcessCrash;
    const DURABLE: Survives = Survives::PowerLoss;
    [
        (FsWrite, [(CACHED, Empty), (CACHED, Empty)]),
        (FsWriteFsync, [(CACHED, Empty), (DURABLE, Empty)]),
        (WriteFdatasync, [(DURABLE, Empty), (DURABLE, Torn)]),
        (ODsync, [(DURABLE, Empty), (DURABLE, Torn)]),
        (Rename, [(CACHED, Empty), (CACHED, Empty)]),
        (RenameFsync, [(DURABLE, OldOrNew), (DURABLE, OldOrNew)]),
        (WroteWrite, [(DURABLE, OldOrNew), (DURABLE, OldOrNew)]),
        (Append, [(CACHED, Empty), (CACHED, OldAndPart)]),
        (AppendFdatasync, [(DURABLE, Empty), (DURABLE, OldAndPart)]),
    ]
};

#[test]
fn only_what_is_flushed_with_its_name_survives_a_power_loss() {
    // M3
    for (kind, promises) in PROMISES {
        for (state, (survives, leaves)) in State::ALL.into_iter().zip(promises) {
            assert_eq!(kind.acknowledged(state), survives, "{kind:?} {state:?}");
            assert_eq!(kind.leaves(state), leaves, "{kind:?} {state:?}");
        }
    }
}

/// An observer that records the calls that it receives.
#[derive(Default)]
struct Told {
    left: Vec<Duration>,
    notes: Vec<String>,
}

impl Observer for Told {
    fn progress(&mut self, progress: &Progress) {
        self.left.push(progress.left);
    }
    fn note(&mut self, text: &str) {
        self.notes.push(text.into());
    }
}

#[test]
fn a_slow_rate_takes_long_and_the_progress_says_so() {
    let folder = folder();
    let scratch = Scratch::make(folder.path()).unwrap();
    let stop = Stop::new();
    let rate = Rate { amount: Amount::BytesPerS(1), process: Process::Linear };
    // Each row has one save, which is due at once.
    let request = Asked { rate: Some(rate), ..request(folder.path(), "latency/new-700", 1, 1) };
    let mut told = Told::default();
    request.observed(&mut told, &scratch, &stop, false).unwrap();
    // At this rate, nine rows take 700 seconds each.
    assert_eq!(told.left.len(), 9);
    for (left, runs) in told.left.iter().zip((1..=9).rev()) {
        assert!((600 * runs..800 * runs).contains(&left.as_secs()), "{:?}", told.left);
    }
}

#[test]
fn rows_of_other_scenarios_are_no_saves() {
    for name in ["ways/fs-write", "latency/fs-write", "latency/other-5/rename"] {
        assert!(way_of(&crate::sample::saved(name, 1)).is_none(), "{name}");
    }
    let row = crate::sample::saved("latency/existing-5/append", 1);
    let (state, way) = way_of(&row).unwrap();
    assert_eq!((state, way.kind), (State::Existing, Kind::Append));
}
