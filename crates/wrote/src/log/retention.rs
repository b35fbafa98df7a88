//! Retention: the sealed segments of a log, and the limits beyond which the oldest are removed. It
//! is a separate file because it decides by numbers alone.

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
    /// Time of its last write, in nanoseconds since 1970.
    pub written_at_ns: u64,
    /// All blocks of its file were written since the log was opened.
    pub is_written: bool,
}

#[derive(Debug)]
pub(super) struct Retention {
    pub bytes_max: Option<u64>,
    age_max: Option<Duration>,
    segments: VecDeque<RetainedSegment>,
    /// The sum of their lengths.
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

    /// Returns the oldest segment if it exceeds a limit. `active_bytes` is the length of the
    /// segments that are not sealed, `durable` the durable frontier.
    pub(super) fn excess(&self, active_bytes: u64, durable: u64) -> Option<&RetainedSegment> {
        let oldest = self.removable(durable)?;
        let is_over = self.bytes_max.is_some_and(|max| self.bytes + active_bytes > max);
        // The oldest is older than all later ones, whatever their times: a clock that was ahead
        // must not keep it, and all after it, longer.
        let is_older = |age| self.segments.iter().any(|it| it.written_at_ns < unix_ns_ago(age));
        let is_old = self.age_max.is_some_and(is_older);
        (is_over || is_old).then_some(oldest)
    }

    /// Returns the oldest segment if all its records are before `sequence`.
    pub(super) fn before(&self, sequence: u64, durable: u64) -> Option<&RetainedSegment> {
        self.removable(durable).filter(|oldest| oldest.end_sequence <= sequence)
    }

    /// Returns the oldest segment unless recovery needs it.
    ///
    /// Recovery needs one segment to learn where the log was. The last sealed one can be removed
    /// once a record after it is durable, because then the start of the next segment is durable
    /// too.
    fn removable(&self, durable: u64) -> Option<&RetainedSegment> {
        let oldest = self.segments.front()?;
        (self.segments.len() > 1 || durable > oldest.end_sequence).then_some(oldest)
    }

    /// Returns the segment that holds this record.
    pub(super) fn holding(&self, sequence: u64) -> Option<&RetainedSegment> {
        let index = self.segments.partition_point(|segment| segment.end_sequence <= sequence);
        self.segments.get(index)
    }

    /// Continues with these segments.
    pub(super) fn replace(&mut self, segments: Vec<RetainedSegment>) {
        self.bytes = segments.iter().map(|segment| segment.bytes).sum();
        self.segments = segments.into();
    }

    /// Takes the oldest segment, whose file was removed, off the list.
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
        // Hours: ten years ahead, then right.
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
