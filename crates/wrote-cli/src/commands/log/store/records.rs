//! Records of a log whose sealed segments are in a store.

use super::super::source::{Ends, Head, Records, Source};
use super::{of_store, open};
use crate::stdio::End;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};
use wrote::Record;
use wrote_result::{Error, Stop};
use wrote_store::{SegmentStore, StoreError, StoreOptions, StoreReader, runtime, summary, until};

/// A store, and the folder in which the log goes on.
struct Stored {
    runtime: tokio::runtime::Runtime,
    store: SegmentStore,
    local: Option<PathBuf>,
    stop: Stop,
}

pub(in super::super) fn source(
    url: &str,
    local: Option<PathBuf>,
    stop: &Stop,
) -> Result<Box<dyn Source>, Error> {
    let (store, runtime) = (open(url)?, runtime().map_err(of_store)?);
    Ok(Box::new(Stored { runtime, store, local, stop: stop.clone() }))
}

impl Stored {
    fn read(&self, from: u64, follows: bool) -> Result<Box<dyn Records>, End> {
        let (local, stop) = (self.local.clone(), self.stop.flag().clone());
        let options = StoreOptions { local, follows, stop };
        let handle = self.runtime.handle().clone();
        let reader = StoreReader::open(handle, self.store.clone(), from, options);
        Ok(Box::new(reader.map_err(of_store)?))
    }
}

impl Source for Stored {
    fn open(&self, from: u64) -> Result<Box<dyn Records>, End> {
        self.read(from, false)
    }

    fn follow(&self, from: u64, is_expected: bool) -> Result<Box<dyn Records>, End> {
        while is_expected && !self.is_there()? {
            self.stop.check()?;
            std::thread::sleep(Duration::from_secs(1));
        }
        self.read(from, true)
    }

    fn is_there(&self) -> Result<bool, End> {
        let listed = until(self.stop.flag(), self.store.list(0));
        let listed = self.runtime.block_on(listed).map_err(of_store)?;
        Ok(!listed.is_empty())
    }

    fn check_times(&self) -> Result<(), End> {
        // Only framed logs are shipped.
        Ok(())
    }

    fn ends(&self) -> Result<Ends, End> {
        let summed = until(self.stop.flag(), summary(&self.store, self.local.as_deref()));
        let summed = self.runtime.block_on(summed).map_err(of_store)?;
        Ok(Ends { first: summed.first_sequence, next: summed.next_sequence() })
    }
}

impl Records for StoreReader {
    fn read_into(&mut self, bytes: &mut Vec<u8>) -> Result<Option<Head>, End> {
        // One that does not follow has nothing to wait for.
        let record = StoreReader::next_within(self, Duration::ZERO).map_err(end)?;
        Ok(record.map(|Record { sequence, bytes: own, written_at, .. }| {
            bytes.extend_from_slice(&own);
            Head { sequence, written_at }
        }))
    }

    fn seek_time(&mut self, time: SystemTime) -> Result<(), End> {
        StoreReader::seek_time(self, time).map_err(end)
    }

    fn next_within(&mut self, timeout: Duration) -> Result<Option<Record>, End> {
        StoreReader::next_within(self, timeout).map_err(end)
    }
}

fn end(error: StoreError) -> End {
    of_store(error).into()
}
