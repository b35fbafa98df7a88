//! Buffers of a disk's pool, which any thread may hold, and the bytes read into them.

use crate::buffer::Buffer;
use std::fmt;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut, Range};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The disk to which buffers return.
pub(super) struct Home {
    /// Whether an operation is waiting for a buffer that is held outside the disk.
    pub lacks_buffers: AtomicBool,
    /// The function that is called when a buffer is returned while an operation is waiting for one.
    pub on_return: Box<dyn Fn() + Send + Sync>,
}

/// A page-aligned buffer from a [`Disk`](super::Disk)'s pool, leased for a write or filled by a
/// read, on any thread. Dropping it returns it to the pool and wakes the first waiting caller.
///
/// If a read needed several buffers, its bytes are copied together into separate memory.
///
/// ```
/// # use wrote::engine::Options;
/// # use wrote::{Disk, FileOptions, Ioengine, Sim};
/// # let disk = Disk::simulated(&Sim::new(1), &Options::new(Ioengine::IoUring, 4, 4096))?;
/// # let options = FileOptions::new().create_new(true).write(true);
/// # let file = disk.open_file("/data", &options)?;
/// let mut buffer = disk.lease()?;
/// buffer.fill(1);
/// file.write(buffer, 0)?;
/// let bytes = file.read(10, 100)?;
/// assert_eq!(bytes.len(), 100);
/// let sum: usize = bytes.iter().map(|&byte| usize::from(byte)).sum();
/// # assert_eq!(sum, 100);
/// # Ok::<(), wrote::Error>(())
/// ```
pub struct DiskBuffer(Memory);

enum Memory {
    Leased(Leased),
    /// The bytes of a read that needed several buffers, or of an empty one.
    Copied(Vec<u8>),
}

struct Leased {
    buffer: ManuallyDrop<Buffer>,
    home: Arc<Home>,
    /// The number of bytes that precede the requested ones, and were read only because of
    /// alignment.
    skip: usize,
}

// SAFETY: `new` accepts only buffers of a pool for several threads, whose counts have a lock or are
// atomic. This value is the only owner of the memory.
unsafe impl Send for Leased {}
// SAFETY: as above; a shared reference gives access only to reads and numbers.
unsafe impl Sync for Leased {}

impl DiskBuffer {
    pub(super) fn new(buffer: Buffer, home: Arc<Home>) -> DiskBuffer {
        assert!(buffer.is_shared(), "only a pool for several threads lends to several threads");
        DiskBuffer(Memory::Leased(Leased { buffer: ManuallyDrop::new(buffer), home, skip: 0 }))
    }

    pub(super) fn copied(bytes: Vec<u8>) -> DiskBuffer {
        DiskBuffer(Memory::Copied(bytes))
    }

    /// Keeps only the bytes of this range.
    pub(super) fn cut(&mut self, range: Range<usize>) {
        self.set_len(range.end);
        match &mut self.0 {
            Memory::Leased(leased) => leased.skip += range.start,
            Memory::Copied(bytes) => _ = bytes.drain(..range.start),
        }
    }

    /// Creates a buffer that belongs to no disk.
    #[cfg(test)]
    pub(super) fn alone(buffer: Buffer) -> DiskBuffer {
        let home = Home { lacks_buffers: AtomicBool::new(false), on_return: Box::new(|| {}) };
        DiskBuffer::new(buffer, Arc::new(home))
    }

    /// Returns the pool's buffer, for an operation; `None` if the bytes are not in one.
    pub(super) fn into_inner(self) -> Option<Buffer> {
        let Memory::Leased(leased) = self.0 else { return None };
        let mut this = ManuallyDrop::new(leased);
        let skip = this.skip;
        // SAFETY: `this` is neither used nor dropped from here on, so each part is taken once.
        let mut buffer = unsafe {
            std::ptr::drop_in_place(&mut this.home);
            ManuallyDrop::take(&mut this.buffer)
        };
        if skip > 0 {
            // The bytes move to the buffer's aligned start, where a write begins.
            buffer.copy_within(skip.., 0);
            buffer.set_len(buffer.len() - skip);
        }
        Some(buffer)
    }

    /// Sets the length of the used part, which begins at the buffer's start. Panics if `len`
    /// exceeds [`DiskBuffer::capacity`].
    #[inline]
    pub fn set_len(&mut self, len: usize) {
        assert!(len <= self.capacity(), "a buffer is not longer than its capacity");
        match &mut self.0 {
            Memory::Leased(Leased { buffer, skip, .. }) => buffer.set_len(*skip + len),
            Memory::Copied(bytes) => bytes.truncate(len),
        }
    }

    /// Returns the maximum length for [`DiskBuffer::set_len`].
    #[inline]
    pub fn capacity(&self) -> usize {
        match &self.0 {
            Memory::Leased(Leased { buffer, skip, .. }) => buffer.capacity() - skip,
            Memory::Copied(bytes) => bytes.len(),
        }
    }
}

impl Deref for DiskBuffer {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match &self.0 {
            Memory::Leased(Leased { buffer, skip, .. }) => &buffer[*skip..],
            Memory::Copied(bytes) => bytes,
        }
    }
}

impl DerefMut for DiskBuffer {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        match &mut self.0 {
            Memory::Leased(Leased { buffer, skip, .. }) => &mut buffer[*skip..],
            Memory::Copied(bytes) => bytes,
        }
    }
}

/// Lets other types own the buffer, such as `Bytes` of the `bytes` crate (`Bytes::from_owner`).
impl AsRef<[u8]> for DiskBuffer {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl PartialEq<[u8]> for DiskBuffer {
    fn eq(&self, other: &[u8]) -> bool {
        **self == *other
    }
}

impl Drop for Leased {
    fn drop(&mut self) {
        // SAFETY: the buffer is not used again.
        unsafe { ManuallyDrop::drop(&mut self.buffer) };
        // This must follow the return: a caller that has started to wait then either finds the
        // buffer or is noticed by this check.
        if self.home.lacks_buffers.load(Ordering::SeqCst) {
            (self.home.on_return)();
        }
    }
}

impl fmt::Debug for DiskBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DiskBuffer").field("len", &self.len()).finish_non_exhaustive()
    }
}
