//! Messages that rsyslog has compressed, each by itself: a `z`, and a stream of zlib.

use flate2::{Decompress, FlushDecompress, Status};

/// The first byte of a stream of zlib (RFC 1950), and the second by the level of compression.
const METHOD: u8 = b'x';
const LEVELS: [u8; 4] = [0x01, 0x5e, 0x9c, 0xda];
/// Bytes that are inflated at once.
const STEP_BYTES: usize = 64 << 10;
/// The bytes that could be inflated in the time that a message takes to begin.
const BEGIN_BYTES: usize = 4 << 10;
/// Bytes of memory of a decoder: the last 32 KiB, and its tables.
const DECODER_BYTES: usize = 44 << 10;

/// Tells whether a message is compressed.
pub(super) fn is_compressed(message: &[u8]) -> bool {
    matches!(message, [b'z', METHOD, level, ..] if LEVELS.contains(level))
}

/// Tells whether a stream is compressed as a whole. `x^` may begin a text.
pub(super) fn is_stream(begin: [u8; 2]) -> bool {
    begin[0] == METHOD && LEVELS.contains(&begin[1]) && !begin[1].is_ascii_graphic()
}

/// A message that is being made what it was, a part at a time. It is kept until it is taken: none
/// is inflated twice.
#[derive(Debug)]
pub(super) struct Inflating {
    /// `None` at the end, and where the bytes are no stream of zlib.
    decoder: Option<Decompress>,
    is_broken: bool,
    /// Bytes of the message that the decoder has taken.
    taken: usize,
    /// Bytes that were inflated and are not in the log.
    pub part: Vec<u8>,
    /// Bytes that were inflated in all.
    pub bytes: usize,
    /// Parts before this one are in the log.
    pub is_cut: bool,
}

/// The outcome of [`Inflating::fill`].
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Filled {
    /// The part has the bytes that were asked for, or the message has ended.
    Whole,
    /// The call has done its share of the work.
    Later,
    /// The message is not compressed, or broken behind the parts before.
    Broken,
}

impl Inflating {
    pub(super) fn new(budget: &mut usize) -> Box<Inflating> {
        *budget = budget.saturating_sub(BEGIN_BYTES);
        // The first byte is the mark.
        let (decoder, taken, part) = (Some(Decompress::new(true)), 1, Vec::new());
        Box::new(Inflating { decoder, is_broken: false, taken, part, bytes: 0, is_cut: false })
    }

    /// Inflates `message` until its part has `part_bytes`, for `budget` bytes at most.
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
                // It breaks off.
                _ => (self.decoder, self.is_broken) = (None, true),
            }
        }
        Filled::Whole
    }

    /// Returns the bytes of memory that it takes.
    pub(super) fn held_bytes(&self) -> usize {
        let decoder = self.decoder.as_ref().map_or(0, |_| DECODER_BYTES);
        self.part.capacity() + decoder
    }
}
