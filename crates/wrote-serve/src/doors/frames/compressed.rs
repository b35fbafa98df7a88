//! Messages that rsyslog compressed one by one: a `z` followed by a zlib stream.

use flate2::{Decompress, FlushDecompress, Status};

/// The first byte of a zlib stream (RFC 1950); the second depends on the compression level.
const METHOD: u8 = b'x';
const LEVELS: [u8; 4] = [0x01, 0x5e, 0x9c, 0xda];
/// Bytes inflated at once.
const STEP_BYTES: usize = 64 << 10;
/// Starting a message costs as much time as inflating this many bytes.
const BEGIN_BYTES: usize = 4 << 10;
/// The memory of a decoder: a 32 KiB window and tables.
const DECODER_BYTES: usize = 44 << 10;

pub(super) fn is_compressed(message: &[u8]) -> bool {
    matches!(message, [b'z', METHOD, level, ..] if LEVELS.contains(level))
}

/// Returns whether a whole stream is compressed. `x^` may also start a text.
pub(super) fn is_stream(begin: [u8; 2]) -> bool {
    begin[0] == METHOD && LEVELS.contains(&begin[1]) && !begin[1].is_ascii_graphic()
}

/// A message being inflated, one part at a time. It is kept until it is taken, so that nothing is
/// inflated twice.
#[derive(Debug)]
pub(super) struct Inflating {
    /// `None` at the end, and for invalid data.
    decoder: Option<Decompress>,
    is_broken: bool,
    /// Compressed bytes consumed.
    taken: usize,
    /// Inflated bytes that are not in the log yet.
    pub part: Vec<u8>,
    /// Inflated bytes in total.
    pub bytes: usize,
    /// Earlier parts are in the log.
    pub is_cut: bool,
}

/// The outcome of [`Inflating::fill`].
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Filled {
    /// The part has the requested length, or the message has ended.
    Whole,
    /// The call has used its budget.
    Later,
    /// The message is not compressed, or is corrupt after the earlier parts.
    Broken,
}

impl Inflating {
    pub(super) fn new(budget: &mut usize) -> Box<Inflating> {
        *budget = budget.saturating_sub(BEGIN_BYTES);
        // The first byte is the `z`.
        let (decoder, taken, part) = (Some(Decompress::new(true)), 1, Vec::new());
        Box::new(Inflating { decoder, is_broken: false, taken, part, bytes: 0, is_cut: false })
    }

    /// Inflates until the part has `part_bytes`, using at most `budget` bytes.
    pub(super) fn fill(&mut self, message: &[u8], part_bytes: usize, budget: &mut usize) -> Filled {
        while self.part.len() < part_bytes {
            if self.is_broken {
                return Filled::Broken;
            }
            let Some(decoder) = &mut self.decoder else { break };
            let wanted = (part_bytes - self.part.len()).min(STEP_BYTES).min(*budget);
            if wanted == 0 {
                return Filled::Later;
            }
            let before = (decoder.total_in(), self.part.len());
            self.part.resize(before.1 + wanted, 0);
            let (rest, room) = (&message[self.taken..], &mut self.part[before.1..]);
            let out = decoder.total_out();
            let status = decoder.decompress(rest, room, FlushDecompress::None);
            let taken = (decoder.total_in() - before.0) as usize;
            let inflated = (decoder.total_out() - out) as usize;
            self.part.truncate(before.1 + inflated);
            self.taken += taken;
            self.bytes += inflated;
            *budget -= inflated;
            match status {
                Ok(Status::StreamEnd) => self.decoder = None,
                Ok(_) if taken + inflated > 0 => {}
                // Truncated data.
                _ => (self.decoder, self.is_broken) = (None, true),
            }
        }
        Filled::Whole
    }

    pub(super) fn held_bytes(&self) -> usize {
        let decoder = self.decoder.as_ref().map_or(0, |_| DECODER_BYTES);
        self.part.capacity() + decoder
    }
}
