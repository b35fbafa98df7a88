//! Options of a `Reader`.

use super::Reader;
use crate::engine::Options;
use crate::{Disk, Error, Ioengine};
use std::fs::File;
use std::path::Path;

/// Buffers are whole pages: every file takes direct transfers of these.
const BS_UNIT_BYTES: usize = 4096;

/// Options of a [`Reader`](crate::Reader), which [`ReaderOptions::open`] opens.
///
/// ```
/// use std::io::BufRead;
/// use wrote::Reader;
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("lines");
/// # wrote::write(&path, "one\ntwo\n")?;
/// let reader = Reader::options().bs(256 << 10).iodepth(4).open(&path)?; // 1 MiB of memory
/// assert_eq!(reader.lines().count(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct ReaderOptions {
    pub(super) direct: bool,
    pub(super) bs_bytes: usize,
    pub(super) iodepth: u32,
    pub(super) ioengine: Ioengine,
    /// The disk that it is on.
    pub(super) disk: Option<Disk>,
}

impl Default for ReaderOptions {
    /// A few long transfers keep a device busy.
    fn default() -> ReaderOptions {
        let ioengine = Ioengine::IoUring;
        ReaderOptions { direct: true, bs_bytes: 1 << 20, iodepth: 8, ioengine, disk: None }
    }
}

impl ReaderOptions {
    /// Sets whether the page cache is bypassed if it does not hold the file; true by default.
    /// Otherwise the file is in the cache afterwards, for the next reader.
    pub fn direct(self, direct: bool) -> ReaderOptions {
        ReaderOptions { direct, ..self }
    }

    /// Sets the bytes of one direct read, and of one buffer; 1 MiB by default. Rounded up to a
    /// multiple of 4096.
    pub fn bs(self, bytes: usize) -> ReaderOptions {
        ReaderOptions { bs_bytes: bytes.max(1).next_multiple_of(BS_UNIT_BYTES), ..self }
    }

    /// Sets the number of buffers of direct reads; 8 by default, at least 2. The caller uses one,
    /// and the others are read ahead.
    pub fn iodepth(self, iodepth: u32) -> ReaderOptions {
        ReaderOptions { iodepth: iodepth.clamp(2, Options::IODEPTH_MAX), ..self }
    }

    /// Reads by the method of a disk's engine ([`Options`]), or from its simulated disk. The engine
    /// and the buffers are the reader's own.
    pub fn on(self, disk: &Disk) -> ReaderOptions {
        ReaderOptions { disk: Some(disk.clone()), ..self }
    }

    /// Opens the file.
    ///
    /// # Errors
    ///
    /// [`Error::File`] with the kernel's message; [`Error::Refused`] for a folder. A refused
    /// io_uring or `O_DIRECT` is a fallback, not an error.
    pub fn open(self, path: impl AsRef<Path>) -> Result<Reader, Error> {
        Reader::open_by(self, path.as_ref())
    }

    /// Reads a file opened by the caller, from its current position. `Reader::from` does the same
    /// with the default options. A folder or a write-only file fails at the first read.
    pub fn from_file(self, file: File) -> Reader {
        Reader::of_file(self, file)
    }
}
