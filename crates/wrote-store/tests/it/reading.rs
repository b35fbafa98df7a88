//! Tests that records are read from the store and then from the local log, and damage is found.

use crate::faulty::{Fault, FaultyStore};
use crate::support::{self, append, make, memory, options, read, record, runtime, ship};
use object_store::memory::InMemory;
use object_store::path::Path as ObjectPath;
use object_store::{ObjectStoreExt, PutPayload};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant, SystemTime};
use wrote::log::{SealedSegments, Segment};
use wrote_store::{SegmentStore, StoreError, StoreOptions, StoreReader, summary, verify};

const PATIENCE: Duration = Duration::from_secs(120);

#[test]
fn a_reader_begins_anywhere_and_goes_on_in_the_local_log() {
    let (runtime, folder) = (runtime(), tempfile::tempdir().unwrap());
    make(folder.path(), 200);
    let (_, store) = memory();
    let end = ship(&runtime, &store, folder.path()).unwrap().shipped().end_sequence;
    assert!(end < 200, "the last segment is not sealed");
    for from in [0, 1, 57, 130, end - 1, end, end + 1, 199, 200, 1000] {
        let found = read(&runtime, &store, from, None).unwrap();
        assert_eq!(found, (from..end).collect::<Vec<_>>(), "from {from}");
    }
    // Retention has removed the segments that the store has.
    let sealed = SealedSegments::open(folder.path()).unwrap().list(1, 0).unwrap();
    for segment in &sealed[..sealed.len() - 2] {
        fs::remove_file(&segment.path).unwrap();
    }
    for from in [0, 57, end, 199, 200] {
        let found = read(&runtime, &store, from, Some(folder.path())).unwrap();
        assert_eq!(found, (from..200).collect::<Vec<_>>(), "from {from}");
    }
    let summed = runtime.block_on(summary(&store, Some(folder.path()))).unwrap();
    assert_eq!((summed.first_sequence, summed.end_sequence, summed.next_sequence()), (0, end, 200));
    let records: u64 = summed.segments.iter().map(|segment| segment.records).sum();
    assert_eq!(records, end);
}

#[test]
fn a_reader_that_follows_sees_what_is_shipped_and_what_is_appended() {
    let (runtime, folder) = (runtime(), tempfile::tempdir().unwrap());
    let log = options().open(folder.path()).unwrap();
    append(&log, 60);
    let (_, store) = memory();
    ship(&runtime, &store, folder.path()).unwrap();
    for local in [None, Some(folder.path().to_owned())] {
        let options = StoreOptions { local, follows: true, ..StoreOptions::default() };
        let handle = runtime.handle().clone();
        let mut reader = StoreReader::open(handle, store.clone(), 0, options).unwrap();
        let to = log.stats().next_sequence + 60;
        thread::scope(|scope| {
            scope.spawn(|| {
                append(&log, to);
                ship(&runtime, &store, folder.path()).unwrap();
            });
            let begin = Instant::now();
            let mut next = 0;
            while next < to - 30 {
                assert!(begin.elapsed() < PATIENCE, "record {next} does not come");
                let found = reader.next_within(Duration::from_millis(200)).unwrap();
                if let Some(found) = found {
                    assert_eq!((found.sequence, found.bytes), (next, record(next)));
                    next += 1;
                }
            }
        });
    }
}

/// Ships everything that is sealed, and removes the local segments that are then in the store, as
/// retention does.
fn ship_and_remove(runtime: &tokio::runtime::Runtime, store: &SegmentStore, folder: &Path) {
    ship(runtime, store, folder).unwrap();
    for segment in runtime.block_on(store.list(1)).unwrap() {
        let _ = fs::remove_file(folder.join(Segment::name(segment.number)));
    }
}

/// Reads records up to `to`, and asserts that none is left out.
fn read_to(reader: &mut StoreReader, next: &mut u64, to: u64) {
    let begin = Instant::now();
    while *next < to {
        assert!(begin.elapsed() < PATIENCE, "record {next} does not come");
        if let Some(found) = reader.next_within(Duration::from_millis(200)).unwrap() {
            assert_eq!(found.sequence, *next);
            assert!(found.bytes == record(*next), "record {next}");
            *next += 1;
        }
    }
}

#[test]
fn segments_that_are_shipped_and_removed_while_a_reader_is_at_work_are_read_from_the_store() {
    let (runtime, folder) = (runtime(), tempfile::tempdir().unwrap());
    let log = options().open(folder.path()).unwrap();
    append(&log, 60);
    let (_, store) = memory();
    ship_and_remove(&runtime, &store, folder.path());
    for follows in [false, true] {
        let to = log.stats().next_sequence + 100;
        let local = Some(folder.path().to_owned());
        let options = StoreOptions { local, follows, ..StoreOptions::default() };
        let handle = runtime.handle().clone();
        let mut reader = StoreReader::open(handle, store.clone(), 0, options).unwrap();
        let mut next = 0;
        read_to(&mut reader, &mut next, 5);
        append(&log, to);
        ship_and_remove(&runtime, &store, folder.path());
        read_to(&mut reader, &mut next, to);
    }
}

#[test]
fn a_reader_whose_local_segments_are_removed_before_it_reads_them_goes_back_to_the_store() {
    let (runtime, folder) = (runtime(), tempfile::tempdir().unwrap());
    let log = options().open(folder.path()).unwrap();
    append(&log, 60);
    let (_, store) = memory();
    ship_and_remove(&runtime, &store, folder.path());
    let local = Some(folder.path().to_owned());
    let options = StoreOptions { local, follows: true, ..StoreOptions::default() };
    let handle = runtime.handle().clone();
    let mut next = 59;
    let mut reader = StoreReader::open(handle, store.clone(), next, options).unwrap();
    read_to(&mut reader, &mut next, 60);
    for to in [200, 340] {
        append(&log, to);
        ship_and_remove(&runtime, &store, folder.path());
        read_to(&mut reader, &mut next, to);
    }
}

#[test]
fn before_anything_is_shipped_the_local_log_is_all_there_is() {
    let (runtime, folder) = (runtime(), tempfile::tempdir().unwrap());
    let log = options().open(folder.path()).unwrap();
    append(&log, 60);
    let (_, store) = memory();
    let found = read(&runtime, &store, 7, Some(folder.path())).unwrap();
    assert_eq!(found, (7..60).collect::<Vec<_>>());
    let sealed = SealedSegments::open(folder.path()).unwrap().list(1, 0).unwrap();
    let summed = runtime.block_on(summary(&store, Some(folder.path()))).unwrap();
    assert_eq!((summed.segments.len(), summed.end_sequence, summed.next_sequence()), (0, 0, 60));
    let unshipped = summed.unshipped.unwrap();
    assert_eq!((unshipped.segments, unshipped.missing), (sealed.len() as u64, None));
    assert_eq!(unshipped.bytes, sealed.iter().map(|segment| segment.bytes).sum::<u64>());
    assert_eq!(unshipped.end_sequence, sealed.last().unwrap().end_sequence);
    let empty = tempfile::tempdir().unwrap();
    let error = read(&runtime, &store, 0, Some(empty.path())).unwrap_err();
    assert_eq!(error.to_string(), "memory://logs/events: there is no log here");
}

#[test]
fn a_summary_counts_the_sealed_segments_that_wait_and_names_those_that_are_nowhere() {
    let (runtime, folder) = (runtime(), tempfile::tempdir().unwrap());
    let log = options().open(folder.path()).unwrap();
    append(&log, 60);
    let (_, store) = memory();
    let shipped = ship(&runtime, &store, folder.path()).unwrap().shipped();
    let unshipped = || {
        let summed = runtime.block_on(summary(&store, Some(folder.path()))).unwrap();
        assert_eq!(summed.end_sequence, shipped.end_sequence);
        summed.unshipped.unwrap()
    };
    let none = unshipped();
    assert_eq!((none.segments, none.bytes, none.end_sequence), (0, 0, shipped.end_sequence));
    append(&log, 160);
    let sealed = SealedSegments::open(folder.path()).unwrap();
    let sealed = { sealed }.list(shipped.segments + 1, 0).unwrap();
    let waiting = unshipped();
    assert_eq!((waiting.segments, waiting.missing), (sealed.len() as u64, None));
    assert_eq!(waiting.bytes, sealed.iter().map(|segment| segment.bytes).sum::<u64>());
    assert_eq!(waiting.end_sequence, sealed.last().unwrap().end_sequence);
    // The shipped ones are removed, and two unshipped ones.
    for number in 1..=shipped.segments + 2 {
        fs::remove_file(folder.path().join(Segment::name(number))).unwrap();
    }
    let gap = unshipped();
    let missing = gap.missing.map(|missing| (missing.first, missing.last));
    assert_eq!(missing, Some((shipped.segments + 1, shipped.segments + 2)));
    assert_eq!(gap.segments, waiting.segments - 2);
}

#[test]
fn a_url_without_a_log_and_a_gap_before_the_local_log_are_told_in_one_line() {
    let (runtime, folder) = (runtime(), tempfile::tempdir().unwrap());
    let (_, store) = memory();
    let error = read(&runtime, &store, 0, None).unwrap_err();
    assert_eq!(error.to_string(), "memory://logs/events: there is no log here");
    make(folder.path(), 60);
    ship(&runtime, &store, folder.path()).unwrap();
    let log = options().open(folder.path()).unwrap();
    append(&log, 160);
    log.close().unwrap();
    let stored = runtime.block_on(store.list(1)).unwrap().len();
    let sealed = SealedSegments::open(folder.path()).unwrap().list(1, 0).unwrap();
    for segment in &sealed[..stored + 1] {
        fs::remove_file(&segment.path).unwrap();
    }
    let error = read(&runtime, &store, 0, Some(folder.path())).unwrap_err().to_string();
    assert!(error.contains("are neither in") && error.lines().count() == 1, "{error}");
}

/// Makes a store in a folder, and returns the end of its records.
fn kept(runtime: &tokio::runtime::Runtime, folder: &std::path::Path) -> (SegmentStore, u64) {
    let source = tempfile::tempdir().unwrap();
    make(source.path(), 150);
    let store = SegmentStore::open_or_make(&format!("file://{}", folder.display())).unwrap();
    let end = ship(runtime, &store, source.path()).unwrap().shipped().end_sequence;
    (store, end)
}

#[test]
fn every_changed_byte_of_an_object_is_found_by_its_reader_and_by_verify() {
    let runtime = runtime();
    for (place, cut) in [(10, 0), (70, 0), (130, 0), (5000, 0), (0, 1), (0, 5000)] {
        let folder = tempfile::tempdir().unwrap();
        let (store, end) = kept(&runtime, folder.path());
        let whole = runtime.block_on(verify(&store, &mut |_, _| {})).unwrap();
        assert_eq!((whole.records, whole.damage.len()), (end, 0));
        assert_eq!(whole.checksums, whole.segments);
        // The first segments are shorter.
        let path = folder.path().join(Segment::name(5));
        let mut bytes = fs::read(&path).unwrap();
        match cut {
            0 => bytes[place] ^= 1,
            cut => bytes.truncate(bytes.len() - cut),
        }
        fs::remove_file(&path).unwrap();
        fs::write(&path, bytes).unwrap();
        let found = runtime.block_on(verify(&store, &mut |_, _| {})).unwrap();
        assert_eq!(found.damage.len(), 1, "{place} {cut}: {:?}", found.damage);
        assert!(found.damage[0].object.ends_with("0005.segment"), "{:?}", found.damage);
        assert!(found.damage[0].records.is_some_and(|records| records > 0));
        let error = read(&runtime, &store, 0, None).unwrap_err();
        assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
        // Records after it can be read.
        let behind = found.damage[0].sequence + found.damage[0].records.unwrap();
        if place != 10 {
            assert_eq!(read(&runtime, &store, behind, None).unwrap().len() as u64, end - behind);
        }
    }
}

#[test]
fn an_object_that_is_gone_is_damage_unless_it_is_the_first() {
    let runtime = runtime();
    let folder = tempfile::tempdir().unwrap();
    let (store, end) = kept(&runtime, folder.path());
    fs::remove_file(folder.path().join(Segment::name(1))).unwrap();
    let whole = runtime.block_on(verify(&store, &mut |_, _| {})).unwrap();
    assert_eq!(whole.damage, []);
    let first = read(&runtime, &store, 0, None).unwrap();
    assert_eq!(first, (end - first.len() as u64..end).collect::<Vec<_>>());
    fs::remove_file(folder.path().join(Segment::name(5))).unwrap();
    let found = runtime.block_on(verify(&store, &mut |_, _| {})).unwrap();
    assert_eq!(found.damage.len(), 1, "{:?}", found.damage);
    assert_eq!(found.damage[0].because, "segment 5 is not there");
    let error = read(&runtime, &store, 0, None).unwrap_err().to_string();
    assert!(error.contains("the store lacks segment 5, and has later ones"), "{error}");
}

#[test]
fn without_a_checksum_beside_them_the_segments_own_find_a_changed_record() {
    let (runtime, source) = (runtime(), tempfile::tempdir().unwrap());
    make(source.path(), 150);
    let (objects, store) = memory();
    let sealed = SealedSegments::open(source.path()).unwrap().list(1, 0).unwrap();
    for segment in &sealed {
        // As if another program had copied them there.
        let mut bytes = fs::read(&segment.path).unwrap()[..segment.bytes as usize].to_vec();
        if segment.number == 4 {
            bytes[130] ^= 1;
        }
        let path = ObjectPath::from(format!("logs/events/{}", Segment::name(segment.number)));
        runtime.block_on(objects.put(&path, PutPayload::from(bytes))).unwrap();
    }
    let found = runtime.block_on(verify(&store, &mut |_, _| {})).unwrap();
    assert_eq!((found.checksums, found.damage.len()), (0, 1), "{:?}", found.damage);
    let error = read(&runtime, &store, 0, None).unwrap_err().to_string();
    // The changed segment; or the one before, if the lost record is the first after its end.
    let named = ["3", "4"].map(|last| format!("memory://logs/events/0000000000000000000{last}."));
    assert!(named.iter().any(|segment| error.starts_with(segment)), "{error}");
    assert!(!error.contains("/tmp"), "{error}");
}

#[test]
fn the_temporary_folder_holds_three_segments_at_most() {
    // W8
    let (runtime, source) = (runtime(), tempfile::tempdir().unwrap());
    make(source.path(), 300);
    let (_, store) = memory();
    ship(&runtime, &store, source.path()).unwrap();
    let handle = runtime.handle().clone();
    let mut reader = StoreReader::open(handle, store.clone(), 0, StoreOptions::default()).unwrap();
    let (mut bytes, mut most) = (Vec::new(), 0);
    while reader.read_into(&mut bytes).unwrap().is_some() {
        bytes.clear();
        most = most.max(fs::read_dir(reader.temporary_folder()).unwrap().count());
    }
    assert!((2..=3).contains(&most), "{most}");
}

/// Creates a log of `records`, notes the time after every fifth, and ships all sealed segments.
struct Timed {
    source: tempfile::TempDir,
    store: SegmentStore,
    objects: Arc<FaultyStore>,
    /// Times, each with the number of records written before it.
    moments: Vec<(SystemTime, u64)>,
    end: u64,
}

fn timed(runtime: &tokio::runtime::Runtime, records: u64) -> Timed {
    let source = tempfile::tempdir().unwrap();
    let log = options().open(source.path()).unwrap();
    let mut moments = vec![(SystemTime::UNIX_EPOCH, 0)];
    for to in (5..=records).step_by(5) {
        append(&log, to);
        moments.push((SystemTime::now(), to));
    }
    log.close().unwrap();
    let objects = FaultyStore::new(Arc::new(InMemory::new()), |_| Fault::None);
    let store = SegmentStore::of(objects.clone(), "logs/events", "memory://logs/events");
    let end = ship(runtime, &store, source.path()).unwrap().shipped().end_sequence;
    Timed { source, store, objects, moments, end }
}

#[test]
fn a_reader_finds_the_first_record_of_a_time_in_the_store_and_in_the_local_log() {
    let runtime = runtime();
    let Timed { source, store, moments, end, .. } = timed(&runtime, 200);
    let open = |local: bool| {
        let local = local.then(|| source.path().to_owned());
        let options = StoreOptions { local, ..StoreOptions::default() };
        StoreReader::open(runtime.handle().clone(), store.clone(), 0, options).unwrap()
    };
    let rest = |reader: &mut StoreReader| {
        let (mut sequences, mut bytes) = (Vec::new(), Vec::new());
        while let Some(sequence) = reader.read_into(&mut bytes).unwrap() {
            sequences.push(sequence);
        }
        sequences
    };
    for local in [false, true] {
        let to = if local { 200 } else { end };
        if local {
            // Retention has removed all segments that the store has, except the last.
            let sealed = SealedSegments::open(source.path()).unwrap().list(1, 0).unwrap();
            for segment in &sealed[..sealed.len() - 2] {
                fs::remove_file(&segment.path).unwrap();
            }
        }
        let mut moved = open(local);
        for &(moment, before) in &moments {
            let expected: Vec<u64> = (before..to).collect();
            let mut reader = open(local);
            reader.seek_time(moment).unwrap();
            assert_eq!(rest(&mut reader), expected, "local: {local}, {before} before");
            // From any position, and more than once.
            moved.seek_time(moment).unwrap();
            let first = moved.next_within(Duration::ZERO).unwrap();
            assert_eq!(first.map(|record| record.sequence), expected.first().copied());
        }
        let later = SystemTime::now() + Duration::from_secs(3600);
        moved.seek_time(later).unwrap();
        assert!(rest(&mut moved).is_empty());
    }
}

#[test]
fn the_search_for_a_time_fetches_one_segment_or_two_and_the_first_bytes_of_few_others() {
    let runtime = runtime();
    let Timed { store, objects, moments, end, .. } = timed(&runtime, 600);
    let segments = runtime.block_on(store.list(1)).unwrap().len();
    assert!(segments > 32, "{segments}");
    for &(moment, before) in moments.iter().filter(|(_, before)| *before < end) {
        let options = StoreOptions::default();
        let handle = runtime.handle().clone();
        let mut reader = StoreReader::open(handle, store.clone(), 0, options).unwrap();
        objects.take_gets();
        reader.seek_time(moment).unwrap();
        let record = reader.next_within(Duration::ZERO).unwrap().unwrap();
        assert_eq!(record.sequence, before);
        drop(reader);
        let (starts, whole) = objects.take_gets();
        assert!(starts <= u64::from(segments.ilog2()) + 1, "{starts} of {segments}");
        // The segment before the record's, the record's, and one being fetched.
        assert!((1..=3).contains(&whole), "{whole} segments for {before}");
    }
}

#[test]
fn a_reader_that_follows_from_a_time_on_gets_what_is_shipped_and_appended() {
    let runtime = runtime();
    let Timed { source, store, moments, end, .. } = timed(&runtime, 100);
    let (moment, before) = moments[10];
    let local = Some(source.path().to_owned());
    let options = StoreOptions { local, follows: true, ..StoreOptions::default() };
    let mut reader =
        StoreReader::open(runtime.handle().clone(), store.clone(), 0, options).unwrap();
    reader.seek_time(moment).unwrap();
    assert!(before < end);
    let mut next = before;
    let log = support::options().open(source.path()).unwrap();
    append(&log, 150);
    let begin = Instant::now();
    while next < 150 {
        assert!(begin.elapsed() < PATIENCE, "record {next} does not come");
        if let Some(found) = reader.next_within(Duration::from_millis(200)).unwrap() {
            assert_eq!((found.sequence, found.bytes), (next, record(next)));
            next += 1;
        }
    }
}
