//! One file of a log, read through an engine at any offset, and ahead of who reads it from front to back.

use crate::buffer::Buffer;
use crate::{Action, Completion, Engine, Error, FileId, FileOptions, Found, Op};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};

/// The first piece that is read at a place: who goes on from there gets twice as much each time.
const PIECE_BYTES_MIN: u64 = 16 << 10;
/// Pieces that are under way at once, at most.
const MOST_AHEAD: u32 = 4;
/// Reads that bring nothing where the file has bytes, before that is an error.
const FRUITLESS_READS_MAX: u32 = 10;

/// A file and the part of it that is in memory.
///
/// What is in memory is one range, which grows as far as one request asks and no further: at most that
/// request and the engine's buffers (W8). Between two requests reads may be under way, until
/// [`Input::pause`]: nothing else may use the engine before.
#[derive(Debug)]
pub(super) struct Input {
    pub path: PathBuf,
    pub file: FileId,
    /// The file's length when it was opened, or looked at again.
    pub len_bytes: u64,
    /// Bytes of the next piece.
    piece_bytes: u64,
    /// Where in the file `window` begins.
    start: u64,
    window: Vec<u8>,
    /// Pieces under way or arrived, in order: they follow the window and each other.
    ahead: VecDeque<Piece>,
}

/// A piece of the file that was asked for.
#[derive(Debug)]
struct Piece {
    offset: u64,
    len: u64,
    arrived: Option<Buffer>,
}

impl Input {
    /// Opens the file, past the page cache with `direct`: so what another process writes directly is seen.
    pub(super) fn open(
        engine: &mut Engine,
        path: &Path,
        direct: bool,
        write: bool,
    ) -> Result<Input, Error> {
        // A pipe that has a segment's name would be waited for without end.
        if !matches!(engine.locate(path)?.found, Found::File | Found::Nothing) {
            let because = "is not an ordinary file, and no segment of a log".to_owned();
            return Err(Error::Refused { path: path.to_owned(), because });
        }
        let options = FileOptions { direct, write, ..FileOptions::default() };
        let file = engine.open_file(path, &options)?;
        Ok(Input {
            path: path.to_owned(),
            file,
            len_bytes: engine.file_len(file)?,
            piece_bytes: PIECE_BYTES_MIN,
            start: 0,
            window: Vec::new(),
            ahead: VecDeque::new(),
        })
    }

    /// The `len` bytes at `offset`, fewer where the file ends.
    pub(super) fn bytes(
        &mut self,
        engine: &mut Engine,
        offset: u64,
        len: usize,
    ) -> Result<&[u8], Error> {
        let len = len.min(self.len_bytes.saturating_sub(offset).try_into().unwrap_or(usize::MAX));
        if len > 0 && (offset < self.start || offset + len as u64 > self.window_end()) {
            self.fill(engine, offset, len)?;
        }
        let from = (offset.saturating_sub(self.start) as usize).min(self.window.len());
        let to = (from + len).min(self.window.len());
        Ok(&self.window[from..to])
    }

    /// Forgets what was read, and looks at the file's length again: somebody may have written.
    pub(super) fn look_again(&mut self, engine: &mut Engine) -> Result<(), Error> {
        self.pause(engine)?;
        self.window.clear();
        self.len_bytes = engine.file_len(self.file)?;
        Ok(())
    }

    /// Closes the file.
    pub(super) fn close(mut self, engine: &mut Engine) -> Result<(), Error> {
        self.pause(engine)?;
        engine.close_file(self.file)
    }

    fn window_end(&self) -> u64 {
        self.start + self.window.len() as u64
    }

    /// Brings the range into memory, with what is before it let go.
    fn fill(&mut self, engine: &mut Engine, offset: u64, len: usize) -> Result<(), Error> {
        let align = u64::from(engine.align_bytes(self.file));
        let goes_on = !self.window.is_empty()
            && (self.start..=self.window_end()).contains(&offset)
            && self.window_end().is_multiple_of(align);
        if goes_on {
            self.window.drain(..(offset - self.start) as usize);
            self.start = offset;
        } else {
            self.pause(engine)?;
            self.window.clear();
            self.start = offset - offset % align;
        }
        let mut fruitless = 0;
        while self.window_end() < offset + len as u64 {
            let before = self.window_end();
            if self.take_piece(engine, align)? {
                continue;
            }
            // The file ends there, which somebody may have made shorter meanwhile. Or the disk does not give
            // what it has: where that ends is not the end of the log.
            self.len_bytes = engine.file_len(self.file)?.min(self.len_bytes);
            if self.window_end() >= self.len_bytes {
                break;
            }
            // A direct read goes on from a whole block only.
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

    /// Appends the next piece to the window. Tells whether it is whole.
    fn take_piece(&mut self, engine: &mut Engine, align: u64) -> Result<bool, Error> {
        self.ask_ahead(engine, align)?;
        while self.ahead.front().is_some_and(|piece| piece.arrived.is_none()) {
            let mut completions = Vec::new();
            engine.reap(1, &mut completions)?;
            completions.into_iter().try_for_each(|completion| self.arrived(completion))?;
        }
        let piece = self.ahead.pop_front().expect("one was asked for");
        let bytes = piece.arrived.expect("it was waited for");
        self.window.extend_from_slice(&bytes);
        let is_whole = bytes.len() as u64 == piece.len;
        if !is_whole {
            // The file ends here: what comes behind is nothing, and would not follow the window.
            drop(bytes);
            self.pause(engine)?;
        }
        Ok(is_whole)
    }

    /// Has pieces under way: one at first, and when they have grown to a buffer as many as there are.
    fn ask_ahead(&mut self, engine: &mut Engine, align: u64) -> Result<(), Error> {
        let buffer_bytes = engine.pool().buffer_bytes() as u64;
        let largest = (buffer_bytes - buffer_bytes % align).max(align);
        loop {
            let is_grown = self.piece_bytes >= largest;
            // One buffer is left for who writes down what is read.
            let most = (engine.pool().count() - 1).clamp(1, MOST_AHEAD) as usize;
            let wanted = if is_grown { most } else { 1 };
            let last = self.ahead.back().map(|piece| piece.offset + piece.len);
            let offset = last.unwrap_or(self.window_end());
            if self.ahead.len() >= wanted || (!self.ahead.is_empty() && offset >= self.len_bytes) {
                return Ok(());
            }
            let len = self.piece_bytes.next_multiple_of(align).min(largest);
            let mut buffer = engine.lease()?;
            buffer.set_len(len as usize);
            engine.queue(offset, Op::Read { file: self.file, offset, buffer });
            self.ahead.push_back(Piece { offset, len, arrived: None });
            self.piece_bytes = (self.piece_bytes * 2).min(largest);
        }
    }

    fn arrived(&mut self, completion: Completion) -> Result<(), Error> {
        let read = completion.result?;
        let mut buffer = completion.buffer.expect("a read gives its buffer back");
        buffer.set_len(read);
        let piece = self.ahead.iter_mut().find(|piece| piece.offset == completion.user_data);
        piece.expect("nothing else is in flight").arrived = Some(buffer);
        Ok(())
    }

    /// Waits for what is under way and lets it go: the engine can be used for something else.
    pub(super) fn pause(&mut self, engine: &mut Engine) -> Result<(), Error> {
        self.piece_bytes = PIECE_BYTES_MIN;
        let is_under_way = self.ahead.iter().any(|piece| piece.arrived.is_none());
        self.ahead.clear();
        if is_under_way {
            let mut completions = Vec::new();
            engine.reap(usize::MAX, &mut completions)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{disk, engine, folder};
    use super::*;

    #[test]
    fn a_file_that_is_cut_anywhere_while_it_is_read_ends_there() {
        for cut in [1000, 2048, 3000, 5000] {
            let path = folder().join("file");
            let sim = disk(1, &[(path.clone(), vec![7; 64 << 10])]);
            let mut reading = engine(&sim);
            let mut input = Input::open(&mut reading, &path, true, false).unwrap();
            let mut other = engine(&sim);
            let options = FileOptions { write: true, ..FileOptions::default() };
            let file = other.open_file(&path, &options).unwrap();
            other.truncate(file, cut).unwrap();
            let bytes = input.bytes(&mut reading, 0, 20_000).unwrap();
            assert_eq!(bytes, vec![7; cut as usize], "cut at {cut}");
            assert!(input.bytes(&mut reading, cut, 100).unwrap().is_empty(), "cut at {cut}");
        }
    }
}
