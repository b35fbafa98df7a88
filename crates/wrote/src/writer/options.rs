//! Options of a `Writer`.

use super::Writer;
use super::stream::{BS_UNIT_BYTES, Stream};
use super::target::Target;
use crate::engine::{Callers, Options};
use crate::{Disk, Engine, Error, FileOptions, Ioengine, SyncPolicy};
use rustix::fs::{OFlags, fcntl_getfl};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The size of a direct write, in bytes. A growing file has only one write in flight, so that write
/// must be long to keep a device busy.
const DIRECT_BYTES: usize = 4 << 20;
/// The size of a write through the page cache, in bytes. It is small enough for the CPU cache. From
/// 256 KiB on, the kernel uses larger folios and searches longer for memory: some writes took up to
/// three times as long (Linux 6.18, ext4).
const CACHED_BYTES: usize = 192 << 10;

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
    iodepth: Option<u32>,
    /// The size of a buffer, in bytes; `None` for the default, which depends on `cached`.
    bs_bytes: Option<usize>,
    cached: bool,
    create_new: bool,
    append: bool,
    replace: bool,
    mode: Option<u32>,
    abandon_on_drop: bool,
    /// The disk that the file is on.
    disk: Option<Disk>,
}

impl WriterOptions {
    /// Sets when writes are made durable automatically; [`SyncPolicy::No`] by default.
    ///
    /// With [`SyncPolicy::Always`], every write is durable when it returns. With
    /// [`SyncPolicy::EverySec`] and [`SyncPolicy::Interval`], a write syncs if the interval has
    /// passed since the last sync. A `Writer` has no timer, so the last bytes stay unsynced until
    /// [`Writer::sync_data`] or [`Writer::finish`] is called.
    pub fn sync(self, sync: SyncPolicy) -> WriterOptions {
        WriterOptions { sync, ..self }
    }

    /// Sets the expected length in bytes. The space is reserved when the file is opened, without
    /// changing the file's length, so that a lack of space is detected at once. Unused space is
    /// released when the file is closed.
    pub fn size_hint(self, bytes: u64) -> WriterOptions {
        WriterOptions { size_hint_bytes: bytes, ..self }
    }

    /// Sets the maximum number of writes in flight to existing parts of the file; 1 by default.
    /// Writes after the file's end are sequential, so that other programs never see a gap of zeros.
    /// One more buffer is filled in the meantime, so memory use is `(iodepth + 1) * bs`: 8 MiB by
    /// default, and 384 KiB through the page cache.
    pub fn iodepth(self, iodepth: u32) -> WriterOptions {
        WriterOptions { iodepth: Some(iodepth.clamp(1, Options::IODEPTH_MAX)), ..self }
    }

    /// Sets the size of a write and of a buffer, in bytes; 4 MiB by default, or 192 KiB through the
    /// page cache. It is rounded up to a multiple of 4096.
    pub fn bs(self, bytes: usize) -> WriterOptions {
        WriterOptions { bs_bytes: Some(bytes.max(1).next_multiple_of(BS_UNIT_BYTES)), ..self }
    }

    /// Sets whether writes bypass the page cache if the file system supports that; true by default.
    /// Writing through the cache suits files that are soon read again and need not be durable.
    pub fn direct(self, direct: bool) -> WriterOptions {
        WriterOptions { cached: !direct, ..self }
    }

    /// Sets whether dropping a `Writer` acts like [`Writer::abandon`], so that a function that
    /// returns early with `?` leaves no partial file. By default, it acts like [`Writer::finish`].
    pub fn abandon_on_drop(self, abandon_on_drop: bool) -> WriterOptions {
        WriterOptions { abandon_on_drop, ..self }
    }

    /// Sets the permissions of a new file (`open(2)`), less the umask; 0o666 by default. The file
    /// has them from the moment it is created, so 0o600 suits a secret.
    ///
    /// An existing file keeps its permissions, unless [`WriterOptions::replace`] replaces it.
    ///
    /// ```
    /// use std::io::Write;
    /// use wrote::Writer;
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("key");
    /// let mut writer = Writer::options().replace(true).mode(0o600).open(&path)?;
    /// writer.write_all(b"secret")?;
    /// writer.finish()?;
    /// # use std::os::unix::fs::PermissionsExt;
    /// # assert_eq!(std::fs::metadata(&path)?.permissions().mode() & 0o777, 0o600);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn mode(self, mode: u32) -> WriterOptions {
        WriterOptions { mode: Some(mode), ..self }
    }

    /// Sets whether a new file is written next to `path` and replaces it at the end, as described
    /// at [`Writer::replace`]. With [`WriterOptions::create_new`], an existing name is an error, as
    /// for [`crate::write_new`].
    pub fn replace(self, replace: bool) -> WriterOptions {
        WriterOptions { replace, ..self }
    }

    /// Writes by the method of the disk's engine ([`Options`]) or, if the disk is simulated, to
    /// that disk. The writer has its own engine and buffers.
    pub fn on(self, disk: &Disk) -> WriterOptions {
        WriterOptions { disk: Some(disk.clone()), ..self }
    }

    /// Sets whether an existing file is an error (`EEXIST`). By default, its contents are replaced.
    pub fn create_new(self, create_new: bool) -> WriterOptions {
        WriterOptions { create_new, ..self }
    }

    /// Sets whether an existing file keeps its content and writes are appended to it.
    ///
    /// The file is locked (`flock(2)`). Opening a second appending `Writer` fails, but only after
    /// waiting for a second, because the lock of a killed process is not released until its last
    /// write has finished. A program that does not lock the file can still append (`O_APPEND`). The
    /// file's length is checked before every change, so the other program's bytes are detected, and
    /// this `Writer` writes nothing more ([`Error::Interfered`]). Only bytes that the other program
    /// appends between such a check and the change itself can be lost. Programs that share a file
    /// should use one [`crate::Log`].
    pub fn append(self, append: bool) -> WriterOptions {
        WriterOptions { append, ..self }
    }

    /// Opens the file.
    ///
    /// # Errors
    ///
    /// The kernel's errors; `EACCES` also if the file is writable but not readable; `EISDIR` for a
    /// folder; `ENOSPC` or `EDQUOT` if there is no room for [`WriterOptions::size_hint`];
    /// [`Error::Refused`] for anything other than an ordinary file. If io_uring or `O_DIRECT` is
    /// refused, that is a fallback, not an error.
    pub fn open(self, path: impl AsRef<Path>) -> Result<Writer, Error> {
        let path = path.as_ref();
        let engine = self.engine()?;
        self.open_on(engine, path)
    }

    /// Writes to a file that the caller opened, from its current position. With
    /// [`WriterOptions::append`], or if the file was opened with `O_APPEND`, writes at the end.
    ///
    /// The file is reopened by its descriptor (`/proc/self/fd`), so the process must be allowed to
    /// read it, too. The file's position (`lseek(2)`) does not change. Any bytes after the written
    /// ones are kept. No lock is taken, and the caller's locks are kept. The file need not have a
    /// name.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] for a read-only file, for anything other than an ordinary file, and with
    /// [`WriterOptions::create_new`], [`WriterOptions::replace`] or [`WriterOptions::mode`], which
    /// apply only to a file that is to be created. `EACCES` if the file is not readable.
    pub fn from_file(self, file: File) -> Result<Writer, Error> {
        let opened_at = Instant::now();
        if self.create_new || self.replace || self.mode.is_some() {
            let because = "is open already: create_new, replace and mode are for a new file";
            return Err(Error::refused(&PathBuf::from("the given file"), because));
        }
        let append =
            self.append || fcntl_getfl(&file).is_ok_and(|flags| flags.contains(OFlags::APPEND));
        let mut engine = self.engine()?;
        let options = FileOptions::new().write(true).direct(!self.cached);
        let target = Target::give(&mut engine, file, append, &options)?;
        WriterOptions { append, ..self }.begin(engine, target, opened_at)
    }

    fn engine(&self) -> Result<Engine, Error> {
        match &self.disk {
            Some(disk) => disk.engine(&self.engine_options()),
            None => Engine::open_for(&self.engine_options(), Callers::Any),
        }
    }

    fn engine_options(&self) -> Options {
        let bs_bytes = if self.cached { CACHED_BYTES } else { DIRECT_BYTES };
        let iodepth = self.iodepth.unwrap_or(1);
        Options {
            buffers: iodepth + 1,
            // Buffers are registered when the first one is full. Registering touches all of them,
            // and writing a short file should not incur that cost.
            registered_buffers: false,
            ..Options::new(Ioengine::IoUring, iodepth, self.bs_bytes.unwrap_or(bs_bytes))
        }
    }

    fn open_on(self, mut engine: Engine, path: &Path) -> Result<Writer, Error> {
        let opened_at = Instant::now();
        let file = FileOptions::new()
            .create_new(self.create_new)
            .create(true)
            .truncate(!self.append)
            .write(true)
            .direct(!self.cached)
            .mode(self.mode);
        let target = if self.replace {
            if self.append {
                let because = "a new file that replaces this one has nothing to append to";
                return Err(Error::refused(path, because));
            }
            Target::stage(&mut engine, path, !self.create_new, &file)?
        } else {
            Target::open(&mut engine, path, &file)?
        };
        self.begin(engine, target, opened_at)
    }

    fn begin(self, engine: Engine, target: Target, opened_at: Instant) -> Result<Writer, Error> {
        let mut stream = Stream::open(engine, target, self.sync, self.append, opened_at)?;
        if let Err(error) = stream.allocate(self.size_hint_bytes) {
            stream.discard();
            return Err(error);
        }
        Ok(Writer { stream, abandon_on_drop: self.abandon_on_drop })
    }
}
