//! A reader's position in a framed log.

use super::super::chain::{self, read_header};
use super::super::damage;
use super::super::format::Format;
use super::super::input::{Input, LogFiles, ReadBy};
use super::super::names::{self, Next, SegmentNames};
use super::super::record::{self, Frame};
use super::super::rescue::{end, rest};
use super::super::seek;
use super::super::segment::{self, SegmentHeader};
use super::super::walk::{Identity, Walk, WalkStep};
use super::cursor::{AnyCursor, Cursor, Place};
use super::index::{IndexPlace, LogIndex};
use crate::Error;
use std::path::{Path, PathBuf};

struct FramedCursor {
    header: SegmentHeader,
    walk: Walk,
    /// The offset and the length of the bytes of the last record.
    record: (u64, usize),
    /// The places of a reader that was moved.
    index: Option<LogIndex>,
}

/// Finds the segment with the record `from`, or with the first later one; `None` while no segment
/// has a record.
pub(super) fn find(files: &LogFiles, folder: &Path, from: u64) -> Result<Option<AnyCursor>, Error> {
    let found = find_cursor(files, folder, from, ReadBy::Order)?;
    Ok(found.map(|cursor| -> AnyCursor { Box::new(cursor) }))
}

fn find_cursor(
    files: &LogFiles,
    folder: &Path,
    from: u64,
    by: ReadBy,
) -> Result<Option<FramedCursor>, Error> {
    let names = names::all(files, folder, Format::Framed)?;
    // The last segment that begins with this record or an earlier one. A segment without a header
    // is only prepared, or the reader that comes to it finds the damage.
    let (mut low, mut high) = (0, names.len());
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        let cursor = open(files, names[middle].0, &names[middle].1, by)?;
        let is_before = cursor.as_ref().is_some_and(|found| found.header.first_sequence <= from);
        if is_before { low = middle } else { high = middle }
    }
    let Some((number, path)) = names.get(low) else { return Ok(None) };
    let Some(mut cursor) = open(files, *number, path, by)? else {
        if !has_durable_records(files, &names)? {
            return Ok(None);
        }
        // A writer may have begun the segment between the two looks. Its header comes first.
        return match open(files, *number, path, by)? {
            Some(_) => find_cursor(files, folder, from, by),
            None => Err(damage::error(path, 0, "this is not how a segment begins")),
        };
    };
    // The reader compares each later segment with the one before.
    let (first, first_path) = &names[0];
    if low > 0
        && let Some(begin) = open(files, *first, first_path, by)?
    {
        chain::check_log((path, cursor.header.log_id), (first_path, begin.header.log_id))?;
    }
    seek::seek(&mut cursor.walk, from, || durable_sequence(files, &names[low..]))?;
    Ok(Some(cursor))
}

/// Returns a sequence: the records of the first of these segments that are before it were durable,
/// as the segments state.
fn durable_sequence(files: &LogFiles, names: &[(u64, PathBuf)]) -> Result<u64, Error> {
    // A writer flushes a segment before it begins the next but one.
    if let Some((number, path)) = names.get(2)
        && let Some(next_but_one) = open(files, *number, path, ReadBy::Order)?
    {
        return Ok(next_but_one.header.first_sequence);
    }
    let segments = chain::read_headers(files, &names[..names.len().min(2)])?;
    if let Some(walk) = end::closed(files, &segments)? {
        return Ok(walk.sequence);
    }
    let first_batches = segments.iter().filter_map(|segment| segment.first_batch);
    Ok(first_batches.map(|batch| batch.durable_sequence).max().unwrap_or(0))
}

fn open(
    files: &LogFiles,
    number: u64,
    path: &Path,
    by: ReadBy,
) -> Result<Option<FramedCursor>, Error> {
    let mut input = Input::open_to_read(files, path, by)?;
    let Some(header) = read_header(&mut input, number)? else {
        return Ok(None);
    };
    let walk = Walk::new(input, &header);
    Ok(Some(FramedCursor { header, walk, record: (0, 0), index: None }))
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

impl FramedCursor {
    /// Moves to a place where a reader was before. Returns whether the log goes on there.
    fn jump(&mut self, folder: &Path, place: IndexPlace) -> Result<bool, Error> {
        if place.number != self.header.segment_id {
            let path = segment::path(folder, Format::Framed, place.number);
            let log_id = self.header.log_id;
            match open(&self.walk.input.files, place.number, &path, ReadBy::Place) {
                Ok(Some(cursor)) if cursor.header.log_id == log_id => *self = cursor,
                Ok(_) => return Ok(false),
                Err(error) if error.errno() == libc::ENOENT => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        self.walk.jump_back(place.offset, place.sequence, place.open);
        let goes_on = !matches!(self.walk.next()?, WalkStep::End);
        self.walk.jump_back(place.offset, place.sequence, place.open);
        Ok(goes_on)
    }
}

impl Cursor for FramedCursor {
    fn next(&mut self, from: u64) -> Result<Option<u64>, Error> {
        loop {
            if let Some(index) = &mut self.index {
                index.note(self.header.segment_id, &self.walk);
            }
            match self.walk.next()? {
                WalkStep::Batch => self.walk.skip_batch(from)?,
                WalkStep::Frame { sequence, offset, frame: Frame::Data(own) }
                    if sequence >= from =>
                {
                    self.record = (offset + record::HEADER_BYTES as u64, own.len());
                    return Ok(Some(sequence));
                }
                WalkStep::Frame { .. } => {}
                WalkStep::End => return Ok(None),
            }
        }
    }

    fn record(&self) -> &[u8] {
        let (offset, len) = self.record;
        self.walk.input.held(offset, len)
    }

    fn seek(&mut self, folder: &Path, from: u64) -> Result<bool, Error> {
        self.walk.input.pause()?;
        let mut index = self.index.take().unwrap_or_else(LogIndex::new);
        match index.near(from) {
            Some(place) if self.jump(folder, place)? => {
                self.index = Some(index);
                return Ok(true);
            }
            Some(place) => index.forget(place.number),
            None => {}
        }
        let files = self.walk.input.files.clone();
        let found =
            names::unless_removed(|| find_cursor(&files, folder, from, ReadBy::Place).map(Some))?;
        let Some(cursor) = found else { return Ok(false) };
        *self = FramedCursor { index: Some(index), ..cursor };
        Ok(true)
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
            let by = if self.index.is_some() { ReadBy::Place } else { ReadBy::Order };
            let cursor = open(&self.walk.input.files, next, &path, by)?;
            Ok(Some(cursor.map(|cursor| (cursor, must_follow))))
        })?;
        let Some((cursor, must_follow)) = next else { return Ok(false) };
        let log = |cursor: &FramedCursor| (cursor.walk.input.path.clone(), cursor.header.log_id);
        let ((path, log_id), (own_path, own_id)) = (log(&cursor), log(self));
        chain::check_log((&path, log_id), (&own_path, own_id))?;
        let is_next = !must_follow || cursor.header.first_sequence == self.walk.sequence;
        if is_next {
            *self = FramedCursor { index: self.index.take(), ..cursor };
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
