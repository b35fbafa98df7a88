//! Faults that a disk does not report: bits that rot, misdirected reads, and flushes that lie. No
//! program can keep its promises in spite of them, but the log must not return altered records.

use std::path::Path;
use wrote::engine::Fault;
use wrote::{Error, Log, LogOptions, LogReader, Sim};

const RECORDS: u64 = 60;

fn folder() -> &'static Path {
    Path::new("/sim/log")
}

fn options() -> LogOptions {
    let small = Log::options().buffers(3).buffer_bytes(4096);
    small.segment_bytes(12 << 10).zeros(true)
}

fn record(number: u64) -> Vec<u8> {
    let len = 20 + number * 7919 % 1500;
    (0..len).map(|place| b'a' + ((number * 3 + place) % 26) as u8).collect()
}

fn append(log: &Log, numbers: std::ops::Range<u64>) -> Result<(), Error> {
    numbers.into_iter().try_for_each(|number| log.append(&record(number))?.wait())
}

/// Reads the log until its end or an error, checks each record, and returns the number of records.
fn read(sim: &Sim, as_written: impl Fn(u64, &[u8]) -> bool) -> u64 {
    let Ok(reader) = LogReader::open_on(&sim.disk(), folder(), 0) else { return 0 };
    let mut read = 0;
    for found in reader {
        match found {
            Ok(found) => {
                let (sequence, bytes) = (found.sequence, &found.bytes);
                assert!(as_written(sequence, bytes), "record {sequence} was altered: {bytes:?}");
                read += 1;
            }
            Err(error) => {
                let known = matches!(error, Error::Damaged { .. } | Error::Foreign { .. });
                assert!(known, "{error}");
                break;
            }
        }
    }
    read
}

/// Creates a log on a new disk.
fn log_of(seed: u64) -> Sim {
    let sim = Sim::new(seed);
    let log = options().on(&sim.disk()).open(folder()).unwrap();
    append(&log, 0..RECORDS).unwrap();
    log.close().unwrap();
    sim
}

#[test]
fn a_reader_returns_no_altered_record_whatever_a_read_finds() {
    for fault in [Fault::Rot, Fault::Misdirected] {
        let (mut operation, mut whole) = (0, 0);
        loop {
            let sim = log_of(operation);
            let before = sim.operations();
            sim.fault(before + operation, fault);
            let found = read(&sim, |sequence, bytes| bytes == record(sequence));
            whole += u64::from(found == RECORDS);
            if sim.operations() <= before + operation {
                break;
            }
            operation += 1;
        }
        assert!(operation > 5, "{fault:?}: {operation} reads");
        // Repeating a misdirected read succeeds, whereas rot is permanent.
        assert!(whole < operation || fault == Fault::Misdirected, "{fault:?}");
    }
}

#[test]
fn a_log_that_is_opened_and_written_on_a_rotten_disk_returns_no_altered_record() {
    for fault in [Fault::Rot, Fault::Misdirected] {
        for operation in 0..40 {
            let sim = log_of(operation);
            sim.fault(sim.operations() + operation, fault);
            let opened = options().on(&sim.disk()).open(folder());
            if let Ok(log) = opened {
                let next = log.stats().next_sequence;
                // New records are written in place of the lost end.
                append(&log, next..next + 5).unwrap();
                let _ = log.close();
            }
            read(&sim, |sequence, bytes| bytes == record(sequence));
        }
    }
}

#[test]
fn after_flushes_that_lied_the_log_is_shorter_or_damaged_and_no_record_is_another() {
    for seed in 0..100 {
        let sim = Sim::new(seed);
        for operation in 0..2000 {
            // The fault affects only flushes.
            sim.fault(operation, Fault::Lie);
        }
        let log = options().on(&sim.disk()).open(folder()).unwrap();
        append(&log, 0..RECORDS).unwrap();
        sim.restart();
        drop(log);
        read(&sim, |sequence, bytes| bytes == record(sequence));
        if let Ok(log) = options().on(&sim.disk()).open(folder()) {
            let next = log.stats().next_sequence;
            append(&log, next..next + 5).unwrap();
            log.close().unwrap();
        }
    }
}
