//! The transfer of one segment: reading and checking it in the folder, putting it into the store,
//! fetching it from there, and comparing it by its checksum.

use crate::blocking;
use crate::error::StoreError;
use crate::store::{Checksum, Kept, Listing, SegmentStore, checksum_name};
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use object_store::{Error, ObjectStoreExt, PutMode, PutOptions, PutPayload};
use std::fs::Metadata;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use tokio::io::AsyncWriteExt;
use wrote::log::Segment;
use xxhash_rust::xxh3::Xxh3;

/// The number of bytes read at once.
const PIECE_BYTES: u64 = 1 << 20;

/// The maximum number of attempts at a download.
const TRIES: u32 = 3;

/// Returns the content of a sealed segment, which is its bytes up to the end of the last batch, and
/// their checksum, after checking every record. Blocks.
fn content(segment: &Segment) -> Result<(PutPayload, Checksum), StoreError> {
    let failed = |error| StoreError::local(segment.path.display().to_string(), error);
    let mut file = segment.open()?;
    segment.check()?;
    // A repair may have replaced the file under this name.
    let named = segment.open()?.metadata();
    let identity = |metadata: Metadata| (metadata.dev(), metadata.ino(), metadata.mtime_nsec());
    match (file.metadata().map(identity), named.map(identity)) {
        (Ok(own), Ok(named)) if own == named => {}
        _ => {
            return Err(failed(std::io::Error::other("the file was replaced while it was read")));
        }
    }
    let (mut pieces, mut summing) = (Vec::new(), Xxh3::new());
    for begin in (0..segment.bytes).step_by(PIECE_BYTES as usize) {
        let mut piece = BytesMut::zeroed(PIECE_BYTES.min(segment.bytes - begin) as usize);
        file.read_exact(&mut piece).map_err(failed)?;
        summing.update(&piece);
        pieces.push(piece.freeze());
    }
    Ok((PutPayload::from_iter(pieces), Checksum(summing.digest128())))
}

/// A fetched segment in a temporary folder, which is removed when the value is dropped.
#[derive(Debug)]
pub(crate) struct Fetched {
    pub folder: TempDir,
    /// Whether the store has a checksum of the segment. If so, it was correct.
    pub was_checked: bool,
}

impl Fetched {
    /// Returns the path of segment `number`.
    pub(crate) fn path(&self, number: u64) -> PathBuf {
        self.folder.path().join(Segment::name(number))
    }
}

/// Puts a sealed segment into the store in one request, from memory, after checking each of its
/// records. No object is ever replaced. If an object with the same bytes exists, from an earlier
/// call whose answer was lost or from another process that ships this log, it is accepted as this
/// segment. Returns whether this call has created the object.
///
/// Fails with [`StoreError::Differs`] if the store has different bytes under that name.
pub(crate) async fn put(store: &SegmentStore, segment: &Segment) -> Result<bool, StoreError> {
    let own = segment.clone();
    let (payload, checksum) = blocking(move || content(&own)).await?;
    match create(store, segment, payload, checksum).await? {
        Ok(()) => Ok(true),
        Err(Error::AlreadyExists { .. }) => judge(store, segment, checksum).await.map(|()| false),
        Err(error) => Err(StoreError::of_store(store.url_of(segment.number), &error)),
    }
}

/// Tests, with an empty object that is not removed, whether the store refuses to create an object
/// that exists. Costs one request if the empty object exists, and two if not.
pub(crate) async fn try_to_create(store: &SegmentStore) -> Result<(), StoreError> {
    let path = store.path("if-none-match".to_owned());
    let refused = |words: &str| {
        Err(StoreError::ReplacesObjects { url: store.url().to_owned(), words: words.to_owned() })
    };
    for _ in 0..2 {
        let options = PutOptions { mode: PutMode::Create, ..Default::default() };
        match store.objects().put_opts(&path, PutPayload::new(), options).await {
            Ok(_) => {}
            Err(Error::AlreadyExists { .. }) => return Ok(()),
            Err(Error::NotImplemented { .. } | Error::NotSupported { .. }) => {
                return refused("the store refuses If-None-Match");
            }
            Err(error) if error.to_string().contains("501 Not Implemented") => {
                return refused("the store refuses If-None-Match (501)");
            }
            Err(error) => return Err(StoreError::of_store(store.url().to_owned(), &error)),
        }
    }
    refused("the store ignores If-None-Match")
}

async fn create(
    store: &SegmentStore,
    segment: &Segment,
    payload: PutPayload,
    checksum: Checksum,
) -> Result<Result<(), Error>, StoreError> {
    let number = segment.number;
    let path = store.path_of(number);
    if store.keeps_attributes() {
        let attributes = Kept::attributes(checksum, segment.end_sequence);
        let options = PutOptions { mode: PutMode::Create, attributes, ..Default::default() };
        match store.objects().put_opts(&path, payload.clone(), options).await {
            Err(Error::NotImplemented { .. } | Error::NotSupported { .. }) => {
                store.lacks_attributes();
            }
            created => return Ok(created.map(drop)),
        }
    }
    // An empty object whose name states the checksum is created before the segment itself.
    let mark = store.path(checksum_name(number, checksum));
    let marked = store.objects().put(&mark, PutPayload::new()).await;
    marked.map_err(|error| StoreError::of_store(store.url_of(number), &error))?;
    let options = PutOptions { mode: PutMode::Create, ..Default::default() };
    Ok(store.objects().put_opts(&path, payload, options).await.map(drop))
}

/// Compares the object that has the segment's name with the local bytes.
///
/// Fails with [`StoreError::Differs`] if they differ.
pub(crate) async fn judge_by_content(
    store: &SegmentStore,
    segment: &Segment,
) -> Result<(), StoreError> {
    let own = segment.clone();
    let (_, checksum) = blocking(move || content(&own)).await?;
    judge(store, segment, checksum).await
}

async fn judge(store: &SegmentStore, segment: &Segment, own: Checksum) -> Result<(), StoreError> {
    let number = segment.number;
    let kept = store.kept(number).await?;
    if kept.bytes != segment.bytes {
        return Err(differs(store, segment, kept.bytes));
    }
    let theirs = match kept.checksum {
        Some(checksum) => checksum,
        None => fetch_to(store, number, &mut tokio::io::sink(), Path::new("")).await?.0,
    };
    if theirs == own {
        return Ok(());
    }
    let because = format!("its checksum is {theirs}, but the segment's is {own}");
    let (object, path) = (store.url_of(number), segment.path.clone());
    Err(StoreError::Differs { object, path, because })
}

pub(crate) fn differs(store: &SegmentStore, segment: &Segment, bytes: u64) -> StoreError {
    StoreError::Differs {
        object: store.url_of(segment.number),
        path: segment.path.clone(),
        because: format!("it has {bytes} bytes, but the segment has {}", segment.bytes),
    }
}

/// Fetches a segment into a temporary folder, and compares its checksum with the one kept with the
/// object, or else with the checksums that the names of other objects state. There is only one such
/// checksum, unless two logs were shipped to the same URL. Memory holds only what the network
/// delivers at once.
///
/// Fails with [`StoreError::Damaged`] if the checksum differs.
pub(crate) async fn fetch(
    store: &SegmentStore,
    number: u64,
    listing: &Listing,
) -> Result<Fetched, StoreError> {
    let made = tempfile::Builder::new().prefix("wrote-store-").tempdir();
    let folder = made.map_err(|error| StoreError::local("a temporary folder", error))?;
    let mut fetched = Fetched { folder, was_checked: false };
    let path = fetched.path(number);
    let mut tries = 0;
    let (found, kept) = loop {
        tries += 1;
        let created = tokio::fs::File::create(&path).await;
        let mut file = created.map_err(|error| of_file(&path, error))?;
        match fetch_to(store, number, &mut file, &path).await {
            Err(StoreError::Store { .. }) if tries < TRIES => {}
            fetched => break fetched?,
        }
    };
    let stated = match &kept {
        Some(kept) => std::slice::from_ref(kept),
        None => listing.checksums_of(number),
    };
    if !stated.is_empty() && !stated.contains(&found) {
        let because =
            format!("its checksum is {found}, but was {}: the store has changed it", stated[0]);
        return Err(StoreError::Damaged { object: store.url_of(number), because });
    }
    fetched.was_checked = !stated.is_empty();
    Ok(fetched)
}

/// Downloads a segment in a single attempt into `file`, whose path is `path`. Returns the checksum
/// of its bytes, and the one that the store keeps with the object.
async fn fetch_to(
    store: &SegmentStore,
    number: u64,
    file: &mut (impl AsyncWriteExt + Unpin),
    path: &Path,
) -> Result<(Checksum, Option<Checksum>), StoreError> {
    let failed = |error| StoreError::of_store(store.url_of(number), &error);
    let found = store.objects().get(&store.path_of(number)).await.map_err(failed)?;
    let (bytes, kept) = (found.meta.size, Kept::of(&found.attributes));
    let (mut stream, mut summing, mut received) = (found.into_stream(), Xxh3::new(), 0);
    while let Some(piece) = stream.next().await {
        let piece: Bytes = piece.map_err(failed)?;
        summing.update(&piece);
        received += piece.len() as u64;
        file.write_all(&piece).await.map_err(|error| of_file(path, error))?;
    }
    file.flush().await.map_err(|error| of_file(path, error))?;
    if received != bytes {
        let words = format!("ended after {received} of {bytes} bytes");
        return Err(StoreError::Store { object: store.url_of(number), words });
    }
    Ok((Checksum(summing.digest128()), kept.checksum))
}

fn of_file(path: &Path, error: std::io::Error) -> StoreError {
    StoreError::local(path.display().to_string(), error)
}
