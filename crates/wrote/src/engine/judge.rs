//! Judges each attempt at an operation (W4): complete, to be continued, or failed. Also decides
//! what a failure means for the file (W2).

use super::op::OpKind;
use super::open_file::OpenFile;
use super::slots::{PendingOp, ThreadMark};
use crate::error::{Error, errno_of};
use std::io;

/// The maximum number of attempts at one operation that move nothing. A disk that returns EINTR,
/// EAGAIN or 0 bytes forever must not block the caller forever.
const FRUITLESS_TRIES_MAX: u32 = 1000;

#[derive(Debug, PartialEq)]
pub(super) enum Verdict {
    Again,
    /// `O_DIRECT` was refused with this error number: try again, through the page cache if the file
    /// allows that.
    AgainCached(i32),
    /// `RWF_DONTCACHE` was refused with this error number: try again without it.
    AgainKeeping(i32),
    Whole(u64),
    Failed(i32),
}

/// Judges the kernel's result of an attempt. `has_shared_ring` states whether several threads
/// submit to a ring.
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
            // O_DIRECT was accepted when the file was opened, but refused for this transfer, or for
            // concurrent ones. An atomic write may be refused because of its length or offset,
            // which does not concern O_DIRECT.
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
        // Writing the rest would be a second write, so the write as a whole would not be atomic.
        return Verdict::Failed(libc::EIO);
    }
    if op.direct && !is_whole {
        // A direct transfer continues at a block boundary, and so repeats a partial block.
        moved -= moved % u64::from(file.align_bytes);
    }
    let is_all = op.advance(moved);
    match kind {
        // At the end of the file, a read is short: it moves nothing, or only part of the last
        // block.
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

/// Returns the result of an operation that has finished with a number of bytes or an error number.
pub(super) fn result_of(
    op: &PendingOp,
    file: &mut OpenFile,
    ended: Result<u64, i32>,
) -> Result<usize, Error> {
    let kind = op.request.kind;
    match ended {
        Ok(moved) => match file.poisoned().filter(|_| kind.flushes()) {
            // W2: the kernel may report success for a flush that runs concurrently with the failed
            // one.
            Some(poisoned) => Err(poisoned),
            None => Ok(moved as usize),
        },
        Err(errno) => {
            if kind.flushes() {
                // W2: the kernel has marked the pages clean, so the success of a second flush would
                // mean nothing (Rebello et al., ATC'20).
                file.poison.get_or_insert(errno);
            }
            let (path, action) = (file.path.clone(), kind.action());
            let offset = kind.transfers().then_some(op.request.offset);
            Err(Error::File { path, action, offset, errno })
        }
    }
}

/// Returns whether an attempt's `ECANCELED` means that the kernel never started it.
///
/// When a thread exits, the kernel cancels its operations in the ring. The kernel runs each flush
/// on a worker (`io_fsync` in `io_uring/sync.c`). A worker that reaches a cancelled flush returns
/// `ECANCELED` (`io_wq_submit_work` in `io_uring/io_uring.c`); a worker that has already started a
/// flush completes it. So after such an `ECANCELED`, nothing has been flushed, no error of the file
/// has been consumed, and the next attempt is effectively the first (W2).
///
/// If no ring is used by several threads, or the submitting thread is still running, `ECANCELED`
/// comes from the file system, for example from a FUSE server. In that case, the flush has failed.
fn is_never_begun(op: &PendingOp) -> bool {
    op.handed_on_by != ThreadMark::of_this()
}

/// Allows another attempt, up to a maximum number of attempts that moved nothing.
fn again(op: &mut PendingOp, errno: i32) -> Verdict {
    op.fruitless += 1;
    if op.fruitless > FRUITLESS_TRIES_MAX { Verdict::Failed(errno) } else { Verdict::Again }
}

/// Repeats an interrupted call (W4), up to a maximum number of times.
pub(super) fn uninterrupted<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    for _ in 0..FRUITLESS_TRIES_MAX {
        match call() {
            Err(error) if matches!(errno_of(&error), libc::EINTR | libc::EAGAIN) => {}
            result => return result,
        }
    }
    call()
}

#[cfg(test)]
mod tests {
    use super::Verdict::{Again, AgainCached, AgainKeeping, Failed, Whole};
    use super::*;
    use crate::buffer::{Buffer, Pool};
    use crate::engine::open_file::FileAccess;
    use crate::engine::slots::Work;
    use crate::engine::{FileId, FileOptions, Op};
    use std::path::Path;

    const BYTES: usize = 8192;
    const ID: FileId = FileId { slot: 0, generation: 0 };

    fn file(is_direct: bool, options: FileOptions) -> OpenFile {
        let access = FileAccess { raw: -1, direct: is_direct, refused: None, align_bytes: 512 };
        OpenFile::new(Path::new("/f"), &options, &access, 0)
    }

    fn cached() -> OpenFile {
        file(false, FileOptions::new())
    }

    fn direct() -> OpenFile {
        file(true, FileOptions::new())
    }

    fn write(buffer: Buffer) -> Op {
        Op::Write { file: ID, offset: 0, buffer, durable: false }
    }

    fn read(buffer: Buffer) -> Op {
        Op::Read { file: ID, offset: 0, buffer }
    }

    fn flush(_: Buffer) -> Op {
        Op::Fdatasync { file: ID }
    }

    /// Returns an operation of 8 KiB that this thread has submitted.
    fn tried(op: fn(Buffer) -> Op, file: &OpenFile) -> PendingOp {
        let pool = Pool::new(1, BYTES).expect("memory");
        let buffer = pool.lease().expect("a buffer");
        let mut tried = PendingOp::none(0);
        tried.begin(0, Work::new(op(buffer)), file, &pool);
        tried.handed_on_by = ThreadMark::of_this();
        tried
    }

    /// Returns the verdicts on an operation's attempts with these results. The last verdict
    /// completes the operation.
    fn verdicts(op: fn(Buffer) -> Op, mut file: OpenFile, results: &[i64]) -> Vec<Verdict> {
        let mut op = tried(op, &file);
        let verdict = |&result: &i64| {
            let verdict = judge(&mut op, &mut file, result, false);
            op.prepare_again(&file);
            verdict
        };
        results.iter().map(verdict).collect()
    }

    fn refused(errno: i32) -> [i64; 1] {
        [-i64::from(errno)]
    }

    #[test]
    fn a_transfer_goes_on_until_it_is_whole() {
        assert_eq!(verdicts(write, cached(), &[8192]), [Whole(8192)]);
        assert_eq!(verdicts(write, cached(), &[5000, 3192]), [Again, Whole(8192)]);
        assert_eq!(verdicts(write, cached(), &[9000]), [Whole(8192)]);
        // A partial block is written again.
        assert_eq!(verdicts(write, direct(), &[5000, 3584]), [Again, Whole(8192)]);
        assert_eq!(verdicts(flush, cached(), &[0]), [Whole(0)]);
    }

    #[test]
    fn a_read_ends_where_the_file_does() {
        assert_eq!(verdicts(read, cached(), &[5000, 0]), [Again, Whole(5000)]);
        assert_eq!(verdicts(read, direct(), &[4096, 904]), [Again, Whole(5000)]);
        assert_eq!(verdicts(read, direct(), &[8192]), [Whole(8192)]);
    }

    #[test]
    fn a_transfer_that_moves_nothing_is_tried_so_often_and_then_fails() {
        let mut file = direct();
        let mut op = tried(write, &file);
        let mut next = |result| judge(&mut op, &mut file, result, false);
        let most = FRUITLESS_TRIES_MAX as usize;
        let fruitless = [0, 100, -i64::from(libc::EINTR), -i64::from(libc::EAGAIN)];
        let tries = fruitless.into_iter().cycle().take(most);
        assert!(tries.clone().all(|result| next(result) == Again));
        assert_eq!(next(512), Again);
        assert!(tries.clone().all(|result| next(result) == Again));
        assert_eq!(next(0), Failed(libc::EIO));
        assert_eq!(next(-i64::from(libc::EINTR)), Failed(libc::EINTR));
    }

    #[test]
    fn a_cancelled_flush_is_tried_again_only_if_it_never_began() {
        let judged = |op: fn(Buffer) -> Op, has_shared_ring, thread: ThreadMark| {
            let mut file = cached();
            let mut op = tried(op, &file);
            op.handed_on_by = thread;
            judge(&mut op, &mut file, -i64::from(libc::ECANCELED), has_shared_ring)
        };
        let own = ThreadMark::of_this();
        let other = PendingOp::none(0).handed_on_by;
        assert_eq!(judged(write, false, own), Again);
        assert_eq!(judged(flush, true, other), Again);
        assert_eq!(judged(flush, true, own), Failed(libc::ECANCELED));
        assert_eq!(judged(flush, false, other), Failed(libc::ECANCELED));
    }

    #[test]
    fn direct_transfers_that_never_worked_go_through_the_page_cache() {
        let einval = refused(libc::EINVAL);
        assert_eq!(verdicts(write, direct(), &einval), [AgainCached(libc::EINVAL)]);
        assert_eq!(verdicts(read, direct(), &einval), [AgainCached(libc::EINVAL)]);
        assert_eq!(verdicts(write, direct(), &[512, einval[0]]), [Again, Failed(libc::EINVAL)]);
        assert_eq!(verdicts(write, cached(), &[512, einval[0]]), [Again, Failed(libc::EINVAL)]);
        assert_eq!(verdicts(write, cached(), &einval), [Failed(libc::EINVAL)]);
        assert_eq!(verdicts(flush, direct(), &einval), [Failed(libc::EINVAL)]);
        let atomic = file(true, FileOptions::new().atomic(true));
        assert_eq!(verdicts(write, atomic, &einval), [Failed(libc::EINVAL)]);
    }

    #[test]
    fn an_atomic_write_is_whole_or_fails() {
        let atomic = || file(true, FileOptions::new().atomic(true));
        assert_eq!(verdicts(write, atomic(), &[8192]), [Whole(8192)]);
        assert_eq!(verdicts(write, atomic(), &[4096]), [Failed(libc::EIO)]);
    }

    #[test]
    fn a_file_system_that_cannot_drop_pages_keeps_them() {
        let mut file = file(false, FileOptions::new().dontcache(true).atomic(true));
        let mut op = tried(write, &file);
        let refused = refused(libc::EOPNOTSUPP)[0];
        assert_eq!(judge(&mut op, &mut file, refused, false), AgainKeeping(libc::EOPNOTSUPP));
        assert_eq!((file.read_flags, file.write_flags), (0, libc::RWF_ATOMIC));
        op.prepare_again(&file);
        assert_eq!(judge(&mut op, &mut file, refused, false), Failed(libc::EOPNOTSUPP));
    }

    #[test]
    fn a_failed_flush_poisons_its_file() {
        let mut file = cached();
        let (written, flushed) = (tried(write, &file), tried(flush, &file));
        let failed = result_of(&written, &mut file, Err(libc::ENOSPC));
        assert!(matches!(failed, Err(Error::File { offset: Some(0), errno: libc::ENOSPC, .. })));
        assert!(matches!(result_of(&flushed, &mut file, Ok(0)), Ok(0)));
        let failed = result_of(&flushed, &mut file, Err(libc::EIO));
        assert!(matches!(failed, Err(Error::File { offset: None, errno: libc::EIO, .. })));
        let later = result_of(&flushed, &mut file, Ok(0));
        assert!(matches!(later, Err(Error::Poisoned { errno: libc::EIO, .. })));
        assert!(matches!(result_of(&written, &mut file, Ok(8192)), Ok(8192)));
        // The first error is kept.
        assert!(result_of(&flushed, &mut file, Err(libc::ENOSPC)).is_err());
        assert_eq!(file.poison, Some(libc::EIO));
    }

    #[test]
    fn an_interrupted_call_is_made_again_up_to_a_limit() {
        let calls = |errno, interruptions| {
            let mut calls = 0;
            let result = uninterrupted(|| {
                calls += 1;
                let is_interrupted = calls <= interruptions;
                if is_interrupted { Err(io::Error::from_raw_os_error(errno)) } else { Ok(()) }
            });
            (calls, result.is_ok())
        };
        assert_eq!(calls(libc::EINTR, 2), (3, true));
        assert_eq!(calls(libc::EAGAIN, 2), (3, true));
        assert_eq!(calls(libc::EIO, 2), (1, false));
        let most = FRUITLESS_TRIES_MAX + 1;
        assert_eq!(calls(libc::EINTR, u32::MAX), (most, false));
    }
}
