//! Finds the pages of a mapping that were stored to since the last examination. Either the kernel
//! notes stores, or the content of the pages is compared.
//!
//! Since Linux 6.7, `userfaultfd(2)` notes the first store to each page of any mapping without
//! stopping the program (`UFFD_FEATURE_WP_ASYNC`). `PAGEMAP_SCAN` reports these pages and resets
//! the notes. The program itself must create the descriptor, which is closed there once it has been
//! copied. Soft-dirty bits would slow down all of the program's memory, and `/proc/kpageflags`
//! needs root.

use super::descriptors::copied;
use super::ptrace;
use crate::front::status;
use libc::{Ioctl, pid_t};
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Read, Seek, SeekFrom};
use std::ops::Range;
use std::os::fd::AsRawFd;
use xxhash_rust::xxh3::xxh3_128;

/// The unit in which stores are observed.
pub const PAGE_BYTES: u64 = 4096;

// `linux/userfaultfd.h`.
const UFFD_USER_MODE_ONLY: u64 = 1;
const UFFD_API: u64 = 0xaa;
const UFFD_FEATURE_WP_ASYNC: u64 = 1 << 15;
const UFFDIO_REGISTER_MODE_WP: u64 = 1 << 1;
const UFFDIO_WRITEPROTECT_MODE_WP: u64 = 1;
const UFFDIO_API: Ioctl = 0xc018_aa3f;
const UFFDIO_REGISTER: Ioctl = 0xc020_aa00;
const UFFDIO_WRITEPROTECT: Ioctl = 0xc018_aa06;
// `linux/fs.h`.
const PAGEMAP_SCAN: Ioctl = 0xc060_6610;
const PM_SCAN_WP_MATCHING: u64 = 1;
const PM_SCAN_CHECK_WPASYNC: u64 = 1 << 1;
const PAGE_IS_WRITTEN: u64 = 1 << 1;
const PAGE_IS_PRESENT: u64 = 1 << 3;
const PAGE_IS_SWAPPED: u64 = 1 << 4;

/// A process in whose memory the kernel notes stores.
#[derive(Debug)]
pub struct Noted {
    faults: File,
    pages: File,
    /// Whether the kernel's fast walk can be used. That walk reports each page without a mark, so
    /// it must be able to find the marks of pages that are not present. This is tested on new
    /// memory, which has no stores yet.
    is_short: bool,
}

impl Noted {
    /// Begins to note stores of a process. Its stopped `task` creates the descriptor.
    ///
    /// # Errors
    ///
    /// If the kernel is too old or does not permit it, or if the program has its own seccomp
    /// filters, which may kill it for an unexpected call.
    pub fn begin(process: pid_t, task: pid_t) -> io::Result<Noted> {
        let filters = |of: pid_t| status(of, "Seccomp_filters:").unwrap_or(0);
        if filters(process) > filters(std::process::id() as pid_t) + 1 {
            return Err(ErrorKind::PermissionDenied.into());
        }
        let flags = libc::O_CLOEXEC as u64 | UFFD_USER_MODE_ONLY;
        let number = ptrace::call(task, libc::SYS_userfaultfd, flags)?;
        let taken = copied(process, number as i32);
        ptrace::call(task, libc::SYS_close, number)?;
        let faults = taken?;
        control(&faults, UFFDIO_API, &mut [UFFD_API, UFFD_FEATURE_WP_ASYNC, 0])?;
        let pages = File::open(format!("/proc/{process}/pagemap"))?;
        Ok(Noted { faults, pages, is_short: true })
    }

    /// Begins to note stores to this memory.
    pub fn add(&mut self, memory: &Range<u64>) -> io::Result<()> {
        let (start, count) = (memory.start, memory.end - memory.start);
        let mode = UFFDIO_REGISTER_MODE_WP;
        control(&self.faults, UFFDIO_REGISTER, &mut [start, count, mode, 0])?;
        let mode = UFFDIO_WRITEPROTECT_MODE_WP;
        control(&self.faults, UFFDIO_WRITEPROTECT, &mut [start, count, mode])?;
        self.is_short &= self.stored(memory)?.is_empty();
        Ok(())
    }

    /// Returns the pages that were stored to since the last examination.
    pub fn stored(&self, memory: &Range<u64>) -> io::Result<Vec<Range<u64>>> {
        const MAPPED: u64 = PAGE_IS_PRESENT | PAGE_IS_SWAPPED;
        // Each page had a mark. If memory runs short, the kernel unmaps a page with stores and
        // leaves no mark.
        let more = if self.is_short { 0 } else { PAGE_IS_PRESENT };
        let mut stored = self.scan(memory, [0, PAGE_IS_WRITTEN, PAGE_IS_WRITTEN | more])?;
        if !self.is_short {
            stored.extend(self.scan(memory, [MAPPED, MAPPED, MAPPED])?);
        }
        Ok(stored)
    }

    /// Returns the pages that have all of the `all` categories, and none of the `inverted` ones.
    /// The `told` categories select the kernel's walk.
    fn scan(
        &self,
        memory: &Range<u64>,
        [inverted, all, told]: [u64; 3],
    ) -> io::Result<Vec<Range<u64>>> {
        const FLAGS: u64 = PM_SCAN_WP_MATCHING | PM_SCAN_CHECK_WPASYNC;
        /// The number of fields of `struct pm_scan_arg`, and the index of the one that reports
        /// where the walk ended.
        const FIELDS: usize = 12;
        const WALK_END: usize = 4;
        let mut regions = [[0; 3]; 256];
        let (mut found, mut from) = (Vec::new(), memory.start);
        while from < memory.end {
            let (place, count) = (regions.as_mut_ptr() as u64, regions.len() as u64);
            let bytes = (FIELDS * size_of::<u64>()) as u64;
            let mut arguments: [u64; FIELDS] =
                [bytes, FLAGS, from, memory.end, 0, place, count, 0, inverted, all, 0, told];
            let count = control(&self.pages, PAGEMAP_SCAN, &mut arguments)?;
            found.extend(regions[..count].iter().map(|[start, end, _]| *start..*end));
            from = arguments[WALK_END];
        }
        Ok(found)
    }
}

/// Calls `ioctl` with a structure that consists of these numbers.
fn control(of: &impl AsRawFd, what: Ioctl, arguments: &mut [u64]) -> io::Result<usize> {
    // SAFETY: the structure of each call here is as long as its numbers. What a structure points
    // to is as long as it says, and can be written.
    let result = unsafe { libc::ioctl(of.as_raw_fd(), what, arguments.as_mut_ptr()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as usize) }
}

/// The checksums of a file's pages, read through the file. They are 128 bits long because the
/// stored data is not trusted.
#[derive(Debug, Default)]
pub struct Compared(HashMap<u64, u128>);

impl Compared {
    /// Returns the pages of a file that have changed since the last examination.
    pub fn changed(&mut self, mut file: &File, bytes: &Range<u64>) -> io::Result<Vec<Range<u64>>> {
        file.seek(SeekFrom::Start(bytes.start))?;
        let mut rest = BufReader::with_capacity(1 << 20, file.take(bytes.end - bytes.start));
        let (mut page, mut changed) = (Vec::new(), Vec::new());
        for at in (bytes.start..bytes.end).step_by(PAGE_BYTES as usize) {
            page.clear();
            if rest.by_ref().take(PAGE_BYTES).read_to_end(&mut page)? == 0 {
                break;
            }
            let sum = xxh3_128(&page);
            if self.0.insert(at / PAGE_BYTES, sum) != Some(sum) {
                changed.push(at..at + PAGE_BYTES);
            }
        }
        Ok(changed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    #[test]
    fn a_comparison_finds_each_page_that_differs_once_also_behind_the_former_end() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(3 << 20).unwrap();
        let all = PAGE_BYTES..u64::MAX / 2;
        let mut compared = Compared::default();
        compared.changed(&file, &all).unwrap();
        assert!(compared.changed(&file, &all).unwrap().is_empty());
        let at = |page: u64| page * PAGE_BYTES..(page + 1) * PAGE_BYTES;
        for page in [0, 1, 2, 500, 1000] {
            file.write_all_at(b"x", page * PAGE_BYTES + 7).unwrap();
        }
        let some = at(2).start..at(600).end;
        assert_eq!(compared.changed(&file, &some).unwrap(), [at(2), at(500)]);
        let last = compared.changed(&file, &all).unwrap();
        assert_eq!((last[0].clone(), last.last().unwrap().clone()), (at(1), at(1000)));
        assert_eq!(last.len() as u64, 1 + 1001 - (3 << 20) / PAGE_BYTES);
        assert!(compared.changed(&file, &all).unwrap().is_empty());
    }
}
