//! The ways by which a file's bytes are copied.

use crate::{Engine, FileId};

/// The way by which the bytes were copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// Blocks are shared: no bytes were moved.
    Reflink,
    /// The file system's server moved them (`copy_file_range(2)`).
    CopyFileRange,
    /// Read, and written past the page cache.
    Direct,
    /// Read, and written through the page cache: for a short file, or where the file system takes
    /// no direct transfers.
    Cached,
}

/// Returns how the engine has written the file, as far as is known now.
pub(super) fn transferred(engine: &Engine, file: FileId) -> Method {
    if engine.is_direct(file) { Method::Direct } else { Method::Cached }
}
