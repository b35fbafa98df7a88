//! `Writer`: a `std::io::Write` at the device's speed.

use crate::{Effective, Error, Sync};
use std::io;
use std::path::Path;
use std::time::Duration;

/// Writes a file in the background.
#[derive(Debug)]
pub struct Writer {}

/// What is asked of a [`Writer`].
#[derive(Clone, Debug)]
pub struct WriterOptions {}

/// What a [`Writer`] has written.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Written {
    /// The file's length.
    pub bytes: u64,
    /// From the opening to the end.
    pub elapsed: Duration,
    /// Whether the file was written past the page cache to the end.
    pub direct: bool,
    /// Whether the file, with its name, is on stable storage.
    pub durable: bool,
    /// What was in effect.
    pub effective: Effective,
}

impl WriterOptions {
    /// When what was written is made durable by itself.
    pub fn sync(self, _sync: Sync) -> WriterOptions {
        todo!()
    }
    /// About how long the file will be: the space is set aside at once.
    pub fn size_hint(self, _bytes: u64) -> WriterOptions {
        todo!()
    }
    /// Writes in flight at once.
    pub fn iodepth(self, _iodepth: u32) -> WriterOptions {
        todo!()
    }
    /// Bytes of one write.
    pub fn bs(self, _bytes: usize) -> WriterOptions {
        todo!()
    }
    /// Whether the page cache is bypassed, where the file system can.
    pub fn direct(self, _direct: bool) -> WriterOptions {
        todo!()
    }
    /// Whether it is an error if the file is there already.
    pub fn create_new(self, _create_new: bool) -> WriterOptions {
        todo!()
    }
    /// Opens the file.
    ///
    /// # Errors
    ///
    /// With the kernel's words.
    pub fn open(self, _path: impl AsRef<Path>) -> Result<Writer, Error> {
        todo!()
    }
}

impl Writer {
    /// Makes the file, or cuts what is there to nothing, as [`std::fs::File::create`] does.
    ///
    /// # Errors
    ///
    /// With the kernel's words.
    pub fn create(_path: impl AsRef<Path>) -> Result<Writer, Error> {
        todo!()
    }
    /// What may be asked.
    pub fn options() -> WriterOptions {
        todo!()
    }
    /// Takes everything that the reader gives, straight into the buffers.
    ///
    /// # Errors
    ///
    /// The reader's, or those of a write.
    pub fn read_from(&mut self, _reader: impl io::Read) -> io::Result<u64> {
        todo!()
    }
    /// Makes what was written so far survive a power loss; of a new file its name too.
    ///
    /// # Errors
    ///
    /// With the kernel's words, and for ever after (W2).
    pub fn sync_data(&mut self) -> Result<(), Error> {
        todo!()
    }
    /// Writes the rest, and makes the file durable.
    ///
    /// # Errors
    ///
    /// Any since the opening that was not told yet.
    pub fn finish(self) -> Result<Written, Error> {
        todo!()
    }
    /// As [`Writer::finish`] without a flush: the file survives a crash of the process.
    ///
    /// # Errors
    ///
    /// Those of [`Writer::finish`].
    pub fn close(self) -> Result<Written, Error> {
        todo!()
    }
}

impl io::Write for Writer {
    fn write(&mut self, _bytes: &[u8]) -> io::Result<usize> {
        todo!()
    }
    fn flush(&mut self) -> io::Result<()> {
        todo!()
    }
}

impl io::Seek for Writer {
    fn seek(&mut self, _to: io::SeekFrom) -> io::Result<u64> {
        todo!()
    }
}
