//! Options of a copy, and the matching engine.

use crate::engine::Options;
use crate::progress::{Watch, unwatched};
use crate::{Disk, Engine, Error, Fallback, Ioengine, Method, Written};
use rustix::param::page_size;
use std::fmt;
use std::path::Path;
use std::time::Instant;

/// Options of a copy, as a builder that ends with the copy itself.
///
/// ```
/// use std::ops::ControlFlow;
/// use wrote::CopyOptions;
///
/// # let folder = tempfile::tempdir()?;
/// # let (from, to) = (folder.path().join("from"), folder.path().join("to"));
/// # std::fs::write(&from, b"precious")?;
/// let mut report = |bytes_done, bytes_total| {
///     println!("{bytes_done} bytes of {bytes_total:?}");
///     ControlFlow::Continue(()) // or Break, and nothing is left of the copy
/// };
/// let copied = CopyOptions::new().verify(true).watch(&mut report).copy(&from, &to)?;
/// assert_eq!(copied.bytes, 8); // and the copy survives a power loss
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Default)]
pub struct CopyOptions<'w> {
    settings: CopySettings,
    watch: Option<Watch<'w>>,
}

/// A copy's settings, without its watcher.
#[derive(Clone, Debug)]
pub(super) struct CopySettings {
    /// Whether blocks must be shared, or must not.
    pub reflink: Option<bool>,
    pub replace: bool,
    pub preserve: bool,
    pub durable: bool,
    pub verify: bool,
    pub bs_bytes: usize,
    pub iodepth: u32,
    /// The disk whose engine and memory the copy shares.
    pub disk: Option<Disk>,
}

impl CopySettings {
    const DEFAULT: CopySettings = CopySettings {
        reflink: None,
        replace: false,
        preserve: false,
        durable: true,
        verify: false,
        bs_bytes: CopyOptions::BS_BYTES,
        iodepth: CopyOptions::IODEPTH,
        disk: None,
    };
}

impl Default for CopySettings {
    fn default() -> CopySettings {
        CopySettings::DEFAULT
    }
}

impl CopyOptions<'_> {
    /// The default size of a transfer.
    pub const BS_BYTES: usize = 1 << 20;
    /// The default number of transfers in flight.
    pub const IODEPTH: u32 = 16;
}

impl<'w> CopyOptions<'w> {
    /// Returns the options of a durable copy that replaces nothing.
    pub const fn new() -> CopyOptions<'w> {
        CopyOptions { settings: CopySettings::DEFAULT, watch: None }
    }

    /// Sets whether the copy shares the source's blocks until either is written to (FICLONE,
    /// `ioctl_ficlonerange(2)`): with `Some(true)` it shares them or fails, with `Some(false)` it
    /// copies every byte. With `None`, the default, it shares them if the file system can.
    pub const fn reflink(mut self, reflink: Option<bool>) -> CopyOptions<'w> {
        self.settings.reflink = reflink;
        self
    }

    /// Sets whether an existing file is replaced (W7); by default that is an error. The new file
    /// keeps the old one's owner, permissions, access control list and attributes.
    pub const fn replace(mut self, replace: bool) -> CopyOptions<'w> {
        self.settings.replace = replace;
        self
    }

    /// Sets whether the copy gets the source's owner, as far as this process may set it, and the
    /// source's permissions and attributes even if it replaces a file. False by default: a new file
    /// belongs to this process's user, and a replaced one keeps its own.
    pub const fn preserve(mut self, preserve: bool) -> CopyOptions<'w> {
        self.settings.preserve = preserve;
        self
    }

    /// Sets whether the copy and its name are durable when the call returns. True by default.
    pub const fn durable(mut self, durable: bool) -> CopyOptions<'w> {
        self.settings.durable = durable;
        self
    }

    /// Sets whether the copy is read back, bypassing the cache, and its checksum compared with the
    /// source's.
    pub const fn verify(mut self, verify: bool) -> CopyOptions<'w> {
        self.settings.verify = verify;
        self
    }

    /// Sets the size of a transfer: whole pages, at most 1 GiB, [`CopyOptions::BS_BYTES`] by
    /// default.
    pub const fn bs_bytes(mut self, bs_bytes: usize) -> CopyOptions<'w> {
        self.settings.bs_bytes = bs_bytes;
        self
    }

    /// Sets the number of transfers in flight, [`CopyOptions::IODEPTH`] by default. Memory use is
    /// `iodepth * bs_bytes`, for a file of any size (W8).
    pub const fn iodepth(mut self, iodepth: u32) -> CopyOptions<'w> {
        self.settings.iodepth = iodepth;
        self
    }

    /// Copies by the method of a disk's engine, or on its simulated disk. The engine and the
    /// buffers are the copy's own.
    ///
    /// ```
    /// use wrote::engine::Options;
    /// use wrote::{CopyOptions, Disk, Ioengine};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let place = |name: &str| folder.path().join(name);
    /// # std::fs::write(place("a"), "a")?;
    /// # std::fs::write(place("b"), "b")?;
    /// let disk = Disk::open(&Options::new(Ioengine::IoUring, 16, 4096))?;
    /// for name in ["a", "b"] {
    ///     CopyOptions::new().on(&disk).copy(place(name), place(name).with_extension("copy"))?;
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn on(mut self, disk: &Disk) -> CopyOptions<'w> {
        self.settings.disk = Some(disk.clone());
        self
    }

    /// Reports progress to `watch`, which may stop the copy; it is then undone.
    pub fn watch<'a>(self, watch: Watch<'a>) -> CopyOptions<'a> {
        CopyOptions { settings: self.settings, watch: Some(watch) }
    }

    /// Calls `copy` with the settings and a watcher.
    pub(super) fn run<T>(self, copy: impl FnOnce(&CopySettings, Watch) -> T) -> T {
        match self.watch {
            Some(watch) => copy(&self.settings, watch),
            None => copy(&self.settings, &mut unwatched),
        }
    }
}

impl fmt::Debug for CopyOptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CopyOptions").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// The maximum length of a ring's registered buffer (`io_uring_register(2)`).
const BS_BYTES_MAX: usize = 1 << 30;

/// Opens an engine with these options, on the disk of the settings if there is one.
pub(super) fn open_engine(options: &Options, settings: &CopySettings) -> Result<Engine, Error> {
    match &settings.disk {
        Some(disk) => disk.engine(options),
        None => Engine::open(options),
    }
}

/// Opens an engine for a copy of the file at `from`.
pub(super) fn engine_for(from: &Path, settings: &CopySettings) -> Result<Engine, Error> {
    open_engine(&engine_options(len_hint(from), settings), settings)
}

/// Returns engine options for `len` bytes. The buffers are not larger in total, since preparing
/// them takes time.
pub(super) fn engine_options(len: u64, settings: &CopySettings) -> Options {
    let needed = len.clamp(1, BS_BYTES_MAX as u64) as usize;
    let bs_bytes = settings.bs_bytes.clamp(1, needed).next_multiple_of(page_size());
    let pieces = len.div_ceil(bs_bytes as u64).max(1);
    let iodepth = u64::from(settings.iodepth.max(1)).min(pieces) as u32;
    Options::new(Ioengine::IoUring, iodepth, bs_bytes)
}

/// Returns the file's length, as far as it is known before opening; `u64::MAX` if it is not.
fn len_hint(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(u64::MAX, |metadata| metadata.len())
}

/// The state of a copy when its bytes are moved.
pub(super) struct Filled {
    pub bytes: u64,
    pub method: Method,
    /// The checksum of source and copy, if compared.
    pub checksum: Option<u128>,
    pub fallbacks: Vec<Fallback>,
}

impl Filled {
    /// Returns the bytes that went through the page cache to a stream, where no more is known.
    pub(super) fn into_stream(bytes: u64) -> Filled {
        Filled { bytes, method: Method::Cached, checksum: None, fallbacks: Vec::new() }
    }

    pub(super) fn written(self, engine: &Engine, began: Instant, durable: bool) -> Written {
        let Filled { bytes, method, checksum, mut fallbacks } = self;
        let mut effective = engine.effective().clone();
        effective.fallbacks.append(&mut fallbacks);
        Written { bytes, elapsed: began.elapsed(), method, durable, checksum, effective }
    }
}
