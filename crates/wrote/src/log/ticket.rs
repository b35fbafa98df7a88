//! `Ticket`: waits until one record is as safe as its log promises.

use super::driver::{LogDriver, Waiting};
use crate::{Error, Survives};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// The promise for one record: wait for it by blocking ([`Ticket::wait`]), or await it on any
/// runtime.
///
/// Dropping a ticket changes nothing for the record.
#[must_use = "a record is safe only when its ticket was waited for"]
pub struct Ticket<'log> {
    driver: &'log LogDriver,
    sequence: u64,
    /// The gate of the threads that wait for the record's batch.
    gate: usize,
    waiting: Option<Waiting>,
}

impl Ticket<'_> {
    pub(super) fn new(driver: &LogDriver, sequence: u64, gate: usize) -> Ticket<'_> {
        Ticket { driver, sequence, gate, waiting: None }
    }

    /// Returns the record's place in the log.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Waits until the record is as safe as the log's [`crate::Sync`] promises. With `Always` it
    /// survives a power loss, else a crash of the process. After a failed write or flush, the
    /// record, and every later one, is not safe (W2).
    pub fn wait(self) -> Result<(), Error> {
        self.check()?;
        let state = &self.driver.state;
        self.driver.wait(state.promised(), self.sequence + 1, &state.gates[self.gate])
    }

    /// Returns what the record survives now.
    pub fn survives(&self) -> Survives {
        self.driver.state.survives(self.sequence)
    }

    /// Refuses a record that was never appended: a wait for it would not end.
    fn check(&self) -> Result<(), Error> {
        let state = &self.driver.state;
        if self.sequence < state.promised().done() || self.sequence < state.next_sequence() {
            return Ok(());
        }
        let because = format!("there is no record {} yet", self.sequence);
        Err(Error::refused(&state.terms.folder, because))
    }
}

impl Future for Ticket<'_> {
    type Output = Result<(), Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let ticket = &mut *self;
        if ticket.waiting.is_none() {
            ticket.check()?;
        }
        let (driver, end) = (ticket.driver, ticket.sequence + 1);
        let promised = driver.state.promised();
        let outcome = driver.poll(promised, end, &mut ticket.waiting, context.waker());
        outcome.map_or(Poll::Pending, Poll::Ready)
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        if let Some(waiting) = self.waiting.take() {
            waiting.forget(self.driver.state.promised());
        }
    }
}

impl fmt::Debug for Ticket<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ticket").field("sequence", &self.sequence).finish_non_exhaustive()
    }
}
