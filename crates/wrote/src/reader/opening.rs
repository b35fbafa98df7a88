//! Opens a `Reader` by its options.

use super::plain::Plain;
use super::source::{FIRST_BUFFER_BYTES, Source};
use super::{Reader, ReaderOptions};
use crate::budget::Share;
use crate::engine::Options;
use crate::error::Tried;
use crate::{Action, Disk, Engine, Error, Ioengine};
use std::fs::File;
use std::path::Path;

impl ReaderOptions {
    /// Opens the file.
    ///
    /// # Errors
    ///
    /// [`Error::File`] with the kernel's message; [`Error::Refused`] for a folder. A refused
    /// io_uring or `O_DIRECT` is a fallback, not an error.
    pub fn open(self, path: impl AsRef<Path>) -> Result<Reader, Error> {
        let path = path.as_ref();
        if let Some(sim) = self.disk.as_ref().and_then(Disk::sim).cloned() {
            let one = Options::new(Ioengine::Psync, 1, self.bs_bytes);
            return self.begin(Plain::simulated(Engine::simulated(&sim, &one)?, path)?, 0);
        }
        let file = File::open(path).tried(path, Action::Open)?;
        let plain = Plain::of(file, path);
        if plain.is_folder() {
            return Err(Error::refused(path, "is a folder: name a file in it"));
        }
        self.begin(plain, 0)
    }

    /// Reads a file opened by the caller, from its current position. `Reader::from` does the same
    /// with the default options, and can't fail.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] if a disk has no room ([`ReaderOptions::on`]), or is simulated and so
    /// lacks the file. A folder or a write-only file fails at the first read.
    pub fn from_file(self, file: File) -> Result<Reader, Error> {
        let plain = Plain::given(file);
        if self.disk.as_ref().is_some_and(|disk| disk.sim().is_some()) {
            return Err(Error::refused(plain.path(), "is not a file of the simulated disk"));
        }
        let place = plain.place();
        self.begin(plain, place)
    }

    fn begin(self, plain: Plain, place: u64) -> Result<Reader, Error> {
        let memory = self.first_memory(plain.path())?;
        Ok(Reader::new(Source::new(plain, self, place, memory)))
    }

    /// Takes what a `Reader` begins with; `None` where it shares no disk.
    fn first_memory(&self, path: &Path) -> Result<Option<Share>, Error> {
        let take = |disk: &Disk| disk.take_memory(FIRST_BUFFER_BYTES, path);
        self.disk.as_ref().map(take).transpose()
    }
}
