//! One run of a cell: its jobs, run together.

use super::{BESIDE, Cell, Grid};
use crate::progress::Ticker;
use crate::rounds::Turn;
use crate::scenario::{self, Site};
use std::path::PathBuf;
use std::time::Duration;
use wrote_jobs::jobs::Permissions;
use wrote_jobs::report::Repeated;
use wrote_result::Error;
use wrote_result::document::{Direction, Row};

/// The files are of the run itself.
const OVERWRITE: Permissions =
    Permissions { overwrite: true, read_unwritten: false, overlap: false, fill: false };

impl scenario::Plan for Grid {
    fn scope(&self) -> scenario::Scope {
        scenario::Scope { name: self.name, question: self.question.into(), runs: self.runs }
    }

    fn rows(&self) -> Vec<String> {
        self.cells.iter().map(|cell| cell.name.clone()).collect()
    }

    fn space_bytes_max(&self) -> u64 {
        self.file_bytes * u64::from(self.numjobs)
    }

    /// The files once, and the writes of the cells.
    fn written_bytes_max(&self) -> u64 {
        let writing = self.cells.iter().filter(|cell| cell.spec.rw.write);
        let a_run = |cell: &Cell| match self.rate {
            Some(rate) => cell.due_bytes_max(rate, self.time),
            // A mix may happen to be all writes.
            None => cell.spec.io_bytes.unwrap_or(self.file_bytes) * u64::from(self.numjobs),
        };
        self.space_bytes_max() + writing.map(a_run).sum::<u64>() * u64::from(self.runs)
    }

    fn estimate(&self) -> Duration {
        (self.time + BESIDE) * self.runs * self.cells.len() as u32
    }

    /// Writes the files, which all cells share.
    fn prepare(&mut self, site: &Site, _: &mut Ticker) -> Result<u64, Error> {
        site.run_jobs(&self.layout(&self.shared_files(site)), OVERWRITE)?;
        Ok(self.space_bytes_max())
    }

    fn run(&mut self, turn: Turn, site: &Site, _: &mut Ticker) -> Result<Repeated, Error> {
        let files = self.shared_files(site);
        let group = site.run_jobs(&self.cells[turn.row].jobs(&files, self.rate), OVERWRITE)?;
        let mut run = Repeated::of(&group, &site.before(&files, &files));
        let cell = &self.cells[turn.row];
        for row in &mut run.rows {
            row.workload = cell.workload.into();
            row.way = cell.words.clone();
            if cell.spec.rw.read && cell.spec.rw.write {
                half_of_mix(row);
            }
        }
        Ok(run)
    }

    fn shared_files(&self, site: &Site) -> Vec<PathBuf> {
        site.files("data", self.numjobs)
    }
}

/// Forgets the counter of the other direction: its bytes are not foreign to the run (M7).
fn half_of_mix(row: &mut Row) {
    let read = row.direction == Direction::Read;
    row.way += if read { ": reads" } else { ": writes" };
    for run in &mut row.runs {
        *if read { &mut run.device_written_bytes } else { &mut run.device_read_bytes } = None;
    }
}
