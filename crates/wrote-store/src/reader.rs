//! `StoreReader`, which reads the records of a log from a store, by sequence.

use crate::error::StoreError;
use crate::segment::{self, Fetched};
use crate::store::{Listing, SegmentStore};
use crate::until;
use std::fs::File;
use std::io::Read;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::SystemTime;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use wrote::log::Segment;
use wrote::{LogReader, Record};

/// A reader that returns the records of a log from a store in order, up to the last segment that
/// existed when the reader was opened. An error may be temporary: the next call continues at the
/// same record.
///
/// Each segment is fetched as a whole into a temporary folder while the previous one is being read,
/// and is compared with its checksum, if the store has one, before it is read. So temporary folders
/// hold at most two segments, and the reader uses as much memory as a [`LogReader`] (W8).
///
/// [`StoreReader::open`] fetches no segment; the first call that needs records does.
///
/// The methods block while network requests run in the runtime. They must not be called from a
/// thread of that runtime.
#[derive(Debug)]
pub struct StoreReader {
    runtime: Handle,
    store: SegmentStore,
    stop: Arc<AtomicBool>,
    /// The names of the objects in the store.
    listing: Listing,
    /// The sequence of the next record.
    from: u64,
    /// The segment that is being read; `None` before the first record.
    current: Option<Current>,
}

/// The segment that is being read, and the next one, which is being fetched.
#[derive(Debug)]
struct Current {
    start: Segment,
    reader: LogReader,
    fetched: Fetched,
    next: Option<Fetch>,
}

/// A segment that is being fetched. Dropping the value cancels the fetch.
#[derive(Debug)]
struct Fetch(JoinHandle<Result<Fetched, StoreError>>);

impl Drop for Fetch {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl StoreReader {
    /// Opens the log in `store` for reading, from record `from` on, or from the first later one
    /// that exists. Setting `stop` makes every wait fail with [`StoreError::Interrupted`].
    ///
    /// Fails with [`StoreError::Empty`] if there is no segment under the URL.
    pub fn open(
        runtime: Handle,
        store: SegmentStore,
        from: u64,
        stop: Arc<AtomicBool>,
    ) -> Result<StoreReader, StoreError> {
        let listing = runtime.block_on(until(&stop, store.listing(0)))?;
        if listing.segments.is_empty() {
            return Err(StoreError::Empty { url: store.url().to_owned() });
        }
        Ok(StoreReader { runtime, store, stop, listing, from, current: None })
    }

    /// Moves the reader to the first record written at or after `time` ([`Record::written_at`]), or
    /// after the last record if there is none. Times come from the writer's clock, as with
    /// [`LogReader::seek_time`](wrote::LogReader::seek_time).
    ///
    /// A binary search fetches the first 64 bytes of some segments, and then one whole segment: the
    /// last one that was started before `time`. If all of its records are earlier, the next segment
    /// is fetched, too. Fails like [`Iterator::next`].
    pub fn seek_time(&mut self, time: SystemTime) -> Result<(), StoreError> {
        self.from = 0;
        self.enter_last(|start| start.created_at < time)?;
        if let Some(Current { start, reader, .. }) = &mut self.current {
            reader.seek_time(time).map_err(|error| of_copy(&self.store, start.number, error))?;
            self.from = reader.next_sequence();
        }
        Ok(())
    }

    /// Returns the next record, or `None` at the end of the log.
    fn read(&mut self) -> Result<Option<Record>, StoreError> {
        loop {
            let Some(Current { start, reader, .. }) = &mut self.current else {
                let from = self.from;
                self.enter_last(|start| start.first_sequence <= from)?;
                continue;
            };
            match reader.next() {
                Some(Ok(record)) => {
                    self.from = record.sequence + 1;
                    return Ok(Some(record));
                }
                Some(Err(error)) => return Err(of_copy(&self.store, start.number, error)),
                None if self.advance()? => {}
                None => return Ok(None),
            }
        }
    }

    /// Fetches the last segment for which `is_wanted` holds, or else the first segment, and
    /// continues reading in it. The wanted segments must precede the others.
    fn enter_last(&mut self, is_wanted: impl Fn(&Segment) -> bool) -> Result<(), StoreError> {
        self.current = None;
        let numbers: Vec<u64> = self.listing.segments.keys().copied().collect();
        let search = async {
            let (mut low, mut high) = (0, numbers.len());
            while high - low > 1 {
                let middle = low + (high - low) / 2;
                let start = self.store.start(numbers[middle]).await?;
                if is_wanted(&start) { low = middle } else { high = middle }
            }
            Ok(numbers[low])
        };
        let number = self.runtime.block_on(until(&self.stop, search))?;
        let fetched = self.wait(self.fetch(number))?;
        self.enter(number, fetched)
    }

    fn fetch(&self, number: u64) -> Fetch {
        let (store, listing) = (self.store.clone(), self.listing.only(number));
        Fetch(self.runtime.spawn(async move { segment::fetch(&store, number, &listing).await }))
    }

    fn wait(&self, mut fetch: Fetch) -> Result<Fetched, StoreError> {
        let joined = async {
            (&mut fetch.0).await.unwrap_or_else(|error| {
                Err(StoreError::local("a task", std::io::Error::other(error)))
            })
        };
        self.runtime.block_on(until(&self.stop, joined))
    }

    /// Continues reading in a segment that has been fetched, and starts to fetch the next one.
    fn enter(&mut self, number: u64, fetched: Fetched) -> Result<(), StoreError> {
        let mut begin = Vec::new();
        let file = File::open(fetched.path(number));
        let read = file
            .and_then(|file| file.take(Segment::BEGINNING_BYTES as u64).read_to_end(&mut begin));
        read.map_err(|error| StoreError::local("a temporary folder", error))?;
        let start = self.store.start_in(number, &begin)?;
        if let Some(before) = &self.current {
            self.check_seam(before, &start)?;
        }
        let reader = LogReader::open(fetched.folder.path(), self.from);
        let reader = reader.map_err(|error| of_copy(&self.store, number, error))?;
        let next = self.following(number).filter(|&next| next == number + 1);
        let next = next.map(|next| self.fetch(next));
        self.current = Some(Current { start, reader, fetched, next });
        Ok(())
    }

    /// Returns the number of the first segment after `number`.
    fn following(&self, number: u64) -> Option<u64> {
        let behind = (Bound::Excluded(number), Bound::Unbounded);
        self.listing.segments.range(behind).next().map(|(&number, _)| number)
    }

    /// Continues after a segment that has been read to its end. Returns `false` if that was the
    /// last one.
    fn advance(&mut self) -> Result<bool, StoreError> {
        let Some(Current { start, next, .. }) = &mut self.current else { return Ok(false) };
        let (before, fetching) = (start.number, next.take());
        let Some(number) = self.following(before) else { return Ok(false) };
        if number != before + 1 {
            let because = match (before + 1, number - 1) {
                (first, last) if first == last => format!("segment {first}"),
                (first, last) => format!("segments {first} to {last}"),
            };
            let because = format!("the store lacks {because}, and has later ones");
            return Err(StoreError::Damaged { object: self.store.url_of(before + 1), because });
        }
        // After a failed fetch, no fetch is in progress.
        let fetched = self.wait(fetching.unwrap_or_else(|| self.fetch(number)))?;
        self.enter(number, fetched).map(|()| true)
    }

    /// Fails unless a segment begins where the previous one ends. There may be places without a
    /// record between the two.
    fn check_seam(&self, before: &Current, start: &Segment) -> Result<(), StoreError> {
        let number = before.start.number;
        if start.log_id != before.start.log_id {
            let because = format!("a segment of another log ({:016x})", start.log_id);
            return Err(StoreError::Damaged { object: self.store.url_of(start.number), because });
        }
        if start.first_sequence == self.from {
            return Ok(());
        }
        let end = Segment::examine(before.fetched.path(number));
        let end = end.map_err(|error| of_copy(&self.store, number, error))?.end_sequence;
        if start.first_sequence == end {
            return Ok(());
        }
        let because = format!("record {end} was durable, but can't be read any more");
        Err(StoreError::Damaged { object: self.store.url_of(number), because })
    }
}

impl Iterator for StoreReader {
    type Item = Result<Record, StoreError>;

    /// Returns the next record; `None` at the end of the log. Fails with [`StoreError::Damaged`] if
    /// records in the store are lost.
    fn next(&mut self) -> Option<Result<Record, StoreError>> {
        self.read().transpose()
    }
}

/// Converts an error about the copy of a segment into one about its object.
fn of_copy(store: &SegmentStore, number: u64, error: wrote::Error) -> StoreError {
    match error {
        wrote::Error::Damaged { offset, because, .. } => {
            let because = because.split("; run `").next().unwrap_or_default();
            let because = format!("damaged at byte {offset}: {because}");
            StoreError::Damaged { object: store.url_of(number), because }
        }
        wrote::Error::Interrupted => StoreError::Interrupted,
        other => StoreError::Log(other),
    }
}
