//! A file from its first byte to its last, with reads under way ahead of what is handed out.

use crate::buffer::Buffer;
use crate::copy::stream::{Cut, End};
use crate::{Completion, Engine, Error, Op};
use std::collections::VecDeque;

/// Reads a file in order. It has the engine's queue for itself as long as it lives.
pub(super) struct ReadAhead<'a> {
    from: End<'a>,
    cut: Cut,
    /// The first byte that is not being read yet.
    next_offset: u64,
    /// What is under way or read, in the file's order. Bounded by the engine's buffers (W8).
    pieces: VecDeque<Piece>,
    /// The number of the first of them.
    first: u64,
    completions: Vec<Completion>,
}

struct Piece {
    len: usize,
    read: Option<Buffer>,
}

impl<'a> ReadAhead<'a> {
    pub(super) fn new(from: End<'a>, cut: Cut) -> ReadAhead<'a> {
        let (pieces, completions) = (VecDeque::new(), Vec::new());
        ReadAhead { from, cut, next_offset: 0, pieces, first: 0, completions }
    }

    /// The next bytes, or `None` after the last.
    ///
    /// # Errors
    ///
    /// Those of a read; [`Error::Differs`] where the file ends before its length.
    pub(super) fn next(&mut self, engine: &mut Engine) -> Result<Option<Buffer>, Error> {
        self.read_more(engine)?;
        while self.pieces.front().is_some_and(|piece| piece.read.is_none()) {
            engine.reap(1, &mut self.completions)?;
            for completion in self.completions.drain(..) {
                let bytes = completion.result.map_err(|error| error.about(self.from.named))?;
                let mut buffer = completion.buffer.expect("a read gives its buffer back");
                buffer.set_len(bytes);
                self.pieces[(completion.user_data - self.first) as usize].read = Some(buffer);
            }
        }
        let Some(Piece { len, read }) = self.pieces.pop_front() else {
            return Ok(None);
        };
        self.first += 1;
        let mut buffer = read.expect("waited for");
        if buffer.len() < len {
            return Err(self.from.shorter());
        }
        buffer.set_len(len);
        Ok(Some(buffer))
    }

    fn read_more(&mut self, engine: &mut Engine) -> Result<(), Error> {
        while self.next_offset < self.cut.len && !engine.is_full() && engine.pool().free() > 0 {
            let len = self.cut.piece_bytes.min(self.cut.len - self.next_offset);
            let mut buffer = engine.lease()?;
            buffer.set_len(len.next_multiple_of(self.cut.block_bytes) as usize);
            let (file, offset) = (self.from.file, self.next_offset);
            let number = self.first + self.pieces.len() as u64;
            engine.queue(number, Op::Read { file, offset, buffer });
            self.pieces.push_back(Piece { len: len as usize, read: None });
            self.next_offset += len;
        }
        engine.submit()
    }
}
