//! Damage: a place at which a log cannot be read, in a summary and as an error.

use crate::Error;
use crate::engine::folder_of;
use std::path::{Path, PathBuf};

/// A position at which a log can't be read.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Damage {
    /// The segment.
    pub path: PathBuf,
    /// The first damaged byte.
    pub offset_bytes: u64,
    /// The first record lost there.
    pub sequence: u64,
    /// The number of lost records, if known.
    pub records: Option<u64>,
    /// A description of the damage.
    pub because: String,
}

impl Damage {
    /// Makes the description of damage at a byte of a segment.
    pub(super) fn new(
        path: &Path,
        offset_bytes: u64,
        sequence: u64,
        records: Option<u64>,
        because: impl Into<String>,
    ) -> Damage {
        Damage { path: path.to_owned(), offset_bytes, sequence, records, because: because.into() }
    }
}

/// Creates the error for unreadable records although they, or later ones, were durable.
pub(super) fn error(path: &Path, offset: u64, what: &str) -> Error {
    let folder = folder_of(path).display();
    let because =
        format!("{what}; run `wrote log verify {folder}`, then `wrote log repair {folder}`");
    Error::Damaged { path: path.to_owned(), offset, because }
}
