//! The flusher: writes batches that are ready, flushes for those who wait, keeps segments coming.
//!
//! There is one for a log, and it does nothing by itself: whoever holds it drives it, a thread in the
//! background or one that waits for its record. A flush starts when somebody wants one and none is
//! running; those who come meanwhile share the next. So a group is as large as the disk is slow, and no
//! timer is needed.

mod segments;

use super::Format;
use super::batch::BatchHeader;
use super::claim::{Closed, Start};
use super::options::{LogOptions, Prepare};
use super::prepare::{self, Preparing};
use super::recovery::Sealed;
use super::segment::{self, SegmentHeader};
use super::shared::{Shared, wake};
use super::wait::Waiting;
use crate::buffer::Buffer;
use crate::{Completion, Durable, Effective, Engine, Error, FileId, Op};
use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Waker;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What a flush of a segment is called among the engine's operations; a batch is called by the sequence
/// of its first record.
const FLUSH: u64 = 1 << 62;

/// How often the processor is given away for a producer that has claimed and not published, before the
/// wait becomes sleep, which gets longer up to the last of these.
const YIELDS: u32 = 200;
const SLEEP_MIN: Duration = Duration::from_micros(50);
const SLEEP_MAX: Duration = Duration::from_millis(1);

/// Writes a log. Used by one thread at a time.
pub(super) struct Flusher {
    engine: Engine,
    folder: PathBuf,
    format: Format,
    log_id: u64,
    block_bytes: u64,
    segment_bytes: u64,
    durable: Durable,
    prepare: Prepare,
    retain_bytes: Option<u64>,
    retain_age: Option<Duration>,
    /// The buffer of each slot that is not on its way to the disk.
    buffers: Vec<Option<Buffer>>,
    /// Batches in flight, in order.
    batches: VecDeque<Batch>,
    batches_max: usize,
    /// The sequence behind the last batch that was handed to the engine.
    taken: u64,
    flush: Option<Flush>,
    /// A flush is wanted as soon as everything before this sequence is written.
    flush_at: Option<u64>,
    /// The segment that is written to; none before the first batch of a new log.
    segment: Option<Segment>,
    /// The end of the one before it, and the checksum of its last batch.
    previous: Option<(u64, u32)>,
    /// Those before it that are not flushed yet.
    unflushed: Vec<Segment>,
    /// Those that nothing happens to any more but that they are removed.
    sealed: VecDeque<Sealed>,
    /// Bytes that these take.
    sealed_bytes: u64,
    preparing: Option<Preparing>,
    /// Whether an operation of `preparing` is in flight.
    is_preparing: bool,
    /// Why a segment could not be prepared ahead of its time: it is tried again when it is needed.
    failed_to_prepare: Option<Error>,
    /// Names in the folder have changed since it was synced.
    is_folder_dirty: bool,
    /// Recovery has cut something off: the first batch says so.
    after_cut: bool,
    /// Slots whose batches were written and are not known to be durable yet, in order: where each ends.
    not_durable: VecDeque<(u64, usize)>,
    /// Gates to open, and futures to wake, as soon as the disk is busy again.
    opened: Vec<usize>,
    woken: Vec<BTreeMap<Waiting, Waker>>,
    completions: Vec<Completion>,
}

// SAFETY: what is not `Send` in here is the counted references between the engine, its pool and the
// buffers: all of them are inside and none is handed out, so they move together. Producers have addresses
// of buffers, which lead into the pool's mapping wherever the flusher is. The engine is made for callers
// of any thread.
unsafe impl Send for Flusher {}

/// A batch on its way.
struct Batch {
    slot: usize,
    end_sequence: u64,
    /// Its write makes it durable, and everything before it is.
    is_durable: bool,
    is_done: bool,
}

/// A flush on its way.
struct Flush {
    /// Everything before it was written when the flush began.
    covers: u64,
    /// Files whose flush is in flight.
    left: usize,
}

/// A segment that is open.
pub(super) struct Segment {
    pub file: FileId,
    pub path: PathBuf,
    pub number: u64,
    /// The end of the last batch.
    pub end: u64,
    pub last_checksum: u32,
    pub created_at_ns: u64,
    /// It was found to be old: the next batch but one begins another.
    is_old: bool,
    /// Something was written since the last flush began.
    is_dirty: bool,
    /// The sequence behind its last record.
    pub end_sequence: u64,
}

impl Segment {
    pub(super) fn new(file: FileId, path: PathBuf, number: u64, created_at_ns: u64) -> Segment {
        Segment {
            file,
            path,
            number,
            end: 0,
            last_checksum: 0,
            created_at_ns,
            is_old: false,
            is_dirty: false,
            end_sequence: 0,
        }
    }
}

/// What a flusher begins with.
pub(super) struct Beginning {
    pub folder: PathBuf,
    pub log_id: u64,
    pub block_bytes: u64,
    pub durable: Durable,
    pub prepare: Prepare,
    pub sealed: Vec<Sealed>,
    pub segment: Option<Segment>,
    pub preparing: Option<Preparing>,
    pub next_sequence: u64,
    pub after_cut: bool,
}

impl Flusher {
    pub(super) fn new(engine: Engine, options: &LogOptions, beginning: Beginning) -> Flusher {
        let slots = options.buffers;
        Flusher {
            folder: beginning.folder,
            format: options.format,
            log_id: beginning.log_id,
            block_bytes: beginning.block_bytes,
            segment_bytes: options.segment_bytes,
            durable: beginning.durable,
            prepare: beginning.prepare,
            retain_bytes: options.retain_bytes,
            retain_age: options.retain_age,
            buffers: (0..slots).map(|_| None).collect(),
            batches: VecDeque::new(),
            batches_max: (slots as usize - 1).max(1),
            taken: beginning.next_sequence,
            flush: None,
            flush_at: None,
            segment: beginning.segment,
            previous: None,
            unflushed: Vec::new(),
            sealed_bytes: beginning.sealed.iter().map(|segment| segment.bytes).sum(),
            sealed: beginning.sealed.into(),
            preparing: beginning.preparing,
            is_preparing: false,
            failed_to_prepare: None,
            is_folder_dirty: true,
            after_cut: beginning.after_cut,
            not_durable: VecDeque::new(),
            opened: Vec::new(),
            woken: Vec::new(),
            completions: Vec::new(),
            engine,
        }
    }

    /// Gives every slot its first buffer.
    pub(super) fn open_slots(&mut self, shared: &Shared) -> Result<(), Error> {
        (0..self.buffers.len()).try_for_each(|slot| self.free_slot(shared, slot))
    }

    pub(super) fn effective(&self) -> &Effective {
        self.engine.effective()
    }

    pub(super) fn has_work_in_flight(&self) -> bool {
        self.engine.outstanding() > 0
    }

    /// Whether the segment that is written to was begun before that time and has records; told once.
    pub(super) fn take_rotation(&mut self, before_ns: u64) -> bool {
        let Some(segment) = &mut self.segment else { return false };
        let is_old = segment.created_at_ns < before_ns && !segment.is_old;
        segment.is_old |= is_old;
        is_old
    }

    /// Works until it is enough, or there is nothing left to do; of what goes wrong everyone is told.
    pub(super) fn run(&mut self, shared: &Shared, is_enough: &dyn Fn(&Shared) -> bool) {
        let mut unpublished = 0;
        while shared.check().is_ok() && !is_enough(shared) {
            match self.step(shared) {
                Ok(true) => unpublished = 0,
                Ok(false) if shared.claims.has_closed() => {
                    unpublished += 1;
                    give_way(unpublished);
                }
                Ok(false) => break,
                Err(error) => shared.fail(error),
            }
        }
        self.wake_those_done(shared);
    }

    /// Starts what can be started, and waits for something of it. Tells whether there was anything.
    fn step(&mut self, shared: &Shared) -> Result<bool, Error> {
        self.close_for_those_who_wait(shared);
        let has_started = self.start_batches(shared)? | self.start_flush(shared)?;
        self.start_preparing()?;
        self.engine.submit()?;
        self.wake_those_done(shared);
        if self.engine.outstanding() == 0 {
            return Ok(has_started);
        }
        self.reap(shared)?;
        Ok(true)
    }

    /// Who waits for a record in the open batch has it closed, but not while the disk is at work for
    /// others: meanwhile more may come into it.
    fn close_for_those_who_wait(&mut self, shared: &Shared) {
        let wanted = match self.flush {
            None => shared.written.wanted().max(shared.durable.wanted()),
            Some(_) => shared.written.wanted(),
        };
        if self.batches.is_empty() && wanted > self.taken && !shared.claims.has_closed() {
            // Ready or not is looked at next.
            shared.claims.close_open();
        }
    }

    fn start_batches(&mut self, shared: &Shared) -> Result<bool, Error> {
        let mut has_started = false;
        while self.batches.len() < self.batches_max {
            let Some(closed) = shared.claims.take_ready() else { break };
            self.start_batch(shared, closed)?;
            has_started = true;
        }
        Ok(has_started)
    }

    fn start_batch(&mut self, shared: &Shared, closed: Closed) -> Result<(), Error> {
        let mut buffer = self.buffers[closed.slot].take().expect("the slot was in use");
        if closed.count == 0 {
            return self.refill_slot(shared, closed.slot, buffer);
        }
        // Alone on its way, with everything before it durable, it can be so by itself.
        let is_durable = self.durable == Durable::Dsync
            && shared.durable.is_wanted()
            && shared.durable.done() == self.taken
            && self.flush.is_none()
            && !shared.claims.has_closed();
        if closed.start.offset == 0 {
            self.begin_segment(shared, closed.start)?;
        }
        let is_durable = is_durable && !self.is_folder_dirty && closed.start.offset > 0;
        if self.format == Format::Framed {
            self.write_heads(shared, &closed, &mut buffer);
        }
        let bytes = closed.bytes.next_multiple_of(self.block_bytes as usize);
        buffer[closed.bytes..bytes].fill(0);
        buffer.set_len(bytes);
        let segment = self.segment.as_mut().expect("a segment was begun");
        segment.end = closed.start.offset + closed.bytes as u64;
        segment.end_sequence = closed.end_sequence();
        segment.is_dirty |= !is_durable;
        let (file, offset) = (segment.file, closed.start.offset);
        let user_data = closed.start.first_sequence;
        self.engine.queue(user_data, Op::Write { file, offset, buffer, durable: is_durable });
        let end_sequence = closed.end_sequence();
        self.batches.push_back(Batch {
            slot: closed.slot,
            end_sequence,
            is_durable,
            is_done: false,
        });
        self.taken = end_sequence;
        add(&shared.counters.batches, 1);
        add(&shared.counters.written_bytes, bytes as u64);
        Ok(())
    }

    /// The headers of the batch, and of the segment where it begins one.
    fn write_heads(&mut self, shared: &Shared, closed: &Closed, buffer: &mut Buffer) {
        let Start { first_sequence, segment: number, offset } = closed.start;
        let mut at = 0;
        if offset == 0 {
            let (previous_bytes, previous_checksum) = self.previous.unwrap_or_default();
            let header = SegmentHeader {
                log_id: self.log_id,
                segment_id: number,
                first_sequence,
                previous_bytes,
                previous_checksum,
                block_bytes: self.block_bytes as u32,
                created_at_ns: now_ns(),
            };
            header.encode(&mut buffer[..]);
            at = segment::HEADER_BYTES;
        }
        let header = BatchHeader {
            bytes: (closed.bytes - at) as u32,
            count: closed.count as u32,
            first_sequence,
            durable_sequence: shared.durable.done(),
            written_at_ns: now_ns(),
            after_cut: std::mem::take(&mut self.after_cut),
            closed: false,
        };
        let checksum = header.encode(&mut buffer[at..], segment::seed(self.log_id, number));
        self.segment.as_mut().expect("a segment was begun").last_checksum = checksum;
    }

    fn wait_for_batches(&mut self, shared: &Shared) -> Result<(), Error> {
        while self.engine.outstanding() > 0 {
            self.reap(shared)?;
        }
        Ok(())
    }

    /// Starts a flush if one is wanted and none is running.
    fn start_flush(&mut self, shared: &Shared) -> Result<bool, Error> {
        let is_running = self.flush.is_some() || self.batches.iter().any(|batch| batch.is_durable);
        let (written, durable) = (shared.written.done(), shared.durable.done());
        if is_running || self.taken == durable {
            return Ok(false);
        }
        if self.flush_at.is_none() && shared.durable.is_wanted() {
            // All that is on its way by now is covered; what comes later is not waited for.
            self.flush_at = Some(self.taken);
        }
        if self.flush_at.is_none_or(|flush_at| written < flush_at) {
            return Ok(false);
        }
        self.flush_at = None;
        let mut left = 0;
        let segments = self.unflushed.iter_mut().chain(self.segment.as_mut());
        for segment in segments.filter(|segment| segment.is_dirty) {
            // What is in flight now is not covered.
            segment.is_dirty =
                self.batches.iter().any(|batch| !batch.is_done) && segment.end_sequence > written;
            self.engine.queue(FLUSH, Op::Fdatasync { file: segment.file });
            left += 1;
        }
        self.flush = Some(Flush { covers: written, left });
        add(&shared.counters.flushes, 1);
        if left == 0 {
            self.end_flush(shared)?;
        }
        Ok(true)
    }

    fn end_flush(&mut self, shared: &Shared) -> Result<(), Error> {
        let flush = self.flush.take().expect("a flush was running");
        if std::mem::take(&mut self.is_folder_dirty) {
            self.engine.sync_folder(&self.folder)?;
        }
        self.reach_durable(shared, flush.covers);
        self.seal(shared, flush.covers)
    }

    /// Waits for an operation at least, and settles all that are complete.
    fn reap(&mut self, shared: &Shared) -> Result<(), Error> {
        let mut completions = std::mem::take(&mut self.completions);
        let reaped = self.engine.reap(1, &mut completions);
        let mut result = reaped;
        for completion in completions.drain(..) {
            let settled = self.settle(shared, completion);
            result = result.and(settled);
        }
        self.completions = completions;
        // What is whole is told of also when something else failed.
        let passed_on = self.pass_on(shared);
        result.and(passed_on)
    }

    fn settle(&mut self, shared: &Shared, completion: Completion) -> Result<(), Error> {
        match completion.user_data {
            prepare::USER_DATA => {
                self.is_preparing = false;
                let preparing = self.preparing.as_mut().expect("is under way");
                if let Err(error) = preparing.complete(completion) {
                    let preparing = self.preparing.take().expect("is under way");
                    preparing.abandon(&mut self.engine);
                    self.failed_to_prepare = Some(error);
                }
                Ok(())
            }
            FLUSH => {
                completion.result?;
                let flush = self.flush.as_mut().expect("a flush is running");
                flush.left -= 1;
                if flush.left == 0 { self.end_flush(shared) } else { Ok(()) }
            }
            first_sequence => {
                completion.result?;
                let of_it = |batch: &&mut Batch| batch.end_sequence > first_sequence;
                let batch = self.batches.iter_mut().find(of_it).expect("it is in flight");
                batch.is_done = true;
                Ok(())
            }
        }
    }

    /// Batches that are done, with all before them, are written; their slots are free.
    fn pass_on(&mut self, shared: &Shared) -> Result<(), Error> {
        while self.batches.front().is_some_and(|batch| batch.is_done) {
            let batch = self.batches.pop_front().expect("is there");
            self.free_slot(shared, batch.slot)?;
            self.not_durable.push_back((batch.end_sequence, batch.slot));
            if batch.is_durable {
                add(&shared.counters.flushes, 1);
                self.reach_durable(shared, batch.end_sequence);
            }
            self.woken.push(shared.written.reach(batch.end_sequence));
            self.opened.push(batch.slot);
        }
        Ok(())
    }

    fn reach_durable(&mut self, shared: &Shared, sequence: u64) {
        self.woken.push(shared.durable.reach(sequence));
        while self.not_durable.front().is_some_and(|&(end, _)| end <= sequence) {
            let (_, slot) = self.not_durable.pop_front().expect("is there");
            self.opened.push(slot);
        }
    }

    fn free_slot(&mut self, shared: &Shared, slot: usize) -> Result<(), Error> {
        let buffer = self.engine.lease()?;
        self.refill_slot(shared, slot, buffer)
    }

    fn refill_slot(&mut self, shared: &Shared, slot: usize, buffer: Buffer) -> Result<(), Error> {
        let address = buffer.as_ptr().expose_provenance();
        self.buffers[slot] = Some(buffer);
        shared.claims.free(slot, address);
        Ok(())
    }

    fn wake_those_done(&mut self, shared: &Shared) {
        if !self.opened.is_empty() {
            self.opened.push(shared.common_gate());
        }
        self.opened.sort_unstable();
        self.opened.dedup();
        self.opened.drain(..).for_each(|slot| shared.gates[slot].open());
        self.woken.drain(..).for_each(wake);
    }

    /// Waits for everything in flight, whatever becomes of it.
    pub(super) fn wait_for_the_disk(&mut self) {
        // The error of a log that failed is known already; one that was closed has nothing in flight.
        let _ = self.engine.drain();
    }
}

/// Lets a producer go on that has claimed a place and not published it.
fn give_way(times: u32) {
    match times.checked_sub(YIELDS) {
        None => std::thread::yield_now(),
        Some(slept) => std::thread::sleep((SLEEP_MIN * (1 + slept)).min(SLEEP_MAX)),
    }
}

fn add(counter: &AtomicU64, by: u64) {
    counter.fetch_add(by, Ordering::Relaxed);
}

/// A duration in nanoseconds; what is longer than 64 bits can say is as long as they can.
pub(super) fn as_ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Nanoseconds since 1970.
pub(super) fn now_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}
