//! One try of an operation, and its result: the types between engine and backends.

use super::op::OpKind;
use rustix::io::Errno;

/// One try of an operation. Its result may be short; the engine then retries.
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
    /// The bytes to move; dangling if there are none. They stay valid, and no other code uses them
    /// until the request is done (W5), because the engine holds the buffer.
    pub address: *mut u8,
    pub len: u64,
}

/// The result of a request: bytes moved, or a negative error number.
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
