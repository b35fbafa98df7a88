//! One request as system calls on the calling thread.

use super::backend::{Done, Request};
use super::op::Kind;
use rustix::fs::{FallocateFlags, fallocate, fdatasync, fsync};
use rustix::io::{Errno, ReadWriteFlags, preadv2, pwritev2};
use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{BorrowedFd, RawFd};

/// Tries a request once: the result may be short, and EINTR comes back as it is.
///
/// # Safety
///
/// `file` is open, and for a transfer `request.address` is valid for `request.len` bytes that
/// nobody else uses until this returns.
pub(super) unsafe fn perform(request: &Request, file: RawFd) -> Done {
    // SAFETY: the caller keeps `file` open until this returns.
    let file = unsafe { BorrowedFd::borrow_raw(file) };
    let Request { token, kind, offset, address, len, rw_flags, .. } = *request;
    let flags = ReadWriteFlags::from_bits_retain(rw_flags.cast_unsigned());
    let write = || {
        // SAFETY: the caller's promise about `address` and `len`.
        let bytes = unsafe { std::slice::from_raw_parts(address, len as usize) };
        pwritev2(file, &[IoSlice::new(bytes)], offset, flags)
    };
    let moved: Result<usize, Errno> = match kind {
        Kind::Write | Kind::DurableWrite => write(),
        Kind::Read => {
            // SAFETY: the caller's promise about `address` and `len`.
            let bytes = unsafe { std::slice::from_raw_parts_mut(address, len as usize) };
            preadv2(file, &mut [IoSliceMut::new(bytes)], offset, flags)
        }
        Kind::Fdatasync => fdatasync(file).map(|()| 0),
        Kind::Fsync => fsync(file).map(|()| 0),
        Kind::Fallocate => fallocate(file, FallocateFlags::empty(), offset, len).map(|()| 0),
    };
    let result = match moved {
        Ok(bytes) => bytes as i64,
        Err(errno) => -i64::from(errno.raw_os_error()),
    };
    Done { token, result }
}
