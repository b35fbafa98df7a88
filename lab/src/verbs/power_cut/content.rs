//! Contents computed from a number, so that a check knows every byte.

use rand::{Rng, RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::ops::RangeInclusive;

/// Returns the content of a number, with a length in `lengths`.
pub fn content(number: u64, lengths: RangeInclusive<usize>) -> Vec<u8> {
    let mut random = random(number);
    let mut bytes = vec![0; random.random_range(lengths)];
    random.fill_bytes(&mut bytes);
    bytes
}

/// Returns the length of a content without making it.
pub fn length(number: u64, lengths: RangeInclusive<usize>) -> usize {
    random(number).random_range(lengths)
}

/// Returns random numbers from `seed`.
pub fn random(seed: u64) -> Xoshiro256PlusPlus {
    Xoshiro256PlusPlus::seed_from_u64(seed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_content_is_the_same_each_time_and_as_long_as_its_length_says() {
        let bytes = content(7, 1..=100_000);
        assert!(bytes == content(7, 1..=100_000));
        assert_eq!(bytes.len(), length(7, 1..=100_000));
    }

    #[test]
    fn two_contents_differ_in_every_block() {
        let (one, other) = (content(1, 8192..=8192), content(2, 8192..=8192));
        assert!(one.chunks(512).zip(other.chunks(512)).all(|(one, other)| one != other));
    }
}
