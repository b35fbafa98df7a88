//! `StoreReader`: the records of a log by sequence, from the store and then from the local folder.

use crate::blocking::until;
use crate::error::StoreError;
use crate::store::{Listing, SegmentStore};
use crate::summary::{check_local, end_of, first_local, start_of, temporary};
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant, SystemTime};
use tempfile::TempDir;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use wrote::log::Segment;
use wrote::{LogReader, Record};

/// The interval between two checks for newly shipped segments.
const LOOK_PAUSE: Duration = Duration::from_secs(2);

/// The options of reading a log in a store.
#[derive(Clone, Debug, Default)]
pub struct StoreOptions {
    /// The folder in which the log continues where the store ends.
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
/// [`StoreReader::open`] fetches no segment: the first call that needs records does.
///
/// Its calls block; the network's part runs in the runtime. They must not be made from a thread of
/// that runtime.
#[derive(Debug)]
pub struct StoreReader {
    runtime: Handle,
    store: SegmentStore,
    options: StoreOptions,
    folder: TempDir,
    /// The names in the store, as last listed.
    listing: Listing,
    part: Part,
    /// The sequence of the next record.
    from: u64,
    log_id: u64,
    /// The last sequence that was missing in the local log and searched in the store.
    looked_for: Option<u64>,
}

#[derive(Debug)]
enum Part {
    /// Nothing was read or fetched yet.
    Begin,
    /// Reading a segment of the store, with the next one being fetched.
    Stored {
        number: u64,
        reader: LogReader,
        next: Option<Next>,
    },
    Local(LogReader),
    /// The store has nothing further, and there is no local log. The next check is due then.
    End {
        number: u64,
        look_at: Instant,
    },
}

#[derive(Debug)]
struct Next {
    number: u64,
    fetched: Fetch,
}

/// A segment that is being fetched; dropping this cancels it.
#[derive(Debug)]
struct Fetch(JoinHandle<Result<(), StoreError>>);

impl Drop for Fetch {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl StoreReader {
    /// Reads the log in `store` from the record `from` on, or from the first later one that exists.
    /// As long as nothing is shipped, it reads only the local log.
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
        if let Some(folder) = &options.local {
            check_local(&store, start.log_id, folder)?;
        }
        Ok(StoreReader {
            folder: temporary()?,
            runtime,
            store,
            options,
            listing,
            part: Part::Begin,
            from,
            log_id: start.log_id,
            looked_for: None,
        })
    }

    fn begin(&mut self) -> Result<(), StoreError> {
        let (from, is_empty) = (self.from, self.listing.segments.is_empty());
        let local = self.local_from(|local| is_empty || local.first_sequence <= from)?;
        match local {
            Some(local) => self.go_on_in(&local),
            None => self.enter_last(|start| start.first_sequence <= from),
        }
    }

    /// Returns the local folder, if it has the log and its first segment `suits`.
    fn local_from(
        &self,
        suits: impl FnOnce(&Segment) -> bool,
    ) -> Result<Option<PathBuf>, StoreError> {
        let Some(folder) = &self.options.local else { return Ok(None) };
        let local = check_local(&self.store, self.log_id, folder)?;
        Ok(local.is_some_and(|local| suits(&local)).then(|| folder.clone()))
    }

    /// Continues with the first record written at `time` or later ([`Record::written_at`]); after
    /// the last one if none was. It uses the writer's clock, like
    /// [`LogReader::seek_time`](wrote::LogReader::seek_time).
    ///
    /// A binary search fetches the first 64 bytes of some segments, and then one whole segment: the
    /// last one started before `time`. If all of its records are earlier, the next one is fetched,
    /// too. A local log started before `time` is searched instead of the store. Fails as
    /// [`StoreReader::read_into`] does.
    pub fn seek_time(&mut self, time: SystemTime) -> Result<(), StoreError> {
        self.rewind()?;
        let is_empty = self.listing.segments.is_empty();
        if let Some(folder) = self.local_from(|local| is_empty || local.created_at < time)? {
            let mut reader = self.open_local(&folder, 0)?;
            reader.seek_time(time)?;
            self.from = reader.next_sequence();
            self.part = Part::Local(reader);
            return Ok(());
        }
        self.from = 0;
        self.enter_last(|start| start.created_at < time)?;
        if let Part::Stored { reader, .. } = &mut self.part {
            match reader.seek_time(time) {
                Ok(()) => self.from = reader.next_sequence(),
                Err(error) => return Err(self.of_copy(error)),
            }
        }
        let from = self.from;
        match self.local_from(|local| local.first_sequence <= from)? {
            Some(local) => self.go_on_in(&local),
            None => Ok(()),
        }
    }

    /// Forgets what was read and fetched.
    fn rewind(&mut self) -> Result<(), StoreError> {
        if matches!(self.part, Part::Begin) {
            return Ok(());
        }
        self.part = Part::Begin;
        self.folder = temporary()?;
        let listed = self.store.listing(0);
        self.listing = self.runtime.block_on(until(&self.options.stop, listed))?;
        Ok(())
    }

    /// Fetches the last of the segments that begin as wanted, which precede the others, or else the
    /// first one. Continues reading in it.
    fn enter_last(&mut self, is_wanted: impl Fn(&Segment) -> bool) -> Result<(), StoreError> {
        let found = until(&self.options.stop, self.find_last(is_wanted));
        match self.runtime.block_on(found)? {
            Some(number) => self.enter(number),
            None => Err(StoreError::Empty { url: self.store.url().to_owned() }),
        }
    }

    async fn find_last(
        &self,
        is_wanted: impl Fn(&Segment) -> bool,
    ) -> Result<Option<u64>, StoreError> {
        let numbers: Vec<u64> = self.listing.segments.keys().copied().collect();
        let (mut low, mut high) = (0, numbers.len());
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            let start = self.store.start(numbers[middle]).await?;
            if is_wanted(&start) { low = middle } else { high = middle }
        }
        Ok(numbers.get(low).copied())
    }

    /// Fetches a segment and continues reading in it.
    fn enter(&mut self, number: u64) -> Result<(), StoreError> {
        let fetched = self.fetch(number);
        self.wait(fetched)?;
        let reader = LogReader::open(self.folder.path(), self.from);
        let reader = reader.map_err(|error| self.of_copy(error))?;
        self.part = Part::Stored { number, reader, next: None };
        self.fetch_next(number);
        Ok(())
    }

    fn fetch(&self, number: u64) -> Fetch {
        let (store, path) = (self.store.clone(), self.folder.path().join(Segment::name(number)));
        let named = self.listing.checksums_of(number).to_vec();
        let fetch = async move { store.fetch_listed(number, &named, &path).await.map(drop) };
        Fetch(self.runtime.spawn(fetch))
    }

    fn wait(&self, mut fetched: Fetch) -> Result<(), StoreError> {
        let joined = async {
            (&mut fetched.0).await.unwrap_or_else(|error| {
                Err(StoreError::local("a task", std::io::Error::other(error)))
            })
        };
        self.runtime.block_on(until(&self.options.stop, joined))
    }

    /// Starts to fetch the segment after `number`, if the last listing had it.
    fn fetch_next(&mut self, number: u64) {
        // Beside a copy of `number`, one of a later segment would look like damage.
        let next = self.following(number).filter(|&next| next == number + 1);
        let fetched = next.map(|number| Next { number, fetched: self.fetch(number) });
        if let Part::Stored { next, .. } = &mut self.part {
            *next = fetched;
        }
    }

    /// Returns the first segment after `number` in the last listing.
    fn following(&self, number: u64) -> Option<u64> {
        let behind = (Bound::Excluded(number), Bound::Unbounded);
        self.listing.segments.range(behind).next().map(|(&number, _)| number)
    }

    /// Returns the folder of the segments that are being read.
    pub fn temporary_folder(&self) -> &Path {
        self.folder.path()
    }

    /// Appends the next record's bytes to `bytes` and returns its sequence. A following reader
    /// waits for it; for another one `None` is the end.
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
                Part::Begin => {
                    self.begin()?;
                    continue;
                }
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

    /// Continues after a segment that was read to its end.
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
            // The reader finds the next segment beside the current one.
            match reader.seek(self.from) {
                Ok(()) => {}
                Err(error) => return Err(self.of_copy(error)),
            }
        }
        self.remove_copy(before)?;
        self.fetch_next(number);
        Ok(())
    }

    /// Checks that a segment begins where the one before ends. Places without a record may lie
    /// between.
    fn check_seam(&self, before: u64, number: u64) -> Result<(), StoreError> {
        let path = |number| self.folder.path().join(Segment::name(number));
        let start = start_of(&path(number))?;
        if start.as_ref().is_some_and(|start| start.first_sequence == self.from) {
            return Ok(());
        }
        let end = Segment::examine(path(before)).map_err(|error| self.of_copy(error))?;
        if start.as_ref().is_some_and(|start| start.first_sequence == end.end_sequence) {
            return Ok(());
        }
        let because = format!("record {} can't be read, and was durable once", end.end_sequence);
        Err(StoreError::Damaged { object: self.store.url_of(before), because })
    }

    /// Continues after the segment `number`, the last one that was listed.
    fn go_on_behind(&mut self, number: u64) -> Result<(), StoreError> {
        match self.following(number) {
            None => {}
            // Its fetch failed: try once more.
            Some(next) if next == number + 1 => {
                self.fetch_next(number);
                return Ok(());
            }
            Some(later) => return Err(self.lacks(number + 1, later - 1)),
        }
        let Some(folder) = self.options.local.clone() else {
            self.part = Part::End { number, look_at: Instant::now() + LOOK_PAUSE };
            return Ok(());
        };
        let local = check_local(&self.store, self.log_id, &folder)?;
        // A shipper and retention may have moved the next segments since.
        if local.is_some_and(|local| local.first_sequence > self.from) && self.look_again(number)? {
            return Ok(());
        }
        self.go_on_in(&folder)
    }

    /// Returns to the store, if it has the record that the local log no longer has. Returns whether
    /// it does. A place without a record is in neither.
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
        self.listing = listing;
        let from = self.from;
        self.enter_last(|start| start.first_sequence <= from).map(|()| true)
    }

    /// Continues in the local log, which must have the next record.
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
        let reader = self.open_local(folder, self.from)?;
        if let Part::Stored { number, .. } = self.part {
            self.remove_copy(number)?;
        }
        self.part = Part::Local(reader);
        Ok(())
    }

    /// Removes the copy of a segment that was read.
    fn remove_copy(&self, number: u64) -> Result<(), StoreError> {
        let path = self.folder.path().join(Segment::name(number));
        let removed = std::fs::remove_file(&path);
        removed.map_err(|error| StoreError::local(path.display().to_string(), error))
    }

    fn open_local(&self, folder: &Path, from: u64) -> Result<LogReader, StoreError> {
        let reader = LogReader::open(folder, from)?;
        Ok(if self.options.follows { reader.following()? } else { reader })
    }

    /// Returns whether segments after `number` were shipped since.
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
