//! The segments of a log that is written: begun, prepared ahead, sealed, removed; and the end of
//! the last.

use super::super::batch::{self, BatchHeader};
use super::super::claim::Start;
use super::super::format::Format;
use super::super::prepare::Preparation;
use super::super::retention::SealedSegment;
use super::super::segment::{self, unix_ns};
use super::super::state::LogState;
use super::{Flush, Flusher, NextSegment, OpenSegment};
use crate::{Completion, Error, FileId, FileOptions, Op};
use std::path::PathBuf;

impl Flusher {
    /// Begins the segment of a batch that is about to be written.
    pub(super) fn begin_segment(&mut self, state: &LogState, start: Start) -> Result<(), Error> {
        if self.segment.as_ref().is_some_and(|segment| segment.number == start.segment) {
            return Ok(());
        }
        // The first of three segments is durable before the third begins: recovery reads only two.
        self.seal(state, state.durable.done())?;
        while !self.unflushed.is_empty() {
            if matches!(self.flush, Flush::Idle) {
                self.flush = Flush::Wanted(self.taken);
            }
            self.start_flush(state)?;
            self.reap(state)?;
        }
        if let Some(full) = self.segment.take() {
            state.durable.want(full.end_sequence);
            self.previous = Some((full.end, full.last_checksum));
            self.unflushed.push(full);
        }
        let (file, path) = match state.format() {
            Format::Framed => self.take_prepared(state, start.segment)?,
            Format::Lines => self.make_lines(state, start.segment)?,
        };
        self.segment = Some(OpenSegment::new(file, path, start.segment, unix_ns()));
        state.counted().segments += 1;
        Ok(())
    }

    fn make_lines(&mut self, state: &LogState, number: u64) -> Result<(FileId, PathBuf), Error> {
        let path = segment::path(&state.terms.folder, Format::Lines, number);
        let options = FileOptions { create_new: true, write: true, ..Default::default() };
        self.is_folder_dirty = true;
        Ok((self.engine.open_file(&path, &options)?, path))
    }

    /// Takes the prepared file of segment `number`, and prepares it now if that was not done ahead.
    fn take_prepared(&mut self, state: &LogState, number: u64) -> Result<(FileId, PathBuf), Error> {
        let is_ahead = self.next.preparation().is_some_and(|next| next.number == number);
        let mut is_last_try = false;
        if !is_ahead {
            self.abandon_preparing(state)?;
        }
        loop {
            match self.next.take() {
                NextSegment::Waiting(next) if next.is_ready() => return Ok((next.file, next.path)),
                NextSegment::Failed(error) if is_last_try => return Err(error),
                NextSegment::Idle => self.begin_preparing(state, number, None)?,
                // An attempt ahead of its time failed: only the next one counts.
                NextSegment::Failed(error) => self.begin_preparing(state, number, Some(error))?,
                next => {
                    self.next = next;
                    self.start_preparing(state)?;
                    self.reap(state)?;
                    continue;
                }
            }
            is_last_try = true;
        }
    }

    /// Makes the file of the next segment. `failed` is the error of an earlier attempt.
    fn begin_preparing(
        &mut self,
        state: &LogState,
        number: u64,
        failed: Option<Error>,
    ) -> Result<(), Error> {
        let terms = &state.terms;
        let path = segment::path(&terms.folder, terms.layout.format, number);
        self.is_folder_dirty = true;
        let bytes = terms.layout.segment_bytes;
        let next = Preparation::new(&mut self.engine, &path, number, terms.prepare, bytes);
        // A failed attempt whose file could not be removed either: report its error.
        let is_left = next.as_ref().is_err_and(|error| error.errno() == libc::EEXIST);
        let next = next.map_err(|error| failed.filter(|_| is_left).unwrap_or(error))?;
        self.next = NextSegment::Waiting(next);
        Ok(())
    }

    /// Prepares the next segment a step further, once the segment that is written is half full.
    pub(super) fn start_preparing(&mut self, state: &LogState) -> Result<(), Error> {
        if matches!(self.next, NextSegment::Idle) && state.format() == Format::Framed {
            let segment_bytes = state.terms.layout.segment_bytes;
            let half_full = self.segment.as_ref().filter(|segment| segment.end * 2 > segment_bytes);
            let Some(number) = half_full.map(|segment| segment.number + 1) else { return Ok(()) };
            if let Err(error) = self.begin_preparing(state, number, None) {
                self.next = NextSegment::Failed(error);
            }
        }
        self.next = match self.next.take() {
            NextSegment::Waiting(mut next) if !next.is_ready() => {
                next.start(&mut self.engine)?;
                NextSegment::InFlight(next)
            }
            next => next,
        };
        Ok(())
    }

    pub(super) fn settle_preparation(&mut self, completion: Completion) {
        let NextSegment::InFlight(mut next) = self.next.take() else {
            unreachable!("a preparation is in flight")
        };
        self.next = match next.complete(completion) {
            Ok(()) => NextSegment::Waiting(next),
            Err(error) => {
                next.abandon(&mut self.engine);
                NextSegment::Failed(error)
            }
        };
    }

    fn abandon_preparing(&mut self, state: &LogState) -> Result<(), Error> {
        while matches!(self.next, NextSegment::InFlight(_)) {
            self.reap(state)?;
        }
        match self.next.take() {
            NextSegment::Waiting(next) => next.abandon(&mut self.engine),
            next => self.next = next,
        }
        Ok(())
    }

    /// Closes the full segments that are durable, and applies retention.
    pub(super) fn seal(&mut self, state: &LogState, durable: u64) -> Result<(), Error> {
        let is_durable =
            |segment: &OpenSegment| !segment.is_dirty && segment.end_sequence <= durable;
        while self.unflushed.first().is_some_and(is_durable) {
            let OpenSegment { file, path, end_sequence, .. } = self.unflushed.remove(0);
            let bytes = self.engine.file_len(file)?;
            self.engine.close_file(file)?;
            let written_at_ns = unix_ns();
            self.retention.push(SealedSegment { path, bytes, end_sequence, written_at_ns });
        }
        self.retain(state);
        Ok(())
    }

    fn retain(&mut self, state: &LogState) {
        let active_bytes = self.segment.as_ref().map_or(0, |segment| segment.end);
        while let Some(oldest) = self.retention.excess(active_bytes, state.durable.done()) {
            if let Err(error) = self.engine.remove(&oldest.path) {
                log::warn!("retention could not remove a segment: {error}");
                return;
            }
            let mut counted = state.counted();
            counted.first_sequence = oldest.end_sequence;
            counted.removed += 1;
            self.retention.forget_oldest();
        }
    }

    /// Ends a log that takes no more records: makes everything durable, marks the end with a last
    /// batch, and cuts off the space behind it.
    pub(in crate::log) fn close(&mut self, state: &LogState) -> Result<(), Error> {
        let end = state.next_sequence();
        state.durable.want(end);
        self.run(state, &|| state.durable.done() >= end);
        state.check()?;
        // Operations can be in flight even if there was nothing to flush.
        self.reap_all(state)?;
        self.abandon_preparing(state)?;
        if state.format() == Format::Framed {
            self.write_closing_batch(state)?;
        }
        if let Some(segment) = self.segment.take() {
            self.engine.close_file(segment.file)?;
        }
        self.engine.sync_folder(&state.terms.folder)
    }

    fn write_closing_batch(&mut self, state: &LogState) -> Result<(), Error> {
        let Some(segment) = &self.segment else { return Ok(()) };
        let layout = &state.terms.layout;
        let (file, seed) = (segment.file, segment::seed(layout.log_id, segment.number));
        let offset = segment.end.next_multiple_of(layout.block_bytes);
        let mut buffer = self.engine.lease()?;
        buffer.set_len(layout.block_bytes as usize);
        buffer.fill(0);
        let header = BatchHeader {
            bytes: batch::HEADER_BYTES as u32,
            count: 0,
            first_sequence: self.taken,
            durable_sequence: self.taken,
            written_at_ns: unix_ns(),
            after_cut: std::mem::take(&mut self.after_cut),
            closed: true,
        };
        header.encode(&mut buffer, seed);
        self.engine.queue(0, Op::Write { file, offset, buffer, durable: false });
        self.engine.drain()?;
        self.engine.truncate(file, offset + batch::HEADER_BYTES as u64)?;
        self.engine.flush(file)?;
        state.counted().flushes += 1;
        Ok(())
    }
}

impl NextSegment {
    fn take(&mut self) -> NextSegment {
        std::mem::replace(self, NextSegment::Idle)
    }

    fn preparation(&self) -> Option<&Preparation> {
        match self {
            NextSegment::InFlight(next) | NextSegment::Waiting(next) => Some(next),
            NextSegment::Idle | NextSegment::Failed(_) => None,
        }
    }
}
