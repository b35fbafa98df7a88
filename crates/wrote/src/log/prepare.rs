//! A segment made ready before records come: its file, its space, zeros in it where that pays.

use super::options::Prepare;
use crate::{Completion, Engine, Error, FileId, FileOptions, Op};
use std::path::{Path, PathBuf};

/// What the operations of a preparation are called; one is in flight at a time.
pub(super) const USER_DATA: u64 = 1 << 63;

/// Batches of framed segments begin at multiples of this: what disks write as a whole is no more, and a block
/// that holds acknowledged records is never written again (W3).
pub(super) const BLOCK_BYTES: u64 = 4096;

/// Opens a segment: through the page cache where direct transfers must be aligned to more than its blocks.
pub(super) fn open(
    engine: &mut Engine,
    path: &Path,
    options: &FileOptions,
) -> Result<FileId, Error> {
    let file = engine.open_file(path, options)?;
    if u64::from(engine.align_bytes(file)) <= BLOCK_BYTES {
        return Ok(file);
    }
    engine.close_file(file)?;
    engine.open_file(path, &FileOptions { direct: false, create_new: false, ..*options })
}

/// A file that is made ready from some byte on up to some length.
#[derive(Debug)]
pub(super) struct Preparing {
    pub file: FileId,
    pub path: PathBuf,
    /// The number of the segment.
    pub number: u64,
    how: Prepare,
    next: Next,
    from: u64,
    end: u64,
}

/// What is done next, or under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Allocate,
    /// Zeros, from here on.
    Write(u64),
    Flush,
    Nothing,
}

impl Preparing {
    /// Makes the file.
    pub(super) fn new(
        engine: &mut Engine,
        path: &Path,
        number: u64,
        how: Prepare,
        bytes: u64,
    ) -> Result<Preparing, Error> {
        let options =
            FileOptions { create_new: true, write: true, direct: true, ..Default::default() };
        let file = open(engine, path, &options)?;
        Ok(Preparing::rest_of(file, path, number, how, 0, bytes))
    }

    /// Goes on with a file from `from` on, a multiple of its blocks.
    pub(super) fn rest_of(
        file: FileId,
        path: &Path,
        number: u64,
        how: Prepare,
        from: u64,
        end: u64,
    ) -> Preparing {
        let next = if from < end { Next::Allocate } else { Next::Nothing };
        Preparing { file, path: path.to_owned(), number, how, next, from, end }
    }

    pub(super) fn is_ready(&self) -> bool {
        self.next == Next::Nothing
    }

    /// Starts what is next. Nothing of it is in flight.
    pub(super) fn start(&mut self, engine: &mut Engine) -> Result<(), Error> {
        let file = self.file;
        let op = match self.next {
            Next::Allocate => Op::Fallocate { file, offset: self.from, len: self.end - self.from },
            Next::Write(offset) => {
                let mut buffer = engine.lease()?;
                let len = (self.end - offset).min(buffer.capacity() as u64);
                buffer.set_len(len as usize);
                buffer.fill(0);
                Op::Write { file, offset, buffer, durable: false }
            }
            // The length too.
            Next::Flush => Op::Fsync { file },
            Next::Nothing => return Ok(()),
        };
        engine.queue(USER_DATA, op);
        Ok(())
    }

    /// What was started is complete. Goes on to what is next.
    pub(super) fn complete(&mut self, completion: Completion) -> Result<(), Error> {
        self.next = match (self.next, completion.result) {
            (Next::Allocate, Ok(_)) if self.how == Prepare::Allocate => Next::Nothing,
            (Next::Allocate, Ok(_)) => Next::Write(self.from),
            // No space is an error now rather than in the middle; a file system that can't allocate
            // (NFS, FUSE) gives space as it is written.
            (Next::Allocate, Err(error)) if error.errno() == libc::EOPNOTSUPP => {
                if self.how == Prepare::Write { Next::Write(self.from) } else { Next::Nothing }
            }
            (Next::Write(offset), Ok(len)) if offset + (len as u64) < self.end => {
                Next::Write(offset + len as u64)
            }
            (Next::Write(_), Ok(_)) => Next::Flush,
            (Next::Flush | Next::Nothing, Ok(_)) => Next::Nothing,
            (_, Err(error)) => return Err(error),
        };
        Ok(())
    }

    /// Does all that is left, and waits for it.
    pub(super) fn finish(&mut self, engine: &mut Engine) -> Result<(), Error> {
        let mut completions = Vec::new();
        while !self.is_ready() {
            self.start(engine)?;
            engine.reap(usize::MAX, &mut completions)?;
            completions.drain(..).try_for_each(|completion| self.complete(completion))?;
        }
        Ok(())
    }

    /// Gives the file up, and its name.
    pub(super) fn abandon(self, engine: &mut Engine) {
        // What led here is the error to tell of, or there is none and the file only stays.
        let _ = engine.close_file(self.file);
        let _ = engine.remove(&self.path);
    }
}
