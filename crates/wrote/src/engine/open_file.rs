//! Open files: their state, and the methods of [`Engine`] on them.

use super::backend::{FileAccess, OpenedFile};
use super::judge::uninterrupted;
use super::op::OpKind;
use super::{Engine, FileId, FileOptions, Ioengine, Options};
use crate::error::{Action, Error, Tried};
use std::cmp::Reverse;
use std::io;
use std::os::fd::{BorrowedFd, RawFd};
use std::path::{Path, PathBuf};

pub(super) struct OpenFile {
    pub path: PathBuf,
    /// Whether transfers bypass the page cache, as far as known.
    pub direct: bool,
    /// Whether a direct transfer has succeeded, so that a later EINVAL is not a refusal of
    /// `O_DIRECT`.
    pub direct_proven: bool,
    pub align_bytes: u32,
    /// The `RWF_` flags of its reads and writes (`pwritev2(2)`).
    pub read_flags: i32,
    pub write_flags: i32,
    /// The flag of a durable write: `RWF_DSYNC` or `RWF_SYNC`.
    durable_flag: i32,
    /// The error number of the failed flush (W2).
    pub poison: Option<i32>,
    /// The number of files opened before, which distinguishes files in the same slot.
    generation: u64,
}

impl OpenFile {
    fn new(path: &Path, options: &FileOptions, access: &FileAccess, generation: u64) -> OpenFile {
        let flag = |wanted, flag| if wanted { flag } else { 0 };
        let read_flags = flag(options.dontcache, libc::RWF_DONTCACHE);
        OpenFile {
            path: path.to_owned(),
            direct: access.direct,
            direct_proven: false,
            // A power of two on every device.
            align_bytes: access.align_bytes.next_power_of_two(),
            read_flags,
            write_flags: read_flags | flag(options.atomic, libc::RWF_ATOMIC),
            durable_flag: if options.sync_metadata { libc::RWF_SYNC } else { libc::RWF_DSYNC },
            poison: None,
            generation,
        }
    }

    /// Returns whether an offset or length (or both combined with `|`) is not a multiple of the
    /// alignment, a power of two.
    #[inline]
    pub(super) fn misses(&self, place: u64) -> bool {
        self.direct && place & u64::from(self.align_bytes - 1) != 0
    }

    /// Returns the error of everything forbidden after a failed flush (W2).
    pub(super) fn poisoned(&self) -> Option<Error> {
        self.poison.map(|errno| Error::Poisoned { path: self.path.clone(), errno })
    }

    #[inline]
    pub(super) fn rw_flags(&self, kind: OpKind) -> i32 {
        match kind {
            OpKind::Read => self.read_flags,
            OpKind::Write => self.write_flags,
            OpKind::DurableWrite => self.write_flags | self.durable_flag,
            OpKind::Fdatasync | OpKind::Fsync | OpKind::Fallocate | OpKind::Reserve => 0,
        }
    }
}

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

    /// Lets carried requests use a file that another engine keeps open until it is closed here.
    pub(crate) fn adopt_file(&mut self, file: RawFd, path: &Path) -> FileId {
        let slot = self.free_slot();
        let access = FileAccess { direct: false, refused: None, align_bytes: 1 };
        self.backend.adopt(&OpenedFile { slot, file, path, access }, &mut self.effective);
        self.keep(slot, OpenFile::new(path, &FileOptions::new(), &access, self.opened + 1))
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
        let access = self
            .backend
            .open(slot, path, &options, &mut self.effective)
            .tried(path, Action::Open)?;
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
        self.backend.close(file.slot);
        Ok(())
    }

    /// Makes all files and names on the file's file system durable, once all operations are done.
    /// Reports the errors of all writes there since the file was opened, and an older one that was
    /// not reported before.
    pub(crate) fn sync_file_system(&mut self, file: FileId) -> Result<(), Error> {
        self.drain()?;
        let slot = self.slot(file);
        uninterrupted(|| self.backend.sync_file_system(slot)).tried(self.path(file), Action::Fsync)
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
        let set = self.backend.set_direct(file.slot, direct);
        set.tried(&self.known(file).path, Action::Open)?;
        self.file_mut(file.slot).direct = direct;
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
        self.backend.len(file.slot).tried(path, Action::Examine)
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
        uninterrupted(|| self.backend.truncate(file.slot, len_bytes))
            .map_err(|error| Error::file(&path, action, offset, &error))
    }

    /// Drops the file's clean pages from the page cache (`posix_fadvise(2)`), so that later reads,
    /// through any open file, see what the disk has.
    pub(crate) fn drop_clean_pages(&mut self, file: FileId) {
        self.backend.drop_clean_pages(file.slot);
    }

    /// Returns whether another program may still see writes to the file: it has a second name, or
    /// is open elsewhere, including in this process. Covers earlier opens by programs on this
    /// system. Fails if the system can't determine that.
    pub(crate) fn is_shared(&self, file: FileId) -> Result<bool, Error> {
        let path = &self.known(file).path;
        self.backend.is_shared(file.slot).tried(path, Action::Examine)
    }

    /// Returns the open file, to examine or change its permissions and extents. `None` on a
    /// simulated disk.
    pub fn descriptor(&self, file: FileId) -> Option<BorrowedFd<'_>> {
        self.known(file);
        self.backend.descriptor(file.slot)
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
}

/// Returns the file of `id`. Using a closed file is a bug of the caller, and must not affect its
/// successor in the slot.
#[inline]
pub(super) fn known(files: &[Option<OpenFile>], id: FileId) -> &OpenFile {
    let file = files.get(id.slot as usize).and_then(Option::as_ref);
    let same = file.filter(|file| file.generation == id.generation);
    same.expect("the file was not closed, and is this engine's")
}
