//! The file that programs write and read: prepared before each run, checked and removed after it.

use super::super::check;
use super::super::workload::{Content, Table, Task};
use crate::site::{Site, clear};
use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use wrote_jobs::page_cache;
use wrote_result::Error;
use wrote_result::document::SourceCache;

const PIECE_BYTES: usize = 256 << 10;

/// The file of one table in one place.
pub(super) struct Subject<'a> {
    table: Table,
    site: &'a Site<'a>,
    number: u32,
    /// Whether the file is complete and ready for the next program.
    is_ready: bool,
    /// Why the page cache did not hold the whole file for a cached read.
    spilled: Option<String>,
}

impl<'a> Subject<'a> {
    /// Creates a file with this number in its name, or a greater one if a folder has that name.
    pub(super) fn new(table: Table, site: &'a Site<'a>, number: u32) -> Subject<'a> {
        Subject { table, site, number, is_ready: false, spilled: None }
    }

    pub(super) fn path(&self) -> PathBuf {
        self.site.file("data", self.number)
    }

    /// Prepares the file for a program. `Ok(Err(..))`: it can't be dropped from the page cache.
    pub(super) fn make_ready(&mut self) -> Result<Result<(), String>, Error> {
        if !self.is_ready {
            self.clear()?;
            if let Some(content) = self.table.before() {
                self.make(&content)?;
            }
            self.is_ready = true;
        }
        if self.table.task != Task::BytesRead {
            return Ok(Ok(()));
        }
        let wanted = if self.table.cold { SourceCache::Dropped } else { SourceCache::Warm };
        let (found, fallback) = page_cache::prepare(&self.path(), wanted, self.site.stop)?;
        Ok(match fallback {
            Some(fallback) if found != wanted => Err(fallback.because),
            // If the cache is too small for the file, every program finds the same share of it
            // cached.
            Some(fallback) => {
                self.spilled = Some(fallback.because);
                Ok(())
            }
            None => Ok(()),
        })
    }

    /// Returns why a program had to read part of a cached file from the drive.
    pub(super) fn spilled(&self) -> Option<&str> {
        self.spilled.as_deref()
    }

    /// Checks every byte that a program left. `Ok(Err(..))` is the first error.
    pub(super) fn check(&self, said_whole: bool) -> Result<Result<(), String>, Error> {
        check::check(&self.path(), &self.table.content(), said_whole, self.site.stop)
    }

    /// Ends a run. A file for reads is kept for the next run, unless it is damaged.
    pub(super) fn is_done(&mut self, is_whole: bool) -> Result<(), Error> {
        if self.table.task == Task::BytesRead && is_whole { Ok(()) } else { self.clear() }
    }

    /// Removes the file, or whatever replaced it: a link, but never its target. A folder stays, and
    /// the next file gets another name.
    pub(super) fn clear(&mut self) -> Result<(), Error> {
        self.is_ready = false;
        let path = self.path();
        if path.symlink_metadata().is_ok_and(|found| found.is_dir()) {
            self.number += 1;
            return self.clear();
        }
        clear(&[path], self.site.scratch.path())
    }

    /// Creates the file, durably, with its name.
    fn make(&self, content: &Content) -> Result<(), Error> {
        let path = self.path();
        let failed = |what: &str, error: io::Error| {
            Error::Failed(format!("{}: {what}: {error}", path.display()))
        };
        let mut file = File::create_new(&path).map_err(|error| failed("create", error))?;
        file.write_all(&content.head).map_err(|error| failed("write", error))?;
        let pattern = &content.pattern;
        let piece = pattern.repeat(PIECE_BYTES.div_ceil(pattern.len().max(1)));
        let mut left = content.body_bytes;
        while left > 0 {
            self.site.stop.check()?;
            let bytes = piece.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            file.write_all(&piece[..bytes]).map_err(|error| failed("write", error))?;
            left -= bytes as u64;
        }
        file.sync_all().map_err(|error| failed("fsync", error))?;
        // Some FUSE folders can't be flushed.
        let _ = File::open(self.site.scratch.path()).and_then(|folder| folder.sync_all());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;
    use crate::site::SinceStart;
    use std::fs;
    use std::time::Instant;
    use wrote::device;
    use wrote_jobs::peers::Alone;
    use wrote_result::Stop;

    fn table(task: Task) -> Table {
        Table { task, size: 1000, count: 7, runs: 1, cold: false, in_time: false }
    }

    fn in_place(task: Task, test: impl FnOnce(&mut Subject)) {
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
            peers: &Alone,
            together: None,
            ranks: Default::default(),
        };
        test(&mut Subject::new(table, &site, 0));
    }

    #[test]
    fn a_program_finds_what_its_task_says() {
        in_place(Task::BytesWrite, |subject| {
            fs::write(subject.path(), "old").unwrap();
            subject.make_ready().unwrap().unwrap();
            assert!(!subject.path().exists());
        });
        in_place(Task::BytesRead, |subject| {
            subject.make_ready().unwrap().unwrap();
            assert_eq!(subject.check(true).unwrap(), Ok(()));
        });
        for task in [Task::Save, Task::SaveSync, Task::Lines] {
            in_place(task, |subject| {
                subject.make_ready().unwrap().unwrap();
                assert!(subject.path().metadata().unwrap().len() > 0);
                // The program has not written it yet.
                assert!(subject.check(true).unwrap().is_err());
            });
        }
    }

    #[test]
    fn a_file_that_is_read_is_made_once_and_again_when_something_happened_to_it() {
        in_place(Task::BytesRead, |subject| {
            use std::os::unix::fs::MetadataExt;
            subject.make_ready().unwrap().unwrap();
            let inode = |subject: &Subject| subject.path().metadata().unwrap().ino();
            let first = inode(subject);
            let also = fs::File::open(subject.path()).unwrap();
            subject.is_done(true).unwrap();
            subject.make_ready().unwrap().unwrap();
            assert_eq!(inode(subject), first);
            fs::write(subject.path(), "short").unwrap();
            assert!(subject.check(true).unwrap().is_err());
            subject.is_done(false).unwrap();
            subject.make_ready().unwrap().unwrap();
            assert_eq!(subject.check(true).unwrap(), Ok(()));
            // While the first file is open, no other file has its inode.
            assert_ne!(inode(subject), also.metadata().unwrap().ino());
        });
    }

    #[test]
    fn a_link_is_removed_and_what_it_leads_to_is_not_and_a_folder_is_left() {
        // W7
        in_place(Task::Lines, |subject| {
            let elsewhere = tempfile::NamedTempFile::new().unwrap();
            fs::write(elsewhere.path(), "precious").unwrap();
            std::os::unix::fs::symlink(elsewhere.path(), subject.path()).unwrap();
            subject.make_ready().unwrap().unwrap();
            assert!(subject.path().symlink_metadata().unwrap().is_file());
            assert_eq!(fs::read(elsewhere.path()).unwrap(), b"precious");
            subject.clear().unwrap();
            let folder = subject.path();
            fs::create_dir(&folder).unwrap();
            fs::write(folder.join("thesis"), "theirs").unwrap();
            subject.is_done(false).unwrap();
            subject.make_ready().unwrap().unwrap();
            assert_ne!(subject.path(), folder);
            assert!(subject.path().is_file() && folder.join("thesis").exists());
            fs::remove_dir_all(&folder).unwrap();
        });
    }
}
