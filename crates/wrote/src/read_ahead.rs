//! Reads a file in order, with reads in flight ahead of the piece that is returned.

use crate::buffer::Buffer;
use crate::engine::Op;
use crate::{Completion, Engine, Error, FileId};
use std::collections::VecDeque;

/// Reads a file in pieces of one buffer, from any position. It needs exclusive use of the engine's
/// queue.
#[derive(Debug)]
pub(crate) struct ReadAhead {
    file: FileId,
    piece_bytes: usize,
    /// Pieces in flight or read, in the file's order. The engine's buffers bound them (W8).
    pieces: VecDeque<Option<Result<Buffer, Error>>>,
    /// The number of the next piece to queue. Numbers continue after [`ReadAhead::begin_at`], which
    /// distinguishes forgotten pieces from later ones.
    next: u64,
    /// The place of the next piece to queue.
    next_offset: u64,
    completions: Vec<Completion>,
}

impl ReadAhead {
    /// `piece_bytes` is a multiple of the file's alignment.
    pub(crate) fn new(file: FileId, piece_bytes: usize) -> ReadAhead {
        let (pieces, completions) = (VecDeque::new(), Vec::new());
        ReadAhead { file, piece_bytes, pieces, next: 0, next_offset: 0, completions }
    }

    /// Forgets what was read ahead, and continues at `offset`, a multiple of the alignment. Reads
    /// in flight keep their buffers until complete (W5).
    pub(crate) fn begin_at(&mut self, offset: u64) {
        self.pieces.clear();
        self.next_offset = offset;
    }

    /// Returns the place of the piece that [`ReadAhead::next`] returns.
    pub(crate) fn offset(&self) -> u64 {
        self.next_offset - self.pieces.len() as u64 * self.piece_bytes as u64
    }

    /// Returns the end of the queued pieces.
    pub(crate) fn queued_up_to(&self) -> u64 {
        self.next_offset
    }

    /// Returns the next piece, which is shorter than `piece_bytes` only at the end of the file, or
    /// the error of its read. After an error the later pieces are still available.
    ///
    /// Pieces that begin before `end` are read ahead.
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
            // Otherwise the loop submits.
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
