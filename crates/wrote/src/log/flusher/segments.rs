//! The segments of a log being written: started, prepared ahead, sealed, removed, and closed.

use super::super::batch::{self, BatchHeader};
use super::super::claim::ClosedBatch;
use super::super::format::Format;
use super::super::layout::{Layout, Start};
use super::super::options::Prepare;
use super::super::prepare::Preparation;
use super::super::retention::RetainedSegment;
use super::super::segment::{self, unix_ns};
use super::super::state::{Goal, LogState, Terms};
use super::{Flush, Flusher, OpenSegment, Preparing};
use crate::engine::Op;
use crate::{Completion, Error, FileOptions};

/// The minimum space prepared at once. A new log has no more before its first record, and an
/// existing one has none.
pub(in crate::log) const AHEAD_BYTES_MIN: u64 = 64 << 10;

/// The most that is prepared at once in a segment that was begun without zeros: records wait for it
/// where they are faster than zeros.
const REST_BYTES_MAX: u64 = 4 << 20;

/// The most full segments of a framed log that are not durable: each keeps its file open, and
/// opening after a crash reads them all.
const UNFLUSHED_MAX: usize = 64;

/// Prepared space, or a temporary error such as a full disk. Any other error is outside and fails
/// the log.
type Room<T> = Result<Result<T, Error>, Error>;

/// Temporary errors: no space on disk or in a quota, no descriptor, no memory, and a file size
/// limit, which another process may raise (`prlimit(2)`).
const MAY_PASS: [i32; 6] =
    [libc::ENOSPC, libc::EDQUOT, libc::EMFILE, libc::ENFILE, libc::ENOMEM, libc::EFBIG];

fn room<T>(error: Error) -> Room<T> {
    match &error {
        Error::File { errno, .. } if MAY_PASS.contains(errno) => Ok(Err(error)),
        _ => Err(error),
    }
}

impl Flusher {
    /// Prepares the space of a batch about to be written, and starts its segment.
    pub(super) fn make_room(&mut self, state: &LogState, batch: &ClosedBatch) -> Room<()> {
        let Start { segment: number, offset, .. } = batch.start;
        if batch.count == 0 {
            return Ok(Ok(()));
        }
        if offset == 0 && self.number() != Some(number) {
            if state.format() == Format::Framed
                && let Err(error) = self.prepare_next(state, number)?
            {
                return Ok(Err(error));
            }
            let begun = match state.format() {
                Format::Framed => {
                    self.flush_earlier(state, self.unflushed_max(state) - 1)?;
                    self.take_prepared()
                }
                // A file of lines is a segment as soon as it has its name, which proves that all
                // lines of the previous file were durable.
                Format::Lines => {
                    self.leave_segment(state);
                    self.flush_earlier(state, 0)?;
                    match self.make_lines(state, number)? {
                        Ok(segment) => segment,
                        Err(error) => return Ok(Err(error)),
                    }
                }
            };
            self.leave_segment(state);
            self.is_folder_dirty = true;
            self.segment = Some(begun);
            let now = self.clock.now();
            self.zeros.begin_segment(self.needs_room_since.unwrap_or(now), now);
            self.go_on_absorbing(state)?;
            let mut counted = state.counted();
            counted.segments += 1;
            counted.recycled += u64::from(self.segment.as_ref().is_some_and(|it| it.is_recycled));
        }
        match state.format() {
            Format::Framed => self.prepare(state, number, offset + batch.bytes as u64),
            Format::Lines => Ok(Ok(())),
        }
    }

    /// Prepares a segment to be started. If no file can be opened, files of earlier segments are
    /// closed.
    fn prepare_next(&mut self, state: &LogState, number: u64) -> Room<()> {
        match self.prepare(state, number, 0)? {
            Err(error)
                if matches!(error.errno(), libc::EMFILE | libc::ENFILE)
                    && !self.unflushed.is_empty() =>
            {
                self.flush_earlier(state, self.unflushed.len() / 2)?;
                self.prepare(state, number, 0)
            }
            prepared => Ok(prepared),
        }
    }

    /// Returns how many full segments may wait for a flush: at most the bytes to retain, and few if
    /// records are to be durable after a time and the disk's rate is unknown.
    fn unflushed_max(&self, state: &LogState) -> usize {
        if state.terms.interval().is_some() && self.absorbing.is_none() {
            return 2;
        }
        let kept = self
            .retention
            .bytes_max()
            .map_or(u64::MAX, |bytes| bytes / state.terms.layout.segment_bytes);
        usize::try_from(kept).map_or(UNFLUSHED_MAX, |kept| kept.clamp(1, UNFLUSHED_MAX))
    }

    /// Returns whether a batch can be written at once: its segment is started and its space
    /// prepared.
    pub(super) fn has_room(&self, state: &LogState, batch: &ClosedBatch) -> bool {
        let Start { segment: number, offset, .. } = batch.start;
        let end = offset + batch.bytes as u64;
        let is_prepared = state.format() == Format::Lines || self.is_prepared(number, end);
        batch.count == 0 || self.number() == Some(number) && is_prepared
    }

    /// Returns the number of the current segment.
    fn number(&self) -> Option<u64> {
        self.segment.as_ref().map(|segment| segment.number)
    }

    /// Makes the segments before the current one durable, except the last `left`.
    pub(super) fn flush_earlier(&mut self, state: &LogState, left: usize) -> Result<(), Error> {
        loop {
            // A batch in flight may become durable by its own write, and then no flush seals.
            self.seal(state, state.durable.done())?;
            if self.unflushed.len() <= left {
                return Ok(());
            }
            if matches!(self.flush, Flush::Idle) {
                self.flush = Flush::Wanted(self.taken);
            }
            self.start_flush(state)?;
            self.reap(state)?;
        }
    }

    fn leave_segment(&mut self, state: &LogState) {
        if let Some(full) = self.segment.take() {
            state.durable.want(full.end_sequence);
            self.previous = Some((full.end, full.last_checksum));
            self.unflushed.push(full);
        }
    }

    fn make_lines(&mut self, state: &LogState, number: u64) -> Room<OpenSegment> {
        let path = segment::path(&state.terms.folder, Format::Lines, number);
        let options = FileOptions::new().create_new(true).write(true);
        match self.engine.open_file(&path, &options) {
            Ok(file) => Ok(Ok(OpenSegment::new(file, path, number, unix_ns()))),
            Err(error) => room(error),
        }
    }

    fn take_prepared(&mut self) -> OpenSegment {
        let Preparing::Waiting(next) = self.preparing.take() else {
            unreachable!("a segment was prepared")
        };
        let mut segment = OpenSegment::new(next.file, next.path, next.number, unix_ns());
        (segment.prepared, segment.written) = (next.end, 0..next.written);
        segment.is_recycled = next.is_recycled;
        segment
    }

    /// Waits until segment `number`, the current or next one, is prepared up to `end`. If the disk
    /// has no room for the space ahead, prepares only the needed part.
    fn prepare(&mut self, state: &LogState, number: u64, end: u64) -> Room<()> {
        let block_bytes = state.terms.layout.block_bytes;
        let ahead_bytes = self.ahead_bytes(&state.terms.layout, number);
        let lengths = [ahead_bytes, AHEAD_BYTES_MIN, block_bytes];
        let mut left = lengths.into_iter();
        while !self.is_prepared(number, end) {
            if self.preparing.preparation().is_some_and(|next| next.number != number) {
                self.abandon_preparing(state)?;
            }
            match self.preparing.take() {
                failed @ (Preparing::Idle | Preparing::Failed(_)) => match (left.next(), failed) {
                    (Some(len), failed) => self.begin_preparing(state, number, end, len, failed)?,
                    // The spare file takes space that the record needs.
                    (None, failed) if self.discard_spare() => {
                        (left, self.preparing) = (lengths.into_iter(), failed);
                    }
                    (None, Preparing::Failed(error)) => {
                        // Nothing is tried ahead until the next record needs it.
                        self.preparing = Preparing::Failed(error.clone());
                        return room(error);
                    }
                    (None, _) => unreachable!("every preparation is done or has failed"),
                },
                preparing => {
                    self.preparing = preparing;
                    self.leave_out_late_zeros(state, number);
                    self.go_on_preparing(state, u64::MAX)?;
                    if matches!(self.preparing, Preparing::InFlight(_)) {
                        self.reap(state)?;
                    }
                }
            }
        }
        Ok(Ok(()))
    }

    /// Leaves out the rest of the zeros that a record waits for, if much is left: they have fallen
    /// behind the records.
    fn leave_out_late_zeros(&mut self, state: &LogState, number: u64) {
        if let Preparing::Waiting(next) = &mut self.preparing
            && state.terms.may_omit_zeros
            && next.zeros_left() > rest_bytes(&state.terms.layout, number)
        {
            next.leave_out_zeros();
            self.zeros.note_left_out();
        }
    }

    /// The prepared space grows with the log, so that preparing costs no more than the records do.
    fn ahead_bytes(&self, layout: &Layout, number: u64) -> u64 {
        let most = match &self.segment {
            Some(it) if it.number == number && it.written.start > 0 => rest_bytes(layout, number),
            _ => u64::MAX,
        };
        self.written_bytes.max(AHEAD_BYTES_MIN).min(most)
    }

    fn is_prepared(&self, number: u64, end: u64) -> bool {
        match (&self.segment, &self.preparing) {
            (Some(segment), _) if segment.number == number => segment.prepared >= end,
            (_, Preparing::Waiting(next)) => next.number == number && next.is_ready(),
            _ => false,
        }
    }

    /// Starts to prepare segment `number` up to `end`, and `ahead_bytes` in total if the segment is
    /// that long. `failed` is an earlier attempt.
    fn begin_preparing(
        &mut self,
        state: &LogState,
        number: u64,
        end: u64,
        ahead_bytes: u64,
        failed: Preparing,
    ) -> Result<(), Error> {
        let Terms { layout, folder, prepare, .. } = &state.terms;
        let end_after = |from: u64| {
            let ahead = (from + ahead_bytes).min(layout.bytes_of(number));
            ahead.max(end).next_multiple_of(layout.block_bytes)
        };
        if let Some(segment) = self.segment.as_ref().filter(|segment| segment.number == number) {
            let OpenSegment { file, path, prepared, .. } = segment;
            let end = end_after(*prepared);
            let rest = Preparation::rest_of(*file, path, number, *prepare, *prepared, end);
            self.preparing = Preparing::Waiting(rest);
            return Ok(());
        }
        let path = segment::path(folder, layout.format, number);
        if let Some(next) = self.recycle(state, &path, number, end_after(0))? {
            self.preparing = Preparing::Waiting(next);
            return Ok(());
        }
        // A failed attempt's file could not be removed at the time.
        if self.left_over.take_if(|left| *left == path).is_some()
            && self.engine.remove(&path).is_err_and(|error| error.errno() != libc::ENOENT)
        {
            self.left_over = Some(path.clone());
        }
        let next = Preparation::new(&mut self.engine, &path, number, *prepare, end_after(0));
        self.preparing = match (next, failed) {
            (Ok(next), _) => Preparing::Waiting(next),
            // A failed attempt whose file could not be removed: report its error.
            (Err(error), Preparing::Failed(first)) if error.errno() == libc::EEXIST => {
                Preparing::Failed(first)
            }
            (Err(error), _) => Preparing::Failed(error),
        };
        Ok(())
    }

    /// Writes zeros ahead of the records of the current segment, which was begun without them, if
    /// these take too long. The next records get past the first of them, and find zeros then.
    pub(super) fn resume_zeros(&mut self, state: &LogState) {
        let is_due = match state.terms.held {
            Some(_) => self.zeros.take_failed(),
            // A simulated disk has no timing, so half of the segments without zeros get them again.
            None => state.terms.may_omit_zeros && self.number().is_some_and(|it| it % 4 == 2),
        };
        let Terms { layout, prepare, .. } = &state.terms;
        if let (true, Preparing::Idle, Some(segment)) = (is_due, &self.preparing, &mut self.segment)
            && (*prepare, segment.written.is_empty()) == (Prepare::Write, true)
        {
            let ahead = rest_bytes(layout, segment.number) / 2;
            let from = (segment.end + ahead).next_multiple_of(layout.block_bytes);
            if from < segment.prepared {
                segment.prepared = from;
                segment.written = from..from;
            }
        }
    }

    /// Continues preparing space: the current segment's once half of it is used, and the next one's
    /// at the pace at which this one fills.
    pub(super) fn start_preparing(&mut self, state: &LogState) -> Result<(), Error> {
        self.is_next_due = false;
        // Opening without appending need not write.
        let Some(segment) = self.segment.as_ref().filter(|_| self.written_bytes > 0) else {
            return Ok(());
        };
        let (layout, number) = (&state.terms.layout, segment.number);
        let segment_bytes = layout.bytes_of(number);
        let pace = Pace { used: segment.end, segment_bytes };
        if matches!(self.preparing, Preparing::Idle) && layout.format == Format::Framed {
            let ahead_bytes = self.ahead_bytes(layout, number).min(segment_bytes);
            let is_used = segment.end + ahead_bytes / 2 > segment.prepared;
            if segment.prepared < segment_bytes {
                if is_used {
                    self.begin_preparing(state, number, 0, ahead_bytes, Preparing::Idle)?;
                }
            } else if pace.begins() && self.is_brief() {
                self.is_next_due = true;
            } else if pace.begins() {
                let ahead_bytes = if layout.ramp.is_some() { u64::MAX } else { ahead_bytes };
                self.begin_preparing(state, number + 1, 0, ahead_bytes, Preparing::Idle)?;
            }
        }
        let next = self.preparing.preparation().filter(|next| next.number != number);
        let end =
            next.filter(|_| !self.is_idle(state)).map_or(u64::MAX, |next| pace.end_of(next.end));
        self.go_on_preparing(state, end)
    }

    /// Returns whether no record waits for the disk.
    fn is_idle(&self, state: &LogState) -> bool {
        let is_taken = self.taken == state.next_sequence();
        is_taken && self.batches.is_empty() && !state.durable.is_wanted() && !self.is_brief()
    }

    /// Starts the next step of a preparation, with zeros up to at most `end`.
    fn go_on_preparing(&mut self, state: &LogState, end: u64) -> Result<(), Error> {
        let mut next = match self.preparing.take() {
            Preparing::Waiting(next) => next,
            other => {
                self.preparing = other;
                return Ok(());
            }
        };
        if next.writes_zeros() && self.are_zeros_dear(state, next.number) {
            next.leave_out_zeros();
        }
        if !next.is_due(end) {
            self.keep_prepared(next);
            return Ok(());
        }
        if next.writes_zeros() {
            self.zeros.begin();
        }
        next.start(&mut self.engine, end)?;
        self.preparing = Preparing::InFlight(next);
        Ok(())
    }

    /// Keeps a preparation, or gives what it has prepared to the current segment.
    fn keep_prepared(&mut self, next: Preparation) {
        match &mut self.segment {
            Some(segment) if next.is_ready() && segment.number == next.number => {
                if segment.written.end == segment.prepared {
                    segment.written.end = next.written;
                }
                segment.prepared = next.end;
            }
            _ => self.preparing = Preparing::Waiting(next),
        }
    }

    fn are_zeros_dear(&self, state: &LogState, number: u64) -> bool {
        state.terms.may_omit_zeros
            && match state.terms.held {
                Some(_) => self.zeros.are_dear(),
                // A simulated disk has no timing, so every other segment is begun without.
                None => number.is_multiple_of(2) && self.number() != Some(number),
            }
    }

    pub(super) fn settle_preparation(&mut self, completion: Completion) -> Result<(), Error> {
        let Preparing::InFlight(mut next) = self.preparing.take() else {
            unreachable!("a preparation is in flight")
        };
        if let (true, Ok(len)) = (next.writes_zeros(), &completion.result) {
            self.zeros.note(*len as u64);
        }
        match next.complete(&mut self.engine, completion) {
            // W2
            Err(error) if next.flushes_records() => return Err(error),
            Err(error) => {
                self.left_over = next.abandon(&mut self.engine).or(self.left_over.take());
                self.preparing = Preparing::Failed(error);
            }
            Ok(()) => self.keep_prepared(next),
        }
        Ok(())
    }

    fn abandon_preparing(&mut self, state: &LogState) -> Result<(), Error> {
        while matches!(self.preparing, Preparing::InFlight(_)) {
            self.reap(state)?;
        }
        if let Preparing::Waiting(next) = self.preparing.take() {
            self.left_over = next.abandon(&mut self.engine).or(self.left_over.take());
        }
        Ok(())
    }

    /// Returns the number of the segment prepared before its first record.
    pub(super) fn prepared_number(&self) -> Option<u64> {
        self.preparing.preparation().map(|next| next.number)
    }

    /// Discards what was prepared, while no step is in flight. Fails if the file of a next segment
    /// can't be removed.
    pub(super) fn discard_preparing(&mut self) -> Result<(), Error> {
        match self.preparing.take() {
            Preparing::InFlight(_) => unreachable!("no operation is in flight"),
            Preparing::Waiting(next) => next.discard(&mut self.engine),
            Preparing::Idle | Preparing::Failed(_) => Ok(()),
        }
    }

    /// Closes full segments that are durable, and applies retention.
    pub(super) fn seal(&mut self, state: &LogState, durable: u64) -> Result<(), Error> {
        let is_durable =
            |segment: &OpenSegment| !segment.is_dirty && segment.end_sequence <= durable;
        while self.unflushed.first().is_some_and(is_durable) {
            let segment = self.unflushed.remove(0);
            let bytes = self.engine.file_len(segment.file)?;
            self.engine.close_file(segment.file)?;
            let OpenSegment { path, end, written, end_sequence, .. } = segment;
            // A full segment lacks at most the space of a batch.
            let is_whole =
                bytes <= written.end.max(end + state.terms.layout.capacity) && written.start <= end;
            let is_prepared = state.format() == Format::Framed;
            let is_written = is_prepared && state.terms.prepare == Prepare::Write && is_whole;
            self.retention.push(RetainedSegment {
                path,
                bytes,
                end_sequence,
                written_at_ns: unix_ns(),
                is_written,
            });
        }
        self.retain(state);
        Ok(())
    }

    /// Removes the oldest segments beyond the limits.
    pub(in crate::log) fn retain(&mut self, state: &LogState) {
        let active_bytes = self.unflushed.iter().chain(&self.segment).map(|it| it.end).sum();
        let (durable, released) = (state.durable.done(), state.released());
        while let Some(oldest) = self.retention.excess(active_bytes, durable, released) {
            let oldest = oldest.clone();
            if let Err(error) = self.remove_segment(state, &oldest) {
                log::warn!("retention could not remove a segment: {error}");
                return;
            }
            self.note_removed(state, oldest.end_sequence);
        }
    }

    /// Ends a log: makes everything durable, marks the end with a last batch, and cuts the space
    /// after it. On a full disk the rest stays in memory.
    pub(in crate::log) fn close(&mut self, state: &LogState) -> Room<()> {
        let lacks = state.lacks();
        let end = state.next_sequence();
        state.durable.want(end);
        self.run(state, &|| state.durable.done() >= end);
        state.check()?;
        if let Some(error) = state.lacked_since(lacks, Goal::Durable, end) {
            return Ok(Err(error));
        }
        // Operations can be in flight even if there was nothing to flush.
        self.reap_all(state)?;
        self.abandon_preparing(state)?;
        if state.format() == Format::Framed {
            self.write_closing_batch(state)?;
        }
        self.check_names()?;
        if let Some(segment) = self.segment.take() {
            self.engine.close_file(segment.file)?;
        }
        self.discard_spare();
        self.engine.sync_folder(&state.terms.folder).map(Ok)
    }

    fn write_closing_batch(&mut self, state: &LogState) -> Result<(), Error> {
        let Some(OpenSegment { file, number, end, .. }) = self.segment else { return Ok(()) };
        let layout = &state.terms.layout;
        let seed = segment::seed(layout.log_id, number);
        let offset = end.next_multiple_of(layout.block_bytes);
        if self.prepare(state, number, offset + layout.block_bytes)?.is_err() {
            // Without that mark the log is still intact, as after a crash.
            self.engine.truncate(file, end)?;
            return self.engine.flush(file);
        }
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
            whole: false,
            longest_bytes: layout.capacity as u32,
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

/// Returns how much is prepared at once in segment `number`, which was begun without zeros, and
/// the most zeros that a record waits for.
fn rest_bytes(layout: &Layout, number: u64) -> u64 {
    (layout.bytes_of(number) / 4).min(REST_BYTES_MAX)
}

/// The pace of preparing the next segment. A flush waits for zeros written before it, so they are
/// written in small steps.
#[derive(Clone, Copy)]
struct Pace {
    used: u64,
    segment_bytes: u64,
}

impl Pace {
    /// The next segment is started at half of this one, and complete at fifteen sixteenths.
    fn begins(self) -> bool {
        self.used >= self.segment_bytes / 2
    }

    /// Returns how far the zeros of a next segment of `bytes` should reach now.
    fn end_of(self, bytes: u64) -> u64 {
        let sixteenth = (self.segment_bytes / 16).max(1);
        let used = self.used.saturating_sub(8 * sixteenth);
        let end = u128::from(bytes) * u128::from(used) / u128::from(7 * sixteenth);
        u64::try_from(end).map_or(bytes, |end| end.min(bytes))
    }
}

impl Preparing {
    fn take(&mut self) -> Preparing {
        std::mem::replace(self, Preparing::Idle)
    }

    pub(super) fn preparation(&self) -> Option<&Preparation> {
        match self {
            Preparing::InFlight(next) | Preparing::Waiting(next) => Some(next),
            Preparing::Idle | Preparing::Failed(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Fault;
    use crate::log::LogOptions;
    use crate::log::testing::{folder, read, used_bytes};
    use crate::{Log, Sim, SyncPolicy};

    /// Waits for a record until it is durable or the log has failed. Returns whether a wait
    /// reported that it is not durable yet.
    fn wait_until_known(log: &Log, sequence: u64) -> Result<bool, Error> {
        let mut has_waited = false;
        loop {
            match log.ticket(sequence).wait() {
                Err(Error::NotYet { .. }) => has_waited = true,
                known => return known.map(|()| has_waited),
            }
        }
    }

    #[test]
    fn an_error_that_may_pass_at_a_new_segment_loses_no_record_and_doubles_none() {
        // W1, W2
        let mut waits = 0;
        for errno in MAY_PASS {
            for operation in 0..60 {
                let sim = Sim::new(operation);
                let options = Log::options().segment_bytes(64 << 10).buffers(2);
                let log = options.buffer_bytes(4096).on(&sim.disk()).open(folder()).unwrap();
                // A shorter preparation is tried at once, so it fails several times.
                let begin = sim.operations() + operation;
                (begin..begin + 8).for_each(|at| sim.fault(at, Fault::Once(errno)));
                let mut durable = 0;
                for number in 0..60_u64 {
                    let appended = log.append(&[number as u8; 3000]).map(|it| it.sequence());
                    let Ok(sequence) = appended else { break };
                    match wait_until_known(&log, sequence) {
                        Ok(has_waited) => waits += u64::from(has_waited),
                        Err(error) => {
                            assert_eq!(error.errno(), errno);
                            break;
                        }
                    }
                    durable = number + 1;
                }
                drop(log);
                sim.restart();
                let (records, end) = read(&sim, 0);
                end.unwrap();
                assert!(records.len() as u64 >= durable, "{errno} at {operation}");
                let in_order = (0..).zip(&records).all(|(number, it)| it.bytes[0] == number);
                assert!(in_order, "{errno} at {operation}");
            }
        }
        assert!(waits > 0, "no attempt found an error that may pass");
    }

    #[test]
    fn a_segment_begun_without_zeros_gets_them_ahead_of_its_later_records() {
        let sim = Sim::new(1);
        let options = Log::options().buffers(2).buffer_bytes(4096).segment_bytes(256 << 10);
        let log = options.on(&sim.disk()).open(folder()).unwrap();
        let (mut resumed, mut in_zeros) = (0, 0);
        for number in 0..600_u64 {
            log.append(&[number as u8; 3000]).unwrap().wait().unwrap();
            let driver = log.driver();
            let _ = driver.visit(|flusher| {
                let OpenSegment { written, end, prepared, .. } = flusher.segment.as_ref().unwrap();
                if written.start > 0 {
                    // W3: zeros never reach records.
                    assert!(end <= prepared && written.end <= *prepared);
                    resumed += 1;
                    in_zeros += u32::from(written.contains(end));
                }
                Ok(())
            });
        }
        assert!(resumed > 50 && in_zeros > resumed / 2, "{in_zeros} of {resumed}");
        drop(log);
        sim.restart();
        let (records, end) = read(&sim, 0);
        end.unwrap();
        assert_eq!(records.len(), 600);
    }

    #[test]
    fn records_of_a_new_segment_do_not_wait_for_zeros_that_fell_behind() {
        // W1
        let (mut partly, mut lost) = (0, 0);
        for seed in 0..20 {
            let sim = Sim::new(seed);
            let options = Log::options().buffers(8).buffer_bytes(4096).segment_bytes(128 << 10);
            let log = options.on(&sim.disk()).open(folder()).unwrap();
            sim.fault(sim.operations() + 200 + 31 * seed, Fault::PowerLoss);
            let mut durable = 0;
            for number in 0..2000_u64 {
                let Ok(ticket) = log.append(&[number as u8; 3000]) else { break };
                if number % 64 == 63 && ticket.wait().is_ok() {
                    durable = number + 1;
                }
                let _ = log.driver().visit(|flusher| {
                    if let Some(OpenSegment { written, end, prepared, .. }) = &flusher.segment {
                        assert!(end <= prepared && written.end <= *prepared);
                        let is_part = written.start == 0 && !written.is_empty();
                        partly += u32::from(is_part && written.end < *prepared);
                    }
                    Ok(())
                });
            }
            drop(log);
            sim.restart();
            let (records, end) = read(&sim, 0);
            end.unwrap();
            assert!(records.len() as u64 >= durable, "seed {seed}");
            let mut in_order = (0_u64..).zip(&records);
            assert!(in_order.all(|(number, it)| it.bytes[0] == number as u8), "seed {seed}");
            lost += u32::from(records.len() as u64 > durable);
        }
        assert!(partly > 20 && lost > 0, "{partly} in part, {lost}");
    }

    #[test]
    fn a_power_loss_beside_unflushed_segments_leaves_the_same_records_from_any_place_on() {
        // W1
        let (mut most, mut absorbed, mut lost) = (0, false, false);
        for seed in 0..40 {
            let sim = Sim::new(seed);
            let options = Log::options().sync(SyncPolicy::No).buffers(3).buffer_bytes(4096);
            let options = options.segment_bytes(8192);
            let log = options.clone().on(&sim.disk()).open(folder()).unwrap();
            sim.fault(sim.operations() + 19 * seed, Fault::PowerLoss);
            let mut known = 0;
            for number in 0..400_u64 {
                if log.append(&[number as u8; 700]).is_err() {
                    break;
                }
                let stats = log.stats();
                known = stats.durable_sequence;
                assert!(stats.flushed_bytes <= stats.written_bytes);
                let driver = log.driver();
                let _ = driver.visit(|flusher| {
                    most = most.max(flusher.unflushed.len());
                    absorbed |= flusher.absorbing.is_some();
                    Ok(())
                });
            }
            drop(log);
            sim.restart();
            let (records, end) = read(&sim, 0);
            end.unwrap();
            assert!(records.len() as u64 >= known, "seed {seed}");
            lost |= records.len() as u64 > known;
            for from in (0..410).step_by(37) {
                let (rest, end) = read(&sim, from);
                end.unwrap();
                assert!(rest == records[records.len().min(from as usize)..], "{seed}, {from}");
            }
            let log = options.on(&sim.disk()).open(folder()).unwrap();
            assert_eq!(log.stats().next_sequence, records.len() as u64, "seed {seed}");
            log.append(b"more").unwrap().wait().unwrap();
            log.close().unwrap();
            assert_eq!(read(&sim, 0).0.len(), records.len() + 1, "seed {seed}");
        }
        assert!(most > 2 && absorbed && lost, "{most} unflushed at most, {absorbed}, {lost}");
    }

    fn small() -> LogOptions {
        let options = Log::options().sync(SyncPolicy::No).buffers(8).buffer_bytes(4096);
        options.segment_bytes(8192)
    }

    #[test]
    fn a_log_that_promises_nothing_begins_in_the_page_cache() {
        let folder = tempfile::tempdir().unwrap();
        let log = Log::options().sync(SyncPolicy::No).open(folder.path().join("log")).unwrap();
        log.append(b"first").unwrap().wait().unwrap();
        let driver = log.driver();
        let is_direct = driver.visit(|flusher| {
            let segment = flusher.segment.as_ref().unwrap();
            Ok(flusher.engine.is_direct(segment.file))
        });
        assert!(!is_direct.unwrap());
    }

    #[test]
    fn after_a_slow_disk_has_caught_up_only_what_is_to_be_durable_soon_passes_the_page_cache() {
        for (sync, stays) in [(SyncPolicy::No, true), (SyncPolicy::EverySec, false)] {
            let sim = Sim::new(1);
            let log = small().buffers(2).sync(sync).on(&sim.disk()).open(folder()).unwrap();
            let absorbs = || {
                let mut absorbs = false;
                let driver = log.driver();
                let _ = driver.visit(|flusher| {
                    absorbs = flusher.absorbing.is_some();
                    Ok(())
                });
                absorbs
            };
            let append = || drop(log.append(&[b'r'; 3900]).unwrap());
            while !absorbs() {
                append();
            }
            for _ in 0..8 {
                append();
                log.sync().unwrap();
            }
            assert_eq!(absorbs(), stays, "{sync:?}");
        }
    }

    #[test]
    fn lines_go_on_in_the_next_file_while_the_last_becomes_durable_by_its_own_write() {
        let sim = Sim::new(1);
        let options = small().sync(SyncPolicy::Always).format(Format::Lines);
        let log = options.on(&sim.disk()).open(folder()).unwrap();
        let (driver, mut begun_beside) = (log.driver(), 0);
        for _ in 0..40 {
            let segments = log.stats().segments;
            let tickets = [b'a', b'b'].map(|byte| {
                let ticket = log.append(&[byte; 1700]).unwrap();
                driver.state.durable.want(ticket.sequence() + 1);
                let _ = driver.state.claims.close_open();
                // Waits for no write.
                let start = |flusher: &mut Flusher| flusher.start_batches(&driver.state);
                assert!(driver.visit(start).unwrap());
                ticket
            });
            let is_by_itself = log.stats().durable_sequence == tickets[0].sequence() + 1;
            begun_beside += u32::from(is_by_itself && log.stats().segments > segments);
            tickets.into_iter().for_each(|ticket| ticket.wait().unwrap());
        }
        assert!(begun_beside > 5, "{begun_beside}");
        log.close().unwrap();
        assert_eq!(log.reader(0).unwrap().count(), 80);
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
                let driver = log.driver();
                let _ = driver.visit(|flusher| {
                    most = most.max(flusher.unflushed.len());
                    Ok(())
                });
                // The current segment, the next, and one that has just become full.
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

    #[test]
    fn the_next_segment_is_prepared_while_the_second_half_of_this_one_fills() {
        let pace = |used| Pace { used, segment_bytes: 16 << 20 };
        assert!(!pace((8 << 20) - 1).begins() && pace(8 << 20).begins());
        let ends = [0, 8 << 20, 11_534_336, 15 << 20, 16 << 20, u64::MAX / 2]
            .map(|used| pace(used).end_of(32 << 20) >> 20);
        assert_eq!(ends, [0, 0, 13, 32, 32, 32]);
        assert_eq!(Pace { used: 0, segment_bytes: 0 }.end_of(4096), 0);
    }
}
