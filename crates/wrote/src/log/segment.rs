//! Segments, the files of a log: their names, their headers, and where batches start in them.

use super::record::{u32_at, u64_at};
use crate::engine::folder_of;
use crate::{Error, FileId};
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The length of a segment header in bytes. The first batch begins right after it.
pub(crate) const HEADER_BYTES: usize = 64;

/// The block size. Batches start at its multiples. No disk writes a larger unit, so a block that
/// holds acknowledged records is never rewritten (W3).
pub(super) const BLOCK_BYTES: u64 = 4096;

/// The exclusive limit of segment numbers and sequences. It ensures that arithmetic on numbers from
/// a file can't overflow, and leaves the flusher numbers for other operations.
pub(crate) const NUMBER_END: u64 = 1 << 61;

/// The file extension of a segment.
pub(crate) const EXTENSION: &str = "segment";

const MAGIC: [u8; 8] = *b"wrotelog";
/// The version of the log format.
pub(crate) const VERSION: u8 = 1;
/// The bit below the version that marks a file reused from another segment.
const IS_RECYCLED: u8 = 1;
const CLOCK_BACK: u8 = 1 << 7;

/// The mark after the zeros that replace the header in a file to be reused.
const RECYCLED: [u8; 8] = *b"recycled";

/// The value stored in place of the distance if the cut left no earlier segment to continue.
const BACK_TO_NOTHING: u32 = (1 << 24) - 1;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SegmentHeader {
    /// Whether the file was reused, and so may contain batches of another segment after its own.
    pub is_recycled: bool,
    /// Whether the writer's clock stepped back: the segment was begun at an earlier time than the
    /// last time in the previous segment. Within a segment, times never go back.
    pub clock_back: bool,
    /// If a cut started the segment, the number of the segment that it continues; 0 if it continues
    /// none. The segments between the two are no longer part of the log.
    pub cut_behind: Option<u64>,
    /// The log's random number, which is the same in all of its segments.
    pub log_id: u64,
    /// The number of the segment in the log, which is also its name. The first segment is number 1.
    pub segment_id: u64,
    pub first_sequence: u64,
    /// The length in bytes of the previous segment up to the end of its last batch; 0 in the first
    /// segment.
    pub previous_bytes: u64,
    pub previous_checksum: u32,
    /// The block size in bytes. Batches begin at its multiples.
    pub block_bytes: u32,
    /// The time when the segment was begun, in nanoseconds since 1970.
    pub created_at_ns: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotASegment {
    /// The file does not start as a segment, or its header is damaged.
    Damaged,
    /// The header has a format version that this code does not know.
    Version(u8),
}

impl SegmentHeader {
    /// Returns the checksum of the segment's identity. The checksums of the segment's batches and
    /// records continue it.
    pub(crate) fn seed(&self) -> u32 {
        seed(self.log_id, self.segment_id)
    }

    /// Returns the number of the previous segment in the log; 0 if there is none.
    pub(crate) fn previous(&self) -> u64 {
        self.cut_behind.unwrap_or(self.segment_id - 1)
    }

    /// Returns whether the header of segment `segment_id` can state that it continues segment
    /// `previous`.
    pub(crate) fn can_continue(segment_id: u64, previous: u64) -> bool {
        previous == 0 || segment_id - previous < u64::from(BACK_TO_NOTHING)
    }

    pub(crate) fn encode(&self, to: &mut [u8]) {
        let header = &mut to[..HEADER_BYTES];
        let back = match self.cut_behind {
            None => 0,
            Some(0) => BACK_TO_NOTHING,
            Some(previous) => (self.segment_id - previous) as u32,
        };
        let flag = |is_set, flag| if is_set { flag } else { 0 };
        let kind = flag(self.is_recycled, IS_RECYCLED) | flag(self.clock_back, CLOCK_BACK);
        let kind = VERSION << 1 | kind;
        header[..8].copy_from_slice(&MAGIC);
        header[8..12].copy_from_slice(&(back << 8 | u32::from(kind)).to_le_bytes());
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

    pub(crate) fn decode(bytes: &[u8]) -> Result<SegmentHeader, NotASegment> {
        let header = bytes.get(..HEADER_BYTES).ok_or(NotASegment::Damaged)?;
        if header[..8] != MAGIC || u32_at(header, 12) != checksum(header) {
            return Err(NotASegment::Damaged);
        }
        let (version, back) = ((header[8] & !CLOCK_BACK) >> 1, u32_at(header, 8) >> 8);
        if version != VERSION {
            return Err(NotASegment::Version(version));
        }
        let segment_id = u64_at(header, 24);
        let cut_behind = match back {
            0 => Some(None),
            BACK_TO_NOTHING => Some(Some(0)),
            back => segment_id.checked_sub(u64::from(back)).filter(|&of| of > 0).map(Some),
        };
        let cut_behind = cut_behind.ok_or(NotASegment::Damaged)?;
        let header = SegmentHeader {
            is_recycled: header[8] & IS_RECYCLED != 0,
            clock_back: header[8] & CLOCK_BACK != 0,
            cut_behind,
            log_id: u64_at(header, 16),
            segment_id,
            first_sequence: u64_at(header, 32),
            previous_bytes: u64_at(header, 40),
            previous_checksum: u32_at(header, 48),
            block_bytes: u32_at(header, 52),
            created_at_ns: u64_at(header, 56),
        };
        let blocks = header.block_bytes.is_power_of_two() && header.block_bytes >= 512;
        let numbers = (1..NUMBER_END).contains(&segment_id) && header.first_sequence < NUMBER_END;
        if blocks && numbers { Ok(header) } else { Err(NotASegment::Damaged) }
    }
}

/// Writes the mark of a file to be reused. Like any prepared file, the file has no header yet.
pub(super) fn mark_recycled(to: &mut [u8]) {
    to.fill(0);
    to[HEADER_BYTES..][..RECYCLED.len()].copy_from_slice(&RECYCLED);
}

/// Returns whether a file begins with the mark that [`mark_recycled`] writes.
pub(super) fn is_marked_recycled(bytes: &[u8]) -> bool {
    bytes.split_at_checked(HEADER_BYTES).is_some_and(|(header, behind)| {
        behind.starts_with(&RECYCLED) && header.iter().all(|&byte| byte == 0)
    })
}

fn checksum(header: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&header[..12]), &header[16..HEADER_BYTES])
}

pub(crate) fn seed(log_id: u64, segment_id: u64) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&log_id.to_le_bytes()), &segment_id.to_le_bytes())
}

/// Returns the path of the segment with this number. The name has twenty digits, so that names sort
/// like their numbers.
pub(crate) fn path(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("{number:020}.{EXTENSION}"))
}

/// Returns the number in a name that [`path`] has built; `None` for any other name.
pub(crate) fn number(path: &Path) -> Option<u64> {
    number_before(path, EXTENSION).filter(|&number| number > 0)
}

/// Returns the number in a name that consists of twenty digits and this extension; `None` for any
/// other name.
pub(super) fn number_before(path: &Path, extension: &str) -> Option<u64> {
    let name = path.as_os_str().as_bytes();
    let name = &name[name.iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1)..];
    let digits = name.strip_suffix(extension.as_bytes())?.strip_suffix(b".")?;
    let only_digits = digits.len() == 20 && digits.iter().all(u8::is_ascii_digit);
    let digits = std::str::from_utf8(digits).ok().filter(|_| only_digits)?;
    digits.parse().ok().filter(|&number| number < NUMBER_END)
}

/// Creates the error for records that are unreadable although they, or later ones, were durable.
pub(super) fn damaged(path: &Path, offset: u64, what: &str) -> Error {
    let folder = folder_of(path).display();
    let because =
        format!("{what}; run `wrote log verify {folder}`, then `wrote log repair {folder}`");
    Error::Damaged { path: path.to_owned(), offset, because }
}

pub(super) const NOT_BEGUN: &str = "not a log segment (bad header)";

/// Creates the error for a file that does not begin as a segment.
pub(super) fn not_begun(path: &Path) -> Error {
    damaged(path, 0, NOT_BEGUN)
}

/// Creates the error for a durable record that can't be read at this offset.
pub(super) fn lost(path: &Path, offset: u64, sequence: u64) -> Error {
    damaged(path, offset, &format!("record {sequence} was durable, but can't be read any more"))
}

/// Creates the error for segment `number`, which is missing before the segment at `path`.
pub(super) fn missing(path: &Path, number: u64) -> Error {
    damaged(path, 0, &format!("segment {number} of the log is missing"))
}

/// Returns a random number for a new log, from the random source of the standard library.
pub(super) fn new_log_id() -> u64 {
    RandomState::new().build_hasher().finish()
}

pub(super) fn unix_ns() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.map_or(0, |since| since.as_nanos() as u64);
    #[cfg(test)]
    let now = now.saturating_add_signed(CLOCK_OFFSET_NS.get());
    now
}

#[cfg(test)]
thread_local! {
    /// The offset of this thread's clock from the system clock, in nanoseconds.
    pub(super) static CLOCK_OFFSET_NS: std::cell::Cell<i64> = const { std::cell::Cell::new(0) };
}

/// Returns whether the clock has stepped back so far that a new segment must begin.
pub(super) fn clock_is_back(now_ns: u64, last_ns: u64) -> bool {
    now_ns.saturating_add(1_000_000_000) < last_ns
}

/// Returns the time `age` ago, in nanoseconds since 1970; 0 if that was before 1970.
pub(super) fn unix_ns_ago(age: Duration) -> u64 {
    unix_ns().saturating_sub(u64::try_from(age.as_nanos()).unwrap_or(u64::MAX))
}

/// A segment that is being written, or that waits for its flush.
pub(super) struct OpenSegment {
    pub file: FileId,
    pub path: PathBuf,
    pub number: u64,
    pub end: u64,
    /// The end of the prepared space, which no record may exceed.
    pub prepared: u64,
    /// The end of the blocks that had already been written before records were written to them.
    pub written: u64,
    pub last_checksum: u32,
    pub first_sequence: u64,
    pub end_sequence: u64,
    /// Whether the file belonged to another segment before.
    pub is_recycled: bool,
    pub created_at_ns: u64,
    /// Whether the segment has exceeded its maximum age. If so, the batch after the next one starts
    /// another segment.
    pub is_old: bool,
    /// Whether records have been written to the segment since the last flush started.
    pub is_dirty: bool,
}

impl OpenSegment {
    pub(super) fn new(file: FileId, path: PathBuf, number: u64, created_at_ns: u64) -> OpenSegment {
        OpenSegment {
            file,
            path,
            number,
            end: 0,
            prepared: 0,
            written: 0,
            last_checksum: 0,
            first_sequence: 0,
            end_sequence: 0,
            is_recycled: false,
            created_at_ns,
            is_old: false,
            is_dirty: false,
        }
    }
}

/// The layout of a log in its segments.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    /// The maximum length of a batch in bytes, including headers.
    pub capacity: u64,
    /// The block size in bytes. Batches begin at its multiples.
    pub block_bytes: u64,
    /// The maximum length of a segment in bytes. A segment ends before the first batch whose full
    /// capacity would exceed this length.
    pub segment_bytes: u64,
    /// The ramp on which the first segments are shorter, if any.
    pub ramp: Option<Ramp>,
    /// The log's random number. Every checksum in the log begins with it.
    pub log_id: u64,
}

/// A series of segments of increasing length, until the full length is reached. It allows the space
/// of each segment to be prepared completely before the segment starts, and limits that space to
/// the length of all that the log has written before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ramp {
    /// The segment in which the log started to write, and the length that this segment may reach.
    pub segment: u64,
    pub bytes: u64,
    /// The length of the second segment in bytes. Each later segment is twice as long as the
    /// previous one.
    pub second_bytes: u64,
}

/// The number of segments in a ramp, after which all segments have the full length.
const RAMP_SEGMENTS: u64 = 6;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Start {
    pub first_sequence: u64,
    pub segment: u64,
    /// The offset in the segment; 0 at the start of the segment.
    pub offset: u64,
}

impl Ramp {
    /// Returns the ramp to segments of `full_bytes`. It starts at offset `grown_bytes` in segment
    /// `segment`, where `prepared_bytes` more are prepared.
    pub(super) fn to(full_bytes: u64, segment: u64, grown_bytes: u64, prepared_bytes: u64) -> Ramp {
        let least = (full_bytes >> RAMP_SEGMENTS).max(prepared_bytes);
        let second_bytes = least.next_multiple_of(BLOCK_BYTES);
        Ramp { segment, bytes: grown_bytes + second_bytes, second_bytes }
    }
}

impl Layout {
    /// Returns `at`, or the start of the next segment if `rotate` is set or a full batch would not
    /// fit. On a ramp, a full batch is taken to be twice as long as the last batch, which had
    /// `last_bytes`.
    pub(super) fn start(&self, at: Start, rotate: bool, last_bytes: u64) -> Start {
        let fits = at.offset + self.capacity <= self.segment_bytes
            && at.offset + self.capacity.min(2 * last_bytes) <= self.bytes_of(at.segment);
        if !rotate && fits {
            return at;
        }
        Start { segment: at.segment + 1, offset: 0, ..at }
    }

    /// Returns the planned length of a segment. A batch on a ramp may exceed it.
    pub(super) fn bytes_of(&self, segment: u64) -> u64 {
        let bytes = match self.ramp {
            Some(ramp) if segment <= ramp.segment => ramp.bytes,
            Some(ramp) => ramp.second_bytes << (segment - ramp.segment - 1).min(RAMP_SEGMENTS),
            None => self.segment_bytes,
        };
        bytes.min(self.segment_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: SegmentHeader = SegmentHeader {
        is_recycled: false,
        clock_back: false,
        cut_behind: None,
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
        let long = SegmentHeader { segment_id: NUMBER_END - 1, ..HEADER };
        for header in [
            HEADER,
            SegmentHeader { is_recycled: true, ..HEADER },
            SegmentHeader { clock_back: true, ..HEADER },
            SegmentHeader { cut_behind: Some(2), ..HEADER },
            SegmentHeader { cut_behind: Some(1), ..HEADER },
            SegmentHeader { cut_behind: Some(0), ..HEADER },
            SegmentHeader { cut_behind: Some(0), ..long },
            SegmentHeader { cut_behind: Some(NUMBER_END - 0xff_ffff), ..long },
        ] {
            let mut bytes = [0xff; HEADER_BYTES];
            header.encode(&mut bytes);
            assert_eq!(SegmentHeader::decode(&bytes), Ok(header));
        }
        assert!(SegmentHeader::can_continue(NUMBER_END - 1, NUMBER_END - 0xff_ffff));
        assert!(!SegmentHeader::can_continue(NUMBER_END - 1, NUMBER_END - 0x100_0000));
    }

    #[test]
    fn another_version_is_named() {
        let mut bytes = [0; HEADER_BYTES];
        HEADER.encode(&mut bytes);
        let mut with = |version: u32| {
            bytes[8..12].copy_from_slice(&version.to_le_bytes());
            let checksum = checksum(&bytes);
            bytes[12..16].copy_from_slice(&checksum.to_le_bytes());
            SegmentHeader::decode(&bytes)
        };
        assert_eq!(with(4), Err(NotASegment::Version(2)));
        assert_eq!(with(1), Err(NotASegment::Version(0)));
        // The header states a cut that continues a segment before the first one.
        assert_eq!(with(0x402), Err(NotASegment::Damaged));
    }

    #[test]
    fn names_say_numbers_and_sort_as_they_do() {
        let folder = Path::new("/logs/events");
        for number_of in [1, 10, NUMBER_END - 1] {
            assert_eq!(number(&path(folder, number_of)), Some(number_of));
        }
        assert!(path(folder, 9) < path(folder, 10));
        for other in [
            "lock",
            "1.segment",
            "00000000000000000000.segment",
            "18446744073709551615.segment",
            "+0000000000000000001.segment",
            "next.segment",
            "segment",
        ] {
            assert_eq!(number(Path::new(other)), None, "{other}");
        }
    }

    #[test]
    fn segments_on_a_ramp_are_longer_from_one_to_the_next_until_they_are_full() {
        let layout = Layout {
            capacity: 1 << 20,
            block_bytes: 4096,
            segment_bytes: 5 << 20,
            ramp: Some(Ramp { segment: 7, bytes: 3 << 20, second_bytes: 1 << 20 }),
            log_id: 1,
        };
        let mib = [7, 8, 9, 10, 11, 1000].map(|segment| layout.bytes_of(segment) >> 20);
        assert_eq!(mib, [3, 1, 2, 4, 5, 5]);
        assert_eq!(Layout { ramp: None, ..layout }.bytes_of(8), 5 << 20);
    }

    #[test]
    fn a_segment_on_a_ramp_ends_where_two_batches_like_the_last_do_not_fit() {
        let ramp = Some(Ramp { segment: 7, bytes: 1024, second_bytes: 512 });
        let layout =
            Layout { capacity: 512, block_bytes: 512, segment_bytes: 4096, ramp, log_id: 1 };
        let at = Start { first_sequence: 100, segment: 7, offset: 512 };
        let next = Start { segment: 8, offset: 0, ..at };
        assert_eq!(layout.start(at, false, 256), at);
        assert_eq!(layout.start(at, true, 256), next);
        assert_eq!(layout.start(Start { offset: 1024, ..at }, false, 1), next);
        // A full batch always fits into an empty segment.
        assert_eq!(layout.start(Start { offset: 0, ..at }, false, 512).offset, 0);
        let full = Start { segment: 100, offset: 4096 - 512, ..at };
        assert_eq!(layout.start(full, false, 512), full);
        let past = Start { offset: 4096 - 511, ..full };
        assert_eq!(layout.start(past, false, 1).segment, 101);
    }
}
