//! Shortens a log being written: whole segments at its start, records at its end.

use super::super::cut::{self, CutPlace};
use super::super::format::Format;
use super::super::input::LogFiles;
use super::super::layout::Start;
use super::super::prepare;
use super::super::retention::RetainedSegment;
use super::super::segment::{self, SegmentHeader};
use super::super::state::{Goal, LogState};
use super::{Flush, Flusher, OpenSegment};
use crate::{Error, FileOptions};
use std::path::PathBuf;

impl Flusher {
    /// Removes the segments whose records are all before `sequence`, durably. Returns the first
    /// remaining record.
    pub(in crate::log) fn trim(&mut self, state: &LogState, sequence: u64) -> Result<u64, Error> {
        let is_full = |segment: &OpenSegment| segment.end_sequence <= sequence;
        if self.unflushed.iter().any(is_full) {
            self.make_durable(state, state.next_sequence())?;
            self.flush_earlier(state, 0)?;
        }
        let mut removed = Ok(());
        while let Some(oldest) =
            self.retention.before(sequence, state.durable.done(), state.released())
        {
            let oldest = oldest.clone();
            removed = self.remove_segment(state, &oldest);
            if removed.is_err() {
                break;
            }
            self.note_removed(state, oldest.end_sequence);
        }
        self.retain(state);
        // Retention does not wait for the folder.
        if self.has_removed {
            let synced = self.engine.sync_folder(&state.terms.folder);
            self.has_removed = synced.is_err();
            removed = removed.and(synced);
        }
        removed.map(|()| state.counted().first_sequence)
    }

    /// Records that the oldest segment, whose records end before `end_sequence`, is gone.
    pub(super) fn note_removed(&mut self, state: &LogState, end_sequence: u64) {
        let mut counted = state.counted();
        counted.first_sequence = end_sequence;
        counted.removed += 1;
        drop(counted);
        self.retention.forget_oldest();
        self.has_removed = true;
    }

    /// Removes record `next` and all later ones. An error before the cut leaves the log unchanged;
    /// a later one fails it, because the disk may have either state.
    pub(in crate::log) fn cut(
        &mut self,
        state: &LogState,
        files: &LogFiles,
        next: u64,
    ) -> Result<(), Error> {
        // A batch that becomes ready by this is taken below.
        let _ = state.claims.pause();
        let start = match self.cut_paused(state, files, next) {
            Ok(start) => start,
            Err(error) => {
                state.claims.resume(None);
                self.wake_for_room(state);
                return Err(error);
            }
        };
        if let Some(start) = start {
            self.taken = next;
            self.not_durable.clear();
            self.flush = Flush::Idle;
            self.after_cut = false;
            state.cut(next);
            state.claims.resume(Some(start));
        } else {
            state.claims.resume(None);
        }
        self.wake_for_room(state);
        Ok(())
    }

    fn wake_for_room(&mut self, state: &LogState) {
        self.wakeups.waiters.push(state.freed.reach(state.freed.done() + 1));
        self.wakeups.send(state);
    }

    /// Cuts the log while no batch is open. Returns where it continues; `None` if there is nothing
    /// to cut.
    fn cut_paused(
        &mut self,
        state: &LogState,
        files: &LogFiles,
        next: u64,
    ) -> Result<Option<Start>, Error> {
        while !state.claims.is_idle() || state.durable.done() < state.next_sequence() {
            self.make_durable(state, state.next_sequence())?;
            std::thread::yield_now();
        }
        // Retention may remove some now.
        self.flush_earlier(state, 0)?;
        self.reap_all(state)?;
        let (first, end) = (state.counted().first_sequence, state.next_sequence());
        if next >= end {
            return Ok(None);
        }
        if self.retention.holds_against_cut(next) {
            let because = "the log holds its sealed segments for another program; only records of \
                           the last segment can be cut off";
            return Err(Error::refused(&state.terms.folder, because));
        }
        if next < first {
            let because = format!("the records before {first} were removed: nothing is cut off");
            return Err(Error::refused(&state.terms.folder, because));
        }
        let Some(OpenSegment { number: last, .. }) = self.segment else {
            unreachable!("a log with records has a segment")
        };
        // The file of an already prepared segment is removed like a cut one's.
        let number = self.prepared_number().unwrap_or(last).max(last) + 1;
        let place = self.cut_place(state, files, next)?;
        if !SegmentHeader::can_continue(number, place.previous) {
            let because = "more segments than a cut can take off; open the log anew in between";
            return Err(Error::refused(&state.terms.folder, because));
        }
        self.cut_at(state, files, place, number, next).map(Some)
    }

    /// Writes every record before `end`, and makes it durable.
    fn make_durable(&mut self, state: &LogState, end: u64) -> Result<(), Error> {
        let lacks = state.lacks();
        state.durable.want(end);
        // An empty batch that was closed is taken too.
        let is_enough = || state.durable.done() >= end && !state.claims.has_closed();
        self.run(state, &is_enough);
        state.check()?;
        // The records are written later, but this call fails now.
        let lacked = state.lacked_since(lacks, Goal::Durable, end);
        lacked.map_or(Ok(()), |error| Err(error.given_up()))
    }

    /// Finds the record in the segment that holds it.
    fn cut_place(&self, state: &LogState, files: &LogFiles, next: u64) -> Result<CutPlace, Error> {
        let sealed = self.retention.holding(next).map(|segment| &segment.path);
        let path = sealed.or(self.segment.as_ref().map(|segment| &segment.path));
        let path = path.expect("a log with records has a segment");
        let number = segment::number(path, Format::Framed).expect("the path of a segment");
        debug_assert!(next < state.next_sequence(), "the record was written");
        cut::find(files, path, number, next)
    }

    fn cut_at(
        &mut self,
        state: &LogState,
        files: &LogFiles,
        place: CutPlace,
        number: u64,
        next: u64,
    ) -> Result<Start, Error> {
        let layout = &state.terms.layout;
        let (header, previous) = (place.header, place.previous);
        let path = segment::path(&state.terms.folder, Format::Framed, number);
        let written = place.write(files, &path, number, layout.capacity);
        let written = written.map_err(|(is_done, error)| {
            if is_done {
                state.fail(error.clone());
            }
            error
        })?;
        // From here on the log is cut.
        let finished = self.finish_cut(state, &header, previous).and_then(|()| {
            let options = FileOptions { write: true, direct: true, ..FileOptions::default() };
            let file = prepare::open(&mut self.engine, &path, &options)?;
            let mut segment = OpenSegment::new(file, path, number, segment::unix_ns());
            segment.end = written.end;
            segment.prepared = written.end.next_multiple_of(layout.block_bytes);
            segment.written = 0..segment.prepared;
            segment.last_checksum = written.checksum;
            segment.end_sequence = next;
            self.segment = Some(segment);
            Ok(())
        });
        finished.inspect_err(|error| state.fail(error.clone()))?;
        let mut counted = state.counted();
        counted.segments += 1;
        counted.flushes += 1;
        let offset = written.end.next_multiple_of(layout.block_bytes);
        Ok(layout.start(Start { first_sequence: next, segment: number, offset }, false, 0))
    }

    /// Deletes the files of segments removed by the cut, and the end of the one that it left.
    fn finish_cut(
        &mut self,
        state: &LogState,
        header: &SegmentHeader,
        previous: u64,
    ) -> Result<(), Error> {
        self.discard_preparing()?;
        let mut dead: Vec<PathBuf> = Vec::new();
        let active = self.segment.take().expect("a segment was begun");
        let is_live = |path: &PathBuf| segment::number(path, Format::Framed) <= Some(previous);
        let end = cut::end_before(header);
        if active.number == previous {
            let (bytes, end_sequence) = (end, header.first_sequence);
            cut::shorten(&mut self.engine, active.file, end)?;
            let written_at_ns = segment::unix_ns();
            let path = active.path;
            self.retention.push(RetainedSegment {
                path,
                bytes,
                end_sequence,
                written_at_ns,
                // Its file was cut.
                is_written: false,
            });
        } else {
            self.engine.close_file(active.file)?;
            while let Some(last) = self.retention.take_last_unless(is_live) {
                dead.insert(0, last.path);
            }
            dead.push(active.path);
            cut::remove(&mut self.engine, &dead)?;
            if let Some(last) = self.retention.last_mut()
                && last.end_sequence > header.first_sequence
            {
                let options = FileOptions { write: true, ..FileOptions::default() };
                let file = self.engine.open_file(&last.path, &options)?;
                cut::shorten(&mut self.engine, file, end)?;
                last.end_sequence = header.first_sequence;
                self.retention.set_last_bytes(end);
            }
        }
        self.engine.sync_folder(&state.terms.folder)
    }
}
