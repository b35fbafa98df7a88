//! One record of the framed format: its header, its checksum, its place in a batch.

use super::seed;

/// Bytes before a record's own: its length with its kind, and its checksum.
pub(crate) const HEADER_BYTES: usize = 8;

/// The most bytes of a record's own that its header can say.
pub(crate) const LEN_MAX: usize = (1 << 30) - 1;

/// What a record is, in the two highest bits of its length. Zero is none of them, so that zeros are
/// never a record.
const KIND_DATA: u32 = 0b01 << 30;
const KIND_SKIPPED: u32 = 0b10 << 30;
const KIND_MASK: u32 = 0b11 << 30;

/// A record as it stands in a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Frame<'a> {
    /// What somebody appended.
    Data(&'a [u8]),
    /// A place that was claimed and never filled, of so many bytes: its producer panicked. It has a
    /// sequence like a record, and is none.
    Skipped(usize),
}

impl Frame<'_> {
    /// Bytes of the frame, header and all.
    pub(crate) fn len(&self) -> usize {
        HEADER_BYTES
            + match self {
                Frame::Data(bytes) => bytes.len(),
                Frame::Skipped(len) => *len,
            }
    }
}

/// Bytes of a record of `len` bytes with its header.
pub(crate) fn frame_bytes(len: usize) -> usize {
    HEADER_BYTES + len
}

/// Puts the header before the bytes of a record, which are in their place already: `frame` is both.
///
/// The checksum begins from that of the segment's identity, then covers the sequence, the length and
/// the bytes: a record that is found in another segment or at another place in the order is not valid.
pub(crate) fn seal(frame: &mut [u8], seed: u32, sequence: u64) {
    seal_as(KIND_DATA, frame, seed, sequence);
}

/// Makes a claimed place one that is passed over.
pub(crate) fn skip(frame: &mut [u8], seed: u32, sequence: u64) {
    seal_as(KIND_SKIPPED, frame, seed, sequence);
}

fn seal_as(kind: u32, frame: &mut [u8], seed: u32, sequence: u64) {
    let (header, bytes) = frame.split_at_mut(HEADER_BYTES);
    debug_assert!(bytes.len() <= LEN_MAX, "the length of a record was checked");
    let length = kind | bytes.len() as u32;
    header[..4].copy_from_slice(&length.to_le_bytes());
    let covered = if kind == KIND_DATA { &*bytes } else { &[] };
    header[4..].copy_from_slice(&checksum(seed, sequence, length, covered).to_le_bytes());
}

/// The record that `bytes` begin with, or `None` where they don't begin with a valid one.
pub(crate) fn parse(bytes: &[u8], seed: u32, sequence: u64) -> Option<Frame<'_>> {
    let (header, rest) = bytes.split_at_checked(HEADER_BYTES)?;
    let length = u32::from_le_bytes(header[..4].try_into().expect("4 bytes"));
    let found = u32::from_le_bytes(header[4..].try_into().expect("4 bytes"));
    let own = rest.get(..(length & !KIND_MASK) as usize)?;
    let (frame, covered) = match length & KIND_MASK {
        KIND_DATA => (Frame::Data(own), own),
        KIND_SKIPPED => (Frame::Skipped(own.len()), &[][..]),
        _ => return None,
    };
    (checksum(seed, sequence, length, covered) == found).then_some(frame)
}

/// The length that a record's header says, of its own bytes; `None` where it is no record's.
pub(crate) fn length(header: &[u8]) -> Option<usize> {
    let length = u32::from_le_bytes(*header.first_chunk()?);
    let is_record = matches!(length & KIND_MASK, KIND_DATA | KIND_SKIPPED);
    is_record.then_some((length & !KIND_MASK) as usize)
}

/// The checksum that the segment's identity and the record's sequence must have for `frame` to be valid.
pub(crate) fn place_checksum(frame: &[u8]) -> Option<u32> {
    let (header, own) = frame.split_at_checked(HEADER_BYTES)?;
    let (length, found) = header.split_first_chunk::<4>()?;
    let is_data = u32::from_le_bytes(*length) & KIND_MASK == KIND_DATA;
    let covered = if is_data { own } else { &[] };
    let found = u32::from_le_bytes(found.try_into().ok()?);
    Some(seed::before(seed::before(found, covered), length))
}

fn checksum(seed: u32, sequence: u64, length: u32, bytes: &[u8]) -> u32 {
    let mut place = [0; 12];
    place[..8].copy_from_slice(&sequence.to_le_bytes());
    place[8..].copy_from_slice(&length.to_le_bytes());
    crc32c::crc32c_append(crc32c::crc32c_append(seed, &place), bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn framed(bytes: &[u8], seed: u32, sequence: u64) -> Vec<u8> {
        let mut frame = [&[0; HEADER_BYTES], bytes].concat();
        seal(&mut frame, seed, sequence);
        frame
    }

    #[test]
    fn a_record_is_found_as_it_was_written() {
        for bytes in [&b""[..], b"x", b"hello", &[0; 1000]] {
            let mut frame = framed(bytes, 7, 42);
            frame.extend(b"what follows");
            assert_eq!(parse(&frame, 7, 42), Some(Frame::Data(bytes)));
        }
    }

    #[test]
    fn a_record_tells_the_checksum_of_its_place() {
        let place = crc32c::crc32c_append(7, &42u64.to_le_bytes());
        let mut frame = framed(b"hello", 7, 42);
        assert_eq!((length(&frame), place_checksum(&frame)), (Some(5), Some(place)));
        skip(&mut frame, 7, 42);
        assert_eq!((length(&frame), place_checksum(&frame)), (Some(5), Some(place)));
        assert_eq!(length(&[0; HEADER_BYTES]), None);
    }

    #[test]
    fn a_record_is_valid_at_its_place_only() {
        let frame = framed(b"hello", 7, 42);
        assert_eq!(parse(&frame, 8, 42), None);
        assert_eq!(parse(&frame, 7, 41), None);
        assert_eq!(parse(&frame[..frame.len() - 1], 7, 42), None);
    }

    #[test]
    fn zeros_are_no_record() {
        assert_eq!(parse(&[0; 64], 0, 0), None);
    }

    #[test]
    fn every_bit_of_a_record_is_covered() {
        let frame = framed(b"hello", 7, 42);
        for bit in 0..frame.len() * 8 {
            let mut flipped = frame.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(parse(&flipped, 7, 42), None, "bit {bit}");
        }
    }

    #[test]
    fn a_place_that_was_never_filled_is_passed_over() {
        let mut frame = framed(b"half a reco", 7, 42);
        skip(&mut frame, 7, 42);
        assert_eq!(parse(&frame, 7, 42), Some(Frame::Skipped(11)));
    }
}
