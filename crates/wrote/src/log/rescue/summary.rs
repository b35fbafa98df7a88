//! Summaries of a log, with its segments, its end and its damage. A quick summary does not read
//! every record.

use super::Damage;
use super::end::{LogEnd, end};
use super::scan;
use crate::Error;
use crate::engine::Folder;
use crate::log::chain::{self, SegmentHead};
use crate::log::input::{Input, LogFiles};
use crate::log::lock::Lock;
use crate::log::names::{self, SegmentNames};
use crate::log::record::Frame;
use crate::log::sealed::Segment;
use crate::log::segment::SegmentHeader;
use crate::log::walk::{Walk, WalkStep};
use std::collections::HashSet;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// A summary of a log: its segments, its end and its damage.
///
/// [`summary`] finds the segments and the end. [`verify`](fn@super::verify) reads every byte, and
/// so also finds the damage. [`repair`](fn@super::repair) returns what it found and repaired.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct LogSummary {
    /// The segments of the log, in order.
    pub segments: Vec<Segment>,
    /// The total number of records in the segments. After a repair, the number of records that are
    /// left.
    pub records: u64,
    /// The total number of bytes in these records; 0 in a [`summary`].
    pub record_bytes: u64,
    /// The sequence of the first remaining record.
    pub first_sequence: u64,
    /// The sequence that the next record will get.
    pub next_sequence: u64,
    /// Whether the log was closed after its last record, so that its end is certain.
    pub closed: bool,
    /// The ID of the process that has the log open for writing; `None` if there is none, or if it
    /// is invisible to this process.
    pub writer: Option<u32>,
    /// The sequences without a record. [`summary`] finds those in segments that a repair has
    /// rewritten; [`verify`](fn@super::verify) finds all, including places whose producer panicked.
    pub gaps: Vec<Range<u64>>,
    /// The number of bytes that a write interrupted by a crash has left after the last intact
    /// record. Opening the log for writing keeps them aside. 0 in a [`summary`].
    pub torn_bytes: u64,
    /// The damage; empty if every record is intact, and always empty in a [`summary`].
    pub damage: Vec<Damage>,
    /// Garbage, which is harmless because readers skip it: the path of the segment, and the range
    /// from the end of its last record to the last byte that is not zero. Empty in a [`summary`].
    pub garbage: Vec<(PathBuf, Range<u64>)>,
    /// The segments that had the name of another segment until a repair gave them their own names
    /// back.
    pub put_back: Vec<PathBuf>,
    /// The copies of damaged files that a repair has created next to the segments.
    pub kept_aside: Vec<PathBuf>,
}

/// Returns a summary of the log in `folder`, reading only the records needed to find its end.
///
/// The number of records includes sequences that have no record because their producer panicked, or
/// because a repair replaced a lost record. Only [`verify`](fn@super::verify) can tell the
/// difference.
///
/// Fails with [`Error::Refused`] if the folder has no log. Fails with [`Error::Damaged`] if bytes
/// after the end prove that more records were durable.
pub fn summary(folder: impl AsRef<Path>) -> Result<LogSummary, Error> {
    let files = LogFiles::open_in(None, &Folder::open(folder.as_ref())?)?;
    names::check_log(&files)?;
    let mut before = None;
    names::unless_removed(|| match examine(&files) {
        // The segment may have begun after its header was read, but before the proof that it must
        // have one was read.
        Err(Error::Damaged { path, offset, because }) => {
            let is_again = before.replace((path.clone(), offset)) == Some((path.clone(), offset));
            if is_again { Err(Error::Damaged { path, offset, because }) } else { Ok(None) }
        }
        result => result.map(Some),
    })
}

fn examine(files: &LogFiles) -> Result<LogSummary, Error> {
    let mut segments = chain::segments(files)?;
    let mut summary = LogSummary::empty(files);
    let Some(mut end) = end(files, &mut segments, false)? else {
        return Ok(summary);
    };
    check_end(&segments, &mut end)?;
    let LogEnd { last, walk } = end;
    summary.next_sequence = walk.sequence;
    summary.closed = walk.is_closed() && last + 1 == segments.len();
    for (index, segment) in segments[..=last].iter().enumerate() {
        let header = segment.header.expect("its order was checked");
        if segment.first_batch.is_some_and(|batch| batch.is_by_repair()) {
            summary.read_gaps(files, segment, &header)?;
        }
        let next = segments[..=last].get(index + 1).and_then(|next| next.header);
        let end_sequence = next.map_or(walk.sequence, |next| next.first_sequence);
        summary.segments.push(Segment {
            path: segment.path.clone(),
            file_bytes: segment.file_bytes,
            bytes: next.map_or(walk.end, |next| next.previous_bytes),
            end_sequence,
            records: end_sequence.saturating_sub(header.first_sequence),
            folder: Some(files.folder.clone()),
            ..Segment::of(&header)
        });
    }
    summary.first_sequence = summary.segments[0].first_sequence;
    summary.count();
    Ok(summary)
}

/// Fails if bytes after the end prove that the next record was durable, unless that record has
/// arrived in the meantime.
fn check_end(segments: &[SegmentHead], end: &mut LogEnd) -> Result<(), Error> {
    let LogEnd { last, walk } = end;
    let log_id = segments[*last].header.map_or(0, |header| header.log_id);
    let later = segments[*last + 1..].iter().map(|later| (later.number, later.path.clone()));
    let later: SegmentNames = later.collect();
    let lost = scan::behind(walk, log_id, &later)?.lost;
    match lost {
        Some(lost) if !walk.has_come()? => Err(lost),
        _ => Ok(()),
    }
}

impl LogSummary {
    pub(in crate::log) fn empty(files: &LogFiles) -> LogSummary {
        LogSummary { writer: Lock::holder(&files.folder), ..LogSummary::default() }
    }

    pub(in crate::log) fn count(&mut self) {
        self.records = self.segments.iter().map(|segment| segment.records).sum();
    }

    /// Returns whether there is neither damage nor garbage.
    pub(in crate::log) fn is_clean(&self) -> bool {
        self.damage.is_empty() && self.garbage.is_empty()
    }

    /// Returns the files that a repair must rewrite.
    pub(in crate::log) fn to_repair(&self) -> HashSet<PathBuf> {
        let damaged = self.damage.iter().map(|damage| &damage.path);
        damaged.chain(self.garbage.iter().map(|(path, _)| path)).cloned().collect()
    }

    fn read_gaps(
        &mut self,
        files: &LogFiles,
        segment: &SegmentHead,
        header: &SegmentHeader,
    ) -> Result<(), Error> {
        let mut walk = Walk::new(Input::open(files, &segment.path, true, false)?, header);
        walk.limit = segment.limit;
        loop {
            match walk.next()? {
                WalkStep::Frame { sequence, frame: Frame::Skipped(_), .. } => {
                    self.note_gap(sequence);
                }
                WalkStep::End => return Ok(()),
                _ => {}
            }
        }
    }

    /// Records that this sequence has no record. Calls must come in the order of sequences.
    pub(in crate::log) fn note_gap(&mut self, sequence: u64) {
        match self.gaps.last_mut() {
            Some(gap) if gap.end == sequence => gap.end += 1,
            _ => self.gaps.push(sequence..sequence + 1),
        }
    }
}
