//! Fetches one segment from the store into a file, and compares its checksum.

use crate::content::{Checksum, Summing};
use crate::error::StoreError;
use crate::store::{Kept, SegmentStore};
use bytes::Bytes;
use futures_util::StreamExt;
use object_store::ObjectStoreExt;
use std::path::Path;
use tokio::io::AsyncWriteExt;

/// The number of times that an interrupted download is started again.
const TRIES: u32 = 3;

/// A fetched segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fetched {
    /// Its length.
    pub bytes: u64,
    /// Whether the store has its checksum; it was then correct.
    pub was_checked: bool,
}

impl SegmentStore {
    /// Fetches a segment into the file `to`, which must not exist, and compares its checksum.
    /// Memory holds only what the network delivers at once. The file appears as a whole.
    ///
    /// Fails with [`StoreError::Damaged`] if the checksum differs.
    pub async fn fetch(&self, number: u64, to: &Path) -> Result<Fetched, StoreError> {
        let listing = self.listing(number).await?;
        self.fetch_listed(number, listing.checksums_of(number), to).await
    }

    /// Fetches a segment as [`SegmentStore::fetch`] does. `named` are the checksums in names beside
    /// it: one, unless two logs were shipped to one URL.
    pub(crate) async fn fetch_listed(
        &self,
        number: u64,
        named: &[Checksum],
        to: &Path,
    ) -> Result<Fetched, StoreError> {
        let part = to.with_extension("part");
        let mut tries = 0;
        let (found, kept) = loop {
            tries += 1;
            match self.fetch_once(number, &part).await {
                Err(StoreError::Store { .. }) if tries < TRIES => {}
                fetched => break fetched?,
            }
        };
        let stated = kept.as_ref().map_or(named, std::slice::from_ref);
        if !stated.is_empty() && !stated.contains(&found.checksum()) {
            let because = format!(
                "its checksum is {}, and was {}: the store has changed it",
                found.checksum(),
                stated[0]
            );
            return Err(StoreError::Damaged { object: self.url_of(number), because });
        }
        let renamed = tokio::fs::rename(&part, to).await;
        renamed.map_err(|error| StoreError::local(to.display().to_string(), error))?;
        Ok(Fetched { bytes: found.bytes, was_checked: !stated.is_empty() })
    }

    async fn fetch_once(
        &self,
        number: u64,
        part: &Path,
    ) -> Result<(Summing, Option<Checksum>), StoreError> {
        let local = |error| StoreError::local(part.display().to_string(), error);
        let mut file = tokio::fs::File::create(part).await.map_err(local)?;
        let mut summing = Summing::default();
        let found = self.objects().get(&self.path_of(number)).await;
        let found = found.map_err(|error| StoreError::of_store(self.url_of(number), &error))?;
        let (bytes, kept) = (found.meta.size, Kept::of(&found.attributes));
        let mut stream = found.into_stream();
        while let Some(piece) = stream.next().await {
            let piece: Bytes =
                piece.map_err(|error| StoreError::of_store(self.url_of(number), &error))?;
            summing.add(&piece);
            file.write_all(&piece).await.map_err(local)?;
        }
        file.flush().await.map_err(local)?;
        if summing.bytes != bytes {
            let words = format!("broke off after {} of {bytes} bytes", summing.bytes);
            return Err(StoreError::Store { object: self.url_of(number), words });
        }
        Ok((summing, kept.checksum))
    }

    /// Computes an object's checksum by reading it.
    pub(crate) async fn checksum_by_reading(&self, number: u64) -> Result<Checksum, StoreError> {
        let failed = |error| StoreError::of_store(self.url_of(number), &error);
        let found = self.objects().get(&self.path_of(number)).await.map_err(failed)?;
        let mut stream = found.into_stream();
        let mut summing = Summing::default();
        while let Some(piece) = stream.next().await {
            summing.add(&piece.map_err(failed)?);
        }
        Ok(summing.checksum())
    }
}
