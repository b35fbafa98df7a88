//! Random data, in memory before a clock starts. It is a separate file because several kinds of
//! work write such data.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// The fixed seed, so that every method writes the same content.
const SEED: u64 = 0x77_72_6f_74_65;

/// Random bytes in memory, used in pieces. After the last piece, the first is used again.
#[derive(Debug)]
pub struct Ring {
    bytes: Vec<u8>,
}

impl Ring {
    /// Generates a ring of `size_bytes`.
    pub fn new(size_bytes: usize) -> Ring {
        let mut bytes = vec![0; size_bytes];
        Xoshiro256PlusPlus::seed_from_u64(SEED).fill_bytes(&mut bytes);
        Ring { bytes }
    }

    /// Returns piece `number`, of `piece_bytes` bytes, which is at most the ring's length.
    pub fn piece(&self, number: u64, piece_bytes: usize) -> &[u8] {
        let pieces = self.bytes.len() / piece_bytes;
        let begin = (number % pieces as u64) as usize * piece_bytes;
        &self.bytes[begin..begin + piece_bytes]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_differ_and_come_again_after_the_last() {
        let ring = Ring::new(10_000);
        let pieces: Vec<&[u8]> = (0..4).map(|number| ring.piece(number, 3000)).collect();
        assert!(pieces[0] != pieces[1] && pieces[1] != pieces[2] && pieces[0] != pieces[2]);
        assert_eq!(pieces[3], pieces[0]);
    }
}
