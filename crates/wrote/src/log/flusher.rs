//! The flusher: writes ready batches, flushes them for waiting callers, and prepares segments.
//!
//! A log has one flusher without its own thread: the thread that holds it drives it. A flush starts
//! when a caller wants one and none is running; callers that arrive during it share the next. So
//! groups grow with the disk's latency. Where flushes are long, those whose records it made durable
//! are awaited too (`gather.rs`). No batch is written during a flush wanted for it, which would
//! split the waiting callers into two groups with a write each.

mod clock;
mod gather;
mod pace;
mod segments;
mod shorten;
mod spare;
#[cfg(test)]
mod tests;
mod zeros;

pub(super) use segments::AHEAD_BYTES_MIN;

use super::batch::BatchHeader;
use super::claim::ClosedBatch;
use super::format::Format;
use super::layout::Start;
use super::prepare::{self, Preparation};
use super::retention::Retention;
use super::segment::{self, SegmentHeader, unix_ns, unix_ns_ago};
use super::state::LogState;
use super::wait::{Waiters, wake};
use crate::buffer::Buffer;
use crate::engine::Op;
use crate::{Action, Completion, Durable, Effective, Engine, Error, FileId, SyncPolicy};
use clock::{Clock, SIMULATED_BYTES_PER_S};
use gather::Gathering;
use pace::{Admission, DiskPace, DiskRate};
use spare::Spare;
use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use zeros::Zeros;

/// The user data of a segment's flush. A batch uses the sequence of its first record.
const FLUSH: u64 = 1 << 62;

/// How often to yield to a producer that has claimed and not published, before sleeping. Sleeps
/// grow from the minimum to the maximum.
const YIELDS: u32 = 200;
const SLEEP_MIN: Duration = Duration::from_micros(50);
const SLEEP_MAX: Duration = Duration::from_millis(1);

/// The interval of checking for new batches while no write but a flush is in flight: short enough
/// that a log's buffers are not full before the next check. Also used to check whether producers
/// wait while every buffer is in flight.
const LOOK: Duration = Duration::from_millis(1);

/// The writer of a log, used by one thread at a time.
pub(super) struct Flusher {
    engine: Engine,
    clock: Clock,
    /// The buffer of each slot, unless it is in flight.
    buffers: Vec<Option<Buffer>>,
    batches: VecDeque<Batch>,
    /// The sequence after the last queued batch.
    taken: u64,
    flush: Flush,
    /// The current segment; `None` before the first batch of a new log.
    segment: Option<OpenSegment>,
    /// The end of the previous segment, and the checksum of its last batch.
    previous: Option<(u64, u32)>,
    /// Full segments that are not flushed yet.
    unflushed: Vec<OpenSegment>,
    /// Set while the page cache absorbs what the disk can't keep up with.
    absorbing: Option<Absorbing>,
    pace: DiskPace,
    gathering: Gathering,
    /// When the last batch was started, and its bytes.
    last_batch: Option<(Instant, u64)>,
    zeros: Zeros,
    preparing: Preparing,
    /// When the next batch was ready, while it has no prepared space.
    needs_room_since: Option<Instant>,
    /// The next batch was held up.
    was_held_up: bool,
    spare: Option<Spare>,
    /// The file of an abandoned preparation that could not be removed.
    left_over: Option<PathBuf>,
    /// The file system can't determine whether a file is shared, so none is reused.
    knows_no_sharing: bool,
    /// The next segment should be started, by a run that may change the folder.
    is_next_due: bool,
    /// Bytes of records written since opening; that much space is prepared ahead.
    written_bytes: u64,
    retention: Retention,
    /// Names in the folder have changed since it was synced.
    is_folder_dirty: bool,
    /// Segments were removed since it was synced.
    has_removed: bool,
    /// Recovery has cut something off, which the first batch states.
    after_cut: bool,
    /// Bytes of batches not known to be durable.
    behind_bytes: u64,
    /// Written batches not known to be durable, in order.
    not_durable: VecDeque<Batch>,
    wakeups: Wakeups,
    completions: Vec<Completion>,
    /// The end of a brief run, which leaves longer work to others.
    brief_until: Option<Instant>,
    /// In a brief run, nothing completed in time.
    is_late: bool,
}

// SAFETY: the parts that are not `Send` are the counted references between the engine, its pool and
// the buffers. All of them are inside and none is handed out, so they move together. Producers have
// addresses of buffers, which stay valid wherever the flusher is. The engine is created for callers
// on any thread.
unsafe impl Send for Flusher {}

/// A batch in flight or written.
struct Batch {
    slot: usize,
    bytes: u64,
    end_sequence: u64,
    /// When it was ready, and first needed room.
    begun_at: Instant,
    /// Its write makes it durable, and all records before it are.
    is_durable: bool,
    is_done: bool,
    /// Its blocks were written before.
    in_written: bool,
}

/// Writes go through the page cache, since the disk is slow or not known yet.
struct Absorbing {
    /// The segment in which that started.
    since: u64,
    rate: DiskRate,
    /// The end of the last flush.
    flushed_at: Option<Instant>,
}

enum Flush {
    Idle,
    /// It starts once all records before this sequence are written.
    Wanted(u64),
    /// It makes all records before `covers` durable, once the flushes of `left` files are complete.
    Running {
        covers: u64,
        left: usize,
        since: Instant,
        /// The bytes of the records that it covers.
        bytes: u64,
    },
}

/// Preparing space ahead: more of the current segment, or the next one.
enum Preparing {
    Idle,
    InFlight(Preparation),
    /// No step is in flight; [`Preparation::is_ready`] returns whether one is left.
    Waiting(Preparation),
    /// It failed ahead of time, and is retried when needed.
    Failed(Error),
}

pub(super) struct OpenSegment {
    pub file: FileId,
    pub path: PathBuf,
    pub number: u64,
    pub end: u64,
    /// The end of its prepared space, which no record may exceed. A segment of lines has none.
    pub prepared: u64,
    /// The blocks written before its records; none before the first record of these.
    pub written: Range<u64>,
    pub last_checksum: u32,
    pub first_sequence: u64,
    /// Its file was another segment's.
    is_recycled: bool,
    created_at_ns: u64,
    /// It exceeded its age: the batch after the next starts another.
    is_old: bool,
    /// It was written since the last flush started.
    is_dirty: bool,
    pub end_sequence: u64,
}

impl OpenSegment {
    pub(super) fn new(file: FileId, path: PathBuf, number: u64, created_at_ns: u64) -> OpenSegment {
        OpenSegment {
            file,
            path,
            number,
            end: 0,
            prepared: 0,
            written: 0..0,
            last_checksum: 0,
            first_sequence: 0,
            is_recycled: false,
            created_at_ns,
            is_old: false,
            is_dirty: false,
            end_sequence: 0,
        }
    }
}

/// The gates and futures to wake once the disk is busy again.
#[derive(Default)]
struct Wakeups {
    gates: Vec<usize>,
    waiters: Vec<Waiters>,
}

pub(super) struct Beginning {
    pub slots: u32,
    pub is_simulated: bool,
    pub segment: Option<OpenSegment>,
    /// The first segment of a new log.
    pub first: Option<Preparation>,
    pub retention: Retention,
    pub next_sequence: u64,
    pub after_cut: bool,
}

impl Flusher {
    pub(super) fn new(engine: Engine, beginning: Beginning) -> Flusher {
        Flusher {
            engine,
            clock: Clock::new(beginning.is_simulated),
            buffers: (0..beginning.slots).map(|_| None).collect(),
            batches: VecDeque::new(),
            taken: beginning.next_sequence,
            flush: Flush::Idle,
            segment: beginning.segment,
            previous: None,
            unflushed: Vec::new(),
            absorbing: None,
            pace: DiskPace::default(),
            gathering: Gathering::default(),
            last_batch: None,
            zeros: Zeros::default(),
            preparing: beginning.first.map_or(Preparing::Idle, Preparing::Waiting),
            needs_room_since: None,
            was_held_up: false,
            spare: None,
            left_over: None,
            knows_no_sharing: false,
            is_next_due: false,
            written_bytes: 0,
            retention: beginning.retention,
            is_folder_dirty: true,
            has_removed: false,
            after_cut: beginning.after_cut,
            behind_bytes: 0,
            not_durable: VecDeque::new(),
            wakeups: Wakeups::default(),
            completions: Vec::new(),
            brief_until: None,
            is_late: false,
        }
    }

    pub(super) fn open_slots(&mut self, state: &LogState) -> Result<(), Error> {
        self.begin_absorbing(state)?;
        (0..self.buffers.len()).try_for_each(|slot| self.free_slot(state, slot))
    }

    pub(super) fn effective(&self) -> &Effective {
        self.engine.effective()
    }

    fn has_work_in_flight(&self) -> bool {
        self.engine.outstanding() > 0
    }

    /// Returns whether work is left that another run must do soon. A step of a preparation does not
    /// count: the next run will see it.
    pub(super) fn leaves_work(&self) -> bool {
        let steps = usize::from(matches!(self.preparing, Preparing::InFlight(_)));
        self.engine.outstanding() > steps || self.is_next_due
    }

    /// Returns whether the current segment is older than `age`, once per segment.
    pub(super) fn take_rotation(&mut self, age: Duration) -> bool {
        let Some(segment) = &mut self.segment else { return false };
        let is_old = segment.created_at_ns < unix_ns_ago(age) && !segment.is_old;
        segment.is_old |= is_old;
        is_old
    }

    /// Like [`Flusher::run`] for at most `time`, as far as a write and a flush are concerned.
    /// Starts no segment, changes no name in the folder, and leaves operations in flight.
    pub(super) fn run_briefly(
        &mut self,
        state: &LogState,
        time: Duration,
        is_enough: &dyn Fn() -> bool,
    ) {
        if !self.is_folder_dirty && self.unflushed.is_empty() {
            self.brief_until = Some(Instant::now() + time);
            self.run(state, is_enough);
            (self.brief_until, self.is_late) = (None, false);
        }
    }

    fn is_brief(&self) -> bool {
        self.brief_until.is_some()
    }

    /// Works until `is_enough` holds or no work is left. An error fails the log.
    pub(super) fn run(&mut self, state: &LogState, is_enough: &dyn Fn() -> bool) {
        let mut unpublished = 0;
        while !state.has_failed() && !is_enough() {
            match self.step(state) {
                Ok(true) if self.is_late => break,
                Ok(true) => unpublished = 0,
                Ok(false) if state.lacks_room() || self.is_brief() => break,
                Ok(false) if state.claims.has_closed() => {
                    unpublished += 1;
                    give_way(unpublished);
                }
                Ok(false) => break,
                Err(error) => state.fail(error),
            }
        }
        self.wakeups.send(state);
    }

    /// Starts everything possible, and waits for some of it. Returns whether there was any.
    fn step(&mut self, state: &LogState) -> Result<bool, Error> {
        self.clock.step();
        // Callers whose records are durable may append more, for the batch closed now.
        self.wakeups.send(state);
        if self.gathers(state) {
            self.is_late = self.is_brief();
            if !self.is_late {
                self.gathering.pause();
            }
            return Ok(true);
        }
        self.close_wanted_batch(state);
        let has_started = self.start_batches(state)? | self.start_flush(state)?;
        self.start_preparing(state)?;
        self.engine.submit()?;
        self.wakeups.send(state);
        if self.engine.outstanding() == 0 {
            return Ok(has_started);
        }
        self.reap(state)?;
        Ok(true)
    }

    /// Returns whether a flush is wanted that waits for producers to return.
    fn gathers(&mut self, state: &LogState) -> bool {
        self.gathering.is_armed()
            && matches!(self.flush, Flush::Idle)
            && self.batches.is_empty()
            && state.durable.wanted() > self.taken
            && !state.written.is_wanted()
            && !state.claims.has_closed()
            && self.gathering.is_waiting(self.waiting(state), self.clock.now())
    }

    /// Returns the number of records that no batch in flight or written has.
    fn waiting(&self, state: &LogState) -> u64 {
        state.next_sequence().saturating_sub(self.taken)
    }

    /// Closes the open batch if a caller waits for one of its records. While writes, or a startable
    /// flush, are in flight, the batch stays open so that more records can join.
    fn close_wanted_batch(&mut self, state: &LogState) {
        if state.cuts() > 0 && self.batches.is_empty() {
            let next = || state.next_sequence();
            state.written.want_no_more_than(next);
            state.durable.want_no_more_than(next);
        }
        let wanted = match self.flush {
            Flush::Running { .. } => state.written.wanted(),
            Flush::Wanted(end) if end <= state.written.done() => state.written.wanted(),
            _ => state.written.wanted().max(state.durable.wanted()),
        };
        if self.batches.is_empty() && wanted > self.taken && !state.claims.has_closed() {
            // The caller takes ready batches next.
            let _ = state.claims.close_open();
        }
    }

    fn start_batches(&mut self, state: &LogState) -> Result<bool, Error> {
        let mut has_started = false;
        loop {
            if self.holds_up(state) {
                self.pace.drop_wait();
                self.needs_room_since = None;
                self.was_held_up |= state.claims.next_ready().is_some();
                return Ok(has_started);
            }
            if self.has_all_in_flight() {
                break;
            }
            let Some(ready) = state.claims.next_ready() else { break };
            let begun_at = *self.needs_room_since.get_or_insert_with(|| self.clock.now());
            if self.is_brief() && !self.has_room(state, &ready) {
                break;
            }
            let room = self.make_room(state, &ready)?;
            self.needs_room_since = None;
            if let Err(error) = room {
                state.lack_room(self.taken, error);
                break;
            }
            state.find_room();
            let closed = state.claims.take_ready().expect("one thread takes ready batches");
            self.start_batch(state, closed, begun_at)?;
            has_started = true;
        }
        let do_wait = match self.has_all_in_flight() {
            true => state.claims.next_ready().is_some(),
            // Callers with few records under way wait for the disk before the buffers are full.
            false => {
                let bytes: u64 = self.batches.iter().map(|batch| batch.bytes).sum();
                bytes >= pace::TRANSFER_BYTES_MIN && state.written.is_wanted()
            }
        };
        let slow_rate = match state.terms.held {
            Some(_) => self.pace.slow_rate(do_wait, self.clock.now()),
            // A simulated disk counts as slow.
            None => do_wait.then_some(SIMULATED_BYTES_PER_S),
        };
        if let Some(rate) = slow_rate {
            self.absorb(state, rate)?;
        }
        Ok(has_started)
    }

    /// Returns whether every buffer is in flight but the one that is left for the open batch.
    fn has_all_in_flight(&self) -> bool {
        self.batches.len() == self.buffers.len() - 1
    }

    /// Requests a flush once the oldest record that is not durable is as old as the interval, or so
    /// much is not durable that it could not be flushed in time. Returns whether the next batch
    /// waits for that.
    fn holds_up(&self, state: &LogState) -> bool {
        let (Some(interval), Some(oldest)) = (state.terms.interval(), self.not_durable.front())
        else {
            return false;
        };
        let now = self.clock.now();
        let age = now - oldest.begun_at;
        let rate = self.absorbing.as_ref().map(|disk| disk.rate.bytes_per_s());
        // Records that are held up continue at the disk's rate while a flush runs, and not a whole
        // segment at once when it ends.
        let flushed_bytes = match (&self.flush, rate) {
            (Flush::Running { since, bytes, .. }, Some(rate)) => {
                pace::flushed(*bytes, now - *since, rate)
            }
            _ => 0,
        };
        let behind_bytes = self.behind_bytes - flushed_bytes;
        let segment_bytes = state.terms.layout.segment_bytes;
        let admission = pace::admission(interval, age, behind_bytes, segment_bytes, rate);
        if admission != Admission::Free || age >= interval {
            state.durable.want(self.taken);
        }
        match admission {
            Admission::Free => false,
            Admission::Slowed(rate) => self
                .last_batch
                .is_some_and(|(begun_at, bytes)| now - begun_at < pace::distance(bytes, rate)),
            Admission::Held => true,
        }
    }

    /// Returns whether writes bypass the page cache, although no caller waits for the disk anyway.
    fn can_absorb(&self, state: &LogState) -> bool {
        let segment = self.segment.as_ref();
        let is_direct = segment.is_some_and(|segment| self.engine.is_direct(segment.file));
        is_direct && state.terms.sync != SyncPolicy::Always
    }

    /// Called when producers wait for a slow disk. From here on segments go through the page cache,
    /// which absorbs bursts, if it can.
    fn absorb(&mut self, state: &LogState, bytes_per_s: u64) -> Result<(), Error> {
        if self.can_absorb(state)
            && let Some(OpenSegment { file, number, .. }) = self.segment
        {
            let rate = DiskRate::new(bytes_per_s);
            self.absorbing = Some(Absorbing { since: number, rate, flushed_at: None });
            self.engine.set_direct(file, false)?;
        }
        Ok(())
    }

    /// Makes a log that promises nothing begin in the page cache, which takes a burst at memory's
    /// speed. A disk that keeps up is written to directly after two segments.
    fn begin_absorbing(&mut self, state: &LogState) -> Result<(), Error> {
        let is_real = state.terms.held.is_some();
        if is_real && state.terms.sync == SyncPolicy::No && self.written_bytes == 0 {
            self.absorb(state, u64::MAX)?;
        }
        Ok(())
    }

    /// Makes a new segment go through the page cache too, until the disk has caught up: when a
    /// segment ends, no earlier one must be left to flush. A direct write would wait for all of the
    /// kernel's pending writes. A log that promises nothing stays in the page cache once its
    /// producers have waited for a slow disk, so that the next burst is as fast.
    fn go_on_absorbing(&mut self, state: &LogState) -> Result<(), Error> {
        self.begin_absorbing(state)?;
        if let (Some(disk), Some(segment)) = (&self.absorbing, &self.segment) {
            let has_caught_up = segment.number >= disk.since + 2 && self.unflushed.len() <= 1;
            let stays =
                state.terms.sync == SyncPolicy::No && pace::is_slow(disk.rate.bytes_per_s());
            if has_caught_up && !stays {
                self.absorbing = None;
            } else {
                self.engine.set_direct(segment.file, false)?;
            }
        }
        Ok(())
    }

    fn start_batch(
        &mut self,
        state: &LogState,
        closed: ClosedBatch,
        begun_at: Instant,
    ) -> Result<(), Error> {
        self.gathering.end();
        let mut buffer = self.buffers[closed.slot].take().expect("the slot was in use");
        if closed.count == 0 {
            self.fill_slot(state, closed.slot, buffer);
            return Ok(());
        }
        // A single batch in flight, after durable records only, can become durable by its own
        // write.
        let is_alone = state.terms.durable == Durable::Dsync
            && state.durable.is_wanted()
            && state.durable.done() == self.taken
            && !matches!(self.flush, Flush::Running { .. })
            && !state.claims.has_closed();
        let is_durable = is_alone && !self.is_folder_dirty && closed.start.offset > 0;
        if state.format() == Format::Framed {
            self.write_headers(state, &closed, &mut buffer);
        }
        let bytes = closed.bytes.next_multiple_of(state.terms.layout.block_bytes as usize);
        buffer[closed.bytes..bytes].fill(0);
        buffer.set_len(bytes);
        let Start { first_sequence, offset, .. } = closed.start;
        let end_sequence = closed.end_sequence();
        let segment = self.segment.as_mut().expect("a segment was begun");
        if offset == 0 {
            segment.first_sequence = first_sequence;
        }
        segment.end = offset + closed.bytes as u64;
        segment.end_sequence = end_sequence;
        let in_written = segment.written.start <= offset && segment.end <= segment.written.end;
        segment.is_dirty |= !is_durable;
        let op = Op::Write { file: segment.file, offset, buffer, durable: is_durable };
        self.engine.queue(first_sequence, op);
        let slot = closed.slot;
        let (bytes, is_done) = (bytes as u64, false);
        let batch = Batch { slot, bytes, end_sequence, begun_at, is_durable, is_done, in_written };
        self.batches.push_back(batch);
        self.last_batch = Some((self.clock.now(), bytes));
        self.taken = end_sequence;
        self.written_bytes += bytes;
        self.behind_bytes += bytes;
        let mut counted = state.counted();
        counted.batches += 1;
        counted.late_batches += u64::from(std::mem::take(&mut self.was_held_up));
        counted.written_bytes += bytes;
        Ok(())
    }

    /// Writes the header of the batch, and of the segment if the batch begins one.
    fn write_headers(&mut self, state: &LogState, closed: &ClosedBatch, buffer: &mut Buffer) {
        let Start { first_sequence, segment: segment_id, offset } = closed.start;
        let layout = &state.terms.layout;
        let mut at = 0;
        if offset == 0 {
            let (previous_bytes, previous_checksum) = self.previous.unwrap_or_default();
            let header = SegmentHeader {
                is_recycled: self.segment.as_ref().is_some_and(|segment| segment.is_recycled),
                log_id: layout.log_id,
                segment_id,
                first_sequence,
                previous_bytes,
                previous_checksum,
                block_bytes: layout.block_bytes as u32,
                created_at_ns: unix_ns(),
                ..SegmentHeader::default()
            };
            header.encode(&mut buffer[..]);
            at = segment::HEADER_BYTES;
        }
        let header = BatchHeader {
            bytes: (closed.bytes - at) as u32,
            count: closed.count as u32,
            first_sequence,
            durable_sequence: state.durable.done(),
            written_at_ns: unix_ns(),
            after_cut: std::mem::take(&mut self.after_cut),
            closed: false,
            whole: state.claims.is_whole(closed.slot),
            longest_bytes: layout.capacity as u32,
        };
        let seed = segment::seed(layout.log_id, segment_id);
        let checksum = header.encode(&mut buffer[at..], seed);
        self.segment.as_mut().expect("a segment was begun").last_checksum = checksum;
    }

    /// Starts a flush if a caller wants one and none is running. Returns whether it did.
    fn start_flush(&mut self, state: &LogState) -> Result<bool, Error> {
        let is_running = matches!(self.flush, Flush::Running { .. })
            || self.batches.iter().any(|batch| batch.is_durable);
        let (written, durable) = (state.written.done(), state.durable.done());
        if is_running || self.taken == durable {
            return Ok(false);
        }
        if matches!(self.flush, Flush::Idle) && state.durable.is_wanted() {
            self.flush = Flush::Wanted(self.wanted_end(state));
        }
        let covers = match self.flush {
            Flush::Wanted(sequence) if sequence <= written => self.covered(sequence, written),
            _ => return Ok(false),
        };
        let mut left = 0;
        let segments = self.unflushed.iter_mut().chain(self.segment.as_mut());
        let is_covered = |it: &&mut OpenSegment| it.is_dirty && it.first_sequence < covers;
        for segment in segments.filter(is_covered) {
            // Batches in flight are not covered.
            segment.is_dirty =
                self.batches.iter().any(|batch| !batch.is_done) && segment.end_sequence > written;
            self.engine.queue(FLUSH, Op::Fdatasync { file: segment.file });
            left += 1;
        }
        let since = self.clock.now();
        let covered = self.not_durable.iter().take_while(|batch| batch.end_sequence <= covers);
        let bytes = covered.map(|batch| batch.bytes).sum();
        self.flush = Flush::Running { covers, left, since, bytes };
        state.counted().flushes += 1;
        if left == 0 {
            self.end_flush(state, covers, since)?;
        }
        Ok(true)
    }

    /// Returns the sequence up to which the next flush is wanted. It covers the batches in flight
    /// now, without waiting for later ones. The current segment keeps filling while no record in it
    /// is wanted.
    fn wanted_end(&self, state: &LogState) -> u64 {
        let full = self.unflushed.last().map_or(0, |last| last.end_sequence);
        if state.durable.wanted() <= full { full } else { self.taken }
    }

    /// Returns the sequence that a flush wanted up to `sequence` will reach. Full segments that
    /// wait for the disk are flushed one by one: each flush occupies a kernel thread, and writes
    /// need one too. Where the page cache holds much, a full segment does not wait for the current
    /// one either, and the oldest record is durable sooner.
    fn covered(&self, sequence: u64, written: u64) -> u64 {
        let mut dirty = self.unflushed.iter().filter(|segment| segment.is_dirty);
        match (dirty.next(), dirty.next()) {
            (Some(oldest), Some(_)) => oldest.end_sequence.min(written),
            (Some(only), None) if sequence <= only.end_sequence || self.absorbing.is_some() => {
                only.end_sequence.min(written)
            }
            _ => written,
        }
    }

    fn end_flush(&mut self, state: &LogState, covers: u64, since: Instant) -> Result<(), Error> {
        self.flush = Flush::Idle;
        if std::mem::take(&mut self.is_folder_dirty) {
            self.engine.sync_folder(&state.terms.folder)?;
            if let Some(spare) = &mut self.spare {
                spare.is_removed_durably = true;
            }
        }
        self.check_names()?;
        self.reach_durable(state, covers, since);
        if self.is_brief() { Ok(()) } else { self.seal(state, covers) }
    }

    /// Fails if a segment's file has lost its name, or the folder was removed: its records are then
    /// lost to the log, even if their bytes are stable.
    fn check_names(&self) -> Result<(), Error> {
        for OpenSegment { file, path, .. } in self.unflushed.iter().chain(&self.segment) {
            if !self.engine.is_named(*file, path)? {
                let gone = io::Error::from_raw_os_error(libc::ENOENT);
                return Err(Error::file(path, Action::Examine, None, &gone));
            }
        }
        Ok(())
    }

    /// Waits for at least one operation, and settles all that are complete.
    fn reap(&mut self, state: &LogState) -> Result<(), Error> {
        let mut completions = std::mem::take(&mut self.completions);
        let mut result = match self.brief_until {
            None if (self.batches.is_empty()
                || self.has_all_in_flight() && self.can_absorb(state))
                && state.terms.held.is_some()
                && !state.lacks_room() =>
            {
                self.engine.reap_within(LOOK, &mut completions)
            }
            None => self.engine.reap(1, &mut completions),
            Some(until) => {
                let left = until.saturating_duration_since(Instant::now());
                let waited = self.engine.reap_within(left, &mut completions);
                self.is_late = completions.is_empty();
                waited
            }
        };
        for completion in completions.drain(..) {
            let settled = self.settle(state, completion);
            result = result.and(settled);
        }
        self.completions = completions;
        // Complete batches are acknowledged even if another operation failed.
        let acknowledged = self.acknowledge(state);
        result.and(acknowledged)
    }

    /// Reaps and settles every operation in flight.
    fn reap_all(&mut self, state: &LogState) -> Result<(), Error> {
        while self.has_work_in_flight() {
            self.reap(state)?;
        }
        Ok(())
    }

    fn settle(&mut self, state: &LogState, completion: Completion) -> Result<(), Error> {
        match completion.user_data {
            prepare::USER_DATA => return self.settle_preparation(completion),
            FLUSH => {
                completion.result?;
                let Flush::Running { covers, left, since, .. } = &mut self.flush else {
                    unreachable!("a flush is running")
                };
                *left -= 1;
                let (covers, since) = (*covers, *since);
                if *left > 0 {
                    return Ok(());
                }
                return self.end_flush(state, covers, since);
            }
            first_sequence => {
                completion.result?;
                let is_it = |batch: &&mut Batch| batch.end_sequence > first_sequence;
                let batch = self.batches.iter_mut().find(is_it).expect("it is in flight");
                batch.is_done = true;
            }
        }
        Ok(())
    }

    /// Advances the written frontier over completed batches, and frees their slots.
    fn acknowledge(&mut self, state: &LogState) -> Result<(), Error> {
        while self.batches.front().is_some_and(|batch| batch.is_done) {
            let batch = self.batches.pop_front().expect("is there");
            self.free_slot(state, batch.slot)?;
            self.pace.note_written(batch.bytes);
            self.wakeups.waiters.push(state.written.reach(batch.end_sequence));
            self.wakeups.gates.push(batch.slot);
            let (is_durable, end, begun_at) =
                (batch.is_durable, batch.end_sequence, batch.begun_at);
            self.not_durable.push_back(batch);
            if is_durable {
                self.check_names()?;
                state.counted().flushes += 1;
                self.reach_durable(state, end, begun_at);
            }
        }
        if self.batches.is_empty() {
            self.pace.end_wait(|| self.clock.now());
        }
        Ok(())
    }

    /// Advances the durable frontier to `sequence`, by a flush that started at `since`.
    fn reach_durable(&mut self, state: &LogState, sequence: u64, since: Instant) {
        let records = sequence.saturating_sub(state.durable.done());
        self.wakeups.waiters.push(state.durable.reach(sequence));
        let (mut bytes, mut in_written, mut begun_at, mut last_begun_at) = (0, true, since, since);
        while let Some(batch) = self.not_durable.front()
            && batch.end_sequence <= sequence
        {
            bytes += batch.bytes;
            in_written &= batch.in_written;
            begun_at = begun_at.min(batch.begun_at);
            last_begun_at = since.min(batch.begun_at);
            self.wakeups.gates.push(batch.slot);
            self.not_durable.pop_front();
        }
        let now = self.clock.now();
        let time = now - since;
        if let Some(disk) = &mut self.absorbing {
            let before = disk.flushed_at.replace(now).filter(|at| since < *at + pace::PAUSE);
            let time = now - before.unwrap_or(since);
            disk.rate.note_flush(bytes, time, before.is_some());
        }
        if bytes > 0 {
            // Without such callers records may be much older than their flush.
            if state.terms.held.is_some() && state.terms.sync == SyncPolicy::Always {
                let waiting = self.waiting(state);
                self.gathering.note_flush(now - last_begun_at, records, waiting, now);
            }
            self.zeros.note_flush(bytes, in_written, begun_at, now);
            self.resume_zeros(state);
        }
        self.behind_bytes -= bytes;
        let mut counted = state.counted();
        counted.flushed_bytes += bytes;
        counted.flush_time += time;
    }

    fn free_slot(&mut self, state: &LogState, slot: usize) -> Result<(), Error> {
        let buffer = self.engine.lease()?;
        self.fill_slot(state, slot, buffer);
        Ok(())
    }

    fn fill_slot(&mut self, state: &LogState, slot: usize, buffer: Buffer) {
        // Not through a reference to the bytes: producers write by this address.
        let address = buffer.address().expose_provenance();
        self.buffers[slot] = Some(buffer);
        state.claims.free(slot, address);
        self.wakeups.waiters.push(state.freed.reach(state.freed.done() + 1));
    }

    /// Waits for all operations in flight. The log has failed, is closed, or waits for room.
    pub(super) fn drain(&mut self, state: &LogState) {
        // A failed log reports its first error already.
        if state.has_failed() || self.reap_all(state).is_err() {
            let _ = self.engine.drain();
        }
    }
}

impl Wakeups {
    fn send(&mut self, state: &LogState) {
        if !self.gates.is_empty() {
            self.gates.push(state.common_gate());
        }
        self.gates.sort_unstable();
        self.gates.dedup();
        self.gates.drain(..).for_each(|gate| state.gates[gate].open());
        self.waiters.drain(..).for_each(wake);
    }
}

/// Yields the processor to a producer that has claimed a place and not published it.
fn give_way(times: u32) {
    match times.checked_sub(YIELDS) {
        None => std::thread::yield_now(),
        Some(slept) => std::thread::sleep((SLEEP_MIN * (1 + slept)).min(SLEEP_MAX)),
    }
}
