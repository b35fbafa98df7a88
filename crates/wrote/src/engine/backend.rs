//! The interface between the engine and the kernel or a simulated disk.

use super::folder::{Folder, PlaceOfName};
use super::names::{Located, NameChange};
use super::request::Reply;
use super::slots::Requests;
use super::wait::Wait;
use super::{Effective, Fallback, FileOptions};
use crate::buffer::Pool;
use rustix::fs::{Advice, SeekFrom, fadvise, seek};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How a file was opened.
#[derive(Clone, Copy, Debug)]
pub(super) struct FileAccess {
    pub direct: bool,
    /// The error number of a refused `O_DIRECT`.
    pub refused: Option<i32>,
    /// Offset and length of a direct transfer must be multiples of this.
    pub align_bytes: u32,
}

pub(super) struct OpenedFile<'a> {
    pub slot: u32,
    pub file: RawFd,
    pub path: &'a Path,
    pub access: FileAccess,
}

/// Executes operations. It does not retry, poison or count.
pub(super) trait Backend {
    /// Opens `path` as file `slot`. Records each fallback in `effective`.
    fn open(
        &mut self,
        slot: u32,
        path: &Path,
        options: &FileOptions,
        effective: &mut Effective,
    ) -> io::Result<FileAccess>;
    /// Returns whether folders can be held open.
    fn has_folders(&self) -> bool {
        false
    }
    /// Resolves paths below the folder's path relative to it. Ignored by a disk without folders.
    fn enter(&mut self, _folder: Folder) {}
    /// Returns whether `path` refers to the file.
    fn is_named(&self, slot: u32, path: &Path) -> io::Result<bool>;
    /// Makes later transfers of the file bypass the page cache or not. Nothing of it is in flight,
    /// except what is to be retried.
    fn set_direct(&mut self, slot: u32, direct: bool) -> io::Result<()>;
    /// Closes the file, which has nothing in flight.
    fn close(&mut self, slot: u32);
    fn len(&self, slot: u32) -> io::Result<u64>;
    /// Sets the file's length with a single attempt: EINTR is returned.
    fn truncate(&mut self, slot: u32, len_bytes: u64) -> io::Result<()>;
    fn drop_clean_pages(&mut self, slot: u32);
    /// Returns whether the file has another name, or is open elsewhere.
    fn is_shared(&self, slot: u32) -> io::Result<bool>;
    /// Returns the open file; `None` on a simulated disk.
    fn descriptor(&self, slot: u32) -> Option<BorrowedFd<'_>>;
    /// Finds where a write to the name `path` would go, and what exists there.
    fn locate(&mut self, path: &Path) -> io::Result<Located>;
    /// Creates a folder unless it exists, with a single attempt.
    fn make_folder(&mut self, folder: &Path) -> io::Result<()>;
    /// Lists a folder, sorted by name.
    fn list(&mut self, folder: &Path) -> io::Result<Vec<PathBuf>>;
    /// Changes names with a single attempt: EINTR is returned. Returns a necessary fallback.
    fn change_name(&mut self, change: NameChange) -> io::Result<Option<Fallback>>;
    /// Pins the pool's pages once instead of for each operation, if the kernel can.
    fn register_buffers(&mut self, _pool: &Pool, _effective: &mut Effective) {}
    /// Creates a file that its owner keeps open available for requests until it is closed here.
    fn adopt(&mut self, _file: &OpenedFile, _effective: &mut Effective) {
        unreachable!("a simulated disk has no descriptors");
    }
    /// Queues requests. At most `iodepth` are queued or in flight at once.
    fn push(&mut self, requests: Requests);
    /// Submits the queue without waiting.
    fn submit(&mut self) -> io::Result<()>;
    /// Submits the queue, waits until `min` requests are done, and collects all that are done.
    fn wait(&mut self, min: usize, done: &mut Vec<Reply>) -> io::Result<()>;
    /// Submits the queue, and returns a wait for a reply during which other threads may use the
    /// backend. By default none is needed, because replies arrive inside [`Backend::wait`].
    fn prepare_wait(&mut self) -> io::Result<Wait> {
        Ok(Wait::None)
    }
    /// Ends such a wait from another thread.
    fn interrupt(&mut self) -> io::Result<()> {
        Ok(())
    }
    /// Submits the queue, waits up to `time` for a request to be done, and collects all that are
    /// done. By default it does not wait.
    fn wait_within(&mut self, _time: Duration, done: &mut Vec<Reply>) -> io::Result<()> {
        self.wait(0, done)
    }
}

/// A way to the kernel: moves bytes of files opened by [`Kernel`]. [`Backend`] documents methods
/// without a comment.
pub(super) trait Transfer {
    fn opened(&mut self, _file: &OpenedFile, _effective: &mut Effective) {}
    /// Called when transfers of the file start to go through the page cache.
    fn left_direct(&mut self, _slot: u32) {}
    /// Called when the file's length has changed; nothing of it is in flight.
    fn truncated(&mut self, _slot: u32) {}
    fn closing(&mut self, _slot: u32) {}
    fn register_buffers(&mut self, _pool: &Pool, _effective: &mut Effective) {}
    fn push(&mut self, requests: Requests, files: &Files);
    /// Like [`Backend::submit`]; a no-op if [`Transfer::push`] submits.
    fn submit(&mut self) -> io::Result<()> {
        Ok(())
    }
    fn wait(&mut self, min: usize, done: &mut Vec<Reply>) -> io::Result<()>;
    fn wait_within(&mut self, _time: Duration, done: &mut Vec<Reply>) -> io::Result<()> {
        self.wait(0, done)
    }
    fn prepare_wait(&mut self) -> io::Result<Wait> {
        Ok(Wait::None)
    }
    fn interrupt(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Open files by slot.
#[derive(Default)]
pub(super) struct Files(Vec<Option<HeldFile>>);

struct HeldFile {
    raw: RawFd,
    /// `None` if the owner holds it and lets requests use it.
    own: Option<File>,
}

impl Files {
    fn held(&self, slot: u32) -> &HeldFile {
        self.0[slot as usize].as_ref().expect("the engine closes a file once")
    }

    fn file(&self, slot: u32) -> &File {
        self.held(slot).own.as_ref().expect("only requests use a file of another engine")
    }

    #[inline]
    pub(super) fn raw(&self, slot: u32) -> RawFd {
        self.held(slot).raw
    }

    fn put(&mut self, slot: u32, file: HeldFile) {
        let slot = slot as usize;
        if self.0.len() <= slot {
            self.0.resize_with(slot + 1, || None);
        }
        self.0[slot] = Some(file);
    }
}

/// Real files, and one way to the kernel.
pub(super) struct Kernel<T> {
    transfer: T,
    files: Files,
    /// The folder relative to which paths below its own are resolved.
    within: Option<Folder>,
}

impl<T: Transfer> Kernel<T> {
    pub(super) fn new(transfer: T) -> Kernel<T> {
        Kernel { transfer, files: Files::default(), within: None }
    }

    fn file(&self, slot: u32) -> &File {
        self.files.file(slot)
    }
}

impl<T: Transfer> Backend for Kernel<T> {
    fn open(
        &mut self,
        slot: u32,
        path: &Path,
        options: &FileOptions,
        effective: &mut Effective,
    ) -> io::Result<FileAccess> {
        let (file, access) =
            super::files::open(PlaceOfName::new(self.within.as_ref(), path), options)?;
        let opened = OpenedFile { slot, file: file.as_raw_fd(), path, access };
        self.transfer.opened(&opened, effective);
        self.files.put(slot, HeldFile { raw: file.as_raw_fd(), own: Some(file) });
        Ok(access)
    }

    fn has_folders(&self) -> bool {
        true
    }

    fn enter(&mut self, folder: Folder) {
        self.within = Some(folder);
    }

    fn is_named(&self, slot: u32, path: &Path) -> io::Result<bool> {
        PlaceOfName::new(self.within.as_ref(), path).leads_to(self.file(slot))
    }

    fn adopt(&mut self, file: &OpenedFile, effective: &mut Effective) {
        self.transfer.opened(file, effective);
        self.files.put(file.slot, HeldFile { raw: file.file, own: None });
    }

    fn set_direct(&mut self, slot: u32, direct: bool) -> io::Result<()> {
        super::files::set_direct(self.file(slot), direct)?;
        if !direct {
            self.transfer.left_direct(slot);
        }
        Ok(())
    }

    fn close(&mut self, slot: u32) {
        self.transfer.closing(slot);
        self.files.0[slot as usize] = None;
    }

    fn len(&self, slot: u32) -> io::Result<u64> {
        let file = self.file(slot);
        let metadata = file.metadata()?;
        if metadata.file_type().is_block_device() {
            return Ok(seek(file, SeekFrom::End(0))?);
        }
        Ok(metadata.len())
    }

    fn truncate(&mut self, slot: u32, len_bytes: u64) -> io::Result<()> {
        rustix::fs::ftruncate(self.file(slot), len_bytes)?;
        self.transfer.truncated(slot);
        Ok(())
    }

    fn drop_clean_pages(&mut self, slot: u32) {
        // Only advice: a refusal changes nothing.
        let _ = fadvise(self.file(slot), 0, None, Advice::DontNeed);
    }

    fn is_shared(&self, slot: u32) -> io::Result<bool> {
        super::files::is_shared(self.file(slot))
    }

    fn descriptor(&self, slot: u32) -> Option<BorrowedFd<'_>> {
        Some(self.file(slot).as_fd())
    }

    fn locate(&mut self, path: &Path) -> io::Result<Located> {
        super::names::locate(self.within.as_ref(), path)
    }

    fn make_folder(&mut self, folder: &Path) -> io::Result<()> {
        super::names::make_folder(self.within.as_ref(), folder)
    }

    fn list(&mut self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        super::names::list(self.within.as_ref(), folder)
    }

    fn change_name(&mut self, change: NameChange) -> io::Result<Option<Fallback>> {
        super::names::change(self.within.as_ref(), change)
    }

    fn register_buffers(&mut self, pool: &Pool, effective: &mut Effective) {
        self.transfer.register_buffers(pool, effective);
    }

    fn push(&mut self, requests: Requests) {
        self.transfer.push(requests, &self.files);
    }

    fn submit(&mut self) -> io::Result<()> {
        self.transfer.submit()
    }

    fn wait(&mut self, min: usize, done: &mut Vec<Reply>) -> io::Result<()> {
        self.transfer.wait(min, done)
    }

    fn prepare_wait(&mut self) -> io::Result<Wait> {
        self.transfer.prepare_wait()
    }

    fn interrupt(&mut self) -> io::Result<()> {
        self.transfer.interrupt()
    }

    fn wait_within(&mut self, time: Duration, done: &mut Vec<Reply>) -> io::Result<()> {
        self.transfer.wait_within(time, done)
    }
}
