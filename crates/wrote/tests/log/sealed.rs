//! A test of the sealed segments of a log that is being written.

use wrote::log::Segment;
use wrote::{Log, LogOptions, SyncPolicy};

fn options() -> LogOptions {
    Log::options().sync(SyncPolicy::Always).buffers(2).buffer_bytes(4096).segment_bytes(16 << 10)
}

fn append(log: &Log, records: u64) {
    for _ in 0..records {
        log.append(&[b'r'; 1500]).unwrap().wait().unwrap();
    }
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
