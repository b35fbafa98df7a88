//! Logs with many small segments, and stores for them.

use object_store::memory::InMemory;
use std::path::Path;
use std::sync::Arc;
use tokio::runtime::{Builder, Runtime};
use wrote::{Log, LogOptions, SyncPolicy};
use wrote_store::{SegmentStore, Shipper, StoreError, StoreReader};

pub fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// Returns the options of a log with about ten records per segment.
pub fn options() -> LogOptions {
    Log::options().sync(SyncPolicy::Always).buffers(2).buffer_bytes(4096).segment_bytes(16 << 10)
}

pub fn record(number: u64) -> Vec<u8> {
    let len = 200 + number * 7919 % 1800;
    (0..len).map(|place| ((number * 31 + place * 7) % 251) as u8).collect()
}

/// Appends records until the log has `to` records.
pub fn append(log: &Log, to: u64) {
    while log.stats().next_sequence < to {
        let number = log.stats().next_sequence;
        log.append(&record(number)).unwrap().wait().unwrap();
    }
}

/// Creates a log with this number of records, and closes it.
pub fn make(folder: &Path, records: u64) {
    let log = options().open(folder).unwrap();
    append(&log, records);
    log.close().unwrap();
}

pub fn memory() -> (Arc<InMemory>, SegmentStore) {
    let store = Arc::new(InMemory::new());
    (store.clone(), SegmentStore::of(store, "logs/events", "memory://logs/events"))
}

/// Ships everything that is sealed in the folder, as a new process would.
pub fn ship(runtime: &Runtime, store: &SegmentStore, folder: &Path) -> Result<Shipper, StoreError> {
    let mut shipper = Shipper::new(store.clone(), folder)?;
    runtime.block_on(shipper.pass(0, &mut |_| {}))?;
    Ok(shipper)
}

/// Returns the sequences of all records from `from` on, after checking their bytes.
pub fn read(runtime: &Runtime, store: &SegmentStore, from: u64) -> Result<Vec<u64>, StoreError> {
    let (handle, stop) = (runtime.handle().clone(), Arc::default());
    let reader = StoreReader::open(handle, store.clone(), from, stop)?;
    reader
        .map(|found| {
            found.map(|found| {
                assert!(found.bytes == record(found.sequence), "record {}", found.sequence);
                found.sequence
            })
        })
        .collect()
}
