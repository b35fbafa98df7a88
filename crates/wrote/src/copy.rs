//! Copies of files and streams in constant memory.
//!
//! A copy is made under a temporary name in the same folder. It gets its final name once it is
//! complete and as safe as requested: other processes see either the old file or the complete copy.
//! This module contains the public interface; its submodules do the work.

mod ends;
mod file;
mod pieces;
mod settings;
mod streams;

use crate::progress::{Watch, unwatched};
use crate::{Disk, Error, Written};
use settings::CopySettings;
use std::fmt;
use std::os::fd::AsFd;
use std::path::Path;

/// Copies the file `from` to `to`, which appears once complete.
///
/// The copy and its name are durable when this returns. An existing file at `to` is an error.
/// Symbolic links are followed on both sides. The copy gets the source's permissions, times and
/// extended attributes, and holes are preserved. Bytes appended to the source during the copy are
/// not copied. Files that the kernel generates (`/proc`, `/sys`) are read to their end. The source
/// may be a block device.
///
/// [`CopyOptions`] has further settings: replacing a file, reading the copy back, reporting
/// progress. By default, a copy uses 16 MiB of memory, for a file of any size (W8).
///
/// ```
/// # let folder = tempfile::tempdir()?;
/// # let (from, to) = (folder.path().join("from"), folder.path().join("to"));
/// # std::fs::write(&from, b"precious")?;
/// let copied = wrote::copy(&from, &to)?;
/// assert_eq!(copied.bytes, 8); // and the copy survives a power loss
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// After an error, a file at `to` is unchanged, unless only the last step, the flush of its folder,
/// failed.
///
/// - [`Error::Refused`]: `from` is a folder, a pipe or a character device; `to` is a folder, a
///   device or the same file; or [`CopyOptions::reflink`] requires shared blocks, which are not
///   possible;
/// - [`Error::File`] with the kernel's message: `ENOENT`, `ENOSPC`, `EEXIST` for an existing file
///   without [`CopyOptions::replace`];
/// - [`Error::Differs`]: the source was truncated, or the bytes read back differ from it;
/// - [`Error::Interrupted`]: the watcher of [`CopyOptions::watch`] requested a stop.
pub fn copy(from: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<Written, Error> {
    CopyOptions::new().copy(from, to)
}

/// Copies the open file `from` (a pipe, a socket, a terminal, a file from its current offset), up
/// to its end, to `to`, which appears once complete.
///
/// A new file has the permissions 0o666 less the umask; a file that replaces another gets the old
/// file's permissions. With [`CopyOptions::verify`], the file is read back, bypassing the page
/// cache, and its checksum compared. [`CopyOptions::reflink`] has no effect. The watcher of
/// [`CopyOptions::watch`] is called at least ten times a second, even while nothing arrives. The
/// copy and its name are durable when this returns.
///
/// # Errors
///
/// The kernel's errors; `EEXIST` for an existing file without [`CopyOptions::replace`];
/// [`Error::Refused`] if `to` is a folder or a device; [`Error::Interrupted`] if the watcher
/// requests a stop. After an error, a file at `to` is unchanged, unless only the last step, the
/// flush of its folder, failed.
pub fn copy_in(from: impl AsFd, to: impl AsRef<Path>) -> Result<Written, Error> {
    CopyOptions::new().copy_in(from, to)
}

/// Copies the file `from` to the open file `to`, which is written as a stream and not synced.
///
/// Up to [`CopyOptions::iodepth`] reads are in flight ahead of the writes. Of the other options,
/// only [`CopyOptions::bs_bytes`] has an effect. The watcher is called at least ten times a second,
/// even while the stream accepts nothing, if the kernel supports non-blocking writes (pipes since
/// Linux 6.4, sockets).
///
/// # Errors
///
/// The kernel's errors; `EPIPE` means that the reader has gone away. [`Error::Refused`] if `from`
/// is a folder, a pipe, a character device or the same file as `to`, or if [`CopyOptions::verify`]
/// is set, because a stream can't be read back. [`Error::Differs`] if `from` is truncated during
/// the copy; [`Error::Interrupted`] if the watcher requests a stop.
pub fn copy_out(from: impl AsRef<Path>, to: impl AsFd) -> Result<Written, Error> {
    CopyOptions::new().copy_out(from, to)
}

/// Options of a copy, as a builder. The last call performs the copy.
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
pub struct CopyOptions<'w> {
    settings: CopySettings,
    watch: Option<Watch<'w>>,
}

impl<'w> CopyOptions<'w> {
    /// The default size of a transfer, in bytes.
    pub const BS_BYTES: usize = 1 << 20;
    /// The default maximum number of transfers in flight.
    pub const IODEPTH: u32 = 16;

    /// Returns the options of a durable copy that does not replace a file.
    pub const fn new() -> CopyOptions<'w> {
        let settings = CopySettings {
            reflink: None,
            replace: false,
            preserve: false,
            durable: true,
            verify: false,
            bs_bytes: CopyOptions::BS_BYTES,
            iodepth: CopyOptions::IODEPTH,
            disk: None,
        };
        CopyOptions { settings, watch: None }
    }

    /// Sets whether the copy shares the source's blocks until either file is written to (FICLONE,
    /// `ioctl_ficlonerange(2)`). With `Some(true)` it shares them or fails, and with `Some(false)`
    /// it copies every byte. With `None`, the default, it shares them if the file system supports
    /// this.
    pub const fn reflink(mut self, reflink: Option<bool>) -> CopyOptions<'w> {
        self.settings.reflink = reflink;
        self
    }

    /// Sets whether an existing file is replaced (W7); by default, that is an error. The new file
    /// gets the old file's owner, permissions, access control list and attributes.
    pub const fn replace(mut self, replace: bool) -> CopyOptions<'w> {
        self.settings.replace = replace;
        self
    }

    /// Sets whether the copy gets the source's owner, as far as this process may set it. With
    /// `true`, a copy that replaces a file also gets the source's permissions and attributes. False
    /// by default: a new file belongs to this process's user, and a replacement gets the old file's
    /// metadata.
    pub const fn preserve(mut self, preserve: bool) -> CopyOptions<'w> {
        self.settings.preserve = preserve;
        self
    }

    /// Sets whether the copy and its name are durable when the call returns. True by default.
    pub const fn durable(mut self, durable: bool) -> CopyOptions<'w> {
        self.settings.durable = durable;
        self
    }

    /// Sets whether the copy is read back, bypassing the page cache, and its checksum compared with
    /// the source's.
    pub const fn verify(mut self, verify: bool) -> CopyOptions<'w> {
        self.settings.verify = verify;
        self
    }

    /// Sets the size of a transfer, in bytes: whole pages, at most 1 GiB, [`CopyOptions::BS_BYTES`]
    /// by default.
    pub const fn bs_bytes(mut self, bs_bytes: usize) -> CopyOptions<'w> {
        self.settings.bs_bytes = bs_bytes;
        self
    }

    /// Sets the maximum number of transfers in flight, [`CopyOptions::IODEPTH`] by default. Memory
    /// use is `iodepth * bs_bytes`, for a file of any size (W8).
    pub const fn iodepth(mut self, iodepth: u32) -> CopyOptions<'w> {
        self.settings.iodepth = iodepth;
        self
    }

    /// Copies by the method of the disk's engine or, if the disk is simulated, on that disk. The
    /// copy has its own engine and buffers.
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

    /// Reports progress to `watch`, which may stop the copy; the copy is then undone.
    pub fn watch<'a>(self, watch: Watch<'a>) -> CopyOptions<'a> {
        CopyOptions { settings: self.settings, watch: Some(watch) }
    }

    /// Copies an ordinary file like the function [`copy`].
    pub fn copy(self, from: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<Written, Error> {
        let (from, to) = (from.as_ref(), to.as_ref());
        self.run(|settings, watch| file::copy(from, to, settings, watch))
    }

    /// Copies an open file or stream to a file, like the function [`copy_in`].
    pub fn copy_in(self, from: impl AsFd, to: impl AsRef<Path>) -> Result<Written, Error> {
        let (from, to) = (from.as_fd(), to.as_ref());
        self.run(|settings, watch| streams::copy_in(from, to, settings, watch))
    }

    /// Copies an ordinary file to a stream, like the function [`copy_out`].
    pub fn copy_out(self, from: impl AsRef<Path>, to: impl AsFd) -> Result<Written, Error> {
        let (from, to) = (from.as_ref(), to.as_fd());
        self.run(|settings, watch| streams::copy_out(from, to, settings, watch))
    }

    /// Calls `copy` with the settings and the watcher.
    fn run<T>(self, copy: impl FnOnce(&CopySettings, Watch) -> T) -> T {
        match self.watch {
            Some(watch) => copy(&self.settings, watch),
            None => copy(&self.settings, &mut unwatched),
        }
    }
}

impl Default for CopyOptions<'_> {
    fn default() -> Self {
        CopyOptions::new()
    }
}

impl fmt::Debug for CopyOptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CopyOptions").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Disk {
    /// Copies like the function [`copy`], by the method of this disk's engine
    /// ([details](CopyOptions::on)).
    pub fn copy(&self, from: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<Written, Error> {
        CopyOptions::new().on(self).copy(from, to)
    }
}
