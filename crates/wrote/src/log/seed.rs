//! What a checksum began from: so the identity of a segment whose header is lost is found from a batch.

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

/// What a state of a CRC32C was eight bits before, by its highest byte, as far as that byte tells.
///
/// Each bit that a CRC takes in can be taken out again: the polynomial's highest bit is set, so that the
/// highest bit of a state tells whether the polynomial was added to it.
static TAKEN_OUT: [u32; 256] = {
    let mut taken_out = [0; 256];
    let mut byte = 0;
    while byte < taken_out.len() {
        let mut state = (byte as u32) << 24;
        let mut bit = 0;
        while bit < 8 {
            state = match state >> 31 {
                0 => state << 1,
                _ => ((state ^ POLYNOMIAL) << 1) | 1,
            };
            bit += 1;
        }
        taken_out[byte] = state;
        byte += 1;
    }
    taken_out
};

/// The checksum from which a CRC32C over `bytes` must begin to end as `checksum`.
pub(super) fn before(checksum: u32, bytes: &[u8]) -> u32 {
    let take_out =
        |state: u32, byte: &u8| (state << 8) ^ TAKEN_OUT[(state >> 24) as usize] ^ u32::from(*byte);
    !bytes.iter().rev().fold(!checksum, take_out)
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
