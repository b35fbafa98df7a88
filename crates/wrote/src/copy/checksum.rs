//! The checksum of a file's bytes: XXH3 with 128 bits.

/// XXH3 detects accidental damage at memory speed. It is not secure against deliberate collisions.
pub(crate) use xxhash_rust::xxh3::Xxh3 as Checksum;

static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// Adds `count` zeros (a hole).
pub(super) fn add_zeros(checksum: &mut Checksum, count: u64) {
    let piece = ZEROS.len() as u64;
    for _ in 0..count / piece {
        checksum.update(&ZEROS);
    }
    checksum.update(&ZEROS[..(count % piece) as usize]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_the_whole_and_a_hole_is_zeros() {
        let zeros = 3 * ZEROS.len() + 17;
        let whole = [&b"before"[..], &vec![0; zeros], b"after"].concat();
        let mut checksum = Checksum::default();
        checksum.update(b"bef");
        checksum.update(b"ore");
        add_zeros(&mut checksum, zeros as u64);
        checksum.update(b"after");
        assert_eq!(checksum.digest128(), xxhash_rust::xxh3::xxh3_128(&whole));
    }

    #[test]
    fn the_checksum_of_nothing_is_the_one_that_others_give() {
        // XXH128 of empty input, as printed by `xxhsum -H2`.
        assert_eq!(Checksum::default().digest128(), 0x99aa_06d3_0147_98d8_6001_c324_468d_497f);
    }
}
