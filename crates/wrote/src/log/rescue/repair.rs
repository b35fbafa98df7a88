//! The repair of a log, which rewrites damaged segments with gaps for lost records.

use super::salvage::{Event, salvage};
use super::summary::LogSummary;
use super::verify::verify;
use crate::engine::{Found, exchange, folder_of};
use crate::error::{Action, Tried};
use crate::log::aside;
use crate::log::batch::{self, BatchHeader};
use crate::log::input::{Input, LogFiles};
use crate::log::names;
use crate::log::record::{self, Frame};
use crate::log::segment::{self, SegmentHeader, new_log_id};
use crate::metadata::{Inherited, Metadata, mode_at_first};
use crate::progress::unwatched;
use crate::staged::{StagedFile, complete};
use crate::{Engine, Error, FileOptions};
use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

/// The approximate length of a rewritten batch in bytes.
const BATCH_BYTES: usize = 256 << 10;

pub(super) fn repair(files: &LogFiles) -> Result<LogSummary, Error> {
    let put_back = put_back(files)?;
    let mut found = verify(files, &mut unwatched)?;
    found.put_back = put_back;
    let damaged = found.to_repair();
    if damaged.is_empty() {
        return Ok(found);
    }
    let mut writer = Rebuilder {
        // This is a separate engine, because the salvage has reads in flight.
        files: LogFiles::open_in(None, &files.folder)?,
        damaged,
        log_id: None,
        open: None,
        kept_aside: Vec::new(),
    };
    let rewritten = salvage(files, &mut |event| writer.take(event));
    if let Some(begun) = writer.open.take() {
        begun.staged.abandon(&mut writer.files.engine());
    }
    rewritten?;
    found.kept_aside = writer.kept_aside;
    Ok(found)
}

/// Gives each segment the name that its header states, if another segment has that name or no file
/// has it. Changes no name if two segments state the same name, if the segments belong to different
/// logs, or if a stated number is higher than the one after the last segment's. Returns the new
/// paths of the renamed segments.
///
/// The names of two files are exchanged in one step. So after a power loss at any moment, each file
/// still has the name of a segment, and another repair can continue.
fn put_back(files: &LogFiles) -> Result<Vec<PathBuf>, Error> {
    let mut owners = BTreeMap::new();
    let mut headers = Vec::new();
    for (number, path) in names::all(files)? {
        let mut input = Input::open(files, &path, true, false)?;
        let header = SegmentHeader::decode(input.bytes(0, segment::HEADER_BYTES)?).ok();
        headers.extend(header);
        owners.insert(number, header.map_or(number, |header| header.segment_id));
    }
    let ids: HashSet<u64> = headers.iter().map(|header| header.segment_id).collect();
    let logs: HashSet<u64> = headers.iter().map(|header| header.log_id).collect();
    let mut put_back = Vec::new();
    let is_near = |id: &u64| owners.last_key_value().is_some_and(|(last, _)| *id <= last + 1);
    if ids.len() < headers.len() || logs.len() > 1 || !ids.iter().all(is_near) {
        return Ok(put_back);
    }
    for number in owners.keys().copied().collect::<Vec<_>>() {
        while let Some(&own) = owners.get(&number).filter(|own| **own != number) {
            let [from, to] = [number, own].map(|number| segment::path(files.path(), number));
            match owners.insert(own, own) {
                Some(other) => {
                    exchange(&files.folder, &from, &to).tried(&from, Action::Rename)?;
                    // A damaged file without a header belongs under the name that it has now.
                    owners.insert(number, if other == own { number } else { other });
                }
                None => {
                    files.engine().rename(&from, &to, false)?;
                    owners.remove(&number);
                }
            }
            put_back.push(to);
        }
    }
    if !put_back.is_empty() {
        files.engine().sync_folder(files.path())?;
    }
    Ok(put_back)
}

/// A writer that rewrites the damaged segments while a salvage reads the log.
struct Rebuilder {
    files: LogFiles,
    damaged: HashSet<PathBuf>,
    /// The log's random number; a new one if no header is left.
    log_id: Option<u64>,
    open: Option<NewSegment>,
    kept_aside: Vec<PathBuf>,
}

struct NewSegment {
    path: PathBuf,
    staged: StagedFile,
    /// The metadata of the replaced file.
    old: Option<Inherited>,
    seed: u32,
    block_bytes: u64,
    place: u64,
    next_sequence: u64,
    /// The next batch: the space for its header, then its records.
    batch: Vec<u8>,
    count: u32,
}

impl Rebuilder {
    fn take(&mut self, event: Event) -> Result<(), Error> {
        match event {
            Event::Begin { path, header, .. } => self.begin(path, header),
            Event::Frame { sequence, frame, .. } => {
                let is_its_place = |segment: &NewSegment| segment.next_sequence == sequence;
                debug_assert!(self.open.as_ref().is_none_or(is_its_place), "gaps are filled");
                self.append(frame)
            }
            Event::Lost(damage) => {
                (0..damage.records.unwrap_or(0)).try_for_each(|_| self.append(Frame::Skipped(0)))
            }
            Event::Garbage(..) => Ok(()),
            Event::End { .. } => self.finish(),
        }
    }

    fn begin(&mut self, path: &Path, header: &SegmentHeader) -> Result<(), Error> {
        let known = Some(header.log_id).filter(|&log_id| log_id != 0);
        let log_id = *self.log_id.get_or_insert(known.unwrap_or_else(new_log_id));
        if !self.damaged.contains(path) {
            return Ok(());
        }
        let old = Metadata::of_replaced(path)?;
        let options = FileOptions::new().mode(mode_at_first(old.as_ref()));
        let staged = StagedFile::new(&mut self.files.engine(), path, true, &options)?;
        // The new file is not recycled.
        let header = SegmentHeader { log_id, is_recycled: false, ..*header };
        let mut beginning = [0; segment::HEADER_BYTES];
        header.encode(&mut beginning);
        let file = staged.file;
        self.open = Some(NewSegment {
            path: path.to_owned(),
            staged,
            old,
            seed: header.seed(),
            block_bytes: u64::from(header.block_bytes),
            place: segment::HEADER_BYTES as u64,
            next_sequence: header.first_sequence,
            batch: vec![0; batch::HEADER_BYTES],
            count: 0,
        });
        self.files.engine().write(file, 0, &beginning)
    }

    /// Appends a record or a gap to the new segment, if one is being written.
    fn append(&mut self, frame: Frame) -> Result<(), Error> {
        let Some(segment) = &mut self.open else { return Ok(()) };
        if segment.batch.len() + frame.len() > BATCH_BYTES {
            segment.write_batch(&mut self.files.engine())?;
        }
        record::copy(frame, &mut segment.batch, segment.seed, segment.next_sequence);
        segment.next_sequence += 1;
        segment.count += 1;
        Ok(())
    }

    /// Keeps the old segment aside, and replaces it with the rewritten one.
    fn finish(&mut self) -> Result<(), Error> {
        let Some(segment) = &mut self.open else { return Ok(()) };
        let files = &self.files;
        segment.write_batch(&mut files.engine())?;
        complete(&mut files.engine(), segment.staged.file, segment.old.as_ref(), true)?;
        let is_there = files.engine().locate(&segment.path)?.found == Found::File;
        if is_there {
            let old = Input::open(files, &segment.path, false, false)?;
            self.kept_aside.push(keep_damaged(old)?);
        }
        let segment = self.open.take().expect("it was examined");
        segment.staged.put(&mut files.engine(), true)
    }
}

impl NewSegment {
    /// Writes the current batch, and begins another one at the next block.
    fn write_batch(&mut self, engine: &mut Engine) -> Result<(), Error> {
        if self.count == 0 {
            return Ok(());
        }
        let first_sequence = self.next_sequence - u64::from(self.count);
        let header = BatchHeader {
            bytes: self.batch.len() as u32,
            count: self.count,
            first_sequence,
            // Every record in the segment is flushed before a reader can see it.
            durable_sequence: first_sequence,
            ..BatchHeader::default()
        };
        header.encode(&mut self.batch, self.seed);
        engine.write(self.staged.file, self.place, &self.batch)?;
        self.place = (self.place + self.batch.len() as u64).next_multiple_of(self.block_bytes);
        self.batch.truncate(batch::HEADER_BYTES);
        self.count = 0;
        Ok(())
    }
}

/// Copies a damaged file aside, closes it, and returns the path of the copy.
pub(in crate::log) fn keep_damaged(mut old: Input) -> Result<PathBuf, Error> {
    let len_bytes = old.len_bytes;
    let copy = aside::copy(&mut old, 0, len_bytes, "damaged")?;
    // The copy must be durable before its source is removed.
    old.files.engine().sync_folder(folder_of(&old.path))?;
    Ok(copy)
}
