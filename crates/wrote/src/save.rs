//! Saves whole files: a crash at any moment leaves either the old content or the new.
//!
//! `std::fs::write` truncates the old file before it writes. A program that reads the file in
//! between, or after a crash, finds partial content or none. This module writes a new file next to
//! the old one, and renames it atomically when it is complete (`rename(2)`).

mod many;
mod read;

pub use many::write_many;
pub use read::read;

#[doc(hidden)]
pub use crate::staged::{on_its_way, temporary_name};

use crate::engine::{Found, Located, Op, Options, folder_of};
use crate::error::Tried;
use crate::metadata::{Inherited, Metadata, mode_at_first};
use crate::staged::{StagedFile, complete};
use crate::{Action, Disk, Engine, Error, FileId, FileOptions, Ioengine, SyncPolicy};
use read::{DIRECT_BYTES_MIN, direct_engine};
use rustix::fs::{Access, AtFlags, CWD, accessat};
use rustix::io::Errno;
use std::cell::Cell;
use std::path::{Path, PathBuf};

/// The minimum size of a buffer for direct writes. No file requires a greater alignment.
const DIRECT_BUFFER_BYTES_MIN: usize = 64 << 10;

/// The size of the buffer of all other saves, in bytes. It stays in the processor's cache.
const CACHED_BS_BYTES: usize = 128 << 10;

thread_local! {
    /// The engine of this thread's saves. It is kept so that its buffer is mapped and faulted in
    /// only once: for a small file, that would cost more than the rest of the save apart from the
    /// write and the sync.
    static CACHED_ENGINE: Cell<Option<Engine>> = const { Cell::new(None) };
}

/// Replaces the content of the file at `path`, or creates the file. The content is durable when
/// this returns.
///
/// The differences from `std::fs::write`:
///
/// - **Atomic.** After a crash of the process or the kernel, or a power loss, at any moment, the
///   file has either its old content or the new. Other processes also see one or the other; a
///   process that has the old file open keeps reading the old content.
/// - **Durable.** The content is flushed (`fsync(2)`) before the file gets its name. The name is
///   made durable after that, by flushing the folder. `docs/durability.md` describes these flushes
///   on each file system. Two flushes of the device take about a millisecond; [`write_unflushed`]
///   omits them.
/// - **A new file** replaces the old one. It gets the old file's permissions, owner, group, access
///   control list and extended attributes, as far as this process may set them. If it may not set
///   the group, the new file's group gets no more permissions than others. Symbolic links are
///   followed and kept. If the file has several hard links, only this name gets the new content.
/// - **The folder** must allow this process to create names, and briefly needs room for both
///   contents. The process must be allowed to write the old file, as for `std::fs::write`, although
///   a rename does not require that.
///
/// A process killed during a save leaves a file `.NAME.wrote-PROCESS-NUMBER` in the folder.
///
/// Small content goes through the page cache, using a buffer of 128 KiB that each thread keeps from
/// its first save until it exits. Content of 4 MiB or more bypasses the cache, using 8 MiB of
/// buffers, and is not cached for the next reader.
///
/// ```
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("settings.toml");
/// wrote::write(&path, "colour = \"red\"\n")?;
/// // Never a part of it, after a crash at any moment:
/// wrote::write(&path, "colour = \"green\"\nsize = 3\n")?;
/// assert_eq!(wrote::read(&path)?, b"colour = \"green\"\nsize = 3\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// [`Error::Refused`] for a folder, a device, or anything other than an ordinary file.
/// [`Error::File`] with `path` if the kernel refuses: `ENOSPC`, `EDQUOT`, `EFBIG` (`RLIMIT_FSIZE`;
/// the process also gets `SIGXFSZ`), `EACCES`, `EIO`, `EBUSY` (the file is a mount point, as some
/// files in containers are), `ENOENT` for a missing folder. The old file is then unchanged, and the
/// unfinished one is removed. There is one exception:
///
/// - [`Action::SyncFolder`]: the new content is complete and in place, and every process sees it,
///   but flushing the folder failed. A power loss leaves either the new content or the old,
///   complete in both cases. To make the content durable, save again: this creates a new file and
///   flushes it and the folder.
pub fn write(path: impl AsRef<Path>, bytes: impl AsRef<[u8]>) -> Result<(), Error> {
    save_by_thread(SyncPolicy::Always, path.as_ref(), bytes.as_ref(), true)
}

/// Like [`write()`], but without a flush. Other processes find either the old content or the new,
/// even if this process crashes. The save survives only a process crash
/// ([`crate::Survives::ProcessCrash`]). A kernel crash or power loss within the next seconds may
/// restore the old content. If the file system writes the name to the device before the bytes, such
/// a crash may even leave an *empty or mixed* file. ext4 writes the bytes first when a name is
/// replaced, unless it is mounted with `noauto_da_alloc` or `data=writeback` (`ext4(5)`,
/// `auto_da_alloc`), but does not do so for a new name; XFS never does. Only the flushes of
/// [`write()`] guarantee that a power loss leaves either the old content or the new.
///
/// ```
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("cache.json");
/// // No flush, since it can be made again; but readers never see a part of it.
/// wrote::write_unflushed(&path, "{}")?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn write_unflushed(path: impl AsRef<Path>, bytes: impl AsRef<[u8]>) -> Result<(), Error> {
    save_by_thread(SyncPolicy::No, path.as_ref(), bytes.as_ref(), true)
}

/// Creates a new file at `path` with this content, complete and durable as with [`write()`]. If the
/// name exists, returns an error and leaves that file unchanged.
///
/// The name appears atomically once the content is complete and flushed (`renameat2(2)`,
/// RENAME_NOREPLACE; `link(2)` on a file system without that flag). If several processes create the
/// same name concurrently, one of them succeeds. After a crash or power loss, at any moment, the
/// file has all of its content or does not exist. A symbolic link at `path` is not followed: the
/// name exists, as with `std::fs::File::create_new`. The file has default permissions.
///
/// ```
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("result.json");
/// wrote::write_new(&path, "{}")?;
/// let error = std::io::Error::from(wrote::write_new(&path, "[]").unwrap_err());
/// assert_eq!(error.kind(), std::io::ErrorKind::AlreadyExists);
/// assert_eq!(wrote::read(&path)?, b"{}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// [`Error::File`] with `EEXIST` ([`std::io::ErrorKind::AlreadyExists`]) if the name exists.
/// Nothing is written if the name already exists when this is called. Other errors are the same as
/// for [`write()`].
pub fn write_new(path: impl AsRef<Path>, bytes: impl AsRef<[u8]>) -> Result<(), Error> {
    save_by_thread(SyncPolicy::Always, path.as_ref(), bytes.as_ref(), false)
}

/// Saves through the engine that this thread keeps or, if the content is large, through a separate
/// engine.
fn save_by_thread(sync: SyncPolicy, path: &Path, bytes: &[u8], replace: bool) -> Result<(), Error> {
    if goes_direct(sync, bytes) {
        return save(&mut direct_engine()?, sync, path, bytes, replace);
    }
    // A thread that is exiting may already have dropped its engine.
    let mut engine = match CACHED_ENGINE.try_with(Cell::take).ok().flatten() {
        Some(engine) if engine.check_process().is_ok() => engine,
        _ => Engine::open(&Options::new(Ioengine::Psync, 1, CACHED_BS_BYTES))?,
    };
    save(&mut engine, sync, path, bytes, replace)?;
    // The engine is kept only after success, so that an error of one file does not affect the next.
    let _ = CACHED_ENGINE.try_with(|kept| kept.set(Some(engine)));
    Ok(())
}

impl Disk {
    /// Saves like the function [`write()`], by the method of this disk's engine or, if the disk is
    /// simulated, to that disk.
    ///
    /// The content goes through buffers of the disk's size, at most `iodepth` at once. Content of 4
    /// MiB or more bypasses the page cache if the depth is at least two and a buffer has at least
    /// 64 KiB.
    ///
    /// ```
    /// use wrote::engine::Options;
    /// use wrote::{Disk, Ioengine};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// let disk = Disk::open(&Options::new(Ioengine::IoUring, 8, 1 << 20))?;
    /// for number in 0..3 {
    ///     disk.write(folder.path().join(format!("picture-{number}")), &vec![number; 5_000_000])?;
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`write()`].
    pub fn write(&self, path: impl AsRef<Path>, bytes: impl AsRef<[u8]>) -> Result<(), Error> {
        self.save(SyncPolicy::Always, path.as_ref(), bytes.as_ref(), true)
    }

    /// Saves like the function [`write_unflushed`], under the conditions of [`Disk::write`].
    pub fn write_unflushed(
        &self,
        path: impl AsRef<Path>,
        bytes: impl AsRef<[u8]>,
    ) -> Result<(), Error> {
        self.save(SyncPolicy::No, path.as_ref(), bytes.as_ref(), true)
    }

    /// Creates a new file like the function [`write_new`], under the conditions of [`Disk::write`].
    pub fn write_new(&self, path: impl AsRef<Path>, bytes: impl AsRef<[u8]>) -> Result<(), Error> {
        self.save(SyncPolicy::Always, path.as_ref(), bytes.as_ref(), false)
    }

    /// Saves like the function [`write_many`], under the conditions of [`Disk::write`].
    pub fn write_many<P: AsRef<Path>, B: AsRef<[u8]>>(
        &self,
        files: impl IntoIterator<Item = (P, B)>,
    ) -> Result<(), Error> {
        many::Group::on(self)?.save_all(files)
    }

    fn save(
        &self,
        sync: SyncPolicy,
        path: &Path,
        bytes: &[u8],
        replace: bool,
    ) -> Result<(), Error> {
        self.check_process()?;
        let buffer_bytes = self.buffer_bytes();
        // Content that bypasses the cache needs a depth of at least two.
        let pieces = bytes.len().div_ceil(buffer_bytes).max(2) as u64;
        let iodepth = u64::from(self.effective().iodepth).min(pieces) as u32;
        let options =
            Options::new(Ioengine::IoUring, iodepth, buffer_bytes.min(bytes.len().max(1)));
        save(&mut self.engine(&options)?, sync, path, bytes, replace)
    }
}

/// Saves `bytes` at `path`. An existing file is replaced if `replace` is set; otherwise it is an
/// error.
fn save(
    engine: &mut Engine,
    sync: SyncPolicy,
    path: &Path,
    bytes: &[u8],
    replace: bool,
) -> Result<(), Error> {
    let durable = sync != SyncPolicy::No;
    let (place, old) = find(engine, path, replace).map_err(|error| error.about(path))?;
    let options = FileOptions {
        // The old file's permissions are set when the content is complete and has the old owner.
        mode: mode_at_first(old.as_ref()),
        direct: goes_direct(sync, bytes)
            && engine.effective().iodepth > 1
            && engine.pool().buffer_bytes() >= DIRECT_BUFFER_BYTES_MIN,
        ..FileOptions::default()
    };
    StagedFile::save(engine, (&place, path), (replace, durable), &options, |engine, file| {
        make(engine, file, old.as_ref(), bytes, durable)
    })
}

fn goes_direct(sync: SyncPolicy, bytes: &[u8]) -> bool {
    // For content that need not reach the device soon, the page cache is fastest.
    sync != SyncPolicy::No && bytes.len() >= DIRECT_BYTES_MIN
}

/// Finds the path of the new file, and the metadata of the old one, if it exists.
pub(crate) fn find(
    engine: &mut Engine,
    path: &Path,
    replace: bool,
) -> Result<(PathBuf, Option<Inherited>), Error> {
    let Located { path: place, found } = engine.locate(path)?;
    // A file that must be new can't be one that a link leads to.
    if !replace && (found != Found::Nothing || place != path) {
        return Err(Errno::EXIST).tried(path, Action::Open);
    }
    let refused = |because| Err(Error::refused(path, because));
    let old = match found {
        Found::File => old_metadata(&place)?,
        Found::Nothing => None,
        Found::Folder => return Err(Error::is_a_folder(path)),
        Found::Other => {
            return refused("is not an ordinary file with a name, and may not be replaced by one");
        }
    };
    Ok((place, old))
}

fn old_metadata(place: &Path) -> Result<Option<Inherited>, Error> {
    let metadata = Metadata::of_replaced(place)?;
    if metadata.is_some() {
        // The permission is checked without opening the file for writing, which would disturb a
        // process that executes or watches it.
        accessat(CWD, place, Access::WRITE_OK, AtFlags::EACCESS).tried(place, Action::Open)?;
    }
    Ok(metadata)
}

fn make(
    engine: &mut Engine,
    file: FileId,
    old: Option<&Inherited>,
    bytes: &[u8],
    durable: bool,
) -> Result<(), Error> {
    let end_bytes = fill(engine, file, bytes)?;
    engine.drain()?;
    if end_bytes != bytes.len() as u64 {
        engine.truncate(file, bytes.len() as u64)?;
    }
    complete(engine, file, old, durable)
}

/// Queues the content, and returns its end, which is rounded up to a whole block for a direct file.
fn fill(engine: &mut Engine, file: FileId, bytes: &[u8]) -> Result<u64, Error> {
    if engine.is_direct(file) {
        allocate(engine, file, bytes.len() as u64)?;
    }
    let align_bytes = engine.align_bytes(file) as usize;
    let piece_bytes = engine.pool().buffer_bytes() / align_bytes * align_bytes;
    let mut end_bytes = 0;
    for (number, piece) in bytes.chunks(piece_bytes).enumerate() {
        let mut buffer = engine.lease()?;
        buffer.set_len(piece.len().next_multiple_of(align_bytes));
        let (content, padding) = buffer.split_at_mut(piece.len());
        content.copy_from_slice(piece);
        padding.fill(0);
        let offset = (number * piece_bytes) as u64;
        end_bytes = offset + buffer.len() as u64;
        engine.queue(0, Op::Write { file, offset, buffer, durable: false });
        engine.submit()?;
        // If a write has already failed, the loop ends here.
        engine.reap_results(0)?;
    }
    Ok(end_bytes)
}

/// Allocates the file's blocks. On most file systems, direct writes that extend a file wait for
/// each other, but writes into allocated blocks do not.
fn allocate(engine: &mut Engine, file: FileId, len: u64) -> Result<(), Error> {
    engine.queue(0, Op::Fallocate { file, offset: 0, len });
    match engine.drain() {
        Err(error) if matches!(error.errno(), libc::EOPNOTSUPP | libc::ENOSYS) => Ok(()),
        result => result,
    }
}

/// Renames a file or folder like `std::fs::rename`, and makes the change durable before it returns.
///
/// The change is atomic: at every moment, even after a crash, `to` is either the old file or the
/// new one. If the two paths are in different folders, a power loss before this returns may leave
/// the file under both names. The file's content is not flushed. Flush it first
/// ([`Writer::sync_data`](crate::Writer::sync_data), `File::sync_all`); otherwise, a power loss may
/// keep the new name and lose the content.
///
/// ```
/// # let folder = tempfile::tempdir()?;
/// # let (part, done) = (folder.path().join("data.part"), folder.path().join("data"));
/// # std::fs::write(&part, b"precious")?;
/// std::fs::File::open(&part)?.sync_all()?;
/// wrote::rename(&part, &done)?;
/// # assert_eq!(std::fs::read(&done)?, b"precious");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// [`Error::File`] with the kernel's message: `ENOENT`, `EACCES`, `EXDEV` for another file system,
/// `ENOTEMPTY` for a non-empty folder. In these cases, nothing has been renamed, unless the action
/// is [`SyncFolder`](crate::Action::SyncFolder): then every process sees the new name, but a power
/// loss may restore the old one.
pub fn rename(from: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<(), Error> {
    let (from, to) = (from.as_ref(), to.as_ref());
    let mut engine = engine()?;
    engine.rename(from, to, true).map_err(|error| {
        let is_missing = error.errno() == libc::ENOENT && std::fs::symlink_metadata(from).is_err();
        if is_missing { error.about(from) } else { error }
    })?;
    let (old, new) = (folder_of(from), folder_of(to));
    engine.sync_folder(new)?;
    if old == new { Ok(()) } else { engine.sync_folder(old) }
}

/// Makes the names in a folder durable, after files were created, renamed or removed in it.
/// Flushing a new file does not make its name durable (`fsync(2)`).
///
/// ```
/// # let folder = tempfile::tempdir()?;
/// # let folder = folder.path();
/// std::fs::File::create(folder.join("lock"))?.sync_all()?;
/// wrote::sync_folder(folder)?; // the name survives, too
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// [`Error::File`] with the kernel's message. If the file system does not need to flush folders,
/// that is not an error.
pub fn sync_folder(folder: impl AsRef<Path>) -> Result<(), Error> {
    engine()?.sync_folder(folder)
}

fn engine() -> Result<Engine, Error> {
    Engine::open(&Options::new(Ioengine::Psync, 1, rustix::param::page_size()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Action, Sim};
    use std::fs::{self, File};

    #[test]
    fn only_large_durable_content_goes_past_the_cache_and_falls_back_where_it_cannot() {
        // W6
        const LARGE: usize = DIRECT_BYTES_MIN + 777;
        let (always, no) = (SyncPolicy::Always, SyncPolicy::No);
        for (sync, len, iodepth, buffer_bytes, steps) in [
            (always, LARGE, 4, 1 << 20, 1),
            (no, LARGE, 4, 1 << 20, 0),
            (always, 50_000, 4, 4096, 0),
            (always, LARGE, 1, 1 << 20, 0),
            (always, LARGE, 4, 5000, 0),
            (always, LARGE, 4, 100_001, 1),
        ] {
            for at_transfer in [false, true] {
                let sim = Sim::new(3);
                if at_transfer {
                    sim.refuse_direct_at_transfer()
                } else {
                    sim.refuse_direct_at_open()
                }
                let options = Options::new(Ioengine::IoUring, iodepth, buffer_bytes);
                let mut engine = Engine::simulated(&sim, &options).unwrap();
                let (path, content) = (Path::new("/sim/file"), vec![7; len]);
                save(&mut engine, sync, path, &content, true).unwrap();
                assert_eq!(sim.contents(path), Some(content));
                let found = engine.effective().fallbacks.len();
                assert_eq!(found, steps, "{sync:?} {len} {iodepth} {buffer_bytes}");
            }
        }
    }

    #[test]
    fn a_link_to_what_has_no_name_is_refused_and_nothing_is_made() {
        use std::os::fd::AsRawFd;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let file = File::create(&path).unwrap();
        let link = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
        write(&link, b"by its link").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"by its link");
        // The open file has lost its name.
        assert!(matches!(write(&link, b"x"), Err(Error::Refused { .. })));
        let (pipe, _other_end) = std::io::pipe().unwrap();
        let link = PathBuf::from(format!("/proc/self/fd/{}", pipe.as_raw_fd()));
        assert!(matches!(write(&link, b"x"), Err(Error::Refused { .. })));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_rename_replaces_what_is_there_and_names_what_is_missing() {
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| folder.path().join(name);
        fs::create_dir(place("inner")).unwrap();
        fs::write(place("new"), b"new").unwrap();
        fs::write(place("inner/old"), b"old").unwrap();
        rename(place("new"), place("inner/old")).unwrap();
        assert_eq!(fs::read(place("inner/old")).unwrap(), b"new");
        rename(place("inner"), place("outer")).unwrap();
        for (from, to, about) in [("new", "other", "new"), ("outer/old", "no/file", "no/file")] {
            let error = rename(place(from), place(to)).unwrap_err();
            assert!(matches!(&error, Error::File { action: Action::Rename, .. }), "{error}");
            assert_eq!((error.errno(), error.path()), (libc::ENOENT, Some(&*place(about))));
        }
        assert_eq!(fs::read(place("outer/old")).unwrap(), b"new");
    }

    #[test]
    fn a_folder_is_flushed_and_one_that_is_missing_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        sync_folder(folder.path()).unwrap();
        assert_eq!(sync_folder(folder.path().join("no")).unwrap_err().errno(), libc::ENOENT);
    }
}
