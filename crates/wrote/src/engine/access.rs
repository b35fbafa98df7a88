//! Actions of an engine on files and names, besides the operations that it queues.

use super::backend::OpenedFile;
use super::judge::uninterrupted;
use super::names::{Folder, Located, NameChange};
use super::open_file::{OpenFile, known};
use super::{Engine, Fallback, FileId, FileOptions, Ioengine, Options};
use crate::error::{Action, Error, Tried};
use std::cmp::Reverse;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};

impl Engine {
    /// Opens a file. A block device can only be opened for reading (W7). [`Error::Refused`] if
    /// [`Options::FILES_MAX`] files are open. A refused `O_DIRECT` is a fallback, not an error.
    pub fn open_file(
        &mut self,
        path: impl AsRef<Path>,
        options: &FileOptions,
    ) -> Result<FileId, Error> {
        self.open_path(path.as_ref(), options)
    }

    fn free_slot(&self) -> u32 {
        self.free_files.peek().map_or(self.files.len() as u32, |&Reverse(slot)| slot)
    }

    fn keep(&mut self, slot: u32, file: OpenFile) -> FileId {
        self.opened += 1;
        if slot as usize == self.files.len() {
            self.files.push(None);
        } else {
            self.free_files.pop();
        }
        let generation = file.generation;
        self.files[slot as usize] = Some(file);
        FileId { slot, generation }
    }

    fn open_path(&mut self, path: &Path, options: &FileOptions) -> Result<FileId, Error> {
        self.check_process()?;
        let slot = self.free_slot();
        if slot >= Options::FILES_MAX {
            let max = Options::FILES_MAX;
            let because = format!("the engine has {max} files open, the most: close one before");
            return Err(Error::refused(path, because));
        }
        let mut options = *options;
        if options.direct && self.effective.ioengine == Ioengine::Mmap {
            let because = "mmap: a mapping is of the page cache".to_owned();
            self.effective.fell_back("O_DIRECT", "page cache", because);
            options.direct = false;
        }
        let access = self.backend.files.open(slot, path, &options).tried(path, Action::Open)?;
        let opened = OpenedFile { slot, path, access };
        self.backend.queue.opened(&opened, &mut self.effective);
        if let Some(errno) = access.refused {
            self.refused_direct("open", errno);
        }
        Ok(self.keep(slot, OpenFile::new(path, &options, &access, self.opened + 1)))
    }

    pub(super) fn refused_direct(&mut self, action: &str, errno: i32) {
        let words = io::Error::from_raw_os_error(errno);
        self.effective.fell_back("O_DIRECT", "page cache", format!("{action}: {words}"));
    }

    /// Waits for the file's operations in flight, and closes it. Nothing is flushed.
    pub fn close_file(&mut self, file: FileId) -> Result<(), Error> {
        self.check_process()?;
        self.wait_for_file(file)?;
        self.files[file.slot as usize] = None;
        self.free_files.push(Reverse(file.slot));
        self.backend.queue.closing(file.slot);
        self.backend.files.close(file.slot);
        Ok(())
    }

    /// Makes all files and names on the file's file system durable, once all operations are done.
    /// Reports the errors of all writes there since the file was opened, and an older one that was
    /// not reported before.
    pub(crate) fn sync_file_system(&mut self, file: FileId) -> Result<(), Error> {
        self.drain()?;
        let slot = self.slot(file);
        uninterrupted(|| self.backend.files.sync_file_system(slot))
            .tried(self.path(file), Action::Fsync)
    }

    fn wait_for_file(&mut self, file: FileId) -> Result<(), Error> {
        self.known(file);
        while self.slots.iter().any(|op| op.request.slot == file.slot) {
            self.advance(1)?;
        }
        Ok(())
    }

    /// Returns whether the file's transfers bypass the page cache, as far as known: a file system
    /// may accept `O_DIRECT` at open and refuse the first transfer.
    pub fn is_direct(&self, file: FileId) -> bool {
        self.known(file).direct
    }

    /// Waits for the file's operations in flight, and makes later transfers bypass the page cache
    /// or not.
    pub(crate) fn set_direct(&mut self, file: FileId, direct: bool) -> Result<(), Error> {
        // A direct write whose pages were cached in the meantime makes the next flush fail (EIO).
        self.wait_for_file(file)?;
        let set = self.change_direct(file.slot, direct);
        set.tried(&self.known(file).path, Action::Open)
    }

    /// Sets whether transfers of the file bypass the page cache. Nothing of it is in flight, except
    /// what is to be retried.
    pub(super) fn change_direct(&mut self, slot: u32, direct: bool) -> io::Result<()> {
        self.backend.files.set_direct(slot, direct)?;
        if !direct {
            self.backend.queue.left_direct(slot);
        }
        self.file_mut(slot).direct = direct;
        Ok(())
    }

    /// Returns the required alignment of offsets and lengths: 1 unless the file is direct.
    pub fn align_bytes(&self, file: FileId) -> u32 {
        let file = self.known(file);
        if file.direct { file.align_bytes } else { 1 }
    }

    /// Sets the user's path of the file, for errors.
    pub(crate) fn set_path(&mut self, file: FileId, path: &Path) {
        self.known(file);
        path.clone_into(&mut self.file_mut(file.slot).path);
    }

    pub(crate) fn path(&self, file: FileId) -> &Path {
        &self.known(file).path
    }

    /// Returns the file's length in bytes.
    pub fn file_len(&self, file: FileId) -> Result<u64, Error> {
        self.check_process()?;
        let path = &self.known(file).path;
        self.backend.files.len(file.slot).tried(path, Action::Examine)
    }

    /// Waits for the file's operations in flight, and sets its length: bytes beyond are discarded,
    /// new bytes read as zeros (`ftruncate(2)`). Nothing is flushed. Fails if an earlier flush of
    /// the file failed (W2).
    pub fn truncate(&mut self, file: FileId, len_bytes: u64) -> Result<(), Error> {
        self.check_process()?;
        self.wait_for_file(file)?;
        let open = self.known(file);
        if let Some(poisoned) = open.poisoned() {
            return Err(poisoned);
        }
        let path = open.path.clone();
        let (action, offset) = (Action::Truncate, Some(len_bytes));
        // The kernel's offsets are signed.
        if len_bytes > i64::MAX as u64 {
            return Err(Error::File { path, action, offset, errno: libc::EFBIG });
        }
        uninterrupted(|| self.backend.files.truncate(file.slot, len_bytes))
            .map_err(|error| Error::file(&path, action, offset, &error))?;
        self.backend.queue.truncated(file.slot);
        Ok(())
    }

    /// Drops the file's clean pages from the page cache (`posix_fadvise(2)`), so that later reads,
    /// through any open file, see what the disk has.
    pub(crate) fn drop_clean_pages(&mut self, file: FileId) {
        self.backend.files.drop_clean_pages(file.slot);
    }

    /// Returns whether another program may still see writes to the file: it has a second name, or
    /// is open elsewhere, including in this process. Covers earlier opens by programs on this
    /// system. Fails if the system can't determine that.
    pub(crate) fn is_shared(&self, file: FileId) -> Result<bool, Error> {
        let path = &self.known(file).path;
        self.backend.files.is_shared(file.slot).tried(path, Action::Examine)
    }

    /// Returns the open file, to examine or change its permissions and extents. `None` on a
    /// simulated disk.
    pub fn descriptor(&self, file: FileId) -> Option<BorrowedFd<'_>> {
        self.known(file);
        self.backend.files.descriptor(file.slot)
    }

    pub(super) fn slot(&self, file: FileId) -> u32 {
        self.known(file);
        file.slot
    }

    #[inline]
    fn known(&self, id: FileId) -> &OpenFile {
        known(&self.files, id)
    }

    pub(super) fn file(&self, slot: u32) -> &OpenFile {
        self.files[slot as usize].as_ref().expect("the file is open")
    }

    pub(super) fn file_mut(&mut self, slot: u32) -> &mut OpenFile {
        self.files[slot as usize].as_mut().expect("the file is open")
    }

    /// Resolves paths below the folder's path relative to it, even after renames. Has no effect on
    /// a simulated disk, which has no folders.
    pub(crate) fn enter(&mut self, folder: Folder) {
        self.backend.files.enter(folder);
    }

    /// Opens a folder and enters it. If it can't be read, it is looked up by path each time.
    pub(crate) fn hold_folder(&mut self, folder: &Path) {
        if let Ok(held) = Folder::open(folder) {
            self.enter(held);
        }
    }

    /// Returns whether `path` still refers to the file, whose name may have been removed or reused.
    pub(crate) fn is_named(&self, file: FileId, path: &Path) -> Result<bool, Error> {
        self.check_process()?;
        self.backend.files.is_named(self.slot(file), path).tried(path, Action::Examine)
    }

    /// Finds where a write to the name `path` goes, following symbolic links like `open(2)`, and
    /// what exists there. A missing name is not an error.
    pub(crate) fn locate(&mut self, path: impl AsRef<Path>) -> Result<Located, Error> {
        self.check_process()?;
        let path = path.as_ref();
        uninterrupted(|| self.backend.files.locate(path)).tried(path, Action::Examine)
    }

    /// Renames the file `from` to `to` atomically, within one file system: at every moment `to` is
    /// the old file or the new one (`rename(2)`). With `replace` an existing file is replaced,
    /// otherwise it is an error (W7). Durable once the folder is synced.
    pub fn rename(
        &mut self,
        from: impl AsRef<Path>,
        to: impl AsRef<Path>,
        replace: bool,
    ) -> Result<(), Error> {
        let (from, to) = (from.as_ref(), to.as_ref());
        self.change_name(NameChange::Rename { from, to, replace }, to, Action::Rename)
    }

    /// Removes the name of a file (`unlink(2)`).
    pub fn remove(&mut self, path: impl AsRef<Path>) -> Result<(), Error> {
        let path = path.as_ref();
        self.change_name(NameChange::Remove(path), path, Action::Remove)
    }

    /// Makes the names in the folder durable (`fsync(2)`): files created or renamed there survive
    /// power loss. If the file system has nothing to sync, that is a fallback, not an error. An
    /// error is returned by every later call for this folder (W2).
    pub fn sync_folder(&mut self, folder: impl AsRef<Path>) -> Result<(), Error> {
        let folder = folder.as_ref();
        let poisoned = self.poisoned_folders.iter().find(|(path, _)| path == folder);
        if let Some(&(ref path, errno)) = poisoned {
            return Err(Error::Poisoned { path: path.clone(), errno });
        }
        self.check_process()?;
        self.change_name(NameChange::SyncFolder(folder), folder, Action::SyncFolder)
            .inspect_err(|error| self.poisoned_folders.push((folder.to_owned(), error.errno())))
    }

    /// Creates a folder (`mkdir(2)`); an existing one is not an error. Durable once the parent
    /// folder is synced.
    pub fn make_folder(&mut self, folder: impl AsRef<Path>) -> Result<(), Error> {
        self.check_process()?;
        let folder = folder.as_ref();
        uninterrupted(|| self.backend.files.make_folder(folder)).tried(folder, Action::MakeFolder)
    }

    /// Lists a folder, sorted by name.
    pub fn list(&mut self, folder: impl AsRef<Path>) -> Result<Vec<PathBuf>, Error> {
        self.check_process()?;
        let folder = folder.as_ref();
        uninterrupted(|| self.backend.files.list(folder)).tried(folder, Action::Examine)
    }

    fn change_name(
        &mut self,
        change: NameChange,
        path: &Path,
        action: Action,
    ) -> Result<(), Error> {
        self.check_process()?;
        let fallback =
            uninterrupted(|| self.backend.files.change_name(change)).tried(path, action)?;
        if let Some(Fallback { wanted, got, because }) = fallback {
            self.effective.fell_back(wanted, got, because);
        }
        Ok(())
    }
}
