//! Tests of logs, writers and saves on the rung that the library chooses.

use super::disk::{Fault, FaultyDisk};
use super::{FAULTS, FAULTS_IN_PLACE, assert_of_the_device, content, on_each_file_system, read};
use fixtures::or_skip;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};
use wrote::{Error, Log, LogOptions, Writer};

/// The number of records that are durable before the fault.
const RECORDS: usize = 20;

/// Returns the options for each method of preparing a segment and of making a record durable.
fn logs(fault: Fault) -> Vec<LogOptions> {
    let log = || Log::options().segment_bytes(256 << 10).buffer_bytes(64 << 10);
    let mut logs = vec![log().zeros(true).dsync(true), log().zeros(true).dsync(false)];
    // Without zeros, records go to new blocks.
    if fault != Fault::Flushes {
        logs.push(log().zeros(false).dsync(false));
    }
    logs
}

/// Returns record `number` of a producer.
fn record(producer: u64, number: u64) -> Vec<u8> {
    let letters = content(producer * 1000 + number, 200 + (number % 50) as usize * 40);
    let letters = letters.into_iter().map(|byte| b'!' + byte % 90);
    format!("{producer} {number} ").into_bytes().into_iter().chain(letters).collect()
}

/// A log, and its durable records with their sequences.
struct Promised {
    log: Log,
    records: Mutex<Vec<(u64, Vec<u8>)>>,
}

impl Promised {
    fn count(&self) -> usize {
        self.records.lock().unwrap().len()
    }

    /// Appends records and waits for each, until the first error, which it returns.
    fn append(&self, producer: u64) -> Error {
        let append = |bytes: &[u8]| {
            let ticket = self.log.append(bytes)?;
            let sequence = ticket.sequence();
            ticket.wait().map(|()| sequence)
        };
        for number in 0.. {
            let bytes = record(producer, number);
            match append(&bytes) {
                Ok(sequence) => self.records.lock().unwrap().push((sequence, bytes)),
                Err(error) => return error,
            }
        }
        unreachable!("a disk that fails ends the numbers")
    }
}

#[test]
fn a_log_on_a_disk_that_fails_keeps_what_it_promised_and_promises_no_more() {
    // W1, W2
    or_skip!(on_each_file_system(|disk| {
        FAULTS_IN_PLACE.into_iter().for_each(|fault| append(disk, fault));
    }));
}

fn append(disk: &mut FaultyDisk, fault: Fault) {
    let folder = |disk: &FaultyDisk, number: usize| -> PathBuf {
        disk.path().join(format!("{fault:?}-{number}"))
    };
    let logs = logs(fault);
    let open = |(number, options): (usize, &LogOptions)| Promised {
        log: options.open(folder(disk, number)).unwrap(),
        records: Mutex::default(),
    };
    let promised: Vec<Promised> = logs.iter().enumerate().map(open).collect();
    thread::scope(|scope| {
        let producers = promised
            .iter()
            .flat_map(|log| [0, 1].map(|producer| scope.spawn(move || log.append(producer))));
        let producers: Vec<_> = producers.collect();
        while promised.iter().any(|log| log.count() < RECORDS) {
            thread::sleep(Duration::from_millis(1));
        }
        disk.set(fault);
        for producer in producers {
            assert_of_the_device(&producer.join().unwrap(), disk, &format!("{fault:?}"));
        }
    });
    disk.set(Fault::None);
    for (number, Promised { log, .. }) in promised.iter().enumerate() {
        let late = log.append(b"late").and_then(|ticket| ticket.wait());
        assert!(late.is_err(), "log {number}, {fault:?}: a record after the failed flush");
        assert!(log.sync().is_err() && log.check().is_err(), "log {number}, {fault:?}");
        assert!(log.close().is_err(), "log {number}, {fault:?}");
    }
    let records = |promised: Promised| promised.records.into_inner().unwrap();
    let records: Vec<_> = promised.into_iter().map(records).collect();
    disk.cut_and_mount();
    for (number, (options, records)) in logs.iter().zip(records).enumerate() {
        let log = options.open(folder(disk, number)).unwrap();
        let found: Vec<_> = log.reader(0).unwrap().map(Result::unwrap).collect();
        for (sequence, bytes) in records {
            let found = found.get(usize::try_from(sequence).unwrap());
            let is_there =
                found.is_some_and(|found| found.sequence == sequence && found.bytes == bytes);
            assert!(is_there, "log {number}, {fault:?}: record {sequence} was promised");
        }
        log.append(b"more").unwrap().wait().unwrap();
        log.close().unwrap();
    }
}

#[test]
fn a_writer_on_a_disk_that_fails_keeps_what_it_promised_and_promises_no_more() {
    // W1, W2
    or_skip!(on_each_file_system(|disk| FAULTS.into_iter().for_each(|fault| stream(disk, fault))));
}

fn stream(disk: &mut FaultyDisk, fault: Fault) {
    const SAFE: usize = 300_007;
    let bytes = content(7, 700_001);
    let path = |disk: &FaultyDisk, direct| disk.path().join(format!("{fault:?}-{direct}"));
    let open = |direct| {
        let options = Writer::options().direct(direct).bs(64 << 10).iodepth(3).create_new(true);
        let mut writer = options.open(path(disk, direct)).unwrap();
        writer.write_all(&bytes[..SAFE]).unwrap();
        writer.sync_data().unwrap();
        (direct, writer)
    };
    let mut writers = [false, true].map(open);
    disk.set(fault);
    for (direct, writer) in &mut writers {
        let case = format!("direct {direct}, {fault:?}");
        let written = writer.write_all(&bytes[SAFE..]);
        let written =
            written.map_err(|error| error.downcast::<Error>().expect("an error of the library"));
        let error = written.and_then(|()| writer.sync_data()).expect_err(&case);
        assert_of_the_device(&error, disk, &case);
    }
    disk.set(Fault::None);
    for (direct, mut writer) in writers {
        assert!(writer.sync_data().is_err(), "direct {direct}, {fault:?}: a second flush promises");
        assert!(writer.finish().is_err(), "direct {direct}, {fault:?}");
    }
    disk.cut_and_mount();
    for direct in [false, true] {
        let found = read(&path(disk, direct));
        assert!(found.starts_with(&bytes[..SAFE]), "direct {direct}, {fault:?}: bytes are lost");
    }
}

#[test]
fn nothing_is_promised_before_a_slow_disk_has_flushed() {
    // W1
    let slow = Duration::from_millis(400);
    or_skip!(on_each_file_system(|disk| {
        let log = logs(Fault::None).swap_remove(0).open(disk.path().join("log")).unwrap();
        log.append(b"first").unwrap().wait().unwrap();
        let mut writer = Writer::create(disk.path().join("stream")).unwrap();
        disk.set(Fault::Slow(slow));
        let at_least = |case: &str, act: &mut dyn FnMut()| {
            let begin = Instant::now();
            act();
            assert!(begin.elapsed() >= slow, "{case}: {:?}", begin.elapsed());
        };
        at_least("log", &mut || log.append(b"second").unwrap().wait().unwrap());
        writer.write_all(&content(1, 100_000)).unwrap();
        at_least("writer", &mut || writer.sync_data().unwrap());
        at_least("save", &mut || wrote::write(disk.path().join("file"), b"content").unwrap());
    }));
}
