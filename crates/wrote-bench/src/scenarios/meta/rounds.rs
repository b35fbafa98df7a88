//! One run of a row: files made before the clock, each used once, and removed after it.

use super::plan::{FILE_SPACE_BYTES, LOOK_FILES, Plan};
use super::{Create, FILE_BYTES, Kind, NAME, Open, Read, Rename, Stat, Unlink, Way};
use crate::measured::{OneRun, RowLabel};
use crate::progress::Ticker;
use crate::rounds::Turn;
use crate::scenario::{self, Site};
use rustix::fs::{Advice, fadvise, syncfs};
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read as _, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use wrote_jobs::clock::clocked;
use wrote_jobs::data::Data;
use wrote_jobs::histogram;
use wrote_jobs::report::Repeated;
use wrote_machine::usage::Usage;
use wrote_result::Error;
use wrote_result::document::SourceCache;

impl scenario::Plan for Plan {
    fn scope(&self) -> scenario::Scope {
        let question = "How many files does this place create, find, read, rename and remove in a \
                        second, in folders of their own and in one that all share?";
        scenario::Scope { name: NAME, question: question.into(), runs: self.runs }
    }

    fn rows(&self) -> Vec<String> {
        self.ways.iter().map(|way| way.name.into()).collect()
    }

    fn space_bytes_max(&self) -> u64 {
        u64::from(self.files) * FILE_SPACE_BYTES
    }

    fn written_bytes_max(&self) -> u64 {
        self.run_bytes() * u64::from(self.runs) * self.ways.len() as u64
    }

    fn estimate(&self) -> Duration {
        self.file_time * self.files * self.runs * self.ways.len() as u32
    }

    /// Looks at how long a file takes, made, found and removed.
    fn prepare(&mut self, site: &Site, _: &mut Ticker) -> Result<u64, Error> {
        let way = self.ways[0];
        let began = Instant::now();
        let folder = Folder::make(&way, self, site)?;
        folder.fill(LOOK_FILES)?;
        (0..LOOK_FILES).try_for_each(|number| folder.operate(Stat, number))?;
        folder.clear(LOOK_FILES)?;
        let files_per_s = f64::from(LOOK_FILES) / began.elapsed().as_secs_f64().max(1e-9);
        self.choose(site.least(files_per_s)?);
        Ok(u64::from(LOOK_FILES) * FILE_BYTES)
    }

    fn run(&mut self, turn: Turn, site: &Site, _: &mut Ticker) -> Result<Repeated, Error> {
        let (way, files) = (self.ways[turn.row], self.files);
        let folder = Folder::make(&way, self, site)?;
        let (mut written_bytes, mut cache) = (0, None);
        if way.kind != Create {
            folder.fill(files)?;
            written_bytes = self.run_bytes();
            cache = Some(folder.settle(files)?);
        }
        // What a rank finds and reads may be another's.
        let used = folder.of_others(way.kind, site);
        let mut latencies = histogram();
        let ((), mut run) = clocked(&site.timer(), Usage::now, || {
            let mut from = Instant::now();
            for number in 0..files {
                used.operate(way.kind, number)?;
                // The end of one is the start of the next (M10).
                let now = Instant::now();
                latencies.saturating_record((now - from).as_nanos() as u64);
                from = now;
                if number % 64 == 0 {
                    site.stop.check()?;
                }
            }
            Ok(())
        })?;
        run.bytes = way.kind.bytes() * u64::from(files);
        run.throughput_bytes_per_s = run.bytes as f64 / run.elapsed_s;
        run.iops = f64::from(files) / run.elapsed_s;
        run.max_rss_bytes = Some(Usage::now().max_rss_bytes);
        let effective = way.settings(files, cache);
        let label = RowLabel {
            name: way.name,
            workload: way.workload,
            words: way.words,
            survives: way.kind.survives().unwrap_or(wrote::Survives::Nothing),
            asked: way.settings(files, Some(SourceCache::Dropped)),
        };
        let mut run = OneRun { run, latencies, effective, fallbacks: Vec::new() }.row(label);
        run.rows[0].direction = way.kind.direction();
        run.rows[0].survives = way.kind.survives().map(Into::into);
        run.written_bytes = written_bytes;
        Ok(run)
    }

    fn makes_files(&self, _: usize) -> bool {
        true
    }

    fn clear(&mut self, row: usize, site: &Site) -> Result<(), Error> {
        let way = self.ways[row];
        Folder::make(&way, self, site)?.clear(self.files)
    }

    /// Removes the folders. One that others still use goes with the run's own.
    fn finish(&mut self) -> Result<(), Error> {
        self.folders.drain(..).for_each(|folder| drop(fs::remove_dir(folder)));
        Ok(())
    }
}

/// The files of a rank in a folder.
struct Folder {
    path: PathBuf,
    /// The part of the files' names that says whose they are.
    whose: String,
    data: Vec<u8>,
}

impl Folder {
    /// Makes the folder, unless it is there.
    fn make(way: &Way, plan: &mut Plan, site: &Site) -> Result<Folder, Error> {
        let path = match way.is_shared {
            true => site.scratch.shared_file(NAME, "shared-tree", 0),
            false => site.file("own-tree", 0),
        };
        match fs::create_dir(&path) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                return Err(failed(&path, "mkdir", &error));
            }
            made => {
                // Which rank made a folder of all ranks is known to that rank alone.
                if made.is_ok() || !plan.folders.contains(&path) {
                    plan.folders.push(path.clone());
                }
            }
        }
        let mut data = vec![0; FILE_BYTES as usize];
        Data::new(site.peers.rank() as usize, 0).fill(&mut data);
        Ok(Folder { path, whose: whose(site, site.peers.rank()), data })
    }

    /// The files that a timed operation uses: of the next node's rank, where reads are shifted.
    fn of_others(&self, kind: Kind, site: &Site) -> Folder {
        let shift = if site.ranks.reorder && kind.is_read() { site.peers.shift() } else { 0 };
        let other = (site.peers.rank() + shift) % site.peers.ranks();
        Folder {
            path: site.scratch.of_rank(&self.path, other),
            whose: whose(site, other),
            data: self.data.clone(),
        }
    }

    fn file(&self, number: u32) -> PathBuf {
        self.path.join(format!("{NAME}-file{}-{number}.data", self.whose))
    }

    fn renamed(&self, number: u32) -> PathBuf {
        self.path.join(format!("{NAME}-renamed{}-{number}.data", self.whose))
    }

    /// Makes files with [`FILE_BYTES`] each.
    fn fill(&self, files: u32) -> Result<(), Error> {
        (0..files).try_for_each(|number| {
            let path = self.file(number);
            let made = File::create_new(&path).and_then(|mut file| file.write_all(&self.data));
            made.map_err(|error| failed(&path, "write", &error))
        })
    }

    /// Has the file system write all of it, and drop the files' pages (M9).
    fn settle(&self, files: u32) -> Result<SourceCache, Error> {
        let folder = File::open(&self.path).map_err(|error| failed(&self.path, "open", &error))?;
        syncfs(&folder).map_err(|errno| failed(&self.path, "syncfs", &errno.into()))?;
        let mut cache = SourceCache::Dropped;
        for number in 0..files {
            let path = self.file(number);
            let file = File::open(&path).map_err(|error| failed(&path, "open", &error))?;
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
        done.map_err(|error| failed(&path, kind.word(), &error))
    }

    /// Removes what is left of the files.
    fn clear(&self, files: u32) -> Result<(), Error> {
        for number in 0..files {
            for path in [self.file(number), self.renamed(number)] {
                match fs::remove_file(&path) {
                    Err(error) if error.kind() != ErrorKind::NotFound => {
                        return Err(failed(&path, "unlink", &error));
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }
}

fn read(path: &Path) -> io::Result<()> {
    let mut bytes = [0; FILE_BYTES as usize];
    File::open(path)?.read_exact(&mut bytes)
}

fn whose(site: &Site, rank: u32) -> String {
    if site.peers.are_many() { format!("-rank{rank}") } else { String::new() }
}

fn failed(path: &Path, what: &str, error: &io::Error) -> Error {
    Error::Failed(format!("{}: {what}: {error}", path.display()))
}
