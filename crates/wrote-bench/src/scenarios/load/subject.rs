//! What a curve is of: a cell of a grid, or a row of the ladder, run at a rate or at none.

use crate::bench::STREAM_BS_BYTES;
use crate::measured::{self, OneRun, RowLabel};
use crate::request::Common;
use crate::scenario::{Call, Site};
use crate::scenarios::grid;
use crate::scenarios::grid::{Cell, Grid};
use crate::scenarios::ladder::job::Job;
use crate::scenarios::ladder::plan::{Plan, WHOLE};
use crate::scenarios::ladder::run;
use crate::scenarios::ladder::run::Place;
use crate::scenarios::ladder::{Sizes, Way};
use std::path::PathBuf;
use std::time::Duration;
use wrote::Ioengine;
use wrote_jobs::jobs;
use wrote_jobs::jobs::{GroupReport, Permissions};
use wrote_jobs::rate::Rate;
use wrote_jobs::report;
use wrote_result::Error;
use wrote_result::document::{Blocks, Flush, Row};

/// As many in flight as a device may want: else the queue would be the limit, not the device.
const IODEPTH: u32 = 64;
/// The most bytes of a row's file: a run begins again in it until its time is over.
const FILE_BYTES_MAX: u64 = 256 << 20;

/// A workload that can be run at any rate.
#[derive(Clone, Debug)]
pub(super) enum Subject {
    /// A cell of a grid that has no other.
    Cell(Box<Grid>),
    /// A row of the ladder.
    Row(&'static Way, Sizes),
}

/// What one run gave.
pub(super) enum Gave {
    Group(GroupReport),
    Run(Box<OneRun>),
}

impl Subject {
    /// The cell of a workload with the usual settings, or those that were asked for.
    pub(super) fn of_grid(workload: &str, call: &Call) -> Result<Subject, Error> {
        let common = Common {
            iodepth: call.common.iodepth.or(Some(IODEPTH)),
            stream_bs_bytes: call.common.stream_bs_bytes.or(Some(STREAM_BS_BYTES)),
            ..call.common.clone()
        };
        let call = Call { only: &[workload.into()], common: &common, target: call.target };
        let mut grid = grid::of_workload(&call)?;
        // Of ways of io_uring the usual one.
        if grid.cells.len() > 1 {
            grid.cells.retain(|cell| cell.name.ends_with("-registered"));
        }
        Ok(Subject::Cell(Box::new(grid)))
    }

    /// A row with its usual settings, or those that were asked for.
    pub(super) fn of_row(way: &'static Way, call: &Call) -> Result<Subject, Error> {
        let common = Common {
            iodepth: call.common.iodepth.or(Some(IODEPTH)),
            ..call.common.clone()
        };
        let call = Call { only: &[way.name.into()], common: &common, target: call.target };
        let mut sizes = Plan::new(&call)?.sizes(way.workload, f64::MAX);
        if common.size_bytes.is_none() {
            let least = sizes.bs_bytes * u64::from(sizes.numjobs);
            sizes.size_bytes =
                (sizes.size_bytes.min(FILE_BYTES_MAX) / least).max(1).saturating_mul(least);
        }
        Ok(Subject::Row(way, sizes))
    }

    /// `rand/read`, `small/o_dsync-each`.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Subject::Cell(grid) => cell(grid).workload,
            Subject::Row(way, _) => way.name,
        }
    }

    /// Whether it writes beyond making its files.
    pub(super) fn writes(&self) -> bool {
        match self {
            Subject::Cell(grid) => cell(grid).spec.rw.write,
            Subject::Row(..) => true,
        }
    }

    /// Bytes of one operation.
    pub(super) fn bs_bytes(&self) -> u64 {
        match self {
            Subject::Cell(grid) => cell(grid).bs_bytes(),
            Subject::Row(_, sizes) => sizes.bs_bytes,
        }
    }

    /// Threads, each with a file of its own.
    pub(super) fn numjobs(&self) -> u32 {
        match self {
            Subject::Cell(grid) => grid.numjobs,
            Subject::Row(_, sizes) => sizes.numjobs,
        }
    }

    /// Bytes of the files of all threads.
    pub(super) fn file_bytes(&self) -> u64 {
        match self {
            Subject::Cell(grid) => grid.file_bytes * u64::from(grid.numjobs),
            Subject::Row(_, sizes) => sizes.size_bytes,
        }
    }

    pub(super) fn files(&self, site: &Site) -> Vec<PathBuf> {
        site.files("data", self.numjobs())
    }

    /// Writes what is read or written over, before anything is measured; how many bytes that were.
    pub(super) fn prepare(&self, files: &[PathBuf], site: &Site) -> Result<u64, Error> {
        match self {
            Subject::Cell(grid) => {
                jobs::run(&grid.layout(files), OURS, site.stop, &mut ())?;
                Ok(self.file_bytes())
            }
            Subject::Row(way, sizes) if way.blocks == Blocks::Written => {
                let large = Some(STREAM_BS_BYTES)
                    .filter(|large| (sizes.size_bytes / u64::from(sizes.numjobs)) % large == 0);
                let job = Job {
                    ioengine: Ioengine::IoUring,
                    direct: true,
                    bs_bytes: large.unwrap_or(sizes.bs_bytes),
                    iodepth: 8,
                    flush: Flush::FdatasyncAtEnd,
                    blocks: Blocks::Allocated,
                    ..way.job(sizes)
                };
                Ok(run::run(&job, &place(files, WHOLE, site))?.run.bytes)
            }
            Subject::Row(..) => Ok(0),
        }
    }

    /// Runs it once at a rate, or as fast as it goes; what the next run is not to find is gone then.
    pub(super) fn run(
        &self,
        files: &[PathBuf],
        rate: Option<Rate>,
        time: Duration,
        site: &Site,
    ) -> Result<Gave, Error> {
        match self {
            Subject::Cell(grid) => {
                let mut jobs = cell(grid).jobs(files, rate);
                jobs.iter_mut().for_each(|job| job.runtime = Some(time));
                let mut groups = jobs::run(&jobs, OURS, site.stop, &mut ())?;
                Ok(Gave::Group(groups.remove(0)))
            }
            Subject::Row(way, sizes) => {
                let job = way.job(&Sizes { rate, ..*sizes });
                let measured = run::run(&job, &place(files, time, site))?;
                if way.blocks != Blocks::Written {
                    measured::clear(files, site.scratch.path())?;
                }
                Ok(Gave::Run(Box::new(measured)))
            }
        }
    }

    /// The row of the runs at one rate.
    pub(super) fn row(&self, files: &[PathBuf], rate: Rate, runs: Vec<Gave>, site: &Site) -> Row {
        match self {
            Subject::Cell(_) => {
                let groups: Vec<GroupReport> = runs.into_iter().filter_map(Gave::group).collect();
                report::repeated(&groups, &site.before(files, files)).remove(0)
            }
            Subject::Row(way, sizes) => {
                let runs: Vec<OneRun> = runs.into_iter().filter_map(Gave::run).collect();
                let survives = way.survives(&measured::effective(&runs), site.target);
                let label = RowLabel {
                    name: way.name,
                    workload: way.workload.as_str(),
                    words: way.words,
                    survives,
                    asked: way.job(&Sizes { rate: Some(rate), ..*sizes }).asked(),
                };
                measured::row(label, runs)
            }
        }
    }
}

/// The run made the files, below a folder of its own.
const OURS: Permissions = Permissions { overwrite: true, read_unwritten: false, overlap: false };

fn cell(grid: &Grid) -> &Cell {
    &grid.cells[0]
}

fn place<'a>(files: &'a [PathBuf], time: Duration, site: &Site<'a>) -> Place<'a> {
    Place { files, device: site.device(), time, stop: site.stop }
}

impl Gave {
    /// Operations per second.
    pub(super) fn iops(&self) -> f64 {
        match self {
            Gave::Run(measured) => measured.run.iops,
            Gave::Group(group) => {
                let operations = |job: &jobs::JobReport| job.read.operations + job.write.operations;
                let operations: u64 = group.jobs.iter().map(operations).sum();
                operations as f64 / group.elapsed.as_secs_f64().max(1e-9)
            }
        }
    }

    /// File bytes written.
    pub(super) fn written_bytes(&self) -> u64 {
        match self {
            Gave::Run(measured) => measured.run.bytes,
            Gave::Group(group) => group.jobs.iter().map(|job| job.write.bytes).sum(),
        }
    }

    fn group(self) -> Option<GroupReport> {
        match self {
            Gave::Group(group) => Some(group),
            Gave::Run(_) => None,
        }
    }

    fn run(self) -> Option<OneRun> {
        match self {
            Gave::Run(measured) => Some(*measured),
            Gave::Group(_) => None,
        }
    }
}
