//! `StoreReader`: the records of a log by sequence, from the store and then from the local folder.

use crate::blocking::until;
use crate::error::StoreError;
use crate::store::{Listing, SegmentStore};
use crate::summary::{check_local, end_of, first_local, start_of, temporary};
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use wrote::log::{check_segment, segment_name};
use wrote::{LogReader, Record};

/// The pause between two looks for segments that were shipped since.
const LOOK_PAUSE: Duration = Duration::from_secs(2);

/// How a log in a store is read.
#[derive(Clone, Debug, Default)]
pub struct StoreOptions {
    /// The folder in which the log goes on where the store ends.
    pub local: Option<PathBuf>,
    /// Whether the reader waits at the end for further records.
    pub follows: bool,
    /// Ends every wait once it is set.
    pub stop: Arc<AtomicBool>,
}

/// The records of a log in order, from a store, and from the local folder where the store ends.
///
/// A segment is fetched as a whole into a temporary folder, while the one before it is read; its
/// checksum is compared first. So the folder holds three segments at most, and memory what
/// [`LogReader`] takes (W8). A record that the local folder has is read there. If retention removes
/// it before it is read, it is read from the store.
///
/// Its calls block; the network's part runs in the runtime. They must not be made from a thread of
/// that runtime.
#[derive(Debug)]
pub struct StoreReader {
    runtime: Handle,
    store: SegmentStore,
    options: StoreOptions,
    folder: TempDir,
    /// The names in the store, as of the last look.
    listing: Listing,
    part: Part,
    /// The sequence of the next record.
    from: u64,
    log_id: u64,
    /// The last sequence that was missed in the local log and looked for in the store.
    looked_for: Option<u64>,
}

#[derive(Debug)]
enum Part {
    /// A segment of the store, and the next one on its way.
    Stored {
        number: u64,
        reader: LogReader,
        next: Option<Next>,
    },
    Local(LogReader),
    /// The store has nothing further, and there is no local log. The next look is due then.
    End {
        number: u64,
        look_at: Instant,
    },
}

#[derive(Debug)]
struct Next {
    number: u64,
    fetched: JoinHandle<Result<(), StoreError>>,
}

impl StoreReader {
    /// Reads the log in `store` from the record `from` on, or from the first later one that is
    /// there. As long as nothing is shipped, it reads the local log alone.
    ///
    /// Fails with [`StoreError::Empty`] if neither the URL nor the local folder has a segment, and
    /// [`StoreError::Differs`] if the local folder has another log.
    pub fn open(
        runtime: Handle,
        store: SegmentStore,
        from: u64,
        options: StoreOptions,
    ) -> Result<StoreReader, StoreError> {
        let listing = runtime.block_on(until(&options.stop, store.listing(0)))?;
        let first = listing.segments.first_key_value().map(|(&first, _)| first);
        let start = match (first, &options.local) {
            (Some(first), _) => runtime.block_on(until(&options.stop, store.start(first)))?,
            (None, Some(folder)) => {
                let local = first_local(folder)?.map(|(_, start)| start);
                local.ok_or_else(|| StoreError::Empty { url: store.url().to_owned() })?
            }
            (None, None) => return Err(StoreError::Empty { url: store.url().to_owned() }),
        };
        let end = Part::End { number: 0, look_at: Instant::now() };
        let mut reader = StoreReader {
            folder: temporary()?,
            runtime,
            store,
            options,
            listing,
            part: end,
            from,
            log_id: start.log_id,
            looked_for: None,
        };
        reader.begin(first)?;
        Ok(reader)
    }

    /// Begins in the store, whose first segment is `first`, or in the local log.
    fn begin(&mut self, first: Option<u64>) -> Result<(), StoreError> {
        if let Some(folder) = self.options.local.clone() {
            let local = check_local(&self.store, self.log_id, &folder)?;
            let has_it = local.is_some_and(|local| local.first_sequence <= self.from);
            if has_it || first.is_none() {
                return self.go_on_in(&folder);
            }
        }
        let Some(first) = first else { return Ok(()) };
        let number = self.runtime.block_on(until(&self.options.stop, self.find(first)))?;
        self.enter(number)
    }

    /// Finds the last segment that begins with the wanted record or an earlier one.
    async fn find(&self, first: u64) -> Result<u64, StoreError> {
        let numbers: Vec<u64> = self.listing.segments.keys().copied().collect();
        let (mut low, mut high) = (0, numbers.len());
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            let start = self.store.start(numbers[middle]).await?;
            if start.first_sequence <= self.from { low = middle } else { high = middle }
        }
        Ok(numbers.get(low).copied().unwrap_or(first))
    }

    /// Fetches a segment and reads on in it.
    fn enter(&mut self, number: u64) -> Result<(), StoreError> {
        let fetched = self.fetch(number);
        self.wait(fetched)?;
        let reader = LogReader::open(self.folder.path(), self.from);
        let reader = reader.map_err(|error| self.of_copy(error))?;
        self.part = Part::Stored { number, reader, next: None };
        self.fetch_next(number);
        Ok(())
    }

    fn fetch(&self, number: u64) -> JoinHandle<Result<(), StoreError>> {
        let (store, path) = (self.store.clone(), self.folder.path().join(segment_name(number)));
        let named = self.listing.checksums_of(number).to_vec();
        self.runtime.spawn(async move { store.fetch_listed(number, &named, &path).await.map(drop) })
    }

    fn wait(&self, fetched: JoinHandle<Result<(), StoreError>>) -> Result<(), StoreError> {
        let abort = fetched.abort_handle();
        let joined = async {
            fetched.await.unwrap_or_else(|error| {
                Err(StoreError::local("a task", std::io::Error::other(error)))
            })
        };
        let waited = self.runtime.block_on(until(&self.options.stop, joined));
        waited.inspect_err(|_| abort.abort())
    }

    /// Begins to fetch the segment behind `number`, if the store had one at the last look. A later
    /// one would look like damage to the reader of this one.
    fn fetch_next(&mut self, number: u64) {
        let following = Some(number + 1).filter(|next| self.listing.segments.contains_key(next));
        let fetched = following.map(|number| Next { number, fetched: self.fetch(number) });
        if let Part::Stored { next, .. } = &mut self.part {
            *next = fetched;
        }
    }

    /// Returns the folder of the segments that are being read.
    pub fn temporary_folder(&self) -> &Path {
        self.folder.path()
    }

    /// Appends the next record's bytes to `bytes` and returns its sequence. A following reader
    /// waits for it; else `None` is the end.
    ///
    /// Fails with [`StoreError::Damaged`] if records of the store are lost.
    pub fn read_into(&mut self, bytes: &mut Vec<u8>) -> Result<Option<u64>, StoreError> {
        loop {
            if let Some(record) = self.next_within(LOOK_PAUSE)? {
                bytes.extend_from_slice(&record.bytes);
                return Ok(Some(record.sequence));
            }
            if !self.options.follows {
                return Ok(None);
            }
        }
    }

    /// Returns the next record, or `None` if there is none within about `timeout`. A reader that
    /// does not follow does not wait. Fails as [`StoreReader::read_into`] does.
    pub fn next_within(&mut self, timeout: Duration) -> Result<Option<Record>, StoreError> {
        loop {
            let found = match &mut self.part {
                Part::Stored { reader, .. } => match reader.next_within(Duration::ZERO) {
                    Ok(found) => found,
                    Err(error) => return Err(self.of_copy(error)),
                },
                Part::Local(reader) => match reader.next_within(timeout)? {
                    Some(record) if record.sequence > self.from && self.go_back()? => continue,
                    found => {
                        return Ok(found.inspect(|record| self.from = record.sequence + 1));
                    }
                },
                Part::End { number, look_at } => {
                    let number = *number;
                    if !self.options.follows {
                        return Ok(None);
                    }
                    let pause = look_at.saturating_duration_since(Instant::now());
                    std::thread::sleep(pause.min(timeout));
                    if pause > timeout || !self.look_again(number)? {
                        return Ok(None);
                    }
                    continue;
                }
            };
            if let Some(record) = found {
                self.from = record.sequence + 1;
                return Ok(Some(record));
            }
            self.leave()?;
        }
    }

    /// Goes on behind a segment that was read to its end.
    fn leave(&mut self) -> Result<(), StoreError> {
        let Part::Stored { number, next, .. } = &mut self.part else { return Ok(()) };
        let (before, Some(Next { number, fetched })) = (*number, next.take()) else {
            let number = *number;
            return self.go_on_behind(number);
        };
        self.wait(fetched)?;
        self.check_seam(before, number)?;
        if let Part::Stored { number: own, reader, .. } = &mut self.part {
            *own = number;
            // It finds the next segment beside the one that it has read.
            match reader.seek(self.from) {
                Ok(()) => {}
                Err(error) => return Err(self.of_copy(error)),
            }
        }
        self.remove_copy(before)?;
        self.fetch_next(number);
        Ok(())
    }

    /// Checks that a segment begins where the one before ends. Places without a record may stand
    /// between.
    fn check_seam(&self, before: u64, number: u64) -> Result<(), StoreError> {
        let path = |number| self.folder.path().join(segment_name(number));
        let start = start_of(&path(number))?;
        if start.is_some_and(|start| start.first_sequence == self.from) {
            return Ok(());
        }
        let end = check_segment(path(before)).map_err(|error| self.of_copy(error))?;
        if start.is_some_and(|start| start.first_sequence == end.end_sequence) {
            return Ok(());
        }
        let because = format!("record {} can't be read, and was durable once", end.end_sequence);
        Err(StoreError::Damaged { object: self.store.url_of(before), because })
    }

    /// Goes on behind the segment `number`, the last one of the last look.
    fn go_on_behind(&mut self, number: u64) -> Result<(), StoreError> {
        let behind = (Bound::Excluded(number), Bound::Unbounded);
        if let Some((&later, _)) = self.listing.segments.range(behind).next() {
            return Err(self.lacks(number + 1, later - 1));
        }
        let Some(folder) = self.options.local.clone() else {
            self.part = Part::End { number, look_at: Instant::now() + LOOK_PAUSE };
            return Ok(());
        };
        let local = check_local(&self.store, self.log_id, &folder)?;
        // Since the last look a shipper and retention may have moved the next segments.
        if local.is_some_and(|local| local.first_sequence > self.from) && self.look_again(number)? {
            return Ok(());
        }
        self.go_on_in(&folder)
    }

    /// Goes back to the store, if it has the record that the local log has no more. Returns whether
    /// it has. A place without a record is in neither.
    fn go_back(&mut self) -> Result<bool, StoreError> {
        if self.looked_for.replace(self.from) == Some(self.from) {
            return Ok(false);
        }
        let looked = async {
            let listing = self.store.listing(0).await?;
            let Some((&last, _)) = listing.segments.last_key_value() else { return Ok(None) };
            let end_sequence = end_of(&self.store, last, &listing).await?;
            Ok(Some(listing).filter(|_| end_sequence > self.from))
        };
        let looked = self.runtime.block_on(until(&self.options.stop, looked))?;
        let Some(listing) = looked else { return Ok(false) };
        let first = listing.segments.first_key_value().map_or(1, |(&first, _)| first);
        self.listing = listing;
        let number = self.runtime.block_on(until(&self.options.stop, self.find(first)))?;
        self.enter(number).map(|()| true)
    }

    /// Reads on in the local log, which must have the next record.
    fn go_on_in(&mut self, folder: &Path) -> Result<(), StoreError> {
        let local = check_local(&self.store, self.log_id, folder)?;
        if let Some(local) = local.filter(|local| local.first_sequence > self.from)
            && let Some((&last, _)) = self.listing.segments.last_key_value()
        {
            let numbers = (last + 1, local.number - 1);
            if numbers.0 > numbers.1 {
                let because = format!("lacks the records from {} on", self.from);
                return Err(StoreError::Damaged { object: self.store.url_of(last), because });
            }
            return Err(StoreError::Missing {
                url: self.store.url().to_owned(),
                folder: folder.to_owned(),
                numbers,
                hint: "read without --local, or from a later record on",
            });
        }
        let open = if self.options.follows { LogReader::follow } else { LogReader::open };
        let reader = open(folder, self.from)?;
        if let Part::Stored { number, .. } = self.part {
            self.remove_copy(number)?;
        }
        self.part = Part::Local(reader);
        Ok(())
    }

    /// Removes the copy of a segment that was read.
    fn remove_copy(&self, number: u64) -> Result<(), StoreError> {
        let path = self.folder.path().join(segment_name(number));
        let removed = std::fs::remove_file(&path);
        removed.map_err(|error| StoreError::local(path.display().to_string(), error))
    }

    /// Looks for segments behind `number` that were shipped since. Returns whether there are any.
    fn look_again(&mut self, number: u64) -> Result<bool, StoreError> {
        let listed = self.store.listing(number + 1);
        let listing = self.runtime.block_on(until(&self.options.stop, listed))?;
        let Some((&next, _)) = listing.segments.first_key_value() else {
            if let Part::End { look_at, .. } = &mut self.part {
                *look_at = Instant::now() + LOOK_PAUSE;
            }
            return Ok(false);
        };
        self.listing = listing;
        if next != number + 1 {
            return Err(self.lacks(number + 1, next - 1));
        }
        self.remove_copy(number)?;
        self.enter(next).map(|()| true)
    }

    fn lacks(&self, first: u64, last: u64) -> StoreError {
        let because = match first == last {
            true => format!("the store lacks segment {first}, and has later ones"),
            false => format!("the store lacks segments {first} to {last}, and has later ones"),
        };
        StoreError::Damaged { object: self.store.url_of(first), because }
    }

    /// Turns an error about a copy of a segment into one about its object.
    fn of_copy(&self, error: wrote::Error) -> StoreError {
        match error {
            wrote::Error::Damaged { path, offset, because } => {
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                let because = because.split("; run `").next().unwrap_or_default();
                let because = format!("damaged at byte {offset}: {because}");
                StoreError::Damaged { object: format!("{}/{name}", self.store.url()), because }
            }
            wrote::Error::Interrupted => StoreError::Interrupted,
            other => StoreError::Log(other),
        }
    }
}

impl Drop for StoreReader {
    fn drop(&mut self) {
        if let Part::Stored { next: Some(next), .. } = &self.part {
            next.fetched.abort();
        }
    }
}
