//! `Log`: many producers, one sequential log, acknowledged when it is as safe as asked.

#[allow(dead_code)]
mod atomics;
#[allow(dead_code)]
mod batch;
#[allow(dead_code)]
mod claim;
mod format;
#[cfg(all(test, loom))]
mod model;
mod options;
mod reader;
#[allow(dead_code)]
mod record;
#[allow(dead_code)]
mod recovery;
#[allow(dead_code)]
mod segment;
mod verify;
#[allow(dead_code)]
mod wait;

pub use format::Format;
pub use options::{LogOptions, Prepare};
pub use reader::{LogReader, Record};
pub use recovery::Recovered;
pub use verify::{Damage, LogSummary, Repaired, SegmentSummary, Verified, repair, summary, verify};

use crate::{Durable, Effective, Error, Survives};
use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// An append-only log in a folder, for any number of threads and tasks.
#[derive(Clone, Debug)]
pub struct Log(Arc<()>);

/// The promise for one record: waited for by blocking ([`Ticket::wait`]), or awaited on any runtime.
#[derive(Debug)]
#[must_use = "a record is safe only when its ticket was waited for"]
pub struct Ticket<'log> {
    log: &'log Log,
    sequence: u64,
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

    /// Appends a record. Its bytes are copied, its place in the order is known; it is not written yet.
    /// Waits while all buffers are on their way to the disk.
    ///
    /// # Errors
    ///
    /// [`Error::TooLong`] for a record that does not fit into a buffer, [`Error::Refused`] for one that
    /// the format can't hold or after [`Log::close`], and after an error that error for ever (W2).
    pub fn append(&self, bytes: &[u8]) -> Result<Ticket<'_>, Error> {
        let _ = bytes;
        todo!()
    }

    /// Appends a record of `len` bytes that `fill` writes where they will be written from. Panics where
    /// `fill` does: the place in the log is then passed over, and the log goes on.
    ///
    /// # Errors
    ///
    /// As [`Log::append`].
    pub fn append_with(
        &self,
        len: usize,
        fill: impl FnOnce(&mut [u8]),
    ) -> Result<Ticket<'_>, Error> {
        let _ = (len, fill);
        todo!()
    }

    /// Appends a record if that can be done without waiting; `None` while all buffers are on their way.
    ///
    /// # Errors
    ///
    /// As [`Log::append`].
    pub fn try_append(&self, bytes: &[u8]) -> Result<Option<Ticket<'_>>, Error> {
        let _ = bytes;
        todo!()
    }

    /// The ticket of a record that was appended, by anyone.
    pub fn ticket(&self, sequence: u64) -> Ticket<'_> {
        Ticket { log: self, sequence }
    }

    /// What a record survives now.
    pub fn survives(&self, sequence: u64) -> Survives {
        let _ = sequence;
        todo!()
    }

    /// Makes everything that was appended before survive a power loss, whatever the [`crate::Sync`].
    ///
    /// # Errors
    ///
    /// With the kernel's words, and for ever after (W2).
    pub fn sync(&self) -> Result<(), Error> {
        todo!()
    }

    /// Reads the records from `from` on that have been handed to the kernel.
    ///
    /// # Errors
    ///
    /// As [`LogReader::open`].
    pub fn reader(&self, from: u64) -> Result<LogReader, Error> {
        let _ = from;
        todo!()
    }

    /// The same, and waits at the end for what comes.
    ///
    /// # Errors
    ///
    /// As [`LogReader::open`].
    pub fn tail(&self, from: u64) -> Result<LogReader, Error> {
        let _ = from;
        todo!()
    }

    /// What opening the log found.
    pub fn recovered(&self) -> &Recovered {
        todo!()
    }

    /// What the log has done so far.
    pub fn stats(&self) -> LogStats {
        todo!()
    }

    /// What is in effect of what was asked, and what was not to be had.
    pub fn effective(&self) -> Effective {
        todo!()
    }

    /// Ends the log: everything written and durable, and marked as closed. Every later append, by any
    /// clone, is refused.
    ///
    /// # Errors
    ///
    /// Any since the opening.
    pub fn close(&self) -> Result<(), Error> {
        todo!()
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
        todo!()
    }

    /// What the record survives now.
    pub fn survives(&self) -> Survives {
        self.log.survives(self.sequence)
    }
}

impl Future for Ticket<'_> {
    type Output = Result<(), Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let _ = context;
        todo!()
    }
}
