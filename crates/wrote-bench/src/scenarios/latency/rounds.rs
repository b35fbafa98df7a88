//! One run of each row: saves texts in batches, timing each save.

use super::plan::{Amounts, SAVES_MIN, Texts};
use super::{Kind, SaveRow, State};
use crate::arrivals::Arrivals;
use crate::plan::{OneRun, Turn, Work};
use crate::progress::Ticker;
use crate::site::{self, Site};
use hdrhistogram::Histogram;
use rustix::fs::OFlags;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Instant;
use wrote_jobs::clock::clocked;
use wrote_jobs::data::seed;
use wrote_jobs::histogram;
use wrote_jobs::machine::usage::Usage;
use wrote_jobs::report::Repeated;
use wrote_result::Error;
use wrote_result::document::{Row, Run};

impl Work for Amounts {
    fn run(
        &mut self,
        row: &Row,
        turn: Turn,
        site: &Site,
        _: &mut Ticker,
    ) -> Result<Repeated, Error> {
        let (of, saves) = (self.rows[turn.row], self.saves(turn.round));
        let run = Saves::new(self, of, site).run(saves)?;
        Ok(run.row(row, of.asked(self.saves_max().into(), self.rate)))
    }

    fn clear(&mut self, row: usize, site: &Site) -> Result<(), Error> {
        Saves::new(self, self.rows[row], site).clear()
    }
}

struct Saves<'a> {
    amounts: &'a Amounts,
    row: SaveRow,
    site: &'a Site<'a>,
    texts: Texts,
    /// The file to be renamed to the target.
    temporary: PathBuf,
    /// One file per coexisting text.
    files: Vec<PathBuf>,
}

impl<'a> Saves<'a> {
    fn new(amounts: &'a Amounts, row: SaveRow, site: &'a Site<'a>) -> Saves<'a> {
        let batch_saves = amounts.batch_saves(&row);
        let bytes = u64::from(batch_saves) * row.size_bytes;
        Saves {
            amounts,
            row,
            site,
            texts: Texts::new(bytes as usize, seed()),
            temporary: site.file("temporary", 0),
            files: site.files("text", batch_saves),
        }
    }

    /// Saves texts in a row's way, in batches. Between batches, outside the clock, it creates texts
    /// and removes new files. The last batch's files stay.
    fn run(&mut self, saves: u32) -> Result<OneRun, Error> {
        let row = self.row;
        if row.state == State::Existing {
            self.make_old()?;
        }
        let mut latencies = histogram();
        let mut run = Run { iodepth_reached: 1, ..Run::default() };
        let batch_saves = self.amounts.batch_saves(&row);
        let until = self.amounts.slice.map(|slice| Instant::now() + slice);
        let mut done = 0;
        let mut is_over = false;
        while done < saves && !is_over {
            if done > 0 && row.state == State::New {
                self.clear()?;
            }
            let count = (saves - done).min(batch_saves);
            let (saved, batch) = self.batch(count, (done, until), &mut latencies)?;
            add(&mut run, batch);
            done += saved;
            // Each rank times as many batches.
            is_over = self
                .site
                .peers
                .agree("the end of a batch", saved < count, |all| Ok(all.contains(&true)))?;
        }
        let saves = done;
        run.bytes = row.size_bytes * u64::from(saves);
        run.throughput_bytes_per_s = run.bytes as f64 / run.elapsed_s;
        run.iops = f64::from(saves) / run.elapsed_s;
        run.max_rss_bytes = Some(Usage::now().max_rss_bytes);
        let effective = row.asked(saves.into(), self.amounts.rate);
        Ok(OneRun { run, latencies, effective, fallbacks: Vec::new() })
    }

    /// Saves these texts one after another, or each when it is due.
    fn batch(
        &mut self,
        count: u32,
        (done, until): (u32, Option<Instant>),
        latencies: &mut Histogram<u64>,
    ) -> Result<(u32, Run), Error> {
        let SaveRow { way, state, size_bytes } = self.row;
        let (kind, stop) = (way.kind, self.site.stop);
        let texts = self.texts.make(count as usize, size_bytes as usize);
        let (folder, temporary) = (self.site.scratch.path(), self.temporary.as_path());
        let files = &self.files;
        // Each batch starts again, so that the time between batches does not count as latency.
        let mut arrivals = Arrivals::seeded(self.amounts.rate, 0, 1, seed());
        let saves = || {
            let mut saved = 0;
            for (number, text) in texts.enumerate() {
                let path = &files[if state == State::New { number } else { 0 }];
                // M5: in an open loop, latency counts from when the save was due.
                let due = arrivals.wait(text.len(), stop);
                stop.check()?;
                let due = due.unwrap_or_else(Instant::now);
                if done + saved >= SAVES_MIN && until.is_some_and(|until| due >= until) {
                    break;
                }
                save(kind, state, Place { path, folder, temporary }, text)?;
                latencies.saturating_record(due.elapsed().as_nanos() as u64);
                saved += 1;
            }
            Ok(saved)
        };
        clocked(&self.site.timer(), Usage::now, saves)
    }

    /// Creates the initial file, durably.
    fn make_old(&mut self) -> Result<(), Error> {
        let path = &self.files[0];
        let size_bytes = self.row.size_bytes as usize;
        let text = self.texts.make(1, size_bytes).next().expect("one was asked for");
        let made = File::create_new(path)
            .and_then(|mut file| file.write_all(text).and_then(|()| file.sync_all()))
            .and_then(|()| sync_folder(self.site.scratch.path()));
        made.map_err(|error| Error::Failed(format!("{}: {error}", path.display())))
    }

    /// Removes the files, and waits until the file system has released them. Write-back of
    /// unflushed pages then does not affect other rows' latency.
    fn clear(&self) -> Result<(), Error> {
        site::clear(&self.files, self.site.scratch.path())
    }
}

fn add(run: &mut Run, batch: Run) {
    let sum = |ours: Option<u64>, theirs: Option<u64>| match (ours, theirs) {
        (Some(ours), Some(theirs)) => Some(ours + theirs),
        (ours, theirs) => ours.or(theirs),
    };
    let busiest = [run.cpu_busiest, batch.cpu_busiest].into_iter().flatten();
    run.cpu_busiest = busiest.max_by(|a, b| a.busy_share.total_cmp(&b.busy_share));
    run.elapsed_s += batch.elapsed_s;
    run.cpu_user_s += batch.cpu_user_s;
    run.cpu_system_s += batch.cpu_system_s;
    run.context_switches += batch.context_switches;
    run.device_written_bytes = sum(run.device_written_bytes, batch.device_written_bytes);
    run.device_writes = sum(run.device_writes, batch.device_writes);
    run.device_read_bytes = sum(run.device_read_bytes, batch.device_read_bytes);
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'a> {
    pub path: &'a Path,
    pub folder: &'a Path,
    /// The name under which the replacement is written.
    pub temporary: &'a Path,
}

/// Saves the text: opens, writes, flushes as the way requires (M1), and closes.
pub(super) fn save(kind: Kind, state: State, place: Place, text: &[u8]) -> Result<(), Error> {
    let Place { path, folder, temporary } = place;
    let written = |options: &OpenOptions, path: &Path| {
        let mut file = options.open(path)?;
        file.write_all(text).map(|()| file)
    };
    // The calls of `std::fs::write` plus a flush, as most programs that know fsync make them.
    let fs_write_fsync = |path: &Path| {
        let mut options = File::options();
        written(options.write(true).create(true).truncate(true), path)?.sync_all()
    };
    let (mut over, mut append) = (File::options(), File::options());
    // Neither truncates the file.
    over.write(true).create_new(state == State::New);
    append.append(true).create(true);
    let saved = match kind {
        Kind::WroteWrite => return Ok(wrote::write(path, text)?),
        Kind::FsWrite => fs::write(path, text),
        Kind::FsWriteFsync => fs_write_fsync(path),
        Kind::WriteFdatasync => written(&over, path).and_then(|file| file.sync_data()),
        Kind::ODsync => written(over.custom_flags(OFlags::DSYNC.bits() as i32), path).map(drop),
        Kind::Rename => fs::write(temporary, text).and_then(|()| fs::rename(temporary, path)),
        Kind::RenameFsync => fs_write_fsync(temporary).and_then(|()| fs::rename(temporary, path)),
        Kind::Append => written(&append, path).map(drop),
        Kind::AppendFdatasync => written(&append, path).and_then(|file| file.sync_data()),
    };
    // Always last: after the content is flushed and renamed.
    let saved = match kind.syncs_folder(state) {
        true => saved.and_then(|()| sync_folder(folder)),
        false => saved,
    };
    saved.map_err(|error| Error::Failed(format!("{}: {error}", path.display())))
}

pub(super) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}
