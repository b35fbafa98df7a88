//! Logs that hold their segments: retention waits for the release, on the disk and in time.

use std::path::Path;
use std::time::{Duration, Instant};
use wrote::log::Segment;
use wrote::{Log, LogOptions, SyncPolicy};

const PATIENCE: Duration = Duration::from_secs(120);

fn options() -> LogOptions {
    Log::options().sync(SyncPolicy::Always).buffers(2).buffer_bytes(4096).segment_bytes(16 << 10)
}

fn append(log: &Log, records: u64) {
    for _ in 0..records {
        log.append(&[b'r'; 1500]).unwrap().wait().unwrap();
    }
}

fn numbers(folder: &Path) -> Vec<u64> {
    let files = std::fs::read_dir(folder).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let mut numbers: Vec<u64> = names.filter_map(|name| Segment::number_in(&name)).collect();
    numbers.sort_unstable();
    numbers
}

#[test]
fn a_held_segment_stays_however_full_the_log_is_and_goes_once_it_is_released() {
    let folder = tempfile::tempdir().unwrap();
    let log = options().retain_bytes(1).hold(true).open(folder.path()).unwrap();
    append(&log, 60);
    let sealed = Segment::sealed(folder.path(), 1, log.durable_sequence());
    let sealed = sealed.unwrap();
    assert!(sealed.len() > 5 && numbers(folder.path())[0] == 1);
    assert_eq!(log.stats().removed, 0);
    // Without records there is no flush.
    log.release(sealed[2].end_sequence);
    let begin = Instant::now();
    while numbers(folder.path())[0] < 4 {
        assert!(begin.elapsed() < PATIENCE, "the released segments are not removed");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(numbers(folder.path())[0], 4);
    log.close().unwrap();
    // A reopened log also holds segments released earlier.
    let log = options().retain_bytes(1).hold(true).open(folder.path()).unwrap();
    append(&log, 20);
    assert_eq!(numbers(folder.path())[0], 4);
}

#[test]
fn a_sealed_segment_has_each_record_and_stays_as_it_is_while_the_log_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let log = options().open(folder.path()).unwrap();
    let (mut from, mut seen) = (1, 0);
    let mut known = Vec::new();
    for _ in 0..40 {
        append(&log, 3);
        // Another process does not know the durable frontier.
        for segment in Segment::sealed(folder.path(), from, 0).unwrap() {
            assert_eq!((segment.number, segment.first_sequence), (from, seen));
            segment.check().unwrap();
            let bytes = std::fs::read(&segment.path).unwrap();
            (from, seen) = (from + 1, segment.end_sequence);
            known.push((segment, bytes));
        }
    }
    assert!(known.len() > 5, "{}", known.len());
    log.close().unwrap();
    for (segment, bytes) in known {
        let used = segment.bytes as usize;
        assert_eq!(std::fs::read(&segment.path).unwrap()[..used], bytes[..used]);
    }
}
