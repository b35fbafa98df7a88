//! Tests that records are read from the store, and that damage is detected.

use crate::faulty::{Fault, FaultyStore};
use crate::support::{append, make, memory, options, read, runtime, ship};
use object_store::memory::InMemory;
use object_store::path::Path as ObjectPath;
use object_store::{ObjectStoreExt, PutPayload};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::runtime::Runtime;
use wrote::log::Segment;
use wrote_store::{SegmentStore, StoreError, StoreReader, summary, verify};

fn open(runtime: &Runtime, store: &SegmentStore) -> StoreReader {
    let (handle, stop) = (runtime.handle().clone(), Arc::default());
    StoreReader::open(handle, store.clone(), 0, stop).unwrap()
}

#[test]
fn a_reader_begins_anywhere_and_ends_where_the_store_does() {
    let (runtime, folder) = (runtime(), tempfile::tempdir().unwrap());
    make(folder.path(), 200);
    let (_, store) = memory();
    let error = read(&runtime, &store, 0).unwrap_err();
    assert_eq!(error.to_string(), "memory://logs/events: there is no log here");
    let end = ship(&runtime, &store, folder.path()).unwrap().shipped().end_sequence;
    assert!(end < 200, "the last segment is not sealed");
    for from in [0, 1, 57, 130, end - 1, end, end + 1, 200, 1000] {
        let found = read(&runtime, &store, from).unwrap();
        assert_eq!(found, (from..end).collect::<Vec<_>>(), "from {from}");
    }
    let summed = runtime.block_on(summary(&store)).unwrap();
    assert_eq!((summed.first_sequence, summed.end_sequence), (0, end));
    let records: u64 = summed.segments.iter().map(|segment| segment.records).sum();
    assert_eq!(records, end);
}

/// Creates a store in a folder, and returns it with the end of its records.
fn kept(runtime: &Runtime, folder: &Path) -> (SegmentStore, u64) {
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
        // The first segments are shorter, so a later one is changed.
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
        let error = read(&runtime, &store, 0).unwrap_err();
        assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
        // Records after the damage can be read.
        let behind = found.damage[0].sequence + found.damage[0].records.unwrap();
        if place != 10 {
            assert_eq!(read(&runtime, &store, behind).unwrap().len() as u64, end - behind);
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
    let first = read(&runtime, &store, 0).unwrap();
    assert_eq!(first, (end - first.len() as u64..end).collect::<Vec<_>>());
    fs::remove_file(folder.path().join(Segment::name(5))).unwrap();
    let found = runtime.block_on(verify(&store, &mut |_, _| {})).unwrap();
    assert_eq!(found.damage.len(), 1, "{:?}", found.damage);
    assert_eq!(found.damage[0].because, "segment 5 is missing");
    let error = read(&runtime, &store, 0).unwrap_err().to_string();
    assert!(error.contains("the store lacks segment 5, and has later ones"), "{error}");
}

#[test]
fn without_a_checksum_beside_them_the_segments_own_find_a_changed_record() {
    let (runtime, source) = (runtime(), tempfile::tempdir().unwrap());
    make(source.path(), 150);
    let (objects, store) = memory();
    let sealed = Segment::sealed(source.path(), 1, 0).unwrap();
    for segment in &sealed {
        // This is what another program would do to copy segments there.
        let mut bytes = fs::read(&segment.path).unwrap()[..segment.bytes as usize].to_vec();
        if segment.number == 4 {
            bytes[130] ^= 1;
        }
        let path = ObjectPath::from(format!("logs/events/{}", Segment::name(segment.number)));
        runtime.block_on(objects.put(&path, PutPayload::from(bytes))).unwrap();
    }
    let found = runtime.block_on(verify(&store, &mut |_, _| {})).unwrap();
    assert_eq!((found.checksums, found.damage.len()), (0, 1), "{:?}", found.damage);
    let error = read(&runtime, &store, 0).unwrap_err().to_string();
    // The error names the changed segment, or the previous one if the lost record is the first
    // after its end.
    let named = ["3", "4"].map(|last| format!("memory://logs/events/0000000000000000000{last}."));
    assert!(named.iter().any(|segment| error.starts_with(segment)), "{error}");
    assert!(!error.contains("/tmp"), "{error}");
}

#[test]
fn temporary_folders_hold_two_segments_at_most() {
    // W8
    let (runtime, source) = (runtime(), tempfile::tempdir().unwrap());
    make(source.path(), 300);
    let objects = FaultyStore::new(Arc::new(InMemory::new()), |_| Fault::None);
    let store = SegmentStore::of(objects.clone(), "logs/events", "memory://logs/events");
    ship(&runtime, &store, source.path()).unwrap();
    let segments = runtime.block_on(summary(&store)).unwrap().segments;
    let reader = open(&runtime, &store);
    objects.take_gets();
    let mut fetched = 0;
    for record in reader {
        let sequence = record.unwrap().sequence;
        fetched += objects.take_gets().1;
        let read =
            segments.iter().filter(|segment| segment.first_sequence <= sequence).count() as u64;
        assert!(fetched <= read + 1, "{fetched} of {read} at {sequence}");
    }
    assert_eq!(fetched, segments.len() as u64);
}

/// A store to which all sealed segments of a log have been shipped, and the times noted while the
/// log was written, one after every fifth record.
struct Timed {
    store: SegmentStore,
    objects: Arc<FaultyStore>,
    /// Times, each with the number of records written before it.
    moments: Vec<(SystemTime, u64)>,
    end: u64,
}

fn timed(runtime: &Runtime, records: u64) -> Timed {
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
    Timed { store, objects, moments, end }
}

#[test]
fn a_reader_moves_to_any_time_from_any_position() {
    let runtime = runtime();
    let Timed { store, moments, end, .. } = timed(&runtime, 200);
    let mut reader = open(&runtime, &store);
    for &(moment, before) in &moments {
        reader.seek_time(moment).unwrap();
        let rest: Vec<u64> = reader.by_ref().map(|record| record.unwrap().sequence).collect();
        assert_eq!(rest, (before..end).collect::<Vec<_>>(), "{before} before");
    }
    reader.seek_time(SystemTime::now() + Duration::from_secs(3600)).unwrap();
    assert!(reader.next().is_none());
}

#[test]
fn a_search_for_a_time_finds_its_first_record_and_fetches_one_segment_or_two_and_the_first_bytes_of_few_others()
 {
    let runtime = runtime();
    let Timed { store, objects, moments, end, .. } = timed(&runtime, 600);
    let segments = runtime.block_on(summary(&store)).unwrap().segments.len();
    assert!(segments > 32, "{segments}");
    for &(moment, before) in moments.iter().filter(|(_, before)| *before < end) {
        let mut reader = open(&runtime, &store);
        objects.take_gets();
        reader.seek_time(moment).unwrap();
        let record = reader.next().unwrap().unwrap();
        assert_eq!(record.sequence, before);
        drop(reader);
        let (starts, whole) = objects.take_gets();
        assert!(starts <= u64::from(segments.ilog2()) + 1, "{starts} of {segments}");
        // These are the segment of the record, the previous one, and one that is still being
        // fetched.
        assert!((1..=3).contains(&whole), "{whole} segments for {before}");
    }
}
