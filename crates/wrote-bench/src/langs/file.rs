//! The file that programs write and read. It is prepared before each run, then checked and removed.

use super::check;
use super::workload::{Content, PIECE_BYTES, Table, Task};
use crate::site::{Site, clear};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use wrote_jobs::page_cache;
use wrote_result::Error;

/// The file that programs work on.
#[derive(Debug, Default)]
pub(super) struct Subject {
    number: u32,
    /// Whether the file is complete and ready for the next program.
    is_ready: bool,
    /// The reason why the page cache did not hold all of the file for a cached read.
    spilled: Option<String>,
}

impl Subject {
    /// Returns a subject whose file has this number in its name, or a higher number once a program
    /// has left a folder under that name.
    pub(super) fn new(number: u32) -> Subject {
        Subject { number, ..Subject::default() }
    }

    pub(super) fn path(&self, site: &Site) -> PathBuf {
        site.file("data", self.number)
    }

    /// Prepares the file for a program. `Ok(Err(..))` explains why the file can't be dropped from
    /// the page cache.
    pub(super) fn make_ready(
        &mut self,
        table: &Table,
        site: &Site,
    ) -> Result<Result<(), String>, Error> {
        if !self.is_ready {
            self.clear(site)?;
            if let Some(content) = table.before() {
                make(&self.path(site), &content, site)?;
            }
            self.is_ready = true;
        }
        if table.task != Task::BytesRead {
            return Ok(Ok(()));
        }
        let wanted = table.source_cache();
        let (found, fallback) = page_cache::prepare(&self.path(site), wanted, site.stop)?;
        Ok(match fallback {
            Some(fallback) if found != wanted => Err(fallback.because),
            // If the cache is too small for the file, every program finds the same share of the
            // file cached.
            Some(fallback) => {
                self.spilled = Some(fallback.because);
                Ok(())
            }
            None => Ok(()),
        })
    }

    /// Returns the reason why a program had to read part of a cached file from the drive, if it had
    /// to.
    pub(super) fn spilled(&self) -> Option<&str> {
        self.spilled.as_deref()
    }

    /// Checks every byte that a program has left. `Ok(Err(..))` is the first error.
    pub(super) fn check(
        &self,
        table: &Table,
        said_whole: bool,
        site: &Site,
    ) -> Result<Result<(), String>, Error> {
        check::check(&self.path(site), &table.content(), said_whole, site.stop)
    }

    /// Cleans up after a run. Keeps the file of a read for the next run if it is undamaged, and
    /// removes any other file.
    pub(super) fn is_done(
        &mut self,
        table: &Table,
        is_whole: bool,
        site: &Site,
    ) -> Result<(), Error> {
        if table.task == Task::BytesRead && is_whole { Ok(()) } else { self.clear(site) }
    }

    /// Removes the file, or a link that has replaced it, but never the link's target. If a folder
    /// has replaced the file, the folder is kept, and the next file gets another name.
    pub(super) fn clear(&mut self, site: &Site) -> Result<(), Error> {
        self.is_ready = false;
        let path = self.path(site);
        if path.symlink_metadata().is_ok_and(|found| found.is_dir()) {
            self.number += 1;
            return self.clear(site);
        }
        clear(&[path], site.scratch.path())
    }
}

/// Creates a file, and makes it and its name durable.
fn make(path: &Path, content: &Content, site: &Site) -> Result<(), Error> {
    let failed = |what: &str, error: io::Error| {
        Error::Failed(format!("{}: {what}: {error}", path.display()))
    };
    let mut file = File::create_new(path).map_err(|error| failed("create", error))?;
    let mut whole = content.reader();
    let mut copied = 1;
    while copied > 0 {
        site.stop.check()?;
        let mut piece = whole.by_ref().take(PIECE_BYTES as u64);
        copied = io::copy(&mut piece, &mut file).map_err(|error| failed("write", error))?;
    }
    file.sync_all().map_err(|error| failed("fsync", error))?;
    // Folders on some FUSE file systems can't be flushed.
    let _ = File::open(site.scratch.path()).and_then(|folder| folder.sync_all());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;
    use crate::site::SinceStart;
    use std::fs;
    use std::time::Instant;
    use wrote::device;
    use wrote_jobs::peers::Peers;
    use wrote_result::Stop;

    fn table(task: Task) -> Table {
        Table { task, size: 1000, count: 7, cold: false, in_time: false }
    }

    fn in_place(task: Task, test: impl FnOnce(&mut Subject, &Table, &Site)) {
        let folder = fixtures::folder();
        let scratch = Scratch::make(folder.path()).unwrap();
        let (table, stop) = (table(task), Stop::new());
        let target = device::examine(folder.path()).unwrap();
        let site = Site {
            scenario: "langs",
            target: &target,
            scratch: &scratch,
            stop: &stop,
            clock: &SinceStart(Instant::now()),
            keep: false,
            peers: Peers::ALONE,
            timed: Peers::ALONE,
            rank_files: Default::default(),
        };
        test(&mut Subject::new(0), &table, &site);
    }

    #[test]
    fn a_program_finds_what_its_task_says() {
        in_place(Task::BytesWrite, |subject, table, site| {
            fs::write(subject.path(site), "old").unwrap();
            subject.make_ready(table, site).unwrap().unwrap();
            assert!(!subject.path(site).exists());
        });
        in_place(Task::BytesRead, |subject, table, site| {
            subject.make_ready(table, site).unwrap().unwrap();
            assert_eq!(subject.check(table, true, site).unwrap(), Ok(()));
        });
        for task in [Task::Save, Task::SaveSync, Task::Lines] {
            in_place(task, |subject, table, site| {
                subject.make_ready(table, site).unwrap().unwrap();
                assert!(subject.path(site).metadata().unwrap().len() > 0);
                // No program has written the file.
                assert!(subject.check(table, true, site).unwrap().is_err());
            });
        }
    }

    #[test]
    fn a_file_that_is_read_is_made_once_and_again_when_something_happened_to_it() {
        in_place(Task::BytesRead, |subject, table, site| {
            use std::os::unix::fs::MetadataExt;
            subject.make_ready(table, site).unwrap().unwrap();
            let inode = |subject: &Subject| subject.path(site).metadata().unwrap().ino();
            let first = inode(subject);
            let also = fs::File::open(subject.path(site)).unwrap();
            subject.is_done(table, true, site).unwrap();
            subject.make_ready(table, site).unwrap().unwrap();
            assert_eq!(inode(subject), first);
            fs::write(subject.path(site), "short").unwrap();
            assert!(subject.check(table, true, site).unwrap().is_err());
            subject.is_done(table, false, site).unwrap();
            subject.make_ready(table, site).unwrap().unwrap();
            assert_eq!(subject.check(table, true, site).unwrap(), Ok(()));
            // As long as the first file is open, no other file can have its inode number.
            assert_ne!(inode(subject), also.metadata().unwrap().ino());
        });
    }

    #[test]
    fn a_link_is_removed_and_what_it_leads_to_is_not_and_a_folder_is_left() {
        // W7
        in_place(Task::Lines, |subject, table, site| {
            let elsewhere = tempfile::NamedTempFile::new().unwrap();
            fs::write(elsewhere.path(), "precious").unwrap();
            std::os::unix::fs::symlink(elsewhere.path(), subject.path(site)).unwrap();
            subject.make_ready(table, site).unwrap().unwrap();
            assert!(subject.path(site).symlink_metadata().unwrap().is_file());
            assert_eq!(fs::read(elsewhere.path()).unwrap(), b"precious");
            subject.clear(site).unwrap();
            let folder = subject.path(site);
            fs::create_dir(&folder).unwrap();
            fs::write(folder.join("thesis"), "theirs").unwrap();
            subject.is_done(table, false, site).unwrap();
            subject.make_ready(table, site).unwrap().unwrap();
            assert_ne!(subject.path(site), folder);
            assert!(subject.path(site).is_file() && folder.join("thesis").exists());
            fs::remove_dir_all(&folder).unwrap();
        });
    }
}
