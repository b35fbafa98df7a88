//! `Ticket`: waits until one record is as safe as its log promises. `Awaited`: the one future for
//! everything that a log's callers await.

use super::driver::{LogDriver, Waiting};
use super::state::Goal;
use crate::{Error, Survives};
use std::fmt;
use std::future::Future;
use std::ops::Deref;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

/// The promise for one record, or for one line of [`crate::Lines`]: wait for it by blocking
/// ([`Ticket::wait`]), or await it on any runtime.
///
/// It waits for what the log's [`crate::SyncPolicy`] promises, or as selected by
/// [`Ticket::until_written`] and [`Ticket::until_durable`]. Dropping a ticket does not affect the
/// record.
///
/// A poll returns at once: the log's thread writes and flushes the record, together with the
/// records of all tasks that append in that time, and wakes the task.
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
    promise: Promise<'log>,
    sequence: u64,
}

/// The goal of a ticket.
enum Promise<'log> {
    /// A record, and the gate of the threads that wait for its batch.
    Record(Awaited<'log>, usize),
    Line(LineWait<'log>),
}

impl<'log> Ticket<'log> {
    pub(super) fn new(driver: &'log Arc<LogDriver>, sequence: u64, gate: usize) -> Ticket<'log> {
        let awaited = Awaited::until_behind(driver, driver.state.promised(), sequence);
        Ticket { promise: Promise::Record(awaited, gate), sequence }
    }

    /// Returns the ticket of the last of the first `goal.end` lines.
    pub(crate) fn of_line(file: &'log Arc<dyn LineFile>, goal: LineGoal) -> Ticket<'log> {
        let line = LineWait { file: Held::Borrowed(file), goal, waiting: None };
        Ticket { promise: Promise::Line(line), sequence: goal.end.saturating_sub(1) }
    }

    /// Returns the record's place in the log; of a line, the number of lines appended before it
    /// since the opening.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Waits until the record is as safe as the log's [`crate::SyncPolicy`] promises. With `Always`
    /// it survives power loss, else a process crash. After a failed write or flush, this and every
    /// later record is not safe (W2). On a full disk this fails with
    /// [`Error::NotYet`]: the record may still be written, and [`crate::Log::ticket`] waits again.
    pub fn wait(self) -> Result<(), Error> {
        match &self.promise {
            Promise::Record(awaited, gate) => {
                awaited.check()?;
                let Awaited { driver, goal, end, cuts, .. } = awaited;
                driver.wait(*goal, *end, *cuts, &driver.state.gates[*gate])
            }
            Promise::Line(line) => line.file.wait(line.goal),
        }
    }

    /// Waits until the record is written and survives a process crash, with any
    /// [`crate::SyncPolicy`].
    pub fn until_written(self) -> Ticket<'log> {
        self.until(Goal::Written)
    }

    /// Waits until the record survives power loss, with any [`crate::SyncPolicy`]. The wait
    /// flushes; other waiting records share the flush.
    pub fn until_durable(self) -> Ticket<'log> {
        self.until(Goal::Durable)
    }

    fn until(self, goal: Goal) -> Ticket<'log> {
        let promise = match self.promise {
            Promise::Record(awaited, gate) => Promise::Record(awaited.until(goal), gate),
            Promise::Line(line) => Promise::Line(line.until(goal == Goal::Durable)),
        };
        Ticket { promise, ..self }
    }

    /// Makes the ticket independent of the [`crate::Log`] that it came from. It does not keep the
    /// log open: closing the log, or dropping its last clone, makes the record durable.
    pub fn into_owned(self) -> Ticket<'static> {
        let promise = match self.promise {
            Promise::Record(awaited, gate) => Promise::Record(awaited.into_owned(), gate),
            Promise::Line(line) => Promise::Line(line.into_owned()),
        };
        Ticket { promise, sequence: self.sequence }
    }

    /// Returns what the record survives now.
    pub fn survives(&self) -> Survives {
        match &self.promise {
            Promise::Record(awaited, _) => awaited.driver.state.survives(self.sequence()),
            Promise::Line(line) => line.file.survives(line.goal.end),
        }
    }
}

impl Future for Ticket<'_> {
    type Output = Result<(), Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.promise {
            Promise::Record(awaited, _) => {
                if !awaited.is_polled() {
                    awaited.check()?;
                }
                Pin::new(awaited).poll(context)
            }
            Promise::Line(line) => line.file.poll(line.goal, &mut line.waiting, context.waker()),
        }
    }
}

impl fmt::Debug for Ticket<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticket").field("sequence", &self.sequence()).finish_non_exhaustive()
    }
}

/// A plain file of lines, as its tickets know it.
pub(crate) trait LineFile: Send + Sync {
    fn wait(&self, goal: LineGoal) -> Result<(), Error>;

    /// Calls the waker once the goal is reached, or will not be.
    fn poll(
        &self,
        goal: LineGoal,
        waiting: &mut Option<LineWaiting>,
        waker: &Waker,
    ) -> Poll<Result<(), Error>>;

    /// Unregisters a waker.
    fn forget(&self, waiting: Option<LineWaiting>);

    /// Returns what the first `end` lines survive now.
    fn survives(&self, end: u64) -> Survives;
}

/// The goal of a caller that waits: the first `end` lines written, or durable.
#[derive(Clone, Copy)]
pub(crate) struct LineGoal {
    pub end: u64,
    pub is_durable: bool,
}

/// The registration of a task that waits for a line.
#[derive(Default)]
pub(crate) struct LineWaiting {
    /// Its number among the waiting ones, once it is one.
    pub number: Option<u64>,
    /// The attempts that had found the disk full when it began to wait.
    pub lacks: u64,
}

struct LineWait<'lines> {
    file: Held<'lines, dyn LineFile>,
    goal: LineGoal,
    waiting: Option<LineWaiting>,
}

impl<'lines> LineWait<'lines> {
    /// Waits for another goal instead.
    fn until(mut self, is_durable: bool) -> LineWait<'lines> {
        self.file.forget(self.waiting.take());
        self.goal.is_durable = is_durable;
        self
    }

    fn into_owned(mut self) -> LineWait<'static> {
        let (file, waiting) = (self.file.to_owned(), self.waiting.take());
        LineWait { file, goal: self.goal, waiting }
    }
}

impl Drop for LineWait<'_> {
    fn drop(&mut self) {
        self.file.forget(self.waiting.take());
    }
}

/// Waits until everything before `end` has reached `goal`. Dropping it unregisters its waker.
pub(crate) struct Awaited<'log> {
    driver: Held<'log, LogDriver>,
    goal: Goal,
    end: u64,
    /// Whether it makes the log work towards its goal.
    wants: bool,
    /// The log's number of cuts when it was created.
    cuts: u64,
    waiting: Option<Waiting>,
}

/// An open log or file: borrowed from its owner, or kept alive without one.
pub(super) enum Held<'a, T: ?Sized> {
    Borrowed(&'a Arc<T>),
    Owned(Arc<T>),
}

impl<T: ?Sized> Held<'_, T> {
    fn to_owned(&self) -> Held<'static, T> {
        match self {
            Held::Borrowed(held) => Held::Owned(Arc::clone(held)),
            Held::Owned(held) => Held::Owned(Arc::clone(held)),
        }
    }
}

impl<T: ?Sized> Deref for Held<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        match self {
            Held::Borrowed(held) => held,
            Held::Owned(held) => held,
        }
    }
}

impl<'log> Awaited<'log> {
    pub(super) fn new(driver: &'log Arc<LogDriver>, goal: Goal, end: u64) -> Awaited<'log> {
        let (cuts, wants) = (driver.state.cuts(), true);
        Awaited { driver: Held::Borrowed(driver), goal, end, wants, cuts, waiting: None }
    }

    /// Waits until record `sequence` has reached `goal`. The largest sequence is never used, so
    /// that one is never reached.
    pub(super) fn until_behind(
        driver: &'log Arc<LogDriver>,
        goal: Goal,
        sequence: u64,
    ) -> Awaited<'log> {
        Awaited::new(driver, goal, sequence.saturating_add(1))
    }

    /// Only waits, without making the log work.
    pub(super) fn without_wanting(mut self) -> Awaited<'log> {
        self.wants = false;
        self
    }

    /// Waits for another goal instead.
    fn until(mut self, goal: Goal) -> Awaited<'log> {
        self.forget();
        self.goal = goal;
        self
    }

    fn into_owned(mut self) -> Awaited<'static> {
        let (driver, waiting) = (self.driver.to_owned(), self.waiting.take());
        let Awaited { goal, end, wants, cuts, .. } = self;
        Awaited { driver, goal, end, wants, cuts, waiting }
    }

    /// Refuses a record that was never appended: a wait for it would not end.
    fn check(&self) -> Result<(), Error> {
        let Awaited { driver, goal, end, cuts, .. } = self;
        let state = &driver.state;
        state.process.check()?;
        let is_there = *end <= state.frontier(*goal).done() || *end <= state.next_sequence();
        // Last: a cut is counted before the log's end moves back.
        if is_there || state.cuts() != *cuts {
            return Ok(());
        }
        let because = format!("there is no record {} yet", end - 1);
        Err(Error::refused(&state.terms.folder, because))
    }

    fn is_polled(&self) -> bool {
        self.waiting.is_some()
    }

    fn forget(&mut self) {
        if let Some(waiting) = self.waiting.take()
            && self.driver.state.process.is_this()
        {
            waiting.forget(self.driver.state.frontier(self.goal));
        }
    }
}

impl Future for Awaited<'_> {
    type Output = Result<(), Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Awaited { driver, goal, end, wants, cuts, waiting } = &mut *self;
        if *wants {
            driver.state.frontier(*goal).want(*end);
        }
        let cuts = Some(*cuts).filter(|_| *wants && *goal != Goal::Room);
        let outcome = driver.poll(*goal, (*end, cuts), waiting, context.waker());
        outcome.map_or(Poll::Pending, Poll::Ready)
    }
}

impl Drop for Awaited<'_> {
    fn drop(&mut self) {
        self.forget();
    }
}
