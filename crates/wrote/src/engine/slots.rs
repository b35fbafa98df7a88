//! The operations that have been queued and are not complete yet. Each stays in its slot until it
//! completes.

use super::op::{Completion, Op, OpKind, Request};
use super::open_file::OpenFile;
use crate::Error;
use crate::buffer::{Buffer, Pool};
use std::ops::Range;

/// The slots, one for each operation that may be in flight. A slot's number is the operation's
/// token.
pub(super) struct Slots {
    ops: Vec<PendingOp>,
    free: Vec<u32>,
    /// The operations with an attempt that has not been submitted yet, in order.
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

    /// Takes a free slot, and queues the first attempt of the operation that the caller begins in
    /// it. Panics if no slot is free.
    #[inline]
    pub(super) fn take(&mut self) -> &mut PendingOp {
        let token = self.free.pop().expect("a slot is free");
        self.queued.push(token);
        &mut self.ops[token as usize]
    }

    /// Queues the next attempt of an operation.
    pub(super) fn again(&mut self, token: u32) {
        self.queued.push(token);
    }

    /// Returns the queued attempts. They stay queued until [`Slots::handed_on`].
    pub(super) fn requests<'a>(&'a self, files: &'a [Option<OpenFile>]) -> Requests<'a> {
        Requests { ops: &self.ops, queued: self.queued.iter(), files }
    }

    pub(super) fn has_queued(&self) -> bool {
        !self.queued.is_empty()
    }

    /// Marks all queued attempts as submitted. If `marks` is set, also records that this thread
    /// submitted them.
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

    /// Frees the slot of a finished operation.
    #[inline]
    pub(super) fn free(&mut self, token: u32) {
        self.free.push(token);
    }

    /// Returns the operations in flight.
    pub(super) fn iter(&self) -> impl Iterator<Item = &PendingOp> {
        self.ops.iter().filter(|op| op.is_pending())
    }

    /// Returns the most recently begun operation, which has not been submitted yet.
    pub(super) fn last(&self) -> &PendingOp {
        let token = self.queued.last().expect("an operation was begun");
        &self.ops[*token as usize]
    }

    /// Returns whether the most recently begun operation and another operation in flight write to
    /// the same bytes.
    pub(super) fn has_overlap(&self) -> bool {
        let last = self.last();
        self.iter().any(|other| !std::ptr::eq(other, last) && other.overlaps(last))
    }

    /// Leaks the buffers of all operations.
    pub(super) fn leak(&mut self) {
        std::mem::take(&mut self.ops).into_iter().for_each(std::mem::forget);
        self.free.clear();
    }
}

/// The attempts to submit to a backend, in order, each read from its slot.
pub(super) struct Requests<'a> {
    ops: &'a [PendingOp],
    queued: std::slice::Iter<'a, u32>,
    /// The files that the operations refer to, by slot.
    pub files: &'a [Option<OpenFile>],
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

/// The maximum number of bytes that the kernel moves in one call (`read(2)`, `write(2)`), just
/// below 2 GiB.
const TRANSFER_BYTES_MAX: u64 = 0x7fff_f000;

/// The caller's operation in the engine's terms.
pub(super) struct Work {
    kind: OpKind,
    slot: u32,
    offset: u64,
    len: u64,
    buffer: Option<Buffer>,
}

impl Work {
    #[inline]
    pub(super) fn new(op: Op) -> Work {
        let slot = op.file().slot;
        let (kind, offset, len, buffer) = match op {
            Op::Write { offset, buffer, durable, .. } => {
                let kind = if durable { OpKind::DurableWrite } else { OpKind::Write };
                (kind, offset, buffer.len() as u64, Some(buffer))
            }
            Op::Read { offset, buffer, .. } => {
                (OpKind::Read, offset, buffer.len() as u64, Some(buffer))
            }
            Op::Fdatasync { .. } => (OpKind::Fdatasync, 0, 0, None),
            Op::Fsync { .. } => (OpKind::Fsync, 0, 0, None),
            Op::Fallocate { offset, len, .. } => (OpKind::Fallocate, offset, len, None),
            Op::Reserve { offset, len, .. } => (OpKind::Reserve, offset, len, None),
        };
        Work { kind, slot, offset, len, buffer }
    }

    /// Returns whether the operation must be refused without an attempt.
    #[inline]
    pub(super) fn is_refused(&self, file: &OpenFile) -> bool {
        let is_poisoned = file.poison.is_some() && self.kind != OpKind::Read;
        let is_misaligned = || self.kind.transfers() && file.misses(self.offset | self.len);
        is_poisoned || self.is_beyond() || is_misaligned()
    }

    /// Returns whether the operation ends beyond the maximum length of a file. The kernel's offsets
    /// are signed.
    #[inline]
    fn is_beyond(&self) -> bool {
        self.offset.saturating_add(self.len) > i64::MAX as u64
    }

    /// Completes the operation with the error for which it is refused.
    #[cold]
    pub(super) fn refuse(self, user_data: u64, file: &OpenFile) -> Completion {
        let (path, action, offset) = (file.path.clone(), self.kind.action(), self.offset);
        let error = if let Some(poisoned) = file.poisoned().filter(|_| self.kind != OpKind::Read) {
            poisoned
        } else if self.is_beyond() {
            Error::File { path, action, offset: Some(offset), errno: libc::EFBIG }
        } else {
            Error::Alignment { path, action, offset, align_bytes: file.align_bytes }
        };
        let buffer = self.buffer.filter(|_| self.kind == OpKind::Read);
        Completion { user_data, result: Err(error), buffer }
    }
}

/// The identity of a live thread. After a thread has exited, a later thread may have the same mark.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct ThreadMark(usize);

impl ThreadMark {
    #[inline]
    pub(super) fn of_this() -> ThreadMark {
        thread_local!(static OWN: u8 = const { 0 });
        ThreadMark(OWN.with(|own| std::ptr::from_ref(own) as usize))
    }
}

/// The operation of a slot, with its current or next attempt.
pub(super) struct PendingOp {
    /// The attempt to transfer what has not been transferred yet.
    pub request: Request,
    user_data: u64,
    /// The length of the whole operation.
    len: u64,
    /// The number of bytes moved by all attempts so far.
    moved: u64,
    buffer: Option<Buffer>,
    /// The number of attempts that moved nothing.
    pub fruitless: u32,
    /// The thread that submitted the attempt.
    pub handed_on_by: ThreadMark,
    /// Whether the file was direct when the attempt was prepared.
    pub direct: bool,
    /// Whether a reply with all bytes completes the operation without checking its file.
    is_plain: bool,
    is_pending: bool,
}

impl PendingOp {
    pub(super) fn none(token: u32) -> PendingOp {
        let (kind, in_pool, rw_flags) = (OpKind::Fsync, false, 0);
        let address = std::ptr::NonNull::dangling().as_ptr();
        let (slot, offset, len) = (0, 0, 0);
        PendingOp {
            request: Request { token, kind, in_pool, rw_flags, slot, offset, address, len },
            user_data: 0,
            len: 0,
            moved: 0,
            buffer: None,
            fruitless: 0,
            handed_on_by: ThreadMark(0),
            direct: false,
            is_plain: false,
            is_pending: false,
        }
    }

    /// Begins an operation in a free slot, with its first attempt.
    #[inline]
    pub(super) fn begin(&mut self, user_data: u64, work: Work, file: &OpenFile, pool: &Pool) {
        let Work { kind, slot, offset, len, buffer } = work;
        let (address, in_pool) = match &buffer {
            Some(buffer) => (buffer.address(), pool.owns(buffer)),
            None => (std::ptr::NonNull::dangling().as_ptr(), false),
        };
        let request = &mut self.request;
        (request.kind, request.in_pool, request.slot) = (kind, in_pool, slot);
        (request.offset, request.address) = (offset, address);
        self.user_data = user_data;
        self.len = len;
        self.moved = 0;
        // A free slot has no buffer to drop.
        std::mem::forget(std::mem::replace(&mut self.buffer, buffer));
        self.fruitless = 0;
        self.is_pending = true;
        self.prepare_try(len, file);
    }

    /// Prepares another attempt after one that did not move everything.
    pub(super) fn prepare_again(&mut self, file: &OpenFile) {
        self.prepare_try(self.len - self.moved, file);
    }

    /// Prepares an attempt at the `rest`, in the file's current mode.
    #[inline]
    fn prepare_try(&mut self, rest: u64, file: &OpenFile) {
        let request = &mut self.request;
        let kind = request.kind;
        request.len = if kind.transfers() { rest.min(TRANSFER_BYTES_MAX) } else { rest };
        request.rw_flags = file.rw_flags(kind);
        self.direct = file.direct;
        let promises_nothing = matches!(kind, OpKind::Read | OpKind::Write);
        let is_proven = !file.direct || file.direct_proven;
        self.is_plain = promises_nothing && is_proven && request.len == rest;
    }

    /// Adds the bytes that an attempt moved, and returns whether everything has been moved.
    pub(super) fn advance(&mut self, moved: u64) -> bool {
        self.moved += moved;
        self.request.offset += moved;
        // SAFETY: `moved` is at most the length of the request, whose bytes are the buffer's rest.
        self.request.address = unsafe { self.request.address.add(moved as usize) };
        self.moved == self.len
    }

    /// Returns the number of bytes moved by all attempts so far.
    pub(super) fn moved(&self) -> u64 {
        self.moved
    }

    pub(super) fn is_pending(&self) -> bool {
        self.is_pending
    }

    /// Returns whether `result` means that all bytes were moved by a transfer that makes no promise
    /// (W1) and reveals nothing new about its file.
    #[inline]
    pub(super) fn is_plainly_whole(&self, result: i64) -> bool {
        self.is_plain && result == self.request.len as i64
    }

    /// Returns the range of the file that the whole operation writes.
    fn written(&self) -> Range<u64> {
        let start = self.request.offset - self.moved;
        if self.request.kind.writes() { start..start + self.len } else { start..start }
    }

    /// Returns whether both operations write to a common byte.
    pub(super) fn overlaps(&self, other: &PendingOp) -> bool {
        let (ours, theirs) = (self.written(), other.written());
        self.request.slot == other.request.slot
            && ours.start.max(theirs.start) < ours.end.min(theirs.end)
    }

    /// Marks the operation as finished; the caller then frees its slot. Returns its number, its
    /// length and, for a read, its buffer. The buffer of a write returns to its pool.
    #[inline]
    pub(super) fn end(&mut self) -> (u64, usize, Option<Buffer>) {
        self.is_pending = false;
        let buffer = self.buffer.take();
        let buffer = if self.request.kind == OpKind::Read { buffer } else { None };
        (self.user_data, self.len as usize, buffer)
    }
}
