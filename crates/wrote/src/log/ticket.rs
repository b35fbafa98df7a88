//! `Ticket`, which waits until one record is as safe as its log promises, and `Awaited`, the single
//! future type for everything that callers of a log await.

use super::driver::LogDriver;
use super::promises::{Aim, Promises, Waiting};
use super::state::Goal;
use crate::{Error, Survives};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// The promise for one record, or for one line of [`crate::Lines`]. Wait for it by blocking
/// ([`Ticket::wait`]), or await it on any runtime.
///
/// A ticket waits for what the log's [`crate::SyncPolicy`] promises, or for what
/// [`Ticket::until_written`] or [`Ticket::until_durable`] selects. Dropping a ticket does not
/// affect the record.
///
/// Polling never blocks. The log's thread writes and flushes the record, together with the records
/// that other tasks append at the same time, and then wakes the task.
///
/// [`Ticket::into_owned`] returns a ticket that can be stored, and sent to another thread:
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
}

impl<'log> Ticket<'log> {
    pub(super) fn new(driver: &'log Arc<LogDriver>, sequence: u64, gate: usize) -> Ticket<'log> {
        let (goal, cuts) = (driver.state.promised(), Some(driver.state.cuts()));
        // The largest sequence is never used, so a saturated end is never reached.
        let aim = Aim { goal, end: sequence.saturating_add(1), cuts, gate };
        Ticket { awaited: Awaited::new(driver, aim), sequence }
    }

    /// Returns a ticket for the last of the first `end` lines.
    pub(crate) fn of_line(file: &'log impl Promises, goal: Goal, end: u64) -> Ticket<'log> {
        let awaited = Awaited::new(file, Aim { goal, end, cuts: None, gate: 0 });
        Ticket { awaited, sequence: end.saturating_sub(1) }
    }

    /// Returns the record's sequence in the log. For a line, returns the number of lines appended
    /// before it since the file was opened.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Waits until the record is as safe as the log's [`crate::SyncPolicy`] promises. With
    /// `Always`, it then survives a power loss; with any other policy, a crash of the process. If
    /// the wait fails because of a failed write or flush, neither this record nor any later one is
    /// safe (W2). On a full disk, the wait fails with [`Error::NotYet`]: the record may still be
    /// written, and [`crate::Log::ticket`] returns a ticket to wait again.
    pub fn wait(self) -> Result<(), Error> {
        self.awaited.held.get().wait(&self.awaited.aim)
    }

    /// Returns a ticket that waits until the record is written and survives a crash of the process,
    /// whatever the [`crate::SyncPolicy`].
    pub fn until_written(self) -> Ticket<'log> {
        self.until(Goal::Written)
    }

    /// Returns a ticket that waits until the record survives a power loss, whatever the
    /// [`crate::SyncPolicy`]. The wait causes a flush, which all waiting records share.
    pub fn until_durable(self) -> Ticket<'log> {
        self.until(Goal::Durable)
    }

    fn until(mut self, goal: Goal) -> Ticket<'log> {
        self.awaited.forget();
        self.awaited.aim.goal = goal;
        self
    }

    /// Returns a ticket that is independent of the [`crate::Log`] from which it came. It does not
    /// keep the log open. Closing the log, or dropping its last clone, makes the record durable.
    pub fn into_owned(mut self) -> Ticket<'static> {
        let Awaited { held, aim, waiting } = &mut self.awaited;
        let (held, waiting) = (Held::Owned(held.get().owned()), waiting.take());
        Ticket { awaited: Awaited { held, aim: *aim, waiting }, sequence: self.sequence }
    }

    /// Returns what the record survives now.
    pub fn survives(&self) -> Survives {
        self.awaited.held.get().survives(self.awaited.aim.end)
    }
}

impl Future for Ticket<'_> {
    type Output = Result<(), Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.awaited).poll(context)
    }
}

impl fmt::Debug for Ticket<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticket").field("sequence", &self.sequence()).finish_non_exhaustive()
    }
}

/// A future that waits for an aim. Dropping it unregisters its waker.
pub(super) struct Awaited<'log> {
    held: Held<'log>,
    aim: Aim,
    waiting: Option<Waiting>,
}

/// An open log or file, either borrowed from its owner or kept alive without it.
enum Held<'a> {
    Borrowed(&'a dyn Promises),
    Owned(Box<dyn Promises>),
}

impl Held<'_> {
    fn get(&self) -> &dyn Promises {
        match self {
            Held::Borrowed(held) => *held,
            Held::Owned(held) => &**held,
        }
    }
}

impl<'log> Awaited<'log> {
    pub(super) fn new(held: &'log impl Promises, aim: Aim) -> Awaited<'log> {
        Awaited { held: Held::Borrowed(held), aim, waiting: None }
    }

    fn forget(&mut self) {
        if let Some(waiting) = self.waiting.take() {
            self.held.get().forget(&self.aim, waiting);
        }
    }
}

impl Future for Awaited<'_> {
    type Output = Result<(), Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Awaited { held, aim, waiting } = &mut *self;
        held.get().poll(aim, waiting, context.waker())
    }
}

impl Drop for Awaited<'_> {
    fn drop(&mut self) {
        self.forget();
    }
}
