//! A file saved whole: after a crash at any moment there is all of the old content or all of the new.

use crate::{Engine, Error, Sync};
use std::path::Path;

/// Replaces the file at `path`, or makes it, with `bytes`.
///
/// # Errors
///
/// With the kernel's words; the old file is then whole.
pub fn write(path: impl AsRef<Path>, bytes: impl AsRef<[u8]>) -> Result<(), Error> {
    write_with(Sync::Always, path, bytes)
}

/// As [`write`]; with [`Sync::No`] nothing is synced.
///
/// # Errors
///
/// Those of [`write`].
pub fn write_with(
    _sync: Sync,
    _path: impl AsRef<Path>,
    _bytes: impl AsRef<[u8]>,
) -> Result<(), Error> {
    todo!()
}

/// As [`write_with`], through an engine of the caller's: many saves then share what it costs to make
/// one, and a save can be tried on a [`crate::Sim`].
///
/// # Errors
///
/// Those of [`write`].
pub fn write_through(
    _engine: &mut Engine,
    _sync: Sync,
    _path: &Path,
    _bytes: &[u8],
) -> Result<(), Error> {
    todo!()
}

/// Reads the whole file.
///
/// # Errors
///
/// With the kernel's words.
pub fn read(_path: impl AsRef<Path>) -> Result<Vec<u8>, Error> {
    todo!()
}
