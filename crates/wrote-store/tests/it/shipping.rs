//! Tests that sealed segments are shipped to the store once, in order, from where the last run
//! ended.

use crate::support::{append, make, memory, options, read, record, runtime, ship};
use object_store::path::Path as ObjectPath;
use object_store::{ObjectStore, ObjectStoreExt, PutPayload};
use std::fs;
use wrote::log::Segment;
use wrote_store::{SegmentStore, Shipper, StoreError, summary};

#[test]
fn every_sealed_segment_is_one_object_whose_bytes_are_the_files() {
    let (runtime, folder) = (runtime(), tempfile::tempdir().unwrap());
    make(folder.path(), 200);
    let (objects, store) = memory();
    let shipped = ship(&runtime, &store, folder.path()).unwrap().shipped();
    let sealed = Segment::sealed(folder.path(), 1, 0).unwrap();
    assert!(sealed.len() > 10);
    assert_eq!((shipped.segments, shipped.waiting), (sealed.len() as u64, 0));
    assert_eq!(shipped.end_sequence, sealed.last().unwrap().end_sequence);
    for segment in &sealed {
        let name = Segment::name(segment.number);
        let path = ObjectPath::from(format!("logs/events/{name}"));
        let object = runtime.block_on(async { objects.get(&path).await?.bytes().await }).unwrap();
        let file = fs::read(&segment.path).unwrap();
        assert!(object[..] == file[..segment.bytes as usize], "{name}");
    }
    let again = ship(&runtime, &store, folder.path()).unwrap().shipped();
    assert_eq!((again.segments, again.were_there), (0, sealed.len() as u64));
    assert_eq!(again.end_sequence, shipped.end_sequence);
}

#[test]
fn objects_in_a_folder_are_a_log_that_every_other_program_reads_as_it_is() {
    let (runtime, folder, kept) =
        (runtime(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    make(folder.path(), 120);
    let url = format!("file://{}/deep/prefix", kept.path().display());
    let store = SegmentStore::open_or_make(&url).unwrap();
    let end = ship(&runtime, &store, folder.path()).unwrap().shipped().end_sequence;
    let records: Vec<_> = wrote::LogReader::open(kept.path().join("deep/prefix"), 0)
        .unwrap()
        .map(|found| found.unwrap())
        .collect();
    assert_eq!(records.len() as u64, end);
    assert!(records.iter().all(|found| found.bytes == record(found.sequence)));
    let verified = wrote::log::verify(kept.path().join("deep/prefix"), None).unwrap();
    assert!(verified.damage.is_empty() && verified.garbage.is_empty());
}

#[test]
fn a_shipper_beside_the_writer_takes_no_lock_and_follows_it() {
    let (runtime, folder) = (runtime(), tempfile::tempdir().unwrap());
    let log = options().open(folder.path()).unwrap();
    let (_, store) = memory();
    let mut shipper = Shipper::new(store.clone(), folder.path()).unwrap();
    for step in 1..20 {
        append(&log, step * 10);
        let before = shipper.shipped();
        runtime.block_on(shipper.pass(log.durable_sequence(), &mut |_| {})).unwrap();
        assert!(shipper.shipped().end_sequence >= before.end_sequence);
        assert!(shipper.shipped().end_sequence <= log.durable_sequence(), "W1");
    }
    let shipped = shipper.shipped();
    assert!(shipped.end_sequence + 30 > 190 && shipped.were_there == 0, "{shipped:?}");
    let found = read(&runtime, &store, 0).unwrap();
    assert_eq!(found, (0..shipped.end_sequence).collect::<Vec<_>>());
}

#[test]
fn two_shippers_at_once_own_no_segment_twice_and_both_end_well() {
    for _ in 0..10 {
        let (runtime, folder) = (runtime(), tempfile::tempdir().unwrap());
        make(folder.path(), 150);
        let (_, store) = memory();
        let both: Vec<_> = (0..2)
            .map(|_| {
                let (store, folder) = (store.clone(), folder.path().to_owned());
                runtime.spawn(async move {
                    let mut shipper = Shipper::new(store, folder).unwrap();
                    shipper.pass(0, &mut |_| {}).await.unwrap();
                    shipper.shipped()
                })
            })
            .collect();
        let both: Vec<_> =
            both.into_iter().map(|shipped| runtime.block_on(shipped).unwrap()).collect();
        let sealed = Segment::sealed(folder.path(), 1, 0).unwrap().len() as u64;
        assert_eq!(both[0].segments + both[1].segments, sealed, "each was created once");
        for shipped in &both {
            assert_eq!(shipped.segments + shipped.were_there, sealed);
            assert_eq!(shipped.end_sequence, both[0].end_sequence);
        }
    }
}

#[test]
fn an_object_with_other_bytes_is_an_error_that_names_both_and_is_never_replaced() {
    let (runtime, folder) = (runtime(), tempfile::tempdir().unwrap());
    make(folder.path(), 60);
    for other_len in [0, 1] {
        let (objects, store) = memory();
        let sealed = Segment::sealed(folder.path(), 1, 0).unwrap();
        let mut bytes = fs::read(&sealed[1].path).unwrap()[..sealed[1].bytes as usize].to_vec();
        bytes[200] ^= 1;
        bytes.truncate(bytes.len() - other_len);
        let path = ObjectPath::from(format!("logs/events/{}", Segment::name(2)));
        let put = objects.put(&path, PutPayload::from(bytes.clone()));
        runtime.block_on(put).unwrap();
        let Err(error) = ship(&runtime, &store, folder.path()) else {
            panic!("it is not the same")
        };
        assert!(matches!(error, StoreError::Differs { .. }) && !error.is_passing(), "{error}");
        let error = error.to_string();
        assert!(error.contains("memory://logs/events/00000000000000000002.segment"), "{error}");
        assert!(error.contains(&*sealed[1].path.to_string_lossy()), "{error}");
        let kept = runtime.block_on(async { objects.get(&path).await?.bytes().await }).unwrap();
        assert!(kept[..] == bytes[..]);
    }
}

#[test]
fn another_log_is_refused_at_the_url_of_this_one() {
    let (runtime, one, other) =
        (runtime(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    make(one.path(), 60);
    make(other.path(), 90);
    let (_, store) = memory();
    ship(&runtime, &store, one.path()).unwrap();
    let Err(error) = ship(&runtime, &store, other.path()) else { panic!("another log") };
    assert!(error.to_string().contains("ship this log to another URL"), "{error}");
}

#[test]
fn segments_that_were_removed_before_they_were_shipped_are_named() {
    let (runtime, folder) = (runtime(), tempfile::tempdir().unwrap());
    make(folder.path(), 60);
    let (_, store) = memory();
    ship(&runtime, &store, folder.path()).unwrap();
    let log = options().open(folder.path()).unwrap();
    append(&log, 160);
    let sealed = Segment::sealed(folder.path(), 1, 160).unwrap();
    let stored = runtime.block_on(summary(&store)).unwrap().segments.len() as u64;
    for segment in &sealed[..stored as usize + 2] {
        fs::remove_file(&segment.path).unwrap();
    }
    let Err(error) = ship(&runtime, &store, folder.path()) else { panic!("a gap") };
    let gap = format!("segments {} to {} are neither in", stored + 1, stored + 2);
    assert!(error.to_string().starts_with(&gap), "{error}");
}

#[test]
fn a_damaged_segment_and_a_log_of_lines_are_not_shipped() {
    let (runtime, folder) = (runtime(), tempfile::tempdir().unwrap());
    make(folder.path(), 60);
    let sealed = Segment::sealed(folder.path(), 1, 0).unwrap();
    let mut bytes = fs::read(&sealed[1].path).unwrap();
    bytes[150] ^= 1;
    fs::write(&sealed[1].path, bytes).unwrap();
    let (_, store) = memory();
    let Err(error) = ship(&runtime, &store, folder.path()) else { panic!("damage") };
    assert!(error.to_string().contains("damaged at byte"), "{error}");
    assert_eq!(runtime.block_on(summary(&store)).unwrap().segments.len(), 1, "the whole one went");
}

#[test]
fn objects_of_other_programs_under_the_prefix_are_left_alone() {
    let (runtime, folder) = (runtime(), tempfile::tempdir().unwrap());
    make(folder.path(), 60);
    let (objects, store) = memory();
    for name in ["README", "sub/00000000000000000009.segment", "9.segment"] {
        let path = ObjectPath::from(format!("logs/events/{name}"));
        runtime.block_on(objects.put(&path, PutPayload::from_static(b"x"))).unwrap();
    }
    let shipped = ship(&runtime, &store, folder.path()).unwrap().shipped();
    let found = read(&runtime, &store, 0).unwrap();
    assert_eq!(found.len() as u64, shipped.end_sequence);
    assert_eq!(runtime.block_on(summary(&store)).unwrap().segments.len() as u64, shipped.segments);
    let _: &dyn ObjectStore = &*objects;
}
