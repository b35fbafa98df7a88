//! Reads paths and lists from the memory of a watched task.

use libc::pid_t;
use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::Pid;
use std::ffi::OsString;
use std::io::IoSliceMut;
use std::mem::offset_of;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// `PATH_MAX` of `linux/limits.h`.
const PATH_BYTES_MAX: usize = 4096;
/// `UIO_MAXIOV` of `linux/uio.h`.
const PIECES_MAX: usize = 1024;
/// The maximum number of bytes of a text that are examined.
const TEXT_BYTES_MAX: u64 = 64 << 10;
/// Paths are read page by page, because a read that reaches unmapped memory fails entirely.
const PAGE_BYTES: u64 = 4096;

/// Reads a null-terminated path; `None` if unreadable.
pub fn path(task: pid_t, address: u64) -> Option<PathBuf> {
    let mut bytes = Vec::new();
    while bytes.len() < PATH_BYTES_MAX {
        let from = address.checked_add(bytes.len() as u64)?;
        let to_the_end_of_the_page = PAGE_BYTES - from % PAGE_BYTES;
        let piece = read(task, from, to_the_end_of_the_page as usize)?;
        match piece.iter().position(|byte| *byte == 0) {
            Some(end) => {
                bytes.extend(&piece[..end]);
                return Some(OsString::from_vec(bytes).into());
            }
            None => bytes.extend(piece),
        }
    }
    None
}

pub fn number(task: pid_t, address: u64) -> Option<u64> {
    let bytes = read(task, address, size_of::<u64>())?;
    Some(u64::from_ne_bytes(bytes.try_into().ok()?))
}

/// Reads the word at each address; `None` if one of them is unreadable.
pub fn words(task: pid_t, addresses: impl Iterator<Item = u64>) -> Option<Vec<u64>> {
    let from: Vec<RemoteIoVec> = addresses
        .map(|address| RemoteIoVec { base: address as usize, len: size_of::<u64>() })
        .collect();
    let mut bytes = vec![0; from.len() * size_of::<u64>()];
    let got = process_vm_readv(Pid::from_raw(task), &mut [IoSliceMut::new(&mut bytes)], &from);
    (got == Ok(bytes.len())).then(|| numbers(&bytes))
}

fn numbers(bytes: &[u8]) -> Vec<u64> {
    bytes.as_chunks().0.iter().map(|number| u64::from_ne_bytes(*number)).collect()
}

/// Returns the addresses and lengths in a list of `struct iovec`; `None` if it is unreadable or too
/// long.
pub fn pieces(task: pid_t, address: u64, count: u64) -> Option<Vec<(u64, u64)>> {
    let count = usize::try_from(count).ok().filter(|count| *count <= PIECES_MAX)?;
    let list = numbers(&read(task, address, count * size_of::<libc::iovec>())?);
    Some(list.chunks_exact(2).map(|piece| (piece[0], piece[1])).collect())
}

/// Returns the pieces of memory that a `struct msghdr` refers to; `None` if unreadable.
pub fn pieces_of_message(task: pid_t, address: u64) -> Option<Vec<(u64, u64)>> {
    let list = number(task, address + offset_of!(libc::msghdr, msg_iov) as u64)?;
    let count = number(task, address + offset_of!(libc::msghdr, msg_iovlen) as u64)?;
    pieces(task, list, count)
}

/// Returns the beginning of a text; `None` if unreadable.
pub fn text(task: pid_t, address: u64, count: u64) -> Option<Vec<u8>> {
    read(task, address, count.min(TEXT_BYTES_MAX) as usize)
}

/// Returns the beginnings of the pieces, joined; `None` if unreadable.
pub fn texts(task: pid_t, pieces: &[(u64, u64)]) -> Option<Vec<u8>> {
    let mut whole = Vec::new();
    for (address, count) in pieces {
        whole.extend(text(task, *address, *count)?);
    }
    Some(whole)
}

/// Returns the bytes of all pieces, joined; `None` if unreadable.
pub fn all(task: pid_t, pieces: &[(u64, u64)]) -> Option<Vec<u8>> {
    let read = |(address, count): &(u64, u64)| read(task, *address, *count as usize);
    Some(pieces.iter().map(read).collect::<Option<Vec<_>>>()?.concat())
}

/// Returns whether this memory is readable and contains only zeros.
pub fn is_zeros(task: pid_t, address: u64, count: u64) -> bool {
    let is_zero = |from: u64, count: u64| {
        read(task, address + from, count as usize)
            .is_some_and(|bytes| bytes.iter().all(|byte| *byte == 0))
    };
    // Data usually has a nonzero byte near its beginning, so the first read is short.
    let mut pieces = (0..count).step_by(TEXT_BYTES_MAX as usize);
    is_zero(0, count.min(64)) && pieces.all(|from| is_zero(from, TEXT_BYTES_MAX.min(count - from)))
}

/// Returns this memory; `None` if not all of it is readable.
pub fn read(task: pid_t, address: u64, count: usize) -> Option<Vec<u8>> {
    let mut bytes = vec![0; count];
    let from = RemoteIoVec { base: address as usize, len: count };
    let got = process_vm_readv(Pid::from_raw(task), &mut [IoSliceMut::new(&mut bytes)], &[from]);
    (got == Ok(count)).then_some(bytes)
}
