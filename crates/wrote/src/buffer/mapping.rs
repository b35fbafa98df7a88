//! The memory under a pool: a private mapping, in huge pages where there are any.

pub(super) use rustix::param::page_size;

use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use std::ptr::NonNull;

/// The usual huge page: 2 MiB on x86-64 and on most of arm64.
const HUGE_PAGE_BYTES: usize = 2 << 20;

/// A private mapping, zeroed by the kernel.
pub(super) struct Mapping {
    pub start: NonNull<u8>,
    length_bytes: usize,
    /// Whether it lies in pages that the administrator set aside (`vm.nr_hugepages`).
    pub huge: bool,
}

impl Mapping {
    /// Maps memory in huge pages, which save page-table walks, and page pins where the memory is
    /// registered: pages set aside where they suffice, else those that the kernel finds
    /// (`madvise(2)`).
    pub(super) fn new(length_bytes: usize) -> Result<Mapping, Errno> {
        let anonymous = |length_bytes, flags| {
            let access = ProtFlags::READ | ProtFlags::WRITE;
            // SAFETY: the kernel chooses the place of a new private mapping: no other code uses it.
            let start =
                unsafe { mmap_anonymous(std::ptr::null_mut(), length_bytes, access, flags)? };
            Ok(NonNull::new(start.cast()).expect("mmap does not return null"))
        };
        if length_bytes >= HUGE_PAGE_BYTES {
            let length_bytes = length_bytes.next_multiple_of(HUGE_PAGE_BYTES);
            let flags = MapFlags::PRIVATE | MapFlags::HUGETLB | MapFlags::HUGE_2MB;
            if let Ok(start) = anonymous(length_bytes, flags) {
                return Ok(Mapping { start, length_bytes, huge: true });
            }
        }
        let start: NonNull<u8> = anonymous(length_bytes, MapFlags::PRIVATE)?;
        // A kernel without huge pages refuses, which costs only speed.
        // SAFETY: the range is the mapping made above, and the advice changes no contents.
        let _ = unsafe { madvise(start.as_ptr().cast(), length_bytes, Advice::LinuxHugepage) };
        Ok(Mapping { start, length_bytes, huge: false })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own. Every buffer holds the region that owns it, so
        // none is left, and the engine keeps the buffers of operations in flight (W5).
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.length_bytes) };
    }
}
