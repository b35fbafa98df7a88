//! The state and the figures of an open log, shared by its producers and its flusher.

use super::claim::Claims;
use super::segment::{Layout, Start};
use super::wait::{Frontier, Gate, wake};
use super::watch::{Bell, Bells};
use crate::device::Target;
use crate::engine::Folder;
use crate::fork::Process;
use crate::{Error, Survives, SyncPolicy};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

pub(super) struct LogState {
    pub process: Process,
    pub terms: Terms,
    pub claims: Claims,
    /// The frontier before which all records have been passed to the kernel.
    pub written: Frontier,
    /// The frontier before which all records are durable.
    pub durable: Frontier,
    /// The number of buffers freed for batches since the log was opened.
    pub freed: Frontier,
    /// One gate for each slot, and the common gate at the end.
    pub gates: Box<[Gate]>,
    /// The figures that are counted as events happen; [`LogState::stats`] adds the others.
    counted: Mutex<LogStats>,
    /// The first error. The log writes nothing after it (W2).
    failed: OnceLock<Error>,
    /// Whether the log has been closed, so that every record is written.
    is_closed: AtomicBool,
    /// The bells to ring once the log is closed or has failed, so that its readers finish.
    bells: Bells,
    lack: Lack,
    /// The number of cuts since the log was opened.
    cuts: AtomicU64,
}

/// A frontier that a caller waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Goal {
    Written,
    Durable,
    /// A freed buffer ([`LogState::freed`]), or room for a record in the open batch.
    Room,
}

/// The record of a full disk or another temporary error. The next batch then waits in memory, and
/// the next attempt may find room.
#[derive(Default)]
struct Lack {
    /// Whether the last attempt to write a batch found no room.
    is_now: AtomicBool,
    /// The number of attempts that found no room.
    times: AtomicU64,
    /// The first waiting record, and the error of the last attempt that found no room.
    last: Mutex<Option<(u64, Error)>>,
}

/// The properties of a log that are fixed while it is open.
pub(super) struct Terms {
    pub folder: Folder,
    pub layout: Layout,
    pub sync: SyncPolicy,
    pub dsync: bool,
    pub zeros: bool,
    /// Whether zeros are left out if flushes cover many bytes.
    pub may_omit_zeros: bool,
    pub promise: Promise,
}

impl Terms {
    /// Returns whether records bypass the page cache. They do if callers wait for them to become
    /// durable.
    pub(super) fn is_direct(&self) -> bool {
        self.sync == SyncPolicy::Always
    }
}

/// The failures that a record survives once it is written, and once it is flushed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Promise {
    written: Survives,
    durable: Survives,
}

impl Promise {
    /// Returns the promises of a log on this target. `in_place` states whether its writes overwrite
    /// blocks in place.
    pub(super) fn new(target: &Target, in_place: bool) -> Promise {
        let with = |flushed| target.survives(Survives::of_write(flushed, in_place));
        Promise { written: with(false), durable: with(true) }
    }
}

impl LogState {
    /// Creates the state of a log with `slots` buffers. Its next record goes to `start`; `found`
    /// holds the findings of the opening.
    pub(super) fn new(terms: Terms, slots: u32, start: Start, found: LogStats) -> LogState {
        let counted = LogStats { dsync: terms.dsync, zeros: terms.zeros, ..found };
        LogState {
            claims: Claims::new(terms.layout, slots, start),
            written: Frontier::new(start.first_sequence),
            durable: Frontier::new(start.first_sequence),
            freed: Frontier::new(0),
            gates: (0..=slots).map(|_| Gate::default()).collect(),
            counted: Mutex::new(counted),
            failed: OnceLock::new(),
            is_closed: AtomicBool::new(false),
            bells: Bells::default(),
            lack: Lack::default(),
            cuts: AtomicU64::new(0),
            process: Process::this(),
            terms,
        }
    }

    /// Fails with the log's first error if the log has failed. Also fails in a child process of the
    /// process that opened the log.
    pub(super) fn check(&self) -> Result<(), Error> {
        self.process.check()?;
        self.failed.get().map_or(Ok(()), |error| Err(error.clone()))
    }

    pub(super) fn has_failed(&self) -> bool {
        self.failed.get().is_some()
    }

    /// Fails the log with `error`, which every present and future caller gets (W2).
    pub(super) fn fail(&self, error: Error) {
        // If the log has failed before, callers still get the first error.
        let _ = self.failed.set(error);
        // Ending the claims may make a batch ready, but a failed log has no flusher to take it.
        let _ = self.claims.end();
        self.wake_all();
        self.bells.ring();
    }

    /// Records that the log has been closed, and wakes streams and readers so that they finish.
    pub(super) fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
        wake(self.written.all());
        self.bells.ring();
    }

    /// Registers a bell to be rung once [`LogState::is_over`] returns true.
    pub(super) fn ring_when_over(&self, bell: &Bell) {
        self.bells.add(bell);
        if self.is_over() {
            self.bells.ring();
        }
    }

    /// Moves the log back to record `next` after later records were cut off. All of these records
    /// were durable, so nothing waits for any of them.
    pub(super) fn cut(&self, next: u64) {
        self.cuts.fetch_add(1, Ordering::SeqCst);
        let (written, durable) = (self.written.fall(next), self.durable.fall(next));
        self.gates.iter().for_each(Gate::open);
        wake(written);
        wake(durable);
    }

    /// Returns the number of cuts since the log was opened.
    pub(super) fn cuts(&self) -> u64 {
        self.cuts.load(Ordering::SeqCst)
    }

    /// Returns whether no more records will be written because the log has been closed or has
    /// failed.
    pub(super) fn is_over(&self) -> bool {
        self.is_closed.load(Ordering::SeqCst) || self.has_failed()
    }

    /// Returns whether no more records will be written, and record `sequence` has not been written.
    pub(super) fn has_ended_before(&self, sequence: u64) -> bool {
        self.is_over() && sequence >= self.written.done()
    }

    fn wake_all(&self) {
        self.gates.iter().for_each(Gate::open);
        wake(self.written.all());
        wake(self.durable.all());
        wake(self.freed.all());
    }

    /// Reports the full disk to all callers that wait for record `sequence` or a later one, or for
    /// room.
    pub(super) fn lack_room(&self, sequence: u64, error: Error) {
        *self.lack.last.lock().unwrap_or_else(PoisonError::into_inner) = Some((sequence, error));
        self.lack.is_now.store(true, Ordering::SeqCst);
        self.lack.times.fetch_add(1, Ordering::SeqCst);
        self.claims.wake_waiting();
        self.wake_all();
    }

    pub(super) fn find_room(&self) {
        self.lack.is_now.store(false, Ordering::SeqCst);
    }

    pub(super) fn lacks_room(&self) -> bool {
        self.lack.is_now.load(Ordering::SeqCst)
    }

    /// Returns the error of a full disk if the last attempt to write a batch found no room.
    pub(super) fn lack(&self) -> Option<Error> {
        let last = self.lack.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.as_ref().filter(|_| self.lacks_room()).map(|(_, error)| error.clone().not_yet())
    }

    /// Returns the number of attempts that have found the disk full, to be passed to
    /// [`LogState::lacked_since`].
    pub(super) fn lacks(&self) -> u64 {
        self.lack.times.load(Ordering::SeqCst)
    }

    /// Returns the error of a full disk if an attempt after the first `lacks` ones has found no
    /// room, and if that keeps a caller that waits for `end` from its `goal`.
    pub(super) fn lacked_since(&self, lacks: u64, goal: Goal, end: u64) -> Option<Error> {
        if self.lacks() == lacks {
            return None;
        }
        let last = self.lack.last.lock().unwrap_or_else(PoisonError::into_inner);
        let waits = last.as_ref().filter(|(record, _)| goal == Goal::Room || end > *record);
        // A caller that waits for room has not appended anything.
        waits.map(|(_, error)| match goal {
            Goal::Room => error.clone(),
            Goal::Written | Goal::Durable => error.clone().not_yet(),
        })
    }

    /// Returns the goal at which a record is as safe as the log promises.
    pub(super) fn promised(&self) -> Goal {
        if self.terms.sync == SyncPolicy::Always { Goal::Durable } else { Goal::Written }
    }

    pub(super) fn frontier(&self, goal: Goal) -> &Frontier {
        match goal {
            Goal::Written => &self.written,
            Goal::Durable => &self.durable,
            Goal::Room => &self.freed,
        }
    }

    pub(super) fn survives(&self, sequence: u64) -> Survives {
        if sequence < self.durable.done() {
            self.terms.promise.durable
        } else if sequence < self.written.done() {
            self.terms.promise.written
        } else {
            Survives::Nothing
        }
    }

    /// Returns the outcome of waiting for everything before `end` to reach the goal; `None` while
    /// it is unknown.
    pub(super) fn outcome(&self, goal: Goal, end: u64) -> Option<Result<(), Error>> {
        if self.frontier(goal).done() >= end || goal == Goal::Room && self.claims.has_room() {
            return Some(Ok(()));
        }
        let failed = self.failed.get().cloned();
        let is_closed = goal != Goal::Room && self.is_closed.load(Ordering::SeqCst);
        failed.or_else(|| is_closed.then(|| self.refusal_of_closed())).map(Err)
    }

    /// Works like [`LogState::outcome`], for a caller whose wait began when the log had found the
    /// disk full `lacks` times. If the caller waits for an existing record, `cuts` is the log's
    /// number of cuts when the wait's ticket was created.
    pub(super) fn outcome_since(
        &self,
        lacks: u64,
        cuts: Option<u64>,
        goal: Goal,
        end: u64,
    ) -> Option<Result<(), Error>> {
        // A cut makes every record durable before it removes some.
        if cuts.is_some_and(|cuts| self.cuts() != cuts) {
            return Some(Ok(()));
        }
        let lacked = || self.lacked_since(lacks, goal, end).map(Err);
        self.outcome(goal, end).or_else(lacked)
    }

    /// Creates the error for a record appended to a closed log.
    pub(super) fn refusal_of_closed(&self) -> Error {
        let because = "the log was closed, and accepts no more records";
        Error::refused(self.terms.folder.path(), because)
    }

    pub(super) fn next_sequence(&self) -> u64 {
        self.claims.next_start().first_sequence
    }

    /// Returns the index of the gate for threads that do not wait for a particular record.
    pub(super) fn common_gate(&self) -> usize {
        self.gates.len() - 1
    }

    /// Locks everything, as threads of a parent process that do not exist in its child may have
    /// done.
    #[cfg(test)]
    pub(super) fn lock_all(&self) -> impl Sized {
        let frontiers = [&self.written, &self.durable, &self.freed].map(Frontier::waiters);
        let rest = (self.counted(), self.lack.last.lock());
        (frontiers, rest, self.bells.lock(), self.claims.lock_all())
    }

    /// Locks the figures that are counted.
    pub(super) fn counted(&self) -> MutexGuard<'_, LogStats> {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn stats(&self) -> LogStats {
        if !self.process.is_this() {
            return LogStats::default();
        }
        LogStats {
            next_sequence: self.next_sequence(),
            written_sequence: self.written.done(),
            durable_sequence: self.durable.done(),
            ..self.counted().clone()
        }
    }
}

/// The findings when a log was opened, and its figures since then.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct LogStats {
    /// The number of records found when the log was opened, including skipped places.
    pub found_records: u64,
    /// Whether the log was found to have been closed when it was opened.
    pub found_closed: bool,
    /// The number of bytes found after the last intact record when the log was opened. They come
    /// from a write that a crash interrupted.
    pub torn_bytes: u64,
    /// The files in which the bytes counted in `torn_bytes` are kept.
    pub kept_aside: Vec<PathBuf>,
    /// The sequence of the first remaining record.
    pub first_sequence: u64,
    /// The sequence that the next record will get.
    pub next_sequence: u64,
    /// The sequence before which every record has been passed to the kernel.
    pub written_sequence: u64,
    /// The sequence before which every record survives a power loss.
    pub durable_sequence: u64,
    /// The number of batches written.
    pub batches: u64,
    /// The number of batches that waited for a flush, with `EverySec` or `Interval`, because
    /// earlier records were older than two intervals. Such batches show that the disk is slower
    /// than the producers.
    pub late_batches: u64,
    /// The number of flushes, including writes that were durable by themselves.
    pub flushes: u64,
    /// The total time of all flushes, which never overlap.
    pub flush_time: Duration,
    /// The number of bytes written to segments, including the padding of blocks, but not the
    /// preparation of segments.
    pub written_bytes: u64,
    /// The part of `written_bytes` that has been flushed. The rest is in the memory of the kernel
    /// or the device, and a power loss may destroy it.
    pub flushed_bytes: u64,
    /// The number of segments begun.
    pub segments: u64,
    /// The number of segments that retention has removed.
    pub removed: u64,
    /// The number of segments begun in the file of a removed segment.
    pub recycled: u64,
    /// Whether a durable write is a single call ([`LogOptions::dsync`](super::LogOptions::dsync)).
    pub dsync: bool,
    /// Whether zeros are written into segments before their records.
    pub zeros: bool,
}
