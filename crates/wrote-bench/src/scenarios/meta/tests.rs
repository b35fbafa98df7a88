//! The scenario as a whole, on this machine's disk.

use super::{Kind, NAME, WAYS};
use crate::sample::{Asked, asked};
use crate::scratch::Scratch;
use std::collections::BTreeSet;
use wrote_result::Stop;
use wrote_result::document::{Direction, Survives, View};

#[test]
fn it_is_measured_only_when_it_is_named() {
    assert!(asked(&["ladder"]).plan(&crate::sample::place(1 << 40, 1 << 39), |of, call| {
        Ok(super::Plan::new(&of.meta, call))
    }).unwrap().is_none());
    let folder = fixtures::folder();
    let all = Asked { only: vec![NAME.into()], ..Asked::new(folder.path().into()) };
    assert_eq!(all.planned()[0].rows().len(), WAYS.len());
    let one = Asked { only: vec!["meta/own".into()], ..all };
    assert_eq!(one.planned()[0].rows().len(), WAYS.len() / 2);
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
        assert_eq!(View::of(row), View::Metadata, "{}", row.name);
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
fn what_only_looks_survives_nothing_and_need_not() {
    for way in WAYS {
        let is_read = matches!(way.kind, Kind::Stat | Kind::Open | Kind::Read);
        assert_eq!(way.kind.survives().is_none(), is_read, "{}", way.name);
    }
}
