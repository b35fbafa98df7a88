//! The header of a batch. It describes the records of one write, and states which earlier records
//! were durable.

use super::record::{u32_at, u64_at};
use super::segment::NUMBER_END;

pub(crate) const HEADER_BYTES: usize = 48;

/// The first four bytes of a batch header, which are not valid as the length of a record.
pub(crate) const MAGIC: [u8; 4] = *b"WB1\xF0";

/// The flag of a batch before which recovery cut off the end of the log. The header of the previous
/// batch may state a length beyond the cut.
const FLAG_AFTER_CUT: u32 = 1;
/// The flag of the batch that closed the log: no write was in flight, and all earlier records were
/// durable.
const FLAG_CLOSED: u32 = 2;
/// The flag of a batch that is valid only if every record in it is valid.
const FLAG_WHOLE: u32 = 4;
const FLAGS: u32 = FLAG_AFTER_CUT | FLAG_CLOSED | FLAG_WHOLE;

/// The header of a batch.
///
/// A batch starts at a multiple of the segment's block size, or directly after the segment header.
/// It is written by a single operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BatchHeader {
    /// The length of this header and all records in bytes, without padding.
    pub bytes: u32,
    pub count: u32,
    /// The sequence of the first record; for a batch without records, the log's next sequence.
    pub first_sequence: u64,
    /// The sequence before which all records were on stable storage when the batch was written. If
    /// one of those records can't be read now, the disk has lost it: a crash can't be the cause.
    pub durable_sequence: u64,
    /// The time of the write, in nanoseconds since 1970; 0 if a repair wrote the batch.
    pub written_at_ns: u64,
    /// Whether recovery cut off the end of the log before this batch.
    pub after_cut: bool,
    /// Whether this batch closed the log.
    pub closed: bool,
    /// Whether the batch is valid only if every record in it is valid, because some of them were
    /// appended atomically.
    pub whole: bool,
    /// The length of the segment's longest batch in bytes, which the segment's first batch may
    /// state; 0 if not stated.
    pub longest_bytes: u32,
}

impl BatchHeader {
    /// Writes the header to `to`, and returns its checksum, which the next segment states to
    /// identify this batch. `seed` is the checksum of the segment's identity.
    pub(crate) fn encode(&self, to: &mut [u8], seed: u32) -> u32 {
        let flag = |is_set, flag| if is_set { flag } else { 0 };
        let flags = flag(self.after_cut, FLAG_AFTER_CUT)
            | flag(self.closed, FLAG_CLOSED)
            | flag(self.whole, FLAG_WHOLE);
        let header = &mut to[..HEADER_BYTES];
        header.fill(0);
        header[..4].copy_from_slice(&MAGIC);
        header[8..12].copy_from_slice(&self.bytes.to_le_bytes());
        header[12..16].copy_from_slice(&self.count.to_le_bytes());
        header[16..24].copy_from_slice(&self.first_sequence.to_le_bytes());
        header[24..32].copy_from_slice(&self.durable_sequence.to_le_bytes());
        header[32..40].copy_from_slice(&self.written_at_ns.to_le_bytes());
        header[40..44].copy_from_slice(&flags.to_le_bytes());
        header[44..48].copy_from_slice(&self.longest_bytes.to_le_bytes());
        let checksum = crc32c::crc32c_append(seed, &header[8..]);
        header[4..8].copy_from_slice(&checksum.to_le_bytes());
        checksum
    }

    pub(crate) fn is_by_repair(&self) -> bool {
        self.written_at_ns == 0
    }

    /// Decodes the header at the start of `bytes`, and returns it with its checksum; `None` if it
    /// is invalid.
    pub(crate) fn decode(bytes: &[u8], seed: u32) -> Option<(BatchHeader, u32)> {
        let header = bytes.get(..HEADER_BYTES).filter(|header| header[..4] == MAGIC)?;
        let checksum = crc32c::crc32c_append(seed, &header[8..]);
        let flags = u32_at(header, 40);
        let valid =
            u32_at(header, 4) == checksum && flags & !FLAGS == 0 && u64_at(header, 16) < NUMBER_END;
        let batch = BatchHeader {
            bytes: u32_at(header, 8),
            count: u32_at(header, 12),
            first_sequence: u64_at(header, 16),
            durable_sequence: u64_at(header, 24),
            written_at_ns: u64_at(header, 32),
            after_cut: flags & FLAG_AFTER_CUT != 0,
            closed: flags & FLAG_CLOSED != 0,
            whole: flags & FLAG_WHOLE != 0,
            longest_bytes: u32_at(header, 44),
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
        whole: false,
        longest_bytes: 1 << 20,
    };

    #[test]
    fn a_header_is_found_as_it_was_written() {
        let closing = BatchHeader { after_cut: false, closed: true, ..HEADER };
        for header in [HEADER, closing, BatchHeader { whole: true, ..HEADER }] {
            let mut bytes = [0xff; HEADER_BYTES];
            let checksum = header.encode(&mut bytes, 5);
            assert_eq!(BatchHeader::decode(&bytes, 5), Some((header, checksum)));
        }
    }

    #[test]
    fn a_batch_is_no_record() {
        let mut bytes = [0; 4096];
        HEADER.encode(&mut bytes, 5);
        assert_eq!(crate::log::record::parse(&bytes, 5, 1000), None);
    }
}
