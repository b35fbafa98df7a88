//! The verdict on a try of an operation (W4): it is whole, it goes on, or it failed.

use super::Engine;
use super::backend::Reply;
use super::op::OpKind;
use super::pending::{PendingOp, TRANSFER_BYTES_MAX};
use crate::error::{Action, Error, errno_of};
use std::io;

/// Tries of one operation that move nothing before it fails: a disk that answers EINTR or EAGAIN,
/// or takes no bytes, for ever must not hold its caller for ever.
const FRUITLESS_TRIES_MAX: u32 = 1000;

enum Verdict {
    Again,
    Whole(u64),
    Failed(i32),
}

impl Engine {
    pub(super) fn settle(&mut self, done: Reply) {
        match self.judge(done) {
            Verdict::Again => self.push(done.token),
            Verdict::Whole(moved) => self.complete(done.token, Ok(moved as usize)),
            Verdict::Failed(errno) => self.fail(done.token, errno),
        }
    }

    fn judge(&mut self, done: Reply) -> Verdict {
        let op = self.slots[done.token as usize].as_mut().expect("done while in flight");
        let file = self.files[op.file as usize].as_mut().expect("open while in flight");
        if done.result < 0 {
            let errno = i32::try_from(-done.result).unwrap_or(libc::EIO);
            return match errno {
                libc::EINTR | libc::EAGAIN => again(op, errno),
                // A thread that ends takes its operations back from the kernel's workers, and the
                // engine may have moved on to another thread.
                libc::ECANCELED if op.kind.transfers() => again(op, errno),
                // O_DIRECT was taken at open and refused at this transfer, or at others beside it.
                // An atomic write may be refused for its size or place, which says nothing of
                // O_DIRECT.
                libc::EINVAL
                    if op.kind.transfers()
                        && op.direct
                        && !file.direct_proven
                        && op.rw_flags & libc::RWF_ATOMIC == 0 =>
                {
                    self.leave_direct(done.token, errno)
                }
                libc::EOPNOTSUPP if op.rw_flags & libc::RWF_DONTCACHE != 0 => {
                    file.read_flags &= !libc::RWF_DONTCACHE;
                    file.write_flags &= !libc::RWF_DONTCACHE;
                    let because = format!("RWF_DONTCACHE: {}", io::Error::from_raw_os_error(errno));
                    self.effective.fell_back("uncached transfers", "page cache", because);
                    Verdict::Again
                }
                _ => Verdict::Failed(errno),
            };
        }
        if !op.kind.transfers() {
            return Verdict::Whole(0);
        }
        file.direct_proven |= op.direct;
        let tried = (op.len - op.moved).min(TRANSFER_BYTES_MAX);
        let mut moved = (done.result as u64).min(tried);
        let whole = moved == tried;
        if !whole && op.rw_flags & libc::RWF_ATOMIC != 0 {
            // The rest would be a second write.
            return Verdict::Failed(libc::EIO);
        }
        if op.direct && !whole {
            // A direct transfer goes on at a whole block, and moves a part of one again.
            moved -= moved % u64::from(file.align_bytes);
        }
        op.moved += moved;
        match op.kind {
            // A read is short at the file's end: nothing came, or a part of the last block.
            OpKind::Read if !whole && (done.result == 0 || done.result as u64 != moved) => {
                Verdict::Whole(op.moved - moved + done.result as u64)
            }
            _ if op.moved == op.len => Verdict::Whole(op.len),
            _ if moved > 0 => {
                op.fruitless = 0;
                Verdict::Again
            }
            _ => again(op, libc::EIO),
        }
    }

    /// Goes on through the page cache, if the file allows that.
    fn leave_direct(&mut self, token: u32, errno: i32) -> Verdict {
        let op = self.slots[token as usize].as_ref().expect("done while in flight");
        let (slot, action) = (op.file, op.kind.action());
        if self.file(slot).direct {
            if self.backend.clear_direct(slot).is_err() {
                return Verdict::Failed(errno);
            }
            self.file_mut(slot).direct = false;
            let action = if action == Action::Read { "read" } else { "write" };
            self.refused_direct(action, errno);
        }
        Verdict::Again
    }

    fn fail(&mut self, token: u32, errno: i32) {
        let op = self.slots[token as usize].as_ref().expect("done while in flight");
        let (slot, action) = (op.file, op.kind.action());
        let offset = op.kind.transfers().then_some(op.offset + op.moved);
        let flushes = op.kind.flushes();
        let file = self.file_mut(slot);
        let error = Error::File { path: file.path.clone(), action, offset, errno };
        if flushes {
            // W2: the kernel has marked the pages clean; a second flush would succeed and mean
            // nothing (Rebello et al., ATC'20).
            file.poison.get_or_insert(errno);
        }
        self.complete(token, Err(error));
    }

    fn complete(&mut self, token: u32, result: Result<usize, Error>) {
        let op = self.slots[token as usize].take().expect("completed once");
        self.free_slots.push(token);
        let file = self.file_mut(op.file);
        file.in_flight -= 1;
        let result = match (result, file.poison) {
            // W2: the kernel may report success for a flush beside the one that failed.
            (Ok(_), Some(errno)) if op.kind.flushes() => {
                Err(Error::Poisoned { path: file.path.clone(), errno })
            }
            (result, _) => result,
        };
        self.completed.push(op.into_completion(result));
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
