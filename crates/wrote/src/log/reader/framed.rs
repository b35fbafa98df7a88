//! A reader's position in a framed log.

use super::super::chain::{self, read_header};
use super::super::damage;
use super::super::format::Format;
use super::super::input::{Input, LogFiles};
use super::super::names::{self, Next, SegmentNames};
use super::super::record::Frame;
use super::super::rescue::rest;
use super::super::segment::SegmentHeader;
use super::super::walk::{Identity, Walk, WalkStep};
use super::cursor::{AnyCursor, Cursor, Place};
use crate::Error;
use std::path::Path;

struct FramedCursor {
    header: SegmentHeader,
    walk: Walk,
}

/// Finds the segment with the record `from`, or with the first later one; `None` while no segment
/// has a record.
pub(super) fn find(files: &LogFiles, folder: &Path, from: u64) -> Result<Option<AnyCursor>, Error> {
    let names = names::all(files, folder, Format::Framed)?;
    // The last segment that begins with this record or an earlier one. A segment without a header
    // is only prepared, or the reader that comes to it finds the damage.
    let (mut low, mut high) = (0, names.len());
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        let cursor = open(files, names[middle].0, &names[middle].1)?;
        let is_before = cursor.as_ref().is_some_and(|found| found.header.first_sequence <= from);
        if is_before { low = middle } else { high = middle }
    }
    let Some((number, path)) = names.get(low) else { return Ok(None) };
    let Some(cursor) = open(files, *number, path)? else {
        if !has_durable_records(files, &names)? {
            return Ok(None);
        }
        // A writer may have begun the segment between the two looks. Its header comes first.
        return match open(files, *number, path)? {
            Some(_) => find(files, folder, from),
            None => Err(damage::error(path, 0, "this is not how a segment begins")),
        };
    };
    // The reader compares each later segment with the one before.
    let (first, first_path) = &names[0];
    if let Some(begin) = open(files, *first, first_path)? {
        chain::check_log((path, cursor.header.log_id), (first_path, begin.header.log_id))?;
    }
    Ok(Some(Box::new(cursor)))
}

fn open(files: &LogFiles, number: u64, path: &Path) -> Result<Option<FramedCursor>, Error> {
    let mut input = Input::open(files, path, true, false)?;
    let Some(header) = read_header(&mut input, number)? else {
        return Ok(None);
    };
    Ok(Some(FramedCursor { walk: Walk::new(input, &header), header }))
}

/// Tells whether segments had durable records, although no header tells what they are.
fn has_durable_records(files: &LogFiles, names: &SegmentNames) -> Result<bool, Error> {
    for (_, path) in names {
        if rest::scan_file(files, path, 0, Identity::Lost)?.durable_sequence > 0 {
            return Ok(true);
        }
    }
    Ok(false)
}

impl Cursor for FramedCursor {
    fn next(&mut self, from: u64, bytes: &mut Vec<u8>) -> Result<Option<u64>, Error> {
        loop {
            match self.walk.next()? {
                WalkStep::Batch => self.walk.skip_batch(from)?,
                WalkStep::Frame { sequence, frame: Frame::Data(own), .. } if sequence >= from => {
                    bytes.extend_from_slice(own);
                    return Ok(Some(sequence));
                }
                WalkStep::Frame { .. } => {}
                WalkStep::End => return Ok(None),
            }
        }
    }

    fn turn(&mut self, folder: &Path) -> Result<bool, Error> {
        self.walk.input.pause()?;
        let number = self.header.segment_id;
        let next = names::unless_removed(|| {
            let names = names::all(&self.walk.input.files, folder, Format::Framed)?;
            let (next, path, must_follow) = match names::next(names, number, number + 1) {
                Next::Follows(next, path) => (next, path, true),
                Next::IsLeft(next, path) => (next, path, false),
                Next::Nothing => return Ok(Some(None)),
            };
            Ok(Some(open(&self.walk.input.files, next, &path)?.map(|cursor| (cursor, must_follow))))
        })?;
        let Some((cursor, must_follow)) = next else { return Ok(false) };
        let log = |cursor: &FramedCursor| (cursor.walk.input.path.clone(), cursor.header.log_id);
        let ((path, log_id), (own_path, own_id)) = (log(&cursor), log(self));
        chain::check_log((&path, log_id), (&own_path, own_id))?;
        let is_next = !must_follow || cursor.header.first_sequence == self.walk.sequence;
        if is_next {
            *self = cursor;
        }
        Ok(is_next)
    }

    fn place(&self) -> Place<'_> {
        let Walk { input, sequence, place, .. } = &self.walk;
        Place { sequence: *sequence, path: &input.path, offset: *place }
    }

    fn look_again(&mut self) -> Result<(), Error> {
        self.walk.input.look_again()
    }

    fn lost(&mut self, folder: &Path) -> Result<Option<Error>, Error> {
        self.walk.input.pause()?;
        let SegmentHeader { segment_id, log_id, .. } = self.header;
        let found = names::unless_removed(|| {
            let mut later = names::all(&self.walk.input.files, folder, Format::Framed)?;
            later.retain(|(number, _)| *number > segment_id);
            rest::behind(&mut self.walk, log_id, &later).map(Some)
        })?;
        Ok(found.lost)
    }
}
