//! The log as a write-ahead log: groups, trims and cuts, on the real kernel and on simulated disks.

use crate::small_log::{self, folder, read, record};
use fixtures::log_reader;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use wrote::log::{repair, verify};
use wrote::{Error, Format, Log, LogOptions, LogReader, Sim};

/// The folder of logs on simulated disks.
const SIMULATED: &str = "/log";

fn tiny(format: Format) -> LogOptions {
    small_log::small(format).segment_bytes(64 << 10)
}

fn segments(folder: &Path) -> Vec<PathBuf> {
    small_log::segments(folder, Format::Framed)
}

fn append(log: &Log, records: std::ops::Range<u64>) {
    for number in records {
        let ticket = log.append(&record(number)).unwrap();
        assert_eq!(ticket.sequence(), number);
        ticket.wait().unwrap();
    }
}

fn expected(records: std::ops::Range<u64>) -> Vec<(u64, Vec<u8>)> {
    records.map(|number| (number, record(number))).collect()
}

/// Returns the files of a log by their names.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let named = fs::read_dir(folder).unwrap().map(|entry| {
        let path = entry.unwrap().path();
        (path.file_name().unwrap().to_str().unwrap().to_owned(), fs::read(path).unwrap())
    });
    named.collect()
}

fn second_reader(folder: &Path) -> log_reader::ReadLog {
    log_reader::read(&files(folder).into_iter().collect::<Vec<_>>())
}

fn append_text(log: &Log, sequence: u64, text: &[u8]) {
    let ticket = log.append(text).unwrap();
    assert_eq!(ticket.sequence(), sequence);
    ticket.wait().unwrap();
}

#[test]
fn a_group_is_one_range_of_sequences_and_a_group_that_fits_no_buffer_is_refused_in_one_line() {
    let (_folder, folder) = folder();
    let log = tiny(Format::Framed).open(&folder).unwrap();
    append(&log, 0..3);
    let group: Vec<Vec<u8>> = (3..12).map(record).collect();
    let (sequences, ticket) = log.append_all(&group).unwrap();
    assert_eq!((sequences, ticket.sequence()), (3..12, 11));
    ticket.wait().unwrap();
    append(&log, 12..14);
    for refused in [vec![vec![0; 3000]; 1000], vec![vec![]; (1 << 20) + 1], Vec::new()] {
        let error = log.append_all(&refused).unwrap_err();
        assert!(matches!(error, Error::Refused { .. }), "{error}");
        assert_eq!(error.to_string().lines().count(), 1);
    }
    log.close().unwrap();
    assert_eq!(read(&folder), expected(0..14));
    assert_eq!(second_reader(&folder).records, expected(0..14));
}

#[test]
fn a_log_of_lines_takes_no_group_and_no_cut_and_is_trimmed() {
    let (_folder, folder) = folder();
    let log = tiny(Format::Lines).open(&folder).unwrap();
    for refused in [log.append_all(&["a", "b"]).map(drop), log.truncate_from(1)] {
        assert!(matches!(refused, Err(Error::Refused { .. })), "{refused:?}");
    }
    append(&log, 0..200);
    let before = small_log::segments(&folder, Format::Lines).len();
    let first = log.trim_before(150).unwrap();
    let after = small_log::segments(&folder, Format::Lines).len();
    assert!(first <= 150 && after < before, "{first}: {after} of {before} files");
    log.close().unwrap();
    assert_eq!(read(&folder), expected(first..200));
}

#[test]
fn a_trim_removes_whole_segments_and_never_a_record_that_it_was_not_asked_to() {
    let (_folder, folder) = folder();
    let log = tiny(Format::Framed).open(&folder).unwrap();
    append(&log, 0..200);
    let mut before = 0;
    for asked in [0, 1, 60, 60, 120, 199, 200, u64::MAX] {
        let first = log.trim_before(asked).unwrap();
        assert!((before..=asked).contains(&first), "{first} of {asked}");
        assert_eq!(log.stats().first_sequence, first);
        assert_eq!(read(&folder), expected(first..200));
        before = first;
    }
    assert!(before > 120, "{before}");
    append(&log, 200..203);
    log.close().unwrap();
    let log = tiny(Format::Framed).open(&folder).unwrap();
    assert_eq!((log.stats().first_sequence, log.stats().next_sequence), (before, 203));
}

#[test]
fn a_cut_at_any_record_leaves_those_before_it_and_the_log_goes_on_there() {
    let (_folder, folder) = folder();
    let log = tiny(Format::Framed).open(&folder).unwrap();
    let mut next = 0;
    for (add, cut) in [(200, 199), (1, 200), (60, 100), (60, 99), (0, 98), (0, 0), (90, 89), (9, 1)]
    {
        append(&log, next..next + add);
        next += add;
        log.truncate_from(cut).unwrap();
        next = next.min(cut);
        assert_eq!(log.stats().next_sequence, next);
        assert_eq!(read(&folder), expected(0..next), "cut at {cut}");
        assert_eq!(second_reader(&folder).records, expected(0..next), "cut at {cut}");
        let verified = verify(&folder, None).unwrap();
        assert!(verified.damage.is_empty() && verified.garbage.is_empty(), "{verified:?}");
    }
    append(&log, next..next + 50);
    log.close().unwrap();
    let log = tiny(Format::Framed).open(&folder).unwrap();
    append(&log, next + 50..next + 60);
    log.close().unwrap();
    assert_eq!(read(&folder), expected(0..next + 60));
    for from in 0..next + 60 {
        let mut reader = LogReader::open(&folder, from).unwrap();
        assert_eq!(reader.next().unwrap().unwrap().sequence, from);
    }
}

/// A crash may leave any of the files that a cut removed from the log.
#[test]
fn what_a_cut_took_off_is_never_read_even_while_its_files_are_there() {
    for cut in [0, 1, 57, 101, 149] {
        let (_folder, folder) = folder();
        let log = tiny(Format::Framed).open(&folder).unwrap();
        let group: Vec<Vec<u8>> = (0..10).map(record).collect();
        log.append_all(&group).unwrap().1.wait().unwrap();
        append(&log, 10..150);
        let before = files(&folder);
        log.truncate_from(cut).unwrap();
        let after = files(&folder);
        log.close().unwrap();
        drop(log);
        let changed = before.iter().filter(|(name, bytes)| after.get(*name) != Some(*bytes));
        let changed: Vec<(&String, &Vec<u8>)> = changed.collect();
        assert!(!changed.is_empty(), "a cut at {cut} leaves something to remove");
        for left in 1..=changed.len() {
            for name in files(&folder).keys() {
                fs::remove_file(folder.join(name)).unwrap();
            }
            for (name, bytes) in &after {
                fs::write(folder.join(name), bytes).unwrap();
            }
            for (name, bytes) in changed.iter().take(left) {
                fs::write(folder.join(name), bytes).unwrap();
            }
            let what = format!("cut at {cut}, {left} files left");
            assert_eq!(read(&folder), expected(0..cut), "{what}");
            assert_eq!(second_reader(&folder).records, expected(0..cut), "{what}");
            let verified = verify(&folder, None).unwrap();
            assert!(verified.damage.is_empty() && verified.garbage.is_empty(), "{verified:?}");
            assert!(repair(&folder).unwrap().damage.is_empty(), "{what}");
            let log = tiny(Format::Framed).open(&folder).unwrap();
            assert_eq!(log.stats().next_sequence, cut, "{what}");
            append(&log, cut..cut + 3);
            log.close().unwrap();
            drop(log);
            assert_eq!(read(&folder), expected(0..cut + 3), "{what}");
            let names: Vec<String> = files(&folder).into_keys().collect();
            let dead = changed.iter().filter(|(name, _)| !after.contains_key(*name));
            for (name, _) in dead {
                assert!(!names.contains(name) || name.as_str() == "lock", "{what}: {name}");
            }
        }
    }
}

#[test]
fn readers_that_have_read_what_is_cut_off_are_told_and_others_go_on() {
    let (_folder, folder) = folder();
    let log = tiny(Format::Framed).open(&folder).unwrap();
    append(&log, 0..100);
    let mut ahead = LogReader::follow(&folder, 0).unwrap();
    let mut behind = log.tail(0).unwrap();
    let mut moved = LogReader::open(&folder, 0).unwrap();
    assert_eq!(ahead.read(0..100).unwrap().len(), 100);
    assert_eq!(behind.read(0..30).unwrap().len(), 30);
    assert_eq!(moved.read(40..90).unwrap().len(), 50);
    log.truncate_from(60).unwrap();
    let other = |number: u64| format!("other {number}").into_bytes();
    for number in 60..70 {
        append_text(&log, number, &other(number));
    }
    for _ in 0..2 {
        let told = ahead.next_within(Duration::ZERO).unwrap_err();
        assert!(matches!(told, Error::Truncated { sequence: 60, .. }), "{told}");
    }
    ahead.seek(60).unwrap();
    let patience = Duration::from_secs(60);
    assert_eq!(ahead.next_within(patience).unwrap().unwrap().bytes, other(60));
    // A read by position finds nothing of the removed records, although it had read them.
    let again = moved.read(55..65).unwrap();
    let bytes: Vec<Vec<u8>> = again.into_iter().map(|record| record.bytes).collect();
    let expected: Vec<Vec<u8>> = (55..60).map(record).chain((60..65).map(other)).collect();
    assert_eq!(bytes, expected);
    behind.seek(58).unwrap();
    let next: Vec<Vec<u8>> =
        (0..4).map(|_| behind.next_within(patience).unwrap().unwrap().bytes).collect();
    assert_eq!(next, [record(58), record(59), other(60), other(61)]);
    log.close().unwrap();
}

#[test]
fn a_cut_waits_for_producers_and_answers_their_tickets() {
    let (_folder, folder) = folder();
    let log = tiny(Format::Framed).open(&folder).unwrap();
    std::thread::scope(|scope| {
        let producers: Vec<_> = (0..3)
            .map(|producer| {
                let log = log.clone();
                scope.spawn(move || {
                    for number in 0..200 {
                        let ticket = log.append(format!("{producer} {number}").as_bytes()).unwrap();
                        ticket.wait().unwrap();
                    }
                })
            })
            .collect();
        while !producers.iter().all(|producer| producer.is_finished()) {
            let next = log.stats().next_sequence;
            log.truncate_from(next / 2).unwrap();
        }
    });
    let next = log.stats().next_sequence;
    log.close().unwrap();
    let sequences: Vec<u64> = read(&folder).into_iter().map(|(sequence, _)| sequence).collect();
    assert_eq!(sequences, (0..next).collect::<Vec<u64>>());
}

/// The power goes at each operation of a group's append and a cut. // W1
#[test]
fn after_a_power_loss_at_any_operation_a_group_is_whole_and_a_cut_is_made_or_not() {
    let options = Log::options().buffers(2).buffer_bytes(4096).segment_bytes(8192);
    let text = |number: u64| format!("record {number} {}", "x".repeat(500)).into_bytes();
    for operation in 0.. {
        let sim = Sim::new(operation);
        let log = options.clone().on(&sim.disk()).open(SIMULATED).unwrap();
        (0..5).for_each(|number| append_text(&log, number, &text(number)));
        sim.fault(sim.operations() + operation, wrote::engine::Fault::PowerLoss);
        let group: Vec<Vec<u8>> = (5..9).map(text).collect();
        let grouped = log.append_all(&group).and_then(|(_, ticket)| ticket.wait());
        let cut = grouped.clone().and_then(|()| log.truncate_from(3));
        let other = cut.clone().and_then(|()| log.append(b"other")?.wait());
        drop(log);
        sim.restart();
        let log = options.clone().on(&sim.disk()).open(SIMULATED).unwrap();
        let next = log.stats().next_sequence;
        let found: Vec<Vec<u8>> =
            log.reader(0).unwrap().map(|record| record.unwrap().bytes).collect();
        let expected = match (&grouped, &cut, &other) {
            (Err(_), ..) => [5, 9],
            (_, Err(_), _) => [9, 3],
            (_, _, Err(_)) => [3, 4],
            _ => [4, 4],
        };
        assert!(expected.contains(&next), "{next} of {expected:?} at operation {operation}");
        let mut records: Vec<Vec<u8>> = (0..next).map(text).collect();
        if next == 4 {
            records[3] = b"other".to_vec();
        }
        assert!(found == records, "other bytes at operation {operation}");
        if other.is_ok() {
            return;
        }
    }
}

/// Later damage to a record of a group loses only that record.
#[test]
fn a_durable_group_with_a_damaged_record_is_reported_and_repaired_record_by_record() {
    let (_folder, folder) = folder();
    let log = tiny(Format::Framed).open(&folder).unwrap();
    let text = |number: u64| format!("text {number}").into_bytes();
    let group: Vec<Vec<u8>> = (0..5).map(text).collect();
    log.append_all(&group).unwrap().1.wait().unwrap();
    (5..9).for_each(|number| append_text(&log, number, &text(number)));
    log.close().unwrap();
    drop(log);
    let path = &segments(&folder)[0];
    let mut bytes = fs::read(path).unwrap();
    let at = bytes.windows(6).position(|window| window == b"text 2").unwrap();
    bytes[at] ^= 1;
    fs::write(path, bytes).unwrap();
    let verified = verify(&folder, None).unwrap();
    assert_eq!((verified.records, verified.damage.len()), (8, 1), "{verified:?}");
    let failed = LogReader::open(&folder, 0).unwrap().find_map(Result::err).unwrap();
    assert!(matches!(failed, Error::Damaged { .. }), "{failed}");
    assert_eq!(repair(&folder).unwrap().records, 8);
    let left: Vec<(u64, Vec<u8>)> =
        [0, 1, 3, 4, 5, 6, 7, 8].map(|number| (number, text(number))).into();
    assert_eq!(read(&folder), left);
}

#[test]
fn what_a_cut_leaves_of_the_batch_of_a_group_is_there_whole_or_not_at_all() {
    let (_folder, folder) = folder();
    let log = tiny(Format::Framed).open(&folder).unwrap();
    let text = |number: u64| format!("text {number}").into_bytes();
    append_text(&log, 0, &text(0));
    let group: Vec<Vec<u8>> = (1..6).map(text).collect();
    log.append_all(&group).unwrap().1.wait().unwrap();
    log.truncate_from(5).unwrap();
    log.close().unwrap();
    drop(log);
    // Without the end mark no batch states that the group was durable, so it counts as torn.
    let path = segments(&folder).pop().unwrap();
    let mut bytes = fs::read(&path).unwrap();
    bytes.truncate(bytes.len() - 48);
    let at = bytes.windows(6).position(|window| window == b"text 3").unwrap();
    bytes[at] ^= 1;
    fs::write(&path, bytes).unwrap();
    assert_eq!(read(&folder), [(0, text(0))]);
    assert_eq!(second_reader(&folder).records.len(), 1);
    let log = tiny(Format::Framed).open(&folder).unwrap();
    assert_eq!(log.stats().next_sequence, 1);
    append_text(&log, 1, b"another");
    log.close().unwrap();
    assert_eq!(read(&folder), [(0, text(0)), (1, b"another".to_vec())]);
}

#[test]
fn a_record_knows_when_it_was_written_and_a_reader_finds_a_time() {
    let (_folder, folder) = folder();
    let log = tiny(Format::Framed).open(&folder).unwrap();
    let begin = SystemTime::now();
    append(&log, 0..120);
    let between = SystemTime::now();
    append(&log, 120..200);
    let mut reader = LogReader::open(&folder, 0).unwrap();
    let times: Vec<SystemTime> =
        reader.by_ref().map(|record| record.unwrap().written_at.unwrap()).collect();
    // The machine's clock may step.
    if times.is_sorted() && begin <= times[0] && (times[119]..=times[120]).contains(&between) {
        for (time, first) in [(begin, 0), (between, 120), (times[7], 7), (times[199], 199)] {
            reader.seek_time(time).unwrap();
            assert_eq!(reader.next().unwrap().unwrap().sequence, first);
        }
    }
    reader.seek_time(SystemTime::UNIX_EPOCH).unwrap();
    assert_eq!(reader.next().unwrap().unwrap().sequence, 0);
    reader.seek_time(SystemTime::now() + Duration::from_secs(3600)).unwrap();
    assert!(reader.next().is_none());
    log.close().unwrap();
    let refused = {
        let (_folder, folder): (_, PathBuf) = crate::small_log::folder();
        let lines = tiny(Format::Lines).open(&folder).unwrap();
        append(&lines, 0..1);
        lines.reader(0).unwrap().seek_time(begin).unwrap_err()
    };
    assert!(matches!(refused, Error::Refused { .. }), "{refused}");
}
