//! Operations in flight: each stays in the slot that it was begun in until it is complete.

use super::pending::{PendingOp, ThreadMark};
use super::request::Request;

/// As many slots as operations may be in flight. The number of an operation's slot is its token.
pub(super) struct Slots {
    ops: Vec<PendingOp>,
    /// Slots without an operation.
    free: Vec<u32>,
    /// Operations with a try that the backend does not have yet, in order.
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

    /// Takes a free slot, and queues the try of the operation that the caller begins in it. Panics
    /// where no slot is free.
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

    /// Learns that the backend has every queued try, and with `marks` that this thread gave them.
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

    /// The operation that was begun last. It is not handed on yet.
    pub(super) fn last(&self) -> &PendingOp {
        let token = self.queued.last().expect("an operation was begun");
        &self.ops[*token as usize]
    }

    /// Whether that operation writes bytes that another one writes.
    pub(super) fn has_overlap(&self) -> bool {
        let last = self.last();
        self.iter().any(|other| !std::ptr::eq(other, last) && other.overlaps(last))
    }

    /// Keeps every operation's buffer for good.
    pub(super) fn leak(&mut self) {
        std::mem::take(&mut self.ops).into_iter().for_each(std::mem::forget);
        self.free.clear();
    }
}

/// Tries to hand to a backend, in order, each read from its slot.
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
