//! The content of a store: a summary of its segments, and the verification of every byte.

use crate::blocking;
use crate::error::StoreError;
use crate::segment;
use crate::store::{Listing, SegmentStore};
use futures_util::{StreamExt, TryStreamExt, stream};
use serde::Serialize;
use serde_with::skip_serializing_none;
use wrote::log::Segment;

/// The maximum number of requests in flight for the beginnings of segments.
const AT_ONCE: usize = 16;

/// A summary of the segments in a store.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct StoreSummary {
    /// The store's URL.
    pub url: String,
    /// The sequence of the first record in the store.
    pub first_sequence: u64,
    /// The sequence after the last record in the store. Every earlier record has been shipped.
    pub end_sequence: u64,
    /// The number of records in the store, including empty places.
    pub records: u64,
    /// The total length of the segments in bytes.
    pub bytes: u64,
    /// The segments in the store, in order.
    pub segments: Vec<StoredSummary>,
}

/// The figures of a segment in a store.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct StoredSummary {
    /// The number of the segment.
    #[serde(skip)]
    pub number: u64,
    /// The name of the segment.
    pub name: String,
    /// The sequence of the segment's first record.
    pub first_sequence: u64,
    /// The number of records in the segment, including empty places.
    pub records: u64,
    /// The length of the object in bytes.
    pub bytes: u64,
}

/// Returns a summary of a store, reading the first bytes of each segment.
///
/// Fails with [`StoreError::Empty`] if the URL has no segment.
pub async fn summary(store: &SegmentStore) -> Result<StoreSummary, StoreError> {
    let listing = store.listing(0).await?;
    let start = |(&number, &bytes): (&u64, &u64)| async move {
        store.start(number).await.map(|start| (start, bytes))
    };
    let starts: Vec<(Segment, u64)> =
        stream::iter(listing.segments.iter().map(start)).buffered(AT_ONCE).try_collect().await?;
    let Some((last, _)) = starts.last() else {
        return Err(StoreError::Empty { url: store.url().to_owned() });
    };
    let end_sequence = end_of(store, last.number, &listing).await?;
    let ends = starts.iter().skip(1).map(|(next, _)| next.first_sequence).chain([end_sequence]);
    let segments = starts.iter().zip(ends).map(|((start, bytes), end)| StoredSummary {
        number: start.number,
        name: Segment::name(start.number),
        bytes: *bytes,
        first_sequence: start.first_sequence,
        records: end.saturating_sub(start.first_sequence),
    });
    let segments: Vec<StoredSummary> = segments.collect();
    Ok(StoreSummary {
        url: store.url().to_owned(),
        first_sequence: starts[0].0.first_sequence,
        end_sequence,
        records: segments.iter().map(|segment| segment.records).sum(),
        bytes: segments.iter().map(|segment| segment.bytes).sum(),
        segments,
    })
}

/// Returns the sequence after the last record of a segment, which is kept with the object, or else
/// found by reading the segment.
async fn end_of(store: &SegmentStore, number: u64, listing: &Listing) -> Result<u64, StoreError> {
    if let Some(end_sequence) = store.kept(number).await?.end_sequence {
        return Ok(end_sequence);
    }
    let fetched = segment::fetch(store, number, listing).await?;
    blocking(move || Ok(Segment::examine(fetched.path(number))?.end_sequence)).await
}

/// The findings of a verification.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct StoreVerified {
    /// The number of segments that were read.
    pub segments: u64,
    /// The number of segments whose checksum the store has.
    pub checksums: u64,
    /// The number of intact records.
    pub records: u64,
    /// The total number of bytes in these records.
    pub record_bytes: u64,
    /// The sequence after the last record.
    pub end_sequence: u64,
    /// The damage that was found.
    pub damage: Vec<StoreDamage>,
}

/// A damaged or missing object.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct StoreDamage {
    /// The URL of the object.
    pub object: String,
    /// The sequence of the first lost record.
    pub sequence: u64,
    /// The number of lost records, if known.
    pub records: Option<u64>,
    /// A description of the damage.
    pub because: String,
}

/// Reads every object in a store and reports damage. Calls `watch` with the number of bytes read so
/// far and the number of bytes in the store. The temporary folder holds one segment at a time.
///
/// Fails with [`StoreError::Empty`] if the URL has no segment; damage is not an error.
pub async fn verify(
    store: &SegmentStore,
    watch: &mut (dyn FnMut(u64, u64) + Send),
) -> Result<StoreVerified, StoreError> {
    let listing = store.listing(0).await?;
    if listing.segments.is_empty() {
        return Err(StoreError::Empty { url: store.url().to_owned() });
    }
    let bytes_total = listing.segments.values().sum();
    let mut verified = StoreVerified::default();
    let (mut bytes_done, mut before, mut log_id): (u64, Option<u64>, Option<u64>) = (0, None, None);
    for (&number, &bytes) in &listing.segments {
        watch(bytes_done, bytes_total);
        if let Some(before) = before.filter(|before| before + 1 < number) {
            let because = match number - before {
                2 => format!("segment {} is missing", before + 1),
                _ => format!("segments {} to {} are missing", before + 1, number - 1),
            };
            verified.note(store.url_of(before + 1), None, because);
        }
        before = Some(number);
        bytes_done += bytes;
        verified.segments += 1;
        let start = match store.start(number).await {
            Ok(start) => start,
            Err(StoreError::Damaged { object, because }) => {
                verified.note(object, None, because);
                continue;
            }
            Err(error) => return Err(error),
        };
        if *log_id.get_or_insert(start.log_id) != start.log_id {
            let because = format!("a segment of another log, {:016x}", start.log_id);
            verified.note(store.url_of(number), None, because);
            continue;
        }
        verified.take_up(store, &start);
        let fetched = match segment::fetch(store, number, &listing).await {
            Ok(fetched) => fetched,
            Err(StoreError::Damaged { object, because }) => {
                verified.note(object, None, because);
                continue;
            }
            Err(error) => return Err(error),
        };
        verified.checksums += u64::from(fetched.was_checked);
        let end = blocking(move || Ok(Segment::examine(fetched.path(number))?)).await?;
        verified.records += end.records;
        verified.record_bytes += end.record_bytes;
        verified.end_sequence = end.end_sequence;
        if end.bytes < bytes && end.bytes.next_multiple_of(4096) < bytes {
            let because = format!("no whole record follows at byte {}", end.bytes);
            verified.note(store.url_of(number), None, because);
        }
    }
    watch(bytes_done, bytes_total);
    Ok(verified)
}

impl StoreVerified {
    /// Compares the beginning of a segment with the end of the previous one, and records the damage
    /// if they differ.
    fn take_up(&mut self, store: &SegmentStore, start: &Segment) {
        let expected = self.end_sequence;
        if self.segments == 1 || start.first_sequence == expected {
            self.end_sequence = start.first_sequence;
            return;
        }
        let is_known = self
            .damage
            .last()
            .is_some_and(|damage| damage.sequence == expected && damage.records.is_none());
        let records = start.first_sequence.saturating_sub(expected);
        if is_known {
            // The damage before this segment ends at the segment's beginning.
            if let Some(damage) = self.damage.last_mut() {
                damage.records = Some(records);
            }
        } else {
            let because = format!(
                "begins with record {}, but the segment before ends at {expected}",
                start.first_sequence
            );
            let (object, records) = (store.url_of(start.number), Some(records));
            self.damage.push(StoreDamage { object, sequence: expected, records, because });
        }
        self.end_sequence = start.first_sequence;
    }

    fn note(&mut self, object: String, records: Option<u64>, because: String) {
        let sequence = self.end_sequence;
        self.damage.push(StoreDamage { object, sequence, records, because });
    }
}
