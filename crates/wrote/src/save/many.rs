//! Saves many files at once, in groups that become durable together.

use super::{CACHED_BS_BYTES, fill, find};
use crate::engine::{Op, Options, folder_of};
use crate::metadata::{Inherited, mode_at_first};
use crate::staged::{StagedFile, give};
use crate::{Disk, Engine, Error, FileOptions, Ioengine, device};
use rustix::fs::stat;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The maximum number of flushes in flight. A file system's journal combines waiting flushes into
/// one commit.
const IODEPTH: u32 = 128;
const BUFFERS: u32 = 64;
const BS_BYTES: usize = 64 << 10;

/// The maximum number of files in a group whose files are flushed one by one. Each of these files
/// stays open until all of them have been flushed.
const FLUSHED_FILES: usize = 256;
/// The maximum number of files, and of bytes, in a group that is made durable by flushing its file
/// system.
const SYNCED_FILES: usize = 4096;
const SYNCED_BYTES: usize = 64 << 20;
/// The maximum age of such a group: if files arrive slowly, they wait no longer than this for their
/// names.
const SYNCED_TIME: Duration = Duration::from_secs(1);
/// The maximum number of bytes that the page cache may have to write when a file system is flushed.
/// If there are more, they may belong to other programs, for whose data the group would have to
/// wait.
const DIRTY_BYTES_MAX: u64 = 32 << 20;

/// The maximum number of folders that are waiting to be flushed.
const FOLDERS_MAX: usize = 256;

/// Saves each file like [`write()`](super::write()), but waits for the device only a few times in
/// total. When this returns, all contents are durable.
///
/// At any moment, each file has either its old content or the new; the files do not change
/// together. After a crash or an error, some of them may have their new content. The files are
/// taken from the iterator one by one, so that for any number of files, only 4 MiB of content, the
/// paths of 4096 files, and 256 open files (fewer if the process may not open that many) are held
/// at once (W8).
///
/// On ext4, XFS, Btrfs and F2FS, one `syncfs(2)` makes thousands of files durable. It also writes
/// the data that other programs have pending on that file system. Therefore, on other file systems,
/// and whenever the page cache has more than 32 MiB to write (`Dirty` in `/proc/meminfo`), each
/// file is flushed instead.
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
/// The errors of [`write()`](super::write()), with the path of the file. Earlier files may have
/// their new content; later files still have the old. An error in flushing the file system, which
/// another program's file may have caused, has the path of the folder.
pub fn write_many<P: AsRef<Path>, B: AsRef<[u8]>>(
    files: impl IntoIterator<Item = (P, B)>,
) -> Result<(), Error> {
    let mut group = Group::new(Flushed::Together.engine()?, Flushed::Together);
    group.chooses = true;
    group.save_all(files)
}

/// The method of making a group's files durable.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flushed {
    /// Each file is flushed, all of them concurrently.
    Each,
    /// The file system is flushed.
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

/// Files that are staged next to their final paths, all on one file system.
pub(super) struct Group {
    engine: Engine,
    flushed: Flushed,
    /// Whether the method of making files durable is chosen again for each group.
    chooses: bool,
    /// The device of the first file, and the method that suits its file system.
    device: Option<(u64, Flushed)>,
    files: Vec<GroupFile>,
    bytes: usize,
    begun_at: Instant,
    /// The folders whose names have not been flushed yet.
    folders: BTreeSet<PathBuf>,
}

struct GroupFile {
    staged: StagedFile,
    path: PathBuf,
    place: PathBuf,
    old: Option<Inherited>,
}

impl Group {
    /// Returns a group whose files are saved by the method of a disk's engine.
    pub(super) fn on(disk: &Disk) -> Result<Group, Error> {
        disk.check_process()?;
        let iodepth = disk.effective().iodepth.min(IODEPTH);
        let options = Options::new(Ioengine::IoUring, iodepth, disk.buffer_bytes().min(BS_BYTES));
        Ok(Group::new(disk.engine(&options)?, Flushed::Each))
    }

    fn new(engine: Engine, flushed: Flushed) -> Group {
        Group {
            engine,
            flushed,
            chooses: false,
            device: None,
            files: Vec::new(),
            bytes: 0,
            begun_at: Instant::now(),
            folders: BTreeSet::new(),
        }
    }

    /// Saves the files. An error has the path that the caller gave.
    pub(super) fn save_all<P: AsRef<Path>, B: AsRef<[u8]>>(
        mut self,
        files: impl IntoIterator<Item = (P, B)>,
    ) -> Result<(), Error> {
        self.save(files).map_err(|error| {
            self.files.iter().fold(error, |error, file| file.staged.named(error, &file.path))
        })
    }

    fn save<P: AsRef<Path>, B: AsRef<[u8]>>(
        &mut self,
        files: impl IntoIterator<Item = (P, B)>,
    ) -> Result<(), Error> {
        for (path, bytes) in files {
            let (path, bytes) = (path.as_ref(), bytes.as_ref());
            match self.stage(path, bytes) {
                // If the process can't open more files, the group's files are finished and closed
                // first.
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
            Flushed::Together => {
                self.files.len() >= SYNCED_FILES
                    || self.bytes >= SYNCED_BYTES
                    || self.begun_at.elapsed() >= SYNCED_TIME
            }
        }
    }

    /// Creates the file next to its final path, and queues its content.
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
        // The first file stays open, because it reports the errors of all files.
        if self.flushed == Flushed::Together && self.files.len() > 1 {
            self.engine.drain()?;
            let GroupFile { staged, old, .. } = self.files.last_mut().expect("was added");
            give(&self.engine, file, old.take().as_ref())?;
            staged.close(&mut self.engine)?;
        }
        Ok(())
    }

    /// Chooses how the next group becomes durable. Once the files are on different file systems,
    /// each file is flushed.
    fn choose(&mut self, folder: &Path) -> Result<(), Error> {
        // If the folder can't be examined, creating a file in it fails, too, and reports the error.
        let device = if self.chooses { stat(folder).ok() } else { None };
        let Some(device) = device.map(|stat| stat.st_dev) else { return Ok(()) };
        let (known, suits) = *self.device.get_or_insert_with(|| (device, Flushed::suits(folder)));
        self.chooses = known == device;
        if !self.chooses {
            self.put()?;
        }
        if !self.files.is_empty() {
            return Ok(());
        }
        let is_dirty = || dirty_bytes() > DIRTY_BYTES_MAX;
        let flushed = match suits {
            Flushed::Together if self.chooses && !is_dirty() => suits,
            _ => Flushed::Each,
        };
        if flushed != self.flushed {
            (self.engine, self.flushed) = (flushed.engine()?, flushed);
        }
        self.begun_at = Instant::now();
        Ok(())
    }

    /// Makes the files complete and durable before they get their names (W1), and renames them in
    /// order.
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
                if let Some(GroupFile { staged, old, place, .. }) = self.files.first() {
                    give(&self.engine, staged.file, old.as_ref())?;
                    let synced = self.engine.sync_file_system(staged.file);
                    synced.map_err(|error| error.about(folder_of(place)))?;
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
}

/// Removes the files after an error or a panic of the caller's iterator.
impl Drop for Group {
    fn drop(&mut self) {
        self.files.iter().for_each(|file| file.staged.abandon(&mut self.engine));
    }
}

/// Returns the number of bytes that the page cache is writing or still has to write
/// (proc_meminfo(5)); [`u64::MAX`] if there is no `/proc`.
fn dirty_bytes() -> u64 {
    let Ok(text) = std::fs::read_to_string("/proc/meminfo") else { return u64::MAX };
    let figures = text.lines().filter_map(|line| {
        let kb = line.strip_prefix("Dirty:").or_else(|| line.strip_prefix("Writeback:"))?;
        kb.strip_suffix("kB")?.trim().parse::<u64>().ok()
    });
    figures.sum::<u64>() << 10
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
            let interrupted = Sim::new(seed);
            interrupted.fault(seed % sim.operations(), Fault::Once(libc::EINTR));
            for sim in [Sim::new(seed), interrupted] {
                save(&sim).unwrap();
                for number in 0..FILES {
                    assert_eq!(
                        sim.after_power_loss(path(number)),
                        Some(content(number)),
                        "{number}"
                    );
                }
            }
        }
    }
}
