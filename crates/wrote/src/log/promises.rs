//! The interface through which tickets use a log or a plain line file. It is a separate module
//! because the driver of a log implements it, and tickets borrow that driver.

use super::state::Goal;
use crate::{Error, Survives};
use std::task::{Poll, Waker};

/// A log or a plain line file, as its tickets see it.
pub(crate) trait Promises: Send + Sync {
    fn wait(&self, aim: &Aim) -> Result<(), Error>;

    /// Returns the outcome of the aim if it is known; otherwise registers the waker, which is
    /// called once the aim is reached or has become impossible.
    fn poll(
        &self,
        aim: &Aim,
        waiting: &mut Option<Waiting>,
        waker: &Waker,
    ) -> Poll<Result<(), Error>>;

    /// Unregisters a waker.
    fn forget(&self, aim: &Aim, waiting: Waiting);

    /// Returns what the record that ends at `end` survives now.
    fn survives(&self, end: u64) -> Survives;

    /// Returns a clone that keeps the log or file alive without borrowing from its owner.
    fn owned(&self) -> Box<dyn Promises>;
}

/// The aim of a waiting caller: everything before `end` reaches the goal.
#[derive(Clone, Copy)]
pub(crate) struct Aim {
    pub goal: Goal,
    pub end: u64,
    /// For a ticket of a log, the log's number of cuts when the ticket was created. Only a caller
    /// with such a number makes the log write and flush.
    pub cuts: Option<u64>,
    /// The index of the gate for the threads that wait for the record's batch.
    pub gate: usize,
}

/// The registration of a waiting task.
#[derive(Clone, Copy)]
pub(crate) struct Waiting {
    /// The task's number among the waiting tasks, once its waker is registered.
    pub number: Option<u64>,
    /// The number of attempts that had already found the disk full when the wait began.
    pub lacks: u64,
}
