//! Operations in flight: each stays in its slot until it is complete.

use super::pending::{PendingOp, ThreadMark};
use super::request::Request;

/// One slot per operation that may be in flight. The slot's number is the operation's token.
pub(super) struct Slots {
    ops: Vec<PendingOp>,
    free: Vec<u32>,
    /// Operations with a try that is not submitted yet, in order.
    queued: Vec<u32>,
}

impl Slots {
    pub(super) fn new(iodepth: u32) -> Slots {
        Slots {
            ops: (0..iodepth).map(PendingOp::none).collect(),
            free: (0..iodepth).rev().collect(),
            queued: Vec::with_capacity(iodepth as usize),
        }
    }

    #[inline]
    pub(super) fn in_flight(&self) -> usize {
        self.ops.len() - self.free.len()
    }

    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.free.is_empty()
    }

    /// Takes a free slot, and queues the try of the operation that the caller starts in it. Panics
    /// if no slot is free.
    #[inline]
    pub(super) fn take(&mut self) -> &mut PendingOp {
        let token = self.free.pop().expect("a slot is free");
        self.queued.push(token);
        &mut self.ops[token as usize]
    }

    /// Queues the next try of an operation.
    pub(super) fn again(&mut self, token: u32) {
        self.queued.push(token);
    }

    /// Returns the queued tries. They stay queued until [`Slots::handed_on`].
    pub(super) fn requests(&self) -> Requests<'_> {
        Requests { ops: &self.ops, queued: self.queued.iter() }
    }

    pub(super) fn has_queued(&self) -> bool {
        !self.queued.is_empty()
    }

    /// Marks all queued tries as submitted, and with `marks` as submitted by this thread.
    pub(super) fn handed_on(&mut self, marks: bool) {
        if marks {
            let thread = ThreadMark::of_this();
            self.queued.iter().for_each(|&token| self.ops[token as usize].handed_on_by = thread);
        }
        self.queued.clear();
    }

    #[inline]
    pub(super) fn op(&mut self, token: u32) -> &mut PendingOp {
        &mut self.ops[token as usize]
    }

    /// Frees the slot of an operation that has ended.
    #[inline]
    pub(super) fn free(&mut self, token: u32) {
        self.free.push(token);
    }

    /// The operations in flight.
    pub(super) fn iter(&self) -> impl Iterator<Item = &PendingOp> {
        self.ops.iter().filter(|op| op.is_pending())
    }

    /// Returns the operation that was started last, which is not submitted yet.
    pub(super) fn last(&self) -> &PendingOp {
        let token = self.queued.last().expect("an operation was begun");
        &self.ops[*token as usize]
    }

    /// Returns whether that operation writes bytes that another one writes.
    pub(super) fn has_overlap(&self) -> bool {
        let last = self.last();
        self.iter().any(|other| !std::ptr::eq(other, last) && other.overlaps(last))
    }

    /// Leaks every operation's buffer.
    pub(super) fn leak(&mut self) {
        std::mem::take(&mut self.ops).into_iter().for_each(std::mem::forget);
        self.free.clear();
    }
}

/// Tries to submit to a backend, in order, each read from its slot.
pub(super) struct Requests<'a> {
    ops: &'a [PendingOp],
    queued: std::slice::Iter<'a, u32>,
}

impl<'a> Iterator for Requests<'a> {
    type Item = &'a Request;

    #[inline]
    fn next(&mut self) -> Option<&'a Request> {
        self.queued.next().map(|&token| &self.ops[token as usize].request)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.queued.size_hint()
    }
}
