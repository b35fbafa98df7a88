//! Tests that no fault of a store loses or duplicates a record, and that shipping continues.

use crate::faulty::{Fault, FaultyStore, count};
use crate::support::{append, make, options, read, runtime, ship};
use object_store::memory::InMemory;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use wrote::log::Segment;
use wrote_store::{SegmentStore, Shipper, StoreError, until, verify};

const URL: &str = "memory://logs/events";

/// Returns a store with the planned faults, and one with the same objects but no faults.
fn faulty(
    plan: impl FnMut(u64) -> Fault + Send + 'static,
) -> (Arc<FaultyStore>, SegmentStore, SegmentStore) {
    let inner = Arc::new(InMemory::new());
    let whole = SegmentStore::of(inner.clone(), "logs/events", URL);
    let faulty = FaultyStore::new(inner, plan);
    let store = SegmentStore::of(faulty.clone(), "logs/events", URL);
    (faulty, store, whole)
}

#[test]
fn one_fault_of_each_kind_at_each_request_delays_and_loses_nothing() {
    let runtime = runtime();
    let folder = tempfile::tempdir().unwrap();
    make(folder.path(), 25);
    let sealed = Segment::sealed(folder.path(), 1, 0).unwrap();
    for fault in [Fault::Refuse, Fault::LoseAnswer, Fault::Slow, Fault::BreakOff] {
        for at in 0.. {
            let plan = move |number| if number == at { fault } else { Fault::None };
            let (requests, store, whole) = faulty(plan);
            let mut shipper = Shipper::new(store, folder.path()).unwrap();
            let mut passes = 0;
            while let Err(error) = runtime.block_on(shipper.pass(0, &mut |_| {})) {
                assert!(error.is_passing(), "{fault:?} at {at}: {error}");
                assert_eq!(error.to_string().lines().count(), 1);
                passes += 1;
                assert!(passes < 3, "{fault:?} at {at}: {error}");
            }
            let shipped = shipper.shipped();
            assert_eq!(shipped.end_sequence, sealed.last().unwrap().end_sequence);
            assert_eq!(shipped.waiting, 0);
            let found = read(&runtime, &whole, 0).unwrap();
            assert_eq!(found.len() as u64, shipped.end_sequence, "{fault:?} at {at}");
            let verified = runtime.block_on(verify(&whole, &mut |_, _| {})).unwrap();
            assert_eq!(verified.damage, [], "{fault:?} at {at}");
            assert_eq!(verified.segments, sealed.len() as u64);
            if requests.requests() <= at {
                break;
            }
        }
    }
}

#[test]
fn faults_at_random_with_kills_between_leave_each_segment_once() {
    let runtime = runtime();
    for seed in 0..12 {
        let folder = tempfile::tempdir().unwrap();
        let log = options().open(folder.path()).unwrap();
        let mut random = StdRng::seed_from_u64(seed);
        let mut faults = StdRng::seed_from_u64(seed ^ 77);
        let plan = move |_| match faults.random_range(0..8) {
            0 => Fault::Refuse,
            1 => Fault::LoseAnswer,
            2 => Fault::BreakOff,
            3 => Fault::Hang,
            _ => Fault::None,
        };
        let (_, store, whole) = faulty(plan);
        let mut shipper = Shipper::new(store.clone(), folder.path()).unwrap();
        for _ in 0..40 {
            append(&log, log.stats().next_sequence + random.random_range(0..12));
            let durable = if random.random() { log.durable_sequence() } else { 0 };
            let none = &mut |_| {};
            let pass = shipper.pass(durable, none);
            // Requests without an answer are dropped, as they would be when a process exits.
            let limit = Duration::from_millis(random.random_range(1..60));
            match runtime.block_on(async { tokio::time::timeout(limit, pass).await }) {
                Ok(Err(error)) => assert!(error.is_passing(), "seed {seed}: {error}"),
                Ok(Ok(())) => {}
                Err(_) if random.random() => {
                    shipper = Shipper::new(store.clone(), folder.path()).unwrap();
                }
                Err(_) => {}
            }
        }
        log.close().unwrap();
        let end = ship(&runtime, &whole, folder.path()).unwrap().shipped().end_sequence;
        let found = read(&runtime, &whole, 0).unwrap();
        let all: Vec<u64> = (0..end).collect();
        assert!(found == all, "seed {seed}: {} of {}", found.len(), all.len());
        let verified = runtime.block_on(verify(&whole, &mut |_, _| {})).unwrap();
        assert!(verified.damage.is_empty() && verified.end_sequence == end, "seed {seed}");
    }
}

#[test]
fn a_store_that_never_answers_stops_no_append_and_the_end_is_not_held_up() {
    let runtime = runtime();
    let folder = tempfile::tempdir().unwrap();
    let log = options().open(folder.path()).unwrap();
    append(&log, 60);
    let (_, store, whole) = faulty(|number| if number > 2 { Fault::Hang } else { Fault::None });
    let stop = Arc::new(AtomicBool::new(false));
    let task = runtime.spawn({
        let (stop, folder) = (stop.clone(), folder.path().to_owned());
        async move {
            let mut shipper = Shipper::new(store, folder).unwrap();
            until(&stop, shipper.pass(0, &mut |_| {})).await
        }
    });
    append(&log, 160);
    assert_eq!(log.durable_sequence(), 160);
    stop.store(true, Ordering::Relaxed);
    let ended = runtime.block_on(task).unwrap();
    assert!(matches!(ended, Err(StoreError::Interrupted)));
    ship(&runtime, &whole, folder.path()).unwrap();
}

#[test]
fn a_download_that_breaks_off_is_begun_again_and_a_changed_one_is_damage() {
    let runtime = runtime();
    let folder = tempfile::tempdir().unwrap();
    make(folder.path(), 60);
    for (fault, is_damage) in
        [(Fault::BreakOff, false), (Fault::Refuse, false), (Fault::Change, true)]
    {
        let inner = Arc::new(InMemory::new());
        let whole = SegmentStore::of(inner.clone(), "logs/events", URL);
        let end = ship(&runtime, &whole, folder.path()).unwrap().shipped().end_sequence;
        let before = runtime.block_on(count(&*inner));
        // The first requests list the store and read the beginnings of segments. After that, every
        // third request meets the fault.
        let plan = move |number| match number {
            0..4 => Fault::None,
            _ if number % 3 == 0 => fault,
            _ => Fault::None,
        };
        let store = SegmentStore::of(FaultyStore::new(inner.clone(), plan), "logs/events", URL);
        match read(&runtime, &store, end - 20) {
            Ok(found) => assert_eq!((found.len(), is_damage), (20, false), "{fault:?}"),
            Err(StoreError::Damaged { because, .. }) => {
                assert!(is_damage && because.contains("checksum"), "{fault:?}: {because}");
            }
            Err(error) => assert!(!is_damage && fault == Fault::Refuse, "{fault:?}: {error}"),
        }
        assert_eq!(runtime.block_on(count(&*inner)), before, "reading changes nothing");
    }
}

#[test]
fn a_store_that_would_replace_objects_is_refused_before_the_first_one_with_the_missing_feature() {
    let runtime = runtime();
    let folder = tempfile::tempdir().unwrap();
    make(folder.path(), 25);
    for (fault, words) in [
        (Fault::Replace, "ignores If-None-Match"),
        (Fault::NotImplemented, "refuses If-None-Match (501)"),
    ] {
        // The first request lists the store.
        let (_, store, whole) = faulty(move |number| if number == 0 { Fault::None } else { fault });
        let error = ship(&runtime, &store, folder.path()).unwrap_err();
        assert!(!error.is_passing() && error.to_string().contains(words), "{error}");
        assert!(matches!(read(&runtime, &whole, 0), Err(StoreError::Empty { .. })));
    }
}
