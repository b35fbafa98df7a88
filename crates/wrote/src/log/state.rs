//! The state of an open log, shared by its producers and its flusher, and its figures.

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
    /// All records before this sequence were passed to the kernel.
    pub written: Frontier,
    /// All records before this sequence are durable.
    pub durable: Frontier,
    /// The buffers freed for a batch since the opening.
    pub freed: Frontier,
    /// One gate for each slot, and the common gate.
    pub gates: Box<[Gate]>,
    /// The figures that are counted; [`LogState::stats`] adds the other figures.
    counted: Mutex<LogStats>,
    /// The first error; the log writes nothing after an error (W2).
    failed: OnceLock<Error>,
    /// The log was closed: every record is written.
    is_closed: AtomicBool,
    /// The bells of readers that end with the log.
    bells: Bells,
    lack: Lack,
    /// The number of cuts since the opening.
    cuts: AtomicU64,
}

/// A frontier that a caller waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Goal {
    Written,
    Durable,
    /// [`LogState::freed`], or any other way to get room for a record.
    Room,
}

/// A full disk, or another temporary error: the next batch waits in memory, and the next attempt
/// may find room.
#[derive(Default)]
struct Lack {
    /// Whether the last attempt to write a batch found no room.
    is_now: AtomicBool,
    /// The attempts that found none.
    times: AtomicU64,
    /// The first record that waits, and the error of the last such attempt.
    last: Mutex<Option<(u64, Error)>>,
}

/// Properties of a log fixed while it is open.
pub(super) struct Terms {
    pub folder: Folder,
    pub layout: Layout,
    pub sync: SyncPolicy,
    pub dsync: bool,
    pub zeros: bool,
    /// Whether zeros are left out if flushes are long.
    pub may_omit_zeros: bool,
    pub promise: Promise,
}

impl Terms {
    /// Returns whether records bypass the page cache: where callers wait for them to be durable.
    pub(super) fn is_direct(&self) -> bool {
        self.sync == SyncPolicy::Always
    }
}

/// The promises to a record: once it is written, and once its write is flushed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Promise {
    written: Survives,
    durable: Survives,
}

impl Promise {
    /// Promises for a log on this target, whose writes are `in_place` or not.
    pub(super) fn new(target: &Target, in_place: bool) -> Promise {
        let with = |flushed| target.survives(Survives::of_write(flushed, in_place));
        Promise { written: with(false), durable: with(true) }
    }
}

impl LogState {
    /// Creates the state of a log with `slots` buffers whose next record goes to `start`, with what
    /// its opening found.
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

    /// Returns the error of a log that has failed, or that another process has open.
    pub(super) fn check(&self) -> Result<(), Error> {
        self.process.check()?;
        self.failed.get().map_or(Ok(()), |error| Err(error.clone()))
    }

    pub(super) fn has_failed(&self) -> bool {
        self.failed.get().is_some()
    }

    /// Fails the log, for every present and future caller (W2).
    pub(super) fn fail(&self, error: Error) {
        // Callers get the first error.
        let _ = self.failed.set(error);
        // A failed log has no flusher that would take a ready batch.
        let _ = self.claims.end();
        self.wake_all();
        self.bells.ring();
    }

    /// Records that the log was closed, and informs streams and readers, which then end.
    pub(super) fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
        wake(self.written.all());
        self.bells.ring();
    }

    /// Rings the bell once [`LogState::is_over`].
    pub(super) fn ring_when_over(&self, bell: &Bell) {
        self.bells.add(bell);
        if self.is_over() {
            self.bells.ring();
        }
    }

    /// Moves the log back to record `next`, as later ones were cut. All of them were durable, so
    /// nothing waits for one.
    pub(super) fn cut(&self, next: u64) {
        self.cuts.fetch_add(1, Ordering::SeqCst);
        let (written, durable) = (self.written.fall(next), self.durable.fall(next));
        self.gates.iter().for_each(Gate::open);
        wake(written);
        wake(durable);
    }

    /// Returns the number of cuts since the opening.
    pub(super) fn cuts(&self) -> u64 {
        self.cuts.load(Ordering::SeqCst)
    }

    /// Returns whether no more records will be written: the log was closed, or has failed.
    pub(super) fn is_over(&self) -> bool {
        self.is_closed.load(Ordering::SeqCst) || self.has_failed()
    }

    /// Returns whether no more records will be written, and record `sequence` was not.
    pub(super) fn has_ended_before(&self, sequence: u64) -> bool {
        self.is_over() && sequence >= self.written.done()
    }

    fn wake_all(&self) {
        self.gates.iter().for_each(Gate::open);
        wake(self.written.all());
        wake(self.durable.all());
        wake(self.freed.all());
    }

    /// Informs all callers that wait for record `sequence` or a later one of the full disk.
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

    /// Returns the error of a full disk, if the last attempt to write found no room.
    pub(super) fn lack(&self) -> Option<Error> {
        let last = self.lack.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.as_ref().filter(|_| self.lacks_room()).map(|(_, error)| error.clone().not_yet())
    }

    /// Returns the number of attempts that found the disk full, for [`LogState::lacked_since`].
    pub(super) fn lacks(&self) -> u64 {
        self.lack.times.load(Ordering::SeqCst)
    }

    /// Returns the error of a full disk if the full disk keeps a caller, who waits for `end`, from
    /// its `goal`, and if an attempt after the first `lacks` ones has found no room.
    pub(super) fn lacked_since(&self, lacks: u64, goal: Goal, end: u64) -> Option<Error> {
        if self.lacks() == lacks {
            return None;
        }
        let last = self.lack.last.lock().unwrap_or_else(PoisonError::into_inner);
        let waits = last.as_ref().filter(|(record, _)| goal == Goal::Room || end > *record);
        // A caller that waits for room has appended nothing.
        waits.map(|(_, error)| match goal {
            Goal::Room => error.clone(),
            Goal::Written | Goal::Durable => error.clone().not_yet(),
        })
    }

    /// Returns the goal that makes a record as safe as the log promises.
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

    /// Returns the outcome for everything before `end`; `None` while it is unknown.
    pub(super) fn outcome(&self, goal: Goal, end: u64) -> Option<Result<(), Error>> {
        if self.frontier(goal).done() >= end || goal == Goal::Room && self.claims.has_room() {
            return Some(Ok(()));
        }
        let failed = self.failed.get().cloned();
        let is_closed = goal != Goal::Room && self.is_closed.load(Ordering::SeqCst);
        failed.or_else(|| is_closed.then(|| self.refusal_of_closed())).map(Err)
    }

    /// Like [`LogState::outcome`], for a caller that waits since the log had found the disk full
    /// `lacks` times, and since it had made `cuts` cuts, if it waits for a record that was there.
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

    /// Creates the error of a record that a closed log does not take.
    pub(super) fn refusal_of_closed(&self) -> Error {
        let because = "the log was closed, and takes no more records";
        Error::refused(self.terms.folder.path(), because)
    }

    pub(super) fn next_sequence(&self) -> u64 {
        self.claims.next_start().first_sequence
    }

    /// Returns the gate of threads that do not wait for a particular record.
    pub(super) fn common_gate(&self) -> usize {
        self.gates.len() - 1
    }

    /// Locks everything, as threads do that are not there in a child process.
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

/// The findings of a log's opening, and its figures since.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct LogStats {
    /// Records found on opening, with the places that were skipped.
    pub found_records: u64,
    /// Whether the opening found that the log had been closed.
    pub found_closed: bool,
    /// Bytes found on opening after the last whole record, of a write interrupted by a crash.
    pub torn_bytes: u64,
    /// The files that keep these bytes.
    pub kept_aside: Vec<PathBuf>,
    /// The sequence of the first remaining record.
    pub first_sequence: u64,
    /// The sequence that the next record gets.
    pub next_sequence: u64,
    /// Every record before this one has been passed to the kernel.
    pub written_sequence: u64,
    /// Every record before this one survives power loss.
    pub durable_sequence: u64,
    /// Batches written.
    pub batches: u64,
    /// Batches that waited for a flush, with `EverySec` or `Interval`, because earlier records were
    /// older than two intervals: the disk is slower than the producers.
    pub late_batches: u64,
    /// Flushes, and writes that were durable by themselves.
    pub flushes: u64,
    /// The time that flushes took; they never overlap.
    pub flush_time: Duration,
    /// Bytes written to segments, with the padding of blocks, without the preparation of segments.
    pub written_bytes: u64,
    /// The part of `written_bytes` that was flushed. The rest is in the kernel's memory or in the
    /// device's, and a power loss may take it.
    pub flushed_bytes: u64,
    /// Segments begun.
    pub segments: u64,
    /// Segments that retention removed.
    pub removed: u64,
    /// Segments begun in the file of a removed one.
    pub recycled: u64,
    /// Whether a durable write is one call here ([`LogOptions::dsync`](super::LogOptions::dsync)).
    pub dsync: bool,
    /// Whether zeros are written into segments before their records.
    pub zeros: bool,
}
