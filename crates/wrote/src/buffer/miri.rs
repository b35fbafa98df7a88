//! The memory of a pool under Miri, which supports none of the system calls of `mapping`. This file
//! replaces that module.

use rustix::io::Errno;
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;

const PAGE_BYTES: usize = 4096;

pub(super) fn page_size() -> usize {
    PAGE_BYTES
}

pub(super) struct Mapping {
    pub start: NonNull<u8>,
    layout: Layout,
    pub huge: bool,
}

impl Mapping {
    pub(super) fn new(length_bytes: usize) -> Result<Mapping, Errno> {
        let layout = Layout::from_size_align(length_bytes, PAGE_BYTES).map_err(|_| Errno::NOMEM)?;
        // SAFETY: a pool has at least one buffer of a page or more, so the layout is not empty.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or(Errno::NOMEM)?;
        Ok(Mapping { start, layout, huge: false })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: allocated above with this layout; no buffer of the pool is left.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
    }
}
