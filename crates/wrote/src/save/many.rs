//! Saves many files at once, whose flushes reach the device together.

use super::{fill, find};
use crate::engine::{Op, Options, folder_of};
use crate::metadata::{Inherited, mode_at_first};
use crate::staged::{StagedFile, give};
use crate::{Disk, Engine, Error, FileOptions, Ioengine};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Flushes in flight at once. A journal combines waiting ones in one commit.
const IODEPTH: u32 = 128;
const BUFFERS: u32 = 64;
const BS_BYTES: usize = 64 << 10;

/// The most files of a group. Each is open until all of them are flushed.
const GROUP_FILES: usize = 256;

/// The most folders that wait for their flush.
const FOLDERS_MAX: usize = 256;

/// Saves each file like [`write()`](super::write()), with few waits for the device in total: when
/// this returns, all contents are durable.
///
/// Each file has its old content or the new at any moment; the files do not change together. After
/// a crash or error some have their new content. The files are taken from the iterator one by one,
/// so any number of them needs only 4 MiB and 256 open files, or as many as the process may have
/// (W8).
///
/// ```
/// # let folder = tempfile::tempdir()?;
/// # let folder = folder.path();
/// let pages = (0..1000).map(|page| (folder.join(format!("{page}.html")), format!("page {page}")));
/// wrote::write_many(pages)?; // 1000 files, on stable storage with their names
/// # assert_eq!(std::fs::read_dir(folder)?.count(), 1000);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// As [`write()`](super::write()), with the path of the file. Files before it in the order may have
/// their new content; files after it have the old.
pub fn write_many<P: AsRef<Path>, B: AsRef<[u8]>>(
    files: impl IntoIterator<Item = (P, B)>,
) -> Result<(), Error> {
    let options = Options::new(Ioengine::IoUring, IODEPTH, BS_BYTES).buffers(BUFFERS);
    save_many(&mut Engine::open(&options)?, files)
}

impl Disk {
    /// Saves like the function [`write_many`], under the conditions of [`Disk::write`].
    pub fn write_many<P: AsRef<Path>, B: AsRef<[u8]>>(
        &self,
        files: impl IntoIterator<Item = (P, B)>,
    ) -> Result<(), Error> {
        let iodepth = self.effective().iodepth.min(IODEPTH);
        let options = Options::new(Ioengine::IoUring, iodepth, self.buffer_bytes().min(BS_BYTES));
        save_many(&mut self.engine_with(&options, 1, Path::new("write_many"))?, files)
    }
}

fn save_many<P: AsRef<Path>, B: AsRef<[u8]>>(
    engine: &mut Engine,
    files: impl IntoIterator<Item = (P, B)>,
) -> Result<(), Error> {
    let mut group = Group { engine, files: Vec::new(), folders: BTreeSet::new() };
    group.save(files).map_err(|error| group.abandon(error))
}

/// Files written beside their places.
struct Group<'e> {
    engine: &'e mut Engine,
    files: Vec<GroupFile>,
    /// Folders with names that are to be flushed.
    folders: BTreeSet<PathBuf>,
}

struct GroupFile {
    staged: StagedFile,
    path: PathBuf,
    place: PathBuf,
    old: Option<Inherited>,
}

impl Group<'_> {
    fn save<P: AsRef<Path>, B: AsRef<[u8]>>(
        &mut self,
        files: impl IntoIterator<Item = (P, B)>,
    ) -> Result<(), Error> {
        for (path, bytes) in files {
            let (path, bytes) = (path.as_ref(), bytes.as_ref());
            match self.stage(path, bytes) {
                // The process may have no more files open: the group's are closed first.
                Err(error) if error.errno() == libc::EMFILE && !self.files.is_empty() => {
                    self.put()?;
                    self.stage(path, bytes)?;
                }
                staged => staged?,
            }
            if self.files.len() == GROUP_FILES {
                self.put()?;
            }
        }
        self.put()?;
        self.sync_folders()
    }

    /// Makes the file, and queues its content.
    fn stage(&mut self, path: &Path, bytes: &[u8]) -> Result<(), Error> {
        let (place, old) = find(self.engine, path, true).map_err(|error| error.about(path))?;
        let options = FileOptions::new().mode(mode_at_first(old.as_ref()));
        let staged = StagedFile::new(self.engine, &place, true, &options)
            .map_err(|error| error.renamed(&place, path))?;
        let file = staged.file;
        self.files.push(GroupFile { staged, path: path.to_owned(), place, old });
        fill(self.engine, file, bytes).map(drop)
    }

    /// Makes the files whole and durable, before they have their names (W1), and puts them in their
    /// places, in order.
    fn put(&mut self) -> Result<(), Error> {
        self.engine.drain()?;
        for file in &self.files {
            give(self.engine, file.staged.file, file.old.as_ref())?;
        }
        for file in &self.files {
            self.engine.queue(0, Op::Fsync { file: file.staged.file });
        }
        self.engine.drain()?;
        let mut files = std::mem::take(&mut self.files).into_iter();
        while let Some(file) = files.next() {
            self.folders.insert(folder_of(&file.place).to_owned());
            if let Err(error) = file.staged.put(self.engine, false) {
                self.files = files.collect();
                return Err(error.about(&file.path));
            }
        }
        if self.folders.len() > FOLDERS_MAX { self.sync_folders() } else { Ok(()) }
    }

    fn sync_folders(&mut self) -> Result<(), Error> {
        let folders = std::mem::take(&mut self.folders);
        folders.iter().try_for_each(|folder| self.engine.sync_folder(folder))
    }

    /// Removes the files, and returns the error with the path that the caller gave.
    fn abandon(&mut self, error: Error) -> Error {
        self.files.iter().fold(error, |error, file| {
            file.staged.abandon(self.engine);
            file.staged.named(error, &file.path)
        })
    }
}
