//! The space of a log: its segments, from the time when they are prepared ahead of their records
//! until they are sealed, reused or removed.
//!
//! The sync policy determines how records are written. If callers wait for records to become
//! durable, the records bypass the page cache and go into blocks that were written before, either
//! in the file of a removed segment or with zeros. Flushing these records changes no metadata of
//! the file system. All other records go through the page cache, into allocated space.

use super::ahead::{Ahead, Room};
use super::batch::{self, BatchHeader};
use super::claim::ClosedBatch;
use super::cut::{self, CutPlace};
use super::input::LogFiles;
use super::names;
use super::prepare::Preparation;
use super::recovery::recover_named;
use super::retention::{RetainedSegment, Retention};
use super::segment::{
    self, OpenSegment, SegmentHeader, Start, clock_is_back, unix_ns, unix_ns_ago,
};
use super::state::LogState;
use crate::engine::Op;
use crate::{Action, Completion, Engine, Error, FileId};
use std::io;
use std::time::Duration;

/// The maximum number of full segments that are not durable. Each of them keeps its file open, and
/// opening the log after a crash reads all of them.
const FULL_MAX: usize = 64;

pub(super) struct Space {
    /// The current segment; `None` before the first batch of a new log.
    segment: Option<OpenSegment>,
    /// The end of the previous segment, and the checksum of its last batch.
    previous: Option<(u64, u32)>,
    /// The time of the last batch.
    written_at_ns: u64,
    /// The full segments that have not been flushed yet.
    full: Vec<OpenSegment>,
    pub(super) ahead: Ahead,
    retention: Retention,
    /// Whether names in the folder have changed since the folder was last synced.
    is_folder_dirty: bool,
    /// Whether segments have been removed since the folder was last synced.
    has_removed: bool,
}

impl Space {
    /// Creates the space of a log that continues in `segment` or begins in `first`.
    pub(super) fn new(
        segment: Option<OpenSegment>,
        first: Option<Preparation>,
        written_at_ns: u64,
        retention: Retention,
    ) -> Space {
        Space {
            segment,
            previous: None,
            written_at_ns,
            full: Vec::new(),
            ahead: Ahead::new(first),
            retention,
            is_folder_dirty: true,
            has_removed: false,
        }
    }

    pub(super) fn has_durable_names(&self) -> bool {
        !self.is_folder_dirty
    }

    pub(super) fn has_full(&self) -> bool {
        !self.full.is_empty()
    }

    /// Returns whether a full segment has only records before `sequence`.
    pub(super) fn has_full_before(&self, sequence: u64) -> bool {
        self.full.iter().any(|segment| segment.end_sequence <= sequence)
    }

    /// Returns the sequence after the last record of the full segments; 0 if there are none.
    pub(super) fn full_end(&self) -> u64 {
        self.full.last().map_or(0, |last| last.end_sequence)
    }

    pub(super) fn take_rotation(&mut self, age: Duration) -> bool {
        let Some(segment) = &mut self.segment else { return false };
        let is_old = segment.created_at_ns < unix_ns_ago(age) && !segment.is_old;
        segment.is_old |= is_old;
        is_old
    }

    /// Returns the number of the current segment; `None` before the first batch of a new log.
    fn number(&self) -> Option<u64> {
        self.segment.as_ref().map(|segment| segment.number)
    }

    /// Prepares the space for a batch that is about to be written, and begins its segment if
    /// necessary.
    pub(super) fn make_room(
        &mut self,
        engine: &mut Engine,
        state: &LogState,
        batch: &ClosedBatch,
    ) -> Result<Room, Error> {
        let Start { segment: number, offset, .. } = batch.start;
        if batch.count == 0 {
            return Ok(Room::Ready);
        }
        if self.number() != Some(number) {
            let begun = self.begin_segment(engine, state, number)?;
            if !matches!(begun, Room::Ready) {
                return Ok(begun);
            }
        }
        let end = offset + batch.bytes as u64;
        self.ahead.prepare(engine, state, &mut self.segment, number, end)
    }

    fn begin_segment(
        &mut self,
        engine: &mut Engine,
        state: &LogState,
        number: u64,
    ) -> Result<Room, Error> {
        match self.ahead.prepare(engine, state, &mut self.segment, number, 0)? {
            Room::Ready => {}
            // If no descriptor is available to open a file, the files of earlier segments must be
            // closed first.
            Room::Lacks(error)
                if matches!(error.errno(), libc::EMFILE | libc::ENFILE) && self.has_full() =>
            {
                return self.wait_for_full(engine, state, 0);
            }
            room => return Ok(room),
        }
        let segment_bytes = state.terms.layout.segment_bytes;
        let kept = self.retention.bytes_max.map_or(u64::MAX, |bytes| bytes / segment_bytes);
        let most = usize::try_from(kept).map_or(FULL_MAX, |kept| kept.clamp(1, FULL_MAX));
        if let room @ Room::Waits = self.wait_for_full(engine, state, most - 1)? {
            return Ok(room);
        }
        let next = self.ahead.take_ready();
        let mut begun = OpenSegment::new(next.file, next.path, next.number, unix_ns());
        (begun.prepared, begun.written) = (next.end, next.written);
        begun.is_recycled = next.is_recycled;
        self.begin(state, begun);
        Ok(Room::Ready)
    }

    fn begin(&mut self, state: &LogState, begun: OpenSegment) {
        self.leave_segment(state);
        self.is_folder_dirty = true;
        let mut counted = state.counted();
        counted.segments += 1;
        counted.recycled += u64::from(begun.is_recycled);
        self.segment = Some(begun);
    }

    fn leave_segment(&mut self, state: &LogState) {
        if let Some(full) = self.segment.take() {
            state.durable.want(full.end_sequence);
            self.previous = Some((full.end, full.last_checksum));
            self.full.push(full);
        }
    }

    /// Returns [`Room::Ready`] if at most `left` full segments are not durable. Otherwise, requests
    /// their flush and returns [`Room::Waits`].
    fn wait_for_full(
        &mut self,
        engine: &mut Engine,
        state: &LogState,
        left: usize,
    ) -> Result<Room, Error> {
        // A batch in flight may become durable by its own write. Then no flush seals its segment.
        self.seal(engine, state)?;
        if self.full.len() <= left {
            return Ok(Room::Ready);
        }
        state.durable.want(self.full_end());
        Ok(Room::Waits)
    }

    /// Continues to prepare space ahead of the records.
    pub(super) fn prepare_ahead(
        &mut self,
        engine: &mut Engine,
        state: &LogState,
        is_idle: bool,
    ) -> Result<(), Error> {
        self.ahead.prepare_ahead(engine, state, &mut self.segment, is_idle)
    }

    pub(super) fn settle_preparation(
        &mut self,
        engine: &mut Engine,
        completion: Completion,
    ) -> Result<(), Error> {
        self.ahead.settle(engine, &mut self.segment, completion)
    }

    /// Adds a batch to its segment, which must have begun, and writes its headers into `buffer`.
    /// Returns the file of the segment.
    pub(super) fn add_batch(
        &mut self,
        state: &LogState,
        closed: &ClosedBatch,
        buffer: &mut [u8],
        bytes: usize,
        is_durable: bool,
        after_cut: bool,
    ) -> FileId {
        let Start { first_sequence, segment: segment_id, offset } = closed.start;
        let segment = self.segment.as_mut().expect("a segment was begun");
        if offset == 0 {
            segment.first_sequence = first_sequence;
        }
        segment.end = offset + closed.bytes as u64;
        segment.end_sequence = closed.end_sequence();
        segment.is_dirty |= !is_durable;
        self.ahead.note_written(bytes as u64);
        let layout = &state.terms.layout;
        let now = unix_ns();
        let clock_back = now < self.written_at_ns;
        if offset > 0 && clock_is_back(now, self.written_at_ns) && !segment.is_old {
            segment.is_old = true;
            state.claims.rotate();
        }
        // Times go back with the clock only at the beginning of a segment.
        self.written_at_ns = if offset == 0 { now } else { now.max(self.written_at_ns) };
        let mut at = 0;
        if offset == 0 {
            let (previous_bytes, previous_checksum) = self.previous.unwrap_or_default();
            let header = SegmentHeader {
                is_recycled: segment.is_recycled,
                clock_back,
                log_id: layout.log_id,
                segment_id,
                first_sequence,
                previous_bytes,
                previous_checksum,
                block_bytes: layout.block_bytes as u32,
                created_at_ns: now,
                ..SegmentHeader::default()
            };
            header.encode(buffer);
            at = segment::HEADER_BYTES;
        }
        let header = BatchHeader {
            bytes: (closed.bytes - at) as u32,
            count: closed.count as u32,
            first_sequence,
            durable_sequence: state.durable.done(),
            written_at_ns: self.written_at_ns,
            after_cut,
            closed: false,
            whole: state.claims.is_whole(closed.slot),
            longest_bytes: layout.capacity as u32,
        };
        let seed = segment::seed(layout.log_id, segment_id);
        segment.last_checksum = header.encode(&mut buffer[at..], seed);
        segment.file
    }

    /// Returns the oldest file with written records that are not flushed, and the sequence before
    /// which all records are durable once it is flushed. All records before `written` are written.
    pub(super) fn take_dirty(&mut self, written: u64) -> (Option<FileId>, u64) {
        let mut segments = self.full.iter_mut().chain(&mut self.segment);
        let dirty = segments.find(|it| it.is_dirty && it.first_sequence < written);
        let Some(segment) = dirty else { return (None, written) };
        // The flush does not cover batches in flight.
        segment.is_dirty = segment.end_sequence > written;
        (Some(segment.file), segment.end_sequence.min(written))
    }

    /// Makes the names of the segments durable, and fails like [`Space::check_names`].
    pub(super) fn sync_names(
        &mut self,
        engine: &mut Engine,
        state: &LogState,
    ) -> Result<(), Error> {
        if std::mem::take(&mut self.is_folder_dirty) {
            engine.sync_folder(state.terms.folder.path())?;
            self.ahead.note_synced();
        }
        self.check_names(engine)
    }

    /// Fails if the file of a segment has lost its name, or the folder has been removed. In both
    /// cases, the segment's records are lost to the log even though their bytes are on stable
    /// storage.
    pub(super) fn check_names(&self, engine: &Engine) -> Result<(), Error> {
        for OpenSegment { file, path, .. } in self.full.iter().chain(&self.segment) {
            if !engine.is_named(*file, path)? {
                let gone = io::Error::from_raw_os_error(libc::ENOENT);
                return Err(Error::file(path, Action::Examine, None, &gone));
            }
        }
        Ok(())
    }

    /// Closes the full segments that are durable, and applies retention.
    pub(super) fn seal(&mut self, engine: &mut Engine, state: &LogState) -> Result<(), Error> {
        let durable = state.durable.done();
        let is_durable = |it: &OpenSegment| !it.is_dirty && it.end_sequence <= durable;
        while self.full.first().is_some_and(is_durable) {
            let OpenSegment { file, path, end, written, end_sequence, .. } = self.full.remove(0);
            let bytes = engine.file_len(file)?;
            engine.close_file(file)?;
            // The space that is not written at the end of a full segment is at most as long as a
            // batch.
            let is_whole = bytes <= written.max(end + state.terms.layout.capacity);
            let is_written = state.terms.zeros && is_whole;
            let written_at_ns = unix_ns();
            let sealed = RetainedSegment { path, bytes, end_sequence, written_at_ns, is_written };
            self.retention.push(sealed);
        }
        self.retain(engine, state);
        Ok(())
    }

    /// Removes the oldest segments while a limit of retention is exceeded.
    fn retain(&mut self, engine: &mut Engine, state: &LogState) {
        let active_bytes = self.full.iter().chain(&self.segment).map(|it| it.end).sum();
        let durable = state.durable.done();
        while let Some(oldest) = self.retention.excess(active_bytes, durable).cloned() {
            if let Err(error) = self.remove_oldest(engine, state, &oldest) {
                log::warn!("retention could not remove a segment: {error}");
                return;
            }
        }
    }

    /// Removes the sealed segments whose records are all before `sequence`, and makes the removal
    /// durable. Returns the sequence of the first remaining record.
    pub(super) fn trim(
        &mut self,
        engine: &mut Engine,
        state: &LogState,
        sequence: u64,
    ) -> Result<u64, Error> {
        let durable = state.durable.done();
        let mut removed = Ok(());
        while removed.is_ok()
            && let Some(oldest) = self.retention.before(sequence, durable).cloned()
        {
            removed = self.remove_oldest(engine, state, &oldest);
        }
        self.retain(engine, state);
        // Retention alone does not sync the folder, so earlier removals are included.
        if self.has_removed {
            let synced = engine.sync_folder(state.terms.folder.path());
            self.has_removed = synced.is_err();
            removed = removed.and(synced);
        }
        removed.map(|()| state.counted().first_sequence)
    }

    fn remove_oldest(
        &mut self,
        engine: &mut Engine,
        state: &LogState,
        oldest: &RetainedSegment,
    ) -> Result<(), Error> {
        self.ahead.remove_segment(engine, state, oldest)?;
        let mut counted = state.counted();
        counted.first_sequence = oldest.end_sequence;
        counted.removed += 1;
        self.retention.forget_oldest();
        self.has_removed = true;
        Ok(())
    }

    /// Returns the number of the segment that a cut begins. It is higher than the number of a
    /// segment that is already prepared, whose file is removed like the files of cut segments.
    pub(super) fn number_after_cut(&self) -> u64 {
        self.ahead.number().max(self.number()).expect("a log with records has a segment") + 1
    }

    /// Finds the position of a cut in the segment that holds record `next`, which must have been
    /// written. After the cut, the log continues in segment `number`.
    pub(super) fn cut_place(
        &self,
        files: &LogFiles,
        next: u64,
        number: u64,
    ) -> Result<CutPlace, Error> {
        let sealed = self.retention.holding(next).map(|segment| &segment.path);
        let path = sealed.or(self.segment.as_ref().map(|segment| &segment.path));
        cut::find(files, path.expect("a log with records has a segment"), next, number)
    }

    /// Cuts the log at this place while nothing is in flight. Returns the position at which the log
    /// continues.
    pub(super) fn cut_at(
        &mut self,
        engine: &mut Engine,
        state: &LogState,
        files: &LogFiles,
        place: CutPlace,
    ) -> Result<Start, Error> {
        let path = segment::path(state.terms.folder.path(), place.header.segment_id);
        let next = place.next_sequence();
        let written = place.write(files, &path, state.terms.layout.capacity);
        written.map_err(|(is_done, error)| {
            if is_done {
                state.fail(error.clone());
            }
            error
        })?;
        // From now on the log is cut, and opening it would delete the files of the removed records.
        let start = self.open_after_cut(engine, state, files, next);
        // If the disk damages the header of the new segment, recovery takes the segment for torn.
        let start = start.and_then(|start| match start.first_sequence == next {
            true => Ok(start),
            false => Err(segment::not_begun(&path)),
        });
        let mut counted = state.counted();
        counted.segments += 1;
        counted.flushes += 1;
        start.inspect_err(|error| state.fail(error.clone()))
    }

    /// Completes a cut before record `next` as opening the log would, and continues there.
    fn open_after_cut(
        &mut self,
        engine: &mut Engine,
        state: &LogState,
        files: &LogFiles,
        next: u64,
    ) -> Result<Start, Error> {
        let layout = &state.terms.layout;
        if let Some(next) = self.ahead.take_waiting() {
            let _ = next.abandon(engine);
        }
        if let Some(before) = self.segment.take() {
            engine.close_file(before.file)?;
        }
        let found = recover_named(files, &names::all(files)?, next)?;
        let active = found.active.as_ref().expect("a cut begins a segment");
        self.written_at_ns = active.written_at_ns;
        self.segment = Some(active.open(engine, layout, state.terms.is_direct())?);
        let start = found.start(layout);
        self.retention.replace(found.sealed);
        Ok(start)
    }

    /// Closes a log whose records, all before `next`, are durable, while nothing is in flight:
    /// marks the end with a last batch, and cuts off the space after it.
    pub(super) fn close(
        &mut self,
        engine: &mut Engine,
        state: &LogState,
        next: u64,
        after_cut: bool,
    ) -> Result<(), Error> {
        if let Some(next) = self.ahead.take_waiting() {
            // If its file can't be removed now, the next open removes it.
            let _ = next.abandon(engine);
        }
        self.write_closing_batch(engine, state, next, after_cut)?;
        self.check_names(engine)?;
        if let Some(segment) = self.segment.take() {
            engine.close_file(segment.file)?;
        }
        self.ahead.discard_spare(engine);
        engine.sync_folder(state.terms.folder.path())
    }

    fn write_closing_batch(
        &mut self,
        engine: &mut Engine,
        state: &LogState,
        next: u64,
        after_cut: bool,
    ) -> Result<(), Error> {
        let Some(OpenSegment { file, number, end, .. }) = self.segment else { return Ok(()) };
        let layout = &state.terms.layout;
        let seed = segment::seed(layout.log_id, number);
        let offset = end.next_multiple_of(layout.block_bytes);
        if !self.prepare_now(engine, state, number, offset + layout.block_bytes)? {
            // Without the closing batch, the log is still intact, as after a crash.
            engine.truncate(file, end)?;
            return engine.flush(file);
        }
        let mut buffer = engine.lease()?;
        buffer.set_len(layout.block_bytes as usize);
        buffer.fill(0);
        let header = BatchHeader {
            bytes: batch::HEADER_BYTES as u32,
            count: 0,
            first_sequence: next,
            durable_sequence: next,
            written_at_ns: unix_ns().max(self.written_at_ns),
            after_cut,
            closed: true,
            whole: false,
            longest_bytes: layout.capacity as u32,
        };
        header.encode(&mut buffer, seed);
        engine.queue(0, Op::Write { file, offset, buffer, durable: false });
        engine.drain()?;
        engine.truncate(file, offset + batch::HEADER_BYTES as u64)?;
        engine.flush(file)?;
        state.counted().flushes += 1;
        Ok(())
    }

    /// Prepares the current segment up to `end`, and waits for each step. Returns whether there is
    /// room for that.
    fn prepare_now(
        &mut self,
        engine: &mut Engine,
        state: &LogState,
        number: u64,
        end: u64,
    ) -> Result<bool, Error> {
        let mut completions = Vec::new();
        loop {
            match self.ahead.prepare(engine, state, &mut self.segment, number, end)? {
                Room::Ready => return Ok(true),
                Room::Lacks(_) => return Ok(false),
                Room::Waits => engine.reap(1, &mut completions)?,
            }
            for completion in completions.drain(..) {
                self.settle_preparation(engine, completion)?;
            }
        }
    }

    /// Returns the end sequence of each full segment.
    #[cfg(test)]
    pub(super) fn full_ends(&self) -> Vec<u64> {
        self.full.iter().map(|segment| segment.end_sequence).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Fault;
    use crate::log::LogOptions;
    use crate::log::testing::{folder, read, used_bytes};
    use crate::{Log, Sim, SyncPolicy};

    fn visit<T>(log: &Log, look: impl FnOnce(&mut Engine, &mut Space) -> T) -> T {
        let visited = log.driver().visit(|flusher| {
            let (engine, _, space) = flusher.parts();
            Ok(look(engine, space))
        });
        visited.unwrap()
    }

    #[test]
    fn the_policy_chooses_whether_records_bypass_the_page_cache() {
        for (sync, is_direct) in
            [(SyncPolicy::Always, true), (SyncPolicy::EverySec, false), (SyncPolicy::No, false)]
        {
            let sim = Sim::new(1);
            let log = small().sync(sync).on(&sim.disk()).open(folder()).unwrap();
            for _ in 0..20 {
                log.append(&[b'r'; 3900]).unwrap().wait().unwrap();
                let found = visit(&log, |engine, space| {
                    engine.is_direct(space.segment.as_ref().unwrap().file)
                });
                assert_eq!(found, is_direct, "{sync:?}");
            }
        }
    }

    #[test]
    fn zeros_are_written_ahead_of_records_that_are_flushed_in_short_groups_alone() {
        for (record_bytes, has_zeros) in [(3000, true), (100_000, false)] {
            let sim = Sim::new(1);
            let options = Log::options().buffers(2).buffer_bytes(128 << 10);
            let log = options.segment_bytes(1 << 20).on(&sim.disk()).open(folder()).unwrap();
            let append = || {
                log.append(&vec![b'r'; record_bytes]).unwrap().wait().unwrap();
                visit(&log, |_, space| {
                    let segment = space.segment.as_ref().unwrap();
                    (segment.number, segment.written == segment.prepared)
                })
            };
            let found = std::iter::repeat_with(append).find(|(number, _)| *number == 5);
            assert_eq!(found, Some((5, has_zeros)), "{record_bytes}");
        }
    }

    fn small() -> LogOptions {
        let options = Log::options().sync(SyncPolicy::No).buffers(8).buffer_bytes(4096);
        options.segment_bytes(8192)
    }

    #[test]
    fn segments_that_wait_for_a_flush_are_few_and_count_as_kept() {
        for (retain_bytes, most_segments) in [(u64::MAX, 64), (64 << 10, 8)] {
            let sim = Sim::new(1);
            let options = small().retain_bytes(retain_bytes);
            let log = options.on(&sim.disk()).open(folder()).unwrap();
            let mut most = 0;
            for _ in 0..2000 {
                let _sequence = log.append(&[b'r'; 3900]).unwrap().sequence();
                most = most.max(visit(&log, |_, space| space.full.len()));
                // The limit may be exceeded by the current segment, the next one, and one that has
                // just become full.
                assert!(used_bytes(&sim) <= retain_bytes.saturating_add(3 * 8192));
            }
            assert_eq!(most, most_segments);
        }
    }

    #[test]
    fn a_closed_log_opens_by_its_last_segment_however_many_waited_for_a_flush() {
        let operations = |waits: bool| {
            let sim = Sim::new(1);
            let log = small().on(&sim.disk()).open(folder()).unwrap();
            for _ in 0..801 {
                let ticket = log.append(&[b'r'; 3900]).unwrap();
                if waits {
                    ticket.until_durable().wait().unwrap();
                }
            }
            log.close().unwrap();
            let before = sim.operations();
            assert!(small().on(&sim.disk()).open(folder()).unwrap().stats().found_closed);
            sim.operations() - before
        };
        assert_eq!(operations(false), operations(true));
    }

    #[test]
    fn a_cut_whose_records_cannot_be_read_back_fails_the_log_and_loses_none() {
        // W1
        let [mut failed, mut refused, mut done] = [0; 3];
        for seed in 0..20 {
            for (operation, fault) in
                (0..40).flat_map(|n| [(n, Fault::Rot), (n, Fault::Misdirected)])
            {
                let sim = Sim::new(seed);
                let log = small().on(&sim.disk()).open(folder()).unwrap();
                log.append(b"first").unwrap().until_durable().wait().unwrap();
                // Record 5 either is in the same batch as the other records, or begins a batch.
                for count in if seed % 2 == 0 { vec![5] } else { vec![4, 1] } {
                    let records = vec![[b'r'; 400]; count];
                    log.append_all(&records).unwrap().1.until_durable().wait().unwrap();
                }
                sim.fault(sim.operations() + operation, fault);
                let cut = log.truncate_from(5);
                let appended = log.append(b"after").map(|ticket| ticket.sequence());
                match (cut, appended) {
                    (Ok(()), Ok(5)) => {
                        drop(log);
                        // With `Fault::Rot`, the damaged bit may be in one of these records, so
                        // they are not compared.
                        if fault == Fault::Misdirected {
                            let records = read(&sim, 0).0;
                            assert_eq!(records.len(), 6, "seed {seed}, {operation}");
                            assert_eq!(records[5].bytes, b"after", "seed {seed}, {operation}");
                        }
                        done += 1;
                    }
                    (Err(Error::Damaged { .. }), Ok(6)) => refused += 1,
                    (Err(Error::Damaged { .. }), Err(Error::Damaged { .. })) => failed += 1,
                    other => panic!("seed {seed}, {fault:?} at {operation}: {other:?}"),
                }
            }
        }
        assert!(failed > 5 && done > 20, "{failed} failed, {refused} refused, {done} done");
    }

    #[test]
    fn an_opening_finds_no_record_that_a_failed_flush_kept_off_the_disk() {
        // W2
        let mut lost = 0;
        for seed in 0..60 {
            let sim = Sim::new(seed);
            let options = Log::options().sync(SyncPolicy::No).buffers(3).buffer_bytes(4096);
            let options = options.segment_bytes(8192);
            let log = options.clone().on(&sim.disk()).open(folder()).unwrap();
            let fault = sim.operations() + 7 * seed;
            sim.fault(fault, Fault::Once(libc::EIO));
            let _ = (0..400).try_for_each(|_| log.append(&[b'r'; 700]).map(drop));
            drop(log);
            if sim.operations() <= fault {
                break;
            }
            let seen = read(&sim, 0).0.len();
            let log = options.on(&sim.disk()).open(folder()).unwrap();
            let recovered = log.stats().found_records as usize;
            lost += usize::from(recovered < seen);
            sim.restart();
            drop(log);
            let (records, end) = read(&sim, 0);
            end.unwrap();
            assert_eq!(records.len(), recovered, "seed {seed}");
        }
        assert!(lost > 0, "no flush lost a record");
    }
}
