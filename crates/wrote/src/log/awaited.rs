//! `Awaited`: the one future for everything that a log's callers await.

use super::driver::{LogDriver, Waiting};
use super::state::Goal;
use crate::Error;
use std::future::Future;
use std::ops::Deref;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// Waits until everything before `end` has reached `goal`. Dropping it unregisters its waker.
pub(super) struct Awaited<'log> {
    pub driver: Driver<'log>,
    pub goal: Goal,
    pub end: u64,
    /// Whether it makes the log work towards its goal.
    wants: bool,
    /// The log's number of cuts when it was created.
    pub cuts: u64,
    waiting: Option<Waiting>,
}

/// A log's driver, borrowed from a [`super::Log`] or kept alive without one.
pub(super) enum Driver<'log> {
    Borrowed(&'log Arc<LogDriver>),
    Owned(Arc<LogDriver>),
}

impl<'log> Awaited<'log> {
    pub(super) fn new(driver: &'log Arc<LogDriver>, goal: Goal, end: u64) -> Awaited<'log> {
        let (cuts, wants) = (driver.state.cuts(), true);
        Awaited { driver: Driver::Borrowed(driver), goal, end, wants, cuts, waiting: None }
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
    pub(super) fn until(mut self, goal: Goal) -> Awaited<'log> {
        self.forget();
        self.goal = goal;
        self
    }

    pub(super) fn into_owned(mut self) -> Awaited<'static> {
        let driver = match &self.driver {
            Driver::Borrowed(driver) => Arc::clone(driver),
            Driver::Owned(driver) => Arc::clone(driver),
        };
        let waiting = self.waiting.take();
        let Awaited { goal, end, wants, cuts, .. } = self;
        Awaited { driver: Driver::Owned(driver), goal, end, wants, cuts, waiting }
    }

    pub(super) fn is_polled(&self) -> bool {
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

impl Deref for Driver<'_> {
    type Target = LogDriver;

    fn deref(&self) -> &LogDriver {
        match self {
            Driver::Borrowed(driver) => driver,
            Driver::Owned(driver) => driver,
        }
    }
}
