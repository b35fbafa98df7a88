//! One run of a row: an operation on each of many files, in a persistent folder or in the folder of
//! the round.

use super::plan::{FILES_MIN, Files, RUN, is_of_round};
use super::{Create, FILE_BYTES, Kind, NAME, Open, Read, Rename, Stat, Unlink, Way};
use crate::plan::{OneRun, Prepared, Turn, Work};
use crate::progress::Ticker;
use crate::site::Site;
use rustix::fs::{Advice, fadvise, syncfs};
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read as _, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Instant;
use wrote_jobs::clock::clocked;
use wrote_jobs::data::Data;
use wrote_jobs::histogram;
use wrote_jobs::machine::usage::Usage;
use wrote_jobs::report::Repeated;
use wrote_result::Error;
use wrote_result::document::{Row, SourceCache};

impl Work for Files {
    /// Fills the persistent folders.
    fn prepare(&mut self, site: &Site, _: &mut Ticker) -> Result<Prepared, Error> {
        let mut written_bytes = 0;
        for way in self.ways.clone().iter().filter(|way| !is_of_round(way.kind)) {
            written_bytes += Folder::ready(way, 0, self, site)?.1;
        }
        Ok(Prepared { written_bytes, ..Prepared::default() })
    }

    fn run(&mut self, row: &Row, at: Turn, site: &Site, _: &mut Ticker) -> Result<Repeated, Error> {
        let way = self.ways[at.row];
        let (folder, written_bytes) = Folder::ready(&way, at.round, self, site)?;
        let cache = match way.kind {
            Read => Some(folder.drop_pages(self.count)?),
            _ => None,
        };
        let mut latencies = histogram();
        let slice = self.asked.is_none().then_some(RUN);
        let (files, mut run) = clocked(&site.timer()?, Usage::now, || {
            let began = Instant::now();
            let mut from = began;
            for number in 0..self.count {
                folder.operate(way.kind, number)?;
                // Each operation ends where the next one starts (M10).
                let now = Instant::now();
                latencies.saturating_record((now - from).as_nanos() as u64);
                from = now;
                if number % 64 == 0 {
                    site.stop.check()?;
                }
                let files = number + 1;
                if files >= FILES_MIN && slice.is_some_and(|slice| now - began >= slice) {
                    return Ok(files);
                }
            }
            Ok(self.count)
        })?;
        run.bytes = way.kind.bytes() * u64::from(files);
        run.throughput_bytes_per_s = run.bytes as f64 / run.elapsed_s;
        run.iops = f64::from(files) / run.elapsed_s;
        run.max_rss_bytes = Some(Usage::now().max_rss_bytes);
        let effective = way.settings(files, cache);
        let asked = way.settings(self.count, Some(SourceCache::Dropped));
        let run = OneRun { run, latencies, effective, fallbacks: Vec::new() };
        let mut run = run.row(row, asked);
        run.written_bytes = written_bytes;
        Ok(run)
    }

    /// Renames the files back to their first names.
    fn clear(&mut self, row: usize, site: &Site) -> Result<(), Error> {
        let way = self.ways[row];
        match way.kind {
            Rename => Folder::make(&way, STAYING, self, site)?.rename_back(self.count),
            _ => Ok(()),
        }
    }

    /// Removes the folders. A folder that other ranks still use is removed with the run's folder.
    fn finish(&mut self, site: &Site) -> Result<(), Error> {
        if site.keep {
            return Ok(());
        }
        for path in std::mem::take(&mut self.folders) {
            Folder::of(path.clone(), site).clear(self.count)?;
            let _ = fs::remove_dir(&path);
        }
        Ok(())
    }
}

/// The number of the persistent folder. The folder of round 0 has number 1.
const STAYING: u32 = 0;

/// The files of one rank in a folder.
struct Folder {
    path: PathBuf,
    /// The part of the files' names that identifies the rank.
    whose: String,
    data: Vec<u8>,
}

impl Folder {
    /// Prepares the files of a run: none for `create`, and otherwise files with content, unless the
    /// folder already has them. Returns the folder and the number of bytes written.
    fn ready(way: &Way, round: u32, plan: &mut Files, site: &Site) -> Result<(Folder, u64), Error> {
        let number = if is_of_round(way.kind) { 1 + round } else { STAYING };
        let folder = Folder::make(way, number, plan, site)?;
        if way.kind == Create || plan.filled.contains(&folder.path) {
            return Ok((folder, 0));
        }
        if way.kind == Unlink {
            // The files of all later rounds are created now, because none may be created after
            // files are removed.
            for later in round + 1..plan.runs {
                Folder::make(way, 1 + later, plan, site)?.write(0..plan.count, &[])?;
            }
        }
        folder.write(0..plan.count, &folder.data)?;
        folder.settle()?;
        plan.filled.push(folder.path.clone());
        Ok((folder, u64::from(plan.count) * FILE_BYTES))
    }

    /// Creates the folder if it does not exist.
    fn make(way: &Way, number: u32, plan: &mut Files, site: &Site) -> Result<Folder, Error> {
        let path = match way.is_shared {
            true => site.scratch.shared_file(NAME, "shared-tree", number),
            false => site.file("own-tree", number),
        };
        if !plan.folders.contains(&path) {
            // Only the rank that has created a shared folder knows that it exists.
            match fs::create_dir(&path) {
                Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                    return Err(Error::at(&path, "mkdir")(error));
                }
                _ => plan.folders.push(path.clone()),
            }
        }
        Ok(Folder::of(path, site))
    }

    fn of(path: PathBuf, site: &Site) -> Folder {
        let mut data = vec![0; FILE_BYTES as usize];
        Data::new(site.peers.rank() as usize, 0).fill(&mut data);
        Folder { path, whose: site.scratch.of_rank(), data }
    }

    fn file(&self, number: u32) -> PathBuf {
        self.path.join(format!("{NAME}-file{}-{number}.data", self.whose))
    }

    fn renamed(&self, number: u32) -> PathBuf {
        self.path.join(format!("{NAME}-renamed{}-{number}.data", self.whose))
    }

    /// Creates the files that are missing, and writes `data` to each file.
    fn write(&self, mut files: Range<u32>, data: &[u8]) -> Result<(), Error> {
        files.try_for_each(|number| {
            let path = self.file(number);
            let file = File::options().write(true).create(true).truncate(false).open(&path);
            let made = file.and_then(|mut file| file.write_all(data));
            made.map_err(Error::at(&path, "write"))
        })
    }

    /// Writes everything that is cached to the device (M9).
    fn settle(&self) -> Result<(), Error> {
        let folder = File::open(&self.path).map_err(Error::at(&self.path, "open"))?;
        syncfs(&folder).map_err(Error::at(&self.path, "syncfs"))
    }

    /// Drops the files' pages from the page cache (M9).
    fn drop_pages(&self, files: u32) -> Result<SourceCache, Error> {
        let mut cache = SourceCache::Dropped;
        for number in 0..files {
            let path = self.file(number);
            let file = File::open(&path).map_err(Error::at(&path, "open"))?;
            if fadvise(&file, 0, None, Advice::DontNeed).is_err() {
                cache = SourceCache::Warm;
            }
        }
        Ok(cache)
    }

    fn operate(&self, kind: Kind, number: u32) -> Result<(), Error> {
        let path = self.file(number);
        let done = match kind {
            Create => File::create_new(&path).map(drop),
            Stat => fs::metadata(&path).map(drop),
            Open => File::open(&path).map(drop),
            Read => read(&path),
            Rename => fs::rename(&path, self.renamed(number)),
            Unlink => fs::remove_file(&path),
        };
        done.map_err(Error::at(&path, kind.as_str()))
    }

    /// Renames the files back to their first names.
    fn rename_back(&self, files: u32) -> Result<(), Error> {
        (0..files).try_for_each(|number| {
            let from = self.renamed(number);
            if_there(fs::rename(&from, self.file(number)), &from, "rename")
        })
    }

    /// Removes the remaining files.
    fn clear(&self, files: u32) -> Result<(), Error> {
        for number in 0..files {
            for path in [self.file(number), self.renamed(number)] {
                if_there(fs::remove_file(&path), &path, "unlink")?;
            }
        }
        Ok(())
    }
}

/// Ignores the error of a call that fails because the file does not exist.
fn if_there(done: io::Result<()>, path: &Path, what: &str) -> Result<(), Error> {
    match done {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        done => done.map_err(Error::at(path, what)),
    }
}

fn read(path: &Path) -> io::Result<()> {
    let mut bytes = [0; FILE_BYTES as usize];
    File::open(path)?.read_exact(&mut bytes)
}
