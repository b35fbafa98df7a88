//! Tests of the complete scenario, on this machine's disk.

use super::plan::{FILES_MAX, Files};
use super::{Kind, NAME, WAYS};
use crate::calibration::Calibration;
use crate::sample::{Asked, asked};
use crate::scratch::Scratch;
use std::collections::BTreeSet;
use std::time::Duration;
use wrote_result::Stop;
use wrote_result::document::{Direction, Survives, View};

#[test]
fn it_is_measured_only_when_it_is_named() {
    assert!(
        asked(&["ladder"])
            .plan(&crate::sample::place(1 << 40, 1 << 39), |of, call| {
                Ok(Files::new(&of.meta, call))
            })
            .unwrap()
            .is_none()
    );
    let folder = fixtures::folder();
    let all = Asked { only: vec![NAME.into()], ..Asked::new(folder.path().into()) };
    assert_eq!(all.planned(None)[0].rows.len(), WAYS.len());
    let one = Asked { only: vec!["meta/own".into()], ..all };
    assert_eq!(one.planned(None)[0].rows.len(), WAYS.len() / 2);
}

#[test]
fn every_operation_is_counted_and_timed_and_nothing_is_left() {
    let folder = fixtures::folder();
    let request = Asked {
        only: vec![NAME.into()],
        runs: Some(2),
        meta_files: Some(70),
        ..Asked::new(folder.path().to_owned())
    };
    let scratch = Scratch::make(folder.path()).unwrap();
    let measured = request.measured(&scratch, &Stop::new(), false).unwrap();
    let rows = &measured.scenario.rows;
    assert_eq!(rows.iter().map(|row| row.name.as_str()).collect::<BTreeSet<_>>().len(), 12);
    for row in rows {
        assert_eq!(row.view(), View::Metadata, "{}", row.name);
        assert_eq!(row.latency_ns.unwrap().count, 2 * 70, "{}", row.name);
        for run in &row.runs {
            assert!((run.iops * run.elapsed_s - 70.0).abs() < 1e-6);
            let is_read = row.name.ends_with("/read");
            assert_eq!(run.bytes, if is_read { 70 * 3901 } else { 0 }, "{}", row.name);
        }
        let survives = (row.direction == Direction::Write).then_some(Survives::ProcessCrash);
        assert_eq!(row.survives, survives, "M3");
    }
    let names = fixtures::names(scratch.path());
    assert_eq!(names, ["lock"], "no folder is left");
}

#[test]
fn a_run_that_is_killed_between_two_steps_leaves_a_folder_that_clean_knows() {
    // W7
    let folder = fixtures::folder();
    let scratch = Scratch::make(folder.path()).unwrap();
    let tree = scratch.file(NAME, "own-tree", 0);
    std::fs::create_dir(&tree).unwrap();
    std::fs::write(tree.join("meta-file-rank3-17.data"), "x").unwrap();
    std::fs::write(tree.join("meta-renamed-4.data"), "x").unwrap();
    scratch.remove().unwrap();
    assert!(fixtures::names(folder.path()).is_empty());
}

#[test]
fn a_read_survives_nothing_and_need_not() {
    for way in WAYS {
        let is_read = matches!(way.kind, Kind::Stat | Kind::Open | Kind::Read);
        assert_eq!(way.kind.survives().is_none(), is_read, "{}", way.name);
    }
}

/// Plans all rows, or the requested ones.
fn planned(asked: &Asked) -> Files {
    let place = crate::sample::place(1 << 40, 1 << 39);
    let files = asked.plan(&place, |of, call| Ok(Files::new(&of.meta, call)));
    files.unwrap().expect("the call names rows")
}

#[test]
fn an_amount_that_was_asked_for_is_measured_in_any_time() {
    let here = || Asked { only: vec![NAME.into()], ..Asked::new(".".into()) };
    let by_files = Asked { meta_files: Some(9000), ..here() };
    let by_runs = Asked { runs: Some(7), ..here() };
    assert_eq!((planned(&by_files).count, planned(&by_runs).count), (9000, FILES_MAX));
    for asked in [by_files, by_runs] {
        assert!(asked.planned(None)[0].is_whole);
    }
    assert!(!here().planned(None)[0].is_whole);
}

#[test]
fn a_run_without_a_number_has_the_files_that_were_made_or_ends_after_its_slice() {
    let folder = fixtures::folder();
    let only = vec!["meta/own/stat".into(), "meta/own/unlink".into()];
    let request = Asked { only, runs: Some(1), ..Asked::new(folder.path().to_owned()) };
    let announced = request.planned(None)[0].written_bytes_max();
    let scratch = Scratch::make(folder.path()).unwrap();
    let measured = request.measured(&scratch, &Stop::new(), false).unwrap();
    assert!(measured.written_bytes <= announced);
    for row in &measured.scenario.rows {
        let files = row.latency_ns.unwrap().count as u32;
        assert!((50..=FILES_MAX).contains(&files), "{files}");
        assert_eq!(row.settings.effective.nrfiles, Some(files));
        assert!(row.settings.asked.nrfiles >= Some(files));
    }
    assert_eq!(fixtures::names(scratch.path()), ["lock"]);
}

#[test]
fn all_creations_are_over_before_the_first_removal_and_every_second_round_is_backwards() {
    // M8
    let files = planned(&asked(&["meta/own"]));
    let ways = files.ways.clone();
    let order: Vec<(u32, &str)> = crate::rounds::order(&files.plan(None).rows, 2)
        .iter()
        .map(|turn| (turn.round, ways[turn.row].kind.as_str()))
        .collect();
    let first = ["create", "stat", "open", "read", "rename"].map(|word| (0, word));
    let second = ["rename", "read", "open", "stat", "create"].map(|word| (1, word));
    assert_eq!(order[..5], first);
    assert_eq!(order[5..10], second);
    assert_eq!(order[10..], [(0, "unlink"), (1, "unlink")]);
    let shared = planned(&asked(&["meta/own/unlink", "meta/shared/unlink"]));
    let rows: Vec<usize> =
        crate::rounds::order(&shared.plan(None).rows, 2).iter().map(|turn| turn.row).collect();
    assert_eq!(rows, [0, 1, 1, 0]);
}

#[test]
fn a_run_has_the_files_that_are_made_written_and_removed_in_its_time() {
    let of = |file_us: [u64; 3]| {
        let file = file_us.map(Duration::from_micros);
        let speed = Calibration { file, ..Calibration::UNKNOWN };
        let place = crate::sample::place(1 << 40, 1 << 39);
        let files =
            asked(&[NAME]).plan_at(Some(&speed), &place, |of, call| Ok(Files::new(&of.meta, call)));
        let files = files.unwrap().unwrap();
        (files.count, files.plan(Some(&speed)).time(Some(&speed)).as_secs_f64())
    };
    let [fast, slow, disk] = [of([20, 20, 20]), of([20, 200, 80]), of([20, 12_000, 40])];
    assert_eq!([fast.0, slow.0, disk.0], [FILES_MAX, 1000, 50]);
    // Two folders persist, and in each round two more are filled and emptied.
    assert!((2.0..6.0).contains(&fast.1) && (5.0..9.0).contains(&slow.1), "{fast:?} {slow:?}");
    assert!((9.0..13.0).contains(&disk.1), "{disk:?}");
}

#[test]
fn a_row_alone_makes_the_files_that_it_needs_and_the_announced_bytes_hold() {
    for way in WAYS {
        let folder = fixtures::folder();
        let request = Asked {
            only: vec![way.name.into()],
            runs: Some(3),
            meta_files: Some(60),
            ..Asked::new(folder.path().to_owned())
        };
        let announced = request.planned(None)[0].written_bytes_max();
        let scratch = Scratch::make(folder.path()).unwrap();
        let measured = request.measured(&scratch, &Stop::new(), false).unwrap();
        assert_eq!(measured.written_bytes, announced, "{}", way.name);
        assert_eq!(measured.scenario.rows[0].latency_ns.unwrap().count, 3 * 60);
        assert_eq!(fixtures::names(scratch.path()), ["lock"], "{}", way.name);
    }
}

#[test]
fn files_have_their_first_names_again_and_are_kept_where_that_is_asked() {
    let folder = fixtures::folder();
    let request = Asked {
        only: vec!["meta/own/rename".into(), "meta/own/create".into()],
        runs: Some(2),
        meta_files: Some(50),
        ..Asked::new(folder.path().to_owned())
    };
    let scratch = Scratch::make(folder.path()).unwrap();
    request.measured(&scratch, &Stop::new(), true).unwrap();
    let trees = ["meta-own-tree-0.data", "meta-own-tree-1.data", "meta-own-tree-2.data"];
    assert_eq!(fixtures::names(scratch.path()), [&["lock"][..], &trees].concat());
    for (tree, bytes) in trees.into_iter().zip([3901, 0, 0]) {
        let tree = scratch.path().join(tree);
        let files = fixtures::names(&tree);
        assert_eq!(files.len(), 50);
        for name in files {
            assert!(name.starts_with("meta-file-"), "{name}");
            assert_eq!(std::fs::metadata(tree.join(&name)).unwrap().len(), bytes, "{name}");
        }
    }
    scratch.remove().unwrap();
    assert!(fixtures::names(folder.path()).is_empty(), "W7");
}

#[test]
fn a_measurement_that_is_stopped_leaves_no_folder() {
    // W7
    let folder = fixtures::folder();
    // A fixed amount is measured, however long that takes.
    let meta_files = Some(50);
    let request =
        Asked { only: vec![NAME.into()], meta_files, ..Asked::new(folder.path().to_owned()) };
    let scratch = Scratch::make(folder.path()).unwrap();
    let stop = Stop::new();
    /// Requests a stop in the middle of the rows of the second round.
    struct AfterTwenty<'a>(&'a Stop);
    impl crate::progress::Observer for AfterTwenty<'_> {
        fn progress(&mut self, progress: &crate::progress::Progress) {
            if progress.runs_done == 20 {
                self.0.request();
            }
        }
    }
    let measured = request.observed(&mut AfterTwenty(&stop), &scratch, &stop, false).unwrap();
    assert!(measured.is_interrupted && !measured.scenario.rows.is_empty());
    assert_eq!(fixtures::names(scratch.path()), ["lock"]);
}
