//! One file of a log, read through an engine at any offset, with read-ahead from front to back.

use super::interrupt::Interrupt;
use crate::buffer::Buffer;
use crate::{Action, Completion, Engine, Error, FileId, FileOptions, Found, Ioengine, Op, Options};
use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;
use std::cell::{RefCell, RefMut};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Bytes of one read from front to back, and the number of such reads in flight.
const READ_BYTES: usize = 512 << 10;
const READS: u32 = 4;
/// Bytes of the first read at a new offset. Each read that continues there doubles them.
const PIECE_BYTES_MIN: u64 = 16 << 10;
const MOST_AHEAD: u32 = 4;
/// Reads that return nothing before the end of the file, until that is an error.
const FRUITLESS_READS_MAX: u32 = 10;

/// An engine that the open files of a log share.
#[derive(Clone, Debug)]
pub(super) struct LogFiles {
    engine: Rc<RefCell<Engine>>,
    pub interrupt: Interrupt,
}

impl LogFiles {
    pub(super) fn new(engine: Engine) -> LogFiles {
        LogFiles { engine: Rc::new(RefCell::new(engine)), interrupt: Interrupt::of_thread() }
    }

    pub(super) fn open() -> Result<LogFiles, Error> {
        Engine::open(&LogFiles::options()).map(LogFiles::new)
    }

    pub(super) fn options() -> Options {
        Options {
            // One beside the buffers in flight.
            buffers: READS + 1,
            registered_buffers: false,
            ..Options::new(Ioengine::IoUring, READS, READ_BYTES)
        }
    }

    /// Borrows the engine. No other borrow, and no open or closing file, may be in the same
    /// statement.
    pub(super) fn engine(&self) -> RefMut<'_, Engine> {
        self.engine.borrow_mut()
    }

    /// Returns the engine. Every file must be closed.
    pub(super) fn into_engine(self) -> Engine {
        Rc::into_inner(self.engine).expect("no file is open").into_inner()
    }
}

/// A file and the part of it that is in memory. Dropping it closes the file.
///
/// The part in memory is one range, which grows to the end of one request. So memory is bounded by
/// that request and the engine's buffers (W8). Reads stay in flight between two requests.
/// [`Input::pause`] ends them; another user of the engine must call it first.
#[derive(Debug)]
pub(super) struct Input {
    pub path: PathBuf,
    pub file: FileId,
    pub files: LogFiles,
    /// The file's length at the opening, or at the last [`Input::look_again`].
    pub len_bytes: u64,
    piece_bytes: u64,
    /// The offset of `window` in the file.
    start: u64,
    window: Vec<u8>,
    /// Pieces in flight or arrived, in order: they follow the window and each other.
    ahead: VecDeque<ReadPiece>,
}

#[derive(Debug)]
struct ReadPiece {
    offset: u64,
    len: u64,
    arrived: Option<Buffer>,
}

impl Input {
    /// Opens the file. With `direct` reads bypass the page cache, and so see another process's
    /// direct writes.
    pub(super) fn open(
        files: &LogFiles,
        path: &Path,
        direct: bool,
        write: bool,
    ) -> Result<Input, Error> {
        let mut engine = files.engine();
        // A read of a pipe with a segment's name would never end.
        if !matches!(engine.locate(path)?.found, Found::File | Found::Nothing) {
            let because = "is not an ordinary file, so it is no segment of a log";
            return Err(Error::refused(path, because));
        }
        let options = FileOptions { direct, write, ..FileOptions::default() };
        let file = engine.open_file(path, &options)?;
        Ok(Input {
            path: path.to_owned(),
            file,
            files: files.clone(),
            len_bytes: engine.file_len(file)?,
            piece_bytes: PIECE_BYTES_MIN,
            start: 0,
            window: Vec::new(),
            ahead: VecDeque::new(),
        })
    }

    /// Returns the `len` bytes at `offset`, fewer at the end of the file.
    pub(super) fn bytes(&mut self, offset: u64, len: usize) -> Result<&[u8], Error> {
        let len = len.min(self.len_bytes.saturating_sub(offset).try_into().unwrap_or(usize::MAX));
        if len > 0 && (offset < self.start || offset + len as u64 > self.window_end()) {
            self.fill(offset, len)?;
        }
        let from = (offset.saturating_sub(self.start) as usize).min(self.window.len());
        let to = (from + len).min(self.window.len());
        Ok(&self.window[from..to])
    }

    /// Returns the first offset from `offset` on whose bytes are in no hole; the end of the file if
    /// there is none. A file system without `SEEK_DATA` knows no holes, nor does a simulated disk.
    pub(super) fn data_from(&self, offset: u64) -> Result<u64, Error> {
        self.files.interrupt.check()?;
        let engine = self.files.engine();
        let Some(descriptor) = engine.descriptor(self.file) else { return Ok(offset) };
        match seek(descriptor, SeekFrom::Data(offset)) {
            Ok(data) => Ok(data),
            Err(Errno::NXIO) => Ok(self.len_bytes.max(offset)),
            Err(_) => Ok(offset),
        }
    }

    /// Drops the bytes in memory and reads the file's length again: another process may have
    /// written.
    pub(super) fn look_again(&mut self) -> Result<(), Error> {
        self.pause()?;
        self.window.clear();
        self.len_bytes = self.files.engine().file_len(self.file)?;
        Ok(())
    }

    /// Flushes the file, and drops its clean pages from the page cache, so that later reads come
    /// from the disk.
    ///
    /// The log's last process may have left its writes in memory only. After a failed flush the
    /// kernel calls pages clean that the disk never got, and a later flush succeeds (`fsync(2)`):
    /// reads from the cache then prove nothing. The kernel drops only clean pages
    /// (`posix_fadvise(2)`).
    pub(super) fn flush(&self) -> Result<(), Error> {
        let mut engine = self.files.engine();
        engine.flush(self.file)?;
        engine.drop_clean_pages(self.file);
        Ok(())
    }

    fn window_end(&self) -> u64 {
        self.start + self.window.len() as u64
    }

    /// Reads the range into memory, and drops the bytes before it.
    fn fill(&mut self, offset: u64, len: usize) -> Result<(), Error> {
        self.files.interrupt.check()?;
        let align = u64::from(self.files.engine().align_bytes(self.file));
        let goes_on = !self.window.is_empty()
            && (self.start..=self.window_end()).contains(&offset)
            && self.window_end().is_multiple_of(align);
        if goes_on {
            self.window.drain(..(offset - self.start) as usize);
            self.start = offset;
        } else {
            self.pause()?;
            self.window.clear();
            self.start = offset - offset % align;
        }
        let mut fruitless = 0;
        while self.window_end() < offset + len as u64 {
            let before = self.window_end();
            if self.take_piece(align)? {
                continue;
            }
            // The file ends there: another process may have truncated it. Or a read was short,
            // which is not the end of the log.
            self.len_bytes = self.files.engine().file_len(self.file)?.min(self.len_bytes);
            if self.window_end() >= self.len_bytes {
                break;
            }
            // A direct read continues from a whole block only.
            let part = self.window_end() % align;
            self.window.truncate(self.window.len() - part as usize);
            if self.window_end() <= before {
                fruitless += 1;
            }
            if fruitless > FRUITLESS_READS_MAX {
                let error = std::io::Error::from_raw_os_error(libc::EIO);
                return Err(Error::file(&self.path, Action::Read, Some(before), &error));
            }
        }
        Ok(())
    }

    /// Appends the next piece to the window. Returns whether it is whole.
    fn take_piece(&mut self, align: u64) -> Result<bool, Error> {
        self.ask_ahead(align)?;
        while self.ahead.front().is_some_and(|piece| piece.arrived.is_none()) {
            let mut completions = Vec::new();
            self.files.engine().reap(1, &mut completions)?;
            completions.into_iter().try_for_each(|completion| self.arrive(completion))?;
        }
        let piece = self.ahead.pop_front().expect("one was requested");
        let bytes = piece.arrived.expect("it has arrived");
        self.window.extend_from_slice(&bytes);
        let is_whole = bytes.len() as u64 == piece.len;
        if !is_whole {
            // The file ends here, so later pieces would not follow the window.
            drop(bytes);
            self.pause()?;
        }
        Ok(is_whole)
    }

    /// Requests pieces: one at first, and [`MOST_AHEAD`] once they have grown to a whole buffer.
    fn ask_ahead(&mut self, align: u64) -> Result<(), Error> {
        let mut engine = self.files.engine();
        let buffer_bytes = engine.pool().buffer_bytes() as u64;
        let largest = (buffer_bytes - buffer_bytes % align).max(align);
        loop {
            let is_grown = self.piece_bytes >= largest;
            // One buffer is left for a caller that writes a copy.
            let most = (engine.pool().count() - 1).clamp(1, MOST_AHEAD) as usize;
            let wanted = if is_grown { most } else { 1 };
            let last = self.ahead.back().map(|piece| piece.offset + piece.len);
            let offset = last.unwrap_or(self.start + self.window.len() as u64);
            if self.ahead.len() >= wanted || (!self.ahead.is_empty() && offset >= self.len_bytes) {
                return Ok(());
            }
            let len = self.piece_bytes.next_multiple_of(align).min(largest);
            let mut buffer = engine.lease()?;
            buffer.set_len(len as usize);
            engine.queue(offset, Op::Read { file: self.file, offset, buffer });
            self.ahead.push_back(ReadPiece { offset, len, arrived: None });
            self.piece_bytes = (self.piece_bytes * 2).min(largest);
        }
    }

    fn arrive(&mut self, completion: Completion) -> Result<(), Error> {
        let read = completion.result?;
        let mut buffer = completion.buffer.expect("a read gives its buffer back");
        buffer.set_len(read);
        let piece = self.ahead.iter_mut().find(|piece| piece.offset == completion.user_data);
        piece.expect("nothing else is in flight").arrived = Some(buffer);
        Ok(())
    }

    /// Waits for the reads in flight and drops them, so that the engine is free for another use.
    pub(super) fn pause(&mut self) -> Result<(), Error> {
        self.piece_bytes = PIECE_BYTES_MIN;
        let is_in_flight = self.ahead.iter().any(|piece| piece.arrived.is_none());
        self.ahead.clear();
        if is_in_flight {
            let mut completions = Vec::new();
            self.files.engine().reap(usize::MAX, &mut completions)?;
        }
        Ok(())
    }
}

impl Drop for Input {
    fn drop(&mut self) {
        // Errors of reading and writing were reported before.
        let _ = self.pause();
        let _ = self.files.engine().close_file(self.file);
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{disk, engine, files_of, folder};
    use super::*;

    #[test]
    fn a_file_that_is_cut_anywhere_while_it_is_read_ends_there() {
        for cut in [1000, 2048, 3000, 5000] {
            let path = folder().join("file");
            let sim = disk(1, &[(path.clone(), vec![7; 64 << 10])]);
            let mut input = Input::open(&files_of(&sim), &path, true, false).unwrap();
            let mut other = engine(&sim);
            let options = FileOptions { write: true, ..FileOptions::default() };
            let file = other.open_file(&path, &options).unwrap();
            other.truncate(file, cut).unwrap();
            let bytes = input.bytes(0, 20_000).unwrap();
            assert_eq!(bytes, vec![7; cut as usize], "cut at {cut}");
            assert!(input.bytes(cut, 100).unwrap().is_empty(), "cut at {cut}");
        }
    }
}
