//! Summaries: the segments of a store and their sequences, and the local log after them.

use crate::blocking::blocking;
use crate::error::StoreError;
use crate::store::{Listing, SegmentStore};
use futures_util::{StreamExt, TryStreamExt, stream};
use serde::Serialize;
use serde_with::skip_serializing_none;
use std::io::Read;
use std::path::{Path, PathBuf};
use wrote::log::{LogSummary, SealedSegments, Segment};

/// Requests in flight for the beginnings of segments.
const AT_ONCE: usize = 16;

/// The segments of a store, and of the local log where one is given.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StoreSummary {
    /// The store's URL.
    pub url: String,
    /// The segments in the store, in order.
    pub segments: Vec<StoredSummary>,
    /// The sequence of the first record in the store; 0 if it has none.
    pub first_sequence: u64,
    /// The sequence after the last record in the store: every earlier record is shipped.
    pub end_sequence: u64,
    /// The local log.
    pub local: Option<LogSummary>,
    /// The part of the local log that a shipper would ship now.
    pub unshipped: Option<Unshipped>,
}

/// The sealed segments of a local log that its store does not have.
#[skip_serializing_none]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Unshipped {
    /// Their number.
    pub segments: u64,
    /// Their bytes, up to the end of the last batch of each.
    pub bytes: u64,
    /// The sequence after the last record in them; the store's, if there are none.
    pub end_sequence: u64,
    /// The segments that are neither in the store nor in the folder. Then nothing can be shipped.
    pub missing: Option<MissingSegments>,
}

/// The numbers of missing segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct MissingSegments {
    /// The first.
    pub first: u64,
    /// The last.
    pub last: u64,
}

impl StoreSummary {
    /// Returns the sequence after the last record of the store and the local log.
    pub fn next_sequence(&self) -> u64 {
        let local = self.local.as_ref().map_or(0, |local| local.next_sequence);
        self.end_sequence.max(local)
    }
}

/// The figures of a segment in a store.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct StoredSummary {
    /// Its number.
    #[serde(skip)]
    pub number: u64,
    /// Its name.
    pub name: String,
    /// The sequence of its first record.
    pub first_sequence: u64,
    /// The places of its records.
    pub records: u64,
    /// The length of the object.
    pub bytes: u64,
}

/// Summarizes a store, and the log in `local` that continues where the store ends. Reads the first
/// bytes of each segment.
///
/// Fails with [`StoreError::Differs`] if the folder has another log. If neither the URL nor the
/// folder has a log, it fails with [`StoreError::Empty`] or with the error of the folder.
pub async fn summary(
    store: &SegmentStore,
    local: Option<&Path>,
) -> Result<StoreSummary, StoreError> {
    let listing = store.listing(0).await?;
    let start = |(&number, &bytes): (&u64, &u64)| async move {
        store.start(number).await.map(|start| (start, bytes))
    };
    let starts: Vec<(Segment, u64)> =
        stream::iter(listing.segments.iter().map(start)).buffered(AT_ONCE).try_collect().await?;
    let last = starts.last().map(|(start, _)| start.clone());
    let end_sequence = match &last {
        Some(last) => end_of(store, last.number, &listing).await?,
        None if local.is_some() => 0,
        None => return Err(StoreError::Empty { url: store.url().to_owned() }),
    };
    let ends = starts.iter().skip(1).map(|(next, _)| next.first_sequence).chain([end_sequence]);
    let segments = starts.iter().zip(ends).map(|((start, bytes), end)| StoredSummary {
        number: start.number,
        name: Segment::name(start.number),
        bytes: *bytes,
        first_sequence: start.first_sequence,
        records: end.saturating_sub(start.first_sequence),
    });
    let mut summary = StoreSummary {
        url: store.url().to_owned(),
        segments: segments.collect(),
        first_sequence: starts.first().map_or(0, |(first, _)| first.first_sequence),
        end_sequence,
        local: None,
        unshipped: None,
    };
    if let Some(folder) = local.map(Path::to_owned) {
        if let Some(last) = &last {
            check_local(store, last.log_id, &folder)?;
        }
        let stored = last.map_or(0, |last| last.number);
        let (log, unshipped) = blocking(move || {
            // Lists first, so that a segment sealed in between does not count as sealed yet.
            let unshipped = unshipped(&folder, stored, end_sequence)?;
            Ok((wrote::log::summary(folder)?, unshipped))
        })
        .await?;
        (summary.local, summary.unshipped) = (Some(log), Some(unshipped));
    }
    Ok(summary)
}

/// Finds the sealed segments after the number `stored`, the last in the store. Blocks.
fn unshipped(folder: &Path, stored: u64, end_sequence: u64) -> Result<Unshipped, StoreError> {
    let mut sealed = SealedSegments::open(folder)?;
    let waiting = sealed.list(stored + 1, 0)?;
    let first = first_local(folder)?.map(|(_, start)| start.number);
    let gap = first.filter(|first| stored > 0 && *first > stored + 1);
    Ok(Unshipped {
        segments: waiting.len() as u64,
        bytes: waiting.iter().map(|segment| segment.bytes).sum(),
        end_sequence: waiting.last().map_or(end_sequence, |last| last.end_sequence),
        missing: gap.map(|first| MissingSegments { first: stored + 1, last: first - 1 }),
    })
}

/// Returns the sequence after the last record of a segment: the one kept with the object, or found
/// by reading it.
pub(crate) async fn end_of(
    store: &SegmentStore,
    number: u64,
    listing: &Listing,
) -> Result<u64, StoreError> {
    if let Some(end_sequence) = store.kept(number).await?.end_sequence {
        return Ok(end_sequence);
    }
    let folder = temporary()?;
    let path = folder.path().join(Segment::name(number));
    store.fetch_listed(number, listing.checksums_of(number), &path).await?;
    let end = blocking(move || Ok(Segment::examine(&path)?.end_sequence)).await;
    drop(folder);
    end
}

/// Makes the folder for segments that are read from the store. Dropping it removes the folder.
pub(crate) fn temporary() -> Result<tempfile::TempDir, StoreError> {
    let made = tempfile::Builder::new().prefix("wrote-store-").tempdir();
    made.map_err(|error| StoreError::local("a temporary folder", error))
}

/// Returns the path and the beginning of the first segment of a local log; `None` if it has none
/// yet.
pub(crate) fn first_local(folder: &Path) -> Result<Option<(PathBuf, Segment)>, StoreError> {
    let failed = |error| StoreError::local(folder.display().to_string(), error);
    let mut first: Option<u64> = None;
    for file in std::fs::read_dir(folder).map_err(failed)? {
        let name = file.map_err(failed)?.file_name();
        let number = name.to_str().and_then(Segment::number_in);
        first = [first, number].into_iter().flatten().min();
    }
    let Some(number) = first else { return Ok(None) };
    let path = folder.join(Segment::name(number));
    start_of(&path).map(|start| start.map(|start| (path, start)))
}

/// Returns the beginning of a segment's file; `None` if the file is only prepared for later
/// records.
pub(crate) fn start_of(path: &Path) -> Result<Option<Segment>, StoreError> {
    let mut bytes = [0; Segment::BEGINNING_BYTES];
    let read = std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut bytes));
    match read {
        Ok(()) => Ok(Segment::beginning(&bytes)),
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(StoreError::local(path.display().to_string(), error)),
    }
}

/// Refuses a local log that is another than the store's.
pub(crate) fn check_local(
    store: &SegmentStore,
    log_id: u64,
    folder: &Path,
) -> Result<Option<Segment>, StoreError> {
    let Some((path, start)) = first_local(folder)? else { return Ok(None) };
    if start.log_id == log_id {
        return Ok(Some(start));
    }
    let because = format!("it is of the log {log_id:016x}, this is the log {:016x}", start.log_id);
    Err(StoreError::Differs { object: store.url().to_owned(), path, because })
}
