//! The content of files, which is derived from seeds before a power loss and compared after it.
//!
//! The module is short, because all subjects use it.

use rand::{Rng, RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::io;
use std::ops::RangeInclusive;
use std::path::Path;

/// Returns the content that belongs to a number, with a length within `lengths`.
pub fn content(number: u64, lengths: RangeInclusive<usize>) -> Vec<u8> {
    let mut random = random(number);
    let mut bytes = vec![0; random.random_range(lengths)];
    random.fill_bytes(&mut bytes);
    bytes
}

/// Returns the length of the content that belongs to a number, without generating it.
pub fn length(number: u64, lengths: RangeInclusive<usize>) -> usize {
    random(number).random_range(lengths)
}

/// Returns a random number generator for `seed`.
pub fn random(seed: u64) -> Xoshiro256PlusPlus {
    Xoshiro256PlusPlus::seed_from_u64(seed)
}

/// Reads a file; `None` if it does not exist. If the file cannot be read, adds a fault.
pub fn read(path: &Path, faults: &mut Vec<String>) -> Option<Vec<u8>> {
    match std::fs::read(path) {
        Ok(bytes) => Some(bytes),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => {
            faults.push(format!("{}: {error}", path.display()));
            None
        }
    }
}

/// Compares `found` with the expected bytes. Returns text such as "812 bytes, where 900 belong;
/// wrong from byte 512".
pub fn describe(found: &[u8], expected: &[u8]) -> String {
    let same = found.iter().zip(expected).take_while(|(one, other)| one == other).count();
    let wrong = if same < found.len().min(expected.len()) {
        let zeros = if found[same..].iter().all(|byte| *byte == 0) { ", all zeros" } else { "" };
        format!("; wrong from byte {same}{zeros}")
    } else {
        String::new()
    };
    format!("{} bytes, where {} belong{wrong}", found.len(), expected.len())
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

    #[test]
    fn a_difference_is_told_by_length_and_first_wrong_byte() {
        assert_eq!(describe(b"abc", b"abcd"), "3 bytes, where 4 belong");
        assert_eq!(describe(b"abXd", b"abcd"), "4 bytes, where 4 belong; wrong from byte 2");
        assert_eq!(
            describe(b"a\0\0\0\0", b"abcd"),
            "5 bytes, where 4 belong; wrong from byte 1, all zeros"
        );
    }
}
