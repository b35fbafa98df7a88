//! The two ends of a copy: its source, opened for the fastest reads, and its destination.

use super::pieces::source_shrank;
use crate::engine::{Found, Located, Op};
use crate::error::Tried;
use crate::file::cached::cached_bytes;
use crate::metadata::{Inherited, Metadata, MetadataParts};
use crate::{Action, Engine, Error, FileId, FileOptions};
use rustix::fs::fstat;
use rustix::io::Errno;
use std::fs;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// The maximum length of a file that is copied through the page cache. The kernel batches the
/// writeback of many such files, while each direct write waits for the device.
const SMALL_BYTES_MAX: u64 = 128 << 10;

pub(super) struct Source<'a> {
    pub file: FileId,
    /// The path that the user gave.
    pub named: &'a Path,
    /// The length of the source when it was opened, in bytes.
    pub len: u64,
    /// Whether the source fits into a single transfer, which goes through the page cache.
    pub small: bool,
    /// Whether the source's length can be found only by reading to its end, because the kernel
    /// generates the content (`/proc`, `/sys`).
    pub is_generated: bool,
    /// The source's metadata; `None` on a simulated disk.
    pub metadata: Option<Metadata>,
    place: PathBuf,
    /// The source's device and inode; `None` on a simulated disk.
    identity: Option<(u64, u64)>,
}

impl<'a> Source<'a> {
    /// Opens an ordinary file or a block device, to be read in pieces of at most `bs_bytes`.
    ///
    /// Reads go through the page cache if it holds most of the file, and otherwise bypass it,
    /// because a large file must not evict other programs' pages.
    pub(super) fn open(
        engine: &mut Engine,
        named: &'a Path,
        bs_bytes: usize,
    ) -> Result<Source<'a>, Error> {
        let place = readable(engine, named)?;
        let file = engine.open_file(named, &FileOptions::default())?;
        let opened = Source::examine(engine, named, place, file, bs_bytes)
            .and_then(|source| source.past_the_cache(engine));
        opened.inspect_err(|_| close(engine, file))
    }

    fn examine(
        engine: &mut Engine,
        named: &'a Path,
        place: PathBuf,
        file: FileId,
        bs_bytes: usize,
    ) -> Result<Source<'a>, Error> {
        let len = engine.file_len(file)?;
        let descriptor = engine.descriptor(file);
        let metadata = descriptor.map(|file| Metadata::of(file, named)).transpose()?;
        let identity = descriptor.and_then(identity);
        let may_be_generated = metadata.as_ref().is_some_and(Metadata::may_be_generated);
        let is_generated = may_be_generated && is_generated(engine, file, len)?;
        let piece_bytes = bs_bytes.min(engine.pool().buffer_bytes()) as u64;
        let small = len <= piece_bytes.min(SMALL_BYTES_MAX);
        Ok(Source { file, named, len, small, is_generated, metadata, place, identity })
    }

    /// Reopens the file directly, unless it is small or mostly cached.
    fn past_the_cache(mut self, engine: &mut Engine) -> Result<Source<'a>, Error> {
        if self.small || self.is_generated {
            return Ok(self);
        }
        let descriptor = engine.descriptor(self.file);
        let cached = descriptor.and_then(|file| cached_bytes(file, self.len));
        if cached.is_some_and(|cached| cached > self.len / 2) {
            return Ok(self);
        }
        let options = FileOptions::new().direct(true);
        let direct = engine.open_file(self.named, &options)?;
        // If the name now refers to another file, the first file is read as it was opened.
        let same = engine.descriptor(direct).and_then(identity) == self.identity;
        let (kept, closed) = if same { (direct, self.file) } else { (self.file, direct) };
        self.file = kept;
        close(engine, closed);
        Ok(self)
    }

    /// Returns a duplicate of the open file if it must be read as a stream, and `None` otherwise.
    pub(super) fn as_stream(&self, engine: &Engine) -> Result<Option<OwnedFd>, Error> {
        let open = engine.descriptor(self.file).filter(|_| self.is_generated);
        open.map(|open| open.try_clone_to_owned()).transpose().tried(self.named, Action::Open)
    }

    /// Returns whether the source is the ordinary file at `place`, under any name.
    pub(super) fn is_at(&self, place: &Path) -> Result<bool, Error> {
        let Some(identity) = self.identity else { return Ok(self.place == place) };
        let there = rustix::fs::stat(place).tried(place, Action::Examine)?;
        Ok((there.st_dev, there.st_ino) == identity)
    }

    /// Fails if the source has become shorter than it was when opened.
    pub(super) fn check_len(&self, engine: &Engine) -> Result<(), Error> {
        if engine.file_len(self.file)? < self.len {
            return Err(source_shrank(engine, self.file));
        }
        Ok(())
    }
}

/// Locates the file, which must be ordinary or a block device. Opening a pipe may block forever
/// (`fifo(7)`), and other devices may be endless.
fn readable(engine: &mut Engine, named: &Path) -> Result<PathBuf, Error> {
    let Located { path, found } = engine.locate(named)?;
    let refused = |because| Error::refused(named, because);
    match found {
        Found::File => Ok(path),
        Found::Folder => Err(Error::is_a_folder(named)),
        Found::Other if fs::metadata(&path).is_ok_and(|it| it.file_type().is_block_device()) => {
            Ok(path)
        }
        Found::Other => Err(refused("is neither a file nor a block device, so it can't be copied")),
        Found::Nothing => Err(Errno::NOENT).tried(named, Action::Open),
    }
}

/// Returns whether a read finds a length other than the reported `len`.
fn is_generated(engine: &mut Engine, file: FileId, len: u64) -> Result<bool, Error> {
    let buffer = engine.lease()?;
    let wanted = len.min(buffer.len() as u64);
    engine.queue(0, Op::Read { file, offset: 0, buffer });
    let mut completions = Vec::new();
    engine.reap(1, &mut completions)?;
    let found = completions.pop().expect("one was queued").result? as u64;
    let differs = if len == 0 { found > 0 } else { found < wanted };
    Ok(differs && engine.file_len(file)? == len)
}

/// Returns the device and inode of an open file.
pub(super) fn identity(file: BorrowedFd) -> Option<(u64, u64)> {
    let stat = fstat(file).ok()?;
    Some((stat.st_dev, stat.st_ino))
}

/// Closes a file after an error. A second error while closing is ignored, because the caller
/// reports the first.
fn close(engine: &mut Engine, file: FileId) {
    let _ = engine.close_file(file);
}

/// The destination of a copy, and the metadata of the file that it replaces.
pub(super) struct Place {
    /// The final name, with symbolic links followed.
    pub path: PathBuf,
    /// The metadata of the existing file; the copy of a stream gets it.
    pub replaced: Option<Inherited>,
}

impl Place {
    /// Fails with [`Error::Refused`] for a folder, a device, or the source itself, and with
    /// `EEXIST` for a file, unless `replace` is set (W7).
    pub(super) fn find(
        engine: &mut Engine,
        source: Option<&Source>,
        to: &Path,
        replace: bool,
    ) -> Result<Place, Error> {
        let Located { path, found } = engine.locate(to)?;
        let refused = |because| Err(Error::refused(to, because));
        match found {
            Found::Nothing if to.as_os_str().as_bytes().ends_with(b"/") => {
                refused("names a folder that does not exist")
            }
            Found::Nothing => Ok(Place { path, replaced: None }),
            Found::Folder => Err(Error::is_a_folder(to)),
            Found::Other => refused("is a device, a pipe or a socket, and a copy must be a file"),
            Found::File => {
                if let Some(source) = source
                    && source.is_at(&path).map_err(|error| error.about(to))?
                {
                    let because = format!("is the same file as {}", source.named.display());
                    return Err(Error::refused(to, because));
                }
                if !replace {
                    return Err(Errno::EXIST).tried(to, Action::Open);
                }
                let replaced = Metadata::of_replaced(&path).map_err(|error| error.about(to))?;
                Ok(Place { path, replaced })
            }
        }
    }

    /// Returns the metadata for the copy: with `preserve`, all of the source's. Otherwise, a new
    /// file gets the source's times, permissions and attributes; a replacement gets the source's
    /// times and the old file's owner, permissions and attributes.
    pub(super) fn into_inherited(self, source: Metadata, preserve: bool) -> Inherited {
        let times = source.is_file();
        match self.replaced {
            Some((old, parts)) if !preserve => {
                (old.with_times_of(&source), MetadataParts { times, ..parts })
            }
            _ => (source, MetadataParts { owner: preserve, times }),
        }
    }
}
