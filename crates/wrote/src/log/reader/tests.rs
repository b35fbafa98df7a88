//! Tests of readers on closed logs, and on logs that are being written.

use super::*;
use crate::Log;
use crate::log::batch::BatchHeader;
use crate::log::testing::{
    SampleLog, assert_begins, disk, folder, long_segment, read, two_segments,
};
use crate::log::{segment, verify};
use std::ops::Range;
use std::path::PathBuf;

fn written(built: &SampleLog) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    write(built, folder.path());
    folder
}

fn write(built: &SampleLog, folder: &Path) {
    for (path, bytes) in built.files(folder) {
        std::fs::write(path, bytes).unwrap();
    }
}

#[test]
fn no_record_of_a_time_precedes_its_place_where_the_clock_stepped_back() {
    const HOUR: i64 = 3_600_000_000_000;
    let sim = crate::Sim::new(1);
    let options = || crate::Log::options().buffers(2).on(&sim.disk());
    // The clock steps while the log is open, and between two openings. The last step between
    // openings is small.
    let clocks = [[0, 1, 2], [-40, -39, 5], [6, 1, 2], [3, 4, 9]];
    for clock in clocks {
        let log = options().open(folder()).unwrap();
        for hours in clock {
            segment::CLOCK_OFFSET_NS.set(hours * HOUR);
            (0..3).for_each(|_| log.append(b"a record").unwrap().wait().unwrap());
        }
        log.close().unwrap();
        segment::CLOCK_OFFSET_NS.set(segment::CLOCK_OFFSET_NS.get() - 1000);
    }
    segment::CLOCK_OFFSET_NS.set(0);
    let mut reader = LogReader::open_on(&sim.disk(), folder(), 0).unwrap();
    let times: Vec<_> = reader.by_ref().map(|record| record.unwrap().written_at.unwrap()).collect();
    assert!(times.len() == 36 && !times.is_sorted());
    for &time in &times {
        reader.seek_time(time).unwrap();
        let first = times.iter().position(|&other| other >= time);
        assert_eq!(Some(reader.next_sequence() as usize), first);
    }
    let steps = reader.clock_steps().unwrap();
    assert!((2..=3).contains(&steps.len()), "{steps:?}");
    for (number, pair) in times.windows(2).enumerate() {
        let is_told = |step: &Range<u64>| step.contains(&(number as u64));
        assert!(pair[0] <= pair[1] || steps.iter().any(is_told), "{number}: {steps:?}");
    }
}

#[test]
fn every_record_is_read_from_any_place_on() {
    let built = two_segments().segment().batch(10, &[]).batch(10, &[b"ten", b"eleven"]);
    let sim = disk(1, &built.files(folder()));
    for from in 0..14 {
        let (records, end) = read(&sim, from);
        end.unwrap();
        assert_eq!(records.len() as u64, 12u64.saturating_sub(from), "from {from}");
        for (record, sequence) in records.iter().zip(from..) {
            assert_eq!(
                (record.sequence, &record.bytes),
                (sequence, &built.records[sequence as usize])
            );
        }
    }
}

#[test]
fn a_reader_from_a_later_record_on_misses_none_that_came_while_it_looked() {
    let begun = SampleLog::default().segment().batch(0, &[b"one"]);
    let folder = tempfile::tempdir().unwrap();
    // The files of an open log are longer than their content.
    let write = |log: &SampleLog| {
        for (path, mut bytes) in log.files(folder.path()) {
            bytes.resize(1 << 16, 0);
            std::fs::write(path, bytes).unwrap();
        }
    };
    write(&begun);
    let mut reader = LogReader::open(folder.path(), 50).unwrap();
    assert!(reader.check().unwrap().is_none());
    // Two more records arrive after that check. The last one states that the previous one is
    // durable.
    write(&begun.batch(0, &[b"two"]).batch(2, &[b"three"]));
    let lost = reader.cursor.as_mut().unwrap().lost().unwrap();
    assert!(lost.is_some(), "the look was before");
    assert!(reader.unless_arrived(lost).unwrap().is_none());
    assert_eq!(reader.cursor.as_ref().unwrap().place().1, 3);
}

#[test]
fn from_any_place_on_a_reader_finds_nothing_behind_records_that_a_crash_took() {
    let mut built = SampleLog::default();
    for number in 0..6 {
        // The records of the first two segments were durable.
        let (durable, begin) = ((4 * number).min(8), 4 * number);
        built = built.segment().batch(durable, &[&[begin as u8; 700], b"a"]);
        built = built.batch(durable, &[b"b", &[begin as u8; 300]]);
    }
    // The second batch of the fourth segment is lost.
    let torn = &mut built.segments[3];
    torn.bytes[torn.batches[1]..].fill(0);
    let sim = disk(1, &built.files(folder()));
    for from in 0..26 {
        let (records, end) = read(&sim, from);
        end.unwrap();
        let sequences: Vec<u64> = records.iter().map(|record| record.sequence).collect();
        assert_eq!(sequences, (from..14).collect::<Vec<u64>>(), "from {from}");
    }
}

#[test]
fn every_record_of_a_long_segment_is_read_from_any_place_on() {
    let built = long_segment().closed().segment().batch(0, &[b"behind"]);
    let sim = disk(1, &built.files(folder()));
    let end = built.next_sequence;
    for from in (0..end).step_by(11).chain([end - 2, end - 1, end]) {
        let mut reader = LogReader::open_on(&sim.disk(), folder(), from).unwrap();
        for sequence in (from..end).take(20) {
            let record = reader.next_lent().unwrap().unwrap();
            assert_eq!(
                (record.sequence, record.bytes),
                (sequence, &*built.records[sequence as usize])
            );
        }
        assert!(from + 20 < end || reader.next_lent().unwrap().is_none());
    }
}

#[test]
fn a_segment_that_begins_before_the_end_of_the_one_before_is_damage() {
    // The removed end is back, after the position at which the log continued.
    let built = SampleLog::default().segment().batch(0, &[b"zero"]).batch(0, &[b"old", b"older"]);
    let end = built.segments[0].bytes.len();
    let built = built.cut(end, 1).segment().batch(0, &[b"one"]);
    let (records, end) = read(&disk(1, &built.files(folder())), 0);
    assert_eq!(records.len(), 3);
    let error = end.unwrap_err().to_string();
    assert!(error.contains("begins with record 1, but the segment before ends at 3"), "{error}");
}

#[test]
fn a_batch_behind_one_that_never_arrived_is_not_read_from_its_own_place_on() {
    let mut built = SampleLog::default().segment();
    for number in 0..300 {
        let header = BatchHeader { longest_bytes: 1024, ..BatchHeader::default() };
        built = built.batch_of(header, &[&[number as u8; 300]]);
    }
    let mut files = built.files(folder());
    let lost = built.segments[0].batches[120];
    files[0].1[lost..lost + 512].fill(0);
    let sim = disk(1, &files);
    for (from, count) in [(0, 120), (100, 20), (119, 1), (120, 0), (121, 0), (200, 0), (299, 0)] {
        let (records, end) = read(&sim, from);
        end.unwrap();
        assert_eq!(records.len(), count, "from {from}");
    }
}

/// Moves the reader to the beginning of the range, and returns the records of the range that exist.
fn read_range(reader: &mut LogReader, range: Range<u64>) -> Vec<Record> {
    reader.seek(range.start).unwrap();
    range.map_while(|_| reader.next_within(Duration::ZERO).unwrap()).collect()
}

#[test]
fn a_reader_that_is_moved_reads_what_is_there() {
    let built = long_segment().closed().segment().batch(0, &[b"behind", b"and more"]);
    let sim = disk(1, &built.files(folder()));
    let simulated = LogReader::open_on(&sim.disk(), folder(), 7).unwrap();
    let folder = written(&built);
    let end = built.next_sequence;
    let on_disk = LogReader::open(folder.path(), 0).unwrap();
    let mut readers =
        [simulated, on_disk, LogReader::open(folder.path(), 0).unwrap().following().unwrap()];
    for reader in &mut readers {
        for step in 0..400 {
            let from = step * 7919 % (end + 3);
            let records = read_range(reader, from..from + 5);
            let records =
                records.into_iter().map(|Record { sequence, bytes, .. }| (sequence, bytes));
            let expected = (from..(from + 5).min(end))
                .map(|sequence| (sequence, built.records[sequence as usize].clone()));
            assert!(records.eq(expected), "from {from}");
        }
        reader.seek(end - 1).unwrap();
        let last = reader.next_lent().unwrap().unwrap();
        assert_eq!((last.sequence, last.bytes), (end - 1, &b"and more"[..]));
    }
}

#[test]
fn a_reader_goes_on_behind_a_cut() {
    let built = two_segments();
    let place = built.segments[1].batches[1];
    let header = BatchHeader { after_cut: true, ..Default::default() };
    let built = built.cut(place + 48 + 13, 9).batch_of(header, &[b"nine again"]).closed();
    let (records, end) = read(&disk(1, &built.files(folder())), 0);
    end.unwrap();
    assert_eq!(assert_begins(&built, &records, "after a cut"), 10);
}

#[test]
fn places_that_were_passed_over_are_no_records() {
    let mut built = SampleLog::default().segment().batch(0, &[b"zero", b"gone", b"two"]);
    let seed = segment::seed(crate::log::testing::LOG_ID, 1);
    let at = 64 + 48 + 12;
    crate::log::record::skip(&mut built.segments[0].bytes[at..at + 12], seed, 1);
    let (records, end) = read(&disk(1, &built.files(folder())), 0);
    end.unwrap();
    let sequences: Vec<u64> = records.iter().map(|record| record.sequence).collect();
    assert_eq!(sequences, [0, 2]);
}

#[test]
fn an_empty_log_has_no_records_and_a_folder_without_one_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let error = LogReader::open(folder.path(), 0).unwrap_err();
    let words = format!("{}: there is no log here", folder.path().display());
    assert_eq!(error.to_string(), words);
    std::fs::write(folder.path().join("lock"), b"1\n").unwrap();
    assert!(LogReader::open(folder.path(), 0).unwrap().next().is_none());
    // The first segment is only prepared.
    std::fs::write(segment::path(folder.path(), 1), [0; 10_000]).unwrap();
    assert!(LogReader::open(folder.path(), 0).unwrap().next().is_none());
}

#[test]
fn a_reader_goes_on_where_retention_left_the_log() {
    let built = two_segments().segment().batch(10, &[b"ten"]).segment().batch(11, &[b"eleven"]);
    let folder = written(&built);
    let mut reader = LogReader::open(folder.path(), 0).unwrap();
    assert_eq!(reader.next().unwrap().unwrap().sequence, 0);
    for number in [1, 2] {
        std::fs::remove_file(segment::path(folder.path(), number)).unwrap();
    }
    let sequences: Vec<u64> = reader.map(|record| record.unwrap().sequence).collect();
    assert_eq!(sequences, [1, 2, 3, 4, 10, 11]);
}

#[test]
fn damage_is_told_once_and_where() {
    let mut built = two_segments();
    let at = built.segments[0].batches[1];
    built.segments[0].bytes[at + 100] ^= 1;
    let folder = written(&built);
    let mut reader = LogReader::open(folder.path(), 0).unwrap();
    assert_eq!(reader.by_ref().take(3).filter(Result::is_ok).count(), 3);
    let Some(Err(Error::Damaged { path, offset, .. })) = reader.next() else { panic!("no damage") };
    assert_eq!(path, segment::path(folder.path(), 1));
    assert_eq!(offset, at as u64 + 48);
    assert!(reader.next().is_none());
    assert!(matches!(reader.next_within(Duration::ZERO), Err(Error::Damaged { .. })));
}

#[test]
fn records_of_many_megabytes_lie_in_many_reads() {
    let long: Vec<u8> = (0..5_000_000u32).map(|number| (number % 251) as u8).collect();
    let built =
        SampleLog::default().segment().batch(0, &[b"zero", &long, b"two"]).batch(0, &[&long]);
    let folder = written(&built);
    let records: Vec<Record> =
        LogReader::open(folder.path(), 0).unwrap().map(Result::unwrap).collect();
    assert_eq!(assert_begins(&built, &records, "long"), 4);
}

#[test]
fn a_segment_of_another_place_behind_the_end_of_the_log_is_an_error_to_readers_too() {
    let mut files = two_segments().files(folder());
    files.push((segment::path(folder(), 6), files[0].1.clone()));
    let (records, end) = read(&disk(1, &files), 0);
    assert!(matches!(end, Err(Error::Foreign { .. })), "{end:?}");
    assert_eq!(records.len(), 10);
}

#[test]
fn numbers_that_no_log_comes_to_are_none() {
    for first in [u64::MAX - 1, 1 << 62] {
        let sim = disk(1, &SampleLog::from(first).segment().batch(0, &[b"x"]).files(folder()));
        assert!(read(&sim, 0).0.is_empty());
        let log = crate::Log::options().on(&sim.disk()).open(folder()).unwrap();
        log.append(b"hello").unwrap().wait().unwrap();
        log.close().unwrap();
        assert_eq!(read(&sim, 0).0[0].sequence, 0);
    }
}

/// Returns the number of times that a reader checks the files in this time, without finding a
/// record.
fn looks_within(reader: &mut LogReader, time: Duration) -> u64 {
    let before = reader.following.as_ref().unwrap().looks;
    assert_eq!(reader.next_within(time).unwrap(), None);
    reader.following.as_ref().unwrap().looks - before
}

#[test]
fn a_reader_that_is_told_of_every_change_does_not_poll() {
    let folder = fixtures::folder();
    write(&two_segments(), folder.path());
    let mut reader = LogReader::open(folder.path(), 10).unwrap().following().unwrap();
    // The reader checks once at first, then once per second, and once for a lost record.
    assert!(looks_within(&mut reader, Duration::from_secs(1)) <= 5);
    assert_eq!(reader.following.as_ref().unwrap().checks, 1);
    // Frequent calls do not cause more checks.
    let asked = (0..1000).map(|_| looks_within(&mut reader, Duration::ZERO)).sum::<u64>();
    assert!(asked < 100, "{asked} looks");
}

#[test]
fn a_follower_is_told_of_damage_that_was_there_and_of_damage_that_comes() {
    let folder = fixtures::folder();
    let mut built = two_segments();
    let at = built.segments[0].batches[1];
    built.segments[0].bytes[at + 100] ^= 1;
    write(&built, folder.path());
    let mut reader = LogReader::open(folder.path(), 0).unwrap().following().unwrap();
    let damaged = reader.find_map(Result::err).unwrap();
    assert!(matches!(damaged, Error::Damaged { .. }), "{damaged}");

    write(&two_segments(), folder.path());
    let mut reader = LogReader::open(folder.path(), 9).unwrap().following().unwrap();
    assert_eq!(reader.next().unwrap().unwrap().sequence, 9);
    while reader.following.as_ref().unwrap().checks == 0 {
        assert_eq!(reader.next_within(Duration::from_millis(10)).unwrap(), None);
    }
    let mut built = two_segments().batch(10, &[b"ten"]).batch(11, &[b"eleven"]);
    let at = built.segments[1].batches[2];
    built.segments[1].bytes[at + 57] ^= 1;
    write(&built, folder.path());
    let damaged = reader.next().unwrap().unwrap_err();
    assert!(matches!(damaged, Error::Damaged { .. }), "{damaged}");
}

#[test]
fn no_record_behind_a_lost_beginning_is_read_from_any_place_on() {
    // W9
    for lost in 0..6_usize {
        let mut built = SampleLog::default();
        for number in 0..6 {
            built = built.segment().batch(0, &[&[number; 700], b"a"]);
            built = built.batch(0, &[b"b", &[number; 300]]);
        }
        built.segments[lost].bytes.fill(0);
        let sim = disk(1, &built.files(folder()));
        for from in 0..26 {
            let (records, end) = read(&sim, from);
            end.unwrap();
            let sequences: Vec<u64> = records.iter().map(|record| record.sequence).collect();
            let expected: Vec<u64> = (from..4 * lost as u64).collect();
            assert_eq!(sequences, expected, "segment {lost} is lost, from {from}");
        }
    }
}

#[test]
fn a_reader_and_a_check_judge_a_lost_beginning_alike() {
    // W9
    let judged = |files: &[(PathBuf, Vec<u8>)]| {
        let folder = fixtures::folder();
        for (path, bytes) in files {
            std::fs::write(folder.path().join(path.file_name().unwrap()), bytes).unwrap();
        }
        let read = LogReader::open(folder.path(), 0).and_then(|reader| reader.collect());
        let is_damaged = !verify(folder.path(), None).unwrap().damage.is_empty();
        let is_refused = Log::open(folder.path()).is_err();
        (read.map(|records: Vec<Record>| records.len()).ok(), is_damaged, is_refused)
    };
    let built = SampleLog::default().segment().batch(0, &[b"zero"]).segment().batch(0, &[b"one"]);
    let built = built.batch(1, &[b"two"]).segment();
    // A batch that states what was durable is evidence only in the segment to which it was written.
    let mut files = built.files(folder());
    let batch = files[1].1.split_off(built.segments[1].batches[1]);
    files[0].1.fill(0);
    files[0].1.extend(batch);
    assert_eq!(judged(&files), (Some(0), false, false));
    // The segment before the first one has been removed, so its records were durable.
    let mut left = built.files(folder()).split_off(1);
    left[0].1.fill(0);
    assert_eq!(judged(&left), (None, true, true));
}

#[test]
fn a_reader_that_is_told_of_no_change_looks_by_itself() {
    let folder = fixtures::folder();
    write(&two_segments(), folder.path());
    // The folder is not held open, so it is not watched.
    let files = LogFiles::open_in(None, &Folder::named(folder.path())).unwrap();
    let following = Some(Following::new());
    let mut reader = LogReader::new(files, 10, false).unwrap();
    reader.following = following;
    while reader.following.as_ref().unwrap().looks < 10 {
        looks_within(&mut reader, Duration::from_millis(10));
    }
    write(&two_segments().batch(10, &[b"ten"]), folder.path());
    assert_eq!(reader.next_within(Duration::ZERO).unwrap().unwrap().bytes, b"ten");
    write(&two_segments().batch(10, &[b"ten"]).batch(10, &[b"eleven"]), folder.path());
    assert_eq!(reader.next().unwrap().unwrap().bytes, b"eleven");
}
