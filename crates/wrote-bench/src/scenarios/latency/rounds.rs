//! One run of each row: saves texts, and measures the time of each save.

use super::plan::{Amounts, SAVES_MIN, texts};
use super::{Kind, SaveRow, State, Way};
use crate::arrivals::Arrivals;
use crate::plan::{OneRun, Turn, Work};
use crate::progress::Ticker;
use crate::site::{self, Site};
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
use wrote_result::document::Row;

impl Work for Amounts {
    /// Saves texts by a row's method: one after another, or at a rate, each when it is due. Keeps
    /// the files.
    fn run(&mut self, row: &Row, at: Turn, site: &Site, _: &mut Ticker) -> Result<Repeated, Error> {
        let (of, most) = (self.rows[at.row], self.saves(at.round));
        let SaveRow { way: Way { kind, .. }, state, size_bytes } = of;
        let (kind, texts) = (*kind, texts(self.ready_texts(&of), size_bytes, seed()));
        let mut texts = texts.chunks(size_bytes as usize).cycle();
        let files = files(self, &of, site);
        let (folder, temporary) = (site.scratch.path(), site.file("temporary", 0));
        if state == State::Existing {
            make_old(&files[0], texts.next().expect("there is one"), folder)?;
        }
        let mut arrivals = Arrivals::seeded(self.rate, 0, 1, seed());
        let mut latencies = histogram();
        let (saves, mut run) = clocked(&site.timer()?, Usage::now, || {
            let until = self.slice.map(|slice| Instant::now() + slice);
            let mut paths = files.iter().cycle();
            for (saves, text) in (0..most).zip(&mut texts) {
                let path = paths.next().expect("there is one");
                // M5: in an open loop, the latency is counted from the time at which the save was
                // due.
                let due = arrivals.wait(text.len(), site.stop);
                site.stop.check()?;
                let due = due.unwrap_or_else(Instant::now);
                if saves >= SAVES_MIN && until.is_some_and(|until| due >= until) {
                    return Ok(saves);
                }
                save(kind, state, Place { path, folder, temporary: &temporary }, text)?;
                latencies.saturating_record(due.elapsed().as_nanos() as u64);
            }
            Ok(most)
        })?;
        run.bytes = size_bytes * u64::from(saves);
        run.throughput_bytes_per_s = run.bytes as f64 / run.elapsed_s;
        run.iops = f64::from(saves) / run.elapsed_s;
        run.max_rss_bytes = Some(Usage::now().max_rss_bytes);
        let effective = of.asked(saves.into(), self.rate);
        let run = OneRun { run, latencies, effective, fallbacks: Vec::new() };
        Ok(run.row(row, of.asked(self.saves_max().into(), self.rate)))
    }

    /// Removes the files, and waits until the file system has released them, so that the writeback
    /// of unflushed pages does not affect the latency of other rows.
    fn clear(&mut self, row: usize, site: &Site) -> Result<(), Error> {
        site::clear(&files(self, &self.rows[row], site), site.scratch.path())
    }
}

/// Returns the files of a row's run: one file for each text if the files are new, otherwise one.
fn files(amounts: &Amounts, row: &SaveRow, site: &Site) -> Vec<PathBuf> {
    site.files("text", if row.state == State::New { amounts.saves_max() } else { 1 })
}

/// Creates the initial file, and makes it durable.
fn make_old(path: &Path, text: &[u8], folder: &Path) -> Result<(), Error> {
    let made = File::create_new(path)
        .and_then(|mut file| file.write_all(text).and_then(|()| file.sync_all()))
        .and_then(|()| sync_folder(folder));
    made.map_err(|error| Error::Failed(format!("{}: {error}", path.display())))
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'a> {
    pub path: &'a Path,
    pub folder: &'a Path,
    /// The path to which the replacement is written first.
    pub temporary: &'a Path,
}

/// Saves the text: opens the file, writes, flushes as the method requires (M1), and closes.
pub(super) fn save(kind: Kind, state: State, place: Place, text: &[u8]) -> Result<(), Error> {
    let Place { path, folder, temporary } = place;
    let written = |options: &OpenOptions, path: &Path| {
        let mut file = options.open(path)?;
        file.write_all(text).map(|()| file)
    };
    // The calls of `std::fs::write` plus a flush, as in most programs that know fsync.
    let fs_write_fsync = |path: &Path| {
        let mut options = File::options();
        written(options.write(true).create(true).truncate(true), path)?.sync_all()
    };
    let (mut over, mut append) = (File::options(), File::options());
    // Neither of these options truncates the file.
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
    // The folder is flushed last: after the content is flushed and renamed.
    let saved = match kind.syncs_folder(state) {
        true => saved.and_then(|()| sync_folder(folder)),
        false => saved,
    };
    saved.map_err(|error| Error::Failed(format!("{}: {error}", path.display())))
}

pub(super) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}
