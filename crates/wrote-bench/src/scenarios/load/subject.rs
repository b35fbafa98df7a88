//! The workload of a curve: a cell of a grid, or a row of the ladder, with or without a rate.

use crate::plan::Call;
use crate::scenarios::grid::{Grid, GridWorkload, called};
use crate::scenarios::ladder::Way;
use crate::scenarios::ladder::plan::Amounts;
use crate::scenarios::{ladder, peak, rand};
use crate::settings::{Common, STREAM_BS_BYTES};
use crate::site::Site;
use std::path::PathBuf;
use std::time::Duration;
use wrote_jobs::data::seed;
use wrote_jobs::jobs::{GroupReport, Permissions};
use wrote_jobs::rate::Rate;
use wrote_jobs::report::Before;
use wrote_jobs::spec::JobSpec;
use wrote_result::Error;
use wrote_result::document::{Blocks, SettingsPair};

/// Operations in flight: enough to make the device the limit instead of the queue.
const IODEPTH: u32 = 64;
/// Operations in flight while the files are filled.
const IODEPTH_FILL: u32 = 8;
/// The maximum size of a row's files: a run repeats them until its time is over.
const FILE_BYTES_MAX: u64 = 256 << 20;

/// A workload that runs at any rate.
#[derive(Clone, Debug)]
pub(super) struct Subject {
    /// `rand/read`, `small/o_dsync-each`.
    pub name: &'static str,
    pub numjobs: u32,
    pub job: JobSpec,
    /// The job that fills each file before the first run; without it each run creates its files.
    fill: Option<JobSpec>,
    /// The row of the ladder; `None` for a cell of a grid.
    way: Option<&'static Way>,
}

impl Subject {
    /// Returns the cell of a workload with default or requested settings.
    pub(super) fn of_grid(workload: &str, call: &Call) -> Result<Subject, Error> {
        let common = Common {
            iodepth: call.common.iodepth.or(Some(IODEPTH)),
            stream_bs_bytes: call.common.stream_bs_bytes.or(Some(STREAM_BS_BYTES)),
            ..call.common.clone()
        };
        let call = Call { only: &[workload.into()], common: &common, ..*call };
        let mut grid = of_workload(&call)?;
        // If there are several io_uring ways, the default one.
        if grid.cells.len() > 1 {
            grid.cells.retain(|cell| cell.name.ends_with("-registered"));
        }
        let fill = Some(grid.layout_job());
        let cell = grid.cells.remove(0);
        let job = JobSpec { name: cell.name, ..cell.spec };
        Ok(Subject { name: cell.workload, numjobs: grid.numjobs, job, fill, way: None })
    }

    /// Returns a row with default or requested settings.
    pub(super) fn of_row(way: &'static Way, call: &Call) -> Result<Subject, Error> {
        let common =
            Common { iodepth: call.common.iodepth.or(Some(IODEPTH)), ..call.common.clone() };
        let call = Call { only: &[way.name.into()], common: &common, ..*call };
        let mut sizes = Amounts::new(&call, None)?.sizes(way.workload, f64::MAX);
        if common.size_bytes.is_none() {
            let least = sizes.bs_bytes * u64::from(sizes.numjobs);
            sizes.size_bytes =
                (sizes.size_bytes.min(FILE_BYTES_MAX) / least).max(1).saturating_mul(least);
        }
        let in_place = way.blocks == Blocks::Written;
        let fill = in_place.then(|| sizes.fill(STREAM_BS_BYTES, IODEPTH_FILL));
        let job = way.job(&sizes, Duration::ZERO);
        Ok(Subject { name: way.name, numjobs: sizes.numjobs, job, fill, way: Some(way) })
    }

    /// Returns whether it writes beyond filling its files.
    pub(super) fn writes(&self) -> bool {
        self.job.rw.write
    }

    /// Returns the size of all threads' files.
    pub(super) fn file_bytes(&self) -> u64 {
        self.job.file_bytes.unwrap_or(0) * u64::from(self.numjobs)
    }

    /// Fills the files if runs read or overwrite them, and returns the bytes written.
    pub(super) fn prepare(&self, files: &[PathBuf], site: &Site) -> Result<u64, Error> {
        let Some(fill) = &self.fill else { return Ok(0) };
        let permissions = Permissions { fill: true, ..Permissions::default() };
        site.run_jobs(&fill.on_each(files, None), permissions)?;
        Ok(self.file_bytes())
    }

    /// Runs it once at a rate, or as fast as possible, and removes the files that the run created.
    pub(super) fn run(
        &self,
        files: &[PathBuf],
        rate: Option<Rate>,
        time: Duration,
        site: &Site,
    ) -> Result<GroupReport, Error> {
        let mut job = JobSpec { runtime: Some(time), ..self.job.clone() };
        if self.way.is_some() {
            // Different arrivals in each run.
            job.seed = seed();
        }
        let overwrite = self.fill.is_some();
        let permissions = Permissions { overwrite, fill: true, ..Permissions::default() };
        let group = site.run_jobs(&job.on_each(files, rate), permissions)?;
        if self.way.is_some() {
            ladder::clear(files, overwrite, site)?;
        }
        Ok(group)
    }

    /// Returns the disk's state before a run.
    pub(super) fn before(&self, files: &[PathBuf], site: &Site) -> Before {
        site.before(if self.fill.is_some() { files } else { &[] }, files)
    }

    /// Returns a run's settings as stated in a row.
    pub(super) fn stated(&self, settings: SettingsPair) -> SettingsPair {
        match self.way {
            Some(way) => way.stated(settings),
            None => settings,
        }
    }
}

/// Returns the workloads of all grids, in the order of measurement.
pub(super) fn workloads() -> impl Iterator<Item = &'static GridWorkload> {
    peak::WORKLOADS.iter().chain(rand::WORKLOADS)
}

/// Creates the grid with the requested workload.
fn of_workload(call: &Call) -> Result<Grid, Error> {
    let peak = called(peak::WORKLOADS, call, peak::grid)?;
    let grid = match peak {
        None => called(rand::WORKLOADS, call, rand::grid)?,
        peak => peak,
    };
    grid.ok_or_else(|| Error::Failed("no grid has that workload".into()))
}
