//! Logs in an object store: shipped there, read and checked there.

mod figures;
mod records;
mod ship;

pub(super) use figures::{stat, verify};
pub(super) use records::source;
pub(super) use ship::ship;

use crate::library::of_library;
use wrote_result::Error;
use wrote_store::{SegmentStore, StoreError};

/// Opens a log's store for reading.
fn open(url: &str) -> Result<SegmentStore, Error> {
    SegmentStore::open(url).map_err(of_store)
}

/// The exit code of an error of the store.
fn of_store(error: StoreError) -> Error {
    match error {
        StoreError::Interrupted => Error::Interrupted,
        StoreError::Log(error) => of_library(&error),
        StoreError::Url { .. } | StoreError::Empty { .. } => Error::Usage(error.to_string()),
        other => Error::Failed(other.to_string()),
    }
}
