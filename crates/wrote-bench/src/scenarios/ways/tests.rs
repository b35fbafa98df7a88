//! Tests that every method leaves the right bytes and no other files, and describes itself
//! correctly.

use super::*;
use crate::sample::{Asked, entries};
use crate::scratch::Scratch;
use fixtures::folder;
use std::collections::HashSet;
use std::fs;
use std::path::Path;
use wrote_result::Stop;
use wrote_result::document::Row;

/// The size of the file, which is not a multiple of the largest chunk.
const SIZE_BYTES: u64 = 11 * MIB;

fn request(folder: &Path, only: &str, runs: u32) -> Asked {
    Asked {
        only: vec![only.into()],
        size_bytes: Some(SIZE_BYTES),
        runs: Some(runs),
        ..Asked::new(folder.to_owned())
    }
}

/// Measures a row once, and returns it with its output and its source; `None` if it can't be
/// measured on this machine.
fn kept(way: &Way) -> Option<(Row, Vec<u8>, Vec<u8>)> {
    let folder = folder();
    let scratch = Scratch::make(folder.path()).unwrap();
    let request = request(folder.path(), way.name, 1);
    let outcome = request.measured(&scratch, &Stop::new(), true).unwrap();
    if let Some((name, because)) = outcome.left_out.first() {
        assert!(matches!(way.kind, Dd { .. }), "{name}: {because}");
        fixtures::skip(
            "every_way_leaves_the_bytes_of_its_source_or_those_that_its_name_says",
            &format!("{name}: {because}"),
        );
        return None;
    }
    let [row] = &outcome.scenario.rows[..] else { panic!("{}: one row", way.name) };
    let files = entries(scratch.path());
    assert_eq!(files.len(), 2, "{files:?}");
    let [output, input] = [0, 1].map(|index| fs::read(&files[index]).unwrap());
    Some((row.clone(), input, output))
}

#[test]
fn every_way_leaves_the_bytes_of_its_source_or_those_that_its_name_says() {
    for way in WAYS {
        let Some((row, input, output)) = kept(way) else { continue };
        assert_eq!(input.len() as u64, SIZE_BYTES, "{}", way.name);
        // M2
        let blocks: HashSet<&[u8]> = input.chunks(4096).collect();
        assert_eq!(blocks.len(), input.len() / 4096);
        let data = row.settings.effective.data.as_deref();
        let is_right = match data {
            None => output == input,
            Some("constant") => output.iter().all(|byte| *byte == 0xAB),
            Some("zeros") => output.iter().all(|byte| *byte == 0),
            Some(other) => panic!("{other}"),
        };
        assert!(is_right && output.len() as u64 == SIZE_BYTES, "{}", way.name);
        assert_eq!(data.is_none(), way.kind.has_source(), "{}", way.name);
    }
}

#[test]
fn all_ways_in_turn_leave_no_file_and_tell_what_each_cost() {
    let folder = folder();
    let scratch = Scratch::make(folder.path()).unwrap();
    let request = request(folder.path(), NAME, 2);
    let outcome = request.measured(&scratch, &Stop::new(), false).unwrap();
    assert!(entries(scratch.path()).is_empty());
    assert_eq!(outcome.scenario.rows.len() + outcome.left_out.len(), WAYS.len());
    let mut written_bytes = SIZE_BYTES;
    for row in &outcome.scenario.rows {
        assert_eq!((row.runs.len(), row.bytes_per_run), (2, SIZE_BYTES), "{}", row.name);
        assert_eq!(row.view(), wrote_result::document::View::Files, "{}", row.name);
        for run in &row.runs {
            assert!(run.elapsed_s > 0.0 && run.throughput_bytes_per_s > 0.0, "{}", row.name);
        }
        let (asked, effective) = (&row.settings.asked, &row.settings.effective);
        assert_eq!(asked.sync, effective.sync);
        assert_eq!(asked.source_cache.is_some(), effective.source_cache.is_some());
        written_bytes += 2 * SIZE_BYTES;
    }
    assert_eq!(outcome.written_bytes, written_bytes);
}

#[test]
fn a_run_that_was_stopped_has_no_result_and_leaves_nothing() {
    let folder = folder();
    for only in ["ways/file/fs-write", "ways/file/copy", "ways/file/writer", "ways/chunk"] {
        request(folder.path(), only, 1).assert_stops();
    }
}

#[test]
fn every_row_has_a_name_of_its_own_in_its_workload_and_words_that_fit() {
    let names: HashSet<_> = WAYS.iter().map(|way| way.name).collect();
    assert_eq!(names.len(), WAYS.len());
    for way in WAYS {
        assert!(way.name.starts_with(&format!("{}/", way.workload)), "{}", way.name);
        assert!(way.words.len() <= 26, "{}", way.words);
        assert!(
            Ways::default().knows(way.name)
                && Ways::default().knows(way.workload)
                && !Ways::default().knows("ways/")
        );
    }
}

#[test]
fn only_what_is_flushed_survives_a_power_loss() {
    // M3
    for way in WAYS {
        let expected = match way.kind {
            FsWrite | Dd { direct: true } => Survives::ProcessCrash,
            _ => Survives::PowerLoss,
        };
        assert_eq!(way.acknowledged(), expected, "{}", way.name);
    }
}
