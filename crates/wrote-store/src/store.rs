//! A store of segments: the objects under one prefix, and their names.

use crate::error::StoreError;
use crate::place::{self, Place};
use futures_util::TryStreamExt;
use object_store::path::Path;
use object_store::{Attribute, ObjectStore, ObjectStoreExt};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use wrote::log::Segment;

/// The separator between a segment's name and its checksum.
const CHECKSUM: &str = ".xxh3-";

/// The key under which an object keeps its checksum. Some stores accept only letters and digits in
/// keys.
const CHECKSUM_KEY: &str = "wrotexxh3";
/// The key under which an object keeps the sequence after its last record.
const END_KEY: &str = "wroteend";

/// The sealed segments of one log, stored as objects under one prefix. Clones share the
/// connections.
#[derive(Clone)]
pub struct SegmentStore(Arc<Shared>);

struct Shared {
    store: Arc<dyn ObjectStore>,
    prefix: Path,
    /// The URL without a trailing slash.
    url: String,
    /// Whether the store keeps attributes with an object. If not, the name of a separate object
    /// states the checksum.
    keeps_attributes: AtomicBool,
}

/// The XXH3 checksum of a segment's content, 128 bits long, displayed as 32 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Checksum(pub(crate) u128);

impl Checksum {
    #[cfg(test)]
    pub(crate) fn of(bytes: &[u8]) -> Checksum {
        Checksum(xxhash_rust::xxh3::xxh3_128(bytes))
    }

    pub(crate) fn read(digits: &str) -> Option<Checksum> {
        let is_whole = digits.len() == 32 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        u128::from_str_radix(digits, 16).ok().filter(|_| is_whole).map(Checksum)
    }
}

impl fmt::Display for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// The length and the attributes of an object that was created by this program.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Kept {
    pub bytes: u64,
    pub checksum: Option<Checksum>,
    pub end_sequence: Option<u64>,
}

/// The names of the objects under a prefix.
#[derive(Clone, Debug, Default)]
pub(crate) struct Listing {
    /// The length of each segment in bytes, by its number.
    pub segments: BTreeMap<u64, u64>,
    pub checksums: BTreeMap<u64, Vec<Checksum>>,
}

impl SegmentStore {
    /// Opens the store to which a URL refers: `s3://bucket/prefix`, or `file:///path` for an
    /// existing folder. The settings for S3 come from the environment variables `AWS_*`: the keys,
    /// `AWS_ENDPOINT_URL`, `AWS_REGION`, and others that the crate `object_store` supports. Does
    /// not contact a server.
    ///
    /// Fails with [`StoreError::Url`] if the URL or a setting is not valid.
    pub fn open(url: &str) -> Result<SegmentStore, StoreError> {
        place::open(url, false).map(|place| SegmentStore::at(url, place))
    }

    /// Checks a URL and the settings of the environment, as [`SegmentStore::open_or_make`] does.
    /// Creates nothing, and contacts no server.
    pub fn check(url: &str) -> Result<(), StoreError> {
        place::check(url)
    }

    /// Opens the store like [`SegmentStore::open`], and creates the folder of a `file://` URL if it
    /// is missing.
    pub fn open_or_make(url: &str) -> Result<SegmentStore, StoreError> {
        place::open(url, true).map(|place| SegmentStore::at(url, place))
    }

    /// Returns a store that uses any implementation of the crate `object_store`, such as one in
    /// memory. Errors refer to it as `url`.
    pub fn of(store: Arc<dyn ObjectStore>, prefix: &str, url: &str) -> SegmentStore {
        SegmentStore::at(url, Place { store, prefix: Path::from(prefix), keeps_attributes: true })
    }

    fn at(url: &str, place: Place) -> SegmentStore {
        let Place { store, prefix, keeps_attributes } = place;
        SegmentStore(Arc::new(Shared {
            store,
            prefix,
            url: url.trim_end_matches('/').to_owned(),
            keeps_attributes: AtomicBool::new(keeps_attributes),
        }))
    }

    /// Returns the URL of the store.
    pub fn url(&self) -> &str {
        &self.0.url
    }

    /// Returns the URL of segment `number`.
    pub fn url_of(&self, number: u64) -> String {
        format!("{}/{}", self.0.url, Segment::name(number))
    }

    pub(crate) fn objects(&self) -> &dyn ObjectStore {
        &*self.0.store
    }

    pub(crate) fn path(&self, name: String) -> Path {
        self.0.prefix.clone().join(name)
    }

    pub(crate) fn path_of(&self, number: u64) -> Path {
        self.path(Segment::name(number))
    }

    pub(crate) fn keeps_attributes(&self) -> bool {
        self.0.keeps_attributes.load(Ordering::Relaxed)
    }

    pub(crate) fn lacks_attributes(&self) {
        self.0.keeps_attributes.store(false, Ordering::Relaxed);
    }

    /// Lists the names from segment `from` on, with one request per thousand names.
    pub(crate) async fn listing(&self, from: u64) -> Result<Listing, StoreError> {
        let prefix = Some(&self.0.prefix).filter(|prefix| !prefix.as_ref().is_empty());
        let objects = match from {
            0 | 1 => self.objects().list(prefix),
            _ => self.objects().list_with_offset(prefix, &self.path_of(from - 1)),
        };
        let failed = |error| StoreError::of_store(self.url().to_owned(), &error);
        let listing = objects.try_fold(Listing::default(), |mut listing, object| async move {
            let name = object.location.prefix_match(&self.0.prefix).and_then(|mut parts| {
                let name = parts.next()?;
                Name::read(name.as_ref()).filter(|_| parts.next().is_none())
            });
            match name {
                Some(Name::Segment(number)) if number >= from => {
                    listing.segments.insert(number, object.size);
                }
                Some(Name::Checksum(number, checksum)) if number >= from => {
                    listing.checksums.entry(number).or_default().push(checksum);
                }
                _ => {}
            }
            Ok(listing)
        });
        listing.await.map_err(failed)
    }

    /// Reads the first 64 bytes of a segment, and returns what they state.
    ///
    /// Fails with [`StoreError::Damaged`] if they are not the beginning of this segment.
    pub async fn start(&self, number: u64) -> Result<Segment, StoreError> {
        let range = 0..Segment::BEGINNING_BYTES as u64;
        let bytes = self.objects().get_range(&self.path_of(number), range).await;
        let bytes = bytes.map_err(|error| StoreError::of_store(self.url_of(number), &error))?;
        self.start_in(number, &bytes)
    }

    /// Returns what the first bytes of a segment state.
    pub(crate) fn start_in(&self, number: u64, bytes: &[u8]) -> Result<Segment, StoreError> {
        Segment::beginning(bytes).filter(|start| start.number == number).ok_or_else(|| {
            let because = "this object does not begin like this segment".to_owned();
            StoreError::Damaged { object: self.url_of(number), because }
        })
    }

    /// Returns the length and the attributes of a segment's object.
    pub(crate) async fn kept(&self, number: u64) -> Result<Kept, StoreError> {
        let options = object_store::GetOptions::new().with_head(true);
        let found = self.objects().get_opts(&self.path_of(number), options).await;
        let found = found.map_err(|error| StoreError::of_store(self.url_of(number), &error))?;
        Ok(Kept { bytes: found.meta.size, ..Kept::of(&found.attributes) })
    }
}

impl Listing {
    /// Returns the checksums of a segment that the names of other objects state.
    pub(crate) fn checksums_of(&self, number: u64) -> &[Checksum] {
        self.checksums.get(&number).map_or(&[], Vec::as_slice)
    }

    /// Returns the listing reduced to the names of one segment.
    pub(crate) fn only(&self, number: u64) -> Listing {
        let mut only = Listing::default();
        only.segments.extend(self.segments.get_key_value(&number));
        only.checksums.insert(number, self.checksums_of(number).to_vec());
        only
    }
}

impl Kept {
    pub(crate) fn of(attributes: &object_store::Attributes) -> Kept {
        let value = |key: &'static str| attributes.get(&Attribute::Metadata(key.into()));
        Kept {
            bytes: 0,
            checksum: value(CHECKSUM_KEY).and_then(|value| Checksum::read(value)),
            end_sequence: value(END_KEY).and_then(|value| value.parse().ok()),
        }
    }

    pub(crate) fn attributes(checksum: Checksum, end_sequence: u64) -> object_store::Attributes {
        object_store::Attributes::from_iter([
            (Attribute::Metadata(CHECKSUM_KEY.into()), checksum.to_string()),
            (Attribute::Metadata(END_KEY.into()), end_sequence.to_string()),
        ])
    }
}

impl fmt::Debug for SegmentStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SegmentStore").field(&self.0.url).finish()
    }
}

/// The meaning of an object's name, without the prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Name {
    /// A segment; the object has the bytes of the segment's file.
    Segment(u64),
    /// An empty object whose name states the checksum of a segment.
    Checksum(u64, Checksum),
}

impl Name {
    /// Parses a name; `None` if it was not created by this program.
    fn read(name: &str) -> Option<Name> {
        if let Some(number) = Segment::number_in(name) {
            return Some(Name::Segment(number));
        }
        let (segment, checksum) = name.split_once(CHECKSUM)?;
        Some(Name::Checksum(Segment::number_in(segment)?, Checksum::read(checksum)?))
    }
}

pub(crate) fn checksum_name(number: u64, checksum: Checksum) -> String {
    format!("{}{CHECKSUM}{checksum}", Segment::name(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_read_as_it_is_written_and_others_are_none() {
        let checksum = Checksum::of(b"a segment");
        for (name, read) in [
            (Segment::name(7), Name::Segment(7)),
            (checksum_name(7, checksum), Name::Checksum(7, checksum)),
        ] {
            assert_eq!(Name::read(&name), Some(read), "{name}");
            assert!(
                name >= Segment::name(7) && name < Segment::name(8),
                "sorts beside its segment"
            );
        }
        for other in [
            "lock",
            "7.segment",
            "00000000000000000007.segment.xxh3-zz",
            "manifest",
            "00000000000000000007.segment.staged-1",
        ] {
            assert_eq!(Name::read(other), None, "{other}");
        }
    }
}
