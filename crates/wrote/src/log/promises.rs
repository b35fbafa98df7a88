//! The promises of a log and of a plain file of lines to their tickets. They stand apart because
//! the driver of a log keeps them, and tickets borrow that driver.

use super::state::Goal;
use crate::{Error, Survives};
use std::task::{Poll, Waker};

/// A log or a plain file of lines, as seen by its tickets.
pub(crate) trait Promises: Send + Sync {
    fn wait(&self, aim: &Aim) -> Result<(), Error>;

    /// Calls the waker once the aim is reached, or will not be.
    fn poll(
        &self,
        aim: &Aim,
        waiting: &mut Option<Waiting>,
        waker: &Waker,
    ) -> Poll<Result<(), Error>>;

    /// Unregisters a waker.
    fn forget(&self, aim: &Aim, waiting: Waiting);

    /// Returns what the record before `end` survives now.
    fn survives(&self, end: u64) -> Survives;

    /// Returns the same, kept alive without its owner.
    fn owned(&self) -> Box<dyn Promises>;
}

/// The aim of a caller that waits: everything before `end` has reached the goal.
#[derive(Clone, Copy)]
pub(crate) struct Aim {
    pub goal: Goal,
    pub end: u64,
    /// For a ticket of a log, the log's number of cuts when the ticket was created. Its caller
    /// makes the log work.
    pub cuts: Option<u64>,
    /// The gate of the threads that wait for the record's batch.
    pub gate: usize,
}

/// The registration of a task that waits.
#[derive(Clone, Copy)]
pub(crate) struct Waiting {
    /// The task's number among the waiting tasks, once it waits.
    pub number: Option<u64>,
    /// The attempts that had found the disk full when it began to wait.
    pub lacks: u64,
}
