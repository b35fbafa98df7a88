//! Copies between streams and files: the `-` of `wrote copy`.

use super::copied::Filled;
use super::filler::Filler;
use super::options::{CopyOptions, CopySettings, engine_for, engine_options, open_engine};
use super::pipe::Pipe;
use super::place::Place;
use super::source::{Source, identity};
use super::stream::{PieceSizes, source_shrank};
use crate::metadata::MODE_PRIVATE;
use crate::progress::{Watch, Watcher};
use crate::read_ahead::ReadAhead;
use crate::staged::{StagedFile, complete};
use crate::{Copied, Engine, Error, FileOptions};
use std::ops::ControlFlow;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::time::Instant;

/// Copies the open file `from` (a pipe, a socket, a terminal, a file from its current offset) up to
/// its end to `to`, which appears once complete.
///
/// A new file has the permissions 0o666 minus the umask; a replaced file keeps its own. With
/// [`CopyOptions::verify`] the file is read back, bypassing the page cache, and its checksum
/// compared. [`CopyOptions::reflink`] has no effect. The watcher of [`CopyOptions::watch`] is
/// called at least ten times a second, even while nothing arrives. The copy and its name are
/// durable when this returns.
///
/// # Errors
///
/// The kernel's errors; `EEXIST` for an existing file without [`CopyOptions::replace`];
/// [`Error::Refused`] if `to` is a folder or a device; [`Error::Interrupted`] if the watcher asks
/// to stop. A file at `to` is then unchanged, unless only the last step failed, the flush of its
/// folder.
pub fn copy_in(from: impl AsFd, to: impl AsRef<Path>) -> Result<Copied, Error> {
    CopyOptions::new().copy_in(from, to)
}

impl CopyOptions<'_> {
    /// Copies an open file or stream to a file, like the function [`copy_in`].
    pub fn copy_in(self, from: impl AsFd, to: impl AsRef<Path>) -> Result<Copied, Error> {
        let (from, to) = (from.as_fd(), to.as_ref());
        self.run(|settings, watch| {
            // The length is unknown, so the engine gets all buffers.
            let mut engine = open_engine(&engine_options(u64::MAX, settings), settings)?;
            copy_in_through(&mut engine, from, to, settings, watch)
        })
    }

    /// Copies an ordinary file to a stream, like the function [`copy_out`].
    pub fn copy_out(self, from: impl AsRef<Path>, to: impl AsFd) -> Result<Copied, Error> {
        let (from, to) = (from.as_ref(), to.as_fd());
        self.run(|settings, watch| copy_out_watched(from, to, settings, watch))
    }
}

fn copy_in_through(
    engine: &mut Engine,
    from: BorrowedFd,
    to: &Path,
    settings: &CopySettings,
    watch: Watch,
) -> Result<Copied, Error> {
    let began = Instant::now();
    let Place { path, replaced } = Place::find(engine, None, to, settings.replace)?;
    let mode = replaced.is_some().then_some(MODE_PRIVATE);
    let file_options = FileOptions::new().direct(true).mode(mode);
    let last_step = (settings.replace, settings.durable);
    let save = |engine: &mut Engine, file| {
        let filled = Filler::new(engine, file, settings).fill(Pipe::new(from), watch)?;
        complete(engine, file, replaced.as_ref(), settings.durable).map(|()| filled)
    };
    let filled = StagedFile::save(engine, (&path, to), last_step, &file_options, save)?;
    Ok(filled.copied(engine, began))
}

/// Copies the file `from` to the open file `to`, a stream, which is not synced.
///
/// [`CopyOptions::iodepth`] reads are in flight ahead of the writes; of the other options only
/// [`CopyOptions::bs_bytes`] has an effect. The watcher is called at least ten times a second, even
/// while the stream accepts nothing, if the kernel supports non-blocking writes (pipes since Linux
/// 6.4, sockets).
///
/// # Errors
///
/// The kernel's errors; `EPIPE` means that the reader is gone. [`Error::Refused`] if `from` is a
/// folder, a pipe or a character device, or is `to` itself, or with [`CopyOptions::verify`],
/// because a stream can't be read back. [`Error::Differs`] if `from` is shortened during the copy;
/// [`Error::Interrupted`] if the watcher asks to stop.
pub fn copy_out(from: impl AsRef<Path>, to: impl AsFd) -> Result<Copied, Error> {
    CopyOptions::new().copy_out(from, to)
}

fn copy_out_watched(
    from: &Path,
    to: BorrowedFd,
    settings: &CopySettings,
    watch: Watch,
) -> Result<Copied, Error> {
    let began = Instant::now();
    let mut pipe = Pipe::new(to);
    if settings.verify {
        return Err(Error::refused(pipe.name(), "a stream can't be read back to verify it"));
    }
    let mut engine = engine_for(from, settings)?;
    let source = Source::open(&mut engine, from, settings.bs_bytes)?;
    let own = engine.descriptor(source.file).and_then(identity);
    if own.is_some() && own == identity(to) {
        return Err(Error::refused(from, "is the file that the output goes to"));
    }
    if let Some(stream) = source.as_stream(&engine)? {
        let bytes = pour_all(&mut engine, Pipe::named(stream.as_fd(), from.into()), pipe, watch)?;
        return Ok(Filled::into_stream(bytes).copied(&engine, began));
    }
    let sizes = PieceSizes::new(&engine, &[source.file], source.len, settings.bs_bytes)?;
    let mut progress = Watcher::new(watch, Some(source.len));
    let mut pieces = ReadAhead::new(source.file, sizes.piece_bytes as usize);
    let mut left = source.len;
    while left > 0 {
        let piece = pieces.next(&mut engine, source.len)?;
        let len = left.min(sizes.piece_bytes);
        let bytes = piece.get(..len as usize);
        pipe.pour(bytes.ok_or_else(|| source_shrank(&engine, source.file))?, &mut progress)?;
        left -= len;
    }
    // The stream is not a file, or its owner opened it.
    Ok(Filled::into_stream(source.len).copied(&engine, began))
}

/// Copies a stream to its end, and returns its length.
fn pour_all(engine: &mut Engine, mut from: Pipe, mut to: Pipe, watch: Watch) -> Result<u64, Error> {
    let mut progress = Watcher::new(watch, None);
    let mut reading = |_| ControlFlow::Continue(());
    let mut buffer = engine.lease()?;
    let mut total = 0;
    loop {
        let filled = from.fill(&mut buffer, &mut Watcher::new(&mut reading, None))?;
        if filled == 0 {
            return Ok(total);
        }
        to.pour(&buffer[..filled], &mut progress)?;
        total += filled as u64;
    }
}
