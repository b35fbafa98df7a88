//! Tests of streams: they yield exactly the records of the log, as it is written, until the log is
//! closed or fails, or the stream is dropped.

use crate::small_log::{append_when_room, block_on, folder, read, record, segments, small};
use futures_util::{Stream, StreamExt, TryStreamExt, future};
use std::path::PathBuf;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::thread;
use wrote::{Error, Log, LogReader, Record, SyncPolicy};

const RECORDS: u64 = 2000;

/// Collects the records of a stream up to its end.
fn all(stream: impl Stream<Item = Result<Record, Error>>) -> Vec<(u64, Vec<u8>)> {
    let stream = stream.map_ok(|Record { sequence, bytes, .. }| (sequence, bytes));
    block_on(stream.try_collect()).unwrap()
}

/// Waits for the next record.
fn next(stream: &mut (impl Stream<Item = Result<Record, Error>> + Unpin)) -> (u64, Vec<u8>) {
    let Record { sequence, bytes, .. } = block_on(stream.next()).unwrap().unwrap();
    (sequence, bytes)
}

#[test]
fn streams_yield_exactly_the_log_as_it_is_written_and_end_when_it_is_closed() {
    let (_folder, folder) = folder();
    let log = small().open(&folder).unwrap();
    let streams = [0, 0, 1, RECORDS / 2, RECORDS - 1]
        .map(|from| log.reader(from).unwrap().following().unwrap().into_stream().unwrap());
    let readers = streams.map(|stream| thread::spawn(|| all(stream)));
    for number in 0..RECORDS {
        let ticket = log.append(&record(number)).unwrap();
        if number % 100 == 0 {
            ticket.wait().unwrap();
        }
    }
    log.close().unwrap();
    let expected = read(&folder);
    assert!(expected.len() as u64 == RECORDS && log.stats().segments > 2);
    for (reader, from) in readers.into_iter().zip([0, 0, 1, RECORDS / 2, RECORDS - 1]) {
        let found = reader.join().unwrap();
        assert!(found == expected[from as usize..], "from {from}");
    }
    assert!(
        all(log.reader(0).unwrap().following().unwrap().into_stream().unwrap()) == expected,
        "of a closed log"
    );
    assert!(
        all(log.reader(RECORDS + 5).unwrap().following().unwrap().into_stream().unwrap())
            .is_empty()
    );
}

#[test]
fn a_stream_that_waits_is_woken_by_the_next_record() {
    let (_folder, folder) = folder();
    let log = small().open(&folder).unwrap();
    let mut stream = log.reader(0).unwrap().following().unwrap().into_stream().unwrap();
    let context = &mut Context::from_waker(Waker::noop());
    assert!(pin!(&mut stream).poll_next(context).is_pending());
    for number in 0..200 {
        let appending = async { append_when_room(&log, &record(number)).await.unwrap().await };
        let (found, appended) = block_on(future::join(stream.next(), appending));
        appended.unwrap();
        let found = found.unwrap().unwrap();
        assert_eq!((found.sequence, found.bytes), (number, record(number)));
    }
    log.close().unwrap();
}

#[test]
fn a_stream_does_not_keep_its_log_open() {
    let (_folder, folder) = folder();
    let log = small().open(&folder).unwrap();
    let mut stream = log.reader(0).unwrap().following().unwrap().into_stream().unwrap();
    drop(log.append(b"the last").unwrap());
    drop(log);
    // The lock is free now.
    let log = small().open(&folder).unwrap();
    log.append(b"of another life").unwrap().wait().unwrap();
    assert_eq!(next(&mut stream), (0, b"the last".to_vec()));
    assert!(block_on(stream.next()).is_none(), "its log was closed");
    log.close().unwrap();
}

#[test]
fn records_longer_than_a_batch_of_a_stream_come_whole() {
    let (_folder, folder) = folder();
    let log = Log::options().sync(SyncPolicy::No).buffer_bytes(2 << 20).open(&folder).unwrap();
    let long: Vec<u8> = (0..1_500_000u32).map(|place| (place % 251) as u8).collect();
    let mut stream = log.reader(0).unwrap().following().unwrap().into_stream().unwrap();
    for number in 0..6 {
        let record = if number % 2 == 0 { &long[..] } else { b"short" };
        log.append(record).unwrap().wait().unwrap();
    }
    for number in 0..6 {
        let record = if number % 2 == 0 { &long[..] } else { b"short" };
        assert!(next(&mut stream) == (number, record.to_vec()));
    }
    log.close().unwrap();
}

#[test]
fn retention_does_not_stop_a_stream() {
    let (_folder, folder) = folder();
    let log = small().retain_bytes(300 << 10).open(&folder).unwrap();
    let stream = log.reader(0).unwrap().following().unwrap().into_stream().unwrap();
    let reading = thread::spawn(|| all(stream));
    for number in 0..RECORDS {
        drop(log.append(&record(number)).unwrap());
    }
    log.close().unwrap();
    assert!(log.stats().removed > 2, "{}", log.stats().removed);
    let found = reading.join().unwrap();
    assert!(found.windows(2).all(|pair| pair[0].0 < pair[1].0));
    assert!(found.iter().all(|(sequence, bytes)| *bytes == record(*sequence)));
    assert_eq!(found.last().unwrap().0, RECORDS - 1);
}

#[test]
fn a_stream_of_a_log_that_fails_yields_what_was_written_and_then_the_error_once() {
    let (_folder, folder) = folder();
    let log = small().sync(SyncPolicy::Always).open(&folder).unwrap();
    let mut stream = log.reader(0).unwrap().following().unwrap().into_stream().unwrap();
    for number in 0..5 {
        log.append(&record(number)).unwrap().wait().unwrap();
        assert_eq!(next(&mut stream), (number, record(number)));
    }
    let mut late = log.reader(3).unwrap().following().unwrap().into_stream().unwrap();
    assert_eq!(next(&mut late), (3, record(3)));
    assert_eq!(next(&mut late), (4, record(4)));
    // The next flush finds that the current segment has lost its name.
    segments(&folder).iter().for_each(|path| std::fs::remove_file(path).unwrap());
    let failed = log.append(&record(5)).unwrap().wait().unwrap_err();
    for stream in [&mut stream, &mut late] {
        // The record whose flush failed was written, so the stream may yield it.
        let error = loop {
            if let Err(error) = block_on(stream.next()).unwrap() {
                break error;
            }
        };
        assert_eq!((error.errno(), error.to_string()), (libc::ENOENT, failed.to_string()));
        assert!(block_on(stream.next()).is_none());
    }
    assert!(log.close().is_err());
}

#[test]
fn a_record_that_the_disk_has_lost_ends_a_stream_with_damage() {
    let (_folder, folder) = folder();
    let log = small().sync(SyncPolicy::Always).open(&folder).unwrap();
    let text = |number| format!("record {number}").into_bytes();
    for number in 0..10 {
        log.append(&text(number)).unwrap().wait().unwrap();
    }
    let damage = |path: PathBuf| {
        let mut bytes = std::fs::read(&path).unwrap();
        let at = bytes.windows(8).position(|window| window == text(7))?;
        bytes[at] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        Some(path)
    };
    segments(&folder).into_iter().find_map(damage).unwrap();
    let mut stream = log.reader(0).unwrap().following().unwrap().into_stream().unwrap();
    for number in 0..7 {
        assert_eq!(next(&mut stream), (number, text(number)));
    }
    let error = block_on(stream.next()).unwrap().unwrap_err();
    assert!(matches!(error, Error::Damaged { .. }), "{error}");
    assert!(block_on(stream.next()).is_none());
}

#[test]
fn a_reader_becomes_a_stream_that_ends_where_the_reader_would() {
    let (_folder, folder) = folder();
    let log = small().open(&folder).unwrap();
    for number in 0..RECORDS {
        drop(log.append(&record(number)).unwrap());
    }
    log.sync().unwrap();
    let stream = LogReader::open(&folder, 0).unwrap().into_stream().unwrap();
    assert!(all(stream) == read(&folder));
    let mut following =
        LogReader::open(&folder, RECORDS - 1).unwrap().following().unwrap().into_stream().unwrap();
    assert_eq!(next(&mut following), (RECORDS - 1, record(RECORDS - 1)));
    let context = &mut Context::from_waker(Waker::noop());
    assert!(matches!(pin!(&mut following).poll_next(context), Poll::Pending));
    log.append(&record(RECORDS)).unwrap().wait().unwrap();
    assert_eq!(next(&mut following), (RECORDS, record(RECORDS)));
    log.close().unwrap();
}

#[test]
fn a_record_that_a_log_will_never_write_is_not_waited_for() {
    let (_folder, folder) = folder();
    let log = small().open(&folder).unwrap();
    log.append(b"the only one").unwrap().wait().unwrap();
    block_on(log.written(0)).unwrap();
    let other = log.clone();
    let waiting = thread::spawn(move || block_on(other.written(1)));
    log.close().unwrap();
    assert!(matches!(waiting.join().unwrap(), Err(Error::Refused { .. })));
    assert!(matches!(block_on(log.written(1)), Err(Error::Refused { .. })));
    block_on(log.written(0)).unwrap();
}
