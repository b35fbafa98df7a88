//! Cuts: the end of a log is removed by a single new segment that starts with an earlier record.
//!
//! The new segment has the next number. It states which segment it continues, and from which record
//! on. It appears atomically, by a rename. From then on, the segments between the two, and the
//! records of the continued segment from that record on, are not part of the log; the files are
//! deleted afterwards. The new segment starts with the first record of a batch, so that the
//! continued segment ends between two batches, at a block. It contains copies of those records of
//! the batch that remain in the log.

use super::batch::{self, BatchHeader};
use super::chain::SegmentHead;
use super::input::{Input, LogFiles};
use super::record::{self, Frame};
use super::segment::{self, SegmentHeader};
use super::walk::{Walk, WalkStep};
use super::{chain, seek};
use crate::staged::StagedFile;
use crate::{Engine, Error, FileOptions};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The offset of a segment's first batch.
const BEGIN: u64 = segment::HEADER_BYTES as u64;

/// The position in a segment at which a log is cut, and the remaining part of the batch there.
#[derive(Debug)]
pub(super) struct CutPlace {
    /// The header of the segment that starts at the cut.
    pub header: SegmentHeader,
    /// The batch that contains the cut.
    batch: BatchHeader,
    /// The frames of the batch's remaining records, and their number.
    kept: Vec<u8>,
    count: u32,
}

/// Finds the position of record `next` in the segment that holds it, so that the log can be cut
/// there. After the cut, the log continues in segment `number`. All records of the segment must be
/// durable.
pub(super) fn find(
    files: &LogFiles,
    path: &Path,
    next: u64,
    number: u64,
) -> Result<CutPlace, Error> {
    let mut input = Input::open(files, path, true, false)?;
    let named = segment::number(path).expect("the path of a segment");
    let Some(begins) = chain::read_header(&mut input, named)? else {
        return Err(segment::not_begun(path));
    };
    let mut walk = Walk::new(input, &begins);
    walk.wanted = next;
    seek::seek(&mut walk, next.saturating_sub(1), || Ok(u64::MAX))?;
    let mut found: Option<CutPlace> = None;
    loop {
        walk.leave_finished();
        let (place, end, last) = (walk.place, walk.end, walk.last);
        match walk.next()? {
            WalkStep::Batch => {
                let (batch, _) = walk.last.expect("a batch has begun");
                let is_first = place == BEGIN && last.is_none();
                if !is_first && last.is_none() {
                    // The search led to this batch, so the previous batch is unknown.
                    walk.restart(begins.first_sequence);
                    continue;
                }
                let before = (!is_first).then_some((end, last));
                found = Some(CutPlace::new(number, &begins, batch, before));
                walk.skip_batch(next)?;
            }
            WalkStep::Frame { sequence, frame, .. } => {
                let Some(place) = &mut found else { unreachable!("a batch has begun") };
                if sequence >= next {
                    return Ok(found.expect("a batch has begun"));
                }
                place.keep(sequence, frame);
            }
            WalkStep::End => return Err(segment::lost(path, walk.place, next)),
        }
    }
}

impl CutPlace {
    /// Describes a cut in `batch`. `before` is the end of the previous batch in the segment, and
    /// that batch's header and checksum; `None` for the first batch.
    fn new(
        number: u64,
        begins: &SegmentHeader,
        batch: BatchHeader,
        before: Option<(u64, Option<(BatchHeader, u32)>)>,
    ) -> CutPlace {
        let mut header = SegmentHeader {
            segment_id: number,
            is_recycled: false,
            first_sequence: batch.first_sequence,
            cut_behind: Some(begins.previous()),
            // The segment must not be newer than its first batch.
            created_at_ns: match batch.written_at_ns {
                0 => segment::unix_ns(),
                written_at_ns => written_at_ns,
            },
            ..*begins
        };
        if let Some((end, last)) = before {
            header.cut_behind = Some(begins.segment_id);
            header.previous_bytes = end;
            header.previous_checksum = last.map_or(0, |(_, checksum)| checksum);
        }
        CutPlace { header, batch, kept: Vec::new(), count: 0 }
    }

    /// Returns the sequence of the record at which the log is cut.
    pub(super) fn next_sequence(&self) -> u64 {
        self.header.first_sequence + u64::from(self.count)
    }

    /// Adds a frame that remains in the log.
    fn keep(&mut self, sequence: u64, frame: Frame) {
        record::copy(frame, &mut self.kept, self.header.seed(), sequence);
        self.count += 1;
    }

    /// Writes the new segment, in which the log continues with batches of at most `longest_bytes`.
    /// The segment gets its name atomically. The flag in an error is false if nothing has changed.
    pub(super) fn write(
        self,
        files: &LogFiles,
        path: &Path,
        longest_bytes: u64,
    ) -> Result<(), (bool, Error)> {
        let header = self.header;
        let batch_bytes = batch::HEADER_BYTES + self.kept.len();
        let first = BatchHeader {
            bytes: batch_bytes as u32,
            count: self.count,
            first_sequence: header.first_sequence,
            durable_sequence: header.first_sequence,
            // This is the time of the copied records, if there are any.
            written_at_ns: self.batch.written_at_ns,
            whole: self.batch.whole && self.count > 0,
            longest_bytes: longest_bytes.max(batch_bytes as u64) as u32,
            ..BatchHeader::default()
        };
        let mut bytes = vec![0; segment::HEADER_BYTES + batch::HEADER_BYTES];
        header.encode(&mut bytes);
        first.encode(&mut bytes[segment::HEADER_BYTES..], header.seed());
        bytes.extend(&self.kept);
        bytes.resize(bytes.len().next_multiple_of(header.block_bytes as usize), 0);
        put(&mut files.engine(), path, &bytes)
    }
}

/// Creates a file with these bytes. Its name appears atomically once all of them are written. The
/// flag in an error is false if no file with that name was created.
fn put(engine: &mut Engine, path: &Path, bytes: &[u8]) -> Result<(), (bool, Error)> {
    let staged = StagedFile::new(engine, path, true, &FileOptions::default())
        .map_err(|error| (false, error))?;
    let written = engine.write(staged.file, 0, bytes).and_then(|()| engine.flush(staged.file));
    match written {
        // After an error, it is unknown whether the name exists.
        Ok(()) => staged.put(engine, true).map_err(|error| (true, error)),
        Err(error) => {
            staged.abandon(engine);
            Err((false, error))
        }
    }
}

/// Returns the length that the cut leaves to the continued segment's file: up to the block at which
/// the removed batch started.
pub(super) fn end_before(header: &SegmentHeader) -> u64 {
    header.previous_bytes.next_multiple_of(u64::from(header.block_bytes))
}

/// Returns whether the continued segment `before` still contains the batch that the cut removed.
pub(super) fn is_left(
    files: &LogFiles,
    before: &SegmentHead,
    cut: &SegmentHeader,
) -> Result<bool, Error> {
    let Some(header) = before.header.filter(|_| before.file_bytes > end_before(cut)) else {
        return Ok(false);
    };
    let mut walk = Walk::new(Input::open(files, &before.path, true, false)?, &header);
    let mut finds = || {
        let batch = walk.batch_at(end_before(cut))?;
        walk.input.look_again()?;
        Ok(batch.is_some_and(|(batch, _)| batch.first_sequence == cut.first_sequence))
    };
    // If the removed batch is still there, a reader would take it for part of the log, so look
    // twice before concluding that it is gone.
    Ok(finds()? || finds()?)
}

/// Returns whether the file is the temporary file of a new segment that a killed process was
/// writing.
pub(super) fn is_left_over(path: &Path) -> bool {
    let name = path.file_name().unwrap_or(OsStr::new("")).as_bytes();
    let Some(rest) = name.strip_prefix(b".") else { return false };
    let Some((digits, rest)) = rest.split_at_checked(20) else { return false };
    digits.iter().all(u8::is_ascii_digit) && rest.starts_with(b".segment.wrote-")
}
