//! How much of a file the page cache holds.

use rustix::fd::{AsRawFd, BorrowedFd};
use rustix::param::page_size;

/// The number of `cachestat(2)`, which the libc crate lacks. It is the same on all architectures
/// except MIPS, which has no call of this number (ENOSYS).
const SYS_CACHESTAT: libc::c_long = 451;

/// Returns how many of the file's first `len` bytes are in the page cache, in whole pages and at
/// most `len`.
///
/// `None` if the kernel does not report it: before Linux 6.5 (`cachestat(2)`, ENOSYS), for a file
/// that this process neither owns nor may write to (EPERM), on hugetlbfs (EOPNOTSUPP), or under a
/// system call filter.
pub fn cached_bytes(file: BorrowedFd, len: u64) -> Option<u64> {
    cached_bytes_at(file, 0, len)
}

/// Like [`cached_bytes`], for the `len` bytes from `offset`.
pub(crate) fn cached_bytes_at(file: BorrowedFd, offset: u64, len: u64) -> Option<u64> {
    if len == 0 {
        // For the kernel, length 0 means up to the end of the file.
        return Some(0);
    }
    // `struct cachestat_range` (`linux/mman.h`): offset and length.
    let range = [offset, len];
    // `struct cachestat`, in pages: cached, dirty, in writeback, evicted, recently evicted.
    let mut pages = [0_u64; 5];
    let flags: libc::c_uint = 0;
    // SAFETY: the call reads `range` and fills `pages`. Both have the kernel's layout and live
    // until it returns; `file` is open while it is borrowed.
    let result = unsafe {
        libc::syscall(SYS_CACHESTAT, file.as_raw_fd(), &raw const range, &raw mut pages, flags)
    };
    (result == 0).then(|| pages[0].saturating_mul(page_size() as u64).min(len))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fd::AsFd;
    use rustix::fs::{Advice, fadvise};
    use std::io::Write;

    const LEN_BYTES: usize = 1_000_000;

    #[test]
    fn written_bytes_are_cached_until_they_are_dropped() {
        let test = "written_bytes_are_cached_until_they_are_dropped";
        // In the build folder, which is usually on a disk.
        let program = std::env::current_exe().unwrap();
        let mut file = tempfile::tempfile_in(program.parent().unwrap()).unwrap();
        file.write_all(&[7; LEN_BYTES]).unwrap();
        let cached = |len| cached_bytes(file.as_fd(), len);
        let Some(all) = cached(LEN_BYTES as u64) else {
            return fixtures::skip(test, "the kernel does not say what is cached");
        };
        assert_eq!(all, LEN_BYTES as u64);
        assert_eq!(cached(0), Some(0));
        assert_eq!(cached(1), Some(1));
        assert_eq!(cached_bytes_at(file.as_fd(), 65_536, 4096), Some(4096));
        assert_eq!(cached_bytes_at(file.as_fd(), 1 << 30, 4096), Some(0));
        assert_eq!(cached(u64::MAX / 2), Some(LEN_BYTES.next_multiple_of(page_size()) as u64));
        file.sync_all().unwrap();
        fadvise(&file, 0, None, Advice::DontNeed).unwrap();
        let left = cached(LEN_BYTES as u64).unwrap();
        assert!(left < LEN_BYTES as u64, "{left}");
    }
}
