//! Direct read-ahead, with a growing number of reads in flight.

use super::ReaderOptions;
use super::plain::Plain;
use crate::buffer::Buffer;
use crate::engine::{Callers, Options};
use crate::read_ahead::ReadAhead;
use crate::{Effective, Engine, Error, Fallback, FileId, FileOptions};

/// The initial number of pieces to read ahead. Each piece that the caller takes adds one, up to the
/// number of buffers.
const PIECES_AT_FIRST: usize = 2;
/// The number of pieces after which the buffers are registered. Registering touches all of them,
/// and reading a short file should not incur that cost.
const PIECES_TO_REGISTER: usize = 4;

pub(super) struct Ahead {
    /// The pieces. They are declared, and therefore dropped, before the engine, to which their
    /// buffers belong.
    pieces: ReadAhead,
    engine: Engine,
    file: FileId,
    taken: usize,
    /// The length of the file when it was last examined.
    len: u64,
    /// The end of the uncached part of the file, as far as it has been examined.
    cold_up_to: u64,
    is_stopped: bool,
}

impl Ahead {
    /// Reopens the file, directly if its file system supports that. Also records the earlier
    /// `fallbacks`.
    pub(super) fn open(
        plain: &Plain,
        options: &ReaderOptions,
        fallbacks: &[Fallback],
    ) -> Result<Ahead, Error> {
        let ReaderOptions { bs_bytes, iodepth, ioengine, .. } = *options;
        // The caller holds one more buffer.
        let engine_options = Options::new(ioengine, iodepth - 1, bs_bytes)
            .buffers(iodepth)
            .registered_buffers(false);
        let mut engine = match &options.disk {
            Some(disk) => disk.engine(&engine_options)?,
            None => Engine::open_for(&engine_options, Callers::Any)?,
        };
        engine.fell_back_before(fallbacks);
        let direct = FileOptions::new().direct(true);
        let file = engine
            .open_file(plain.path_of_descriptor(), &direct)
            .map_err(|error| error.about(plain.path()))?;
        let pieces = ReadAhead::new(file, engine.pool().buffer_bytes());
        let (len, cold_up_to) = (0, 0);
        Ok(Ahead { pieces, engine, file, taken: 0, len, cold_up_to, is_stopped: true })
    }

    /// Returns the size of a piece, in bytes.
    pub(super) fn piece_bytes(&self) -> usize {
        self.engine.pool().buffer_bytes()
    }

    pub(super) fn is_direct(&self) -> bool {
        self.engine.is_direct(self.file)
    }

    pub(super) fn effective(&self) -> &Effective {
        self.engine.effective()
    }

    /// Restarts the read-ahead at `place`.
    pub(super) fn begin_at(&mut self, place: u64, len: u64, cold_up_to: u64) {
        let align_bytes = u64::from(self.engine.align_bytes(self.file));
        self.pieces.begin_at(place - place % align_bytes);
        (self.len, self.cold_up_to, self.is_stopped, self.taken) = (len, cold_up_to, false, 0);
    }

    /// Returns whether the byte at `place` has been read ahead or is in flight.
    pub(super) fn has(&self, place: u64) -> bool {
        !self.is_stopped && (self.pieces.offset()..self.pieces.queued_up_to()).contains(&place)
    }

    /// Returns the offset of the next piece.
    pub(super) fn offset(&self) -> u64 {
        self.pieces.offset()
    }

    /// Returns the offset from which the page cache must be checked, if the queued reads have
    /// reached it, and otherwise `None`.
    pub(super) fn is_at_end_of_span(&self) -> Option<u64> {
        let place = self.pieces.queued_up_to();
        (!self.is_stopped && place >= self.cold_up_to && place < self.len).then_some(place)
    }

    /// Records the file's length, and that the next `span` bytes are not cached either.
    pub(super) fn go_on(&mut self, len: u64, span: u64) {
        self.len = len;
        self.cold_up_to = self.cold_up_to.saturating_add(span);
        if span == 0 {
            // Pieces that are already queued are still returned.
            self.len = self.len.min(self.cold_up_to);
        }
    }

    /// Returns whether the caller has taken everything that was to be read ahead.
    pub(super) fn is_done(&self) -> bool {
        let all = self.pieces.queued_up_to();
        self.is_stopped || self.pieces.offset() == all && all >= self.len.min(self.cold_up_to)
    }

    pub(super) fn stop(&mut self) {
        self.is_stopped = true;
    }

    pub(super) fn next(&mut self) -> Result<Buffer, Error> {
        self.taken += 1;
        if self.taken == PIECES_TO_REGISTER {
            self.engine.register_buffers();
        }
        let pieces_max = PIECES_AT_FIRST + self.taken;
        self.pieces.next_of(&mut self.engine, self.len.min(self.cold_up_to), pieces_max)
    }
}

impl std::fmt::Debug for Ahead {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ahead").field("engine", &self.engine).finish_non_exhaustive()
    }
}
