//! The texts that are saved: printable, random, none like another, made before the clock starts.

use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A byte of a text carries 6 random bits: what is printable can't carry 8.
const ALPHABET: &[u8; 64] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 .";

/// Makes the texts of a run (M2), in memory that is allocated once.
#[derive(Clone, Debug)]
pub(super) struct Texts {
    random: Xoshiro256PlusPlus,
    bytes: Vec<u8>,
}

impl Default for Texts {
    fn default() -> Texts {
        Texts::new(0, 0)
    }
}

impl Texts {
    /// For at most so many bytes at a time.
    pub(super) fn new(bytes_max: usize, seed: u64) -> Texts {
        let random = Xoshiro256PlusPlus::seed_from_u64(seed);
        Texts { random, bytes: vec![0; bytes_max] }
    }

    /// So many new texts of so many bytes each. A character is a byte.
    pub(super) fn make(&mut self, count: usize, size_bytes: usize) -> std::slice::Chunks<'_, u8> {
        let bytes = &mut self.bytes[..count * size_bytes];
        self.random.fill_bytes(bytes);
        bytes.iter_mut().for_each(|byte| *byte = ALPHABET[usize::from(*byte % 64)]);
        bytes.chunks(size_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn texts_are_printable_and_none_is_like_another() {
        // M2
        let mut texts = Texts::new(100 * 500, 7);
        let mut seen = HashSet::new();
        for _ in 0..3 {
            for text in texts.make(100, 500) {
                assert!(text.len() == 500 && text.iter().all(|byte| (b' '..=b'z').contains(byte)));
                assert!(seen.insert(text.to_vec()));
            }
        }
        assert_eq!(seen.len(), 300);
        assert_eq!(texts.make(3, 1).map(<[u8]>::len).collect::<Vec<_>>(), [1, 1, 1]);
    }

    #[test]
    fn every_character_of_the_alphabet_is_there_once() {
        assert_eq!(ALPHABET.iter().collect::<HashSet<_>>().len(), 64);
    }
}
