//! The format of one record: its header, its checksum, and its position in a batch.

/// The length of a record header in bytes: the record's length and kind, then the checksum.
pub(crate) const HEADER_BYTES: usize = 8;

/// The maximum length of a record that a header can state.
pub(crate) const LEN_MAX: usize = (1 << 30) - 1;

/// The kind of a record, in the two highest bits of its length. It is never zero, so that zeros are
/// not mistaken for a record.
const KIND_DATA: u32 = 0b01 << 30;
const KIND_SKIPPED: u32 = 0b10 << 30;
const KIND_MASK: u32 = 0b11 << 30;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Frame<'a> {
    Data(&'a [u8]),
    /// A claimed place, with its length in bytes, whose producer panicked before filling it. It has
    /// a sequence, but is not a record.
    Skipped(usize),
}

impl Frame<'_> {
    /// Returns the length of the frame in bytes, including its header.
    pub(crate) fn len(&self) -> usize {
        match self {
            Frame::Data(bytes) => frame_bytes(bytes.len()),
            Frame::Skipped(len) => frame_bytes(*len),
        }
    }
}

/// Returns the length in bytes of a frame with a record of `len` bytes.
pub(crate) fn frame_bytes(len: usize) -> usize {
    // If the sum saturates, the frame is refused later, because it fits into no buffer.
    len.saturating_add(HEADER_BYTES)
}

/// Writes the header of a record into `frame`, which already contains the record's bytes after the
/// space for the header.
///
/// The checksum continues the checksum of the segment's identity, and covers the sequence, the
/// length and the bytes. So a record is invalid in another segment or at another sequence.
pub(crate) fn seal(frame: &mut [u8], seed: u32, sequence: u64) {
    seal_as(KIND_DATA, frame, seed, sequence);
}

/// Writes a header that marks a claimed place as empty.
pub(crate) fn skip(frame: &mut [u8], seed: u32, sequence: u64) {
    seal_as(KIND_SKIPPED, frame, seed, sequence);
}

/// Appends a frame to `to`, with a header for this segment and sequence.
pub(crate) fn copy(frame: Frame, to: &mut Vec<u8>, seed: u32, sequence: u64) {
    let start = to.len();
    to.resize(start + frame.len(), 0);
    let to = &mut to[start..];
    match frame {
        Frame::Data(own) => {
            to[HEADER_BYTES..].copy_from_slice(own);
            seal(to, seed, sequence);
        }
        Frame::Skipped(_) => skip(to, seed, sequence),
    }
}

fn seal_as(kind: u32, frame: &mut [u8], seed: u32, sequence: u64) {
    let (header, bytes) = frame.split_at_mut(HEADER_BYTES);
    debug_assert!(bytes.len() <= LEN_MAX, "the length of a record was checked");
    let length = kind | bytes.len() as u32;
    header[..4].copy_from_slice(&length.to_le_bytes());
    let covered = covered(length, bytes);
    header[4..].copy_from_slice(&checksum(seed, sequence, length, covered).to_le_bytes());
}

/// Returns the frame at the beginning of `bytes`; `None` if it is not valid.
pub(crate) fn parse(bytes: &[u8], seed: u32, sequence: u64) -> Option<Frame<'_>> {
    let (header, rest) = bytes.split_at_checked(HEADER_BYTES)?;
    let length = u32_at(header, 0);
    let own = rest.get(..(length & !KIND_MASK) as usize)?;
    let frame = match length & KIND_MASK {
        KIND_DATA => Frame::Data(own),
        KIND_SKIPPED => Frame::Skipped(own.len()),
        _ => return None,
    };
    let checksum = checksum(seed, sequence, length, covered(length, own));
    (checksum == u32_at(header, 4)).then_some(frame)
}

/// Returns the length in bytes of the frame that starts with `header`, whatever its kind; `None` if
/// the header is incomplete.
pub(crate) fn stated_bytes(header: &[u8]) -> Option<usize> {
    let length = u32::from_le_bytes(*header.first_chunk()?);
    Some(frame_bytes((length & !KIND_MASK) as usize))
}

pub(crate) fn is_kind(header: &[u8]) -> bool {
    matches!(u32_at(header, 0) & KIND_MASK, KIND_DATA | KIND_SKIPPED)
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"))
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"))
}

/// Returns the part of the record's bytes that the checksum covers: all of them, or none for an
/// empty place.
pub(crate) fn covered(length: u32, own: &[u8]) -> &[u8] {
    if length & KIND_MASK == KIND_DATA { own } else { &[] }
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
    fn a_record_is_valid_at_its_place_only() {
        let frame = framed(b"hello", 7, 42);
        assert_eq!(parse(&frame, 8, 42), None);
        assert_eq!(parse(&frame, 7, 41), None);
        assert_eq!(parse(&frame[..frame.len() - 1], 7, 42), None);
    }

    #[test]
    fn a_place_that_was_never_filled_is_passed_over() {
        let mut frame = framed(b"half a reco", 7, 42);
        skip(&mut frame, 7, 42);
        assert_eq!(parse(&frame, 7, 42), Some(Frame::Skipped(11)));
    }
}
