//! One operation: its remaining work, its result, and its owner.

use super::ReadBytes;
use super::buffer::{DiskBuffer, Home};
use super::order::Touch;
use super::span::Span;
use crate::Error;
use crate::buffer::Buffer;
use crate::engine::Op;
use std::sync::Arc;
use std::task::Waker;

/// An operation from its start until its owner has taken the result.
pub(super) struct Entry {
    /// The number of operations started before it.
    pub number: u64,
    /// The file's key in the schedule; a lease has none.
    pub file: Option<usize>,
    pub touch: Touch,
    /// The number of unfinished operations that it must follow.
    pub waits_for: u32,
    pub work: Work,
    /// Its engine operations that are not complete.
    pub missing: u32,
    pub error: Option<Error>,
    pub finished: bool,
    /// The engine's failure while it was in flight: its own result is unknown.
    pub broken: Option<Error>,
    pub owner: Owner,
    /// Whether a task awaits it, which does not work itself.
    pub is_awaited: bool,
}

pub(super) enum Work {
    Lease(Option<Buffer>),
    Read {
        span: Span,
        found: Vec<Option<(Buffer, usize)>>,
    },
    /// Runs `first`, and once that is complete `then`.
    Steps {
        first: Option<Op>,
        then: Option<Op>,
    },
}

/// The receiver of the result.
pub(super) enum Owner {
    /// A handle, which may be awaited.
    Waiting(Option<Waker>),
    /// The handle was dropped.
    Gone,
}

/// The result of a successful operation.
pub enum Outcome {
    Done,
    Read(ReadBytes),
    Lease(DiskBuffer),
}

impl Entry {
    pub fn new(number: u64, file: Option<usize>, touch: Touch, work: Work) -> Entry {
        Entry {
            number,
            file,
            touch,
            waits_for: 0,
            work,
            missing: 0,
            error: None,
            finished: false,
            broken: None,
            owner: Owner::Waiting(None),
            is_awaited: false,
        }
    }

    /// Returns the buffers that it must lease before it starts.
    pub fn buffers_needed(&self) -> usize {
        match &self.work {
            Work::Lease(None) => 1,
            Work::Read { found, .. } => found.len(),
            _ => 0,
        }
    }

    /// Returns whether it may be cancelled: it was not started, and has no effect.
    pub fn can_be_cancelled(&self) -> bool {
        !self.finished && self.missing == 0 && self.buffers_needed() > 0
    }

    pub fn is_forgotten(&self) -> bool {
        matches!(self.owner, Owner::Gone)
    }

    /// Returns whether its owner has nothing to wait for.
    pub fn is_over(&self) -> bool {
        self.finished || self.broken.is_some()
    }

    pub fn take_waker(&mut self) -> Option<Waker> {
        match &mut self.owner {
            Owner::Waiting(waker) => waker.take(),
            Owner::Gone => None,
        }
    }

    #[inline]
    pub fn into_result(self, home: &Arc<Home>) -> Result<Outcome, Error> {
        if let Some(error) = self.error {
            return Err(error);
        }
        Ok(match self.work {
            Work::Lease(buffer) => {
                let buffer = buffer.expect("leased before it is finished");
                Outcome::Lease(DiskBuffer::new(buffer, Arc::clone(home)))
            }
            Work::Read { span, found } => {
                let lent = |(buffer, bytes)| (DiskBuffer::new(buffer, Arc::clone(home)), bytes);
                Outcome::Read(span.cut(found.into_iter().flatten().map(lent)))
            }
            Work::Steps { .. } => Outcome::Done,
        })
    }
}
