//! A single operation: its order among those on its file, its remaining work, its result, and its
//! owner.

use super::buffer::{DiskBuffer, Home};
use super::span::Span;
use crate::Error;
use crate::buffer::Buffer;
use crate::engine::Op;
use std::ops::Range;
use std::sync::Arc;
use std::task::Waker;

/// An operation, from its start until its owner has taken the result.
pub(super) struct Entry {
    /// The number of operations that were started before this one.
    pub number: u64,
    /// The file's key in the schedule; a lease has none.
    pub file: Option<usize>,
    pub touch: Touch,
    /// The number of unfinished operations that this one must follow.
    pub waits_for: u32,
    pub work: Work,
    /// The number of this operation's engine operations that are not complete.
    pub missing: u32,
    pub error: Option<Error>,
    pub finished: bool,
    /// The engine's failure, if the engine failed while the operation was in flight; the
    /// operation's result is then unknown.
    pub broken: Option<Error>,
    pub owner: Owner,
    /// Whether the operation is awaited by a task that does no work itself.
    pub is_awaited: bool,
}

pub(super) enum Work {
    Lease(Option<Buffer>),
    Read {
        span: Span,
        found: Vec<Option<(Buffer, usize)>>,
    },
    /// Runs `first` and, when `first` is complete, `then`.
    Steps {
        first: Option<Op>,
        then: Option<Op>,
    },
}

/// The receiver of the result.
pub(super) enum Owner {
    /// A handle. The waker is set while the handle is being awaited.
    Waiting(Option<Waker>),
    /// The handle was dropped.
    Gone,
}

/// The result of a successful operation.
pub(super) enum Outcome {
    Done,
    Buffer(DiskBuffer),
    /// The pieces of a read. They are joined and trimmed when the schedule is not locked, because
    /// that copies bytes, and returns buffers for which other operations may be waiting.
    Pieces(Span, Vec<(DiskBuffer, usize)>),
}

impl Outcome {
    pub fn done(self) {}

    /// Returns the buffer of a read or a lease. The schedule must not be locked.
    pub fn buffer(self) -> DiskBuffer {
        match self {
            Outcome::Buffer(buffer) => buffer,
            Outcome::Pieces(span, found) => span.cut(found),
            Outcome::Done => unreachable!("a read or a lease has one"),
        }
    }
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

    /// Returns the number of buffers that the operation must lease before it starts.
    pub fn buffers_needed(&self) -> usize {
        match &self.work {
            Work::Lease(None) => 1,
            Work::Read { found, .. } => found.len(),
            _ => 0,
        }
    }

    /// Returns whether the operation may be cancelled, because it is still waiting for a buffer and
    /// has had no effect.
    pub fn can_be_cancelled(&self) -> bool {
        !self.finished && self.missing == 0 && self.buffers_needed() > 0
    }

    pub fn is_forgotten(&self) -> bool {
        matches!(self.owner, Owner::Gone)
    }

    /// Returns whether the operation has finished or failed, so that its owner has nothing to wait
    /// for.
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
                Outcome::Buffer(DiskBuffer::new(buffer, Arc::clone(home)))
            }
            Work::Read { span, found } => {
                let lent = |(buffer, bytes)| (DiskBuffer::new(buffer, Arc::clone(home)), bytes);
                Outcome::Pieces(span, found.into_iter().flatten().map(lent).collect())
            }
            Work::Steps { .. } => Outcome::Done,
        })
    }
}

/// The part of a file that an operation affects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Touch {
    /// Nothing, for a lease.
    Nothing,
    Read(Range<u64>),
    Write {
        bytes: Range<u64>,
        /// The bytes that a later read may find changed. For a write beyond the file's end, they
        /// include the gap before it, which then reads as zeros.
        seen: Range<u64>,
    },
    /// A flush of every earlier change.
    Sync,
}

impl Touch {
    /// Returns a change of `len` bytes from `offset`. The file ends at `end`, or later if
    /// operations in progress have extended it.
    pub(super) fn change(offset: u64, len: u64, end: u64) -> Touch {
        let bytes = offset..offset.saturating_add(len);
        let start = if len == 0 { offset } else { offset.min(end) };
        Touch::Write { seen: start..bytes.end, bytes }
    }

    /// Returns whether this must wait for `earlier`. This rule ensures that operations on the same
    /// bytes run in the order in which they were started, that no two writes are in flight on the
    /// same block (W3), and that a flush covers earlier writes (W1).
    pub(super) fn must_follow(&self, earlier: &Touch) -> bool {
        match (earlier, self) {
            (Touch::Write { .. }, Touch::Sync) => true,
            (Touch::Write { bytes: a, .. }, Touch::Write { bytes: b, .. })
            | (Touch::Read(a), Touch::Write { seen: b, .. })
            | (Touch::Write { seen: a, .. }, Touch::Read(b)) => overlap(a, b),
            _ => false,
        }
    }

    /// Returns whether this is a change, for which a later read or flush may have to wait.
    pub(super) fn changes(&self) -> bool {
        matches!(self, Touch::Write { .. })
    }

    /// Returns the end of the changed range, if there is one.
    pub(super) fn change_end(&self) -> Option<u64> {
        match self {
            Touch::Write { bytes, .. } if !bytes.is_empty() => Some(bytes.end),
            _ => None,
        }
    }
}

fn overlap(a: &Range<u64>, b: &Range<u64>) -> bool {
    a.start.max(b.start) < a.end.min(b.end)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a change within a file.
    fn write(bytes: Range<u64>) -> Touch {
        Touch::change(bytes.start, bytes.end - bytes.start, 1000)
    }

    #[test]
    fn what_has_no_buffer_yet_can_be_cancelled_and_nothing_else_can() {
        let entry = |work| Entry::new(0, None, Touch::Nothing, work);
        let lease = entry(Work::Lease(None));
        assert!(lease.can_be_cancelled() && !lease.is_over());
        let finished = Entry { finished: true, ..lease };
        assert!(!finished.can_be_cancelled() && finished.is_over());
        let broken = Some(Error::Poisoned { path: "/f".into(), errno: libc::EIO });
        assert!(Entry { broken, ..entry(Work::Lease(None)) }.is_over());
        assert!(!Entry { missing: 1, ..entry(Work::Lease(None)) }.can_be_cancelled());
        assert!(!entry(Work::Steps { first: None, then: None }).can_be_cancelled());
        let read = Work::Read { span: Span::around(0, 1024, 512, 512), found: vec![None, None] };
        assert_eq!(entry(read).buffers_needed(), 2);
    }

    #[test]
    fn an_owner_is_woken_once_and_a_dropped_one_never() {
        let mut entry = Entry::new(0, None, Touch::Sync, Work::Lease(None));
        entry.owner = Owner::Waiting(Some(Waker::noop().clone()));
        assert!(!entry.is_forgotten() && entry.take_waker().is_some());
        assert!(entry.take_waker().is_none());
        entry.owner = Owner::Gone;
        assert!(entry.is_forgotten() && entry.take_waker().is_none());
    }

    #[test]
    fn operations_that_overlap_a_change_wait_for_it_and_no_others_do() {
        // W3
        let (earlier, read) = (write(10..20), Touch::Read(10..20));
        for later in [write(19..30), Touch::Read(0..11), Touch::Read(12..13)] {
            assert!(later.must_follow(&earlier));
        }
        for later in [write(20..30), Touch::Read(0..10), Touch::Nothing] {
            assert!(!later.must_follow(&earlier) && !later.must_follow(&read));
        }
        assert!(write(5..11).must_follow(&read));
        assert!(!Touch::Read(5..11).must_follow(&read));
    }

    #[test]
    fn a_flush_waits_for_every_change_and_for_no_read() {
        // W1
        assert!(Touch::Sync.must_follow(&write(0..1)));
        assert!(!Touch::Sync.must_follow(&Touch::Read(0..1)));
        assert!(!Touch::Sync.must_follow(&Touch::Sync));
        assert!(!write(0..1).must_follow(&Touch::Sync));
        assert!(write(0..1).changes() && !Touch::Sync.changes());
    }

    #[test]
    fn a_read_sees_the_gap_that_a_change_beyond_the_end_makes() {
        let beyond = Touch::change(100, 10, 40);
        assert!(Touch::Read(50..60).must_follow(&beyond));
        assert!(beyond.must_follow(&Touch::Read(50..60)));
        assert!(!Touch::Read(30..40).must_follow(&beyond));
        assert!(!Touch::Read(0..200).must_follow(&Touch::change(100, 0, 40)));
        assert_eq!(beyond.change_end(), Some(110));
        assert_eq!(Touch::change(100, 0, 40).change_end(), None);
    }

    #[test]
    fn appends_do_not_wait_for_each_other() {
        assert!(!Touch::change(110, 10, 100).must_follow(&Touch::change(100, 10, 100)));
    }
}
