//! A file read in order, with reads in flight ahead of the piece that is returned.

use crate::buffer::Buffer;
use crate::engine::Op;
use crate::{Completion, Engine, Error, FileId};
use std::collections::VecDeque;

/// Reads a file from its start, in pieces of one buffer. It needs the engine's queue for itself.
pub(crate) struct ReadAhead {
    file: FileId,
    piece_bytes: usize,
    /// Pieces in flight or read, in the file's order. The engine's buffers bound them (W8).
    pieces: VecDeque<Option<Buffer>>,
    /// The number of the next piece to queue.
    next: u64,
    completions: Vec<Completion>,
}

impl ReadAhead {
    /// `piece_bytes` is a multiple of the file's alignment.
    pub(crate) fn new(file: FileId, piece_bytes: usize) -> ReadAhead {
        let (pieces, completions) = (VecDeque::new(), Vec::new());
        ReadAhead { file, piece_bytes, pieces, next: 0, completions }
    }

    /// Returns the next piece, which is shorter than `piece_bytes` only at the end of the file.
    ///
    /// Pieces that begin before `end` are read ahead.
    pub(crate) fn next(&mut self, engine: &mut Engine, end: u64) -> Result<Buffer, Error> {
        let mut offset = self.next * self.piece_bytes as u64;
        while self.pieces.is_empty()
            || offset < end && !engine.is_full() && engine.pool().free() > 0
        {
            let mut buffer = engine.lease()?;
            buffer.set_len(self.piece_bytes);
            engine.queue(self.next, Op::Read { file: self.file, offset, buffer });
            self.pieces.push_back(None);
            self.next += 1;
            offset += self.piece_bytes as u64;
        }
        if self.pieces.front().is_some_and(Option::is_some) {
            // Otherwise the loop submits.
            engine.submit()?;
        }
        while self.pieces.front().is_some_and(Option::is_none) {
            engine.reap(1, &mut self.completions)?;
            let first = self.next - self.pieces.len() as u64;
            for completion in self.completions.drain(..) {
                let mut buffer = completion.buffer.expect("a read returns its buffer");
                buffer.set_len(completion.result?);
                self.pieces[(completion.user_data - first) as usize] = Some(buffer);
            }
        }
        Ok(self.pieces.pop_front().flatten().expect("the loop waits for the first piece"))
    }
}
