//! Tests on a small log: every bit is flipped in turn, every file is cut at every byte, and random
//! edits are made. Readers and recovery must detect every change that is not harmless, and must
//! never return a record that was not written.

use super::recovery::recover;
use super::testing::{SampleLog, assert_begins, disk, files_of, folder, read, two_segments};
use crate::Error;
use proptest::prelude::*;
use std::ops::Range;
use std::path::PathBuf;

type Contents = Vec<(PathBuf, Vec<u8>)>;

/// Checks what readers and recovery make of a log in which some bytes have changed: reads it,
/// recovers it, and reads it again.
fn check(built: &SampleLog, files: &Contents, changed: &[(usize, Range<usize>)], what: &str) {
    let claimed = claimed(built, changed);
    let sim = disk(1, files);
    let (records, end) = read(&sim, 0);
    let read_bad = assert_begins(built, &records, what);
    assert!(end.is_err() || read_bad >= claimed, "{what}: {read_bad} of {claimed} durable records");
    match recover(&files_of(&sim)) {
        Ok(found) => {
            assert!(found.next_sequence >= claimed, "{what}: recovered {}", found.next_sequence);
            let (records, end) = read(&sim, 0);
            // Recovery does not read segments that are known to be durable, so the reader may still
            // find damage there.
            if end.is_ok() {
                let recovered = assert_begins(built, &records, what);
                assert_eq!(recovered, found.next_sequence, "{what}");
            }
        }
        Err(Error::Damaged { .. }) => assert!(end.is_err() || read_bad < 10, "{what}"),
        Err(error) => assert!(matches!(error, Error::Refused { .. }), "{what}: {error}"),
    }
}

/// Returns the highest durable sequence that an unchanged batch states.
fn claimed(built: &SampleLog, changed: &[(usize, Range<usize>)]) -> u64 {
    let mut claimed = 0;
    for (index, segment) in built.segments.iter().enumerate() {
        let is_changed = |range: &Range<usize>| {
            changed
                .iter()
                .any(|(of, at)| *of == index && at.start < range.end && range.start < at.end)
        };
        for (range, sequence) in &segment.claims {
            claimed = claimed.max(if is_changed(range) { 0 } else { *sequence });
        }
    }
    claimed
}

#[test]
fn every_bit_that_is_flipped_is_found_or_harmless() {
    let built = two_segments();
    let files = built.files(folder());
    for file in 0..files.len() {
        for bit in 0..files[file].1.len() * 8 {
            let mut flipped = files.clone();
            flipped[file].1[bit / 8] ^= 1 << (bit % 8);
            let changed = [(file, bit / 8..bit / 8 + 1)];
            check(&built, &flipped, &changed, &format!("file {file}, bit {bit}"));
        }
    }
}

#[test]
fn every_file_that_is_cut_is_found_or_harmless() {
    let built = two_segments().closed();
    let files = built.files(folder());
    for file in 0..files.len() {
        for len in 0..files[file].1.len() {
            let mut cut = files.clone();
            cut[file].1.truncate(len);
            let changed = [(file, len..usize::MAX)];
            check(&built, &cut, &changed, &format!("file {file} of {len} bytes"));
        }
    }
}

#[test]
fn a_file_that_is_not_there_is_found_or_harmless() {
    let built = two_segments().segment().batch(10, &[b"ten"]);
    for file in 0..3 {
        let mut files = built.files(folder());
        files.remove(file);
        let sim = disk(1, &files);
        let (records, end) = read(&sim, 0);
        match file {
            // The log looks as if retention had removed the first segment.
            0 => assert!(end.is_ok() && records.len() == 6 && records[0].sequence == 5),
            1 => {
                assert!(matches!(end, Err(Error::Damaged { .. })));
                assert_eq!(assert_begins(&built, &records, "the second"), 5);
            }
            _ => assert!(end.is_ok() && assert_begins(&built, &records, "the third") == 10),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn edits_by_chance_are_found_or_harmless(
        edits in proptest::collection::vec(
            (0..2usize, 0..2000usize, 1..700usize, any::<u64>()),
            1..4,
        ),
    ) {
        let built = two_segments().batch(8, &[b"ten", &[1; 300]]).closed();
        let mut files = built.files(folder());
        let mut changed = Vec::new();
        for (file, at, len, chance) in edits {
            let bytes = &mut files[file].1;
            let at = at.min(bytes.len() - 1);
            let range = at..(at + len).min(bytes.len());
            match chance % 3 {
                0 => bytes[range.clone()].fill(0),
                1 => bytes.copy_within(..range.len(), at),
                _ => bytes[range.clone()].iter_mut().for_each(|byte| *byte ^= chance as u8 | 1),
            }
            changed.push((file, range));
        }
        check(&built, &files, &changed, &format!("{changed:?}"));
    }
}
