//! Bodies that are compressed by gzip: their bytes as they were before, a bounded piece at a time.

use crate::limits::Refusal;
use bytes::{Buf, Bytes};
use flate2::write::MultiGzDecoder;
use std::io::Write;

/// Bytes of a body as it was before, at most: a few that are compressed make a thousand times more.
const BYTES_MAX: u64 = 1 << 30;
const BROKEN: Refusal = Refusal::Malformed("the body is not gzip");

/// A body that is being made what it was.
#[derive(Debug)]
pub(super) struct Gunzip {
    decoder: MultiGzDecoder<Vec<u8>>,
    bytes: u64,
}

impl Gunzip {
    pub(super) fn new() -> Gunzip {
        Gunzip { decoder: MultiGzDecoder::new(Vec::new()), bytes: 0 }
    }

    /// Takes bytes from the front of `compressed`, and returns what they were: 32 KiB at most, and
    /// perhaps nothing.
    pub(super) fn next(&mut self, compressed: &mut Bytes) -> Result<Bytes, Refusal> {
        let taken = self.decoder.write(compressed).map_err(|_| BROKEN)?;
        compressed.advance(taken);
        let piece = self.piece()?;
        if taken == 0 && piece.is_empty() { Err(BROKEN) } else { Ok(piece) }
    }

    /// Returns what is left at the end of the body, which must be that of its gzip as well.
    pub(super) fn end(&mut self) -> Result<Bytes, Refusal> {
        self.decoder.try_finish().map_err(|_| BROKEN)?;
        self.piece()
    }

    fn piece(&mut self) -> Result<Bytes, Refusal> {
        let piece = std::mem::take(self.decoder.get_mut());
        self.bytes += piece.len() as u64;
        if self.bytes > BYTES_MAX { Err(Refusal::TooLong) } else { Ok(piece.into()) }
    }
}
