//! One operation that was started: what it still has to do, what came of it, and who waits.

use super::ReadBytes;
use super::order::Touch;
use super::span::Span;
use crate::Error;
use crate::buffer::Buffer;
use crate::engine::Op;
use std::task::Waker;

/// An operation from its start until its owner has taken what came of it.
pub(super) struct Entry {
    /// How many were started before it.
    pub number: u64,
    /// The file's place among the open files; a lease has none.
    pub file: Option<usize>,
    pub touch: Touch,
    /// How many unfinished operations it must follow.
    pub waits_for: u32,
    pub work: Work,
    /// Operations of the engine's that are not complete, of those that it was begun with.
    pub missing: u32,
    /// The first error.
    pub error: Option<Error>,
    pub finished: bool,
    /// The engine failed while it was in flight: nobody can say what becomes of it.
    pub broken: Option<Error>,
    pub owner: Owner,
    /// The progress at which it was last seen to wait for a buffer that nothing in flight brings.
    pub stuck_at: Option<u64>,
}

/// What an operation has to do.
pub(super) enum Work {
    /// To give out a buffer.
    Lease(Option<Buffer>),
    /// To read the pieces of a span.
    Read { span: Span, found: Vec<Option<(Buffer, usize)>> },
    /// To do the first, and when it is whole the second.
    Steps { first: Option<Op>, then: Option<Op> },
}

/// Who is told what came of an operation.
pub(super) enum Owner {
    /// A handle, which may be awaited.
    Waiting(Option<Waker>),
    /// Nobody: the handle was dropped.
    Gone,
}

/// What came of an operation that succeeded.
pub(super) enum Outcome {
    Done,
    Read(ReadBytes),
    Lease(Buffer),
}

impl Entry {
    /// An operation that was not begun.
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
            stuck_at: None,
        }
    }

    /// How many buffers it must lease before it can begin.
    pub fn buffers_needed(&self) -> usize {
        match &self.work {
            Work::Lease(None) => 1,
            Work::Read { found, .. } => found.len(),
            _ => 0,
        }
    }

    /// Whether it may be given up: nothing of it was begun, and nobody would see a difference.
    pub fn can_be_cancelled(&self) -> bool {
        !self.finished && self.missing == 0 && self.buffers_needed() > 0
    }

    pub fn is_forgotten(&self) -> bool {
        matches!(self.owner, Owner::Gone)
    }

    /// Whether its owner has nothing more to wait for.
    pub fn is_over(&self) -> bool {
        self.finished || self.broken.is_some()
    }

    /// Who is to be woken, once.
    pub fn take_waker(&mut self) -> Option<Waker> {
        match &mut self.owner {
            Owner::Waiting(waker) => waker.take(),
            Owner::Gone => None,
        }
    }

    /// What came of it, when it is finished.
    pub fn into_result(self) -> Result<Outcome, Error> {
        if let Some(error) = self.error {
            return Err(error);
        }
        Ok(match self.work {
            Work::Lease(buffer) => Outcome::Lease(buffer.expect("leased before it is finished")),
            Work::Read { span, found } => Outcome::Read(span.cut(found.into_iter().flatten())),
            Work::Steps { .. } => Outcome::Done,
        })
    }
}
