//! The batches of a log that are in flight or not yet durable, and the flush that makes them
//! durable.

use super::claim::ClosedBatch;
use super::state::LogState;
use super::wait::{Waiters, wake};
use crate::buffer::Buffer;
use crate::{Engine, Error};
use std::collections::VecDeque;
use std::time::Instant;

pub(super) struct Batches {
    /// The buffer of each slot; `None` while its batch is in flight.
    buffers: Vec<Option<Buffer>>,
    in_flight: VecDeque<Batch>,
    /// The written batches that are not known to be durable, in order.
    not_durable: VecDeque<Batch>,
    /// The sequence after the last record in any batch begun so far.
    taken: u64,
    flush: Flush,
    wakeups: Wakeups,
}

/// A batch that is in flight, or written but not durable.
pub(super) struct Batch {
    pub slot: usize,
    pub bytes: u64,
    pub end_sequence: u64,
    pub begun_at: Instant,
    /// Whether the write itself makes the batch durable. All earlier records are durable already.
    pub is_durable: bool,
    is_done: bool,
}

enum Flush {
    Idle,
    /// A flush that starts once all records before this sequence are written.
    Wanted(u64),
    /// A flush in flight that makes all records before `covers` durable.
    Running {
        covers: u64,
        since: Instant,
    },
}

/// The records that a flush or a durable write has made durable.
pub(super) struct Reached {
    pub records: u64,
    pub bytes: u64,
    /// The time when the write of the last of their batches began.
    pub last_begun_at: Instant,
}

/// The gates and futures to wake. They are woken after the next operations have been submitted, so
/// that the disk is already busy again.
#[derive(Default)]
struct Wakeups {
    gates: Vec<usize>,
    waiters: Vec<Waiters>,
}

impl Batch {
    pub(super) fn new(closed: &ClosedBatch, bytes: u64, is_durable: bool, now: Instant) -> Batch {
        let (slot, end_sequence) = (closed.slot, closed.end_sequence());
        Batch { slot, bytes, end_sequence, begun_at: now, is_durable, is_done: false }
    }
}

impl Batches {
    pub(super) fn new(slots: u32, next_sequence: u64) -> Batches {
        Batches {
            buffers: (0..slots).map(|_| None).collect(),
            in_flight: VecDeque::new(),
            not_durable: VecDeque::new(),
            taken: next_sequence,
            flush: Flush::Idle,
            wakeups: Wakeups::default(),
        }
    }

    /// Gives every slot its first buffer, so that batches can be opened.
    pub(super) fn open(&mut self, engine: &mut Engine, state: &LogState) -> Result<(), Error> {
        (0..self.buffers.len()).try_for_each(|slot| {
            let buffer = engine.lease()?;
            self.fill_slot(state, slot, buffer);
            Ok(())
        })
    }

    pub(super) fn taken(&self) -> u64 {
        self.taken
    }

    pub(super) fn are_in_flight(&self) -> bool {
        !self.in_flight.is_empty()
    }

    /// Returns whether every buffer is in flight except the one for the open batch.
    pub(super) fn are_all_in_flight(&self) -> bool {
        self.in_flight.len() == self.buffers.len() - 1
    }

    pub(super) fn is_flushing(&self) -> bool {
        matches!(self.flush, Flush::Running { .. })
    }

    /// Returns the number of records that are in none of the batches begun so far.
    pub(super) fn waiting(&self, state: &LogState) -> u64 {
        state.next_sequence().saturating_sub(self.taken)
    }

    /// Returns whether the next batch may wait for more records although a caller wants one of its
    /// records durable. This requires that no other operation is in flight or wanted.
    pub(super) fn may_gather(&self, state: &LogState) -> bool {
        matches!(self.flush, Flush::Idle)
            && self.in_flight.is_empty()
            && state.durable.wanted() > self.taken
            && !state.written.is_wanted()
            && !state.claims.has_closed()
    }

    /// Closes the open batch if a caller waits for one of its records. While a write is in flight,
    /// the batch stays open so that more records can join it. While a flush is in flight or can
    /// start, the batch is closed only for a caller that waits for its record to be written, not
    /// for one that waits for it to be durable.
    pub(super) fn close_wanted(&mut self, state: &LogState) {
        if state.cuts() > 0 && self.in_flight.is_empty() {
            let next = || state.next_sequence();
            state.written.want_no_more_than(next);
            state.durable.want_no_more_than(next);
        }
        let wanted = match self.flush {
            Flush::Running { .. } => state.written.wanted(),
            Flush::Wanted(end) if end <= state.written.done() => state.written.wanted(),
            _ => state.written.wanted().max(state.durable.wanted()),
        };
        if self.in_flight.is_empty() && wanted > self.taken && !state.claims.has_closed() {
            // The caller of this function takes ready batches next.
            let _ = state.claims.close_open();
        }
    }

    /// Requests a flush once the oldest record that is not durable has reached the age of the log's
    /// interval. Returns whether the next batch must wait for that flush, which is the case if the
    /// flush is in flight and the record is older than two intervals. Redis does the same.
    pub(super) fn hold_up(&self, state: &LogState, now: impl FnOnce() -> Instant) -> bool {
        let (Some(interval), Some(oldest)) =
            (state.terms.sync.interval(), self.not_durable.front())
        else {
            return false;
        };
        let age = now() - oldest.begun_at;
        if age >= interval {
            state.durable.want(self.taken);
        }
        self.is_flushing() && age >= interval.saturating_mul(2)
    }

    /// Takes the buffer of a batch whose write is about to begin.
    pub(super) fn take_buffer(&mut self, slot: usize) -> Buffer {
        self.buffers[slot].take().expect("the slot was in use")
    }

    /// Returns whether the next batch can become durable by its own write. This requires that the
    /// log uses `RWF_DSYNC`, that a caller wants a record durable, that all earlier records are
    /// durable, that no flush is in flight, and that no further closed batch waits.
    pub(super) fn can_be_durable_alone(&self, state: &LogState) -> bool {
        state.terms.dsync
            && state.durable.is_wanted()
            && state.durable.done() == self.taken
            && !self.is_flushing()
            && !state.claims.has_closed()
    }

    pub(super) fn start(&mut self, batch: Batch) {
        self.taken = batch.end_sequence;
        self.in_flight.push_back(batch);
    }

    /// Records that the batch starting with record `first_sequence` has been written.
    pub(super) fn settle(&mut self, first_sequence: u64) {
        let is_it = |batch: &&mut Batch| batch.end_sequence > first_sequence;
        self.in_flight.iter_mut().find(is_it).expect("it is in flight").is_done = true;
    }

    /// Advances the written frontier past the completed batches, and frees their slots. If a write
    /// has made its batch durable, returns the end of that batch and the time when its write began.
    pub(super) fn acknowledge(
        &mut self,
        engine: &mut Engine,
        state: &LogState,
    ) -> Result<Option<(u64, Instant)>, Error> {
        let mut durable = None;
        while self.in_flight.front().is_some_and(|batch| batch.is_done) {
            let batch = self.in_flight.pop_front().expect("is there");
            let buffer = engine.lease()?;
            self.fill_slot(state, batch.slot, buffer);
            self.wakeups.waiters.push(state.written.reach(batch.end_sequence));
            self.wakeups.gates.push(batch.slot);
            if batch.is_durable {
                durable = Some((batch.end_sequence, batch.begun_at));
            }
            self.not_durable.push_back(batch);
        }
        Ok(durable)
    }

    /// Returns whether a flush must start now: a flush is wanted, all records that it must cover
    /// are written, and no other flush is in flight. `full_end` is the end of the full segments.
    /// The current segment is not flushed while no caller wants one of its records durable.
    pub(super) fn is_flush_due(&mut self, state: &LogState, full_end: u64) -> bool {
        let is_running = self.is_flushing() || self.in_flight.iter().any(|batch| batch.is_durable);
        if is_running || self.taken == state.durable.done() {
            return false;
        }
        if matches!(self.flush, Flush::Idle) && state.durable.is_wanted() {
            // The flush covers the batches that are in flight now, and does not wait for later
            // ones.
            let end = if state.durable.wanted() <= full_end { full_end } else { self.taken };
            self.flush = Flush::Wanted(end);
        }
        matches!(self.flush, Flush::Wanted(end) if end <= state.written.done())
    }

    pub(super) fn begin_flush(&mut self, covers: u64, since: Instant) {
        self.flush = Flush::Running { covers, since };
    }

    /// Records that the flush in flight has completed. Returns the sequence before which it covers
    /// all records, and its start time.
    pub(super) fn end_flush(&mut self) -> (u64, Instant) {
        match std::mem::replace(&mut self.flush, Flush::Idle) {
            Flush::Running { covers, since } => (covers, since),
            _ => unreachable!("a flush is running"),
        }
    }

    /// Advances the durable frontier to `sequence`, after a flush that started at `since`.
    pub(super) fn reach_durable(
        &mut self,
        state: &LogState,
        sequence: u64,
        since: Instant,
    ) -> Reached {
        let records = sequence.saturating_sub(state.durable.done());
        self.wakeups.waiters.push(state.durable.reach(sequence));
        let mut reached = Reached { records, bytes: 0, last_begun_at: since };
        while self.not_durable.front().is_some_and(|batch| batch.end_sequence <= sequence) {
            let batch = self.not_durable.pop_front().expect("is there");
            reached.bytes += batch.bytes;
            reached.last_begun_at = since.min(batch.begun_at);
            self.wakeups.gates.push(batch.slot);
        }
        reached
    }

    /// Gives a slot a buffer, which makes room for a batch.
    pub(super) fn fill_slot(&mut self, state: &LogState, slot: usize, buffer: Buffer) {
        // The address is not taken from a reference to the bytes, because producers write through
        // it.
        let address = buffer.address().expose_provenance();
        self.buffers[slot] = Some(buffer);
        state.claims.free(slot, address);
        self.note_room(state);
    }

    /// Marks the futures that wait for room, so that the next [`Batches::wake`] wakes them.
    pub(super) fn note_room(&mut self, state: &LogState) {
        self.wakeups.waiters.push(state.freed.reach(state.freed.done() + 1));
    }

    /// Continues with record `next` after later records, which were all durable, have been cut off.
    pub(super) fn cut(&mut self, next: u64) {
        self.taken = next;
        self.not_durable.clear();
        self.flush = Flush::Idle;
    }

    /// Wakes the callers whose records have been written or become durable, and the callers that
    /// wait for room.
    pub(super) fn wake(&mut self, state: &LogState) {
        let Wakeups { gates, waiters } = &mut self.wakeups;
        if !gates.is_empty() {
            gates.push(state.common_gate());
        }
        gates.sort_unstable();
        gates.dedup();
        gates.drain(..).for_each(|gate| state.gates[gate].open());
        waiters.drain(..).for_each(wake);
    }
}
