//! Runs checksums backwards to find the identity of a segment whose header is lost.

use super::super::batch;
use super::super::record::{self, u32_at};

/// The polynomial of CRC32C (Castagnoli), reflected: RFC 3720, appendix B.4.
const POLYNOMIAL: u32 = 0x82f6_3b78;

/// Returns the seed that would make the batch header at the start of `bytes` valid; `None` if
/// `bytes` are too short. Any bytes have one: only a second checksum proves that it is right.
pub(super) fn of_batch(bytes: &[u8]) -> Option<u32> {
    let header = bytes.get(4..batch::HEADER_BYTES)?;
    Some(before(u32_at(header, 0), &header[4..]))
}

/// Returns the seed (checksum of the segment's identity and the record's sequence) that would make
/// `frame` valid.
pub(super) fn of_place(frame: &[u8]) -> Option<u32> {
    let (header, own) = frame.split_at_checked(record::HEADER_BYTES)?;
    let covered = record::covered(u32_at(header, 0), own);
    Some(before(before(u32_at(header, 4), covered), &header[..4]))
}

/// The state of a CRC32C eight bits earlier, by its highest byte, as far as that byte determines
/// it.
///
/// Each bit that enters a CRC can be removed again. The polynomial's highest bit is set, so the
/// highest bit of a state shows whether the polynomial was added.
static TAKEN_OUT: [u32; 256] = {
    let mut taken_out = [0; 256];
    let mut byte = 0;
    while byte < taken_out.len() {
        let mut state = (byte as u32) << 24;
        let mut bit = 0;
        while bit < 8 {
            let was_added = state >> 31 == 1;
            state = if was_added { ((state ^ POLYNOMIAL) << 1) | 1 } else { state << 1 };
            bit += 1;
        }
        taken_out[byte] = state;
        byte += 1;
    }
    taken_out
};

/// Returns the initial value of a CRC32C over `bytes` that ends as `checksum`.
fn before(checksum: u32, bytes: &[u8]) -> u32 {
    let take_out =
        |state: u32, byte: &u8| (state << 8) ^ TAKEN_OUT[(state >> 24) as usize] ^ u32::from(*byte);
    !bytes.iter().rev().fold(!checksum, take_out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_tells_the_checksum_of_its_place() {
        let place = crc32c::crc32c_append(7, &42u64.to_le_bytes());
        let mut frame = [&[0; record::HEADER_BYTES], &b"hello"[..]].concat();
        for write in [record::seal, record::skip] {
            write(&mut frame, 7, 42);
            assert_eq!(of_place(&frame), Some(place));
            assert_eq!((record::stated_bytes(&frame), record::is_kind(&frame)), (Some(13), true));
        }
        assert!(!record::is_kind(&[0; record::HEADER_BYTES]));
    }

    #[test]
    fn a_checksum_is_taken_back_to_where_it_began() {
        for seed in [0, 1, 0x1234_5678, u32::MAX] {
            for bytes in [&b""[..], b"x", b"forty bytes of a batch header, or so"] {
                assert_eq!(before(crc32c::crc32c_append(seed, bytes), bytes), seed);
            }
        }
    }
}
