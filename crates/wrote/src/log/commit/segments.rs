//! The segments of a log that is written: begun, made ready ahead, closed when they are full, removed when they
//! are too many; and the end of the last.

use super::super::batch::{self, BatchHeader};
use super::super::claim::Start;
use super::super::prepare::Preparing;
use super::super::recovery::Sealed;
use super::super::shared::Shared;
use super::super::{Format, segment};
use super::{Flusher, Segment, add, as_ns, now_ns};
use crate::{Error, FileId, FileOptions, Op};
use std::path::PathBuf;
use std::sync::atomic::Ordering;

impl Flusher {
    /// The first batch of a segment is about to be written.
    pub(super) fn begin_segment(&mut self, shared: &Shared, start: Start) -> Result<(), Error> {
        if self.segment.as_ref().is_some_and(|segment| segment.number == start.segment) {
            return Ok(());
        }
        // Before a third is begun the first is durable: recovery never has to look further back.
        self.seal(shared, shared.durable.done())?;
        while !self.unflushed.is_empty() {
            self.flush_at = Some(self.flush_at.unwrap_or(self.taken));
            self.start_flush(shared)?;
            self.reap(shared)?;
        }
        if let Some(full) = self.segment.take() {
            shared.durable.want(full.end_sequence);
            self.previous = Some((full.end, full.last_checksum));
            self.unflushed.push(full);
        }
        let (file, path) = match self.format {
            Format::Framed => self.prepared(shared, start.segment)?,
            Format::Lines => self.make_lines(start.segment)?,
        };
        self.segment = Some(Segment::new(file, path, start.segment, now_ns()));
        add(&shared.counters.segments, 1);
        Ok(())
    }

    fn make_lines(&mut self, number: u64) -> Result<(FileId, PathBuf), Error> {
        let path = segment::path(&self.folder, self.format, number);
        let options = FileOptions { create_new: true, write: true, ..Default::default() };
        self.is_folder_dirty = true;
        Ok((self.engine.open_file(&path, &options)?, path))
    }

    /// The file of the next segment, made ready now where that was not done before.
    pub(super) fn prepared(
        &mut self,
        shared: &Shared,
        number: u64,
    ) -> Result<(FileId, PathBuf), Error> {
        if self.preparing.as_ref().is_some_and(|preparing| preparing.number != number) {
            self.abandon_preparing(shared)?;
        }
        if self.preparing.is_none() {
            self.begin_preparing(number)?;
        }
        while self.preparing.as_ref().is_some_and(|preparing| !preparing.is_ready()) {
            self.start_preparing()?;
            self.reap(shared)?;
        }
        match self.preparing.take() {
            Some(Preparing { file, path, .. }) => Ok((file, path)),
            // It failed in flight, ahead of its time: now it counts.
            None => {
                self.begin_preparing(number)?;
                let mut preparing = self.preparing.take().expect("was just begun");
                self.wait_for_batches(shared)?;
                if let Err(error) = preparing.finish(&mut self.engine) {
                    preparing.abandon(&mut self.engine);
                    return Err(error);
                }
                Ok((preparing.file, preparing.path))
            }
        }
    }

    pub(super) fn begin_preparing(&mut self, number: u64) -> Result<(), Error> {
        let path = segment::path(&self.folder, self.format, number);
        self.is_folder_dirty = true;
        let (how, bytes) = (self.prepare, self.segment_bytes);
        match Preparing::new(&mut self.engine, &path, number, how, bytes) {
            Ok(preparing) => self.preparing = Some(preparing),
            // What failed before could not be removed either: that is the error to tell of.
            Err(error) if error.errno() == libc::EEXIST => {
                return Err(self.failed_to_prepare.clone().unwrap_or(error));
            }
            Err(error) => return Err(error),
        }
        self.failed_to_prepare = None;
        Ok(())
    }

    /// The next segment is made ready when this one is half full.
    pub(super) fn start_preparing(&mut self) -> Result<(), Error> {
        if self.is_preparing || self.format == Format::Lines {
            return Ok(());
        }
        if self.preparing.is_none() {
            let half_full =
                self.segment.as_ref().filter(|segment| segment.end * 2 > self.segment_bytes);
            let Some(number) = half_full.map(|segment| segment.number + 1) else { return Ok(()) };
            if self.failed_to_prepare.is_some() {
                return Ok(());
            }
            if let Err(error) = self.begin_preparing(number) {
                self.failed_to_prepare = Some(error);
                return Ok(());
            }
        }
        let preparing = self.preparing.as_mut().expect("was begun");
        if !preparing.is_ready() {
            preparing.start(&mut self.engine)?;
            self.is_preparing = true;
        }
        Ok(())
    }

    pub(super) fn abandon_preparing(&mut self, shared: &Shared) -> Result<(), Error> {
        while self.is_preparing {
            self.reap(shared)?;
        }
        if let Some(preparing) = self.preparing.take() {
            preparing.abandon(&mut self.engine);
        }
        Ok(())
    }

    /// Segments that are full and durable are closed; those that are too many are removed.
    pub(super) fn seal(&mut self, shared: &Shared, durable: u64) -> Result<(), Error> {
        let is_durable = |segment: &Segment| !segment.is_dirty && segment.end_sequence <= durable;
        while self.unflushed.first().is_some_and(is_durable) {
            let segment = self.unflushed.remove(0);
            let bytes = self.engine.file_len(segment.file)?;
            self.engine.close_file(segment.file)?;
            self.sealed_bytes += bytes;
            self.sealed.push_back(Sealed {
                path: segment.path,
                bytes,
                end_sequence: segment.end_sequence,
                written_at_ns: now_ns(),
            });
        }
        self.retain(shared);
        Ok(())
    }

    /// Removes the oldest segments where the log is too long or they are too old.
    fn retain(&mut self, shared: &Shared) {
        if self.retain_bytes.is_none() && self.retain_age.is_none() {
            return;
        }
        let used = self.segment.as_ref().map_or(0, |segment| segment.end);
        let oldest_ns = self.retain_age.map(|age| now_ns().saturating_sub(as_ns(age)));
        while let Some(oldest) = self.sealed.front() {
            let is_over = self.retain_bytes.is_some_and(|most| self.sealed_bytes + used > most);
            let is_old = oldest_ns.is_some_and(|oldest_ns| oldest.written_at_ns < oldest_ns);
            // One must be there from which recovery learns where the log was: the last that is sealed
            // goes when a record behind it is durable, and so how its segment begins.
            let is_needed = self.sealed.len() == 1 && shared.durable.done() <= oldest.end_sequence;
            if !is_over && !is_old || is_needed {
                return;
            }
            if let Err(error) = self.engine.remove(&oldest.path) {
                log::warn!("a segment that is no longer kept stays: {error}");
                return;
            }
            shared.counters.first_sequence.store(oldest.end_sequence, Ordering::Relaxed);
            add(&shared.counters.removed, 1);
            self.sealed_bytes -= oldest.bytes;
            self.sealed.pop_front();
        }
    }

    /// The end of a log that takes no more records: everything durable, a last batch that says so, and no
    /// space behind it.
    pub(in crate::log) fn close(&mut self, shared: &Shared) -> Result<(), Error> {
        let end = shared.claims.next_start().first_sequence;
        shared.durable.want(end);
        self.run(shared, &|shared| shared.durable.done() >= end);
        shared.check()?;
        // Also where there was nothing to flush any more.
        self.wait_for_batches(shared)?;
        self.abandon_preparing(shared)?;
        if self.format == Format::Framed {
            self.write_closing_batch(shared)?;
        }
        if let Some(segment) = self.segment.take() {
            self.engine.close_file(segment.file)?;
        }
        self.engine.sync_folder(&self.folder)
    }

    fn write_closing_batch(&mut self, shared: &Shared) -> Result<(), Error> {
        let Some(segment) = &self.segment else { return Ok(()) };
        let (file, number) = (segment.file, segment.number);
        let offset = segment.end.next_multiple_of(self.block_bytes);
        let mut buffer = self.engine.lease()?;
        let bytes = self.block_bytes as usize;
        buffer.set_len(bytes);
        buffer.fill(0);
        let header = BatchHeader {
            bytes: batch::HEADER_BYTES as u32,
            count: 0,
            first_sequence: self.taken,
            durable_sequence: self.taken,
            written_at_ns: now_ns(),
            after_cut: std::mem::take(&mut self.after_cut),
            closed: true,
        };
        header.encode(&mut buffer, segment::seed(self.log_id, number));
        self.engine.queue(0, Op::Write { file, offset, buffer, durable: false });
        self.engine.drain()?;
        self.engine.truncate(file, offset + batch::HEADER_BYTES as u64)?;
        self.engine.flush(file)?;
        add(&shared.counters.flushes, 1);
        Ok(())
    }
}
