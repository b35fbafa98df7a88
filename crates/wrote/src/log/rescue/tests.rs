//! Tests of verification and repair on logs with each kind of damage.

use super::*;
use crate::Log;
use crate::log::testing::{BLOCK_BYTES, LOG_ID, SampleLog, assert_begins, read_all, two_segments};
use crate::log::{LogReader, batch, record, segment};
use fixtures::names;
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::ops::{ControlFlow, Range};
use std::path::PathBuf;

fn written(files: &[(PathBuf, Vec<u8>)]) {
    for (path, bytes) in files {
        std::fs::write(path, bytes).unwrap();
    }
}

fn verified(folder: &Path) -> LogSummary {
    verify(folder, None).unwrap()
}

/// Returns a log with ten records in two segments, and a third segment that states that all of them
/// were durable.
fn durable() -> SampleLog {
    two_segments().segment().batch(10, &[b"ten", b"eleven"]).closed()
}

#[test]
fn a_whole_log_is_told_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let built = durable().prepared(5000);
    written(&built.files(folder.path()));
    std::fs::write(folder.path().join("lock"), b"1\n").unwrap();
    let verified = verified(folder.path());
    assert!(verified.is_clean() && verified.torn_bytes == 0);
    assert_eq!(verified.records, 12);
    assert_eq!(verified.record_bytes, built.records.iter().map(Vec::len).sum::<usize>() as u64);
    for summary in [summary(folder.path()).unwrap(), verified] {
        assert_eq!((summary.first_sequence, summary.next_sequence), (0, 12));
        assert!(summary.closed && summary.writer.is_none());
        let shapes: Vec<_> =
            summary.segments.iter().map(|one| (one.first_sequence, one.records)).collect();
        assert_eq!(shapes, [(0, 5), (5, 5), (10, 2)]);
        for segment in &summary.segments {
            assert!(segment.bytes <= segment.file_bytes);
        }
        assert_eq!(summary.segments[2].bytes, 512 + 48);
    }
}

#[test]
fn a_torn_end_is_no_damage() {
    let folder = tempfile::tempdir().unwrap();
    let mut files = two_segments().files(folder.path());
    let end = files[1].1.iter().rposition(|&byte| byte != 0).unwrap();
    files[1].1[end] ^= 1;
    written(&files);
    let found = verified(folder.path());
    assert_eq!((found.records, found.torn_bytes, found.damage.len()), (9, 12, 0));
    assert_eq!((found.next_sequence, found.closed), (9, false));
    assert_eq!(repair(folder.path()).unwrap().kept_aside.len(), 0);
}

/// Returns the bytes of a record that begins at this offset of segment `number`. At each multiple
/// of the block size, the record contains a batch that states that records up to 50 were durable.
fn forged(number: u64, offset: usize) -> Vec<u8> {
    let header = batch::BatchHeader {
        bytes: batch::HEADER_BYTES as u32,
        first_sequence: 50,
        durable_sequence: 50,
        ..Default::default()
    };
    let block_bytes = BLOCK_BYTES as usize;
    let mut bytes = vec![7; 4 * block_bytes];
    let first = offset.next_multiple_of(block_bytes) - offset;
    for at in (first..bytes.len() - batch::HEADER_BYTES).step_by(block_bytes) {
        header.encode(&mut bytes[at..], segment::seed(LOG_ID, number));
    }
    bytes
}

#[test]
fn a_batch_inside_of_a_valid_record_proves_nothing() {
    let before = two_segments().batch(5, &[]);
    let place = *before.segments[1].batches.last().unwrap();
    // The forged record comes after the torn record, in the same batch.
    let record = forged(2, place + 48 + 12 + 8);
    let inside = two_segments().batch(5, &[b"torn", &record, b"behind"]);
    // It is in a batch after the torn one.
    let later = two_segments().batch(5, &[b"torn"]);
    let record = forged(2, place + 512 + 48 + 8);
    let later = later.batch(5, &[&record]);
    // It is in a later segment.
    let record = forged(3, 64 + 48 + 8);
    let next = two_segments().batch(5, &[b"torn"]).segment().batch(5, &[&record]);
    for (way, built) in [inside, later, next].into_iter().enumerate() {
        let folder = tempfile::tempdir().unwrap();
        let mut files = built.files(folder.path());
        files[1].1[place + 48 + 8] ^= 1;
        written(&files);
        let found = verified(folder.path());
        assert!(found.damage.is_empty(), "{way}: {:?}", found.damage);
        assert_eq!((found.records, found.next_sequence), (10, 10), "{way}");
        assert_eq!(summary(folder.path()).unwrap().next_sequence, 10, "{way}");
        assert_eq!(read_all(folder.path()).len(), 10, "{way}");
        let log = Log::options().buffer_bytes(4096).open(folder.path()).unwrap();
        assert_eq!(log.append(b"more").unwrap().sequence(), 10, "{way}");
    }
}

#[test]
fn every_byte_that_is_damaged_is_named_and_repaired_with_all_that_is_whole() {
    let built = durable();
    let folder = tempfile::tempdir().unwrap();
    let files = built.files(folder.path());
    for file in 0..2 {
        for byte in (0..files[file].1.len()).step_by(19) {
            let mut damaged = files.clone();
            damaged[file].1[byte] ^= 0x40;
            written(&damaged);
            check_repair(&built, folder.path(), &files[file].0, &format!("{file}, byte {byte}"));
            for name in names(folder.path()) {
                std::fs::remove_file(folder.path().join(name)).unwrap();
            }
        }
    }
}

/// Returns a log with one batch of `records` records, and a second batch that states that the first
/// was durable.
fn one_batch(records: usize, len: usize) -> SampleLog {
    let own: Vec<Vec<u8>> = (0..records).map(|number| vec![number as u8; len]).collect();
    let own: Vec<&[u8]> = own.iter().map(Vec::as_slice).collect();
    SampleLog::default().segment().batch(0, &own).batch(records as u64, &[b"behind"])
}

/// Damages each record of a log of [`one_batch`] in turn, each time in a new copy, and asserts how
/// many records are lost.
fn damage_each(built: &SampleLog, len: usize, damage: fn(&mut [u8]), lost: u64) {
    let folder = tempfile::tempdir().unwrap();
    let files = built.files(folder.path());
    let (path, whole) = &files[0];
    let all = built.records.len() as u64;
    // The last records are left out, because the damage must not extend beyond the batch.
    for number in 0..all - 1 - lost {
        let mut bytes = whole.clone();
        let frame_bytes = record::frame_bytes(len);
        let at = segment::HEADER_BYTES + batch::HEADER_BYTES + number as usize * frame_bytes;
        damage(&mut bytes[at..]);
        std::fs::write(path, bytes).unwrap();
        assert!(LogReader::open(folder.path(), 0).unwrap().any(|record| record.is_err()));
        let found = verified(folder.path());
        let [told] = &found.damage[..] else { panic!("record {number}: {:?}", found.damage) };
        assert_eq!((told.offset_bytes, told.sequence), (at as u64, number));
        assert_eq!((told.records, found.records), (Some(lost), all - lost), "record {number}");
        assert_eq!(repair(folder.path()).unwrap().records, all - lost);
        let records: Vec<_> =
            LogReader::open(folder.path(), 0).unwrap().map(Result::unwrap).collect();
        assert_eq!(records.len() as u64, all - lost);
        for record in records {
            assert!(!(number..number + lost).contains(&record.sequence));
            assert_eq!(record.bytes, built.records[record.sequence as usize]);
        }
    }
}

#[test]
fn a_byte_that_is_damaged_in_a_record_costs_only_that_record() {
    damage_each(&one_batch(30, 20), 20, |frame| frame[record::HEADER_BYTES + 7] ^= 1, 1);
}

#[test]
fn a_length_that_is_damaged_costs_only_its_record() {
    damage_each(&one_batch(30, 20), 20, |frame| frame[0] ^= 1, 1);
    damage_each(&one_batch(30, 20), 20, |frame| frame[2] ^= 0x40, 1);
    damage_each(&one_batch(30, 0), 0, |frame| frame[3] ^= 0x40, 1);
}

#[test]
fn a_piece_of_a_batch_that_is_lost_costs_the_records_in_it() {
    let piece = |frame: &mut [u8]| frame[..500].fill(0);
    damage_each(&one_batch(60, 20), 20, piece, 500u64.div_ceil(28));
    let piece = |frame: &mut [u8]| frame[..500].fill(0x40);
    damage_each(&one_batch(60, 20), 20, piece, 500u64.div_ceil(28));
}

/// Returns a log of batches with records of different lengths, and a second segment that states
/// that all of them were durable.
fn uneven(batches: usize, records: usize) -> SampleLog {
    let mut built = SampleLog::default().segment();
    for batch in 0..batches {
        let len = |number: usize| (batch * 91 + number * 37) % 700;
        let own: Vec<Vec<u8>> =
            (0..records).map(|number| vec![(batch + number) as u8; len(number)]).collect();
        let own: Vec<&[u8]> = own.iter().map(Vec::as_slice).collect();
        built = built.batch(0, &own);
    }
    let all = built.next_sequence;
    built.segment().batch(all, &[b"behind"])
}

/// Returns the range of each record in the first segment.
fn frames(built: &SampleLog) -> Vec<Range<usize>> {
    let mut records = built.records.iter();
    let mut frames = Vec::new();
    for (batch, _) in &built.segments[0].claims {
        let mut place = batch.start + batch::HEADER_BYTES;
        while place < batch.end {
            let len = record::frame_bytes(records.next().unwrap().len());
            frames.push(place..place + len);
            place += len;
        }
    }
    frames
}

#[test]
fn every_whole_record_is_found_around_a_hole_over_several_batches() {
    type Damage = fn(&mut Vec<u8>, Range<usize>);
    let zeros: Damage = |bytes, hole| bytes[hole].fill(0);
    let garbage: Damage = |bytes, hole| {
        let mut state = 1_u64;
        bytes[hole].fill_with(|| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 56) as u8
        });
    };
    let removed: Damage = |bytes, hole| drop(bytes.drain(hole));
    let inserted: Damage = |bytes, hole| {
        let len = hole.len();
        bytes.splice(hole.start..hole.start, vec![7; len]);
    };
    for (built, batches) in [(uneven(60, 40), 60), (uneven(2, 1200), 2)] {
        let frames = frames(&built);
        let first_file = &built.files(Path::new(""))[0].1;
        let kept_of = |hole: &Range<usize>, is_inserted: bool| -> Vec<u64> {
            let is_whole = |frame: &Range<usize>| match is_inserted {
                true => hole.start <= frame.start || frame.end <= hole.start,
                false => hole.end <= frame.start || frame.end <= hole.start,
            };
            let whole = frames.iter().zip(0..).filter(|(frame, _)| is_whole(frame));
            whole.map(|(_, sequence)| sequence).chain([frames.len() as u64]).collect()
        };
        for (way, damage) in [zeros, garbage, removed, inserted].into_iter().enumerate() {
            for (start, len) in [(700, 65_536), (100_001, 65_537), (100_000, 3_333), (5_000, 5)] {
                let context = format!("{batches} batches, way {way}, {len} bytes at {start}");
                let folder = tempfile::tempdir().unwrap();
                let mut files = built.files(folder.path());
                let hole = start..(start + len).min(first_file.len());
                damage(&mut files[0].1, hole.clone());
                written(&files);
                let kept = kept_of(&hole, way == 3);
                let found = verified(folder.path());
                assert_eq!(found.records, kept.len() as u64, "{context}: {:?}", found.damage);
                let lost: u64 = found.damage.iter().map(|damage| damage.records.unwrap()).sum();
                assert_eq!(found.records + lost, built.next_sequence, "{context}");
                assert_eq!(repair(folder.path()).unwrap().records, found.records, "{context}");
                assert!(verified(folder.path()).is_clean(), "{context}");
                let records: Vec<_> =
                    LogReader::open(folder.path(), 0).unwrap().map(Result::unwrap).collect();
                let sequences: Vec<u64> = records.iter().map(|record| record.sequence).collect();
                assert_eq!(sequences, kept, "{context}");
                for record in records {
                    assert_eq!(record.bytes, built.records[record.sequence as usize], "{context}");
                }
            }
        }
    }
}

#[test]
fn a_summary_of_a_log_that_is_damaged_in_its_last_segment_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let files = one_batch(3, 20).files(folder.path());
    let (path, mut bytes) = files[0].clone();
    written(&files);
    assert_eq!(summary(folder.path()).unwrap().next_sequence, 4);
    let at = segment::HEADER_BYTES + batch::HEADER_BYTES + record::frame_bytes(20);
    bytes[at + 10] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let Error::Damaged { path: named, offset, because } = summary(folder.path()).unwrap_err()
    else {
        panic!("not told as damage")
    };
    assert_eq!((named, offset), (path, at as u64));
    assert!(because.starts_with("record 1 was durable, but can't be read any more"), "{because}");
}

#[test]
fn a_place_that_was_passed_over_is_counted_by_a_summary_and_is_no_record_when_verified() {
    let folder = tempfile::tempdir().unwrap();
    let mut files = one_batch(3, 20).files(folder.path());
    let at = segment::HEADER_BYTES + batch::HEADER_BYTES;
    files[0].1[at + 10] ^= 1;
    written(&files);
    repair(folder.path()).unwrap();
    assert_eq!(summary(folder.path()).unwrap().segments[0].records, 4);
    assert_eq!(verified(folder.path()).segments[0].records, 3);
}

/// Verifies and repairs a log with one damaged file, and asserts that the results agree.
fn check_repair(built: &SampleLog, folder: &Path, path: &Path, what: &str) {
    let found = verified(folder);
    assert_eq!(found.torn_bytes, 0, "{what}");
    assert!(found.damage.iter().all(|damage| damage.path == path), "{what}");
    let lost: u64 = found.damage.iter().map(|damage| damage.records.unwrap()).sum();
    assert_eq!(found.records + lost, 12, "{what}: {:?}", found.damage);
    assert!(lost <= 3, "{what}: a batch has at most 3 records");
    let repaired = repair(folder).unwrap();
    assert_eq!(repaired.damage.len(), found.damage.len(), "{what}");
    assert_eq!(repaired.kept_aside.len(), usize::from(!found.is_clean()), "{what}");
    assert_eq!(repaired.records, found.records, "{what}");
    let after = verified(folder);
    assert!(after.damage.is_empty() && after.garbage.is_empty(), "{what}");
    let records: Vec<_> = LogReader::open(folder, 0).unwrap().map(Result::unwrap).collect();
    assert_eq!(records.len() as u64, found.records, "{what}");
    for record in records {
        assert_eq!(record.bytes, built.records[record.sequence as usize], "{what}");
    }
}

#[test]
fn a_log_of_which_no_header_is_left_keeps_its_records() {
    let built = two_segments().batch(10, &[b"ten"]);
    for both in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let mut files = built.files(folder.path());
        files[0].1[30] ^= 1;
        files[1].1[20] ^= if both { 1 } else { 0 };
        written(&files);
        assert!(LogReader::open(folder.path(), 0).is_err());
        let repaired = repair(folder.path()).unwrap();
        assert_eq!((repaired.records, repaired.kept_aside.len()), (11, if both { 2 } else { 1 }));
        let records: Vec<_> =
            LogReader::open(folder.path(), 0).unwrap().map(Result::unwrap).collect();
        assert_eq!(assert_begins(&built, &records, "without headers"), 11);
    }
}

#[test]
fn a_segment_that_is_not_there_becomes_a_gap() {
    let folder = tempfile::tempdir().unwrap();
    let built = durable();
    let mut files = built.files(folder.path());
    let (missing, _) = files.remove(1);
    written(&files);
    let found = verified(folder.path());
    let [damage] = &found.damage[..] else { panic!("{:?}", found.damage) };
    assert_eq!((&damage.path, damage.sequence, damage.records), (&missing, 5, Some(5)));
    assert_eq!(repair(folder.path()).unwrap().records, 7);
    let sequences: BTreeMap<u64, usize> = read_all(folder.path());
    assert_eq!(sequences.into_keys().collect::<Vec<_>>(), [0, 1, 2, 3, 4, 10, 11]);
}

#[test]
fn segments_with_names_of_others_get_their_own_back_by_a_repair() {
    let mut built = SampleLog::default();
    for number in 0..5u64 {
        built = built.segment().batch(number, &[format!("record {number}").as_bytes()]);
    }
    let built = built.closed();
    // The number of the segment under each name; 0 means a segment without a header, and 9 a free
    // name.
    for (order, renamed, kept) in [
        ([2, 1, 3, 4, 5], 2, 5),
        ([2, 3, 1, 4, 5], 3, 5),
        ([5, 4, 3, 2, 1], 4, 5),
        ([1, 2, 4, 3, 9], 3, 5),
        ([1, 9, 3, 4, 5], 1, 5),
        ([2, 0, 3, 4, 5], 2, 5),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let files = built.files(folder.path());
        for (place, &number) in order.iter().enumerate() {
            let (name, own) = match number {
                0 => (place + 1, 1),
                9 => (7, place + 1),
                number => (place + 1, number),
            };
            let mut bytes = files[own - 1].1.clone();
            if number == 0 {
                bytes[20] ^= 1;
            }
            std::fs::write(segment::path(folder.path(), name as u64), bytes).unwrap();
        }
        let error = verify(folder.path(), None).unwrap_err();
        assert!(error.to_string().contains("`wrote log repair "), "{order:?}: {error}");
        let repaired = repair(folder.path()).unwrap();
        assert_eq!(repaired.records, kept, "{order:?}: {:?}", repaired.damage);
        let named = repaired.put_back.iter().collect::<std::collections::HashSet<_>>().len();
        assert!(named <= renamed && named > 0, "{order:?}: {:?}", repaired.put_back);
        assert!(verified(folder.path()).is_clean(), "{order:?}");
        let records: Vec<_> =
            LogReader::open(folder.path(), 0).unwrap().map(Result::unwrap).collect();
        assert_eq!(assert_begins(&built, &records, &format!("{order:?}")), 5);
        Log::options().buffer_bytes(4096).open(folder.path()).unwrap();
    }
}

#[test]
fn a_segment_that_is_there_twice_or_far_away_keeps_its_name() {
    let built = two_segments();
    for (from, to) in [(0, 2), (0, 1)] {
        let folder = tempfile::tempdir().unwrap();
        let mut files = built.files(folder.path());
        let copy = files[from].1.clone();
        files.push((segment::path(folder.path(), to + 2), copy));
        written(&files);
        let before = names(folder.path());
        assert!(matches!(repair(folder.path()), Err(Error::Foreign { .. })));
        std::fs::remove_file(folder.path().join("lock")).unwrap();
        assert_eq!(names(folder.path()), before);
    }
}

/// Returns a log of nine batches, each with two records and in a block of its own, and the batch
/// that closes the log.
fn nine_blocks() -> SampleLog {
    let mut built = SampleLog::default().segment();
    for number in 0..9u8 {
        let durable_sequence = built.next_sequence;
        built = built.batch(durable_sequence, &[&[number; 100], &[number + 100; 50]]);
    }
    built.closed()
}

#[test]
fn whole_batches_that_lie_at_another_place_are_found_by_a_repair() {
    for built in [nine_blocks(), nine_blocks().segment().batch(18, &[b"next"])] {
        check_astray(&built);
    }
}

/// Moves the blocks of the first segment in several ways, and verifies and repairs the log each
/// time.
fn check_astray(built: &SampleLog) {
    const BLOCK: usize = BLOCK_BYTES as usize;
    let all = built.next_sequence;
    let take = |bytes: &[u8], block: usize| bytes[block * BLOCK..][..BLOCK].to_vec();
    let put = |bytes: &mut [u8], block: usize, own: &[u8]| {
        bytes[block * BLOCK..][..BLOCK].copy_from_slice(own);
    };
    // The order of the blocks of the first nine batches; number 9 is a block of zeros.
    for (order, lost) in [
        ([0, 1, 5, 3, 4, 2, 6, 7, 8], &[][..]),
        ([0, 8, 7, 6, 5, 4, 3, 2, 1], &[]),
        ([0, 5, 6, 7, 8, 1, 2, 3, 4], &[]),
        ([0, 1, 5, 3, 4, 9, 6, 7, 8], &[2]),
        ([0, 1, 9, 3, 4, 2, 6, 7, 8], &[5]),
        ([0, 1, 8, 3, 4, 5, 6, 7, 9], &[2]),
        ([0, 1, 9, 3, 2, 2, 6, 7, 8], &[4, 5]),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let files = built.files(folder.path());
        written(&files);
        let (path, whole) = &files[0];
        let mut bytes = whole.clone();
        for (to, from) in order.into_iter().enumerate() {
            put(&mut bytes, to, &if from == 9 { vec![0; BLOCK] } else { take(whole, from) });
        }
        std::fs::write(path, &bytes).unwrap();
        let found = verified(folder.path());
        assert!(found.garbage.is_empty() && found.torn_bytes == 0, "{order:?}: {found:?}");
        let is_lost = |sequence: &u64| lost.contains(&(sequence / 2));
        let kept: Vec<u64> = (0..all).filter(|sequence| !is_lost(sequence)).collect();
        assert_eq!(found.records, kept.len() as u64, "{order:?}: {:?}", found.damage);
        assert!(!found.damage.is_empty(), "{order:?}");
        assert_eq!(repair(folder.path()).unwrap().records, found.records, "{order:?}");
        assert_eq!(read_all(folder.path()).into_keys().collect::<Vec<_>>(), kept, "{order:?}");
        let after = verified(folder.path());
        assert!(after.damage.is_empty() && after.garbage.is_empty(), "{order:?}: {after:?}");
        let log = Log::options().buffer_bytes(4096).open(folder.path()).unwrap();
        assert_eq!(log.append(b"more").unwrap().sequence(), all, "{order:?}");
    }
}

#[test]
fn a_log_whose_segments_contradict_each_other_is_whole_after_a_repair() {
    let mut built = SampleLog::default().segment().batch(0, &[b"zero", b"one", b"two"]);
    built.next_sequence = 2;
    let built = built.segment().batch(2, &[b"two again", b"three"]).batch(4, &[]);
    let folder = tempfile::tempdir().unwrap();
    written(&built.files(folder.path()));
    assert_eq!(verified(folder.path()).damage.len(), 1);
    assert!(Log::options().open(folder.path()).is_err());
    repair(folder.path()).unwrap();
    assert!(verified(folder.path()).damage.is_empty());
    assert_eq!(read_all(folder.path()).into_keys().collect::<Vec<_>>(), [0, 1, 2, 3]);
    let log = Log::options().buffer_bytes(4096).open(folder.path()).unwrap();
    assert_eq!(log.append(b"more").unwrap().sequence(), 4);
}

#[test]
fn a_log_that_is_open_for_writing_is_not_repaired_and_a_folder_without_one_is_no_log() {
    let folder = tempfile::tempdir().unwrap();
    for error in [
        summary(folder.path()).unwrap_err(),
        verify(folder.path(), None).unwrap_err(),
        repair(folder.path()).unwrap_err(),
    ] {
        assert!(error.to_string().ends_with("there is no log here"), "{error}");
    }
    assert!(names(folder.path()).is_empty());
    let lock = Lock::take(&crate::engine::Folder::open(folder.path()).unwrap()).unwrap();
    assert_eq!(summary(folder.path()).unwrap().writer, Some(std::process::id()));
    assert!(repair(folder.path()).unwrap_err().to_string().contains("open for writing by"));
    drop(lock);
}

#[test]
fn a_watcher_can_stop_a_verification() {
    let folder = tempfile::tempdir().unwrap();
    written(&durable().files(folder.path()));
    let mut told = Vec::new();
    let mut tell = |done: u64, total: Option<u64>| {
        told.push((done, total));
        ControlFlow::Continue(())
    };
    verify(folder.path(), Some(&mut tell)).unwrap();
    let &(done, total) = told.last().unwrap();
    assert_eq!(Some(done), total);
    let mut stop = |_, _| ControlFlow::Break(());
    assert!(matches!(verify(folder.path(), Some(&mut stop)), Err(Error::Interrupted)));
}

/// Verifies a log whose content changes from `before` to `after` once `at_bytes` have been read.
fn verified_while_written(before: &SampleLog, after: &SampleLog, at_bytes: u64) -> LogSummary {
    let folder = tempfile::tempdir().unwrap();
    let files = after.files(folder.path());
    let mut begun = before.files(folder.path()).into_iter();
    for (path, bytes) in &files {
        // Space that has not been written yet is prepared.
        let mut prepared = begun.next().map_or(Vec::new(), |(_, begun)| begun);
        prepared.resize(bytes.len(), 0);
        std::fs::write(path, prepared).unwrap();
    }
    let mut is_before = true;
    let mut write_on = |bytes_done, _| {
        if is_before && bytes_done >= at_bytes {
            is_before = false;
            for (path, bytes) in &files {
                let mut file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
                file.write_all(bytes).unwrap();
            }
        }
        ControlFlow::Continue(())
    };
    let found = verify(folder.path(), Some(&mut write_on));
    assert!(!is_before);
    found.unwrap()
}

#[test]
fn a_record_that_comes_between_the_look_at_its_place_and_the_proof_that_it_was_durable_is_not_damaged()
 {
    let long = vec![7; 1_200_000];
    let before = SampleLog::default().segment().batch(0, &[&long, b"one"]);
    // This record is longer than the read-ahead.
    let longer = vec![8; 8_000_000];
    let after = before.clone().batch(2, &[&longer]).batch(3, &[b"three"]);
    let found = verified_while_written(&before, &after, 1_200_000);
    assert!(found.damage.is_empty(), "{:?}", found.damage);
    assert_eq!((found.records, found.torn_bytes), (4, 0));
}

#[test]
fn a_segment_that_is_begun_after_the_look_at_it_is_not_damaged() {
    let before = two_segments();
    let after = two_segments().segment().batch(10, &[b"ten"]).batch(11, &[b"eleven"]);
    let found = verified_while_written(&before, &after, 1);
    assert!(found.damage.is_empty(), "{:?}", found.damage);
    assert_eq!((found.records, found.torn_bytes), (12, 0));
}

#[test]
fn segments_that_are_removed_before_they_are_read_are_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let files = durable().files(folder.path());
    written(&files);
    let mut remove = |_, _| {
        let gone = files[..2].iter().filter(|(path, _)| path.exists());
        gone.for_each(|(path, _)| std::fs::remove_file(path).unwrap());
        ControlFlow::Continue(())
    };
    let found = verify(folder.path(), Some(&mut remove)).unwrap();
    assert!(found.damage.is_empty(), "{:?}", found.damage);
    assert_eq!((found.records, found.next_sequence), (7, 12));
}

#[test]
fn records_read_after_a_repair_are_those_before_it() {
    let folder = tempfile::tempdir().unwrap();
    let long = vec![7; 600_000];
    let built =
        SampleLog::default().segment().batch(0, &[b"zero", &long]).batch(2, &[&long, b"three"]);
    let built = built.segment().batch(4, &[b"four"]);
    let mut files = built.files(folder.path());
    let end = files[0].1.len();
    files[0].1[end - 512..].fill(1);
    written(&files);
    repair(folder.path()).unwrap();
    let records: Vec<_> =
        LogReader::open(folder.path(), 0).unwrap().take(2).map(Result::unwrap).collect();
    assert_begins(&built, &records, "before the damage");
}

#[test]
fn of_two_sealed_segments_that_are_lost_side_by_side_only_their_records_are_lost() {
    let mut built = SampleLog::default();
    for number in 0..5u64 {
        built = built.segment().batch(number, &[format!("record {number}").as_bytes()]);
    }
    type Way = fn(&mut Vec<u8>);
    let ways: [Way; 3] = [Vec::clear, |bytes| bytes.fill(0), |bytes| bytes[..64].fill(7)];
    for first in 0..3 {
        for (one, other) in [(0, 0), (0, 1), (1, 0), (1, 1), (0, 2), (2, 0), (1, 2), (2, 1)] {
            let context = format!("from segment {} on, ways {one} and {other}", first + 1);
            let folder = tempfile::tempdir().unwrap();
            let mut files = built.files(folder.path());
            ways[one](&mut files[first].1);
            ways[other](&mut files[first + 1].1);
            written(&files);
            assert!(!verified(folder.path()).damage.is_empty(), "{context}");
            repair(folder.path()).unwrap();
            assert!(verified(folder.path()).damage.is_empty(), "{context}");
            let records = read_all(folder.path());
            let lost = first as u64..first as u64 + 2;
            for number in (0..5).filter(|number| !lost.contains(number)) {
                assert!(records.contains_key(&number), "{context}: {number}");
            }
            let log = Log::open(folder.path()).expect(&context);
            assert_eq!(log.append(b"more").unwrap().sequence(), 5, "{context}");
            log.close().unwrap();
        }
    }
}

#[test]
fn a_repair_without_a_header_brings_back_no_record_that_a_cut_took_off() {
    let folder = tempfile::tempdir().unwrap();
    let log = Log::open(folder.path()).unwrap();
    for record in [b"kept", b"gone", b"last"] {
        log.append(record).unwrap().wait().unwrap();
    }
    let path = segment::path(folder.path(), 1);
    let mut before = fs::read(&path).unwrap();
    log.truncate_from(1).unwrap();
    log.append(b"anew").unwrap().wait().unwrap();
    log.close().unwrap();
    // The file is as long as before the cut, and its first sector is lost.
    for lost_bytes in [512, 4096 + 512] {
        before[..lost_bytes].fill(0);
        fs::write(&path, &before).unwrap();
        repair(folder.path()).unwrap();
        let reader = LogReader::open(folder.path(), 0).unwrap();
        let records: Vec<_> = reader.map(|record| record.unwrap()).collect();
        let found: Vec<_> = records.iter().map(|it| (it.sequence, &it.bytes[..])).collect();
        assert_eq!(found, [(1, &b"anew"[..])], "{lost_bytes} bytes are lost");
    }
}

#[test]
fn a_repair_without_a_header_brings_back_no_record_of_a_removed_segment() {
    let folder = tempfile::tempdir().unwrap();
    let mut bytes = two_segments().segments[0].bytes.clone();
    segment::mark_recycled(&mut bytes[..512]);
    fs::write(segment::path(folder.path(), 3), bytes).unwrap();
    assert_eq!(repair(folder.path()).unwrap().records, 0);
    assert!(read_all(folder.path()).is_empty());
}

#[test]
fn an_end_that_is_back_takes_no_later_records_from_a_segment() {
    let folder = tempfile::tempdir().unwrap();
    let old = SampleLog::default().segment().batch(0, &[b"zero"]).batch(0, &[b"one"]);
    let old = old.batch(0, &[b"two", b"old three"]);
    let new = SampleLog::default().segment().batch(0, &[b"zero", b"one"]).segment();
    let new = new.batch(0, &[b"two"]).segment().batch(3, &[b"three", b"four", b"five"]).closed();
    let mut files = new.files(folder.path());
    files[0].1 = old.files(folder.path()).remove(0).1;
    files[0].1[512..1024].fill(0);
    files[1].1.clear();
    written(&files);
    let repaired = repair(folder.path()).unwrap();
    assert!(verified(folder.path()).damage.is_empty(), "{repaired:?}");
    let records: Vec<u64> = read_all(folder.path()).into_keys().collect();
    assert_eq!(records, [0, 2, 3, 4, 5]);
}

#[test]
fn a_torn_group_whose_sequences_others_got_is_repaired_into_a_log_that_opens() {
    let folder = tempfile::tempdir().unwrap();
    let group = batch::BatchHeader { durable_sequence: 1, whole: true, ..Default::default() };
    let built = SampleLog::default().segment().batch(0, &[b"zero"]);
    let built = built.batch_of(group, &[b"one", b"two", b"three", b"torn"]);
    let (place, end) = (built.segments[0].batches[1], built.segments[0].bytes.len());
    // The group was cut off, and record 1 was written again before the log was closed. Of these
    // writes, the disk has kept only the last batch.
    let mut files = built.cut(end, 2).closed().files(folder.path());
    files[0].1[place + 48 + 11 + 11 + 13 + 8] ^= 1;
    written(&files);
    assert!(matches!(Log::open(folder.path()), Err(Error::Damaged { .. })));
    assert!(!verified(folder.path()).damage.is_empty());
    repair(folder.path()).unwrap();
    let log = Log::options().buffer_bytes(4096).open(folder.path()).unwrap();
    let next = log.append(b"more").unwrap();
    assert!(next.sequence() >= 2);
    next.wait().unwrap();
    log.close().unwrap();
    assert!(verified(folder.path()).damage.is_empty());
    assert!(read_all(folder.path()).contains_key(&0));
}

#[test]
fn a_part_of_a_group_that_ends_where_the_next_segment_begins_is_damage() {
    let folder = tempfile::tempdir().unwrap();
    let group = batch::BatchHeader { whole: true, ..Default::default() };
    let built = SampleLog::default().segment().batch(0, &[b"zero"]);
    let built = built.batch_of(group, &[b"one", b"torn", b"more"]);
    let (place, end) = (built.segments[0].batches[1], built.segments[0].bytes.len());
    // The group was cut off, and what was written in its place is lost.
    let built = built.cut(end, 2).segment().batch(2, &[b"anew", b"three"]);
    let built = built.segment().batch(4, &[b"four"]).closed();
    let mut files = built.files(folder.path());
    files[0].1[place + 48 + 11 + 8] ^= 1;
    written(&files);
    let read = LogReader::open(folder.path(), 0).unwrap().find_map(Result::err);
    assert!(matches!(read, Some(Error::Damaged { .. })));
    assert!(!verified(folder.path()).damage.is_empty());
    repair(folder.path()).unwrap();
    assert!(verified(folder.path()).damage.is_empty());
    assert_eq!(read_all(folder.path()).into_keys().collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
}
