//! What a try means for its operation (W4): it is whole, it goes on, or it failed.

use super::backend::Done;
use super::op::Kind;
use super::{Engine, InFlight, RWF_ATOMIC, RWF_DONTCACHE, TRANSFER_BYTES_MAX};
use crate::{Action, Error};

/// Tries of one operation that may bring nothing before it becomes an error: a disk that answers
/// EINTR or EAGAIN, or takes no bytes, for ever must not hold its caller for ever.
pub(super) const FRUITLESS_TRIES_MAX: u32 = 1000;

/// What to do after a try.
enum Next {
    Again,
    Whole(u64),
    Failed(i32),
}

impl Engine {
    pub(super) fn settle(&mut self, done: Done) {
        match self.judge(done) {
            Next::Again => self.push(done.token),
            Next::Whole(moved) => self.complete(done.token, Ok(moved as usize)),
            Next::Failed(errno) => self.fail(done.token, errno),
        }
    }

    /// W4: decides what a try means for its operation.
    fn judge(&mut self, done: Done) -> Next {
        let op = self.slots[done.token as usize].as_mut().expect("done while in flight");
        let file = self.files[op.file as usize].as_mut().expect("open while in flight");
        if done.result < 0 {
            let errno = i32::try_from(-done.result).unwrap_or(libc::EIO);
            return match errno {
                libc::EINTR | libc::EAGAIN => again(op, errno),
                // A thread that ends takes its operations back from the kernel's workers, and the
                // engine may have moved on to another thread.
                libc::ECANCELED if op.kind.transfers() => again(op, errno),
                // O_DIRECT taken at open but not at a transfer: this one, or others beside it.
                // An atomic write may be refused for its size or place, which says nothing of O_DIRECT.
                libc::EINVAL
                    if op.kind.transfers()
                        && op.direct
                        && !file.direct_proven
                        && op.rw_flags & RWF_ATOMIC == 0 =>
                {
                    self.leave_direct(done.token, errno)
                }
                libc::EOPNOTSUPP if op.rw_flags & RWF_DONTCACHE != 0 => {
                    file.read_flags &= !RWF_DONTCACHE;
                    file.write_flags &= !RWF_DONTCACHE;
                    let because =
                        format!("RWF_DONTCACHE: {}", std::io::Error::from_raw_os_error(errno));
                    self.effective.fell_back("uncached transfers", "page cache", because);
                    Next::Again
                }
                _ => Next::Failed(errno),
            };
        }
        if !op.kind.transfers() {
            return Next::Whole(0);
        }
        file.direct_proven |= op.direct;
        let tried = (op.len - op.moved).min(TRANSFER_BYTES_MAX);
        let mut moved = (done.result as u64).min(tried);
        let whole = moved == tried;
        if !whole && op.rw_flags & RWF_ATOMIC != 0 {
            // The rest would be another write: what was asked cannot be had.
            return Next::Failed(libc::EIO);
        }
        if op.direct && !whole {
            // A direct transfer goes on at a whole block; a part of one is moved again.
            moved -= moved % u64::from(file.align_bytes);
        }
        op.moved += moved;
        match op.kind {
            // A read is short at the file's end: nothing came, or a part of the last block.
            Kind::Read if !whole && (done.result == 0 || done.result as u64 != moved) => {
                Next::Whole(op.moved - moved + done.result as u64)
            }
            _ if op.moved == op.len => Next::Whole(op.len),
            _ if moved > 0 => {
                op.fruitless = 0;
                Next::Again
            }
            _ => again(op, libc::EIO),
        }
    }

    /// Goes on through the page cache, unless that cannot be done either.
    fn leave_direct(&mut self, token: u32, errno: i32) -> Next {
        let op = self.slots[token as usize].as_ref().expect("done while in flight");
        let (slot, action) = (op.file, op.kind.action());
        if self.file(slot).direct {
            if self.backend.clear_direct(slot).is_err() {
                return Next::Failed(errno);
            }
            self.file_mut(slot).direct = false;
            let action = if action == Action::Read { "read" } else { "write" };
            self.refused_direct(action, errno);
        }
        Next::Again
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
            // W2: a flush beside the one that failed may have been told of success.
            (Ok(_), Some(errno)) if op.kind.flushes() => {
                Err(Error::Poisoned { path: file.path.clone(), errno })
            }
            (result, _) => result,
        };
        self.completed.push_back(op.into_completion(result));
    }
}

/// Another try, unless too many brought nothing.
fn again(op: &mut InFlight, errno: i32) -> Next {
    op.fruitless += 1;
    if op.fruitless > FRUITLESS_TRIES_MAX { Next::Failed(errno) } else { Next::Again }
}
