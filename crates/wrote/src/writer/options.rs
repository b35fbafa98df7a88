//! Options of a `Writer`.

use super::Writer;
use super::stream::Stream;
use crate::engine::Callers;
use crate::engine::Options;
use crate::{Engine, Error, FileOptions, Ioengine, Sim, SyncPolicy};
use std::path::Path;

/// Buffers are whole pages: every file takes direct transfers of these.
const BS_UNIT_BYTES: usize = 4096;

/// Bytes and number of the direct writes in flight: a few long ones keep a device busy.
const DIRECT: (usize, u32) = (2 << 20, 3);
/// Bytes and number of the writes in flight through the page cache: they stay in the processor's
/// cache. From 256 KiB on the kernel uses larger folios and searches longer for memory: some writes
/// took up to three times as long (Linux 6.18, ext4).
const CACHED: (usize, u32) = (192 << 10, 8);

/// Options of a [`Writer`], which [`WriterOptions::open`] opens.
///
/// ```
/// use wrote::{SyncPolicy, Writer};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("dump");
/// let writer = Writer::options()
///     .create_new(true)
///     .sync(SyncPolicy::EverySec)
///     .size_hint(10_000_000)
///     .open(&path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct WriterOptions {
    sync: SyncPolicy,
    size_hint_bytes: u64,
    /// The caller's choice; `None` for the default by `cached`.
    iodepth: Option<u32>,
    bs_bytes: Option<usize>,
    cached: bool,
    create_new: bool,
    append: bool,
}

impl WriterOptions {
    /// Sets when writes are made durable automatically; [`SyncPolicy::No`] by default.
    ///
    /// With [`SyncPolicy::Always`] every write returns when it survives a power loss. With
    /// [`SyncPolicy::EverySec`] and [`SyncPolicy::Interval`] a write syncs if that time has passed
    /// since the last sync. A `Writer` has no clock of its own, so bytes without a later write wait
    /// for [`Writer::sync_data`] or [`Writer::finish`].
    pub fn sync(self, sync: SyncPolicy) -> WriterOptions {
        WriterOptions { sync, ..self }
    }

    /// Sets the expected length in bytes. The space is allocated when the file is opened, so that a
    /// fuller disk fails at once. The end of the file returns unused space.
    pub fn size_hint(self, bytes: u64) -> WriterOptions {
        WriterOptions { size_hint_bytes: bytes, ..self }
    }

    /// Sets the writes in flight; by default 3, and 8 through the page cache. One buffer more is
    /// filled meanwhile.
    pub fn iodepth(self, iodepth: u32) -> WriterOptions {
        WriterOptions { iodepth: Some(iodepth.clamp(1, Options::IODEPTH_MAX)), ..self }
    }

    /// Sets the bytes of one write, and of one buffer; by default 2 MiB, and 192 KiB through the
    /// page cache. Rounded up to a multiple of 4096.
    pub fn bs(self, bytes: usize) -> WriterOptions {
        WriterOptions { bs_bytes: Some(bytes.max(1).next_multiple_of(BS_UNIT_BYTES)), ..self }
    }

    /// Sets whether the page cache is bypassed, where the file system can; true by default. The
    /// cache suits files that are read again at once and need not last.
    pub fn direct(self, direct: bool) -> WriterOptions {
        WriterOptions { cached: !direct, ..self }
    }

    /// Sets whether an existing file is an error (`EEXIST`); by default its contents are replaced.
    pub fn create_new(self, create_new: bool) -> WriterOptions {
        WriterOptions { create_new, ..self }
    }

    /// Sets whether the contents of an existing file stay, and writes come after them.
    ///
    /// The file is locked meanwhile (`flock(2)`): a second `Writer` that appends to it is refused
    /// at its opening. A program that takes no lock can append, too (`O_APPEND`). The length is
    /// examined before every change of the file, so its bytes are found, and this `Writer` writes
    /// nothing more ([`Error::Interfered`]). Only bytes appended between that examination and the
    /// change itself can be lost. Programs that share a file should use one [`crate::Log`].
    pub fn append(self, append: bool) -> WriterOptions {
        WriterOptions { append, ..self }
    }

    /// Opens the file.
    ///
    /// # Errors
    ///
    /// With the kernel's words; `EACCES` also where the file may be written and not read; `EISDIR`
    /// for a folder; `ENOSPC` where there is no room for [`WriterOptions::size_hint`];
    /// [`Error::Refused`] for any other thing that is no ordinary file. A refused io_uring or
    /// `O_DIRECT` is a fallback, not an error.
    pub fn open(self, path: impl AsRef<Path>) -> Result<Writer, Error> {
        let engine = Engine::open_for(&self.engine_options(), Callers::Any)?;
        self.open_on(engine, path.as_ref())
    }

    /// Opens the file on a simulated disk, to test code that uses a `Writer`.
    pub fn open_simulated(self, sim: &Sim, path: impl AsRef<Path>) -> Result<Writer, Error> {
        let engine = Engine::simulated(sim, &self.engine_options())?;
        self.open_on(engine, path.as_ref())
    }

    fn engine_options(&self) -> Options {
        let (bs_bytes, iodepth) = if self.cached { CACHED } else { DIRECT };
        let iodepth = self.iodepth.unwrap_or(iodepth);
        Options {
            buffers: iodepth + 1,
            // Registered when the first is full: registering touches all of them, which a short
            // file need not pay for.
            registered_buffers: false,
            ..Options::new(Ioengine::IoUring, iodepth, self.bs_bytes.unwrap_or(bs_bytes))
        }
    }

    fn open_on(self, engine: Engine, path: &Path) -> Result<Writer, Error> {
        let file = FileOptions::new()
            .create_new(self.create_new)
            .create(true)
            .truncate(!self.append)
            .write(true)
            .direct(!self.cached);
        let mut stream = Stream::open(engine, path, &file, self.sync, self.append)?;
        stream.allocate(self.size_hint_bytes)?;
        Ok(Writer::new(stream))
    }
}
