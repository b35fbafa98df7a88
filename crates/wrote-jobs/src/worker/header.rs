//! The header of a block of a job with `verify=crc32c`. Readers use the header to recognise what
//! was written to a file.
//!
//! A block of a job with several block sizes has a header for each part: see [`unit_bytes`]. A
//! header has 40 bytes, in little-endian order:
//!
//! | bytes | what |
//! |---|---|
//! | 0..8 | `wroteblk` |
//! | 8..16 | the offset of the block in its file |
//! | 16..24 | the seed of the job that wrote the block |
//! | 24..32 | the number of the operation that wrote it within the job, from 0 |
//! | 32..36 | the length of the block |
//! | 36..40 | the CRC32C of the block without these four bytes |

use crate::spec::BlockSizes;
use std::ops::Range;

/// The error for a block without a header.
pub const NO_HEADER: &str = "no header: this block was not written by a job with verify";

const MAGIC: &[u8; 8] = b"wroteblk";

pub const HEADER_BYTES: usize = 40;
/// The position of the last field, the checksum.
const SUM: Range<usize> = 36..HEADER_BYTES;

/// Returns the distance between headers: the greatest common divisor of a job's block sizes.
/// Headers are then at the same offsets whatever the sizes of the blocks, as in fio. `None` if the
/// divisor is too small for a header; each block then has a single header.
pub fn unit_bytes(sizes: &BlockSizes) -> Option<usize> {
    Some(sizes.unit_bytes() as usize).filter(|unit| *unit >= HEADER_BYTES)
}

/// The header of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    pub offset: u64,
    pub seed: u64,
    pub sequence: u64,
    pub len: u32,
}

impl Header {
    /// Writes a header into each part of a block. The block's length must be a multiple of the
    /// length of a part.
    pub fn stamp_parts(self, unit_bytes: Option<usize>, block: &mut [u8]) {
        for (header, part) in self.parts(unit_bytes) {
            header.stamp(&mut block[part]);
        }
    }

    /// Checks that each part of a block is exactly as `self` describes it.
    pub fn check_parts(self, unit_bytes: Option<usize>, block: &[u8]) -> Result<(), String> {
        self.parts(unit_bytes)
            .try_for_each(|(header, part)| header.check(block.get(part).unwrap_or_default()))
    }

    /// Returns the parts of a block with this header, each with its own header.
    fn parts(self, unit_bytes: Option<usize>) -> impl Iterator<Item = (Header, Range<usize>)> {
        let (len, unit) = (self.len as usize, unit_bytes.unwrap_or(self.len as usize));
        (0..len).step_by(unit.max(1)).map(move |start| {
            let part = start..(start + unit).min(len);
            (Header { offset: self.offset + start as u64, len: part.len() as u32, ..self }, part)
        })
    }

    /// Returns the header at the start of a block; `None` if there is none.
    pub fn of(block: &[u8]) -> Option<Header> {
        if block.len() < HEADER_BYTES || &block[..8] != MAGIC {
            return None;
        }
        let number =
            |at: usize| u64::from_le_bytes(block[at..at + 8].try_into().expect("eight bytes"));
        let len = u32::from_le_bytes(block[32..36].try_into().expect("four bytes"));
        Some(Header { offset: number(8), seed: number(16), sequence: number(24), len })
    }

    /// Writes the header to the start of a block that has room for it.
    fn stamp(&self, block: &mut [u8]) {
        block[..8].copy_from_slice(MAGIC);
        block[8..16].copy_from_slice(&self.offset.to_le_bytes());
        block[16..24].copy_from_slice(&self.seed.to_le_bytes());
        block[24..32].copy_from_slice(&self.sequence.to_le_bytes());
        block[32..36].copy_from_slice(&self.len.to_le_bytes());
        let sum = sum(block);
        block[SUM].copy_from_slice(&sum.to_le_bytes());
    }

    /// Checks that a block is exactly as `self` describes it.
    fn check(&self, block: &[u8]) -> Result<(), String> {
        let found = Header::found(block, self.offset)?;
        if found.seed != self.seed {
            return Err("the block is of another job".into());
        }
        if found.sequence != self.sequence {
            return Err(format!(
                "the block is of operation {}, and operation {} wrote it last",
                found.sequence, self.sequence
            ));
        }
        Ok(())
    }

    /// Checks a block when only its offset is known, and returns its header.
    pub fn found(block: &[u8], offset: u64) -> Result<Header, String> {
        let Some(header) = Header::of(block) else { return Err(NO_HEADER.into()) };
        if header.len as usize != block.len() {
            let (written, read) = (header.len, block.len());
            return Err(format!("the block was written with {written} bytes and read with {read}"));
        }
        let written = u32::from_le_bytes(block[SUM].try_into().expect("four bytes"));
        let read = sum(block);
        if written != read {
            return Err(format!("CRC32C {written:08x} was written, {read:08x} was read"));
        }
        if header.offset != offset {
            return Err(format!("the block was written at byte {}", header.offset));
        }
        Ok(header)
    }
}

/// Returns the CRC32C (RFC 3720, B.4) of the block without its checksum field.
fn sum(block: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&block[..SUM.start]), &block[SUM.end..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::BlockShare;

    const HEADER: Header = Header { offset: 8192, seed: 7, sequence: 3, len: 4096 };

    fn block() -> Vec<u8> {
        let mut block: Vec<u8> = (0..4096_u32).map(|byte| byte as u8).collect();
        HEADER.stamp(&mut block);
        block
    }

    #[test]
    fn a_block_that_is_as_it_was_written_is_good() {
        assert_eq!(HEADER.check(&block()), Ok(()));
        assert_eq!(Header::found(&block(), 8192), Ok(HEADER));
    }

    #[test]
    fn every_flipped_bit_is_found() {
        for byte in 0..4096 {
            let mut block = block();
            block[byte] ^= 1 << (byte % 8);
            assert!(HEADER.check(&block).is_err(), "byte {byte}");
            assert!(Header::found(&block, 8192).is_err(), "byte {byte}");
        }
    }

    #[test]
    fn a_block_of_another_place_job_time_or_length_is_told_apart() {
        let words = |expected: Header| expected.check(&block()).unwrap_err();
        assert_eq!(words(Header { offset: 0, ..HEADER }), "the block was written at byte 8192");
        assert_eq!(words(Header { seed: 8, ..HEADER }), "the block is of another job");
        assert_eq!(
            words(Header { sequence: 9, ..HEADER }),
            "the block is of operation 3, and operation 9 wrote it last"
        );
        let short = HEADER.check(&block()[..512]).unwrap_err();
        assert_eq!(short, "the block was written with 4096 bytes and read with 512");
        assert!(HEADER.check(&[0; 4096]).unwrap_err().contains("no header"));
        assert!(HEADER.check(&[]).unwrap_err().contains("no header"));
    }

    #[test]
    fn a_block_of_several_parts_has_a_header_in_each() {
        let sizes = |sizes: &[u64]| {
            BlockSizes::Split(
                sizes.iter().map(|&bytes| BlockShare { bytes, percent: 50 }).collect(),
            )
        };
        assert_eq!(unit_bytes(&sizes(&[8192])), Some(8192));
        assert_eq!(unit_bytes(&sizes(&[8192, 12288])), Some(4096));
        assert_eq!(unit_bytes(&sizes(&[4096, 4100])), None);
        let mut block = block();
        HEADER.stamp_parts(Some(1024), &mut block);
        assert_eq!(HEADER.check_parts(Some(1024), &block), Ok(()));
        let third = Header { offset: 8192 + 2048, len: 1024, ..HEADER };
        assert_eq!(Header::of(&block[2048..]), Some(third));
        block[2048 + 100] ^= 1;
        assert!(HEADER.check_parts(Some(1024), &block).unwrap_err().starts_with("CRC32C"));
        assert!(HEADER.check_parts(Some(1024), &block[..2048]).is_err());
    }
}
