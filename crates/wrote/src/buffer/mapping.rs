//! The memory of a pool: a private mapping, in huge pages if available. It is a separate file
//! because Miri replaces it with another.

pub(super) use rustix::param::page_size;

use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use std::ptr::NonNull;

/// The usual size of a huge page: 2 MiB on x86-64 and most arm64 systems.
const HUGE_PAGE_BYTES: usize = 2 << 20;

/// A private mapping, zeroed by the kernel.
pub(super) struct Mapping {
    pub start: NonNull<u8>,
    length_bytes: usize,
    /// Whether the memory is in pages that the administrator reserved (`vm.nr_hugepages`).
    pub huge: bool,
}

impl Mapping {
    /// Maps memory in huge pages, which save page-table walks, and page pins when the memory is
    /// registered. Uses reserved huge pages if there are enough, otherwise asks the kernel to use
    /// any that it finds (`madvise(2)`).
    pub(super) fn new(length_bytes: usize) -> Result<Mapping, Errno> {
        if length_bytes >= HUGE_PAGE_BYTES {
            let length_bytes = length_bytes.next_multiple_of(HUGE_PAGE_BYTES);
            let flags = MapFlags::PRIVATE | MapFlags::HUGETLB | MapFlags::HUGE_2MB;
            if let Ok(start) = anonymous(length_bytes, flags) {
                return Ok(Mapping { start, length_bytes, huge: true });
            }
        }
        let start = aligned(length_bytes)?;
        // A kernel without huge pages refuses, which costs only speed.
        // SAFETY: the range is the mapping made above, and the advice changes no contents.
        let _ = unsafe { madvise(start.as_ptr().cast(), length_bytes, Advice::LinuxHugepage) };
        Ok(Mapping { start, length_bytes, huge: false })
    }
}

/// Maps private memory, zeroed by the kernel.
fn anonymous(length_bytes: usize, flags: MapFlags) -> Result<NonNull<u8>, Errno> {
    let access = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: the kernel chooses the place of a new private mapping, which no other code uses.
    let start = unsafe { mmap_anonymous(std::ptr::null_mut(), length_bytes, access, flags)? };
    Ok(NonNull::new(start.cast()).expect("mmap does not return null"))
}

/// Maps memory that ends at a huge page boundary, if it is long enough for a huge page. The start,
/// which does not fill one, is in small pages, so that a caller that uses few buffers does not
/// clear a huge page. Linux 6.18 aligns a mapping in this way only if its length is a multiple of
/// the huge page size. A direct transfer needs a segment for each small page, and a request can
/// have only a few segments (`max_segments` in `/sys/block`): reads of 512 KiB reached 2.4 GB/s
/// into small pages, and 3.3 GB/s into huge ones.
fn aligned(length_bytes: usize) -> Result<NonNull<u8>, Errno> {
    if length_bytes < HUGE_PAGE_BYTES {
        return anonymous(length_bytes, MapFlags::PRIVATE);
    }
    let longer_bytes = length_bytes.checked_add(HUGE_PAGE_BYTES).ok_or(Errno::NOMEM)?;
    let longer = anonymous(longer_bytes, MapFlags::PRIVATE)?;
    // SAFETY: the mapping is longer than that.
    let before_bytes = unsafe { longer.add(length_bytes) }.align_offset(HUGE_PAGE_BYTES);
    // SAFETY: less than a huge page lies before the start, and the rest holds `length_bytes`.
    let start = unsafe { longer.add(before_bytes) };
    let unmap = |start: NonNull<u8>, length_bytes| {
        // SAFETY: the range is in the mapping made above, and outside the part that is kept. If the
        // kernel refuses, the range stays mapped, and uses no memory.
        let _ = unsafe { munmap(start.as_ptr().cast(), length_bytes) };
    };
    if before_bytes > 0 {
        unmap(longer, before_bytes);
    }
    // SAFETY: the mapping made above is longer than that.
    unmap(unsafe { start.add(length_bytes) }, HUGE_PAGE_BYTES - before_bytes);
    Ok(start)
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: this value owns the mapping. Every buffer holds the region that owns it, so none
        // is left, and the engine keeps the buffers of operations in flight (W5).
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.length_bytes) };
    }
}
