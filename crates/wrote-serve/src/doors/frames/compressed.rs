//! Messages that rsyslog has compressed, each by itself: a `z`, and a stream of zlib.

use flate2::read::ZlibDecoder;
use std::io::Read;

/// The first byte of a stream of zlib (RFC 1950), and the second by the level of compression.
const METHOD: u8 = b'x';
const LEVELS: [u8; 4] = [0x01, 0x5e, 0x9c, 0xda];

/// Tells whether a message is compressed.
pub(super) fn is_compressed(message: &[u8]) -> bool {
    matches!(message, [b'z', METHOD, level, ..] if LEVELS.contains(level))
}

/// Tells whether a stream is compressed as a whole. `x^` may begin a text.
pub(super) fn is_stream(begin: [u8; 2]) -> bool {
    begin[0] == METHOD && LEVELS.contains(&begin[1]) && !begin[1].is_ascii_graphic()
}

/// Returns a message as it was before, up to `bytes_max` of it; `None` if it was not compressed.
pub(super) fn inflate(message: &[u8], bytes_max: usize) -> Option<Vec<u8>> {
    let mut inflated = Vec::new();
    let mut decoder = ZlibDecoder::new(message.get(1..)?).take(bytes_max as u64);
    decoder.read_to_end(&mut inflated).ok().map(|_| inflated)
}
