//! An engine's memory: one aligned region, leased in buffers of equal size.

use crate::Error;
use crate::error::errno_of;
use crate::fork::Process;
use mapping::{Mapping, page_size};
use std::cell::Cell;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering, fence};
use std::sync::{Mutex, MutexGuard, PoisonError};

#[cfg_attr(miri, path = "buffer/miri.rs")]
mod mapping;

/// A page-aligned memory region, leased in buffers of equal size.
///
/// The region is mapped as one piece, so that a single registration with a ring covers it. Clones
/// share the region.
#[derive(Clone)]
pub(crate) struct Pool(RegionHandle);

struct Region {
    mapping: Mapping,
    /// The distance between the starts of neighbouring buffers: a buffer's size rounded up to whole
    /// pages.
    stride_bytes: usize,
    buffer_bytes: usize,
    count: u32,
    free: Free,
    handles: AtomicUsize,
    /// The lock of `free` if several threads use the region; `None` if only one thread does.
    lock: Option<Mutex<()>>,
    process: Process,
}

impl Region {
    /// Like [`Free::pop`], but takes the lock.
    #[cold]
    fn pop(&self) -> Option<u32> {
        let _guard = self.guard();
        self.free.pop()
    }

    /// Like [`Free::push`], but takes the lock.
    #[cold]
    fn push(&self, index: u32) {
        let _guard = self.guard();
        self.free.push(index);
    }

    /// Like `Free::count`, but takes the lock.
    #[cold]
    fn count_free(&self) -> u32 {
        let _guard = self.guard();
        self.free.count.get()
    }

    fn guard(&self) -> Option<MutexGuard<'_, ()>> {
        self.lock.as_ref().map(|lock| lock.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A counted reference to a region. Its pools and leased buffers each hold one.
///
/// It acts like an `Rc` if one thread uses the region, and like an `Arc` if several do.
struct RegionHandle(NonNull<Region>);

impl RegionHandle {
    fn new(region: Region) -> RegionHandle {
        RegionHandle(NonNull::from(Box::leak(Box::new(region))))
    }
}

impl Deref for RegionHandle {
    type Target = Region;

    #[inline]
    fn deref(&self) -> &Region {
        // SAFETY: the region lives until its last handle is dropped.
        unsafe { self.0.as_ref() }
    }
}

impl Clone for RegionHandle {
    #[inline]
    fn clone(&self) -> RegionHandle {
        if self.lock.is_some() {
            self.handles.fetch_add(1, Ordering::Relaxed);
        } else {
            self.handles.store(self.handles.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        }
        RegionHandle(self.0)
    }
}

impl Drop for RegionHandle {
    #[inline]
    fn drop(&mut self) {
        let left = if self.lock.is_some() {
            self.handles.fetch_sub(1, Ordering::Release) - 1
        } else {
            let left = self.handles.load(Ordering::Relaxed) - 1;
            self.handles.store(left, Ordering::Relaxed);
            left
        };
        if left == 0 {
            // The fence orders all uses through other handles before the drop.
            fence(Ordering::Acquire);
            // SAFETY: this was the last handle, and `new` created the region as a box.
            drop(unsafe { Box::from_raw(self.0.as_ptr()) });
        }
    }
}

/// A stack of the indices of free buffers, with the most recently returned one on top.
struct Free {
    stack: Box<[Cell<u32>]>,
    count: Cell<u32>,
}

impl Free {
    fn all(count: u32) -> Free {
        Free { stack: (0..count).rev().map(Cell::new).collect(), count: Cell::new(count) }
    }

    #[inline]
    fn pop(&self) -> Option<u32> {
        let left = self.count.get().checked_sub(1)?;
        self.count.set(left);
        Some(self.stack[left as usize].get())
    }

    #[inline]
    fn push(&self, index: u32) {
        let count = self.count.get();
        self.stack[count as usize].set(index);
        self.count.set(count + 1);
    }
}

impl Pool {
    /// Maps `count` zeroed buffers of `buffer_bytes` each. Fails with [`Error::Engine`] if the
    /// memory is unavailable.
    pub fn new(count: u32, buffer_bytes: usize) -> Result<Pool, Error> {
        Pool::map(count, buffer_bytes, None)
    }

    /// Like [`Pool::new`], but any thread may use and drop the buffers and handles.
    pub(crate) fn shared(count: u32, buffer_bytes: usize) -> Result<Pool, Error> {
        Pool::map(count, buffer_bytes, Some(Mutex::new(())))
    }

    fn map(count: u32, buffer_bytes: usize, lock: Option<Mutex<()>>) -> Result<Pool, Error> {
        let count = count.max(1);
        let buffer_bytes = buffer_bytes.max(1);
        let refused = |errno| Error::Engine { what: "mapping the engine's buffers", errno };
        let stride_bytes = buffer_bytes.checked_next_multiple_of(page_size());
        let stride_bytes = stride_bytes.ok_or(refused(libc::ENOMEM))?;
        let length_bytes = stride_bytes.checked_mul(count as usize).ok_or(refused(libc::ENOMEM))?;
        let mapping =
            Mapping::new(length_bytes).map_err(|errno| refused(errno_of(&errno.into())))?;
        let (free, handles) = (Free::all(count), AtomicUsize::new(1));
        let process = Process::this();
        let region =
            Region { mapping, stride_bytes, buffer_bytes, count, free, handles, lock, process };
        Ok(Pool(RegionHandle::new(region)))
    }

    /// Leases a buffer; returns `None` while all are leased. The buffer still has the content of
    /// its previous lease.
    #[inline]
    pub fn lease(&self) -> Option<Buffer> {
        let region = &*self.0;
        let index = if region.lock.is_none() { region.free.pop() } else { region.pop() }?;
        Some(Buffer { region: self.0.clone(), index, len: self.0.buffer_bytes })
    }

    /// Returns the size of a buffer, in bytes.
    pub fn buffer_bytes(&self) -> usize {
        self.0.buffer_bytes
    }

    /// Returns the number of buffers, whether leased or not.
    pub fn count(&self) -> u32 {
        self.0.count
    }

    /// Returns the number of free buffers.
    #[inline]
    pub fn free(&self) -> usize {
        let region = &*self.0;
        let count =
            if region.lock.is_none() { region.free.count.get() } else { region.count_free() };
        count as usize
    }

    /// Returns whether the region is in reserved huge pages (`MAP_HUGETLB`, `mmap(2)`).
    pub fn is_huge(&self) -> bool {
        self.0.mapping.huge
    }

    /// Returns the whole region, for registration with a ring.
    pub(crate) fn region(&self) -> (*mut u8, usize) {
        (self.0.mapping.start.as_ptr(), self.0.stride_bytes * self.0.count as usize)
    }

    /// Keeps the memory mapped forever, because the kernel may still write to it.
    pub(crate) fn leak(&self) {
        std::mem::forget(self.0.clone());
    }

    #[inline]
    pub(crate) fn owns(&self, buffer: &Buffer) -> bool {
        self.0.0 == buffer.region.0
    }

    /// Returns whether several threads may use the pool.
    pub(crate) fn is_shared(&self) -> bool {
        self.0.lock.is_some()
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool")
            .field("count", &self.0.count)
            .field("buffer_bytes", &self.0.buffer_bytes)
            .finish()
    }
}

/// A page-aligned buffer, leased from an [`Engine`](crate::Engine). Dropping it ends the lease.
pub struct Buffer {
    region: RegionHandle,
    index: u32,
    len: usize,
}

impl Buffer {
    /// Sets the length of the used part, which begins at the buffer's start. Panics if `len`
    /// exceeds [`Buffer::capacity`].
    #[inline]
    pub fn set_len(&mut self, len: usize) {
        assert!(len <= self.region.buffer_bytes, "{len} bytes do not fit into the buffer");
        self.len = len;
    }

    /// Returns whether any thread may hold and drop the buffer.
    pub(crate) fn is_shared(&self) -> bool {
        self.region.lock.is_some()
    }

    /// Returns the maximum length for [`Buffer::set_len`].
    #[inline]
    pub fn capacity(&self) -> usize {
        self.region.buffer_bytes
    }

    #[inline]
    pub(crate) fn address(&self) -> *mut u8 {
        let Region { mapping, stride_bytes, count, .. } = &*self.region;
        debug_assert!(self.index < *count);
        // SAFETY: `index` is below `count`, so the result is inside the mapping.
        unsafe { mapping.start.as_ptr().add(self.index as usize * stride_bytes) }
    }
}

impl Deref for Buffer {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: the piece is inside the mapping, initialised (zeroed by the kernel), and leased
        // only to this buffer.
        unsafe { std::slice::from_raw_parts(self.address(), self.len) }
    }
}

impl DerefMut for Buffer {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`, and `&mut self` is the only way to this lease.
        unsafe { std::slice::from_raw_parts_mut(self.address(), self.len) }
    }
}

impl Drop for Buffer {
    #[inline]
    fn drop(&mut self) {
        let region = &*self.region;
        if region.lock.is_none() {
            region.free.push(self.index);
        } else if region.process.is_this() {
            region.push(self.index);
        }
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Buffer").field("index", &self.index).field("len", &self.len).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_buffer_is_aligned_to_a_page_and_disjoint_from_the_others() {
        let pool = Pool::new(4, 5000).unwrap();
        let mut buffers: Vec<Buffer> = std::iter::from_fn(|| pool.lease()).collect();
        assert_eq!(buffers.len(), 4);
        for (value, buffer) in buffers.iter_mut().enumerate() {
            assert_eq!(buffer.as_ptr() as usize % page_size(), 0);
            buffer.fill(value as u8);
        }
        for (value, buffer) in buffers.iter().enumerate() {
            assert!(buffer.len() == 5000 && buffer.iter().all(|&byte| byte == value as u8));
        }
    }

    #[test]
    #[cfg_attr(miri, ignore)] // Miri's memory has small pages only.
    fn a_pool_that_a_huge_page_fits_into_ends_where_one_does() {
        for count in [4, 5, 11] {
            let pool = Pool::new(count, 512 << 10).unwrap();
            let (start, length_bytes) = pool.region();
            assert_eq!((start as usize + length_bytes) % (2 << 20), 0, "{count}");
            // Touches every byte.
            let mut leased: Vec<Buffer> = std::iter::from_fn(|| pool.lease()).collect();
            leased.iter_mut().for_each(|buffer| buffer.fill(1));
            assert!(leased.iter().all(|buffer| buffer.iter().all(|&byte| byte == 1)));
        }
    }

    #[test]
    fn a_dropped_buffer_can_be_leased_again() {
        let pool = Pool::new(1, 512).unwrap();
        let buffer = pool.lease().unwrap();
        assert!(pool.lease().is_none());
        drop(buffer);
        assert_eq!(pool.free(), 1);
        assert!(pool.lease().is_some());
    }

    #[test]
    fn a_buffer_outlives_its_pool() {
        let pool = Pool::new(2, 4096).unwrap();
        let mut buffer = pool.lease().unwrap();
        drop(pool);
        buffer.fill(7);
        assert!(buffer.iter().all(|&byte| byte == 7));
    }

    #[test]
    fn memory_that_is_not_to_be_had_is_an_error() {
        assert!(matches!(Pool::new(u32::MAX, usize::MAX / 2), Err(Error::Engine { .. })));
    }
}
