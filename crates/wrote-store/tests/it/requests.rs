//! Tests of the number of requests of each action, on which the documented cost calculations are
//! based.

use crate::faulty::{Fault, FaultyStore};
use crate::support::{make, read, runtime, ship};
use object_store::memory::InMemory;
use std::sync::Arc;
use wrote::log::Segment;
use wrote_store::{SegmentStore, summary, verify};

#[test]
fn each_action_makes_the_requests_that_the_documents_count() {
    let (runtime, folder) = (runtime(), tempfile::tempdir().unwrap());
    make(folder.path(), 300);
    let segments = Segment::sealed(folder.path(), 1, 0).unwrap().len() as u64;
    assert!(segments > 20, "{segments}");
    let counted = FaultyStore::new(Arc::new(InMemory::new()), |_| Fault::None);
    let store = SegmentStore::of(counted.clone(), "logs/events", "memory://logs/events");
    let requests = |action: &dyn Fn()| {
        let before = counted.requests();
        action();
        counted.requests() - before
    };
    let list = segments.div_ceil(1000);
    let shipping = || drop(ship(&runtime, &store, folder.path()).unwrap());
    assert_eq!(requests(&shipping), list + 2 + segments, "a PUT each, and two that try the store");
    assert_eq!(requests(&shipping), list + 2, "the beginning of the last one, and its checksum");
    let summing = || drop(runtime.block_on(summary(&store)).unwrap());
    assert_eq!(requests(&summing), list + segments + 1, "each beginning, and the last one's end");
    let reading = || drop(read(&runtime, &store, 0).unwrap());
    let searched = u64::from((segments - 1).ilog2() + 1);
    let (read, least) = (requests(&reading), list + segments);
    assert!((least..=least + searched).contains(&read), "{read} of {segments} segments");
    let verifying = || drop(runtime.block_on(verify(&store, &mut |_, _| {})).unwrap());
    assert_eq!(requests(&verifying), list + 2 * segments);
}
