//! Records of a log whose sealed segments are in a store.

use super::super::source::{Ends, Head, Records, Source};
use super::of_store;
use crate::stdio::End;
use std::cell::OnceCell;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};
use wrote::{Record, log};
use wrote_result::{Error, Stop};
use wrote_store::{SegmentStore, StoreError, StoreOptions, StoreReader, runtime, summary, until};

/// The interval between two checks for a log that does not exist yet.
const LOOK_PAUSE: Duration = Duration::from_secs(1);

/// A store, and the folder in which the log continues.
struct Stored {
    runtime: tokio::runtime::Runtime,
    url: String,
    /// Opened by the first read, since the folder of a `file://` URL may not exist yet.
    store: OnceCell<SegmentStore>,
    local: Option<PathBuf>,
    stop: Stop,
}

pub(in super::super) fn source(
    url: &str,
    local: Option<PathBuf>,
    stop: &Stop,
) -> Result<Box<dyn Source>, Error> {
    SegmentStore::check(url).map_err(of_store)?;
    let (runtime, store) = (runtime().map_err(of_store)?, OnceCell::new());
    Ok(Box::new(Stored { runtime, url: url.to_owned(), store, local, stop: stop.clone() }))
}

impl Stored {
    fn store(&self) -> Result<&SegmentStore, StoreError> {
        match self.store.get() {
            Some(store) => Ok(store),
            None => SegmentStore::open(&self.url).map(|opened| self.store.get_or_init(|| opened)),
        }
    }

    fn read(&self, from: u64, follows: bool) -> Result<StoreReader, StoreError> {
        let (local, stop) = (self.local.clone(), self.stop.flag().clone());
        let options = StoreOptions { local, follows, stop };
        StoreReader::open(self.runtime.handle().clone(), self.store()?.clone(), from, options)
    }

    /// Returns whether the valid URL, or the folder, has no log yet.
    fn is_missing(&self, error: &StoreError) -> bool {
        match error {
            StoreError::Empty { .. } | StoreError::Url { .. } => true,
            _ => self.local.as_ref().is_some_and(|local| !local.exists()),
        }
    }
}

impl Source for Stored {
    fn open(&self, from: u64) -> Result<Box<dyn Records>, End> {
        Ok(Box::new(self.read(from, false).map_err(of_store)?))
    }

    fn follow(&self, from: u64, is_expected: bool) -> Result<Box<dyn Records>, End> {
        loop {
            match self.read(from, true) {
                Err(error) if is_expected && self.is_missing(&error) => {}
                reader => return Ok(Box::new(reader.map_err(of_store)?)),
            }
            self.stop.check()?;
            std::thread::sleep(LOOK_PAUSE);
        }
    }

    fn is_there(&self) -> Result<bool, End> {
        let listed = match self.store() {
            Err(error) if self.is_missing(&error) => return Ok(false),
            store => until(self.stop.flag(), store.map_err(of_store)?.list(0)),
        };
        let listed = self.runtime.block_on(listed).map_err(of_store)?;
        let begun = |local| log::summary(local).is_ok_and(|local| !local.segments.is_empty());
        Ok(!listed.is_empty() || self.local.as_ref().is_some_and(begun))
    }

    fn check_times(&self) -> Result<(), End> {
        // Only framed logs are shipped.
        Ok(())
    }

    fn ends(&self) -> Result<Ends, End> {
        let store = self.store().map_err(of_store)?;
        let summed = until(self.stop.flag(), summary(store, self.local.as_deref()));
        let summed = self.runtime.block_on(summed).map_err(of_store)?;
        let local = summed.local.as_ref().filter(|_| summed.segments.is_empty());
        let first = local.map_or(summed.first_sequence, |local| local.first_sequence);
        Ok(Ends { first, next: summed.next_sequence() })
    }
}

impl Records for StoreReader {
    fn read_into(&mut self, bytes: &mut Vec<u8>) -> Result<Option<Head>, End> {
        // A reader that does not follow has nothing to wait for.
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
