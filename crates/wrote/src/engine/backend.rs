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
///
/// A way to the kernel holds its [`Files`] and moves bytes; what it does to files and names is
/// here. A disk without files replaces all of that.
pub(super) trait Backend {
    fn files(&self) -> &Files {
        unreachable!("a disk without files uses none")
    }
    fn files_mut(&mut self) -> &mut Files {
        unreachable!("a disk without files uses none")
    }
    /// Called when a file was opened, or became available for requests.
    fn opened(&mut self, _file: &OpenedFile, _effective: &mut Effective) {}
    /// Called when transfers of the file start to go through the page cache.
    fn left_direct(&mut self, _slot: u32) {}
    /// Called when the file's length has changed; nothing of it is in flight.
    fn truncated(&mut self, _slot: u32) {}
    fn closing(&mut self, _slot: u32) {}

    /// Opens `path` as file `slot`. Records each fallback in `effective`.
    fn open(
        &mut self,
        slot: u32,
        path: &Path,
        options: &FileOptions,
        effective: &mut Effective,
    ) -> io::Result<FileAccess> {
        let (file, access) = super::files::open(self.files().place(path), options)?;
        let raw = file.as_raw_fd();
        self.opened(&OpenedFile { slot, file: raw, path, access }, effective);
        self.files_mut().put(slot, HeldFile { raw, own: Some(file) });
        Ok(access)
    }
    /// Returns whether folders can be held open.
    fn has_folders(&self) -> bool {
        true
    }
    /// Resolves paths below the folder's path relative to it.
    fn enter(&mut self, folder: Folder) {
        self.files_mut().within = Some(folder);
    }
    /// Returns whether `path` refers to the file.
    fn is_named(&self, slot: u32, path: &Path) -> io::Result<bool> {
        self.files().place(path).leads_to(self.files().file(slot))
    }
    /// Makes later transfers of the file bypass the page cache or not. Nothing of it is in flight,
    /// except what is to be retried.
    fn set_direct(&mut self, slot: u32, direct: bool) -> io::Result<()> {
        super::files::set_direct(self.files().file(slot), direct)?;
        if !direct {
            self.left_direct(slot);
        }
        Ok(())
    }
    /// Flushes the file system of the file, all files and names, with a single attempt: EINTR is
    /// returned.
    fn sync_file_system(&mut self, slot: u32) -> io::Result<()> {
        super::names::sync_file_system(self.files().file(slot))
    }
    /// Closes the file, which has nothing in flight.
    fn close(&mut self, slot: u32) {
        self.closing(slot);
        self.files_mut().held[slot as usize] = None;
    }
    fn len(&self, slot: u32) -> io::Result<u64> {
        let file = self.files().file(slot);
        let metadata = file.metadata()?;
        if metadata.file_type().is_block_device() {
            return Ok(seek(file, SeekFrom::End(0))?);
        }
        Ok(metadata.len())
    }
    /// Sets the file's length with a single attempt: EINTR is returned.
    fn truncate(&mut self, slot: u32, len_bytes: u64) -> io::Result<()> {
        rustix::fs::ftruncate(self.files().file(slot), len_bytes)?;
        self.truncated(slot);
        Ok(())
    }
    fn drop_clean_pages(&mut self, slot: u32) {
        // Only advice: a refusal changes nothing.
        let _ = fadvise(self.files().file(slot), 0, None, Advice::DontNeed);
    }
    /// Returns whether the file has another name, or is open elsewhere.
    fn is_shared(&self, slot: u32) -> io::Result<bool> {
        super::files::is_shared(self.files().file(slot))
    }
    /// Returns the open file; `None` on a disk without files.
    fn descriptor(&self, slot: u32) -> Option<BorrowedFd<'_>> {
        Some(self.files().file(slot).as_fd())
    }
    /// Finds where a write to the name `path` would go, and what exists there.
    fn locate(&mut self, path: &Path) -> io::Result<Located> {
        super::names::locate(self.files().within.as_ref(), path)
    }
    /// Creates a folder unless it exists, with a single attempt.
    fn make_folder(&mut self, folder: &Path) -> io::Result<()> {
        super::names::make_folder(self.files().within.as_ref(), folder)
    }
    /// Lists a folder, sorted by name.
    fn list(&mut self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        super::names::list(self.files().within.as_ref(), folder)
    }
    /// Changes names with a single attempt: EINTR is returned. Returns a necessary fallback.
    fn change_name(&mut self, change: NameChange) -> io::Result<Option<Fallback>> {
        super::names::change(self.files().within.as_ref(), change)
    }
    /// Pins the pool's pages once instead of for each operation, if the kernel can.
    fn register_buffers(&mut self, _pool: &Pool, _effective: &mut Effective) {}
    /// Creates a file that its owner keeps open available for requests until it is closed here.
    fn adopt(&mut self, file: &OpenedFile, effective: &mut Effective) {
        self.opened(file, effective);
        self.files_mut().put(file.slot, HeldFile { raw: file.file, own: None });
    }
    /// Queues requests. At most `iodepth` are queued or in flight at once.
    fn push(&mut self, requests: Requests);
    /// Submits the queue without waiting; nothing is left to do if [`Backend::push`] submits.
    fn submit(&mut self) -> io::Result<()> {
        Ok(())
    }
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

/// The part of a [`Backend`] with `files` that holds them.
macro_rules! holds_files {
    () => {
        fn files(&self) -> &crate::engine::backend::Files {
            &self.files
        }

        fn files_mut(&mut self) -> &mut crate::engine::backend::Files {
            &mut self.files
        }
    };
}
pub(super) use holds_files;

/// Open files by slot.
#[derive(Default)]
pub(super) struct Files {
    held: Vec<Option<HeldFile>>,
    /// The folder relative to which paths below its own are resolved.
    within: Option<Folder>,
}

struct HeldFile {
    raw: RawFd,
    /// `None` if the owner holds it and lets requests use it.
    own: Option<File>,
}

impl Files {
    fn held(&self, slot: u32) -> &HeldFile {
        self.held[slot as usize].as_ref().expect("the engine closes a file once")
    }

    fn file(&self, slot: u32) -> &File {
        self.held(slot).own.as_ref().expect("only requests use a file of another engine")
    }

    #[inline]
    pub(super) fn raw(&self, slot: u32) -> RawFd {
        self.held(slot).raw
    }

    fn place<'a>(&'a self, path: &'a Path) -> PlaceOfName<'a> {
        PlaceOfName::new(self.within.as_ref(), path)
    }

    fn put(&mut self, slot: u32, file: HeldFile) {
        let slot = slot as usize;
        if self.held.len() <= slot {
            self.held.resize_with(slot + 1, || None);
        }
        self.held[slot] = Some(file);
    }
}
