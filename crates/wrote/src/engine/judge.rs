//! Judges each try of an operation (W4): complete, to be continued, or failed; and what a failure
//! means for its file (W2).

use super::op::OpKind;
use super::open_file::OpenFile;
use super::slots::{PendingOp, ThreadMark};
use crate::error::{Error, errno_of};
use std::io;

/// The most tries of one operation that move nothing. A disk that returns EINTR, EAGAIN or 0 bytes
/// forever must not block its caller forever.
const FRUITLESS_TRIES_MAX: u32 = 1000;

pub(super) enum Verdict {
    Again,
    /// Again through the page cache, if the file allows that: `O_DIRECT` was refused.
    AgainCached(i32),
    /// Again without `RWF_DONTCACHE`, which was refused.
    AgainKeeping(i32),
    Whole(u64),
    Failed(i32),
}

/// Judges what the kernel answered to a try. `has_shared_ring`: several threads submit to a ring.
pub(super) fn judge(
    op: &mut PendingOp,
    file: &mut OpenFile,
    result: i64,
    has_shared_ring: bool,
) -> Verdict {
    let (kind, rw_flags) = (op.request.kind, op.request.rw_flags);
    if result < 0 {
        let errno = i32::try_from(-result).unwrap_or(libc::EIO);
        return match errno {
            libc::EINTR | libc::EAGAIN => again(op, errno),
            libc::ECANCELED if !kind.flushes() || has_shared_ring && is_never_begun(op) => {
                again(op, errno)
            }
            // O_DIRECT was accepted at open but refused for this transfer, or for concurrent
            // ones. An atomic write may be refused because of its size or place, which does not
            // concern O_DIRECT.
            libc::EINVAL
                if kind.transfers()
                    && op.direct
                    && !file.direct_proven
                    && rw_flags & libc::RWF_ATOMIC == 0 =>
            {
                Verdict::AgainCached(errno)
            }
            libc::EOPNOTSUPP if rw_flags & libc::RWF_DONTCACHE != 0 => {
                file.read_flags &= !libc::RWF_DONTCACHE;
                file.write_flags &= !libc::RWF_DONTCACHE;
                Verdict::AgainKeeping(errno)
            }
            _ => Verdict::Failed(errno),
        };
    }
    if !kind.transfers() {
        return Verdict::Whole(0);
    }
    file.direct_proven |= op.direct;
    let tried = op.request.len;
    let told = result as u64;
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

/// Returns the result of an operation that has ended, or failed with an error number.
pub(super) fn result_of(
    op: &PendingOp,
    file: &mut OpenFile,
    ended: Result<u64, i32>,
) -> Result<usize, Error> {
    let kind = op.request.kind;
    match ended {
        Ok(moved) => match file.poisoned().filter(|_| kind.flushes()) {
            // W2: the kernel may report success for a flush concurrent with the failed one.
            Some(poisoned) => Err(poisoned),
            None => Ok(moved as usize),
        },
        Err(errno) => {
            if kind.flushes() {
                // W2: the kernel has marked the pages clean; a second flush would succeed without
                // meaning (Rebello et al., ATC'20).
                file.poison.get_or_insert(errno);
            }
            let (path, action) = (file.path.clone(), kind.action());
            let offset = kind.transfers().then_some(op.request.offset);
            Err(Error::File { path, action, offset, errno })
        }
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
fn is_never_begun(op: &PendingOp) -> bool {
    op.handed_on_by != ThreadMark::of_this()
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
