//! The verification of a log, which reads all of it.

use super::salvage::{Event, Tail, salvage};
use super::summary::LogSummary;
use crate::Error;
use crate::log::chain;
use crate::log::input::LogFiles;
use crate::log::record::Frame;
use crate::log::sealed::Segment;
use crate::progress::{Watch, report};

/// The number of bytes between two progress reports.
const STEP_BYTES: u64 = 1 << 20;

pub(super) fn verify(files: &LogFiles, watch: Watch) -> Result<LogSummary, Error> {
    let segments = chain::segments(files)?;
    let all_bytes = segments.iter().map(|segment| segment.file_bytes).sum();
    let mut progress = VerifyProgress::new(all_bytes, watch);
    let mut found = LogSummary::empty(files);
    let tail = salvage(files, &mut |event| take(&mut found, event, &mut progress))?;
    let Tail { next_sequence, closed, torn_bytes } = tail;
    found.first_sequence =
        found.segments.first().map_or(next_sequence, |segment| segment.first_sequence);
    (found.next_sequence, found.closed, found.torn_bytes) = (next_sequence, closed, torn_bytes);
    progress.finish_file(0)?;
    found.count();
    Ok(found)
}

/// Adds a finding of a salvage to the summary.
fn take(found: &mut LogSummary, event: Event, progress: &mut VerifyProgress) -> Result<(), Error> {
    match event {
        Event::Begin { path, header, file_bytes } => {
            let path = path.to_owned();
            found.segments.push(Segment { path, file_bytes, ..Segment::of(header) });
        }
        Event::Frame { sequence, offset, frame } => {
            progress.at(offset)?;
            let segment = found.segments.last_mut().expect("a segment was begun");
            segment.end_sequence = sequence + 1;
            match frame {
                Frame::Data(bytes) => {
                    segment.records += 1;
                    segment.record_bytes += bytes.len() as u64;
                    found.record_bytes += bytes.len() as u64;
                }
                Frame::Skipped(_) => found.note_gap(sequence),
            }
        }
        Event::Lost(damage) => found.damage.push(damage.clone()),
        Event::Garbage(path, place) => found.garbage.push((path, place)),
        Event::End { used_bytes } => {
            let segment = found.segments.last_mut().expect("a segment was begun");
            segment.bytes = used_bytes;
            progress.finish_file(segment.file_bytes)?;
        }
    }
    Ok(())
}

/// The progress of a verification.
pub(in crate::log) struct VerifyProgress<'a> {
    watch: Watch<'a>,
    /// The total length of the files that have been read, in bytes.
    before: u64,
    reported: u64,
    all_bytes: u64,
}

impl<'a> VerifyProgress<'a> {
    pub(in crate::log) fn new(all_bytes: u64, watch: Watch<'a>) -> VerifyProgress<'a> {
        VerifyProgress { watch, before: 0, reported: 0, all_bytes }
    }

    /// Records that the current file has been read up to this offset.
    pub(in crate::log) fn at(&mut self, offset: u64) -> Result<(), Error> {
        let read = self.before + offset;
        if read < self.reported + STEP_BYTES { Ok(()) } else { self.report(read) }
    }

    /// Records that a file of this length has been read completely.
    pub(in crate::log) fn finish_file(&mut self, file_bytes: u64) -> Result<(), Error> {
        self.before += file_bytes;
        self.report(self.before)
    }

    fn report(&mut self, read: u64) -> Result<(), Error> {
        self.reported = read;
        report(self.watch, read.min(self.all_bytes), Some(self.all_bytes))
    }
}
