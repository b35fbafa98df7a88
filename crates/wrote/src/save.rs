//! A file saved whole: after a crash at any moment there is all of the old content or all of the new.
//!
//! `std::fs::write` cuts the old file to nothing before it writes: whoever reads then, and whoever
//! comes after a crash, finds a part or nothing. Here the new content goes into a file of its own,
//! beside the old one, and takes the old one's name in one step when it is whole (`rename(2)`).

mod read;
mod room;

pub use read::read;

use crate::engine::Found;
use crate::error::Tried;
use crate::metadata::{Metadata, MetadataParts};
use crate::staged::Staged;
use crate::{Action, Engine, Error, FileId, FileOptions, Ioengine, Op, Options, Sync};
use rustix::fs::{Access, AtFlags, CWD, accessat};
use rustix::io::Errno;
use std::cell::Cell;
use std::path::{Path, PathBuf};

/// From how many bytes on a durable save bypasses the page cache, where the engine can have several
/// writes in flight. Below, making a ring and its buffers costs more than it brings.
const DIRECT_BYTES_MIN: usize = 4 << 20;

/// What a large save is written with.
const DIRECT_IODEPTH: u32 = 8;
const DIRECT_BS_BYTES: usize = 1 << 20;

/// The smallest buffers that are used for direct writes: no file is aligned to more.
const DIRECT_BUFFER_BYTES_MIN: usize = 64 << 10;

/// Bytes of the buffer through which all other saves go: it stays in the processor's cache.
const CACHED_BS_BYTES: usize = 128 << 10;

thread_local! {
    /// What this thread's saves share. Its buffer is mapped and faulted in once: for a small file that
    /// costs more than all else that a save does besides writing and syncing.
    static CACHED_ENGINE: Cell<Option<Engine>> = const { Cell::new(None) };
}

/// Replaces the content of the file at `path`, or makes the file, so that it survives a power loss
/// once this returned.
///
/// In place of `std::fs::write`, with these differences:
///
/// - **Whole.** After a crash of the process or the kernel or a power loss, at any moment, the file
///   has all of its old content or all of the new. Other processes, too, see one or the other:
///   whoever has the old file open goes on reading the old content.
/// - **Durable.** The content is flushed (`fsync(2)`) before it gets its name, and the name after
///   that, by a flush of the folder. What that is worth on the file system in use,
///   `docs/durability.md` tells. It takes two flushes of the device: a millisecond or so, not
///   microseconds. [`write_with`] leaves them out.
/// - **A new file** takes the old one's place. It gets the old one's permissions, owner, group,
///   access control list and extended attributes, as far as this process may give them; where it may
///   not give the group, the group gets no more than others have. Symbolic links are followed, and
///   stay. Of several hard links only this name gets the new content.
/// - **The folder** must be one in which this process may make names, and for a moment it needs room
///   for both contents. The file must be one that this process may write to, as `std::fs::write`
///   would, though a rename alone does not ask for that.
///
/// A process that is killed meanwhile leaves a file `.NAME.wrote-PROCESS-NUMBER` in the folder.
///
/// Small content goes through the page cache, by a buffer of 128 KiB that each thread keeps from its
/// first save until it ends. Content of 4 MiB and more bypasses the cache, with 8 MiB of buffers
/// while it is written: then it is not in the cache for whoever reads it next.
///
/// ```
/// # fn main() -> Result<(), wrote::Error> {
/// # let folder = std::env::temp_dir().join(format!("wrote-doc-write-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder).unwrap();
/// # let path = folder.join("settings.toml");
/// wrote::write(&path, "colour = \"red\"\n")?;
/// // Never the half of it, whatever happens here:
/// wrote::write(&path, "colour = \"green\"\nsize = 3\n")?;
/// assert_eq!(wrote::read(&path)?, b"colour = \"green\"\nsize = 3\n");
/// # std::fs::remove_dir_all(&folder).unwrap();
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// [`Error::Refused`] for a folder, a device, or another thing that is no ordinary file.
/// [`Error::File`] for what the kernel refused, told of `path`: `ENOSPC`, `EDQUOT`, `EFBIG`
/// (`RLIMIT_FSIZE`; the process gets `SIGXFSZ` too), `EACCES`, `EIO`, `EBUSY` (the file is a
/// mount point, as some are in containers), a folder that is not there. The old file is then as it was, and the unfinished one is removed. One error comes later:
///
/// - [`Action::SyncFolder`]: the new content is in place and whole, and every process sees it, but
///   the flush of its name failed. After a power loss there is the new content or the old, whole
///   either way, and nobody can say which. Saving again makes a new file and flushes anew.
pub fn write(path: impl AsRef<Path>, bytes: impl AsRef<[u8]>) -> Result<(), Error> {
    write_with(Sync::Always, path, bytes)
}

/// As [`write()`], and with [`Sync::No`] without flushing anything.
///
/// [`Sync::EverySec`] and [`Sync::Interval`] mean the same as [`Sync::Always`] here: there is no
/// later at which to flush.
///
/// With [`Sync::No`] the save is atomic for other processes, and for a crash of this one: they find
/// all of the old content or all of the new. It survives no more than a crash of the process
/// ([`crate::Survives::ProcessCrash`]). A crash of the kernel or a power loss within the next seconds
/// may bring the old content back; and where the file system brings the name to the device before
/// the bytes, an *empty or mixed* file is left. ext4 does not do that when a name is replaced, unless
/// it is mounted with `noauto_da_alloc` or `data=writeback` (`ext4(5)`, `auto_da_alloc`); it may for a
/// new name, and XFS for any. Who needs one content or the other after a power loss needs the
/// flushes.
///
/// ```
/// # fn main() -> Result<(), wrote::Error> {
/// # let folder = std::env::temp_dir().join(format!("wrote-doc-with-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder).unwrap();
/// # let path = folder.join("cache.json");
/// // Can be made again, so no flush; but nobody is to read the half of it.
/// wrote::write_with(wrote::Sync::No, &path, "{}")?;
/// # std::fs::remove_dir_all(&folder).unwrap();
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// Those of [`write()`]; without flushes none of theirs.
pub fn write_with(
    sync: Sync,
    path: impl AsRef<Path>,
    bytes: impl AsRef<[u8]>,
) -> Result<(), Error> {
    save_by_thread(sync, path.as_ref(), bytes.as_ref(), true)
}

/// Makes a new file at `path` with this content, whole and durable as by [`write()`]; a name that
/// exists is an error, and its file keeps its content.
///
/// The name appears in one step when the content is whole and flushed (`renameat2(2)`,
/// RENAME_NOREPLACE; `link(2)` on a file system without that flag). Of several processes that make
/// one name at the same time, one succeeds. After a crash or a power loss, at any moment, the file is
/// there with all of its content, or it does not exist. A symbolic link is a name that exists, and is
/// not followed, as by `std::fs::File::create_new`. Permissions are those of any new file.
///
/// ```
/// # fn main() -> Result<(), wrote::Error> {
/// # let folder = std::env::temp_dir().join(format!("wrote-doc-new-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder).unwrap();
/// # let path = folder.join("result.json");
/// wrote::write_new(&path, "{}")?;
/// let error = std::io::Error::from(wrote::write_new(&path, "[]").unwrap_err());
/// assert_eq!(error.kind(), std::io::ErrorKind::AlreadyExists);
/// assert_eq!(wrote::read(&path)?, b"{}");
/// # std::fs::remove_dir_all(&folder).unwrap();
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// [`Error::File`] with `EEXIST` where the name exists, which is [`std::io::ErrorKind::AlreadyExists`],
/// before anything is written where it existed from the start. Otherwise those of [`write()`].
pub fn write_new(path: impl AsRef<Path>, bytes: impl AsRef<[u8]>) -> Result<(), Error> {
    save_by_thread(Sync::Always, path.as_ref(), bytes.as_ref(), false)
}

/// Saves through the engine that this thread keeps, or through one for large content.
fn save_by_thread(sync: Sync, path: &Path, bytes: &[u8], replace: bool) -> Result<(), Error> {
    if goes_direct(sync, bytes) {
        let options = Options::new(Ioengine::IoUring, DIRECT_IODEPTH, DIRECT_BS_BYTES);
        return save(&mut Engine::open(&options)?, sync, path, bytes, replace);
    }
    // Where the thread is ending, and its engine is gone already, there is none to take.
    let mut engine = match CACHED_ENGINE.try_with(Cell::take).ok().flatten() {
        Some(engine) => engine,
        None => Engine::open(&Options::new(Ioengine::Psync, 1, CACHED_BS_BYTES))?,
    };
    save(&mut engine, sync, path, bytes, replace)?;
    // Kept after success only: what went wrong with one file says nothing of the next.
    let _ = CACHED_ENGINE.try_with(|kept| kept.set(Some(engine)));
    Ok(())
}

/// As [`write_with`], through an engine of the caller's: it is made once for many saves, it can be a
/// [`crate::Sim`]'s, and afterwards it tells what was in effect ([`Engine::effective`]).
///
/// The content goes through the engine's buffers, as many at once as it has depth. Content of 4 MiB
/// and more that is to be durable bypasses the page cache where the depth is more than one and the
/// buffers are of 64 KiB or more.
///
/// ```
/// use wrote::{Engine, Ioengine, Options, Sync};
///
/// # fn main() -> Result<(), wrote::Error> {
/// # let folder = std::env::temp_dir().join(format!("wrote-doc-through-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder).unwrap();
/// let mut engine = Engine::open(&Options::new(Ioengine::IoUring, 8, 1 << 20))?;
/// for number in 0..3 {
///     let path = folder.join(format!("picture-{number}"));
///     wrote::write_through(&mut engine, Sync::Always, &path, &vec![number; 5_000_000])?;
/// }
/// # std::fs::remove_dir_all(&folder).unwrap();
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// Those of [`write()`]; and once a flush of a folder failed, every later durable save there through
/// this engine fails with [`Error::Poisoned`], after its new content was put in place (W2).
///
/// # Panics
///
/// When operations of the caller's are outstanding on the engine: they could not be told from the
/// save's own.
pub fn write_through(
    engine: &mut Engine,
    sync: Sync,
    path: &Path,
    bytes: &[u8],
) -> Result<(), Error> {
    save(engine, sync, path, bytes, true)
}

/// As [`write_new`], through an engine of the caller's, and with [`Sync::No`] without flushing
/// anything: [`write_through`] for a file that is to be new.
///
/// # Errors
///
/// Those of [`write_new`] and [`write_through`].
///
/// # Panics
///
/// As [`write_through`].
pub fn write_new_through(
    engine: &mut Engine,
    sync: Sync,
    path: &Path,
    bytes: &[u8],
) -> Result<(), Error> {
    save(engine, sync, path, bytes, false)
}

/// Saves `bytes` at `path`; a file that is there is replaced with `replace`, and an error without.
fn save(
    engine: &mut Engine,
    sync: Sync,
    path: &Path,
    bytes: &[u8],
    replace: bool,
) -> Result<(), Error> {
    assert_eq!(engine.outstanding(), 0, "a save takes an engine with nothing outstanding");
    let durable = sync != Sync::No;
    let found = if replace { find(engine, path) } else { find_free(engine, path) };
    let (place, old) = found.map_err(|error| error.about(path))?;
    let options = FileOptions {
        // The old one's permissions are given when the content is whole and has the old one's owner.
        mode: old.as_ref().map(Metadata::mode_at_first),
        direct: goes_direct(sync, bytes) && writes_directly(engine),
        ..FileOptions::default()
    };
    Staged::save(engine, (&place, path), (replace, durable), &options, |engine, file| {
        make(engine, file, old.as_ref(), bytes, durable)
    })
}

fn goes_direct(sync: Sync, bytes: &[u8]) -> bool {
    // What need not reach the device soon is written fastest into the page cache.
    sync != Sync::No && bytes.len() >= DIRECT_BYTES_MIN
}

fn writes_directly(engine: &Engine) -> bool {
    engine.effective().iodepth > 1 && engine.pool().buffer_bytes() >= DIRECT_BUFFER_BYTES_MIN
}

/// Where the new file belongs, and what the old one has besides its bytes, where there is one.
fn find(engine: &mut Engine, path: &Path) -> Result<(PathBuf, Option<Metadata>), Error> {
    let located = engine.locate(path)?;
    let place = located.path;
    let because = match located.found {
        Found::File => {
            let old = old_metadata(&place)?;
            return Ok((place, old));
        }
        Found::Nothing => return Ok((place, None)),
        Found::Folder => "is a folder: name a file in it",
        Found::Other => "is no ordinary file with a name, and is not to be replaced by one",
    };
    Err(Error::refused(path, because))
}

/// The place of a file that is to be new: no link leads to another.
fn find_free(engine: &mut Engine, path: &Path) -> Result<(PathBuf, Option<Metadata>), Error> {
    let located = engine.locate(path)?;
    if located.found == Found::Nothing && located.path == path {
        return Ok((located.path, None));
    }
    Err(Errno::EXIST).tried(path, Action::Open)
}

/// `None` where the file went meanwhile, and on a simulated disk, whose files have none.
fn old_metadata(place: &Path) -> Result<Option<Metadata>, Error> {
    let metadata = match Metadata::at(place) {
        Ok(metadata) => metadata,
        Err(error) if error.errno() == libc::ENOENT => return Ok(None),
        Err(error) => return Err(error),
    };
    // Not by opening it for writing: whoever then wants to run the file, or is watching it, would
    // notice.
    accessat(CWD, place, Access::WRITE_OK, AtFlags::EACCESS).tried(place, Action::Open)?;
    Ok(Some(metadata))
}

/// Gives the file all that it is to have when it takes its place.
fn make(
    engine: &mut Engine,
    file: FileId,
    old: Option<&Metadata>,
    bytes: &[u8],
    durable: bool,
) -> Result<(), Error> {
    let end_bytes = fill(engine, file, bytes)?;
    engine.drain()?;
    if end_bytes != bytes.len() as u64 {
        engine.truncate(file, bytes.len() as u64)?;
    }
    if let (Some(old), Some(new)) = (old, engine.descriptor(file)) {
        // After the writes, which take the right to run as the owner away again (`write(2)`).
        old.give(new, engine.path(file), MetadataParts { owner: true, times: false })?;
    }
    if durable {
        // W1: before the file has its name. Not fdatasync, which may leave permissions behind.
        engine.queue(0, Op::Fsync { file });
        engine.drain()?;
    }
    Ok(())
}

/// Queues the content, and tells where the file then ends: a direct one at a whole block.
fn fill(engine: &mut Engine, file: FileId, bytes: &[u8]) -> Result<u64, Error> {
    if engine.is_direct(file) {
        allocate(engine, file, bytes.len() as u64)?;
    }
    let align_bytes = engine.align_bytes(file) as usize;
    let piece_bytes = engine.pool().buffer_bytes() / align_bytes * align_bytes;
    let mut completions = Vec::new();
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
        // What failed early need not wait for the rest.
        engine.reap(0, &mut completions)?;
        completions.drain(..).try_for_each(|completion| completion.result.map(drop))?;
    }
    Ok(end_bytes)
}

/// Direct writes that make a file longer wait for each other on most file systems; into blocks that
/// are allocated they do not.
fn allocate(engine: &mut Engine, file: FileId, len: u64) -> Result<(), Error> {
    engine.queue(0, Op::Fallocate { file, offset: 0, len });
    match engine.drain() {
        Err(error) if matches!(error.errno(), libc::EOPNOTSUPP | libc::ENOSYS) => Ok(()),
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, File};

    #[test]
    fn only_large_content_that_is_to_be_durable_bypasses_the_page_cache() {
        let large = vec![0; DIRECT_BYTES_MIN];
        assert!(goes_direct(Sync::Always, &large));
        assert!(goes_direct(Sync::EverySec, &large));
        assert!(!goes_direct(Sync::No, &large));
        assert!(!goes_direct(Sync::Always, &large[1..]));
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
        // The file that is open has no name any more.
        assert!(matches!(write(&link, b"x"), Err(Error::Refused { .. })));
        let (pipe, _other_end) = std::io::pipe().unwrap();
        let link = PathBuf::from(format!("/proc/self/fd/{}", pipe.as_raw_fd()));
        assert!(matches!(write(&link, b"x"), Err(Error::Refused { .. })));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_failed_save_leaves_the_threads_next_one_alone() {
        // W2 is about one file: another is another's.
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        for _ in 0..3 {
            write(&path, b"x").unwrap();
            write(folder.path(), b"x").unwrap_err();
            write(folder.path().join("no/file"), b"x").unwrap_err();
        }
        assert_eq!(fs::read(&path).unwrap(), b"x");
    }
}
