//! Judges each try of an operation (W4): complete, to be continued, or failed.

use super::op::{OpKind, Reply};
use super::slots::{PendingOp, ThreadMark};
use super::{Completion, Engine};
use crate::error::{Action, Error, errno_of};
use std::io;

/// The most tries of one operation that move nothing. A disk that returns EINTR, EAGAIN or 0 bytes
/// forever must not block its caller forever.
const FRUITLESS_TRIES_MAX: u32 = 1000;

enum Verdict {
    Again,
    Whole(u64),
    Failed(i32),
}

impl Engine {
    /// Completes an operation, passing its completion to `take`, or has it tried again.
    #[inline]
    pub(super) fn settle(&mut self, reply: Reply, take: &mut impl FnMut(Completion)) {
        let op = self.slots.op(reply.token);
        if !op.is_plainly_whole(reply.result) {
            return self.settle_by_verdict(reply).into_iter().for_each(take);
        }
        let (user_data, bytes, buffer) = op.end();
        self.slots.free(reply.token);
        take(Completion { user_data, result: Ok(bytes), buffer });
    }

    #[inline(never)]
    fn settle_by_verdict(&mut self, reply: Reply) -> Option<Completion> {
        match self.judge(reply) {
            Verdict::Again => {
                self.try_again(reply.token);
                None
            }
            Verdict::Whole(moved) => Some(self.complete(reply.token, Ok(moved as usize))),
            Verdict::Failed(errno) => Some(self.fail(reply.token, errno)),
        }
    }

    /// Returns whether the kernel returned the try without starting it.
    ///
    /// When a thread ends, its operations are cancelled in the ring. The kernel runs each flush on
    /// a worker (`io_fsync` in `io_uring/sync.c`). A worker that reaches a cancelled one returns
    /// `ECANCELED` (`io_wq_submit_work` in `io_uring/io_uring.c`), while one already started runs
    /// to the flush's result. So nothing was flushed and no file error was consumed: another try is
    /// the first one (W2).
    ///
    /// If no ring is used by several threads, or the submitting thread has not ended, `ECANCELED`
    /// comes from the file system, for example a FUSE server. Then the flush has failed.
    fn is_never_begun(&mut self, reply: Reply) -> bool {
        reply.result == -i64::from(libc::ECANCELED)
            && self.has_shared_ring
            && self.slots.op(reply.token).handed_on_by != ThreadMark::of_this()
    }

    fn try_again(&mut self, token: u32) {
        let op = self.slots.op(token);
        let file = self.files[op.request.slot as usize].as_ref().expect("open while in flight");
        op.prepare_again(file);
        self.slots.again(token);
    }

    fn judge(&mut self, reply: Reply) -> Verdict {
        let is_never_begun = self.is_never_begun(reply);
        let op = self.slots.op(reply.token);
        let file = self.files[op.request.slot as usize].as_mut().expect("open while in flight");
        let (kind, rw_flags) = (op.request.kind, op.request.rw_flags);
        if reply.result < 0 {
            let errno = i32::try_from(-reply.result).unwrap_or(libc::EIO);
            return match errno {
                libc::EINTR | libc::EAGAIN => again(op, errno),
                libc::ECANCELED if !kind.flushes() || is_never_begun => again(op, errno),
                // O_DIRECT was accepted at open but refused for this transfer, or for concurrent
                // ones. An atomic write may be refused because of its size or place, which does not
                // concern O_DIRECT.
                libc::EINVAL
                    if kind.transfers()
                        && op.direct
                        && !file.direct_proven
                        && rw_flags & libc::RWF_ATOMIC == 0 =>
                {
                    self.leave_direct(reply.token, errno)
                }
                libc::EOPNOTSUPP if rw_flags & libc::RWF_DONTCACHE != 0 => {
                    file.read_flags &= !libc::RWF_DONTCACHE;
                    file.write_flags &= !libc::RWF_DONTCACHE;
                    let because = format!("RWF_DONTCACHE: {}", io::Error::from_raw_os_error(errno));
                    self.effective.fell_back("uncached transfers", "page cache", because);
                    Verdict::Again
                }
                _ => Verdict::Failed(errno),
            };
        }
        if !kind.transfers() {
            return Verdict::Whole(0);
        }
        file.direct_proven |= op.direct;
        let tried = op.request.len;
        let told = reply.result as u64;
        let mut moved = told.min(tried);
        let is_whole = moved == tried;
        if !is_whole && rw_flags & libc::RWF_ATOMIC != 0 {
            // Writing the rest would be a second write.
            return Verdict::Failed(libc::EIO);
        }
        if op.direct && !is_whole {
            // A direct transfer continues at a whole block, repeating a partial one.
            moved -= moved % u64::from(file.align_bytes);
        }
        let is_all = op.advance(moved);
        match kind {
            // A read is short at the end of the file: nothing, or part of the last block.
            OpKind::Read if !is_whole && (told == 0 || told != moved) => {
                Verdict::Whole(op.moved() - moved + told)
            }
            _ if is_all => Verdict::Whole(op.moved()),
            _ if moved > 0 => {
                op.fruitless = 0;
                Verdict::Again
            }
            _ => again(op, libc::EIO),
        }
    }

    /// Continues through the page cache, if the file allows that.
    fn leave_direct(&mut self, token: u32, errno: i32) -> Verdict {
        let request = self.slots.op(token).request;
        let (slot, action) = (request.slot, request.kind.action());
        if self.file(slot).direct {
            if self.change_direct(slot, false).is_err() {
                return Verdict::Failed(errno);
            }
            let action = if action == Action::Read { "read" } else { "write" };
            self.refused_direct(action, errno);
        }
        Verdict::Again
    }

    fn fail(&mut self, token: u32, errno: i32) -> Completion {
        let request = self.slots.op(token).request;
        let (slot, kind, action) = (request.slot, request.kind, request.kind.action());
        let offset = kind.transfers().then_some(request.offset);
        let file = self.file_mut(slot);
        let error = Error::File { path: file.path.clone(), action, offset, errno };
        if kind.flushes() {
            // W2: the kernel has marked the pages clean; a second flush would succeed without
            // meaning (Rebello et al., ATC'20).
            file.poison.get_or_insert(errno);
        }
        self.complete(token, Err(error))
    }

    fn complete(&mut self, token: u32, result: Result<usize, Error>) -> Completion {
        let op = self.slots.op(token);
        let file = self.files[op.request.slot as usize].as_ref().expect("open while in flight");
        // W2: the kernel may report success for a flush concurrent with the failed one.
        let poisoned = if op.request.kind.flushes() { file.poisoned() } else { None };
        let result = result.and_then(|moved| poisoned.map_or(Ok(moved), Err));
        let (user_data, _, buffer) = op.end();
        self.slots.free(token);
        Completion { user_data, result, buffer }
    }
}

/// Allows another try, up to a limit of tries that moved nothing.
fn again(op: &mut PendingOp, errno: i32) -> Verdict {
    op.fruitless += 1;
    if op.fruitless > FRUITLESS_TRIES_MAX { Verdict::Failed(errno) } else { Verdict::Again }
}

/// Repeats an interrupted call (W4), up to a limit.
pub(super) fn uninterrupted<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    for _ in 0..FRUITLESS_TRIES_MAX {
        match call() {
            Err(error) if matches!(errno_of(&error), libc::EINTR | libc::EAGAIN) => {}
            result => return result,
        }
    }
    call()
}
