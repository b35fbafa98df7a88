//! The flusher, which writes ready batches and flushes them for waiting callers.
//!
//! A log has one flusher, which has no thread of its own: the thread that holds it drives it. A
//! flush starts when a caller wants one and none is in flight. Callers that arrive during a flush
//! share the next one, so groups grow with the disk's latency. If flushes are long, the next one
//! also waits for the producers whose records the last one made durable (`gather.rs`). While a
//! wanted flush is in flight, no batch is written, because that would split the waiting callers
//! into two groups with a write each.
//!
//! A flush covers a single file, the oldest one with records that are not durable. Each flush
//! occupies a kernel thread, and writes need kernel threads, too.

use super::ahead::Room;
use super::batches::{Batch, Batches};
use super::claim::ClosedBatch;
use super::gather::Gathering;
use super::input::LogFiles;
use super::prepare;
use super::segment::{SegmentHeader, Start};
use super::space::Space;
use super::state::{Goal, LogState};
use crate::engine::Op;
use crate::{Completion, Effective, Engine, Error, SyncPolicy};
use std::time::{Duration, Instant};

/// The user data of a flush. The user data of a batch is the sequence of its first record.
const FLUSH: u64 = 1 << 62;

/// The number of times to yield to a producer that has claimed a place but not published it, before
/// sleeping instead. The sleeps grow from the minimum to the maximum.
const YIELDS: u32 = 200;
const SLEEP_MIN: Duration = Duration::from_micros(50);
const SLEEP_MAX: Duration = Duration::from_millis(1);

/// The interval at which to check for new batches while a flush but no write is in flight. It is
/// short enough that a log's buffers do not fill up before the next check.
const LOOK: Duration = Duration::from_millis(1);

/// The writer of a log, used by one thread at a time.
pub(super) struct Flusher {
    engine: Engine,
    batches: Batches,
    space: Space,
    gathering: Gathering,
    /// Whether recovery has cut something off, which the first batch states.
    after_cut: bool,
    /// Whether the next batch has been held up until earlier records are durable.
    was_held_up: bool,
    completions: Vec<Completion>,
}

// SAFETY: the fields that are not `Send` are reference-counted pointers among the engine, its pool
// and the buffers. All of them are within the flusher and none is handed out, so they move
// together. Producers have addresses of buffers, which stay valid when the flusher moves. The
// engine is created for use by callers on any thread.
unsafe impl Send for Flusher {}

impl Flusher {
    /// Creates the flusher of a log with `slots` buffers, and gives every slot its first buffer.
    pub(super) fn new(
        mut engine: Engine,
        state: &LogState,
        slots: u32,
        space: Space,
        after_cut: bool,
    ) -> Result<Flusher, Error> {
        let mut batches = Batches::new(slots, state.next_sequence());
        batches.open(&mut engine, state)?;
        Ok(Flusher {
            engine,
            batches,
            space,
            gathering: Gathering::default(),
            after_cut,
            was_held_up: false,
            completions: Vec::new(),
        })
    }

    pub(super) fn effective(&self) -> &Effective {
        self.engine.effective()
    }

    /// Returns whether work is left that another run must do soon. A step of a preparation can wait
    /// for the next run, so it is ignored.
    pub(super) fn leaves_work(&self) -> bool {
        self.engine.outstanding() > usize::from(self.space.ahead.is_in_flight())
    }

    /// Returns whether the current segment is older than `age`, but returns true only once per
    /// segment.
    pub(super) fn take_rotation(&mut self, age: Duration) -> bool {
        self.space.take_rotation(age)
    }

    /// Works until `is_enough` returns true or no work is left. An error fails the log.
    pub(super) fn run(&mut self, state: &LogState, is_enough: &dyn Fn() -> bool) {
        let mut unpublished = 0;
        while !state.has_failed() && !is_enough() {
            match self.step(state) {
                Ok(true) => unpublished = 0,
                Ok(false) if state.lacks_room() => break,
                Ok(false) if state.claims.has_closed() => {
                    unpublished += 1;
                    give_way(unpublished);
                }
                Ok(false) => break,
                Err(error) => state.fail(error),
            }
        }
        self.batches.wake(state);
    }

    /// Starts everything that can start, and waits until some of it completes. Returns whether
    /// there was anything to do.
    fn step(&mut self, state: &LogState) -> Result<bool, Error> {
        // Woken callers whose records are durable may append to the batch that is closed next.
        self.batches.wake(state);
        if self.gathers(state) {
            self.gathering.pause()();
            return Ok(true);
        }
        self.batches.close_wanted(state);
        let has_started = self.start_batches(state)? | self.start_flush(state)?;
        let is_idle = self.batches.waiting(state) == 0
            && !self.batches.are_in_flight()
            && !state.durable.is_wanted();
        self.space.prepare_ahead(&mut self.engine, state, is_idle)?;
        self.engine.submit()?;
        self.batches.wake(state);
        if self.engine.outstanding() == 0 {
            return Ok(has_started);
        }
        self.reap(state)?;
        Ok(true)
    }

    /// Returns whether the next flush must wait for producers to append again.
    fn gathers(&mut self, state: &LogState) -> bool {
        self.gathering.is_armed()
            && self.batches.may_gather(state)
            && self.gathering.is_waiting(self.batches.waiting(state), self.engine.now())
    }

    fn start_batches(&mut self, state: &LogState) -> Result<bool, Error> {
        if self.batches.hold_up(state, || self.engine.now()) {
            self.was_held_up |= state.claims.next_ready().is_some();
            return Ok(false);
        }
        let mut has_started = false;
        while !self.batches.are_all_in_flight()
            && let Some(ready) = state.claims.next_ready()
        {
            match self.space.make_room(&mut self.engine, state, &ready)? {
                Room::Ready => {}
                Room::Waits => break,
                Room::Lacks(error) => {
                    state.lack_room(self.batches.taken(), error);
                    break;
                }
            }
            state.find_room();
            let closed = state.claims.take_ready().expect("one thread takes ready batches");
            self.start_batch(state, &closed);
            has_started = true;
        }
        Ok(has_started)
    }

    fn start_batch(&mut self, state: &LogState, closed: &ClosedBatch) {
        self.gathering.end();
        let mut buffer = self.batches.take_buffer(closed.slot);
        if closed.count == 0 {
            self.batches.fill_slot(state, closed.slot, buffer);
            return;
        }
        let is_durable = self.batches.can_be_durable_alone(state)
            && self.space.has_durable_names()
            && closed.start.offset > 0;
        let bytes = closed.bytes.next_multiple_of(state.terms.layout.block_bytes as usize);
        let after_cut = std::mem::take(&mut self.after_cut);
        let file = self.space.add_batch(state, closed, &mut buffer, bytes, is_durable, after_cut);
        buffer[closed.bytes..bytes].fill(0);
        buffer.set_len(bytes);
        let Start { first_sequence, offset, .. } = closed.start;
        let op = Op::Write { file, offset, buffer, durable: is_durable };
        self.engine.queue(first_sequence, op);
        let now = self.engine.now();
        self.batches.start(Batch::new(closed, bytes as u64, is_durable, now));
        let mut counted = state.counted();
        counted.batches += 1;
        counted.late_batches += u64::from(std::mem::take(&mut self.was_held_up));
        counted.written_bytes += bytes as u64;
    }

    /// Starts a flush if a caller wants one and none is in flight. Returns whether a flush was
    /// started.
    fn start_flush(&mut self, state: &LogState) -> Result<bool, Error> {
        if !self.batches.is_flush_due(state, self.space.full_end()) {
            return Ok(false);
        }
        let (file, covers) = self.space.take_dirty(state.written.done());
        self.batches.begin_flush(covers, self.engine.now());
        state.counted().flushes += 1;
        match file {
            Some(file) => self.engine.queue(FLUSH, Op::Fdatasync { file }),
            None => self.end_flush(state)?,
        }
        Ok(true)
    }

    fn end_flush(&mut self, state: &LogState) -> Result<(), Error> {
        let (covers, since) = self.batches.end_flush();
        self.space.sync_names(&mut self.engine, state)?;
        self.reach_durable(state, covers, since);
        self.space.seal(&mut self.engine, state)
    }

    /// Waits until an operation completes, but for at most [`LOOK`] if no batch is in flight, and
    /// processes all completions.
    fn reap(&mut self, state: &LogState) -> Result<(), Error> {
        let mut completions = std::mem::take(&mut self.completions);
        let mut result = match self.batches.are_in_flight() || state.lacks_room() {
            true => self.engine.reap(1, &mut completions),
            false => self.engine.reap_within(LOOK, &mut completions),
        };
        for completion in completions.drain(..) {
            let settled = self.settle(state, completion);
            result = result.and(settled);
        }
        self.completions = completions;
        // Completed batches are acknowledged even if another operation has failed.
        let acknowledged = self.acknowledge(state);
        result.and(acknowledged)
    }

    /// Waits for all operations in flight, and processes their completions.
    fn reap_all(&mut self, state: &LogState) -> Result<(), Error> {
        while self.engine.outstanding() > 0 {
            self.reap(state)?;
        }
        Ok(())
    }

    fn settle(&mut self, state: &LogState, completion: Completion) -> Result<(), Error> {
        match completion.user_data {
            prepare::USER_DATA => self.space.settle_preparation(&mut self.engine, completion),
            FLUSH => completion.result.and_then(|_| self.end_flush(state)),
            first_sequence => completion.result.map(|_| self.batches.settle(first_sequence)),
        }
    }

    fn acknowledge(&mut self, state: &LogState) -> Result<(), Error> {
        let durable = self.batches.acknowledge(&mut self.engine, state)?;
        if let Some((end, begun_at)) = durable {
            self.space.check_names(&self.engine)?;
            state.counted().flushes += 1;
            self.reach_durable(state, end, begun_at);
        }
        Ok(())
    }

    fn reach_durable(&mut self, state: &LogState, sequence: u64, since: Instant) {
        let reached = self.batches.reach_durable(state, sequence, since);
        let now = self.engine.now();
        // With other policies, no caller may have waited, so records may be much older than their
        // flush.
        if reached.bytes > 0 && state.terms.sync == SyncPolicy::Always {
            let (time, waiting) = (now - reached.last_begun_at, self.batches.waiting(state));
            self.gathering.note_flush(time, reached.records, waiting, now);
        }
        self.space.ahead.note_flush(reached.bytes);
        let mut counted = state.counted();
        counted.flushed_bytes += reached.bytes;
        counted.flush_time += now - since;
    }

    /// Makes every full segment durable, and seals it.
    fn flush_full(&mut self, state: &LogState) -> Result<(), Error> {
        loop {
            // A batch in flight may become durable by its own write. Then no flush seals its
            // segment.
            self.space.seal(&mut self.engine, state)?;
            if !self.space.has_full() {
                return Ok(());
            }
            state.durable.want(self.space.full_end());
            self.step(state)?;
        }
    }

    /// Writes every record before `end`, and makes them durable.
    fn make_durable(&mut self, state: &LogState, end: u64) -> Result<(), Error> {
        let lacks = state.lacks();
        state.durable.want(end);
        // An empty batch that has been closed must be taken, too.
        let is_enough = || state.durable.done() >= end && !state.claims.has_closed();
        self.run(state, &is_enough);
        state.check()?;
        // The records will be written later, but this call fails now.
        let lacked = state.lacked_since(lacks, Goal::Durable, end);
        lacked.map_or(Ok(()), |error| Err(error.given_up()))
    }

    /// Removes the segments whose records are all before `sequence`, and makes the removal durable.
    /// Returns the sequence of the first remaining record.
    pub(super) fn trim(&mut self, state: &LogState, sequence: u64) -> Result<u64, Error> {
        if self.space.has_full_before(sequence) {
            self.make_durable(state, state.next_sequence())?;
            self.flush_full(state)?;
        }
        self.space.trim(&mut self.engine, state, sequence)
    }

    /// Removes record `next` and all later ones. An error before the cut leaves the log unchanged.
    /// A later error fails the log, because the disk may have either state.
    pub(super) fn cut(
        &mut self,
        state: &LogState,
        files: &LogFiles,
        next: u64,
    ) -> Result<(), Error> {
        // A batch that this makes ready is taken below.
        let _ = state.claims.pause();
        let cut = self.cut_paused(state, files, next);
        if let Ok(Some(_)) = &cut {
            self.batches.cut(next);
            self.after_cut = false;
            state.cut(next);
        }
        state.claims.resume(cut.as_ref().ok().copied().flatten());
        self.batches.note_room(state);
        self.batches.wake(state);
        cut.map(drop)
    }

    /// Cuts the log while no batch is open. Returns the position at which the log continues; `None`
    /// if there was nothing to cut.
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
        // Retention may remove some segments now.
        self.flush_full(state)?;
        self.reap_all(state)?;
        if next >= state.next_sequence() {
            return Ok(None);
        }
        let refused = |because: String| Err(Error::refused(state.terms.folder.path(), because));
        let first = state.counted().first_sequence;
        if next < first {
            return refused(format!("the records before {first} were removed: nothing is cut off"));
        }
        let number = self.space.number_after_cut();
        let place = self.space.cut_place(files, next, number)?;
        if !SegmentHeader::can_continue(number, place.header.previous()) {
            return refused(
                "more segments than a cut can take off; open the log anew in between".to_owned(),
            );
        }
        self.space.cut_at(&mut self.engine, state, files, place).map(Some)
    }

    /// Closes the log: makes everything durable, marks the end with a last batch, and cuts off the
    /// space after it. The inner error means that the disk is full: the remaining records stay in
    /// memory.
    pub(super) fn close(&mut self, state: &LogState) -> Result<Result<(), Error>, Error> {
        let lacks = state.lacks();
        let end = state.next_sequence();
        state.durable.want(end);
        self.run(state, &|| state.durable.done() >= end);
        state.check()?;
        if let Some(error) = state.lacked_since(lacks, Goal::Durable, end) {
            return Ok(Err(error));
        }
        // Operations can be in flight even if nothing had to be flushed.
        self.reap_all(state)?;
        let after_cut = std::mem::take(&mut self.after_cut);
        self.space.close(&mut self.engine, state, end, after_cut).map(Ok)
    }

    /// Waits for all operations in flight. To be called once the log has failed, is closed, or
    /// waits for room.
    pub(super) fn drain(&mut self, state: &LogState) {
        // Errors are ignored: a failed log already reports its first error.
        if state.has_failed() || self.reap_all(state).is_err() {
            let _ = self.engine.drain();
        }
    }

    /// Returns the engine, the batches and the space, for tests that inspect them.
    #[cfg(test)]
    pub(super) fn parts(&mut self) -> (&mut Engine, &mut Batches, &mut Space) {
        (&mut self.engine, &mut self.batches, &mut self.space)
    }
}

/// Gives way to a producer that has claimed a place but not published it, by yielding at first and
/// then by sleeping.
fn give_way(times: u32) {
    match times.checked_sub(YIELDS) {
        None => std::thread::yield_now(),
        Some(slept) => std::thread::sleep((SLEEP_MIN * (1 + slept)).min(SLEEP_MAX)),
    }
}

#[cfg(test)]
mod tests {
    use crate::log::LogOptions;
    use crate::log::testing::{folder, read};
    use crate::{Log, Sim, SyncPolicy};

    /// Returns the options of a log with two batches per segment.
    fn small(sync: SyncPolicy) -> LogOptions {
        let options = Log::options().sync(sync).buffers(8).buffer_bytes(4096);
        options.segment_bytes(8192)
    }

    #[test]
    fn full_segments_become_durable_one_by_one_the_oldest_first() {
        // W1, W9
        let mut most = 0;
        for seed in 0..40 {
            let sim = Sim::new(seed);
            let log = small(SyncPolicy::No).on(&sim.disk()).open(folder()).unwrap();
            (0..60_u64).for_each(|number| {
                drop(log.append(&number.to_le_bytes().repeat(400)).unwrap());
            });
            // Everything is written before the rest is flushed.
            log.append(b"last").unwrap().until_written().wait().unwrap();
            let driver = log.driver();
            let visit = |steps| {
                driver.visit(|flusher| {
                    for _ in 0..steps {
                        flusher.step(&driver.state).unwrap();
                    }
                    let (_, _, space) = flusher.parts();
                    Ok(space.full_ends())
                })
            };
            let mut before = visit(0).unwrap();
            most = most.max(before.len());
            driver.state.durable.want(log.stats().next_sequence);
            while !before.is_empty() {
                let left = visit(1).unwrap();
                assert!(before.ends_with(&left) && before.len() - left.len() <= 1, "seed {seed}");
                let sealed = &before[..before.len() - left.len()];
                assert!(sealed.iter().all(|end| *end <= log.stats().durable_sequence));
                before = left;
            }
            let durable = log.stats().durable_sequence;
            sim.restart();
            drop(log);
            let (records, end) = read(&sim, 0);
            end.unwrap();
            assert!(records.len() as u64 >= durable, "seed {seed}: {durable} were durable");
        }
        assert!(most >= 4, "{most} segments waited at most");
    }

    #[test]
    fn records_wait_for_a_flush_while_earlier_ones_are_older_than_two_intervals() {
        for (sync, is_late) in
            [(SyncPolicy::EverySec, true), (SyncPolicy::No, false), (SyncPolicy::Always, false)]
        {
            let mut late = 0;
            for seed in 0..20 {
                let sim = Sim::new(seed);
                let options = small(sync).segment_bytes(64 << 10);
                let log = options.on(&sim.disk()).open(folder()).unwrap();
                for number in 0..300_u64 {
                    drop(log.append(&number.to_le_bytes().repeat(200)).unwrap());
                }
                late += log.stats().late_batches;
                log.close().unwrap();
                assert_eq!(read(&sim, 0).0.len(), 300, "seed {seed}");
            }
            assert_eq!(late > 20, is_late, "{sync:?}: {late}");
        }
    }
}
