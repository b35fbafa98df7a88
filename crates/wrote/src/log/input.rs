//! One file of a log, read through an engine at any offset and from front to back.

use crate::{Engine, Error, FileId, FileOptions, Op};
use std::path::{Path, PathBuf};

/// A file and the part of it that is in memory.
///
/// What is in memory is one range, which grows as far as one request asks and no further: at most that
/// request and a buffer of the engine's (W8).
#[derive(Debug)]
pub(super) struct Input {
    pub path: PathBuf,
    pub file: FileId,
    /// The file's length when it was opened, or looked at again.
    pub len_bytes: u64,
    /// The most that is read at once.
    piece_bytes: usize,
    /// Where in the file `window` begins; its end is aligned, or the file's.
    start: u64,
    window: Vec<u8>,
}

impl Input {
    /// Opens the file, past the page cache with `direct`: so what another process writes directly is seen.
    pub(super) fn open(
        engine: &mut Engine,
        path: &Path,
        direct: bool,
        write: bool,
    ) -> Result<Input, Error> {
        let options = FileOptions { direct, write, ..FileOptions::default() };
        let file = engine.open_file(path, &options)?;
        Ok(Input {
            path: path.to_owned(),
            file,
            len_bytes: engine.file_len(file)?,
            piece_bytes: engine.pool().buffer_bytes(),
            start: 0,
            window: Vec::new(),
        })
    }

    /// Reads at most so much at once: for who looks at the file's beginning only.
    pub(super) fn in_pieces_of(mut self, bytes: usize) -> Input {
        self.piece_bytes = self.piece_bytes.min(bytes);
        self
    }

    /// The `len` bytes at `offset`, fewer where the file ends.
    pub(super) fn bytes(
        &mut self,
        engine: &mut Engine,
        offset: u64,
        len: usize,
    ) -> Result<&[u8], Error> {
        let len = len.min(self.len_bytes.saturating_sub(offset).try_into().unwrap_or(usize::MAX));
        if offset < self.start || offset + len as u64 > self.window_end() {
            self.fill(engine, offset, len)?;
        }
        let from = ((offset - self.start) as usize).min(self.window.len());
        let to = (from + len).min(self.window.len());
        Ok(&self.window[from..to])
    }

    /// Forgets what was read, and looks at the file's length again: somebody may have written.
    pub(super) fn look_again(&mut self, engine: &Engine) -> Result<(), Error> {
        self.window.clear();
        self.len_bytes = engine.file_len(self.file)?;
        Ok(())
    }

    pub(super) fn close(self, engine: &mut Engine) -> Result<(), Error> {
        engine.close_file(self.file)
    }

    fn window_end(&self) -> u64 {
        self.start + self.window.len() as u64
    }

    /// Brings the range into memory, with what is before it let go.
    fn fill(&mut self, engine: &mut Engine, offset: u64, len: usize) -> Result<(), Error> {
        let align = u64::from(engine.align_bytes(self.file));
        if (self.start..=self.window_end()).contains(&offset)
            && self.window_end().is_multiple_of(align)
        {
            self.window.drain(..(offset - self.start) as usize);
            self.start = offset;
        } else {
            self.window.clear();
            self.start = offset - offset % align;
        }
        while self.window_end() < offset + len as u64 {
            if self.read_piece(engine, align)? == 0 {
                // Somebody made it shorter meanwhile.
                self.len_bytes = self.window_end();
                break;
            }
        }
        Ok(())
    }

    /// Reads what follows the window.
    fn read_piece(&mut self, engine: &mut Engine, align: u64) -> Result<usize, Error> {
        let mut buffer = engine.lease()?;
        let piece = (self.piece_bytes as u64).next_multiple_of(align) as usize;
        buffer.set_len(piece.min(buffer.capacity() - buffer.capacity() % align as usize));
        engine.queue(0, Op::Read { file: self.file, offset: self.window_end(), buffer });
        let mut completions = Vec::new();
        engine.reap(1, &mut completions)?;
        let completion = completions.pop().expect("one read was queued");
        let read = completion.result?;
        let buffer = completion.buffer.expect("a read gives its buffer back");
        self.window.extend_from_slice(&buffer[..read]);
        Ok(read)
    }
}
