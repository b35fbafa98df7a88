//! The bytes of records. Each record has unique bytes, so that none can be mistaken for another.

use crate::verbs::sim::program::Flavour;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::sync::LazyLock;
use wrote::Format;

/// The longest record.
pub const LEN_MAX: usize = 64 << 10;

/// Random bytes for both formats: without line feeds and NULs.
static SOURCE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(0);
    (0..2 * LEN_MAX).map(|_| random.random_range(b'\n' + 1..=255)).collect()
});

/// Returns the bytes of the record with this number among all that a program appends. The first 16
/// bytes, or as many as there are, give the number.
pub fn bytes(number: u64, len: usize, flavour: Flavour, format: Format) -> Vec<u8> {
    let start = (number.wrapping_mul(0x9E37_79B9) % LEN_MAX as u64) as usize;
    let mut bytes = match (flavour, format) {
        (Flavour::Zeros, Format::Framed) => vec![0; len],
        _ => SOURCE[start..start + len].to_vec(),
    };
    // The lowest digit comes first: it distinguishes short records best.
    for (place, byte) in bytes.iter_mut().take(16).enumerate() {
        *byte = b'a' + (number >> (4 * place) & 0xf) as u8;
    }
    bytes
}

/// Returns a record with pieces of the log's own file, where a reader may search for a batch, as
/// when a program stores a copy of the log in the log.
pub fn with_pieces_of(file: &[u8], number: u64, len: usize) -> Vec<u8> {
    let mut bytes = bytes(number, len, Flavour::Random, Format::Framed);
    // After the headers of the batch and the record, and in the first segment also after its own.
    let to_block = BLOCK_BYTES - if number.is_multiple_of(2) { 56 } else { 120 };
    let blocks = file.chunks_exact(BLOCK_BYTES).rev().filter(|block| block[..4] != [0; 4]);
    let places = (to_block..len).step_by(BLOCK_BYTES);
    for (place, block) in places.zip(blocks) {
        let part = &block[..BLOCK_BYTES.min(len - place)];
        bytes[place..place + part.len()].copy_from_slice(part);
    }
    bytes
}

const BLOCK_BYTES: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_of_16_bytes_is_like_no_other() {
        let sixteen = |number| bytes(number, 16, Flavour::Random, Format::Lines);
        for number in 0..300 {
            assert_ne!(sixteen(number), sixteen(number + 1));
            assert_ne!(sixteen(number), sixteen(number + 256));
        }
    }

    #[test]
    fn lines_hold_neither_a_line_feed_nor_nul() {
        for flavour in [Flavour::Random, Flavour::Zeros] {
            let line = bytes(77, 5000, flavour, Format::Lines);
            assert!(line.iter().all(|&byte| byte != b'\n' && byte != 0));
        }
    }

    #[test]
    fn pieces_of_the_file_stand_at_the_blocks_of_a_record_that_is_alone_in_its_batch() {
        let file = [vec![0; BLOCK_BYTES], vec![9; BLOCK_BYTES]].concat();
        let bytes = with_pieces_of(&file, 2, 6000);
        assert_eq!(bytes[BLOCK_BYTES - 56..][..BLOCK_BYTES.min(6000 - 4040)], [9; 1960]);
        assert_ne!(bytes[..BLOCK_BYTES - 56], file[..BLOCK_BYTES - 56]);
    }
}
