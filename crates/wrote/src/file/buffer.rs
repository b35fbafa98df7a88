//! Buffers of a disk's pool, which any thread may hold.

use crate::buffer::Buffer;
use std::fmt;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Where buffers return to.
pub(super) struct Home {
    /// Whether an operation waits for a buffer held outside.
    pub lacks_buffers: AtomicBool,
    /// Called then, once one has returned.
    pub on_return: Box<dyn Fn() + Send + Sync>,
}

/// A leased, page-aligned buffer of a [`Disk`](super::Disk)'s pool, on any thread. Dropping it
/// returns it to the pool and wakes the first waiting caller.
pub struct DiskBuffer {
    buffer: ManuallyDrop<Buffer>,
    home: Arc<Home>,
}

// SAFETY: `new` accepts only buffers of a pool for several threads, whose counts have a lock or are
// atomic. Only this value has the memory.
unsafe impl Send for DiskBuffer {}
// SAFETY: as above; a shared reference gives access only to reads and numbers.
unsafe impl Sync for DiskBuffer {}

impl DiskBuffer {
    pub(super) fn new(buffer: Buffer, home: Arc<Home>) -> DiskBuffer {
        assert!(buffer.is_shared(), "only a pool for several threads lends to several threads");
        DiskBuffer { buffer: ManuallyDrop::new(buffer), home }
    }

    /// Creates a buffer without a disk.
    #[cfg(test)]
    pub(super) fn alone(buffer: Buffer) -> DiskBuffer {
        let home = Home { lacks_buffers: AtomicBool::new(false), on_return: Box::new(|| {}) };
        DiskBuffer::new(buffer, Arc::new(home))
    }

    /// Takes the buffer out, for an operation.
    pub(super) fn into_inner(self) -> Buffer {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: `this` is neither used nor dropped from here on, so each part is taken once.
        unsafe {
            std::ptr::drop_in_place(&mut this.home);
            ManuallyDrop::take(&mut this.buffer)
        }
    }

    /// Sets the used length, from the buffer's start. Panics if `len` exceeds
    /// [`DiskBuffer::capacity`].
    #[inline]
    pub fn set_len(&mut self, len: usize) {
        self.buffer.set_len(len);
    }

    /// Returns the maximum for [`DiskBuffer::set_len`].
    #[inline]
    pub fn capacity(&self) -> usize {
        self.buffer.capacity()
    }
}

impl Deref for DiskBuffer {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.buffer
    }
}

impl DerefMut for DiskBuffer {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.buffer
    }
}

impl Drop for DiskBuffer {
    fn drop(&mut self) {
        // SAFETY: the buffer is not used again.
        unsafe { ManuallyDrop::drop(&mut self.buffer) };
        // After the return: a caller that started to wait before sees the buffer, or is seen here.
        if self.home.lacks_buffers.load(Ordering::SeqCst) {
            (self.home.on_return)();
        }
    }
}

impl fmt::Debug for DiskBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.buffer.fmt(f)
    }
}
