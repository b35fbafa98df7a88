//! The checksum of a file's bytes: XXH3 with 128 bits.

use xxhash_rust::xxh3::Xxh3;

static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// The checksum of the bytes added so far.
///
/// XXH3 finds accidental damage at the speed of memory. It does not stop an author who wants two
/// files to look the same.
#[derive(Default)]
pub(crate) struct Checksum(Xxh3);

impl Checksum {
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Adds `count` zeros: a hole.
    pub(crate) fn add_zeros(&mut self, count: u64) {
        let piece = ZEROS.len() as u64;
        for _ in 0..count / piece {
            self.0.update(&ZEROS);
        }
        self.0.update(&ZEROS[..(count % piece) as usize]);
    }

    pub(crate) fn value(&self) -> u128 {
        self.0.digest128()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_the_whole_and_a_hole_is_zeros() {
        let zeros = 3 * ZEROS.len() + 17;
        let whole = [&b"before"[..], &vec![0; zeros], b"after"].concat();
        let mut checksum = Checksum::default();
        checksum.add(b"bef");
        checksum.add(b"ore");
        checksum.add_zeros(zeros as u64);
        checksum.add(b"after");
        assert_eq!(checksum.value(), xxhash_rust::xxh3::xxh3_128(&whole));
    }

    #[test]
    fn the_checksum_of_nothing_is_the_one_that_others_give() {
        // XXH128 of no bytes, as `xxhsum -H2` prints it.
        assert_eq!(Checksum::default().value(), 0x99aa_06d3_0147_98d8_6001_c324_468d_497f);
    }
}
