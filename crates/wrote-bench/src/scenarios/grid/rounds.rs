//! The rounds of a grid: every cell in turn, and what they add up to.

use super::{Cell, Grid};
use crate::bench::Ticker;
use crate::measured;
use crate::rounds::in_turn;
use crate::scenario::{Measured, Planned, Site};
use std::path::PathBuf;
use wrote::device::BlockDevice;
use wrote_jobs::jobs;
use wrote_jobs::jobs::{GroupReport, Permissions};
use wrote_jobs::report;
use wrote_jobs::report::Before;
use wrote_result::Error;
use wrote_result::document::{Direction, Row, Scenario};

/// The grids' files have numbers from here on: no other scenario's.
const FIRST_FILE: u32 = 3000;

/// Runs every cell in turn, every second round backwards (M8), and tells what came out.
///
/// All cells use the same files, which are written before anything is measured.
pub(super) fn measure(grid: &Grid, site: &Site, ticker: &mut Ticker) -> Result<Measured, Error> {
    let files = files(grid, site);
    // The run made them, below a folder of its own.
    let permissions = Permissions { overwrite: true, ..Permissions::default() };
    let run_all = |jobs: &[_]| jobs::run(jobs, permissions, site.stop, &mut ());
    run_all(&grid.layout(&files))?;
    let mut reports: Vec<Vec<GroupReport>> = grid.cells.iter().map(|_| Vec::new()).collect();
    for index in in_turn(grid.cells.len(), grid.runs) {
        let cell = &grid.cells[index];
        ticker.tick(&cell.name);
        reports[index].extend(run_all(&cell.jobs(&files, grid.rate))?);
    }
    let written_bytes = reports.iter().flatten().flat_map(|group| &group.jobs);
    let written_bytes =
        written_bytes.map(|job| job.write.bytes).sum::<u64>() + grid.space_bytes_max();
    let cells = grid.cells.iter().zip(&reports);
    let device_counts = site.device().is_some_and(BlockDevice::counts);
    let settled = files.iter().cloned().collect();
    let before = Before::new(files[0].clone(), site.target.clone(), settled, device_counts);
    let rows = cells.flat_map(|(cell, reports)| rows(cell, reports, &before)).collect();
    let scenario =
        Scenario { name: grid.name.into(), question: grid.question.into(), rows, knee: None };
    if !site.keep {
        clear(grid, site)?;
    }
    Ok(Measured { scenario, written_bytes, left_out: Vec::new() })
}

/// One for each thread.
fn files(grid: &Grid, site: &Site) -> Vec<PathBuf> {
    (0..grid.numjobs).map(|number| site.scratch.job_file(FIRST_FILE + number)).collect()
}

/// Removes the files.
pub(super) fn clear(grid: &Grid, site: &Site) -> Result<(), Error> {
    measured::clear(&files(grid, site), site.scratch.path())
}

fn rows(cell: &Cell, reports: &[GroupReport], before: &Before) -> Vec<Row> {
    let mut rows = report::repeated(reports, before);
    for row in &mut rows {
        row.workload = cell.workload.into();
        row.way = cell.words.clone();
        if cell.spec.rw.read && cell.spec.rw.write {
            half_of_mix(row);
        }
    }
    rows
}

/// The device's counters are of both directions: what it did in the other one is not foreign to the
/// run (M7).
fn half_of_mix(row: &mut Row) {
    let read = row.direction == Direction::Read;
    row.way += if read { ": reads" } else { ": writes" };
    for run in &mut row.runs {
        *if read { &mut run.device_written_bytes } else { &mut run.device_read_bytes } = None;
    }
}
