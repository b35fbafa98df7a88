//! The identity of a segment whose header is lost, found from a batch.

use super::batch;

/// The polynomial of CRC32C (Castagnoli), reflected: RFC 3720, appendix B.4.
const POLYNOMIAL: u32 = 0x82f6_3b78;

/// The checksum of the identity with which the header of a batch that `bytes` begin with is valid, if it is
/// a header at all. There always is one: whether it is the true one another checksum must tell.
pub(super) fn of_batch(bytes: &[u8]) -> Option<u32> {
    let header = bytes.get(4..batch::HEADER_BYTES)?;
    let (checksum, covered) = header.split_first_chunk::<4>()?;
    Some(before(u32::from_le_bytes(*checksum), covered))
}

/// The checksum from which a CRC32C over `bytes` must begin to end as `checksum`.
///
/// Each bit that a CRC takes in can be taken out again: the polynomial's highest bit is set, so that the
/// highest bit of a state tells whether the polynomial was added to it.
fn before(checksum: u32, bytes: &[u8]) -> u32 {
    let mut state = !checksum;
    for byte in bytes.iter().rev() {
        for _ in 0..8 {
            state = match state >> 31 {
                0 => state << 1,
                _ => ((state ^ POLYNOMIAL) << 1) | 1,
            };
        }
        state ^= u32::from(*byte);
    }
    !state
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checksum_is_taken_back_to_where_it_began() {
        for seed in [0, 1, 0x1234_5678, u32::MAX] {
            for bytes in [&b""[..], b"x", b"forty bytes of a batch header, or so"] {
                assert_eq!(before(crc32c::crc32c_append(seed, bytes), bytes), seed);
            }
        }
    }
}
