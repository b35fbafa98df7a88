//! Files that are created under a temporary name and renamed when they are complete.

use crate::engine::{Op, folder_of};
use crate::metadata::Inherited;
use crate::{Action, Engine, Error, FileId, FileOptions};
use rustix::fs::{FlockOperation, flock};
use std::ffi::{OsStr, OsString};
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// The maximum number of bytes of the file's name that its temporary name contains. A name can have
/// up to 255 bytes (`NAME_MAX`).
const NAME_BYTES_MAX: usize = 200;

/// A file that does not have its final name yet.
///
/// Its temporary name `.NAME.wrote-PROCESS-NUMBER` is in the same folder, because an atomic rename
/// requires one file system. If the process is killed, the temporary file remains. `O_TMPFILE`
/// could not be used instead, because `linkat(2)` can't replace an existing name.
#[derive(Debug)]
pub(crate) struct StagedFile {
    pub file: FileId,
    is_closed: bool,
    temporary: PathBuf,
    place: PathBuf,
    replace: bool,
}

impl StagedFile {
    /// Creates the file. An existing file at `place` is kept until [`StagedFile::put`], which
    /// replaces it if `replace` is set, and otherwise fails.
    pub(crate) fn new(
        engine: &mut Engine,
        place: &Path,
        replace: bool,
        options: &FileOptions,
    ) -> Result<StagedFile, Error> {
        let options = options.create_new(true).write(true);
        let (temporary, file) = beside(place, |path| engine.open_file(path, &options))?;
        if let Some(open) = engine.descriptor(file) {
            hold(open);
        }
        Ok(StagedFile { file, is_closed: false, temporary, place: place.to_owned(), replace })
    }

    /// Creates the file, fills it with `fill`, and gives it its final name; removes it after an
    /// error. Errors about the file refer to it as `named`.
    pub(crate) fn save<T>(
        engine: &mut Engine,
        (place, named): (&Path, &Path),
        (replace, durable): (bool, bool),
        options: &FileOptions,
        fill: impl FnOnce(&mut Engine, FileId) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let about = |error: Error| error.about(named);
        let staged = StagedFile::new(engine, place, replace, options)
            .map_err(|error| error.renamed(place, named))?;
        // `fill` may call the program's watcher. If that panics, the file must be removed, too.
        let filled = catch_unwind(AssertUnwindSafe(|| fill(engine, staged.file)));
        match filled.unwrap_or_else(|panic| {
            staged.abandon(engine);
            resume_unwind(panic)
        }) {
            Ok(filled) => staged.put(engine, durable).map(|()| filled).map_err(about),
            Err(error) => {
                staged.abandon(engine);
                Err(staged.named(error, named))
            }
        }
    }

    /// Replaces the temporary name in an error with `path`.
    pub(crate) fn named(&self, error: Error, path: &Path) -> Error {
        error.renamed(&self.temporary, path)
    }

    /// Closes the complete file before it gets its final name, so that many such files do not
    /// occupy descriptors. This also releases the file's lock, so only the temporary name then
    /// shows that the file is still needed.
    pub(crate) fn close(&mut self, engine: &mut Engine) -> Result<(), Error> {
        match std::mem::replace(&mut self.is_closed, true) {
            false => engine.close_file(self.file),
            true => Ok(()),
        }
    }

    /// Closes and removes the file. An error in doing so is ignored, because the caller reports an
    /// earlier error, or no longer wants the file.
    pub(crate) fn abandon(&self, engine: &mut Engine) {
        let _ = engine.drain();
        if !self.is_closed {
            let _ = engine.close_file(self.file);
        }
        let _ = engine.remove(&self.temporary);
    }

    /// Closes the file and atomically gives it its final name. With `durable`, the name survives
    /// power loss. The caller must have flushed the bytes, or the name might survive without them.
    pub(crate) fn put(mut self, engine: &mut Engine, durable: bool) -> Result<(), Error> {
        self.close(engine)
            .and_then(|()| engine.rename(&self.temporary, &self.place, self.replace))
            .inspect_err(|_| {
                // An error here is ignored, because the first error is reported.
                let _ = engine.remove(&self.temporary);
            })?;
        if durable { engine.sync_folder(folder_of(&self.place)) } else { Ok(()) }
    }
}

/// Sets a staged file's metadata. This must follow the writes, because they clear the setuid and
/// setgid bits (`write(2)`).
pub(crate) fn give(engine: &Engine, file: FileId, given: Option<&Inherited>) -> Result<(), Error> {
    match (given, engine.descriptor(file)) {
        (Some((metadata, parts)), Some(open)) => metadata.give(open, engine.path(file), *parts),
        _ => Ok(()),
    }
}

/// Sets a staged file's metadata and, with `durable`, flushes all of it. Nothing may be in flight,
/// and the length must be final.
pub(crate) fn complete(
    engine: &mut Engine,
    file: FileId,
    given: Option<&Inherited>,
    durable: bool,
) -> Result<(), Error> {
    give(engine, file, given)?;
    if durable {
        // W1: the flush precedes the name. It uses `fsync`, because `fdatasync` might not flush the
        // permissions.
        engine.queue(0, Op::Fsync { file });
        engine.drain()?;
    }
    Ok(())
}

/// Locks a file until it is closed (`flock(2)`), to show other processes that it is still being
/// created. On file systems without locks, the process ID in the name serves that purpose.
fn hold(open: BorrowedFd) {
    let _ = flock(open, FlockOperation::NonBlockingLockExclusive);
}

/// Creates something next to `place`, under a temporary name that no other process uses.
pub(crate) fn beside<T>(
    place: &Path,
    mut make: impl FnMut(&Path) -> Result<T, Error>,
) -> Result<(PathBuf, T), Error> {
    loop {
        let temporary = temporary_path(place);
        match make(&temporary) {
            Ok(made) => return Ok((temporary, made)),
            // A killed process that had the same ID left a file with that name.
            Err(error) if error.errno() == libc::EEXIST => {}
            Err(error) => return Err(refused_by_folder(place, error)),
        }
    }
}

/// Makes the error concern the folder, not the file, if the folder accepts no new names. `/proc`
/// then reports ENOENT.
fn refused_by_folder(place: &Path, error: Error) -> Error {
    let (folder, errno) = (folder_of(place), error.errno());
    let refuses = matches!(errno, libc::EACCES | libc::EPERM | libc::EROFS)
        || errno == libc::ENOENT && folder.is_dir();
    if !refuses {
        return error.about(place);
    }
    Error::File { path: folder.to_owned(), action: Action::MakeFile, offset: None, errno }
}

fn temporary_path(place: &Path) -> PathBuf {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let name = place.file_name().unwrap_or_default();
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    folder_of(place).join(temporary_name(name, std::process::id(), number))
}

/// The modulus of the mark: the last six digits of a temporary name's number.
const MARKS: u64 = 1_000_000;

/// Returns `.NAME.wrote-PROCESS-NUMBER`. The last six digits of the number are a mark, a checksum
/// of the rest. It keeps `wrote clean` from removing a similarly named file of another program.
#[doc(hidden)]
pub fn temporary_name(name: &OsStr, process: u32, number: u64) -> OsString {
    let bytes = name.as_bytes();
    let mut temporary = OsString::from(".");
    temporary.push(OsStr::from_bytes(&bytes[..bytes.len().min(NAME_BYTES_MAX)]));
    temporary.push(format!(".wrote-{process}-"));
    // FNV-1a, http://www.isthe.com/chongo/tech/comp/fnv/.
    let hashed = temporary
        .as_bytes()
        .iter()
        .chain(&number.to_le_bytes())
        .fold(0xcbf2_9ce4_8422_2325, |hash: u64, &byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
    temporary.push(format!("{}", number * MARKS + hashed % MARKS));
    temporary
}

/// Parses a name that [`temporary_name`] created, and returns the final name and the process ID.
#[doc(hidden)]
pub fn on_its_way(name: &OsStr) -> Option<(String, u32)> {
    let text = name.to_string_lossy();
    let (place, number) = text.strip_prefix('.')?.rsplit_once(".wrote-")?;
    let (process, number) = number.split_once('-')?;
    let digits = process.len() + number.len();
    let (process, number) = (process.parse().ok()?, number.parse::<u64>().ok()? / MARKS);
    // Both numbers consist of digits, so they have the same length in the name itself, which need
    // not be valid text.
    let own = &name.as_bytes()[1..name.len() - ".wrote--".len() - digits];
    let is_one = !own.is_empty() && temporary_name(OsStr::from_bytes(own), process, number) == name;
    is_one.then(|| (place.to_owned(), process))
}
