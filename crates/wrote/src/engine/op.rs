//! The operations of an engine, their completions, and the requests to the kernel with their
//! replies.

use crate::buffer::Buffer;
use crate::{Action, Error};
use rustix::io::Errno;

/// A file that an engine has opened.
///
/// It belongs to that engine until the file is closed. Using it after that panics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileId {
    pub(super) slot: u32,
    pub(super) generation: u64,
}

/// An operation. Its buffer belongs to the engine until the [`Completion`] returns it (W5).
#[derive(Debug)]
#[non_exhaustive]
pub enum Op {
    /// Writes the whole buffer at `offset`. A completed write survives a process crash, and it also
    /// survives a power loss once a flush covers it. With `durable`, the write completes when its
    /// bytes are on stable storage (`RWF_DSYNC`, `pwritev2(2)`, Linux 4.7), like a write to a file
    /// opened with `O_DSYNC`. If it fails, the file is poisoned, as by a failed flush (W2).
    Write {
        /// The file.
        file: FileId,
        /// The offset in the file.
        offset: u64,
        /// The bytes to write.
        buffer: Buffer,
        /// Whether the write is flushed.
        durable: bool,
    },
    /// Reads into the buffer from `offset` until it is full or the file ends.
    Read {
        /// The file.
        file: FileId,
        /// The offset in the file.
        offset: u64,
        /// The buffer to fill.
        buffer: Buffer,
    },
    /// Flushes the writes that have already *completed* (`fdatasync(2)`). These writes then survive
    /// a power loss, provided that the folder has also been synced (W1). The flush does not cover
    /// operations in flight. A failure poisons the file permanently (W2).
    Fdatasync {
        /// The file.
        file: FileId,
    },
    /// Like [`Op::Fdatasync`], but also flushes all metadata (`fsync(2)`).
    Fsync {
        /// The file.
        file: FileId,
    },
    /// Allocates blocks and extends the file over them: `fallocate(2)` with mode 0.
    Fallocate {
        /// The file.
        file: FileId,
        /// The offset of the first byte.
        offset: u64,
        /// The length to allocate, in bytes.
        len: u64,
    },
    /// Allocates blocks without changing the file's length (`fallocate(2)` with
    /// `FALLOC_FL_KEEP_SIZE`). A truncation frees the blocks beyond the file's end.
    Reserve {
        /// The file.
        file: FileId,
        /// The offset of the first byte.
        offset: u64,
        /// The length to allocate, in bytes.
        len: u64,
    },
}

impl Op {
    pub(super) fn file(&self) -> FileId {
        match self {
            Op::Write { file, .. }
            | Op::Read { file, .. }
            | Op::Fdatasync { file }
            | Op::Fsync { file }
            | Op::Fallocate { file, .. }
            | Op::Reserve { file, .. } => *file,
        }
    }
}

/// The result of an operation.
#[derive(Debug)]
#[non_exhaustive]
pub struct Completion {
    /// The number that was passed when the operation was queued.
    pub user_data: u64,
    /// The number of bytes moved: all of them for a write (W4), up to the file's end for a read, 0
    /// for other operations.
    pub result: Result<usize, Error>,
    /// The bytes read; `None` for other operations, because the buffer of a write returns to its
    /// pool when the write completes.
    pub buffer: Option<Buffer>,
}

/// The kind of a request to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OpKind {
    Read,
    Write,
    DurableWrite,
    Fdatasync,
    Fsync,
    Fallocate,
    Reserve,
}

impl OpKind {
    /// Returns whether success promises durability and failure poisons the file (W2).
    pub(super) fn flushes(self) -> bool {
        matches!(self, OpKind::DurableWrite | OpKind::Fdatasync | OpKind::Fsync)
    }

    pub(super) fn writes(self) -> bool {
        matches!(self, OpKind::Write | OpKind::DurableWrite)
    }

    pub(super) fn transfers(self) -> bool {
        self.writes() || self == OpKind::Read
    }

    pub(super) fn action(self) -> Action {
        match self {
            OpKind::Read => Action::Read,
            OpKind::Write | OpKind::DurableWrite => Action::Write,
            OpKind::Fdatasync => Action::Fdatasync,
            OpKind::Fsync => Action::Fsync,
            OpKind::Fallocate | OpKind::Reserve => Action::Fallocate,
        }
    }
}

/// One attempt at an operation. Its result may be short; the engine then continues with another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    /// The number that the reply repeats.
    pub token: u32,
    pub kind: OpKind,
    /// Whether `address` is in the registered pool.
    pub in_pool: bool,
    /// The `RWF_` flags of a transfer (`pwritev2(2)`).
    pub rw_flags: i32,
    pub slot: u32,
    pub offset: u64,
    /// The address of the bytes to move; dangling if there are none. The bytes stay valid, and no
    /// other code uses them until the request is done (W5), because the engine holds the buffer.
    pub address: *mut u8,
    pub len: u64,
}

/// The result of a request: the number of bytes moved, or a negative error number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reply {
    pub token: u32,
    pub result: i64,
}

impl Reply {
    #[inline]
    pub(super) fn new(token: u32, moved: Result<usize, Errno>) -> Reply {
        let result = match moved {
            Ok(bytes) => bytes as i64,
            Err(errno) => -i64::from(errno.raw_os_error()),
        };
        Reply { token, result }
    }
}
