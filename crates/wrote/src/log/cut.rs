//! Cuts: the end of a log is removed by one segment that starts with an earlier record.
//!
//! A new segment with the next number refers to the segment that it continues, and the record at
//! which it does. It appears atomically, by a rename. From then on the segments between the two,
//! and the records from that one on, are not part of the log; their files are deleted afterwards.
//! The new segment starts with the first record of a batch, so that the earlier one ends between
//! two batches, at a block. It holds copies of those records of the batch that stay.

use super::batch::{self, BatchHeader};
use super::chain::SegmentHead;
use super::input::{Input, LogFiles};
use super::record::{self, Frame};
use super::segment::{self, SegmentHeader, damaged};
use super::walk::{Walk, WalkStep};
use super::{chain, seek};
use crate::staged::StagedFile;
use crate::{Engine, Error, FileId, FileOptions};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The place of a segment's first batch.
const BEGIN: u64 = segment::HEADER_BYTES as u64;

/// The position in a segment at which a log is cut.
#[derive(Debug)]
pub(super) struct CutPlace {
    /// The header of the segment that starts there.
    pub header: SegmentHeader,
    /// The number of the segment that it continues; 0 if there is none.
    pub previous: u64,
    /// The batch that contains the cut.
    batch: BatchHeader,
    /// The frames of its records that stay, without their checksums.
    kept: Vec<u8>,
    /// Whether each is a record or an empty place.
    kinds: Vec<(usize, bool)>,
}

/// Finds the place of record `next` in the segment that holds it, to be cut there. All records of
/// the segment are durable.
pub(super) fn find(
    files: &LogFiles,
    path: &Path,
    number: u64,
    next: u64,
) -> Result<CutPlace, Error> {
    let mut input = Input::open(files, path, true, false)?;
    let begins = chain::read_header(&mut input, number)?;
    let Some(begins) = begins else {
        return Err(damaged(path, 0, "this is not how a segment begins"));
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
                    // The search has ended at this batch, so the one before it is unknown.
                    walk.restart(begins.first_sequence);
                    continue;
                }
                found = Some(CutPlace::new(&begins, batch, (!is_first).then_some((end, last))));
                walk.skip_batch(next)?;
            }
            WalkStep::Frame { sequence, frame, .. } => {
                let Some(place) = &mut found else { unreachable!("a batch has begun") };
                if sequence >= next {
                    return Ok(found.expect("a batch has begun"));
                }
                place.keep(frame);
            }
            WalkStep::End => {
                let what = format!("record {next} can't be read, and was durable once");
                return Err(damaged(path, walk.place, &what));
            }
        }
    }
}

impl CutPlace {
    /// Makes the place at a batch of a segment; `before` is the end of the batch before it there,
    /// with its header and checksum.
    fn new(
        begins: &SegmentHeader,
        batch: BatchHeader,
        before: Option<(u64, Option<(BatchHeader, u32)>)>,
    ) -> CutPlace {
        let first_sequence = batch.first_sequence;
        let mut header = SegmentHeader { is_recycled: false, first_sequence, ..*begins };
        let mut previous = begins.previous();
        if let Some((end, last)) = before {
            previous = begins.segment_id;
            header.previous_bytes = end;
            header.previous_checksum = last.map_or(0, |(_, checksum)| checksum);
        }
        CutPlace { header, previous, batch, kept: Vec::new(), kinds: Vec::new() }
    }

    /// Adds a frame that stays.
    fn keep(&mut self, frame: Frame) {
        let start = self.kept.len();
        self.kept.resize(start + frame.len(), 0);
        if let Frame::Data(own) = frame {
            self.kept[start + record::HEADER_BYTES..].copy_from_slice(own);
        }
        self.kinds.push((frame.len(), matches!(frame, Frame::Data(_))));
    }

    /// Writes segment `number`, in which the log continues with batches of at most `longest_bytes`.
    /// It gets its name atomically. Fails with `false` if nothing was changed.
    pub(super) fn write(
        mut self,
        files: &LogFiles,
        path: &Path,
        number: u64,
        longest_bytes: u64,
    ) -> Result<(), (bool, Error)> {
        let header = SegmentHeader {
            segment_id: number,
            cut_behind: Some(self.previous),
            // No later than its first batch.
            created_at_ns: match self.batch.written_at_ns {
                0 => segment::unix_ns(),
                written_at_ns => written_at_ns,
            },
            ..self.header
        };
        let seed = header.seed();
        let mut at = 0;
        for (sequence, (len, is_record)) in (header.first_sequence..).zip(&self.kinds) {
            let frame = &mut self.kept[at..at + len];
            if *is_record {
                record::seal(frame, seed, sequence);
            } else {
                record::skip(frame, seed, sequence);
            }
            at += len;
        }
        let batch_bytes = batch::HEADER_BYTES + self.kept.len();
        let first = BatchHeader {
            bytes: batch_bytes as u32,
            count: self.kinds.len() as u32,
            first_sequence: header.first_sequence,
            durable_sequence: header.first_sequence,
            // The time of the records, while there are any.
            written_at_ns: self.batch.written_at_ns,
            whole: self.batch.whole && !self.kinds.is_empty(),
            longest_bytes: longest_bytes.max(batch_bytes as u64) as u32,
            ..BatchHeader::default()
        };
        let mut bytes = vec![0; segment::HEADER_BYTES + batch::HEADER_BYTES];
        header.encode(&mut bytes);
        first.encode(&mut bytes[segment::HEADER_BYTES..], seed);
        bytes.extend(&self.kept);
        bytes.resize(bytes.len().next_multiple_of(header.block_bytes as usize), 0);
        put(&mut files.engine(), path, &bytes)
    }
}

/// Creates a file of these bytes, whose name appears atomically once all of them are written.
fn put(engine: &mut Engine, path: &Path, bytes: &[u8]) -> Result<(), (bool, Error)> {
    let staged = StagedFile::new(engine, path, true, &FileOptions::default())
        .map_err(|error| (false, error))?;
    let written = engine.write(staged.file, 0, bytes).and_then(|()| engine.flush(staged.file));
    match written {
        // After an error it is unknown whether the name exists.
        Ok(()) => staged.put(engine, true).map_err(|error| (true, error)),
        Err(error) => {
            staged.abandon(engine);
            Err((false, error))
        }
    }
}

/// Returns the end of the file that a cut has left: the block at which the removed batch started.
pub(super) fn end_before(header: &SegmentHeader) -> u64 {
    header.previous_bytes.next_multiple_of(u64::from(header.block_bytes))
}

/// Returns whether a segment still contains the batch that the cut removed.
pub(super) fn is_left(
    files: &LogFiles,
    before: &SegmentHead,
    cut: &SegmentHeader,
) -> Result<bool, Error> {
    let Some(header) = before.header.filter(|_| before.file_bytes > end_before(cut)) else {
        return Ok(false);
    };
    let mut walk = Walk::new(Input::open(files, &before.path, true, false)?, &header);
    let batch = walk.batch_at(end_before(cut))?;
    Ok(batch.is_some_and(|(batch, _)| batch.first_sequence == cut.first_sequence))
}

/// Cuts a file at a block and closes it. No block that stays is written.
pub(super) fn shorten(engine: &mut Engine, file: FileId, end: u64) -> Result<(), Error> {
    engine.truncate(file, end)?;
    engine.flush(file)?;
    engine.close_file(file)
}

/// Deletes segments that a cut removed from the log, newest first.
pub(super) fn remove(engine: &mut Engine, dead: &[PathBuf]) -> Result<(), Error> {
    dead.iter().rev().try_for_each(|path| engine.remove(path))
}

/// Returns whether the file is the start of a segment that a killed process was about to put in
/// place.
pub(super) fn is_left_over(path: &Path) -> bool {
    let name = path.file_name().unwrap_or(OsStr::new("")).as_bytes();
    let Some(rest) = name.strip_prefix(b".") else { return false };
    let Some((digits, rest)) = rest.split_at_checked(20) else { return false };
    digits.iter().all(u8::is_ascii_digit) && rest.starts_with(b".segment.wrote-")
}
