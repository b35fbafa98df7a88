//! A reader's place in a framed log.

use super::super::input::Input;
use super::super::names::{self, Next};
use super::super::record::Frame;
use super::super::recovery::damaged;
use super::super::rest::{self, Behind, Identity};
use super::super::segment::{HEADER_BYTES, NotASegment, SegmentHeader};
use super::super::walk::{Step, Walk};
use super::super::{Format, chain};
use crate::{Engine, Error};
use std::path::{Path, PathBuf};

/// A segment and the place in it.
pub(super) struct Cursor {
    header: SegmentHeader,
    walk: Walk,
    input: Input,
}

impl Cursor {
    /// Finds the segment that has the record `from`, or the first one behind it; `None` where there is no
    /// segment yet in which something was written.
    pub(super) fn find(
        engine: &mut Engine,
        folder: &Path,
        from: u64,
    ) -> Result<Option<Cursor>, Error> {
        let names = names::all(engine, folder, Format::Framed)?;
        // The last that begins with this record or one before it. One that does not begin as a segment
        // is only prepared, or is found to be damaged by who comes to it.
        let (mut low, mut high) = (0, names.len());
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            match open(engine, names[middle].0, &names[middle].1)? {
                Some(cursor) if cursor.header.first_sequence <= from => {
                    cursor.input.close(engine)?;
                    low = middle;
                }
                other => {
                    other.map_or(Ok(()), |cursor| cursor.input.close(engine))?;
                    high = middle;
                }
            }
        }
        let Some((number, path)) = names.get(low) else { return Ok(None) };
        match open(engine, *number, path)? {
            None => unreadable_first(engine, folder, &names),
            found => Ok(found),
        }
    }

    /// Appends the next record to `bytes`, `from` or one behind it. `None` where the segment ends, as far
    /// as it was read.
    pub(super) fn next(
        &mut self,
        engine: &mut Engine,
        from: u64,
        bytes: &mut Vec<u8>,
    ) -> Result<Option<u64>, Error> {
        loop {
            match self.walk.next(engine, &mut self.input)? {
                Step::Batch => self.walk.skip_batch(engine, &mut self.input, from)?,
                Step::Frame { sequence, frame: Frame::Data(own), .. } if sequence >= from => {
                    bytes.extend_from_slice(own);
                    return Ok(Some(sequence));
                }
                Step::Frame { .. } => {}
                Step::End => return Ok(None),
            }
        }
    }

    /// Goes on to the next segment, if the log goes on there.
    pub(super) fn turn(&mut self, engine: &mut Engine, folder: &Path) -> Result<bool, Error> {
        self.input.pause(engine)?;
        let number = self.header.segment_id;
        let next = names::unless_removed(|| {
            let names = names::all(engine, folder, Format::Framed)?;
            let (next, path, must_follow) = match names::next(names, number, number + 1) {
                Next::Follows(next, path) => (next, path, true),
                Next::IsLeft(next, path) => (next, path, false),
                Next::Nothing => return Ok(Some(None)),
            };
            Ok(Some(open(engine, next, &path)?.map(|cursor| (cursor, must_follow))))
        })?;
        let Some((cursor, must_follow)) = next else { return Ok(false) };
        let is_next = cursor.header.log_id == self.header.log_id
            && (!must_follow || cursor.header.first_sequence == self.walk.sequence);
        if !is_next {
            cursor.input.close(engine)?;
            return Ok(false);
        }
        std::mem::replace(self, cursor).input.close(engine)?;
        Ok(true)
    }

    /// Forgets what was read of what comes next: somebody may have written it.
    pub(super) fn look_again(&mut self, engine: &mut Engine) -> Result<(), Error> {
        self.input.look_again(engine)
    }

    /// The error to tell of where the next record was durable once and can't be read.
    pub(super) fn lost(
        &mut self,
        engine: &mut Engine,
        folder: &Path,
    ) -> Result<Option<Error>, Error> {
        self.input.pause(engine)?;
        let (number, log_id) = (self.header.segment_id, self.header.log_id);
        let Behind { lost, .. } = names::unless_removed(|| {
            let mut later = names::all(engine, folder, Format::Framed)?;
            later.retain(|(of, _)| *of > number);
            rest::behind(engine, &mut self.input, &self.walk, log_id, &later).map(Some)
        })?;
        let what = format!("record {} can't be read, and was durable once", self.walk.sequence);
        Ok(lost.map(|(path, offset)| damaged(folder, &path, offset, &what)))
    }
}

/// Opens a segment; `None` where the file does not begin as this one.
fn open(engine: &mut Engine, number: u64, path: &Path) -> Result<Option<Cursor>, Error> {
    let mut input = Input::open(engine, path, true, false)?;
    match SegmentHeader::decode(input.bytes(engine, 0, HEADER_BYTES)?) {
        Ok(header) if header.segment_id == number => {
            Ok(Some(Cursor { walk: Walk::new(&header), header, input }))
        }
        Err(NotASegment::Version(version)) => Err(chain::of_another_version(path, version)),
        Ok(_) | Err(NotASegment::Damaged) => {
            input.close(engine)?;
            Ok(None)
        }
    }
}

/// The first segment does not begin as one: nothing was written into it yet, or it is damaged.
fn unreadable_first(
    engine: &mut Engine,
    folder: &Path,
    names: &[(u64, PathBuf)],
) -> Result<Option<Cursor>, Error> {
    for (_, path) in names {
        let rest = rest::scan_file(engine, path, 0, Identity::Lost)?;
        if rest.durable_sequence > 0 {
            return Err(damaged(folder, &names[0].1, 0, "this is not how a segment begins"));
        }
    }
    Ok(None)
}
