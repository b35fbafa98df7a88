//! The layout of a log: the length of its segments, and where each batch starts.

use super::format::Format;
use super::prepare::BLOCK_BYTES;

/// How a log lies in its segments.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    pub format: Format,
    /// The most bytes of a batch, with headers.
    pub capacity: u64,
    /// Batches begin at multiples of this.
    pub block_bytes: u64,
    /// A segment ends before the first batch of full capacity that would exceed this length.
    pub segment_bytes: u64,
    /// The first segments are shorter.
    pub ramp: Option<Ramp>,
    /// The log's number. Every checksum of the log begins with it.
    pub log_id: u64,
}

/// Segments of increasing length until the full length is reached. So each one's space can be
/// prepared completely before it starts, and is at most what the log has written before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ramp {
    /// The segment in which the log started to write, and the length that it may reach.
    pub segment: u64,
    pub bytes: u64,
    /// The length of the second segment. Each later one is twice as long.
    pub second_bytes: u64,
}

/// The number of segments of a ramp, after which all have full length.
const RAMP_SEGMENTS: u64 = 6;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Start {
    pub first_sequence: u64,
    pub segment: u64,
    /// Its offset in the segment; 0 if it starts the segment.
    pub offset: u64,
}

impl Ramp {
    /// Returns the ramp to segments of `full_bytes`, which starts `grown_bytes` into a segment with
    /// `prepared_bytes` after them.
    pub(super) fn to(full_bytes: u64, segment: u64, grown_bytes: u64, prepared_bytes: u64) -> Ramp {
        let least = (full_bytes >> RAMP_SEGMENTS).max(prepared_bytes);
        let second_bytes = least.next_multiple_of(BLOCK_BYTES);
        Ramp { segment, bytes: grown_bytes + second_bytes, second_bytes }
    }
}

impl Layout {
    /// Returns `at`, or the start of the next segment if `rotate` or if a full batch would not fit.
    /// On a ramp, full means twice as long as the last batch of `last_bytes`.
    pub(super) fn start(&self, at: Start, rotate: bool, last_bytes: u64) -> Start {
        let fits = at.offset + self.capacity <= self.segment_bytes
            && at.offset + self.capacity.min(2 * last_bytes) <= self.bytes_of(at.segment);
        if !rotate && fits {
            return at;
        }
        let segment = match self.format {
            Format::Framed => at.segment + 1,
            Format::Lines => at.first_sequence,
        };
        Start { segment, offset: 0, ..at }
    }

    /// Returns the length of a segment. A batch on a ramp may exceed it.
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

    #[test]
    fn segments_on_a_ramp_are_longer_from_one_to_the_next_until_they_are_full() {
        let layout = Layout {
            format: Format::Framed,
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
        let layout = Layout {
            format: Format::Framed,
            capacity: 512,
            block_bytes: 512,
            segment_bytes: 4096,
            ramp,
            log_id: 1,
        };
        let at = Start { first_sequence: 100, segment: 7, offset: 512 };
        let next = Start { segment: 8, offset: 0, ..at };
        assert_eq!(layout.start(at, false, 256), at);
        assert_eq!(layout.start(at, true, 256), next);
        assert_eq!(layout.start(Start { offset: 1024, ..at }, false, 1), next);
        // A full batch always fits into the whole of a segment.
        assert_eq!(layout.start(Start { offset: 0, ..at }, false, 512).offset, 0);
        let full = Start { segment: 100, offset: 4096 - 512, ..at };
        assert_eq!(layout.start(full, false, 512), full);
        let past = Start { offset: 4096 - 511, ..full };
        assert_eq!(layout.start(past, false, 1).segment, 101);
    }
}
