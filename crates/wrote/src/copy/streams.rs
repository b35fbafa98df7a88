//! Copies between streams and files: the `-` of `wrote copy`.

use super::ends::{Place, Source, identity};
use super::pieces::{Checksum, PieceSizes, read_back, source_shrank};
use super::settings::{CopySettings, Filled, engine_for, engine_options, open_engine};
use crate::engine::Op;
use crate::metadata::MODE_PRIVATE;
use crate::progress::{Watch, Watcher};
use crate::read_ahead::ReadAhead;
use crate::staged::{StagedFile, complete};
use crate::{Action, Engine, Error, FileId, FileOptions, Method, Written};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, fstat};
use rustix::io::{Errno, ReadWriteFlags, pwritev2, read, write};
use std::io::IoSlice;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::time::Instant;

pub(super) fn copy_in(
    from: BorrowedFd,
    to: &Path,
    settings: &CopySettings,
    watch: Watch,
) -> Result<Written, Error> {
    // The length is unknown, so the engine gets all its buffers.
    let engine = &mut open_engine(&engine_options(u64::MAX, settings), settings)?;
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
    Ok(filled.written(engine, began, settings.durable))
}

pub(super) fn copy_out(
    from: &Path,
    to: BorrowedFd,
    settings: &CopySettings,
    watch: Watch,
) -> Result<Written, Error> {
    let began = Instant::now();
    let mut pipe = Pipe::new(to);
    if settings.verify {
        return Err(Error::refused(pipe.name(), "a stream can't be read back to verify it"));
    }
    let mut engine = engine_for(from, settings)?;
    let source = Source::open(&mut engine, from, settings.bs_bytes)?;
    let own = engine.descriptor(source.file).and_then(identity);
    if own.is_some() && own == identity(to) {
        return Err(Error::refused(from, "is also the file that the output goes to"));
    }
    if let Some(stream) = source.as_stream(&engine)? {
        let bytes = pour_all(&mut engine, Pipe::named(stream.as_fd(), from.into()), pipe, watch)?;
        return Ok(Filled::into_stream(bytes).written(&engine, began, false));
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
    // The copy is not durable: the stream is not a file, or it is a file that the caller opened and
    // must flush.
    Ok(Filled::into_stream(source.len).written(&engine, began, false))
}

/// Copies a stream to its end, and returns its length.
fn pour_all(engine: &mut Engine, mut from: Pipe, mut to: Pipe, watch: Watch) -> Result<u64, Error> {
    let mut progress = Watcher::new(watch, None);
    let mut reading = |_, _| ControlFlow::Continue(());
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

/// Fills a file in order from a stream, up to the stream's end.
pub(super) struct Filler<'a> {
    engine: &'a mut Engine,
    file: FileId,
    settings: &'a CopySettings,
    bytes: u64,
    checksum: Option<Checksum>,
}

impl<'a> Filler<'a> {
    pub(super) fn new(
        engine: &'a mut Engine,
        file: FileId,
        settings: &'a CopySettings,
    ) -> Filler<'a> {
        let checksum = settings.verify.then(Checksum::default);
        Filler { engine, file, settings, bytes: 0, checksum }
    }

    /// Writes the whole stream, and optionally reads the file back.
    pub(super) fn fill(mut self, mut from: Pipe, watch: Watch) -> Result<Filled, Error> {
        self.write_all(&mut from, &mut Watcher::new(watch, None))?;
        self.engine.truncate(self.file, self.bytes)?;
        let checksum = self.verify(watch)?;
        let method = Method::of(self.engine, self.file);
        Ok(Filled { bytes: self.bytes, method, checksum, fallbacks: Vec::new() })
    }

    /// Writes the whole stream. Afterwards, the file may be too long by the padding of its last
    /// block.
    fn write_all(&mut self, from: &mut Pipe, progress: &mut Watcher) -> Result<(), Error> {
        let file = self.file;
        let sizes = PieceSizes::new(self.engine, &[file], u64::MAX, self.settings.bs_bytes)?;
        loop {
            let mut buffer = self.engine.lease()?;
            buffer.set_len(sizes.piece_bytes as usize);
            let filled = from.fill(&mut buffer, progress)?;
            if let Some(checksum) = &mut self.checksum {
                checksum.update(&buffer[..filled]);
            }
            if filled > 0 {
                // Pads the last block. The padding is truncated once everything has been written.
                buffer.set_len(filled.next_multiple_of(sizes.block_bytes as usize));
                buffer[filled..].fill(0);
                self.engine
                    .queue(0, Op::Write { file, offset: self.bytes, buffer, durable: false });
                self.bytes += filled as u64;
                self.engine.reap_results(0)?;
            }
            if (filled as u64) < sizes.piece_bytes {
                return self.engine.drain();
            }
        }
    }

    /// Reads the file back if requested, and returns the checksum if it matches the stream's.
    fn verify(&mut self, watch: Watch) -> Result<Option<u128>, Error> {
        let Some(checksum) = self.checksum.take() else { return Ok(None) };
        let wanted = checksum.digest128();
        let sizes = PieceSizes::new(self.engine, &[self.file], self.bytes, self.settings.bs_bytes)?;
        let mut progress = Watcher::new(watch, Some(self.bytes.saturating_mul(2)));
        progress.add(self.bytes)?;
        read_back(self.engine, self.file, sizes, wanted, &mut progress)?;
        Ok(Some(wanted))
    }
}

/// The time without progress after which the watcher is called.
const PATIENCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// The maximum length of a write that may block: the capacity of an empty pipe (`pipe(7)`).
const WAITING_WRITE_BYTES_MAX: usize = 64 << 10;

/// The value of an offset that means the file's current position (`pwritev2(2)`).
const WHERE_IT_STANDS: u64 = u64::MAX;

/// A pipe, a socket, a terminal or a file, read or written from start to end without blocking
/// forever.
pub(super) struct Pipe<'a> {
    file: BorrowedFd<'a>,
    name: PathBuf,
    moved: u64,
    /// Whether writes are non-blocking (`RWF_NOWAIT`). Terminals do not support that, nor do pipes
    /// before Linux 6.4. It is not used for ordinary files, which are always ready (`poll(2)`): XFS
    /// and Btrfs might refuse such a write forever, because it can't perform a necessary allocation
    /// or time update.
    nowait: bool,
}

impl<'a> Pipe<'a> {
    fn new(file: BorrowedFd<'a>) -> Pipe<'a> {
        let name = match file.as_raw_fd() {
            0 => "standard input".into(),
            1 => "standard output".into(),
            number => format!("/proc/self/fd/{number}").into(),
        };
        Pipe::named(file, name)
    }

    /// Like [`Pipe::new`], with a name for error messages.
    pub(super) fn named(file: BorrowedFd<'a>, name: PathBuf) -> Pipe<'a> {
        let is_ordinary = fstat(file)
            .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile);
        Pipe { file, name, moved: 0, nowait: !is_ordinary }
    }

    fn name(&self) -> &Path {
        &self.name
    }

    /// Reads until the buffer is full or the stream ends, and returns the number of bytes.
    fn fill(&mut self, buffer: &mut [u8], progress: &mut Watcher) -> Result<usize, Error> {
        let mut filled = 0;
        while filled < buffer.len() {
            let mut bytes = 0;
            if self.is_ready(PollFlags::IN, Action::Read)? {
                bytes = match read(self.file, &mut buffer[filled..]) {
                    Ok(0) => break,
                    Ok(bytes) => bytes,
                    Err(Errno::AGAIN | Errno::INTR) => 0,
                    Err(errno) => return Err(self.failed(Action::Read, errno)),
                };
            }
            filled += bytes;
            self.moved += bytes as u64;
            progress.add(bytes as u64)?;
        }
        Ok(filled)
    }

    fn pour(&mut self, bytes: &[u8], progress: &mut Watcher) -> Result<(), Error> {
        let mut left = bytes;
        while !left.is_empty() {
            let mut bytes = 0;
            if self.is_ready(PollFlags::OUT, Action::Write)? {
                bytes = match self.write(left) {
                    Ok(bytes) => bytes,
                    Err(Errno::AGAIN | Errno::INTR) => 0,
                    Err(Errno::OPNOTSUPP | Errno::NOSYS) if self.nowait => {
                        self.nowait = false;
                        0
                    }
                    Err(errno) => return Err(self.failed(Action::Write, errno)),
                };
            }
            left = &left[bytes..];
            self.moved += bytes as u64;
            progress.add(bytes as u64)?;
        }
        Ok(())
    }

    /// Writes without blocking. A pipe with room for one page is ready, but would block a longer
    /// write.
    fn write(&self, bytes: &[u8]) -> Result<usize, Errno> {
        if self.nowait {
            let all = [IoSlice::new(bytes)];
            return pwritev2(self.file, &all, WHERE_IT_STANDS, ReadWriteFlags::NOWAIT);
        }
        write(self.file, &bytes[..bytes.len().min(WAITING_WRITE_BYTES_MAX)])
    }

    /// Returns whether a read or write would succeed or fail at once, without blocking. Ordinary
    /// files are always ready (`poll(2)`).
    fn is_ready(&self, wanted: PollFlags, action: Action) -> Result<bool, Error> {
        let mut files = [PollFd::new(&self.file, wanted)];
        match poll(&mut files, Some(&PATIENCE)) {
            Ok(ready) => Ok(ready > 0),
            Err(Errno::INTR | Errno::AGAIN) => Ok(false),
            Err(errno) => Err(self.failed(action, errno)),
        }
    }

    fn failed(&self, action: Action, errno: Errno) -> Error {
        Error::file(&self.name, action, Some(self.moved), &errno.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn an_ordinary_file_is_not_asked_to_write_without_waiting() {
        // On XFS and Btrfs, a non-blocking write would return EAGAIN forever.
        let file = tempfile::tempfile().unwrap();
        assert!(!Pipe::new(file.as_fd()).nowait);
        let (_reader, writer) = std::io::pipe().unwrap();
        assert!(Pipe::new(writer.as_fd()).nowait);
    }
}
