//! Operations between `queue` and their completion.

use super::op::OpKind;
use super::open_file::OpenFile;
use super::{Completion, Op};
use crate::Error;
use crate::buffer::Buffer;

/// The most that the kernel moves in one call (`read(2)`, `write(2)`), less than 2 GiB.
pub(super) const TRANSFER_BYTES_MAX: u64 = 0x7fff_f000;

pub(super) struct PendingOp {
    user_data: u64,
    pub kind: OpKind,
    pub file: u32,
    pub offset: u64,
    pub len: u64,
    pub buffer: Option<Buffer>,
    /// Bytes moved by all tries so far.
    pub moved: u64,
    /// Tries that moved nothing.
    pub fruitless: u32,
    /// Whether the file was open directly at the last try.
    pub direct: bool,
    pub rw_flags: i32,
}

impl PendingOp {
    #[inline]
    pub(super) fn new(user_data: u64, op: Op) -> PendingOp {
        let file = op.file().slot;
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
        };
        let (moved, fruitless, direct, rw_flags) = (0, 0, false, 0);
        PendingOp { user_data, kind, file, offset, len, buffer, moved, fruitless, direct, rw_flags }
    }

    /// Returns the error of an operation that must not be tried.
    #[inline]
    pub(super) fn refusal(&self, file: &OpenFile) -> Option<Error> {
        let path = || file.path.clone();
        if let Some(errno) = file.poison.filter(|_| self.kind != OpKind::Read) {
            return Some(Error::Poisoned { path: path(), errno });
        }
        let action = self.kind.action();
        // The kernel's offsets are signed.
        if self.offset.checked_add(self.len).is_none_or(|end| end > i64::MAX as u64) {
            let (offset, errno) = (Some(self.offset), libc::EFBIG);
            return Some(Error::File { path: path(), action, offset, errno });
        }
        let align = u64::from(file.align_bytes);
        if self.kind.transfers() && file.direct && !(self.offset | self.len).is_multiple_of(align) {
            let (offset, align_bytes) = (self.offset, file.align_bytes);
            return Some(Error::Alignment { path: path(), action, offset, align_bytes });
        }
        None
    }

    /// Whether both write to one byte of one file.
    pub(super) fn overlaps(&self, other: &PendingOp) -> bool {
        self.kind.writes()
            && other.kind.writes()
            && self.file == other.file
            && self.offset < other.offset + other.len
            && other.offset < self.offset + self.len
    }

    pub(super) fn into_completion(self, result: Result<usize, Error>) -> Completion {
        let buffer = self.buffer.filter(|_| self.kind == OpKind::Read);
        Completion { user_data: self.user_data, result, buffer }
    }
}
