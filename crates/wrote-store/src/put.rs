//! Puts one segment into the store: creates it under its number, or compares the existing object.

use crate::blocking::blocking;
use crate::content::{Checksum, Content, Summing, checksum_of};
use crate::error::StoreError;
use crate::names::{checksum_name, staged_name};
use crate::store::{Kept, SegmentStore};
use bytes::Bytes;
use object_store::path::Path;
use object_store::{
    Error, MultipartUpload, ObjectStoreExt, PutMode, PutOptions, PutPayload, UploadPart,
};
use std::hash::{BuildHasher, Hasher, RandomState};
use wrote::log::Segment;

/// The bytes of a part of a long segment. S3 accepts 10,000 parts, of at least 5 MiB.
const PART_BYTES: u64 = 16 << 20;

/// The most bytes of a segment: S3 copies no longer object in one request.
const SEGMENT_BYTES_MAX: u64 = 5 << 30;

/// How a segment got into the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Put {
    /// This call has created the object.
    Created,
    /// The object existed with the same bytes, from an earlier call whose answer was lost, or from
    /// another process that ships this log.
    WasThere,
}

impl SegmentStore {
    /// Puts a sealed segment into the store, after a check of each of its records. The store must
    /// not have an object of that name: none is ever replaced. An existing object counts as this
    /// one if it has the same bytes.
    ///
    /// A segment of up to 128 MiB is one request, from memory. A longer one, up to 5 GiB, goes to
    /// an object of another name in parts of 16 MiB, and is copied to its own name by a request
    /// that replaces nothing.
    ///
    /// Fails with [`StoreError::Differs`] if the store holds other bytes under that name.
    pub async fn put(&self, segment: &Segment) -> Result<Put, StoreError> {
        if segment.bytes > SEGMENT_BYTES_MAX {
            let because =
                format!("{} bytes are more than 5 GiB, the most of a segment", segment.bytes);
            return Err(StoreError::TooLong { path: segment.path.clone(), because });
        }
        let (created, checksum) = match segment.bytes <= self.one_put_bytes_max() {
            true => self.put_at_once(segment).await?,
            false => self.put_in_parts(segment).await?,
        };
        match created {
            Ok(()) => Ok(Put::Created),
            Err(Error::AlreadyExists { .. }) => {
                self.judge(segment, checksum).await.map(|()| Put::WasThere)
            }
            Err(error) => Err(StoreError::of_store(self.url_of(segment.number), &error)),
        }
    }

    async fn put_at_once(
        &self,
        segment: &Segment,
    ) -> Result<(Result<(), Error>, Checksum), StoreError> {
        let own = segment.clone();
        let read = blocking(move || {
            let (mut content, mut summing) = (Content::checked(&own)?, Summing::default());
            let mut pieces = Vec::new();
            loop {
                let piece = content.next(&own.path)?;
                if piece.is_empty() {
                    return Ok((pieces, summing.checksum()));
                }
                summing.add(&piece);
                pieces.push(piece);
            }
        });
        let (pieces, checksum) = read.await?;
        let payload = PutPayload::from_iter(pieces);
        if self.keeps_attributes() {
            let attributes = Kept::attributes(checksum, segment.end_sequence);
            let options = PutOptions { mode: PutMode::Create, attributes, ..Default::default() };
            match self.create(segment, payload.clone(), options).await {
                Err(Error::NotImplemented { .. } | Error::NotSupported { .. }) => {
                    self.lacks_attributes();
                }
                created => return Ok((created, checksum)),
            }
        }
        self.mark(segment, checksum).await?;
        let options = PutOptions { mode: PutMode::Create, ..Default::default() };
        Ok((self.create(segment, payload, options).await, checksum))
    }

    async fn create(
        &self,
        segment: &Segment,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<(), Error> {
        let path = self.path_of(segment.number);
        self.objects().put_opts(&path, payload, options).await.map(drop)
    }

    /// Creates an empty object whose name is the checksum, before the segment itself.
    async fn mark(&self, segment: &Segment, checksum: Checksum) -> Result<(), StoreError> {
        let number = segment.number;
        let path = self.path(checksum_name(number, checksum));
        let put = self.objects().put(&path, PutPayload::new()).await;
        put.map(drop).map_err(|error| StoreError::of_store(self.url_of(number), &error))
    }

    async fn put_in_parts(
        &self,
        segment: &Segment,
    ) -> Result<(Result<(), Error>, Checksum), StoreError> {
        let number = segment.number;
        let staged = self.path(staged_name(number, RandomState::new().build_hasher().finish()));
        let failed = |error: Error| StoreError::of_store(self.url_of(number), &error);
        let mut upload = self.objects().put_multipart(&staged).await.map_err(failed)?;
        let checksum = match self.upload(segment, &mut *upload).await {
            Ok(checksum) => checksum,
            Err(error) => {
                // The remaining parts take space, but do not disturb readers.
                let _ = upload.abort().await;
                return Err(error);
            }
        };
        let created = self.publish(segment, checksum, &staged).await;
        let _ = self.objects().delete(&staged).await;
        created.map(|created| (created, checksum))
    }

    /// Gives the segment its final name, after its checksum has one.
    async fn publish(
        &self,
        segment: &Segment,
        checksum: Checksum,
        staged: &Path,
    ) -> Result<Result<(), Error>, StoreError> {
        // A copy keeps no attributes.
        self.mark(segment, checksum).await?;
        let path = self.path_of(segment.number);
        match self.objects().copy_if_not_exists(staged, &path).await {
            Err(Error::NotSupported { .. } | Error::NotImplemented { .. }) => {
                let because = format!(
                    "this store copies no object without replacing another, so it takes segments \
                     of up to {} bytes",
                    self.one_put_bytes_max()
                );
                Err(StoreError::TooLong { path: segment.path.clone(), because })
            }
            copied => Ok(copied),
        }
    }

    /// Sends the parts one after the other: memory holds one.
    async fn upload(
        &self,
        segment: &Segment,
        upload: &mut dyn MultipartUpload,
    ) -> Result<Checksum, StoreError> {
        let failed = |error: Error| StoreError::of_store(self.url_of(segment.number), &error);
        let own = segment.clone();
        let mut content = blocking(move || Content::checked(&own)).await?;
        let mut summing = Summing::default();
        loop {
            let path = segment.path.clone();
            let (read, pieces) = blocking(move || {
                let (mut pieces, mut bytes): (Vec<Bytes>, u64) = (Vec::new(), 0);
                while bytes < PART_BYTES {
                    let piece = content.next(&path)?;
                    if piece.is_empty() {
                        break;
                    }
                    bytes += piece.len() as u64;
                    pieces.push(piece);
                }
                Ok((content, pieces))
            })
            .await?;
            content = read;
            if pieces.is_empty() {
                break;
            }
            pieces.iter().for_each(|piece| summing.add(piece));
            let part: UploadPart = upload.put_part(PutPayload::from_iter(pieces));
            part.await.map_err(failed)?;
        }
        upload.complete().await.map_err(failed)?;
        Ok(summing.checksum())
    }

    /// Compares the object of the segment's name with the local bytes.
    ///
    /// Fails with [`StoreError::Differs`] if they are not the same.
    pub(crate) async fn judge_by_content(&self, segment: &Segment) -> Result<(), StoreError> {
        let own = segment.clone();
        let checksum = blocking(move || checksum_of(&own)).await?;
        self.judge(segment, checksum).await
    }

    async fn judge(&self, segment: &Segment, own: Checksum) -> Result<(), StoreError> {
        let number = segment.number;
        let kept = self.kept(number).await?;
        if kept.bytes != segment.bytes {
            return Err(self.differs(segment, kept.bytes));
        }
        let theirs = match kept.checksum {
            Some(checksum) => checksum,
            None => self.checksum_by_reading(number).await?,
        };
        if theirs == own {
            return Ok(());
        }
        let because = format!("its checksum is {theirs}, the segment's {own}");
        let (object, path) = (self.url_of(number), segment.path.clone());
        Err(StoreError::Differs { object, path, because })
    }

    pub(crate) fn differs(&self, segment: &Segment, bytes: u64) -> StoreError {
        StoreError::Differs {
            object: self.url_of(segment.number),
            path: segment.path.clone(),
            because: format!("it has {bytes} bytes, the segment {}", segment.bytes),
        }
    }
}
