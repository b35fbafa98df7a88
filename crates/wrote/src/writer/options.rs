//! What is asked of a `Writer`.

use super::Writer;
use super::stream::Stream;
use crate::engine::Callers;
use crate::{Engine, Error, FileOptions, Ioengine, Options, Sim, Sync};
use std::path::Path;

/// Buffers are whole pages, which every file takes direct transfers of.
const BS_UNIT_BYTES: usize = 4096;

/// Bytes and number of the writes in flight: a device is kept busy by a few long ones.
const DIRECT: (usize, u32) = (2 << 20, 3);
/// Through the page cache shorter ones, which stay in the processor's cache. From 256 KiB on the kernel
/// puts them into larger folios, for which it looks farther for memory: the same writes then took up to
/// three times as long every now and then (Linux 6.18, ext4).
const CACHED: (usize, u32) = (192 << 10, 8);

/// What is asked of a [`Writer`]; [`WriterOptions::open`] opens it.
///
/// ```
/// use wrote::{Sync, Writer};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("dump");
/// let writer = Writer::options()
///     .create_new(true)
///     .sync(Sync::EverySec)
///     .size_hint(10_000_000)
///     .open(&path)?;
/// # drop(writer);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct WriterOptions {
    sync: Sync,
    size_hint_bytes: u64,
    /// As asked; by default what suits `direct`.
    iodepth: Option<u32>,
    bs_bytes: Option<usize>,
    direct: bool,
    create_new: bool,
    append: bool,
}

impl WriterOptions {
    pub(super) fn new() -> WriterOptions {
        WriterOptions {
            sync: Sync::No,
            size_hint_bytes: 0,
            iodepth: None,
            bs_bytes: None,
            direct: true,
            create_new: false,
            append: false,
        }
    }

    /// When what was written is made durable by itself; [`Sync::No`] by default.
    ///
    /// With [`Sync::Always`] every write returns when it survives a power loss. With
    /// [`Sync::EverySec`] and [`Sync::Interval`] a write that comes so long after the last sync does:
    /// a `Writer` has no clock of its own, so what no write follows waits for [`Writer::sync_data`]
    /// or [`Writer::finish`].
    pub fn sync(mut self, sync: Sync) -> WriterOptions {
        self.sync = sync;
        self
    }

    /// About how long the file will be, in bytes. The space is set aside when the file is opened, so
    /// that a disk with less room is told of at once. What is not used is given back at the end.
    pub fn size_hint(mut self, bytes: u64) -> WriterOptions {
        self.size_hint_bytes = bytes;
        self
    }

    /// Writes in flight at once; by default 3, and 8 through the page cache. One more buffer than that
    /// is filled meanwhile.
    pub fn iodepth(mut self, iodepth: u32) -> WriterOptions {
        self.iodepth = Some(iodepth.clamp(1, Options::IODEPTH_MAX));
        self
    }

    /// Bytes of one write, and of one buffer; by default 2 MiB, and 192 KiB through the page cache.
    /// Rounded up to a multiple of 4096.
    pub fn bs(mut self, bytes: usize) -> WriterOptions {
        self.bs_bytes = Some(bytes.max(1).next_multiple_of(BS_UNIT_BYTES));
        self
    }

    /// Whether the page cache is bypassed, where the file system can; it is by default. Through the
    /// cache suits files that are read again at once, and are not meant to last.
    pub fn direct(mut self, direct: bool) -> WriterOptions {
        self.direct = direct;
        self
    }

    /// Whether it is an error if the file is there already (`EEXIST`); by default its contents are
    /// replaced.
    pub fn create_new(mut self, create_new: bool) -> WriterOptions {
        self.create_new = create_new;
        self
    }

    /// Whether what is there stays, and what is written comes after it.
    pub fn append(mut self, append: bool) -> WriterOptions {
        self.append = append;
        self
    }

    /// Opens the file.
    ///
    /// # Errors
    ///
    /// With the kernel's words; `EACCES` also where the file may be written and not read; `EISDIR` for a
    /// folder; `ENOSPC` where there is no room for [`WriterOptions::size_hint`]; [`Error::Refused`] for
    /// what is no ordinary file. A refused io_uring or `O_DIRECT` is a fallback, not an error.
    pub fn open(self, path: impl AsRef<Path>) -> Result<Writer, Error> {
        let engine = Engine::open_for(&self.engine_options(), Callers::Any)?;
        self.open_on(engine, path.as_ref())
    }

    /// Opens the file on a simulated disk, for proving what is built on a `Writer`.
    ///
    /// # Errors
    ///
    /// Those of [`WriterOptions::open`].
    pub fn open_simulated(self, sim: &Sim, path: impl AsRef<Path>) -> Result<Writer, Error> {
        let engine = Engine::simulated(sim, &self.engine_options())?;
        self.open_on(engine, path.as_ref())
    }

    fn engine_options(&self) -> Options {
        let (bs_bytes, iodepth) = if self.direct { DIRECT } else { CACHED };
        let iodepth = self.iodepth.unwrap_or(iodepth);
        Options {
            buffers: iodepth + 1,
            // When the first is full: registering touches all of them, which a short file need not
            // pay for.
            registered_buffers: false,
            ..Options::new(Ioengine::IoUring, iodepth, self.bs_bytes.unwrap_or(bs_bytes))
        }
    }

    fn open_on(self, engine: Engine, path: &Path) -> Result<Writer, Error> {
        let file = FileOptions {
            create_new: self.create_new,
            create: true,
            truncate: !self.append,
            write: true,
            direct: self.direct,
            ..FileOptions::default()
        };
        let mut stream = Stream::open(engine, path, &file, self.sync)?;
        stream.allocate(self.size_hint_bytes)?;
        Ok(Writer::new(stream))
    }
}
