//! Executes requests as system calls on the calling thread, one at a time.

use super::backend::{Backend, Files, holds_files};
use super::op::OpKind;
use super::request::{Reply, Request};
use super::slots::Requests;
use rustix::fs::{FallocateFlags, fallocate, fdatasync, fsync};
use rustix::io::{Errno, ReadWriteFlags, preadv2, pwritev2};
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{BorrowedFd, RawFd};

/// Executes each request when pushed.
#[derive(Default)]
pub(super) struct Psync {
    done: Vec<Reply>,
    files: Files,
}

impl Backend for Psync {
    holds_files!();

    fn push(&mut self, requests: Requests) {
        for request in requests {
            let file = self.files.raw(request.slot);
            // SAFETY: the engine holds the request's buffer and file until the request is done, and
            // `perform` is over when it returns.
            self.done.push(unsafe { perform(request, file) });
        }
    }

    fn wait(&mut self, _min: usize, done: &mut Vec<Reply>) -> io::Result<()> {
        done.append(&mut self.done);
        Ok(())
    }
}

/// Tries a request once. The result may be short, and EINTR is returned.
///
/// # Safety
///
/// `file` must be open, and for a transfer `request.address` must be valid for `request.len` bytes
/// that no other code uses until this returns.
pub(super) unsafe fn perform(request: &Request, file: RawFd) -> Reply {
    // SAFETY: the caller keeps `file` open until this returns.
    let file = unsafe { BorrowedFd::borrow_raw(file) };
    let Request { token, kind, offset, address, len, rw_flags, .. } = *request;
    let flags = ReadWriteFlags::from_bits_retain(rw_flags.cast_unsigned());
    let moved: Result<usize, Errno> = match kind {
        OpKind::Write | OpKind::DurableWrite => {
            // SAFETY: the caller's promise about `address` and `len`.
            let bytes = unsafe { std::slice::from_raw_parts(address, len as usize) };
            pwritev2(file, &[IoSlice::new(bytes)], offset, flags)
        }
        OpKind::Read => {
            // SAFETY: the caller's promise about `address` and `len`.
            let bytes = unsafe { std::slice::from_raw_parts_mut(address, len as usize) };
            preadv2(file, &mut [IoSliceMut::new(bytes)], offset, flags)
        }
        OpKind::Fdatasync => fdatasync(file).map(|()| 0),
        OpKind::Fsync => fsync(file).map(|()| 0),
        OpKind::Fallocate => fallocate(file, FallocateFlags::empty(), offset, len).map(|()| 0),
        OpKind::Reserve => fallocate(file, FallocateFlags::KEEP_SIZE, offset, len).map(|()| 0),
    };
    Reply::new(token, moved)
}
