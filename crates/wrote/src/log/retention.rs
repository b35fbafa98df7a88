//! Retention: the sealed segments of a log, and the limits beyond which the oldest are removed.
//! This module is separate because it makes its decisions without any I/O.

use super::segment::unix_ns_ago;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::time::Duration;

/// A segment that is full and durable.
#[derive(Clone, Debug)]
pub(super) struct RetainedSegment {
    pub path: PathBuf,
    pub bytes: u64,
    /// The sequence after its last record.
    pub end_sequence: u64,
    /// The time of the last write to the segment, in nanoseconds since 1970.
    pub written_at_ns: u64,
    /// Whether all blocks of the file have been written since the log was opened.
    pub is_written: bool,
}

#[derive(Debug)]
pub(super) struct Retention {
    pub bytes_max: Option<u64>,
    age_max: Option<Duration>,
    segments: VecDeque<RetainedSegment>,
    /// The total length of the sealed segments in bytes.
    bytes: u64,
}

impl Retention {
    pub(super) fn new(
        bytes_max: Option<u64>,
        age_max: Option<Duration>,
        segments: Vec<RetainedSegment>,
    ) -> Retention {
        let mut retention = Retention { bytes_max, age_max, segments: VecDeque::new(), bytes: 0 };
        retention.replace(segments);
        retention
    }

    pub(super) fn push(&mut self, segment: RetainedSegment) {
        self.bytes += segment.bytes;
        self.segments.push_back(segment);
    }

    /// Returns the oldest segment if a limit is exceeded. `active_bytes` is the total length of the
    /// segments that are not sealed, and `durable` is the durable frontier.
    pub(super) fn excess(&self, active_bytes: u64, durable: u64) -> Option<&RetainedSegment> {
        let oldest = self.removable(durable)?;
        let is_over = self.bytes_max.is_some_and(|max| self.bytes + active_bytes > max);
        // The oldest segment is older than all later ones, whatever their recorded times: a clock
        // that was once ahead must not keep that segment, and all later ones, longer.
        let is_older = |age| self.segments.iter().any(|it| it.written_at_ns < unix_ns_ago(age));
        let is_old = self.age_max.is_some_and(is_older);
        (is_over || is_old).then_some(oldest)
    }

    /// Returns the oldest segment if all of its records are before `sequence` and it may be
    /// removed.
    pub(super) fn before(&self, sequence: u64, durable: u64) -> Option<&RetainedSegment> {
        self.removable(durable).filter(|oldest| oldest.end_sequence <= sequence)
    }

    /// Returns the oldest segment unless recovery needs it.
    ///
    /// Recovery needs one segment to learn the position in the log. The last sealed segment can be
    /// removed once a record after it is durable, because then the start of the next segment is
    /// durable, too.
    fn removable(&self, durable: u64) -> Option<&RetainedSegment> {
        let oldest = self.segments.front()?;
        (self.segments.len() > 1 || durable > oldest.end_sequence).then_some(oldest)
    }

    /// Returns the sealed segment that holds this record.
    pub(super) fn holding(&self, sequence: u64) -> Option<&RetainedSegment> {
        let index = self.segments.partition_point(|segment| segment.end_sequence <= sequence);
        self.segments.get(index)
    }

    /// Replaces all segments with these.
    pub(super) fn replace(&mut self, segments: Vec<RetainedSegment>) {
        self.bytes = segments.iter().map(|segment| segment.bytes).sum();
        self.segments = segments.into();
    }

    /// Removes the oldest segment, whose file has been removed, from the list.
    pub(super) fn forget_oldest(&mut self) {
        self.bytes -= self.segments.pop_front().map_or(0, |oldest| oldest.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_of_a_clock_that_was_ahead_goes_once_a_later_one_is_old() {
        const HOUR: Duration = Duration::from_secs(3600);
        let segment = |number: u64, age_h: i64| RetainedSegment {
            path: format!("{number}").into(),
            bytes: 1,
            end_sequence: number,
            written_at_ns: unix_ns_ago(Duration::ZERO)
                .saturating_add_signed(-age_h * HOUR.as_nanos() as i64),
            is_written: true,
        };
        // The ages are in hours. The first clock was ten years ahead; the others were right.
        let segments = vec![segment(1, -87_600), segment(2, 30), segment(3, 2), segment(4, 1)];
        let mut retention = Retention::new(None, Some(24 * HOUR), segments);
        let mut removed = 0;
        while retention.excess(0, 9).is_some() {
            retention.forget_oldest();
            removed += 1;
        }
        assert_eq!(removed, 2);
    }
}
