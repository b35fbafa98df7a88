//! `Ticket`: waits until one record is as safe as its log promises.

use super::awaited::Awaited;
use super::driver::LogDriver;
use super::state::Goal;
use crate::{Error, Survives};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// The promise for one record: wait for it by blocking ([`Ticket::wait`]), or await it on any
/// runtime.
///
/// It waits for what the log's [`crate::SyncPolicy`] promises, or as selected by
/// [`Ticket::until_written`] and [`Ticket::until_durable`]. Dropping a ticket does not affect the
/// record.
///
/// The first poll wakes its own task at once, so that ready tasks append first. The next poll
/// writes and flushes the records of all, if the disk needs at most half a millisecond, so that no
/// thread has to be woken. Any other poll returns at once.
///
/// [`Ticket::into_owned`] makes a ticket that can be stored, and sent to another thread:
///
/// ```
/// use wrote::{Log, SyncPolicy, Ticket};
///
/// # fn main() -> Result<(), wrote::Error> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let folder = folder.path().join("events");
/// let log = Log::options().sync(SyncPolicy::No).open(&folder)?;
/// let ticket: Ticket<'static> = log.append(b"hello")?.until_durable().into_owned();
/// std::thread::spawn(move || ticket.wait()).join().unwrap()?; // survives a power loss now
/// # log.close()
/// # }
/// ```
#[must_use = "a record is safe only when its ticket was waited for"]
pub struct Ticket<'log> {
    awaited: Awaited<'log>,
    sequence: u64,
    /// The gate of the threads that wait for the record's batch.
    gate: usize,
}

impl<'log> Ticket<'log> {
    pub(super) fn new(driver: &'log Arc<LogDriver>, sequence: u64, gate: usize) -> Ticket<'log> {
        let awaited = Awaited::until_behind(driver, driver.state.promised(), sequence);
        Ticket { awaited, sequence, gate }
    }

    /// Returns the record's place in the log.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Waits until the record is as safe as the log's [`crate::SyncPolicy`] promises. With `Always`
    /// it survives power loss, else a process crash. After a failed write or flush, this and every
    /// later record is not safe (W2). On a full disk this fails with
    /// [`Error::NotYet`]: the record may still be written, and [`crate::Log::ticket`] waits again.
    pub fn wait(self) -> Result<(), Error> {
        self.check()?;
        let Awaited { driver, goal, end, cuts, .. } = &self.awaited;
        driver.wait(*goal, *end, *cuts, &driver.state.gates[self.gate])
    }

    /// Waits until the record is written and survives a process crash, with any
    /// [`crate::SyncPolicy`].
    pub fn until_written(self) -> Ticket<'log> {
        Ticket { awaited: self.awaited.until(Goal::Written), ..self }
    }

    /// Waits until the record survives power loss, with any [`crate::SyncPolicy`]. The wait
    /// flushes; other waiting records share the flush.
    pub fn until_durable(self) -> Ticket<'log> {
        Ticket { awaited: self.awaited.until(Goal::Durable), ..self }
    }

    /// Makes the ticket independent of the [`crate::Log`] that it came from. It does not keep the
    /// log open: closing the log, or dropping its last clone, makes the record durable.
    pub fn into_owned(self) -> Ticket<'static> {
        Ticket { awaited: self.awaited.into_owned(), sequence: self.sequence, gate: self.gate }
    }

    /// Returns what the record survives now.
    pub fn survives(&self) -> Survives {
        self.awaited.driver.state.survives(self.sequence())
    }

    /// Refuses a record that was never appended: a wait for it would not end.
    fn check(&self) -> Result<(), Error> {
        let Awaited { driver, goal, end, cuts, .. } = &self.awaited;
        let state = &driver.state;
        let is_there = *end <= state.frontier(*goal).done() || *end <= state.next_sequence();
        // Last: a cut is counted before the log's end moves back.
        if is_there || state.cuts() != *cuts {
            return Ok(());
        }
        let because = format!("there is no record {} yet", self.sequence());
        Err(Error::refused(&state.terms.folder, because))
    }
}

impl Future for Ticket<'_> {
    type Output = Result<(), Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if !self.awaited.is_polled() {
            self.check()?;
        }
        Pin::new(&mut self.awaited).poll(context)
    }
}

impl fmt::Debug for Ticket<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticket").field("sequence", &self.sequence()).finish_non_exhaustive()
    }
}
