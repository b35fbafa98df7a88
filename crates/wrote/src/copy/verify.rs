//! Whether what is on the disk is what was to be copied there.

use super::progress::Progress;
use super::stream::{Cut, End, checksum_of};
use crate::{Engine, Error};
use rustix::fs::{Advice, fadvise};

/// Reads the file back from the disk and compares its checksum with `wanted`.
///
/// Directly, or, where the file system can't, after its pages were dropped from the page cache: for
/// that it is flushed first, since a page that is not on the disk yet is not dropped
/// (`posix_fadvise(2)`).
///
/// # Errors
///
/// [`Error::Differs`], besides those of a flush and a read.
pub(crate) fn read_back(
    engine: &mut Engine,
    file: End,
    cut: Cut,
    wanted: u128,
    progress: &mut Progress,
) -> Result<(), Error> {
    engine.flush(file.file).map_err(|error| error.about(file.named))?;
    if let Some(descriptor) = engine.descriptor(file.file) {
        // Where nothing can be dropped, as in a tmpfs, memory is all that there is.
        let _ = fadvise(descriptor, 0, None, Advice::DontNeed);
    }
    let found = checksum_of(engine, file, cut, progress)?;
    if found == wanted {
        return Ok(());
    }
    let because = format!(
        "was read back otherwise than it was written: XXH3 {found:032x}, not {wanted:032x}"
    );
    Err(Error::Differs { path: file.named.to_owned(), because })
}
