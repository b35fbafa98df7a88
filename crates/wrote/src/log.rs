//! `Log`: many producers, one sequential log, acknowledged when it is as safe as asked.

mod atomics;
mod background;
mod batch;
#[cfg(test)]
mod bits;
mod chain;
mod claim;
mod commit;
mod format;
mod input;
mod lock;
#[cfg(all(test, loom))]
mod model;
mod names;
mod open;
mod options;
mod prepare;
mod reader;
mod record;
mod recovery;
mod rest;
mod seed;
mod segment;
mod shared;
#[cfg(test)]
mod testing;
mod verify;
mod wait;
mod walk;

pub use format::Format;
pub use options::{LogOptions, Prepare};
pub use reader::{LogReader, Record};
pub use recovery::Recovered;
pub use verify::{Damage, LogSummary, Repaired, SegmentSummary, Verified, repair, summary, verify};

use crate::{Durable, Effective, Error, Sim, Survives};
use shared::Shared;
use std::fmt;
use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::thread::JoinHandle;
use std::time::Duration;
use wait::Waiting;

/// An append-only log in a folder, for any number of threads and tasks.
///
/// Clones are the same log. Whoever appends gets a place in the order at once, and a [`Ticket`] to wait
/// for: by blocking, or in any async runtime. Records that come while the disk is at work share its next
/// write and its next flush, so that the more producers wait, the more each flush is worth.
///
/// ```
/// use wrote::{Log, Sync};
///
/// # fn main() -> Result<(), wrote::Error> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let folder = folder.path().join("events");
/// let log = Log::options().sync(Sync::Always).open(&folder)?;
/// std::thread::scope(|scope| {
///     for producer in 0..4 {
///         let log = log.clone();
///         scope.spawn(move || {
///             let ticket = log.append(format!("hello from {producer}").as_bytes())?;
///             ticket.wait() // survives a power loss now
///         });
///     }
/// });
/// for record in log.reader(0)? {
///     let record = record?;
///     println!("{}: {}", record.sequence, String::from_utf8_lossy(&record.bytes));
/// }
/// log.close()
/// # }
/// ```
///
/// # What survives
///
/// | [`crate::Sync`] | a record whose ticket was waited for survives | all survive a power loss |
/// |---|---|---|
/// | `Always` | a power loss, and so does every record before it (W9) | |
/// | `EverySec`, `Interval` | a crash of the process | after so much time, or [`Log::sync`] |
/// | `No` | a crash of the process | after [`Log::sync`], or [`Log::close`] |
///
/// A record that nobody waits for is written some 10 ms after it came, at the latest. Segments that are
/// full are always made durable. [`Log::survives`] tells of any record at any moment.
///
/// # Errors
///
/// After a write or a flush that failed nothing more is written: every ticket of a record that was not
/// safe until then, and every later call, gets that error (W2). What was acknowledged stays true, and
/// opening the log again goes on from there.
///
/// Dropping the last clone does what [`Log::close`] does; what goes wrong can then only be logged (crate
/// `log`, level error).
///
/// # Cost
///
/// Memory: [`LogOptions::buffers`] of [`LogOptions::buffer_bytes`], whatever is appended (W8). On the disk
/// up to two segments more than the records take, until the log is closed. A thread of its own, which
/// sleeps while nothing is appended.
#[derive(Clone)]
pub struct Log(Arc<Handle>);

/// What all clones of a [`Log`] share. Dropped with the last of them.
struct Handle {
    shared: Arc<Shared>,
    stop: Arc<AtomicBool>,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// What [`Log::close`] has come to.
    closed: Mutex<Option<Result<(), Error>>>,
    /// Held until nothing can be written any more.
    lock: Mutex<Option<lock::Lock>>,
    /// The disk, where it is a simulated one.
    sim: Option<Sim>,
}

/// The promise for one record: waited for by blocking ([`Ticket::wait`]), or awaited on any runtime.
///
/// Dropping it changes nothing for the record.
#[must_use = "a record is safe only when its ticket was waited for"]
pub struct Ticket<'log> {
    log: &'log Log,
    sequence: u64,
    /// Where those sleep who wait for the batch.
    gate: usize,
    waiting: Option<Waiting>,
}

/// What a log has done since it was opened.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct LogStats {
    /// The sequence of the first record that is there.
    pub first_sequence: u64,
    /// The sequence that the next record gets.
    pub next_sequence: u64,
    /// Every record before this one has been handed to the kernel.
    pub written_sequence: u64,
    /// Every record before this one survives a power loss.
    pub durable_sequence: u64,
    /// Batches written.
    pub batches: u64,
    /// Flushes, and writes that were durable by themselves.
    pub flushes: u64,
    /// Bytes written to segments, with what fills blocks; without what prepares them.
    pub written_bytes: u64,
    /// Segments begun.
    pub segments: u64,
    /// Segments that were removed because they were too many or too old.
    pub removed: u64,
    /// How records are made durable here.
    pub durable: Durable,
    /// How segments are made ready.
    pub prepare: Option<Prepare>,
}

impl Log {
    /// Opens the log in `folder` with the defaults of [`Log::options`], or begins one.
    ///
    /// # Errors
    ///
    /// As [`LogOptions::open`].
    pub fn open(folder: impl AsRef<Path>) -> Result<Log, Error> {
        Log::options().open(folder)
    }

    /// What may be asked of a log, as a builder.
    pub fn options() -> LogOptions {
        LogOptions::new()
    }

    /// A log that a thread of its own drives.
    fn start(
        shared: Shared,
        segment_age: Option<Duration>,
        lock: lock::Lock,
    ) -> Result<Log, Error> {
        let log = Log::with(shared, Some(lock), None);
        let (shared, stop) = (Arc::clone(&log.0.shared), Arc::clone(&log.0.stop));
        let thread = std::thread::Builder::new()
            .name("wrote-log".to_owned())
            .spawn(move || background::run(&shared, segment_age, &stop))
            .map_err(|error| {
                let what = "starting the log's thread";
                Error::Engine { what, errno: crate::error::errno_of(&error) }
            })?;
        // Nobody else sets it.
        let _ = log.0.shared.background.set(thread.thread().clone());
        *log.0.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
        Ok(log)
    }

    /// A log that is driven by those who wait.
    fn without_thread(shared: Shared, sim: &Sim) -> Log {
        Log::with(shared, None, Some(sim.clone()))
    }

    fn with(shared: Shared, lock: Option<lock::Lock>, sim: Option<Sim>) -> Log {
        Log(Arc::new(Handle {
            shared: Arc::new(shared),
            stop: Arc::new(AtomicBool::new(false)),
            thread: Mutex::new(None),
            closed: Mutex::new(None),
            lock: Mutex::new(lock),
            sim,
        }))
    }

    /// Appends a record. Its bytes are copied, its place in the order is known; it is not written yet.
    /// Waits while all buffers are on their way to the disk.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] for a record that does not fit into a buffer or that the format can't hold, and
    /// after [`Log::close`]; after an error that error for ever (W2).
    pub fn append(&self, bytes: &[u8]) -> Result<Ticket<'_>, Error> {
        let appended = self.append_bytes(bytes, true)?;
        Ok(self.ticket_of(appended.expect("an append that waits comes to its end")))
    }

    /// Appends a record of `len` bytes, zeros at first or what an earlier record has left there, that
    /// `fill` writes where they are written from. Panics where `fill` does: the place in the log is then
    /// passed over, and the log goes on. Until `fill` returns no later record is written: it should not take
    /// long, and must not append to this log.
    ///
    /// # Errors
    ///
    /// As [`Log::append`].
    pub fn append_with(
        &self,
        len: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<Ticket<'_>, Error> {
        match self.0.shared.format {
            Format::Framed => {
                let appended = self.0.shared.append(len, true, fill)?;
                Ok(self.ticket_of(appended.expect("an append that waits comes to its end")))
            }
            // What can't be a line must not come into its place.
            Format::Lines => {
                let mut line = vec![0; len];
                fill(&mut line);
                self.append(&line)
            }
        }
    }

    /// Appends a record if that can be done without waiting; `None` while all buffers are on their way.
    ///
    /// # Errors
    ///
    /// As [`Log::append`].
    pub fn try_append(&self, bytes: &[u8]) -> Result<Option<Ticket<'_>>, Error> {
        Ok(self.append_bytes(bytes, false)?.map(|appended| self.ticket_of(appended)))
    }

    fn append_bytes(&self, bytes: &[u8], waits: bool) -> Result<Option<(u64, usize)>, Error> {
        let shared = &self.0.shared;
        if shared.format == Format::Lines && bytes.iter().any(|&byte| byte == b'\n' || byte == 0) {
            let path = shared.folder.clone();
            let because = "a line has no line feed and no NUL in it".to_owned();
            return Err(Error::Refused { path, because });
        }
        shared.append(bytes.len(), waits, |place| place.copy_from_slice(bytes))
    }

    /// The ticket of a record that was appended, by anyone.
    pub fn ticket(&self, sequence: u64) -> Ticket<'_> {
        self.ticket_of((sequence, self.0.shared.common_gate()))
    }

    fn ticket_of(&self, (sequence, gate): (u64, usize)) -> Ticket<'_> {
        Ticket { log: self, sequence, gate, waiting: None }
    }

    /// What a record survives now.
    pub fn survives(&self, sequence: u64) -> Survives {
        self.0.shared.survives(sequence)
    }

    /// Makes everything that was appended before survive a power loss, whatever the [`crate::Sync`].
    ///
    /// # Errors
    ///
    /// With the kernel's words, and for ever after (W2).
    pub fn sync(&self) -> Result<(), Error> {
        let shared = &self.0.shared;
        shared.check()?;
        let gate = &shared.gates[shared.common_gate()];
        shared.wait(&shared.durable, shared.claims.next_start().first_sequence, gate)
    }

    /// Reads the records from `from` on that have been handed to the kernel.
    ///
    /// # Errors
    ///
    /// As [`LogReader::open`].
    pub fn reader(&self, from: u64) -> Result<LogReader, Error> {
        let folder = &self.0.shared.folder;
        match &self.0.sim {
            Some(sim) => LogReader::open_simulated(sim, folder, from),
            None => LogReader::open(folder, from),
        }
    }

    /// The same, and waits at the end for what comes.
    ///
    /// # Errors
    ///
    /// As [`LogReader::open`].
    pub fn tail(&self, from: u64) -> Result<LogReader, Error> {
        let folder = &self.0.shared.folder;
        match &self.0.sim {
            Some(sim) => LogReader::simulated(sim, folder, from, true),
            None => LogReader::follow(folder, from),
        }
    }

    /// What opening the log found.
    pub fn recovered(&self) -> &Recovered {
        &self.0.shared.recovered
    }

    /// What the log has done so far.
    pub fn stats(&self) -> LogStats {
        self.0.shared.stats()
    }

    /// What is in effect of what was asked, and what was not to be had.
    pub fn effective(&self) -> Effective {
        self.0.shared.effective.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Ends the log: everything written and durable, and marked as closed. Every later append, by any
    /// clone, is refused; the log may be opened again.
    ///
    /// # Errors
    ///
    /// Any since the opening.
    pub fn close(&self) -> Result<(), Error> {
        self.0.close()
    }
}

impl Handle {
    fn close(&self) -> Result<(), Error> {
        let mut closed = self.closed.lock().unwrap_or_else(PoisonError::into_inner);
        let result = closed.get_or_insert_with(|| self.end()).clone();
        drop(self.lock.lock().unwrap_or_else(PoisonError::into_inner).take());
        result
    }

    fn end(&self) -> Result<(), Error> {
        // Who waits for room, or drives, comes to an end.
        self.shared.claims.end();
        self.stop.store(true, Ordering::SeqCst);
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            thread.thread().unpark();
            if thread.join().is_err() {
                let what = "the log's thread panicked";
                self.shared.fail(Error::Engine { what, errno: libc::EIO });
            }
        }
        let mut flusher = self.shared.flusher();
        let closed = self.shared.check().and_then(|()| flusher.close(&self.shared));
        // Also of what failed nothing may reach the disk once somebody else may open the log.
        flusher.wait_for_the_disk();
        closed.inspect_err(|error| self.shared.fail(error.clone()))
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if let Err(error) = self.close() {
            ::log::error!("a log was dropped and is not whole: {error}");
        }
    }
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shared = &self.0.shared;
        f.debug_struct("Log")
            .field("folder", &shared.folder)
            .field("format", &shared.format)
            .field("sync", &shared.sync)
            .finish_non_exhaustive()
    }
}

impl Ticket<'_> {
    /// The record's place in the log.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Waits until the record is as safe as the log's [`crate::Sync`] says: with `Always` it survives a
    /// power loss, else a crash of the process.
    ///
    /// # Errors
    ///
    /// That of the write or flush that failed: the record, and every one after it, is not safe (W2).
    pub fn wait(self) -> Result<(), Error> {
        let shared = &self.log.0.shared;
        self.check()?;
        shared.wait(shared.asked(), self.sequence + 1, &shared.gates[self.gate])
    }

    /// What the record survives now.
    pub fn survives(&self) -> Survives {
        self.log.survives(self.sequence)
    }

    /// A record that was never appended would be waited for without end.
    fn check(&self) -> Result<(), Error> {
        let shared = &self.log.0.shared;
        if self.sequence < shared.asked().done()
            || self.sequence < shared.claims.next_start().first_sequence
        {
            return Ok(());
        }
        let because = format!("there is no record {} yet", self.sequence);
        Err(Error::Refused { path: shared.folder.clone(), because })
    }
}

impl Future for Ticket<'_> {
    type Output = Result<(), Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let ticket = &mut *self;
        if ticket.waiting.is_none() {
            ticket.check()?;
        }
        let (shared, end) = (&ticket.log.0.shared, ticket.sequence + 1);
        match shared.poll(shared.asked(), end, &mut ticket.waiting, context.waker()) {
            Some(outcome) => Poll::Ready(outcome),
            None => Poll::Pending,
        }
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        if let Some(waiting) = self.waiting.take() {
            self.log.0.shared.asked().forget(waiting);
        }
    }
}

impl fmt::Debug for Ticket<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticket").field("sequence", &self.sequence).finish_non_exhaustive()
    }
}
