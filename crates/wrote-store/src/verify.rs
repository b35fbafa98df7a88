//! Verifies a store: fetches every object, and checks its checksum and each of its records.

use crate::blocking::blocking;
use crate::error::StoreError;
use crate::store::SegmentStore;
use crate::summary::temporary;
use serde::Serialize;
use serde_with::skip_serializing_none;
use wrote::log::Segment;

/// The findings of a verification.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct StoreVerified {
    /// Segments that were read.
    pub segments: u64,
    /// Segments whose checksum the store has.
    pub checksums: u64,
    /// Records that are whole.
    pub records: u64,
    /// Their bytes.
    pub record_bytes: u64,
    /// The sequence after the last record.
    pub end_sequence: u64,
    /// The damaged places.
    pub damage: Vec<StoreDamage>,
}

/// A damaged object, or a missing one.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct StoreDamage {
    /// Its URL.
    pub object: String,
    /// The first lost sequence.
    pub sequence: u64,
    /// The number of lost records, if it is known.
    pub records: Option<u64>,
    /// The damage in words.
    pub because: String,
}

/// Reads every object of a store and reports damage. Calls `watch` with the bytes read and the
/// bytes in the store. The temporary folder holds one segment at a time.
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
                2 => format!("segment {} is not there", before + 1),
                _ => format!("segments {} to {} are not there", before + 1, number - 1),
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
        let folder = temporary()?;
        let path = folder.path().join(Segment::name(number));
        match store.fetch_listed(number, listing.checksums_of(number), &path).await {
            Ok(fetched) => verified.checksums += u64::from(fetched.was_checked),
            Err(StoreError::Damaged { object, because }) => {
                verified.note(object, None, because);
                continue;
            }
            Err(error) => return Err(error),
        }
        let end = blocking(move || Ok(Segment::examine(&path)?)).await?;
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
    /// Compares the beginning of a segment with the end of the previous one.
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
            // The damage before this segment ends here.
            if let Some(damage) = self.damage.last_mut() {
                damage.records = Some(records);
            }
        } else {
            let because = format!(
                "begins with record {}, the segment before ends at {expected}",
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
