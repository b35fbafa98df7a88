//! Saves many files at once, in groups that become durable together.

use super::{CACHED_BS_BYTES, fill, find};
use crate::engine::{Op, Options, folder_of};
use crate::metadata::{Inherited, mode_at_first};
use crate::staged::{StagedFile, give};
use crate::{Disk, Engine, Error, FileOptions, Ioengine, device};
use rustix::fs::stat;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Flushes in flight at once. A journal combines waiting ones in one commit.
const IODEPTH: u32 = 128;
const BUFFERS: u32 = 64;
const BS_BYTES: usize = 64 << 10;

/// The most files of a group that are flushed one by one. Each is open until all of them are.
const FLUSHED_FILES: usize = 256;
/// The most files and bytes of a group whose file system is flushed.
const SYNCED_FILES: usize = 4096;
const SYNCED_BYTES: usize = 64 << 20;
/// A file system is not flushed while the page cache has more to write than this: it may belong to
/// other programs, and the group would wait for it.
const DIRTY_BYTES_MAX: u64 = 32 << 20;

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
/// Thousands of files become durable by one `syncfs(2)` on ext4, XFS, Btrfs and F2FS, which also
/// writes what other programs have on that file system. While the page cache has much to write
/// (`Dirty` in `/proc/meminfo`, over 32 MiB), and on other file systems, each file is flushed.
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
    let mut group = Group::new(Flushed::Together.engine()?, Flushed::Together);
    group.chooses = true;
    group.save_all(files)
}

impl Disk {
    /// Saves like the function [`write_many`], under the conditions of [`Disk::write`].
    pub fn write_many<P: AsRef<Path>, B: AsRef<[u8]>>(
        &self,
        files: impl IntoIterator<Item = (P, B)>,
    ) -> Result<(), Error> {
        let iodepth = self.effective().iodepth.min(IODEPTH);
        let options = Options::new(Ioengine::IoUring, iodepth, self.buffer_bytes().min(BS_BYTES));
        let engine = self.engine_with(&options, 1, Path::new("write_many"))?;
        Group::new(engine, Flushed::Each).save_all(files)
    }
}

/// How the files of a group become durable.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flushed {
    /// Each is flushed, all at once.
    Each,
    /// Their file system is.
    Together,
}

impl Flushed {
    fn engine(self) -> Result<Engine, Error> {
        Engine::open(&match self {
            Flushed::Each => Options::new(Ioengine::IoUring, IODEPTH, BS_BYTES).buffers(BUFFERS),
            Flushed::Together => Options::new(Ioengine::Psync, 1, CACHED_BS_BYTES),
        })
    }

    fn suits(folder: &Path) -> Flushed {
        let flushes = device::examine(folder).is_ok_and(|target| target.syncfs_flushes());
        if flushes { Flushed::Together } else { Flushed::Each }
    }
}

/// Files written beside their places, on one file system.
struct Group {
    engine: Engine,
    flushed: Flushed,
    /// Chooses what suits the file system; the last one's device, and its choice.
    chooses: bool,
    device: Option<(u64, Flushed)>,
    files: Vec<GroupFile>,
    bytes: usize,
    /// Folders with names that are to be flushed.
    folders: BTreeSet<PathBuf>,
}

struct GroupFile {
    staged: StagedFile,
    path: PathBuf,
    place: PathBuf,
    old: Option<Inherited>,
}

impl Group {
    fn new(engine: Engine, flushed: Flushed) -> Group {
        let (files, folders) = (Vec::new(), BTreeSet::new());
        Group { engine, flushed, chooses: false, device: None, files, bytes: 0, folders }
    }

    fn save_all<P: AsRef<Path>, B: AsRef<[u8]>>(
        mut self,
        files: impl IntoIterator<Item = (P, B)>,
    ) -> Result<(), Error> {
        self.save(files).map_err(|error| self.abandon(error))
    }

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
            if self.is_full() {
                self.put()?;
            }
        }
        self.put()?;
        self.sync_folders()
    }

    fn is_full(&self) -> bool {
        match self.flushed {
            Flushed::Each => self.files.len() >= FLUSHED_FILES,
            Flushed::Together => self.files.len() >= SYNCED_FILES || self.bytes >= SYNCED_BYTES,
        }
    }

    /// Makes the file, and queues its content.
    fn stage(&mut self, path: &Path, bytes: &[u8]) -> Result<(), Error> {
        let (place, old) = find(&mut self.engine, path, true).map_err(|error| error.about(path))?;
        self.choose(folder_of(&place))?;
        let options = FileOptions::new().mode(mode_at_first(old.as_ref()));
        let staged = StagedFile::new(&mut self.engine, &place, true, &options)
            .map_err(|error| error.renamed(&place, path))?;
        let file = staged.file;
        self.files.push(GroupFile { staged, path: path.to_owned(), place, old });
        self.bytes += bytes.len();
        fill(&mut self.engine, file, bytes)?;
        // The first stays open: it reports the errors of all.
        if self.flushed == Flushed::Together && self.files.len() > 1 {
            self.engine.drain()?;
            let GroupFile { staged, old, .. } = self.files.last_mut().expect("was added");
            give(&self.engine, file, old.as_ref())?;
            staged.close(&mut self.engine)?;
        }
        Ok(())
    }

    /// Ends the group in front of a file on another file system, and chooses how the next one
    /// becomes durable.
    fn choose(&mut self, folder: &Path) -> Result<(), Error> {
        // A folder that can't be examined has no new files either.
        let device = if self.chooses { stat(folder).ok() } else { None };
        let Some(device) = device.map(|stat| stat.st_dev) else { return Ok(()) };
        let known = self.device.filter(|(known, _)| *known == device);
        if known.is_none() {
            self.put()?;
        }
        if !self.files.is_empty() {
            return Ok(());
        }
        let (_, suits) = known.unwrap_or_else(|| (device, Flushed::suits(folder)));
        self.device = Some((device, suits));
        let flushed = if dirty_bytes() > DIRTY_BYTES_MAX { Flushed::Each } else { suits };
        if std::mem::replace(&mut self.flushed, flushed) != flushed {
            self.engine = flushed.engine()?;
        }
        Ok(())
    }

    /// Makes the files whole and durable, before they have their names (W1), and puts them in their
    /// places, in order.
    fn put(&mut self) -> Result<(), Error> {
        self.engine.drain()?;
        match self.flushed {
            Flushed::Each => {
                for file in &self.files {
                    give(&self.engine, file.staged.file, file.old.as_ref())?;
                }
                for file in &self.files {
                    self.engine.queue(0, Op::Fsync { file: file.staged.file });
                }
                self.engine.drain()?;
            }
            Flushed::Together => {
                if let Some(GroupFile { staged, old, .. }) = self.files.first() {
                    give(&self.engine, staged.file, old.as_ref())?;
                    self.engine.sync_file_system(staged.file)?;
                }
            }
        }
        self.bytes = 0;
        let mut files = std::mem::take(&mut self.files).into_iter();
        while let Some(file) = files.next() {
            self.folders.insert(folder_of(&file.place).to_owned());
            if let Err(error) = file.staged.put(&mut self.engine, false) {
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
        let Group { engine, files, .. } = self;
        files.iter().fold(error, |error, file| {
            file.staged.abandon(engine);
            file.staged.named(error, &file.path)
        })
    }
}

/// Returns what the page cache has to write (proc_meminfo(5)); without `/proc` too much.
fn dirty_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let dirty = text.lines().find_map(|line| line.strip_prefix("Dirty:")?.strip_suffix("kB"));
    dirty.and_then(|kb| kb.trim().parse::<u64>().ok()).map_or(u64::MAX, |kb| kb << 10)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sim;
    use crate::engine::Fault;

    const FILES: usize = 5;

    fn path(number: usize) -> PathBuf {
        PathBuf::from(format!("/sim/{}/{number}", number % 2))
    }

    fn content(number: usize) -> Vec<u8> {
        vec![number as u8; 3000 * number]
    }

    fn save(sim: &Sim) -> Result<(), Error> {
        let engine = Engine::simulated(sim, &Options::new(Ioengine::Psync, 1, 4096)).unwrap();
        let files = (0..FILES).map(|number| (path(number), content(number)));
        Group::new(engine, Flushed::Together).save_all(files)
    }

    #[test]
    fn files_flushed_by_their_file_system_are_whole_or_absent_after_any_error_and_power_loss() {
        // W1
        let sim = Sim::new(0);
        save(&sim).unwrap();
        for operation in 0..sim.operations() {
            for seed in 0..20 {
                let sim = Sim::new(seed * 1000 + operation);
                sim.fault(operation, Fault::PowerLoss);
                save(&sim).unwrap_err();
                for number in 0..FILES {
                    let found = sim.after_power_loss(path(number));
                    assert!(found.is_none_or(|found| found == content(number)), "{number}");
                }
            }
            let sim = Sim::new(operation);
            sim.fault(operation, Fault::Once(libc::EIO));
            let error = save(&sim).unwrap_err();
            assert!(error.path().is_some_and(|it| it.starts_with("/sim")), "{error}");
            for name in sim.names() {
                let number =
                    (0..FILES).find(|number| name == path(*number)).expect("no other name");
                assert_eq!(sim.contents(&name), Some(content(number)));
            }
        }
        for seed in 0..100 {
            let sim = Sim::new(seed);
            save(&sim).unwrap();
            for number in 0..FILES {
                assert_eq!(sim.after_power_loss(path(number)), Some(content(number)), "{number}");
            }
        }
    }
}
