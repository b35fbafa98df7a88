//! Options of a `Reader`.

use super::Reader;
use super::plain::Plain;
use super::source::Source;
use crate::engine::Options;
use crate::error::Tried;
use crate::{Action, Engine, Error, Ioengine, Sim};
use std::fs::File;
use std::path::Path;

/// Buffers are whole pages: every file takes direct transfers of these.
const BS_UNIT_BYTES: usize = 4096;

/// Options of a [`Reader`], which [`ReaderOptions::open`] opens.
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
}

impl Default for ReaderOptions {
    /// A few long transfers keep a device busy.
    fn default() -> ReaderOptions {
        let ioengine = Ioengine::IoUring;
        ReaderOptions { direct: true, bs_bytes: 1 << 20, iodepth: 8, ioengine }
    }
}

impl ReaderOptions {
    /// Sets whether the page cache is bypassed where it does not hold the file; true by default.
    /// Without it the file is in the cache afterwards, for the next reader.
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

    /// Opens the file.
    ///
    /// # Errors
    ///
    /// [`Error::File`] with the kernel's words; [`Error::Refused`] for a folder. A refused io_uring
    /// or `O_DIRECT` is a fallback, not an error.
    pub fn open(self, path: impl AsRef<Path>) -> Result<Reader, Error> {
        let path = path.as_ref();
        let file = File::open(path).tried(path, Action::Open)?;
        let plain = Plain::of(file, path);
        if plain.is_folder() {
            return Err(Error::refused(path, "is a folder: name a file in it"));
        }
        Ok(Reader::new(Source::new(plain, &self, 0)))
    }

    /// Opens the file on a simulated disk, to test code that uses a `Reader`.
    pub fn open_simulated(self, sim: &Sim, path: impl AsRef<Path>) -> Result<Reader, Error> {
        let one = Options::new(Ioengine::Psync, 1, self.bs_bytes);
        let plain = Plain::simulated(Engine::simulated(sim, &one)?, sim, path.as_ref())?;
        Ok(Reader::new(Source::new(plain, &self, 0)))
    }

    /// Reads a file that the caller opened, from the place where the file stands.
    pub fn from_file(self, file: File) -> Reader {
        let plain = Plain::given(file);
        let place = plain.place();
        Reader::new(Source::new(plain, &self, place))
    }
}
