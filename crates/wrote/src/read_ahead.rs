//! Reads a file in order, with reads in flight ahead of the caller.

use crate::buffer::Buffer;
use crate::engine::Op;
use crate::{Completion, Engine, Error, FileId};
use std::collections::VecDeque;

/// A file that is read in order, in pieces of one buffer, from any offset. It requires exclusive
/// use of the engine's queue.
#[derive(Debug)]
pub(crate) struct ReadAhead {
    file: FileId,
    piece_bytes: usize,
    /// The pieces in flight or read, in file order. The number of the engine's buffers limits them
    /// (W8).
    pieces: VecDeque<Option<Result<Buffer, Error>>>,
    /// The number of the next piece to queue. [`ReadAhead::begin_at`] does not reset it, so that
    /// discarded pieces can be distinguished from later ones.
    next: u64,
    /// The offset of the next piece to queue.
    next_offset: u64,
    completions: Vec<Completion>,
}

impl ReadAhead {
    /// Creates a read-ahead of `file`. `piece_bytes` must be a multiple of the file's alignment.
    pub(crate) fn new(file: FileId, piece_bytes: usize) -> ReadAhead {
        let (pieces, completions) = (VecDeque::new(), Vec::new());
        ReadAhead { file, piece_bytes, pieces, next: 0, next_offset: 0, completions }
    }

    /// Discards the pieces read ahead, and continues at `offset`, which must be a multiple of the
    /// alignment. Reads in flight keep their buffers until they complete (W5).
    pub(crate) fn begin_at(&mut self, offset: u64) {
        self.pieces.clear();
        self.next_offset = offset;
    }

    /// Returns the offset of the piece that [`ReadAhead::next`] returns next.
    pub(crate) fn offset(&self) -> u64 {
        self.next_offset - self.pieces.len() as u64 * self.piece_bytes as u64
    }

    /// Returns the offset at which the queued pieces end.
    pub(crate) fn queued_up_to(&self) -> u64 {
        self.next_offset
    }

    /// Returns the next piece, or the error of its read. A piece is shorter than `piece_bytes` only
    /// at the end of the file. After an error, the later pieces are still available.
    ///
    /// Reads ahead only pieces that begin before `end`.
    pub(crate) fn next(&mut self, engine: &mut Engine, end: u64) -> Result<Buffer, Error> {
        self.next_of(engine, end, usize::MAX)
    }

    /// Like [`ReadAhead::next`], with at most `pieces_max` pieces in flight or read.
    pub(crate) fn next_of(
        &mut self,
        engine: &mut Engine,
        end: u64,
        pieces_max: usize,
    ) -> Result<Buffer, Error> {
        while self.pieces.is_empty()
            || self.next_offset < end
                && self.pieces.len() < pieces_max
                && !engine.is_full()
                && engine.pool().free() > 0
        {
            let mut buffer = engine.lease()?;
            buffer.set_len(self.piece_bytes);
            let offset = self.next_offset;
            engine.queue(self.next, Op::Read { file: self.file, offset, buffer });
            self.pieces.push_back(None);
            self.next += 1;
            self.next_offset += self.piece_bytes as u64;
        }
        if self.pieces.front().is_some_and(Option::is_some) {
            // If the first piece is still in flight, the loop below submits.
            engine.submit()?;
        }
        while self.pieces.front().is_some_and(Option::is_none) {
            engine.reap(1, &mut self.completions)?;
            let first = self.next - self.pieces.len() as u64;
            for Completion { user_data: number, result, buffer, .. } in self.completions.drain(..) {
                let Some(place) = number.checked_sub(first) else { continue };
                self.pieces[place as usize] = Some(result.map(|len| {
                    let mut buffer = buffer.expect("a read returns its buffer");
                    buffer.set_len(len);
                    buffer
                }));
            }
        }
        self.pieces.pop_front().flatten().expect("the loop waits for the first piece")
    }
}
