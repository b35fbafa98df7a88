//! The source of a copy, opened in the way that reads it fastest, and the place of the copy.

use super::stream::source_shrank;
use crate::cached::cached_bytes;
use crate::engine::{Found, Located, Op};
use crate::error::Tried;
use crate::metadata::Metadata;
use crate::{Action, Engine, Error, FileId, FileOptions};
use rustix::fs::fstat;
use rustix::io::Errno;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The longest file that is copied through the page cache. The kernel then writes many such files
/// together, while each direct write waits for the device by itself.
pub(super) const SMALL_BYTES_MAX: u64 = 128 << 10;

pub(super) struct Source<'a> {
    pub file: FileId,
    /// The path that the user gave.
    pub named: &'a Path,
    /// Its length when it was opened.
    pub len: u64,
    /// Whether it is one transfer, which goes through the page cache.
    pub small: bool,
    /// Its metadata; `None` on a simulated disk.
    pub metadata: Option<Metadata>,
    place: PathBuf,
    /// Device and inode; `None` on a simulated disk.
    identity: Option<(u64, u64)>,
}

impl<'a> Source<'a> {
    /// Opens an ordinary file, to be read in pieces of at most `bs_bytes`.
    ///
    /// It is read through the page cache if that holds most of it, and otherwise past it: a large
    /// file must not evict the pages of other programs.
    pub(super) fn open(
        engine: &mut Engine,
        named: &'a Path,
        bs_bytes: usize,
    ) -> Result<Source<'a>, Error> {
        let place = ordinary(engine, named)?;
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
        if len == 0 {
            be_empty(engine, named, file)?;
        }
        let descriptor = engine.descriptor(file);
        let metadata = descriptor.map(|file| Metadata::of(file, named)).transpose()?;
        let identity = descriptor.and_then(identity);
        let piece_bytes = bs_bytes.min(engine.pool().buffer_bytes()) as u64;
        let small = len <= piece_bytes.min(SMALL_BYTES_MAX);
        Ok(Source { file, named, len, small, metadata, place, identity })
    }

    /// Opens the same file directly, unless it is small or mostly in memory.
    fn past_the_cache(mut self, engine: &mut Engine) -> Result<Source<'a>, Error> {
        if self.small {
            return Ok(self);
        }
        let descriptor = engine.descriptor(self.file);
        let cached = descriptor.and_then(|file| cached_bytes(file, self.len));
        if cached.is_some_and(|cached| cached > self.len / 2) {
            return Ok(self);
        }
        let options = FileOptions::new().direct(true);
        let direct = engine.open_file(self.named, &options)?;
        // If the name was given to another file meanwhile, the first one is read as it is.
        let same = engine.descriptor(direct).and_then(identity) == self.identity;
        let (kept, closed) = if same { (direct, self.file) } else { (self.file, direct) };
        self.file = kept;
        close(engine, closed);
        Ok(self)
    }

    /// Whether it is the ordinary file at `place`, by any name.
    pub(super) fn is_at(&self, place: &Path) -> Result<bool, Error> {
        let Some(identity) = self.identity else { return Ok(self.place == place) };
        let there = rustix::fs::stat(place).tried(place, Action::Examine)?;
        Ok((there.st_dev, there.st_ino) == identity)
    }

    /// Fails where the source ends before its length.
    pub(super) fn check_len(&self, engine: &Engine) -> Result<(), Error> {
        if engine.file_len(self.file)? < self.len {
            return Err(source_shrank(engine, self.file));
        }
        Ok(())
    }
}

/// Finds the file, which must be an ordinary one. Opening a pipe may wait for ever (`fifo(7)`).
fn ordinary(engine: &mut Engine, named: &Path) -> Result<PathBuf, Error> {
    let Located { path, found } = engine.locate(named)?;
    let refused = |because| Error::refused(named, because);
    match found {
        Found::File => Ok(path),
        Found::Folder => Err(refused("is a folder")),
        Found::Other => Err(refused("is a device, a pipe or a socket: only files are copied")),
        Found::Nothing => Err(Errno::NOENT).tried(named, Action::Open),
    }
}

/// Finds the name that the copy will have: `to` with its symbolic links followed. Fails with
/// [`Error::Refused`] for a folder, a device, or the source itself, and with `EEXIST` for a file,
/// unless `replace` is set (W7).
pub(super) fn find_place(
    engine: &mut Engine,
    source: Option<&Source>,
    to: &Path,
    replace: bool,
) -> Result<Located, Error> {
    let located = engine.locate(to)?;
    let refused = |because| Err(Error::refused(to, because));
    match located.found {
        Found::Nothing if to.as_os_str().as_bytes().ends_with(b"/") => {
            refused("names a folder, and there is none")
        }
        Found::Folder => refused("is a folder"),
        Found::Other => refused("is a device, a pipe or a socket: copies are made as files only"),
        Found::File => {
            if let Some(source) = source
                && source.is_at(&located.path).map_err(|error| error.about(to))?
            {
                let because = format!("is the same file as {}", source.named.display());
                return Err(Error::refused(to, because));
            }
            if !replace {
                return Err(Errno::EXIST).tried(to, Action::Open);
            }
            Ok(located)
        }
        Found::Nothing => Ok(located),
    }
}

/// Refuses a file of `/proc` that reports a length of 0 but has bytes (`proc(5)`): its copy would
/// be empty.
fn be_empty(engine: &mut Engine, named: &Path, file: FileId) -> Result<(), Error> {
    let buffer = engine.lease()?;
    engine.queue(0, Op::Read { file, offset: 0, buffer });
    let mut completions = Vec::new();
    engine.reap(1, &mut completions)?;
    let found = completions.pop().expect("one was queued").result?;
    if found == 0 || engine.file_len(file)? > 0 {
        return Ok(());
    }
    let because = "says that it is empty and is not, as files of /proc do: \
                   only reading to the end tells its length";
    Err(Error::refused(named, because))
}

/// Returns the device and the inode of an open file.
pub(super) fn identity(file: BorrowedFd) -> Option<(u64, u64)> {
    let stat = fstat(file).ok()?;
    Some((stat.st_dev, stat.st_ino))
}

/// Closes a file because of another error, which is the one to report.
fn close(engine: &mut Engine, file: FileId) {
    let _ = engine.close_file(file);
}
