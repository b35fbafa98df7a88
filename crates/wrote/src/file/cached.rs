//! Determines how much of a file is in the page cache, and reads cached bytes from there, which is
//! faster than reading from the device.

use super::buffer::DiskBuffer;
use rustix::fd::{AsFd, BorrowedFd};
use rustix::io::{pread, retry_on_intr};
use rustix::param::page_size;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU32, Ordering};

/// The number of `cachestat(2)`, which the libc crate lacks. It is the same on all architectures
/// except MIPS, where no call has this number (ENOSYS).
const SYS_CACHESTAT: libc::c_long = 451;

/// The maximum number of consecutive reads without a check. A check costs 0.3 to 1 us, while a 4
/// KiB read, with many in flight, costs 2 us.
const UNASKED_MAX: u32 = 63;

/// A second open file, for reads through the page cache, of a file that is otherwise read directly.
pub(super) struct CachedReads {
    file: File,
    /// The number of reads left until the next check, and the number of reads between the last
    /// check and the next.
    unasked: AtomicU32,
    unasked_next: AtomicU32,
}

impl CachedReads {
    /// Reopens the file; returns `None` if it is not an ordinary file, or can't be reopened by its
    /// descriptor.
    pub(super) fn of(direct: BorrowedFd) -> Option<CachedReads> {
        let file = File::open(format!("/proc/self/fd/{}", direct.as_raw_fd())).ok()?;
        let is_file = file.metadata().is_ok_and(|found| found.is_file());
        let (unasked, unasked_next) = (AtomicU32::new(0), AtomicU32::new(0));
        is_file.then_some(CachedReads { file, unasked, unasked_next })
    }

    /// Returns the bytes if the page cache has all of them and a buffer is free.
    pub(super) fn read(
        &self,
        lease: impl Fn() -> Option<DiskBuffer>,
        offset: u64,
        len: usize,
    ) -> Option<DiskBuffer> {
        if !self.holds(offset, len) {
            return None;
        }
        let mut buffer = lease()?;
        if buffer.capacity() < len {
            buffer = DiskBuffer::copied(vec![0; len]);
        }
        let mut done = 0;
        while done < len {
            // If this read fails, the direct read reports the error.
            let at = offset + done as u64;
            match retry_on_intr(|| pread(&self.file, &mut buffer[done..len], at)).ok()? {
                0 => break,
                found => done += found,
            }
        }
        buffer.set_len(done);
        Some(buffer)
    }

    /// Returns whether the kernel reports the bytes as cached. While they are not, checks less and
    /// less often, and returns `false` in between.
    fn holds(&self, offset: u64, len: usize) -> bool {
        // A race between two threads causes one check more or one fewer.
        let unasked = self.unasked.load(Ordering::Relaxed);
        if unasked > 0 {
            self.unasked.store(unasked - 1, Ordering::Relaxed);
            return false;
        }
        let page = page_size() as u64;
        let start = offset / page * page;
        let Some(end) =
            offset.checked_add(len as u64).and_then(|end| end.checked_next_multiple_of(page))
        else {
            return false;
        };
        let holds = cached_bytes_at(self.file.as_fd(), start, end - start) == Some(end - start);
        let next = match holds {
            true => 0,
            false => (self.unasked_next.load(Ordering::Relaxed) * 2 + 1).min(UNASKED_MAX),
        };
        self.unasked.store(next, Ordering::Relaxed);
        self.unasked_next.store(next, Ordering::Relaxed);
        holds
    }
}

/// Returns how many of the file's first `len` bytes are in the page cache, counted in whole pages
/// but limited to `len`.
///
/// `None` if the kernel does not report it: before Linux 6.5 (`cachestat(2)`, ENOSYS), for a file
/// that this process neither owns nor may write to (EPERM), on hugetlbfs (EOPNOTSUPP), or if a
/// system call filter forbids it.
pub fn cached_bytes(file: BorrowedFd, len: u64) -> Option<u64> {
    cached_bytes_at(file, 0, len)
}

/// Like [`cached_bytes`], for the `len` bytes from `offset`.
pub(crate) fn cached_bytes_at(file: BorrowedFd, offset: u64, len: u64) -> Option<u64> {
    if len == 0 {
        // To the kernel, a length of 0 means up to the end of the file.
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
        // The file is in the build folder, which is usually on a disk.
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
