//! Tests of the log as a write-ahead log: groups, trims and cuts on the real kernel. `lab sim`
//! tests them on simulated disks, with power losses.

use crate::small_log::{self, folder, read, record};
use fixtures::log_reader;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use wrote::log::{repair, verify};
use wrote::{Error, Log, LogOptions, LogReader};

fn tiny() -> LogOptions {
    small_log::small().segment_bytes(64 << 10)
}

fn segments(folder: &Path) -> Vec<PathBuf> {
    small_log::segments(folder)
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

/// Returns the content of a log's files, by name.
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
    let log = tiny().open(&folder).unwrap();
    append(&log, 0..3);
    let group: Vec<Vec<u8>> = (3..12).map(record).collect();
    let (sequences, ticket) = log.append_all(&group).unwrap();
    assert_eq!((sequences, ticket.sequence()), (3..12, 11));
    ticket.wait().unwrap();
    append(&log, 12..14);
    for refused in [vec![vec![0; 3000]; 1000], vec![vec![]; (1 << 20) + 1], Vec::new()] {
        let error = log.append_all(&refused).unwrap_err();
        assert!(matches!(error, Error::Refused { .. } | Error::TooLong { .. }), "{error}");
        assert_eq!(error.to_string().lines().count(), 1);
    }
    log.close().unwrap();
    assert_eq!(read(&folder), expected(0..14));
    assert_eq!(second_reader(&folder).records, expected(0..14));
}

#[test]
fn a_cut_waits_for_producers_and_answers_their_tickets() {
    let (_folder, folder) = folder();
    let log = tiny().open(&folder).unwrap();
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

/// If a record of a durable group is damaged later, only that record is lost.
#[test]
fn a_durable_group_with_a_damaged_record_is_reported_and_repaired_record_by_record() {
    let (_folder, folder) = folder();
    let log = tiny().open(&folder).unwrap();
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
fn the_rest_of_a_group_behind_a_cut_is_there_whole_or_not_at_all() {
    let (_folder, folder) = folder();
    let log = tiny().open(&folder).unwrap();
    let text = |number: u64| format!("text {number}").into_bytes();
    append_text(&log, 0, &text(0));
    let group: Vec<Vec<u8>> = (1..6).map(text).collect();
    log.append_all(&group).unwrap().1.wait().unwrap();
    log.truncate_from(5).unwrap();
    log.close().unwrap();
    drop(log);
    // Without the closing batch, no batch states that the group was durable, so the group looks
    // torn.
    let path = segments(&folder).pop().unwrap();
    let mut bytes = fs::read(&path).unwrap();
    bytes.truncate(bytes.len() - 48);
    let at = bytes.windows(6).position(|window| window == b"text 3").unwrap();
    bytes[at] ^= 1;
    fs::write(&path, bytes).unwrap();
    assert_eq!(read(&folder), [(0, text(0))]);
    assert_eq!(second_reader(&folder).records.len(), 1);
    let log = tiny().open(&folder).unwrap();
    assert_eq!(log.stats().next_sequence, 1);
    append_text(&log, 1, b"another");
    log.close().unwrap();
    assert_eq!(read(&folder), [(0, text(0)), (1, b"another".to_vec())]);
}

#[test]
fn a_record_knows_when_it_was_written_and_a_reader_finds_a_time() {
    let (_folder, folder) = folder();
    let log = tiny().open(&folder).unwrap();
    let begin = SystemTime::now();
    append(&log, 0..120);
    let between = SystemTime::now();
    append(&log, 120..200);
    let mut reader = LogReader::open(&folder, 0).unwrap();
    let times: Vec<SystemTime> =
        reader.by_ref().map(|record| record.unwrap().written_at.unwrap()).collect();
    // The system clock may step.
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
}
