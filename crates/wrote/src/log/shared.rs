//! What producers, those who wait, and whoever drives the log have in common.

use super::LogStats;
use super::claim::{Claimed, Claims, Place};
use super::commit::{Flusher, as_ns, now_ns};
use super::wait::{Frontier, Gate, Waiting};
use super::{Format, Recovered, record};
use crate::{Acknowledged, Durable, Effective, Error, Survives, Sync};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::task::Waker;
use std::thread::Thread;

/// A log that is open.
pub(super) struct Shared {
    pub claims: Claims,
    /// Everything before it was handed to the kernel.
    pub written: Frontier,
    /// Everything before it survives a power loss.
    pub durable: Frontier,
    /// One for each slot, and the last for those who wait for no record of their own.
    pub gates: Box<[Gate]>,
    pub counters: Counters,
    pub folder: PathBuf,
    pub format: Format,
    pub sync: Sync,
    pub recovered: Recovered,
    pub promise: Promise,
    pub effective: Mutex<Effective>,
    /// How records are made durable, and how segments are made ready.
    pub ways: (Durable, Option<super::Prepare>),
    /// The thread that drives while nobody who waits does; none on a simulated disk.
    pub background: OnceLock<Thread>,
    /// That thread sleeps until it is woken.
    pub is_asleep: AtomicBool,
    pub flusher: Mutex<Flusher>,
    /// Somebody has the flusher.
    is_driven: AtomicBool,
    /// The one who had it last has left operations in flight.
    has_left_work: AtomicBool,
    /// The first error; nothing is written after it (W2).
    failed: OnceLock<Error>,
}

/// What has been done, for [`LogStats`].
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub first_sequence: AtomicU64,
    pub batches: AtomicU64,
    pub flushes: AtomicU64,
    pub written_bytes: AtomicU64,
    pub segments: AtomicU64,
    pub removed: AtomicU64,
}

/// What a record survives once it is written, and once that was flushed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Promise {
    pub written: Survives,
    pub durable: Survives,
}

impl Promise {
    pub(super) fn of(acknowledged: Acknowledged) -> Promise {
        Promise {
            written: Acknowledged { flushed: false, ..acknowledged }.survives(),
            durable: Acknowledged { flushed: true, ..acknowledged }.survives(),
        }
    }
}

/// What is needed to make a [`Shared`] and is no state of it.
pub(super) struct Parts {
    pub claims: Claims,
    pub slots: u32,
    pub next_sequence: u64,
    pub first_sequence: u64,
    pub folder: PathBuf,
    pub format: Format,
    pub sync: Sync,
    pub recovered: Recovered,
    pub promise: Promise,
    pub effective: Effective,
    pub ways: (Durable, Option<super::Prepare>),
}

impl Shared {
    pub(super) fn new(parts: Parts, flusher: Flusher) -> Shared {
        let counters = Counters::default();
        counters.first_sequence.store(parts.first_sequence, Ordering::Relaxed);
        Shared {
            claims: parts.claims,
            written: Frontier::new(parts.next_sequence),
            durable: Frontier::new(parts.next_sequence),
            gates: (0..=parts.slots).map(|_| Gate::default()).collect(),
            counters,
            folder: parts.folder,
            format: parts.format,
            sync: parts.sync,
            recovered: parts.recovered,
            promise: parts.promise,
            effective: Mutex::new(parts.effective),
            ways: parts.ways,
            background: OnceLock::new(),
            is_asleep: AtomicBool::new(false),
            flusher: Mutex::new(flusher),
            is_driven: AtomicBool::new(false),
            has_left_work: AtomicBool::new(false),
            failed: OnceLock::new(),
        }
    }

    /// Whether the log may still be appended to.
    pub(super) fn check(&self) -> Result<(), Error> {
        self.failed.get().map_or(Ok(()), |error| Err(error.clone()))
    }

    /// Claims a place, has it filled, and publishes it; gives its sequence and its slot. `None` where that would
    /// have to wait and `waits` is false.
    pub(super) fn append(
        &self,
        len: usize,
        waits: bool,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<Option<(u64, usize)>, Error> {
        self.check()?;
        let frame_bytes = self.format.frame_bytes(len);
        let frame_bytes_max = self.claims.frame_bytes_max();
        if frame_bytes > frame_bytes_max || len > record::LEN_MAX {
            let len_max = (frame_bytes_max - self.format.frame_bytes(0)).min(record::LEN_MAX);
            let because = format!(
                "a record of {len} bytes does not fit into a buffer, which takes {len_max} (LogOptions::buffer_bytes)"
            );
            return Err(Error::Refused { path: self.folder.clone(), because });
        }
        loop {
            let (claimed, made_ready) = self.claims.claim(frame_bytes);
            if made_ready {
                self.notify();
            }
            match claimed {
                Claimed::Place(place) => return Ok(Some(self.fill(place, fill))),
                Claimed::Full if self.claims.has_ended() => return Err(self.why_ended()),
                Claimed::Full if !waits => return Ok(None),
                Claimed::Full => self.wait_for_room(),
            }
        }
    }

    fn fill(&self, place: Place, fill: impl FnOnce(&mut [u8])) -> (u64, usize) {
        let appended = (place.sequence, place.slot);
        let mut filling = Filling { shared: self, place: Some(place), is_filled: false };
        let head = self.format.frame_bytes(0) - usize::from(self.format == Format::Lines);
        let frame = filling.frame();
        let end = frame.len() - usize::from(self.format == Format::Lines);
        fill(&mut frame[head..end]);
        filling.is_filled = true;
        appended
    }

    fn wait_for_room(&self) {
        match self.background.get() {
            Some(_) => {
                self.notify();
                self.claims.wait_for_room();
            }
            None => drop(self.drive(|shared| shared.claims.has_room())),
        }
    }

    fn why_ended(&self) -> Error {
        self.check().err().unwrap_or_else(|| Error::Refused {
            path: self.folder.clone(),
            because: "the log was closed, and takes no more records".into(),
        })
    }

    /// The frontier that a record must have passed to be as safe as was asked.
    pub(super) fn asked(&self) -> &Frontier {
        if self.sync == Sync::Always { &self.durable } else { &self.written }
    }

    pub(super) fn survives(&self, sequence: u64) -> Survives {
        if sequence < self.durable.done() {
            self.promise.durable
        } else if sequence < self.written.done() {
            self.promise.written
        } else {
            Survives::Nothing
        }
    }

    /// What became of everything before `sequence`: done, or failed, or not known yet.
    pub(super) fn outcome(&self, frontier: &Frontier, sequence: u64) -> Option<Result<(), Error>> {
        if frontier.done() >= sequence {
            return Some(Ok(()));
        }
        self.failed.get().map(|error| Err(error.clone()))
    }

    /// Waits until everything before `sequence` is done, and does it where nobody else does: then no
    /// other thread has to be woken, and to wake this one.
    pub(super) fn wait(
        &self,
        frontier: &Frontier,
        sequence: u64,
        gate: &Gate,
    ) -> Result<(), Error> {
        frontier.want(sequence);
        loop {
            let seen = gate.look();
            if let Some(outcome) = self.outcome(frontier, sequence) {
                return outcome;
            }
            if self.drive(|_| frontier.done() >= sequence) == Driven::Far
                || self.outcome(frontier, sequence).is_some()
            {
                continue;
            }
            self.notify();
            match self.background.get() {
                Some(_) => gate.sleep(seen),
                None => std::thread::yield_now(),
            }
        }
    }

    /// The same for a future.
    pub(super) fn poll(
        &self,
        frontier: &Frontier,
        sequence: u64,
        known: &mut Option<Waiting>,
        waker: &Waker,
    ) -> Option<Result<(), Error>> {
        if let Some(outcome) = self.outcome(frontier, sequence) {
            return Some(outcome);
        }
        frontier.want(sequence);
        *known = Some(frontier.wake_at(sequence, *known, waker));
        match self.background.get() {
            Some(_) => self.notify(),
            None => drop(self.drive(|_| frontier.done() >= sequence)),
        }
        self.outcome(frontier, sequence)
    }

    /// Drives the log until `is_enough`, or nothing more can be done now.
    pub(super) fn drive(&self, is_enough: impl Fn(&Shared) -> bool) -> Driven {
        let mut flusher = match self.flusher.try_lock() {
            Ok(flusher) => flusher,
            Err(TryLockError::WouldBlock) => return Driven::ByOther,
            // A mistake of ours: the log must not go on with what is half done.
            Err(TryLockError::Poisoned(poisoned)) => {
                self.fail(half_done());
                drop(poisoned);
                return Driven::Far;
            }
        };
        self.is_driven.store(true, Ordering::SeqCst);
        flusher.run(self, &is_enough);
        self.has_left_work.store(flusher.has_work_in_flight(), Ordering::SeqCst);
        self.note_effective(&flusher);
        drop(flusher);
        // After the lock is free: who sees this can take it.
        self.is_driven.store(false, Ordering::SeqCst);
        let is_far = is_enough(self) || self.failed.get().is_some();
        // What came while we were leaving is left to the thread that is there for it.
        if self.has_work() {
            self.notify();
        }
        if is_far { Driven::Far } else { Driven::Idle }
    }

    fn note_effective(&self, flusher: &Flusher) {
        let mut known = self.effective.lock().unwrap_or_else(PoisonError::into_inner);
        if known.fallbacks.len() != flusher.effective().fallbacks.len() {
            known.clone_from(flusher.effective());
        }
    }

    /// Whether there is anything to drive.
    pub(super) fn has_work(&self) -> bool {
        self.failed.get().is_none()
            && (self.has_left_work.load(Ordering::SeqCst)
                || self.written.is_wanted()
                || self.durable.is_wanted()
                || self.claims.has_closed())
    }

    /// Wakes the thread in the background where nobody drives.
    pub(super) fn notify(&self) {
        if !self.is_driven.load(Ordering::SeqCst) {
            self.wake_background();
        }
    }

    pub(super) fn wake_background(&self) {
        if let Some(background) = self.background.get() {
            background.unpark();
        }
    }

    /// The end, for everyone who waits now and later (W2).
    pub(super) fn fail(&self, error: Error) {
        // The first error is the one that is told.
        let _ = self.failed.set(error);
        self.claims.end();
        self.gates.iter().for_each(Gate::open);
        wake(self.written.all());
        wake(self.durable.all());
    }

    /// Has the next record begin a segment if the one that is written to is older than this.
    pub(super) fn rotate_if_older(&self, age: std::time::Duration) {
        // Who drives just now is looked at the next time.
        let Ok(mut flusher) = self.flusher.try_lock() else { return };
        if flusher.take_rotation(now_ns().saturating_sub(as_ns(age))) {
            self.claims.rotate();
            self.written.want(self.claims.next_start().first_sequence);
        }
    }

    /// The gate of those who wait for no record of their own.
    pub(super) fn common_gate(&self) -> usize {
        self.gates.len() - 1
    }

    /// The flusher, as soon as nobody drives.
    pub(super) fn flusher(&self) -> MutexGuard<'_, Flusher> {
        self.flusher.lock().unwrap_or_else(|poisoned| {
            self.fail(half_done());
            poisoned.into_inner()
        })
    }

    pub(super) fn stats(&self) -> LogStats {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        LogStats {
            first_sequence: count(&self.counters.first_sequence),
            next_sequence: self.claims.next_start().first_sequence,
            written_sequence: self.written.done(),
            durable_sequence: self.durable.done(),
            batches: count(&self.counters.batches),
            flushes: count(&self.counters.flushes),
            written_bytes: count(&self.counters.written_bytes),
            segments: count(&self.counters.segments),
            removed: count(&self.counters.removed),
            durable: self.ways.0,
            prepare: self.ways.1,
        }
    }
}

/// A panic left the flusher in the middle of something.
fn half_done() -> Error {
    Error::Engine { what: "an earlier panic while the log was written", errno: libc::EIO }
}

/// How far somebody came who wanted to drive the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Driven {
    /// As far as they wanted, or the log has failed.
    Far,
    /// There was nothing left to do.
    Idle,
    /// Somebody else drives.
    ByOther,
}

/// Wakes those whose wait has ended. A waker is somebody else's code: where it panics that is told on
/// standard error, as every panic is, and the log and all others go on.
pub(super) fn wake(waiters: BTreeMap<Waiting, Waker>) {
    for waker in waiters.into_values() {
        let _ = catch_unwind(AssertUnwindSafe(|| waker.wake()));
    }
}

/// A place that is being filled. Whatever becomes of that, it is published: a log never waits for a
/// producer that is gone.
struct Filling<'a> {
    shared: &'a Shared,
    /// Taken when it is published.
    place: Option<Place>,
    is_filled: bool,
}

impl Filling<'_> {
    /// The bytes of the frame, header and all.
    fn frame(&mut self) -> &mut [u8] {
        let Place { address, offset, len, .. } = self.place.as_ref().expect("not published yet");
        let address = std::ptr::with_exposed_provenance_mut::<u8>(*address);
        // SAFETY: the place is ours alone from the claim to the publication: it lies inside its slot's
        // buffer, which the flusher does not touch, nor give back to its pool, before every place in
        // it was published. The pool lives as long as the flusher, which `shared` holds.
        unsafe { std::slice::from_raw_parts_mut(address.add(*offset), *len) }
    }
}

impl Drop for Filling<'_> {
    fn drop(&mut self) {
        let (format, is_filled) = (self.shared.format, self.is_filled);
        let (seed, sequence) = match &self.place {
            Some(place) => (place.seed, place.sequence),
            None => return,
        };
        let frame = self.frame();
        match format {
            Format::Framed if is_filled => record::seal(frame, seed, sequence),
            Format::Framed => record::skip(frame, seed, sequence),
            Format::Lines => *frame.last_mut().expect("a line has its end") = b'\n',
        }
        let place = self.place.take().expect("not published yet");
        if self.shared.claims.publish(place) {
            self.shared.notify();
        }
        if self.shared.is_asleep.load(Ordering::Relaxed) {
            self.shared.wake_background();
        }
    }
}
