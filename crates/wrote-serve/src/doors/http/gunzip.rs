//! Decompresses gzip bodies, one bounded piece at a time.

use crate::limits::Refusal;
use bytes::{Buf, Bytes};
use flate2::write::MultiGzDecoder;
use std::io::Write;
use tokio::task::yield_now;

/// The most decompressed bytes of a body: gzip can expand by a factor of a thousand.
const BYTES_MAX: u64 = 1 << 30;
const BROKEN: Refusal = Refusal::Malformed("the body is not gzip");

#[derive(Debug)]
pub(super) struct Gunzip {
    decoder: MultiGzDecoder<Vec<u8>>,
    bytes: u64,
}

impl Gunzip {
    /// The memory of a decoder: 32 KiB each of input and output, and tables.
    pub(super) const MEMORY_BYTES: usize = 76 << 10;

    pub(super) fn new() -> Gunzip {
        Gunzip { decoder: MultiGzDecoder::new(Vec::new()), bytes: 0 }
    }

    /// Decompresses from the front of `compressed` and returns at most 32 KiB, possibly nothing. A
    /// few bytes may expand to thousands of pieces, so other tasks run before each.
    pub(super) async fn next(&mut self, compressed: &mut Bytes) -> Result<Bytes, Refusal> {
        yield_now().await;
        let taken = self.decoder.write(compressed).map_err(|_| BROKEN)?;
        compressed.advance(taken);
        let piece = self.piece()?;
        if taken == 0 && piece.is_empty() { Err(BROKEN) } else { Ok(piece) }
    }

    /// Returns the remaining output at the end of the body. Fails if the gzip stream is incomplete.
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

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    #[test]
    fn other_tasks_have_their_turn_before_each_piece() {
        const BYTES: usize = 1 << 20;
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(&[b'\n'; BYTES]).unwrap();
        let mut compressed = Bytes::from(encoder.finish().unwrap());
        let (mut gunzip, mut bytes) = (Gunzip::new(), 0);
        let context = &mut Context::from_waker(Waker::noop());
        while !compressed.is_empty() {
            let mut next = pin!(gunzip.next(&mut compressed));
            assert!(next.as_mut().poll(context).is_pending());
            let Poll::Ready(piece) = next.poll(context) else { panic!("it waits for nothing") };
            let piece = piece.unwrap();
            assert!(piece.len() <= 32 << 10);
            bytes += piece.len();
        }
        assert_eq!(bytes + gunzip.end().unwrap().len(), BYTES);
    }
}
