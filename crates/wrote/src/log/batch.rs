//! The header of a batch: the records that were written together, and how safe those before them were.

use super::segment::NUMBER_END;

/// Bytes of a batch's header.
pub(crate) const HEADER_BYTES: usize = 48;

/// Its first four bytes; as the length of a record they are not valid.
const MAGIC: [u8; 4] = *b"WB1\xF0";

/// The records were written after recovery had cut off the end of what came before: the batch that
/// stands before this one may claim to be longer.
const FLAG_AFTER_CUT: u32 = 1;
/// The log was closed: nothing was in flight, and all that came before was durable.
const FLAG_CLOSED: u32 = 2;
const FLAGS: u32 = FLAG_AFTER_CUT | FLAG_CLOSED;

/// What a batch says of itself.
///
/// It begins at a multiple of the segment's block, or right behind the segment's header, and is written
/// by one operation of the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BatchHeader {
    /// Bytes of the batch, this header and all records, without what fills its last block.
    pub bytes: u32,
    /// How many records it has.
    pub count: u32,
    /// The sequence of its first record; where it has none, that of the next.
    pub first_sequence: u64,
    /// All records before this sequence were on stable storage when the batch was written. What of
    /// them can't be read any more was lost by the disk, not by a crash.
    pub durable_sequence: u64,
    /// When it was written, in nanoseconds since 1970.
    pub written_at_ns: u64,
    /// It follows a cut that recovery made.
    pub after_cut: bool,
    /// It is the last that the log wrote before it was closed.
    pub closed: bool,
}

impl BatchHeader {
    /// Writes the header, for a segment whose identity has the checksum `seed`, and tells its checksum,
    /// by which the next segment names it.
    pub(crate) fn encode(&self, to: &mut [u8], seed: u32) -> u32 {
        let mut flags = 0;
        flags |= if self.after_cut { FLAG_AFTER_CUT } else { 0 };
        flags |= if self.closed { FLAG_CLOSED } else { 0 };
        let header = &mut to[..HEADER_BYTES];
        header.fill(0);
        header[..4].copy_from_slice(&MAGIC);
        header[8..12].copy_from_slice(&self.bytes.to_le_bytes());
        header[12..16].copy_from_slice(&self.count.to_le_bytes());
        header[16..24].copy_from_slice(&self.first_sequence.to_le_bytes());
        header[24..32].copy_from_slice(&self.durable_sequence.to_le_bytes());
        header[32..40].copy_from_slice(&self.written_at_ns.to_le_bytes());
        header[40..44].copy_from_slice(&flags.to_le_bytes());
        let checksum = crc32c::crc32c_append(seed, &header[8..]);
        header[4..8].copy_from_slice(&checksum.to_le_bytes());
        checksum
    }

    /// The header that `bytes` begin with, and its checksum; `None` where there is no valid one.
    pub(crate) fn decode(bytes: &[u8], seed: u32) -> Option<(BatchHeader, u32)> {
        let header = bytes.get(..HEADER_BYTES)?;
        let word = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().expect("4 bytes"));
        let long = |at: usize| u64::from_le_bytes(header[at..at + 8].try_into().expect("8 bytes"));
        let checksum = crc32c::crc32c_append(seed, &header[8..]);
        let flags = word(40);
        let valid = header[..4] == MAGIC
            && word(4) == checksum
            && flags & !FLAGS == 0
            && long(16) < NUMBER_END;
        let batch = BatchHeader {
            bytes: word(8),
            count: word(12),
            first_sequence: long(16),
            durable_sequence: long(24),
            written_at_ns: long(32),
            after_cut: flags & FLAG_AFTER_CUT != 0,
            closed: flags & FLAG_CLOSED != 0,
        };
        (valid && batch.bytes as usize >= HEADER_BYTES).then_some((batch, checksum))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: BatchHeader = BatchHeader {
        bytes: 300,
        count: 3,
        first_sequence: 1000,
        durable_sequence: 990,
        written_at_ns: 1_700_000_000_000_000_000,
        after_cut: true,
        closed: false,
    };

    #[test]
    fn a_header_is_found_as_it_was_written() {
        for header in [HEADER, BatchHeader { after_cut: false, closed: true, ..HEADER }] {
            let mut bytes = [0xff; HEADER_BYTES];
            let checksum = header.encode(&mut bytes, 5);
            assert_eq!(BatchHeader::decode(&bytes, 5), Some((header, checksum)));
        }
    }

    #[test]
    fn every_bit_of_a_header_is_covered() {
        let mut bytes = [0; HEADER_BYTES];
        HEADER.encode(&mut bytes, 5);
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(BatchHeader::decode(&flipped, 5), None, "bit {bit}");
        }
        assert_eq!(BatchHeader::decode(&bytes, 6), None);
        assert_eq!(BatchHeader::decode(&bytes[..HEADER_BYTES - 1], 5), None);
    }

    #[test]
    fn a_batch_is_no_record() {
        let mut bytes = [0; 4096];
        HEADER.encode(&mut bytes, 5);
        assert_eq!(super::super::record::parse(&bytes, 5, 1000), None);
    }
}
