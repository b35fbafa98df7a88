//! A file from its first byte to its last, with reads under way ahead of what is handed out.

use crate::buffer::Buffer;
use crate::{Completion, Engine, Error, FileId, Op};
use std::collections::VecDeque;
use std::path::Path;

/// Reads a file in order. It has the engine's queue for itself as long as it lives.
pub(super) struct ReadAhead {
    file: FileId,
    len_bytes: u64,
    piece_bytes: usize,
    /// The first byte that is not being read yet.
    next_offset: u64,
    /// What is under way or read, in the file's order. Bounded by the engine's buffers (W8).
    pieces: VecDeque<Piece>,
    /// The number of the first of them.
    first: u64,
    completions: Vec<Completion>,
}

struct Piece {
    offset: u64,
    read: Option<Buffer>,
}

impl ReadAhead {
    /// Of all bytes that the file has now. A file that says it has none may have some still
    /// (`/proc`): it is read until it ends.
    pub(super) fn new(engine: &Engine, file: FileId) -> Result<ReadAhead, Error> {
        let (buffer_bytes, align) = (engine.pool().buffer_bytes(), engine.align_bytes(file));
        Ok(ReadAhead {
            file,
            len_bytes: engine.file_len(file)?,
            piece_bytes: (buffer_bytes - buffer_bytes % align as usize).max(1),
            next_offset: 0,
            pieces: VecDeque::new(),
            first: 0,
            completions: Vec::new(),
        })
    }

    /// How long the file is.
    pub(super) fn len_bytes(&self) -> u64 {
        self.len_bytes
    }

    /// The next bytes, or `None` after the last.
    ///
    /// # Errors
    ///
    /// Those of a read; [`Error::Differs`], of `path`, where the file ends before its length.
    pub(super) fn next(
        &mut self,
        engine: &mut Engine,
        path: &Path,
    ) -> Result<Option<Buffer>, Error> {
        self.read_more(engine)?;
        while self.pieces.front().is_some_and(|piece| piece.read.is_none()) {
            engine.reap(1, &mut self.completions)?;
            for completion in self.completions.drain(..) {
                let bytes = completion.result?;
                let mut buffer = completion.buffer.expect("a read gives its buffer back");
                buffer.set_len(bytes);
                self.pieces[(completion.user_data - self.first) as usize].read = Some(buffer);
            }
        }
        let Some(piece) = self.pieces.pop_front() else {
            return Ok(None);
        };
        self.first += 1;
        let mut buffer = piece.read.expect("waited for");
        if self.len_bytes == 0 {
            return Ok(Some(buffer).filter(|buffer| !buffer.is_empty()));
        }
        let wanted = (self.len_bytes - piece.offset).min(self.piece_bytes as u64) as usize;
        if buffer.len() < wanted {
            let because = "became shorter while it was copied".into();
            return Err(Error::Differs { path: path.to_owned(), because });
        }
        buffer.set_len(wanted);
        Ok(Some(buffer))
    }

    fn read_more(&mut self, engine: &mut Engine) -> Result<(), Error> {
        while self.is_more() && !engine.is_full() && engine.pool().free() > 0 {
            let mut buffer = engine.lease()?;
            buffer.set_len(self.piece_bytes);
            let (file, offset) = (self.file, self.next_offset);
            let number = self.first + self.pieces.len() as u64;
            engine.queue(number, Op::Read { file, offset, buffer });
            self.pieces.push_back(Piece { offset, read: None });
            self.next_offset += self.piece_bytes as u64;
        }
        engine.submit()
    }

    fn is_more(&self) -> bool {
        self.next_offset < self.len_bytes || self.len_bytes == 0 && self.pieces.is_empty()
    }
}
