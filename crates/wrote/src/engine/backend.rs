//! The lower half of an engine, on the kernel or on a simulated disk: files with their names, and a
//! queue of requests.

use super::names::{Folder, Located, NameChange};
use super::op::Reply;
use super::open_file::FileAccess;
use super::slots::Requests;
use super::wait::Wait;
use super::{Effective, Fallback, FileOptions};
use crate::buffer::Pool;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The two parts of a backend, which share only slots and descriptors.
pub(super) struct Backend {
    /// The queue. It is declared, and therefore dropped, first, because it may still refer to the
    /// files.
    pub queue: Box<dyn Queue>,
    pub files: Box<dyn Files>,
}

/// A file that has just been opened.
pub(super) struct OpenedFile<'a> {
    pub slot: u32,
    pub path: &'a Path,
    pub access: FileAccess,
}

/// Opens files, and changes names. Each call makes one attempt, and may return EINTR.
pub(super) trait Files {
    /// Opens `path` as file `slot`.
    fn open(&mut self, slot: u32, path: &Path, options: &FileOptions) -> io::Result<FileAccess>;
    /// Closes the file, which must have nothing in flight.
    fn close(&mut self, slot: u32);
    /// Makes paths below the folder's path resolve relative to the folder.
    fn enter(&mut self, folder: Folder);
    /// Returns the file's length if `path` refers to it, and otherwise `None`.
    fn len_at(&self, slot: u32, path: &Path) -> io::Result<Option<u64>>;
    /// Sets whether later transfers of the file bypass the page cache.
    fn set_direct(&mut self, slot: u32, direct: bool) -> io::Result<()>;
    /// Flushes all files and names of the file system that contains the file.
    fn sync_file_system(&mut self, slot: u32) -> io::Result<()>;
    fn len(&self, slot: u32) -> io::Result<u64>;
    fn truncate(&mut self, slot: u32, len_bytes: u64) -> io::Result<()>;
    /// Writes some of the bytes through the page cache, and returns how many.
    fn write(&mut self, slot: u32, offset: u64, bytes: &[u8]) -> io::Result<usize>;
    fn drop_clean_pages(&mut self, slot: u32);
    /// Returns whether the file has another name, or is also open elsewhere.
    fn is_shared(&self, slot: u32) -> io::Result<bool>;
    /// Returns the open file; `None` on a disk without descriptors.
    fn descriptor(&self, slot: u32) -> Option<BorrowedFd<'_>>;
    /// Finds where a write to `path` would go, and what exists there.
    fn locate(&mut self, path: &Path) -> io::Result<Located>;
    /// Creates a folder unless it exists.
    fn make_folder(&mut self, folder: &Path) -> io::Result<()>;
    /// Lists a folder, sorted by name.
    fn list(&mut self, folder: &Path) -> io::Result<Vec<PathBuf>>;
    /// Changes names. Returns the fallback, if one was needed.
    fn change_name(&mut self, change: NameChange) -> io::Result<Option<Fallback>>;
}

/// Executes requests on open files. It does not retry, poison or count.
pub(super) trait Queue {
    /// Called when a file has been opened.
    fn opened(&mut self, _file: &OpenedFile, _effective: &mut Effective) {}
    /// Called when transfers of the file begin to go through the page cache.
    fn left_direct(&mut self, _slot: u32) {}
    /// Called when the file's length has changed. The file has nothing in flight.
    fn truncated(&mut self, _slot: u32) {}
    /// Called before the file is closed.
    fn closing(&mut self, _slot: u32) {}
    /// Returns the current time on the disk's clock, which callers use to measure this disk.
    fn now(&mut self) -> Instant {
        Instant::now()
    }
    /// Pins the pool's pages once instead of for each operation, if the kernel supports that.
    fn register_buffers(&mut self, _pool: &Pool, _effective: &mut Effective) {}
    /// Queues requests. At most `iodepth` are queued or in flight at once.
    fn push(&mut self, requests: Requests);
    /// Submits the queue without waiting. Does nothing if [`Queue::push`] already submits.
    fn submit(&mut self) -> io::Result<()> {
        Ok(())
    }
    /// Submits the queue, waits until at least `min` requests are done, and collects all that are
    /// done.
    fn wait(&mut self, min: usize, done: &mut Vec<Reply>) -> io::Result<()>;
    /// Returns whether replies arrive only during calls of the queue, so that no other thread can
    /// wait for one.
    fn completes_in_calls(&self) -> bool {
        true
    }
    /// Submits the queue, and returns a wait for a reply. Other threads may use the queue during
    /// the wait. By default, no wait is needed, because replies arrive during [`Queue::wait`].
    fn prepare_wait(&mut self) -> io::Result<Wait> {
        Ok(Wait::None)
    }
    /// Ends another thread's wait that [`Queue::prepare_wait`] returned.
    fn interrupt(&mut self) -> io::Result<()> {
        Ok(())
    }
    /// Submits the queue, waits up to `time` for a request to be done, and collects all that are
    /// done. The default does not wait.
    fn wait_within(&mut self, _time: Duration, done: &mut Vec<Reply>) -> io::Result<()> {
        self.wait(0, done)
    }
}
