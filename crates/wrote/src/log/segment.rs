//! Segments: the files that a log consists of, their names, and the header of a framed one.

use super::Format;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Bytes of a segment's header. Its first batch begins right behind it.
pub(crate) const HEADER_BYTES: usize = 64;

/// Numbers of segments and sequences are below this: so nothing overflows that is computed from what a file
/// says, and the flusher has numbers left to call other operations by.
pub(crate) const NUMBER_END: u64 = 1 << 61;

/// What a framed segment begins with.
const MAGIC: [u8; 8] = *b"wrotelog";
/// The version of the format that this code writes, and the only one that it reads.
pub(crate) const VERSION: u32 = 1;

/// What a framed segment says of itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SegmentHeader {
    /// Which log it belongs to: a number by chance, the same in all its segments.
    pub log_id: u64,
    /// Its number in the log, which its name says too; the first is 1.
    pub segment_id: u64,
    /// The sequence of its first record.
    pub first_sequence: u64,
    /// Bytes of the segment before it up to the end of its last batch; 0 where there was none.
    pub previous_bytes: u64,
    /// The checksum in the header of that last batch.
    pub previous_checksum: u32,
    /// Batches begin at multiples of this many bytes.
    pub block_bytes: u32,
    /// When it was begun, in nanoseconds since 1970.
    pub created_at_ns: u64,
}

/// Why a file is no segment that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotASegment {
    /// It does not begin as one, or its header is damaged.
    Damaged,
    /// A version that this code does not know.
    Version(u32),
}

impl SegmentHeader {
    /// The checksum of the segment's identity, from which those of its batches and records begin.
    pub(crate) fn seed(&self) -> u32 {
        seed(self.log_id, self.segment_id)
    }

    /// Writes the header.
    pub(crate) fn encode(&self, to: &mut [u8]) {
        let header = &mut to[..HEADER_BYTES];
        header[..8].copy_from_slice(&MAGIC);
        header[8..12].copy_from_slice(&VERSION.to_le_bytes());
        header[16..24].copy_from_slice(&self.log_id.to_le_bytes());
        header[24..32].copy_from_slice(&self.segment_id.to_le_bytes());
        header[32..40].copy_from_slice(&self.first_sequence.to_le_bytes());
        header[40..48].copy_from_slice(&self.previous_bytes.to_le_bytes());
        header[48..52].copy_from_slice(&self.previous_checksum.to_le_bytes());
        header[52..56].copy_from_slice(&self.block_bytes.to_le_bytes());
        header[56..64].copy_from_slice(&self.created_at_ns.to_le_bytes());
        let checksum = checksum(header);
        header[12..16].copy_from_slice(&checksum.to_le_bytes());
    }

    /// The header that `bytes` begin with.
    pub(crate) fn decode(bytes: &[u8]) -> Result<SegmentHeader, NotASegment> {
        let header = bytes.get(..HEADER_BYTES).ok_or(NotASegment::Damaged)?;
        let word = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().expect("4 bytes"));
        let long = |at: usize| u64::from_le_bytes(header[at..at + 8].try_into().expect("8 bytes"));
        if header[..8] != MAGIC || word(12) != checksum(header) {
            return Err(NotASegment::Damaged);
        }
        if word(8) != VERSION {
            return Err(NotASegment::Version(word(8)));
        }
        let header = SegmentHeader {
            log_id: long(16),
            segment_id: long(24),
            first_sequence: long(32),
            previous_bytes: long(40),
            previous_checksum: word(48),
            block_bytes: word(52),
            created_at_ns: long(56),
        };
        let blocks = header.block_bytes.is_power_of_two() && header.block_bytes >= 512;
        let numbers = header.segment_id < NUMBER_END && header.first_sequence < NUMBER_END;
        if blocks && numbers { Ok(header) } else { Err(NotASegment::Damaged) }
    }
}

fn checksum(header: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&header[..12]), &header[16..HEADER_BYTES])
}

/// The checksum of a segment's identity.
pub(crate) fn seed(log_id: u64, segment_id: u64) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&log_id.to_le_bytes()), &segment_id.to_le_bytes())
}

/// The name of the segment with this number: a framed one's own number, or the sequence of the first
/// line. Twenty digits, so that names sort as numbers do.
pub(crate) fn path(folder: &Path, format: Format, number: u64) -> PathBuf {
    folder.join(format!("{number:020}.{}", format.extension()))
}

/// The number that a name of [`path`]'s says; `None` for any other name.
pub(crate) fn number(path: &Path, format: Format) -> Option<u64> {
    let is_format = path.extension() == Some(OsStr::new(format.extension()));
    let digits = path.file_stem()?.to_str().filter(|_| is_format)?;
    let only_digits = digits.len() == 20 && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|&number| only_digits && number < NUMBER_END)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: SegmentHeader = SegmentHeader {
        log_id: 0x1234_5678_9abc_def0,
        segment_id: 3,
        first_sequence: 77,
        previous_bytes: 65_000,
        previous_checksum: 0xdead_beef,
        block_bytes: 4096,
        created_at_ns: 1_700_000_000_000_000_000,
    };

    #[test]
    fn a_header_is_found_as_it_was_written() {
        let mut bytes = [0xff; HEADER_BYTES];
        HEADER.encode(&mut bytes);
        assert_eq!(SegmentHeader::decode(&bytes), Ok(HEADER));
    }

    #[test]
    fn every_bit_of_a_header_is_covered() {
        let mut bytes = [0; HEADER_BYTES];
        HEADER.encode(&mut bytes);
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(SegmentHeader::decode(&flipped), Err(NotASegment::Damaged), "bit {bit}");
        }
    }

    #[test]
    fn a_version_of_later_is_named() {
        let mut bytes = [0; HEADER_BYTES];
        HEADER.encode(&mut bytes);
        bytes[8..12].copy_from_slice(&2u32.to_le_bytes());
        let checksum = checksum(&bytes);
        bytes[12..16].copy_from_slice(&checksum.to_le_bytes());
        assert_eq!(SegmentHeader::decode(&bytes), Err(NotASegment::Version(2)));
    }

    #[test]
    fn names_say_numbers_and_sort_as_they_do() {
        let folder = Path::new("/logs/events");
        for format in [Format::Framed, Format::Lines] {
            for number_of in [0, 1, 10, NUMBER_END - 1] {
                let path = path(folder, format, number_of);
                assert_eq!(number(&path, format), Some(number_of));
            }
            assert!(path(folder, format, 9) < path(folder, format, 10));
        }
        for other in [
            "lock",
            "1.segment",
            "18446744073709551615.segment",
            "+0000000000000000001.segment",
            "next.segment",
            "segment",
        ] {
            assert_eq!(number(Path::new(other), Format::Framed), None, "{other}");
        }
    }
}
