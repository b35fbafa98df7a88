//! The shipper, which puts every sealed segment of a folder into the store, in order.

use crate::blocking;
use crate::error::StoreError;
use crate::segment;
use crate::store::{Listing, SegmentStore};
use std::path::{Path, PathBuf};
use wrote::log::Segment;

/// The maximum length of a segment that can be shipped, in bytes: twice the default length of a
/// segment. Each segment is sent to the store in one request, from memory.
pub const SEGMENT_BYTES_MAX: u64 = 128 << 20;

/// The work that a shipper has done so far, and the end of the log in the store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Shipped {
    /// The number of segments that this shipper has created in the store.
    pub segments: u64,
    /// The total length of these segments in bytes.
    pub bytes: u64,
    /// The number of segments that already existed, from an earlier run or from another shipper of
    /// this log.
    pub were_there: u64,
    /// The sequence before which every record in the folder is certainly in the store.
    pub end_sequence: u64,
    /// The number of sealed segments that the last pass found in the folder, and that are not known
    /// to be in the store yet.
    pub waiting: u64,
}

/// The progress of a pass, reported after each segment.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ShipProgress {
    /// The work so far.
    pub shipped: Shipped,
    /// The number of bytes that this pass has shipped.
    pub bytes_done: u64,
    /// The number of bytes that this pass has to ship.
    pub bytes_total: u64,
}

/// A shipper of the sealed segments in one folder to one store.
///
/// A shipper takes no lock, so a writer may be active in this process or another one. Segments are
/// shipped in order, each of them once. The only state of a shipper is in the names in the store,
/// so a shipper can be killed, and another one resumes from there. Two shippers of the same log do
/// not interfere with each other.
#[derive(Debug)]
pub struct Shipper {
    store: SegmentStore,
    folder: PathBuf,
    /// The random number of the log that was last found in the folder.
    log_id: Option<u64>,
    /// The number of the first segment that may be missing in the store; `None` until the store has
    /// been listed.
    next: Option<u64>,
    shipped: Shipped,
}

impl Shipper {
    /// Creates a shipper for the log in `folder`, without accessing the store.
    ///
    /// Fails if the folder has no log.
    pub fn new(store: SegmentStore, folder: impl AsRef<Path>) -> Result<Shipper, StoreError> {
        let folder = folder.as_ref().to_owned();
        Segment::sealed(&folder, u64::MAX, 0)?;
        Ok(Shipper { store, folder, log_id: None, next: None, shipped: Shipped::default() })
    }

    /// Returns the work done so far.
    pub fn shipped(&self) -> Shipped {
        self.shipped
    }

    /// Ships every segment that is sealed now, and returns when the last one is in the store. All
    /// records before `durable_sequence` must be known to be durable; pass 0 if the caller knows of
    /// none.
    ///
    /// Fails with [`StoreError::TooLong`], before shipping anything, if a segment is longer than
    /// [`SEGMENT_BYTES_MAX`].
    ///
    /// After an error, including a refusal by the store, a later call continues. Dropping the
    /// future cancels the current request; the next call finds out whether that request succeeded.
    pub async fn pass(
        &mut self,
        durable_sequence: u64,
        progress: &mut (dyn FnMut(ShipProgress) + Send),
    ) -> Result<(), StoreError> {
        let from = self.next.unwrap_or(1);
        let local = self.list(from, durable_sequence).await?;
        self.shipped.waiting = local.len() as u64;
        let Some(first) = local.first() else { return Ok(()) };
        refuse_long(&local)?;
        if self.log_id.replace(first.log_id) != Some(first.log_id) {
            // Another log may have replaced the one that was shipped.
            (self.next, self.shipped.end_sequence) = (None, 0);
        }
        let stored = match self.next {
            Some(next) if first.number > next => {
                return Err(self.missing(next, first.number - 1));
            }
            Some(_) => Listing::default(),
            None => self.look(&local).await?,
        };
        let is_there = |segment: &Segment| stored.segments.contains_key(&segment.number);
        let bytes_total = local.iter().filter(|segment| !is_there(segment)).map(|own| own.bytes);
        let (mut bytes_done, bytes_total) = (0, bytes_total.sum());
        progress(ShipProgress { shipped: self.shipped, bytes_done, bytes_total });
        for segment in &local {
            if is_there(segment) {
                self.shipped.were_there += 1;
            } else {
                if segment::put(&self.store, segment).await? {
                    self.shipped.segments += 1;
                    self.shipped.bytes += segment.bytes;
                } else {
                    self.shipped.were_there += 1;
                }
                bytes_done += segment.bytes;
            }
            self.next = Some(segment.number + 1);
            self.shipped.end_sequence = segment.end_sequence;
            self.shipped.waiting -= 1;
            progress(ShipProgress { shipped: self.shipped, bytes_done, bytes_total });
        }
        Ok(())
    }

    async fn list(&self, from: u64, durable_sequence: u64) -> Result<Vec<Segment>, StoreError> {
        let folder = self.folder.clone();
        blocking(move || Ok(Segment::sealed(folder, from, durable_sequence)?)).await
    }

    /// Lists the store. Fails unless the store is empty or its segments belong to this log.
    async fn look(&self, local: &[Segment]) -> Result<Listing, StoreError> {
        let first = &local[0];
        let number = first.number;
        let stored = self.store.listing(number.saturating_sub(1)).await?;
        let Some((&last, _)) = stored.segments.last_key_value() else {
            if number > 1 {
                let stored = self.store.listing(0).await?;
                if let Some((&last, _)) = stored.segments.last_key_value() {
                    return Err(self.missing(last + 1, number - 1));
                }
            }
            segment::try_to_create(&self.store).await?;
            return Ok(stored);
        };
        let start = self.store.start(last).await?;
        if start.log_id != first.log_id {
            let because = format!(
                "it belongs to log {:016x}, and this is log {:016x}",
                start.log_id, first.log_id
            );
            let path = first.path.clone();
            return Err(StoreError::Differs { object: self.store.url_of(last), path, because });
        }
        let mut common = None;
        for segment in local {
            match stored.segments.get(&segment.number) {
                Some(&bytes) if bytes != segment.bytes => {
                    return Err(segment::differs(&self.store, segment, bytes));
                }
                Some(_) => common = Some(segment),
                None => {}
            }
        }
        // This one check is enough: each segment's header identifies the previous segment, and each
        // was checked before the next one was shipped.
        if let Some(segment) = common {
            segment::judge_by_content(&self.store, segment).await?;
        }
        Ok(stored)
    }

    fn missing(&self, first: u64, last: u64) -> StoreError {
        StoreError::Missing {
            url: self.store.url().to_owned(),
            folder: self.folder.clone(),
            numbers: (first, last),
        }
    }
}

fn refuse_long(segments: &[Segment]) -> Result<(), StoreError> {
    match segments.iter().find(|segment| segment.bytes > SEGMENT_BYTES_MAX) {
        Some(Segment { path, bytes, .. }) => {
            Err(StoreError::TooLong { path: path.clone(), bytes: *bytes })
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wrote::{Log, SyncPolicy};

    #[test]
    fn a_segment_of_more_than_128_mib_is_refused_and_one_of_128_mib_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let options = Log::options().sync(SyncPolicy::Always).buffers(2).buffer_bytes(4096);
        let log = options.segment_bytes(16 << 10).open(folder.path()).unwrap();
        for _ in 0..40 {
            log.append(&[7; 1000]).unwrap().wait().unwrap();
        }
        log.close().unwrap();
        let mut sealed = Segment::sealed(folder.path(), 1, 0).unwrap();
        sealed[1].bytes = SEGMENT_BYTES_MAX;
        refuse_long(&sealed).unwrap();
        sealed[1].bytes += 1;
        let refused = refuse_long(&sealed).unwrap_err();
        assert!(!refused.is_passing());
        let (path, refused) = (sealed[1].path.display().to_string(), refused.to_string());
        assert!(refused.starts_with(&path) && refused.lines().count() == 1, "{refused}");
    }
}
