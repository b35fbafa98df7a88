//! Retention: the sealed segments of a log, and the limits beyond which the oldest are removed.

use super::segment::unix_ns_ago;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::time::Duration;

/// A segment that is full and durable.
#[derive(Clone, Debug)]
pub(super) struct RetainedSegment {
    pub path: PathBuf,
    pub bytes: u64,
    /// The sequence behind its last record.
    pub end_sequence: u64,
    /// Time of its last write, in nanoseconds since 1970.
    pub written_at_ns: u64,
}

#[derive(Debug)]
pub(super) struct Retention {
    bytes_max: Option<u64>,
    age_max: Option<Duration>,
    /// Whether segments are kept until their records are released.
    is_held: bool,
    segments: VecDeque<RetainedSegment>,
    /// The sum of their lengths.
    bytes: u64,
}

impl Retention {
    pub(super) fn new(
        bytes_max: Option<u64>,
        age_max: Option<Duration>,
        is_held: bool,
        segments: Vec<RetainedSegment>,
    ) -> Retention {
        let bytes = segments.iter().map(|segment| segment.bytes).sum();
        Retention { bytes_max, age_max, is_held, segments: segments.into(), bytes }
    }

    pub(super) fn push(&mut self, segment: RetainedSegment) {
        self.bytes += segment.bytes;
        self.segments.push_back(segment);
    }

    /// Returns the oldest segment if it exceeds a limit. `active_bytes` is the length of the
    /// segment that is written, `durable` the durable frontier. Records before `released` may go
    /// from a log that holds its segments.
    pub(super) fn excess(
        &self,
        active_bytes: u64,
        durable: u64,
        released: u64,
    ) -> Option<&RetainedSegment> {
        let oldest = self.segments.front()?;
        if self.is_held && oldest.end_sequence > released {
            return None;
        }
        let is_over = self.bytes_max.is_some_and(|max| self.bytes + active_bytes > max);
        let is_old = self.age_max.is_some_and(|age| oldest.written_at_ns < unix_ns_ago(age));
        // Recovery must learn from one segment where the log was. The last sealed one can go once a
        // record behind it is durable, since the beginning of the next segment then is durable too.
        let is_needed = self.segments.len() == 1 && durable <= oldest.end_sequence;
        ((is_over || is_old) && !is_needed).then_some(oldest)
    }

    /// Takes the oldest segment, whose file was removed, off the list.
    pub(super) fn forget_oldest(&mut self) {
        self.bytes -= self.segments.pop_front().map_or(0, |oldest| oldest.bytes);
    }
}
