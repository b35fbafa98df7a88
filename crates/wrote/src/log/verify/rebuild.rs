//! Repair of a framed log: damaged segments are written anew, with gaps where records are lost.

use super::super::batch::{self, BatchHeader};
use super::super::input::Input;
use super::super::record::{self, Frame};
use super::super::recovery::{aside, new_log_id};
use super::super::segment::{self, SegmentHeader};
use super::salvage::{Event, salvage};
use super::{Damage, Repaired, options};
use crate::staged::Staged;
use crate::{Engine, Error, FileOptions, Found, Op};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// About how many bytes a batch gets that is written anew.
const BATCH_BYTES: usize = 256 << 10;

pub(super) fn repair(engine: &mut Engine, folder: &Path) -> Result<Repaired, Error> {
    let mut repaired = Repaired { damage: Vec::new(), kept_aside: Vec::new(), records: 0 };
    salvage(engine, folder, &mut |event| {
        match event {
            Event::Lost(damage) => repaired.damage.push(Damage::clone(damage)),
            Event::Frame { frame: Frame::Data(_), .. } => repaired.records += 1,
            _ => {}
        }
        Ok(())
    })?;
    if repaired.damage.is_empty() {
        return Ok(repaired);
    }
    let damaged = repaired.damage.iter().map(|damage| damage.path.clone()).collect();
    // The other engine has reads under way.
    let mut writer = Writer {
        engine: Engine::open(&options())?,
        damaged,
        log_id: None,
        open: None,
        kept_aside: Vec::new(),
    };
    salvage(engine, folder, &mut |event| writer.take(event))?;
    repaired.kept_aside = writer.kept_aside;
    Ok(repaired)
}

/// Writes the damaged ones of the segments that pass by.
struct Writer {
    engine: Engine,
    damaged: HashSet<PathBuf>,
    /// The log's number, or one by chance where none is left.
    log_id: Option<u64>,
    open: Option<Segment>,
    kept_aside: Vec<PathBuf>,
}

/// A segment that is written anew.
struct Segment {
    path: PathBuf,
    staged: Staged,
    seed: u32,
    block_bytes: u64,
    /// Where the next batch begins.
    place: u64,
    next_sequence: u64,
    batch: Batch,
}

/// A batch that is gathered: its header's place, and records.
#[derive(Default)]
struct Batch {
    bytes: Vec<u8>,
    count: u32,
}

impl Writer {
    fn take(&mut self, event: Event) -> Result<(), Error> {
        match event {
            Event::Begin { path, header, .. } => self.begin(path, header),
            Event::Frame { sequence, frame, .. } => {
                let is_its_place = |segment: &Segment| segment.next_sequence == sequence;
                debug_assert!(self.open.as_ref().is_none_or(is_its_place), "gaps are filled");
                self.append(frame)
            }
            Event::Lost(damage) => {
                (0..damage.records.unwrap_or(0)).try_for_each(|_| self.append(Frame::Skipped(0)))
            }
            Event::End { .. } => self.finish(),
        }
    }

    fn begin(&mut self, path: &Path, header: &SegmentHeader) -> Result<(), Error> {
        let known = Some(header.log_id).filter(|&log_id| log_id != 0);
        let log_id = *self.log_id.get_or_insert(known.unwrap_or_else(new_log_id));
        if !self.damaged.contains(path) {
            return Ok(());
        }
        let options = FileOptions::default();
        let staged = Staged::new(&mut self.engine, path, true, &options)?;
        let header = SegmentHeader { log_id, ..*header };
        let mut beginning = vec![0; segment::HEADER_BYTES];
        header.encode(&mut beginning);
        write(&mut self.engine, &staged, 0, &beginning)?;
        self.open = Some(Segment {
            path: path.to_owned(),
            staged,
            seed: header.seed(),
            block_bytes: u64::from(header.block_bytes),
            place: segment::HEADER_BYTES as u64,
            next_sequence: header.first_sequence,
            batch: Batch::default(),
        });
        Ok(())
    }

    /// Appends a record, or a place that is passed over, to the segment that is written anew, if one is.
    fn append(&mut self, frame: Frame) -> Result<(), Error> {
        let Some(segment) = &mut self.open else { return Ok(()) };
        if segment.batch.bytes.len() + frame.len() > BATCH_BYTES {
            segment.write_batch(&mut self.engine)?;
        }
        let bytes = &mut segment.batch.bytes;
        if bytes.is_empty() {
            bytes.resize(batch::HEADER_BYTES, 0);
        }
        let start = bytes.len();
        bytes.resize(start + frame.len(), 0);
        match frame {
            Frame::Data(own) => {
                bytes[start + record::HEADER_BYTES..].copy_from_slice(own);
                record::seal(&mut bytes[start..], segment.seed, segment.next_sequence);
            }
            Frame::Skipped(_) => {
                record::skip(&mut bytes[start..], segment.seed, segment.next_sequence);
            }
        }
        segment.next_sequence += 1;
        segment.batch.count += 1;
        Ok(())
    }

    /// Gives the segment its place, with the one that was there kept aside.
    fn finish(&mut self) -> Result<(), Error> {
        let Some(mut segment) = self.open.take() else { return Ok(()) };
        let engine = &mut self.engine;
        segment.write_batch(engine)?;
        engine.flush(segment.staged.file)?;
        if engine.locate(&segment.path)?.found == Found::File {
            let mut old = Input::open(engine, &segment.path, false, false)?;
            let len_bytes = old.len_bytes;
            let copy = aside::copy(engine, &mut old, 0, len_bytes, "damaged")?;
            old.close(engine)?;
            self.kept_aside.push(copy);
            // The copy must be found before what it was copied from is gone.
            engine.sync_folder(crate::engine::folder_of(&segment.path))?;
        }
        segment.staged.put(engine, true)
    }
}

impl Segment {
    /// Writes the batch that was gathered, and begins another at the next block.
    fn write_batch(&mut self, engine: &mut Engine) -> Result<(), Error> {
        let Batch { mut bytes, count } = std::mem::take(&mut self.batch);
        if count == 0 {
            return Ok(());
        }
        let first_sequence = self.next_sequence - u64::from(count);
        let header = BatchHeader {
            bytes: bytes.len() as u32,
            count,
            first_sequence,
            // All of it is flushed before anybody sees it.
            durable_sequence: first_sequence,
            ..BatchHeader::default()
        };
        header.encode(&mut bytes, self.seed);
        write(engine, &self.staged, self.place, &bytes)?;
        self.place = (self.place + bytes.len() as u64).next_multiple_of(self.block_bytes);
        Ok(())
    }
}

fn write(engine: &mut Engine, staged: &Staged, offset: u64, bytes: &[u8]) -> Result<(), Error> {
    let mut place = offset;
    for piece in bytes.chunks(engine.pool().buffer_bytes()) {
        let mut buffer = engine.lease()?;
        buffer.set_len(piece.len());
        buffer.copy_from_slice(piece);
        engine.queue(0, Op::Write { file: staged.file, offset: place, buffer, durable: false });
        place += piece.len() as u64;
    }
    engine.drain()
}
