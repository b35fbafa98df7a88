//! The file itself. It is opened, locked and repaired, written and flushed, and checked before
//! anything is acknowledged.

use super::LinesOptions;
use super::end::{Repaired, repair};
use crate::engine::{Found, Options, folder_of};
use crate::error::Tried;
use crate::fork::Process;
use crate::log::LogFiles;
use crate::{Action, Disk, Engine, Error, FileId, FileOptions, Ioengine};
use rustix::fs::{FlockOperation, OFlags, fcntl_getfl, fcntl_setfl, flock, fstat};
use rustix::io::{Errno, pread};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// The maximum number of attempts to write lines while another program keeps renaming or truncating
/// the file.
const TRIES: u32 = 10;
/// Errors that may be temporary: the lines stay in memory.
const MAY_PASS: [i32; 3] = [libc::ENOSPC, libc::EDQUOT, libc::EFBIG];

/// The reason why lines were not stored.
pub(super) enum Trouble {
    /// There is currently no room, and nothing was written.
    Lacks(Error),
    /// Nothing more can be relied on.
    Fails(Error),
}

/// The open file, which only one thread at a time uses.
pub(super) struct PlainFile {
    pub engine: Engine,
    pub file: FileId,
    path: PathBuf,
    options: LinesOptions,
    process: Process,
    /// The file's length after the last write.
    end: u64,
    /// Whether the byte before `end` is known to end a line.
    ends_line: bool,
    /// Whether the file has been written to since the last flush.
    is_dirty: bool,
    /// Whether lines that were written but never flushed have been lost.
    has_lost: bool,
    /// The folder of the file, with a symbolic link at the path followed.
    pub folder: PathBuf,
    /// The file to which a torn end was moved when the path was opened.
    pub torn: Option<PathBuf>,
}

// SAFETY: the parts that are not `Send` are the counted references between the engine, its pool and
// its buffers. All of them are inside and none is handed out, so they move together. The engine is
// created for callers on any thread.
unsafe impl Send for PlainFile {}

impl PlainFile {
    pub(super) fn open(options: &LinesOptions, path: &Path) -> Result<PlainFile, Error> {
        let engine_options = Options::new(Ioengine::Psync, 1, 4096).buffers(1);
        let mut engine = Disk::engine_of(options.disk.as_ref(), &engine_options)?;
        let Opened { file, folder, torn } = opened(&mut engine, options, path)?;
        Ok(PlainFile {
            end: engine.file_len(file)?,
            engine,
            file,
            path: path.to_owned(),
            options: options.clone(),
            process: Process::this(),
            // Another program may have written to the file after its length was read.
            ends_line: false,
            is_dirty: false,
            has_lost: false,
            folder,
            torn,
        })
    }

    /// Writes complete lines, flushes the file if `flush`, and checks that a reader of the path
    /// finds them. If another program has renamed, removed or truncated the file in the meantime,
    /// writes them again. Returns whether earlier lines, written but never flushed, have been lost.
    pub(super) fn store(&mut self, lines: &[u8], flush: bool) -> Result<bool, Trouble> {
        // The flush of the first attempt does not cover earlier lines that another program had
        // already removed.
        let was_dirty = self.is_dirty;
        for _ in 0..TRIES {
            let begin = match self.len_at_its_path()? {
                Some(len) => len,
                None => {
                    self.has_lost |= was_dirty && self.is_removed();
                    self.reopen().map_err(Trouble::Fails)?;
                    self.len()?
                }
            };
            self.has_lost |= was_dirty && begin < self.end;
            let end = self.write(begin, lines)?;
            if flush && self.is_dirty {
                self.engine.flush(self.file).map_err(Trouble::Fails)?;
                self.is_dirty = false;
            }
            // This check must follow the write: a program that renames the file later moves the
            // lines, too.
            let found = self.len_at_its_path()?;
            if let Some(len) = found.filter(|len| *len >= end) {
                (self.end, self.ends_line) = (len, len == end);
                return Ok(std::mem::take(&mut self.has_lost));
            }
            let len = found.map_or_else(|| self.len(), Ok)?;
            self.has_lost |= was_dirty && len < begin;
            (self.end, self.ends_line) = (self.end.min(len), false);
        }
        let because = "another program keeps renaming or truncating it, so lines can't be \
                       acknowledged";
        Err(Trouble::Fails(Error::refused(&self.path, because)))
    }

    /// Writes lines at the end: at `begin`, or after the bytes that another program has appended
    /// there. Returns the end of the lines. If there is no room, leaves the file unchanged.
    fn write(&mut self, begin: u64, lines: &[u8]) -> Result<u64, Trouble> {
        let is_own_end = begin == self.end && self.ends_line;
        let begins_line = lines.is_empty() || begin == 0 || is_own_end || self.ends_line(begin)?;
        let feed: &[u8] = if begins_line { b"" } else { b"\n" };
        let mut end = begin;
        for piece in [feed, lines].into_iter().filter(|piece| !piece.is_empty()) {
            self.is_dirty = true;
            if let Err(error) = self.engine.write(self.file, end, piece) {
                return Err(self.take_back(begin, &[feed, lines].concat(), error));
            }
            end += piece.len() as u64;
        }
        // If another program has appended between the pieces, the next write reads the end again.
        (self.end, self.ends_line) = (self.end.max(end), false);
        Ok(end)
    }

    /// Removes the part of a batch that was written before the disk was full, so that the file ends
    /// with a complete line. Bytes that another program wrote there are left alone.
    fn take_back(&mut self, begin: u64, batch: &[u8], error: Error) -> Trouble {
        if !MAY_PASS.contains(&error.errno()) {
            return Trouble::Fails(error);
        }
        let taken_back = self.engine.file_len(self.file).and_then(|len| {
            if len <= begin {
                return Ok(());
            }
            if !self.is_part(begin, len, batch)? {
                let because = "the disk is full, and another program wrote after a part of the \
                               last lines, which can't be removed";
                return Err(Error::refused(&self.path, because));
            }
            self.engine.truncate(self.file, begin)
        });
        match taken_back {
            Ok(()) => Trouble::Lacks(error),
            Err(error) => Trouble::Fails(error),
        }
    }

    /// Returns whether these bytes of the file are the first bytes of the batch.
    fn is_part(&self, begin: u64, end: u64, batch: &[u8]) -> Result<bool, Error> {
        let Some(batch) = batch.get(..(end - begin) as usize) else { return Ok(false) };
        let Some(descriptor) = self.engine.descriptor(self.file) else { return Ok(true) };
        let (mut found, mut read) = (vec![0; batch.len()], 0);
        while read < found.len() {
            match pread(descriptor, &mut found[read..], begin + read as u64) {
                Err(Errno::INTR) => {}
                Ok(0) => return Ok(false),
                piece => read += piece.tried(&self.path, Action::Read)?,
            }
        }
        Ok(found == batch)
    }

    /// Returns whether the byte before `begin` ends a line. Another program may have written it.
    fn ends_line(&self, begin: u64) -> Result<bool, Trouble> {
        let Some(descriptor) = self.engine.descriptor(self.file) else { return Ok(true) };
        let mut last = [0];
        let read = pread(descriptor, &mut last, begin - 1).tried(&self.path, Action::Read);
        read.map(|bytes| bytes == 0 || last == *b"\n").map_err(Trouble::Fails)
    }

    /// Flushes the file, and reopens the path.
    pub(super) fn reopen(&mut self) -> Result<(), Error> {
        if std::mem::take(&mut self.is_dirty) {
            self.engine.flush(self.file)?;
        }
        let is_here = self.engine.is_named(self.file, &self.path)?;
        if is_here {
            return Ok(());
        }
        let opened = opened(&mut self.engine, &self.options, &self.path)?;
        unlock(&self.engine, self.file);
        self.engine.close_file(self.file)?;
        (self.file, self.folder) = (opened.file, opened.folder);
        (self.end, self.ends_line) = (self.engine.file_len(self.file)?, false);
        self.torn = opened.torn.or(self.torn.take());
        Ok(())
    }

    /// Returns another descriptor of the open file, so that it can be flushed while other threads
    /// take turns.
    pub(super) fn copy(&self) -> Result<OwnedFd, Error> {
        let descriptor = self.engine.descriptor(self.file).expect("a simulated disk has no thread");
        descriptor.try_clone_to_owned().tried(&self.path, Action::Open)
    }

    /// Returns whether the file has lost its last name, so that no reader can find its lines.
    fn is_removed(&self) -> bool {
        let stat = self.engine.descriptor(self.file).and_then(|descriptor| fstat(descriptor).ok());
        stat.is_some_and(|stat| stat.st_nlink == 0)
    }

    /// Returns the length of the file; `None` if the path no longer leads to it.
    fn len_at_its_path(&self) -> Result<Option<u64>, Trouble> {
        self.engine.len_at(self.file, &self.path).map_err(Trouble::Fails)
    }

    fn len(&self) -> Result<u64, Trouble> {
        self.engine.file_len(self.file).map_err(Trouble::Fails)
    }
}

impl Drop for PlainFile {
    fn drop(&mut self) {
        // A child process must not release its parent's lock.
        if self.process.is_this() {
            unlock(&self.engine, self.file);
        }
    }
}

/// A file that was opened, locked and repaired.
struct Opened {
    file: FileId,
    folder: PathBuf,
    /// The file to which a torn end was moved.
    torn: Option<PathBuf>,
}

fn opened(engine: &mut Engine, options: &LinesOptions, path: &Path) -> Result<Opened, Error> {
    let mut open = FileOptions::new().create(true).write(true);
    open.mode = options.mode;
    loop {
        let place = engine.locate(path)?;
        // Opening a pipe would wait for its other end.
        match place.found {
            Found::File | Found::Nothing => {}
            Found::Folder => return Err(Error::is_a_folder(path)),
            Found::Other => {
                return Err(Error::refused(
                    path,
                    "is not an ordinary file, so it can't hold lines",
                ));
            }
        }
        let folder = folder_of(&place.path).to_owned();
        let file = engine.open_file(path, &open)?;
        let prepared = lock(engine, file, path, options.waits).and_then(|()| {
            // The name may have been given to another file while this thread waited for the lock.
            if !engine.is_named(file, path)? {
                return Ok(None);
            }
            append_only(engine, file, path)?;
            // The name may not be durable either if another program has just created the file.
            engine.sync_folder(&folder)?;
            repair(&files(options, path)?, path, engine.descriptor(file))
        });
        match prepared {
            Ok(Some(Repaired { torn })) => return Ok(Opened { file, folder, torn }),
            Ok(None) => {
                unlock(engine, file);
                engine.close_file(file)?;
            }
            Err(error) => {
                unlock(engine, file);
                let _ = engine.close_file(file);
                return Err(error);
            }
        }
    }
}

fn files(options: &LinesOptions, path: &Path) -> Result<LogFiles, Error> {
    let disk = options.disk.as_ref();
    LogFiles::open_in(disk, &Disk::system_of(disk).hold(folder_of(path), || Ok(()))?)
}

fn lock(engine: &Engine, file: FileId, path: &Path, waits: bool) -> Result<(), Error> {
    let Some(descriptor) = engine.descriptor(file) else { return Ok(()) };
    let operation = match waits {
        true => FlockOperation::LockExclusive,
        false => FlockOperation::NonBlockingLockExclusive,
    };
    loop {
        return match flock(descriptor, operation) {
            Err(Errno::INTR) => continue,
            Err(Errno::WOULDBLOCK) => {
                let because = "another writer has it open; only one writer is allowed";
                Err(Error::refused_as(libc::EBUSY, path, because))
            }
            locked => locked.tried(path, Action::Examine),
        };
    }
}

/// Releases the lock. Closing the file is not enough: a child process that another thread is
/// starting has a copy of the descriptor until it calls `execve(2)`.
fn unlock(engine: &Engine, file: FileId) {
    if let Some(descriptor) = engine.descriptor(file) {
        let _ = flock(descriptor, FlockOperation::Unlock);
    }
}

/// Makes every write append, even if another program has appended since the file's length was read
/// (`open(2)`, O_APPEND).
fn append_only(engine: &Engine, file: FileId, path: &Path) -> Result<(), Error> {
    let Some(descriptor) = engine.descriptor(file) else { return Ok(()) };
    let flags = fcntl_getfl(descriptor).tried(path, Action::Examine)?;
    fcntl_setfl(descriptor, flags | OFlags::APPEND).tried(path, Action::Examine)
}

/// Returns an absolute path, which survives a change of the working directory. A simulated disk has
/// no working directory.
pub(super) fn absolute(disk: Option<&Disk>, path: &Path) -> Result<PathBuf, Error> {
    match disk {
        Some(_) => Ok(path.to_owned()),
        None => std::path::absolute(path).tried(path, Action::Examine),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Lines;
    use std::fs;

    #[test]
    fn a_part_of_a_batch_is_taken_back_but_never_bytes_of_another_program() {
        let folder = fixtures::folder();
        let path = folder.path().join("lines");
        let mut file = PlainFile::open(&Lines::options(), &path).unwrap();
        let full = || Error::File {
            path: path.clone(),
            action: Action::Write,
            offset: Some(4),
            errno: libc::ENOSPC,
        };
        for (found, left) in [("one\ntw", "one\n"), ("one\n", "one\n")] {
            fs::write(&path, found).unwrap();
            assert!(matches!(file.take_back(4, b"two\n", full()), Trouble::Lacks(_)));
            assert_eq!(fs::read_to_string(&path).unwrap(), left);
        }
        for found in ["one\ntwothers\n", "one\nother\n"] {
            fs::write(&path, found).unwrap();
            assert!(matches!(file.take_back(4, b"two\n", full()), Trouble::Fails(_)));
            assert_eq!(fs::read_to_string(&path).unwrap(), found);
        }
    }
}
