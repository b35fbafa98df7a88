//! Prepares a segment before its first record: creates its file, allocates its space, and writes
//! zeros into it.

use super::segment::{self, BLOCK_BYTES};
use crate::engine::Op;
use crate::{Completion, Engine, Error, FileId, FileOptions};
use std::path::{Path, PathBuf};

/// The user data of a preparation's operations. Only one is in flight at a time.
pub(super) const USER_DATA: u64 = 1 << 63;

/// The size of a step in which zeros are written; steps end at multiples of it. A step delays a
/// concurrent flush. With steps of 64 KiB, a step was in flight during every flush.
const STEP_BYTES: u64 = 256 << 10;

/// Opens a file. Bypasses the page cache as requested by `options`, unless direct transfers would
/// need a larger alignment than the log's blocks.
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
    engine.open_file(path, &options.direct(false).create_new(false))
}

/// The preparation of a range of a segment's file.
#[derive(Debug)]
pub(super) struct Preparation {
    pub file: FileId,
    pub path: PathBuf,
    pub number: u64,
    pub end: u64,
    zeros: bool,
    step: PrepareStep,
    from: u64,
    /// The end of the blocks that have already been written, with zeros or with earlier records.
    pub written: u64,
    /// Whether the file holds no records yet.
    is_new: bool,
    /// The final name of a reused file. It has a temporary name until its earlier content is
    /// invalid.
    place: Option<PathBuf>,
    pub is_recycled: bool,
}

/// The next step of a preparation, or the one in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PrepareStep {
    /// Overwrite the header of the segment that the file belonged to.
    Mark,
    Allocate,
    /// Write zeros from this offset on.
    Write(u64),
    Flush,
    Done,
}

impl Preparation {
    pub(super) fn new(
        engine: &mut Engine,
        path: &Path,
        number: u64,
        zeros: bool,
        bytes: u64,
        is_direct: bool,
    ) -> Result<Preparation, Error> {
        let options = FileOptions::new().create_new(true).write(true).direct(is_direct);
        let file = open(engine, path, &options)?;
        let rest = Preparation::rest_of(file, path, number, zeros, 0, bytes);
        Ok(Preparation { is_new: true, ..rest })
    }

    /// Returns the preparation of a file from `from`, a multiple of its block size, to `end`.
    pub(super) fn rest_of(
        file: FileId,
        path: &Path,
        number: u64,
        zeros: bool,
        from: u64,
        end: u64,
    ) -> Preparation {
        let step = if from < end { PrepareStep::Allocate } else { PrepareStep::Done };
        let (path, is_new, place, is_recycled) = (path.to_owned(), false, None, false);
        Preparation {
            file,
            path,
            number,
            end,
            zeros,
            step,
            from,
            written: from,
            is_new,
            place,
            is_recycled,
        }
    }

    /// Returns this preparation for the file of another segment, which is renamed to `place` once
    /// its header is overwritten.
    pub(super) fn in_spare_for(self, place: &Path) -> Preparation {
        let end = self.end.max(self.from);
        let place = Some(place.to_owned());
        Preparation { step: PrepareStep::Mark, end, is_new: true, is_recycled: true, place, ..self }
    }

    pub(super) fn is_ready(&self) -> bool {
        self.step == PrepareStep::Done
    }

    /// Returns whether the step in flight also flushes records.
    pub(super) fn flushes_records(&self) -> bool {
        !self.is_new && self.step == PrepareStep::Flush
    }

    /// Returns whether there is a step to start, given that zeros should reach up to `end`.
    pub(super) fn is_due(&self, end: u64) -> bool {
        match self.step {
            PrepareStep::Write(offset) => self.zeros_end(end) > offset,
            step => step != PrepareStep::Done,
        }
    }

    fn zeros_end(&self, end: u64) -> u64 {
        if end < self.end { end - end % STEP_BYTES } else { self.end }
    }

    /// Starts the next step, which must be due, while no other step is in flight.
    pub(super) fn start(&self, engine: &mut Engine, end: u64) -> Result<(), Error> {
        let file = self.file;
        let op = match self.step {
            PrepareStep::Mark => {
                let mut buffer = engine.lease()?;
                buffer.set_len(BLOCK_BYTES as usize);
                segment::mark_recycled(&mut buffer);
                Op::Write { file, offset: 0, buffer, durable: true }
            }
            PrepareStep::Allocate => {
                Op::Fallocate { file, offset: self.from, len: self.end - self.from }
            }
            PrepareStep::Write(offset) => {
                let mut buffer = engine.lease()?;
                let len = (self.zeros_end(end) - offset).min(STEP_BYTES);
                let len = len.min(buffer.capacity() as u64);
                buffer.set_len(len as usize);
                buffer.fill(0);
                Op::Write { file, offset, buffer, durable: false }
            }
            // The flush is an fsync, because the file's length must be durable, too.
            PrepareStep::Flush => Op::Fsync { file },
            PrepareStep::Done => return Ok(()),
        };
        engine.queue(USER_DATA, op);
        Ok(())
    }

    /// Processes the completion of the step in flight, and moves on to the next step.
    pub(super) fn complete(
        &mut self,
        engine: &mut Engine,
        completion: Completion,
    ) -> Result<(), Error> {
        if let (PrepareStep::Write(offset), Ok(len)) = (self.step, &completion.result) {
            self.written = offset + *len as u64;
        }
        self.step = match (self.step, completion.result) {
            (PrepareStep::Mark, Ok(_)) => {
                if let Some(place) = self.place.take() {
                    engine.rename(&self.path, &place, false)?;
                    engine.set_path(self.file, &place);
                    self.path = place;
                }
                if self.from < self.end { PrepareStep::Allocate } else { PrepareStep::Done }
            }
            // Allocation detects a full disk now rather than in the middle of the segment. A file
            // system that can't allocate in advance (NFS, FUSE) allocates during the write.
            (PrepareStep::Allocate, Err(error)) if error.errno() != libc::EOPNOTSUPP => {
                return Err(error);
            }
            (PrepareStep::Allocate, _) => match self.zeros {
                false => PrepareStep::Done,
                true => PrepareStep::Write(self.from),
            },
            (_, Err(error)) => return Err(error),
            (PrepareStep::Write(offset), Ok(len)) if offset + (len as u64) < self.end => {
                PrepareStep::Write(offset + len as u64)
            }
            (PrepareStep::Write(_), Ok(_)) => PrepareStep::Flush,
            (PrepareStep::Flush | PrepareStep::Done, Ok(_)) => PrepareStep::Done,
        };
        Ok(())
    }

    /// Runs all remaining steps to completion. Releases the space after an error.
    pub(super) fn finish(mut self, engine: &mut Engine) -> Result<Preparation, Error> {
        let mut completions = Vec::new();
        while !self.is_ready() {
            let started = self.start(engine, u64::MAX);
            let reaped = started.and_then(|()| engine.reap(usize::MAX, &mut completions));
            let mut completed = completions.drain(..).map(|it| self.complete(engine, it));
            if let Err(error) = reaped.and_then(|_| completed.try_for_each(|done| done)) {
                drop(completed);
                self.abandon(engine);
                return Err(error);
            }
        }
        Ok(self)
    }

    /// Releases the prepared space. Removes a new file, and returns its path if that fails.
    pub(super) fn abandon(self, engine: &mut Engine) -> Option<PathBuf> {
        // The caller reports the first error. If there was none, space that remains does no harm.
        if self.is_new {
            let _ = engine.close_file(self.file);
            return engine.remove(&self.path).is_err().then_some(self.path);
        }
        // A failed allocation may have used up all space, as on ext4.
        let _ = engine.truncate(self.file, self.from);
        None
    }
}
