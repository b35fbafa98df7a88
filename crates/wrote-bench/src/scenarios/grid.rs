//! Scenarios that consist of a grid of jobs, with their cells and sizes.

use crate::calibration::{Calibration, Wanted};
use crate::plan::{Call, Plan, Prepared, RUNS, RowSpec, Turn, Work};
use crate::progress::Ticker;
use crate::scenario::Listed;
use crate::settings::Common;
use crate::site::Site;
use std::path::PathBuf;
use std::time::Duration;
use wrote::Survives;
use wrote::device::Target;
use wrote_jobs::jobs::Permissions;
use wrote_jobs::machine::target;
use wrote_jobs::rate;
use wrote_jobs::rate::Rate;
use wrote_jobs::report::Repeated;
use wrote_jobs::spec::{JobSpec, READ, Rw};
use wrote_result::document::{Cell, Direction, Row, View};
use wrote_result::{Error, units};

/// The maximum size of the file that the cells read and write.
const FILE_BYTES_MAX: u64 = 1 << 30;
/// The divisor of all bytes that may be written: the file takes at most the quotient.
const FILE_PART: u64 = 4;

/// A scenario whose rows are the cells of a grid.
#[derive(Clone, Debug)]
pub(crate) struct Grid {
    /// The scenario's name: `peak`, `rand`.
    pub name: &'static str,
    pub question: &'static str,
    pub cells: Vec<GridCell>,
    pub runs: u32,
    /// The time limit of a run of a cell.
    pub time: Duration,
    pub file_bytes: u64,
    pub numjobs: u32,
    /// The total rate of all jobs of a run.
    pub rate: Option<Rate>,
}

/// One cell: a job that each thread of a run executes.
#[derive(Clone, Debug)]
pub(crate) struct GridCell {
    /// A name that is unique in the result: `peak/write/512k-64-registered`.
    pub name: String,
    /// The group of cells that are compared with each other: `peak/write`.
    pub workload: &'static str,
    /// The row of the cell, with a description of at most 25 columns.
    row: Row,
    /// The job. Its files are chosen for each run.
    pub spec: JobSpec,
}

/// A workload of a grid that a request may name.
pub(crate) struct GridWorkload {
    /// The scenario's name: `peak`, `rand`.
    pub scenario: &'static str,
    /// The workload's name: `peak/read`.
    pub workload: &'static str,
    pub words: &'static str,
    pub writes: bool,
}

impl GridWorkload {
    pub(super) const fn new(
        scenario: &'static str,
        workload: &'static str,
        words: &'static str,
        writes: bool,
    ) -> GridWorkload {
        GridWorkload { scenario, workload, words, writes }
    }

    pub(super) fn listed(&self) -> Listed {
        Listed {
            scenario: self.scenario,
            row: self.workload,
            way: self.words,
            survives: self.writes.then_some(Survives::OsCrash),
        }
    }
}

/// Returns the grid with its requested cells; `None` if no cell is requested. Grids are measured
/// only on request, so that the default run is short.
pub(super) fn called(
    workloads: &[GridWorkload],
    call: &Call,
    make: fn(&Call) -> Result<Grid, Error>,
) -> Result<Option<Grid>, Error> {
    if !workloads.iter().any(|of| call.names(of.scenario, of.workload)) {
        return Ok(None);
    }
    let mut grid = make(call)?;
    grid.cells.retain(|cell| call.names(grid.name, cell.workload));
    if grid.cells.is_empty() {
        let (size, file) = (units::bytes(grid.file_bytes), "the file that each job uses");
        let name = grid.name;
        return Err(Error::Usage(format!("--bs: {name}: a block is longer than {file}, {size}")));
    }
    grid.keep_to_wear(call.common.written_bytes_max(call.target));
    Ok(Some(grid))
}

impl Grid {
    pub(super) fn new(
        name: &'static str,
        question: &'static str,
        time: Duration,
        call: &Call,
    ) -> Result<Grid, Error> {
        let request = call.common;
        let numjobs = request.numjobs.unwrap_or(1).max(1);
        let sizes = [request.stream_bs_bytes, request.small_bs_bytes];
        let mut sizes = sizes.into_iter().flatten();
        sizes.try_for_each(|bytes| Common::check_direct(bytes, call.target))?;
        request.rate.map_or(Ok(()), |rate| rate.check(numjobs, "jobs"))?;
        let share = target::room_bytes(call.target) / u64::from(numjobs);
        let usual = FILE_BYTES_MAX.min(request.written_bytes_max(call.target) / FILE_PART);
        let wanted = request.size_bytes.map_or(usual, |size| size / u64::from(numjobs));
        let file_bytes = if request.size_bytes.is_some() { wanted } else { wanted.min(share) };
        let grid = Grid {
            name,
            question,
            cells: Vec::new(),
            runs: request.runs.unwrap_or(RUNS),
            time: request.time.unwrap_or(if request.rate.is_some() {
                rate::RUN_TIME
            } else {
                time
            }),
            file_bytes: file_bytes >> 20 << 20,
            numjobs,
            rate: request.rate,
        };
        if grid.file_bytes == 0 {
            return Err(Error::Usage(format!("--size: {name} needs at least 1 MiB of each job")));
        }
        target::check_room(grid.space_bytes(), grid.space_bytes(), call.target)?;
        Ok(grid)
    }

    /// Shortens the runs that write if together they would write more than `bytes`. The file is
    /// written once, and keeps its size.
    fn keep_to_wear(&mut self, bytes: u64) {
        let left = bytes.saturating_sub(self.space_bytes());
        let runs = u64::from(self.runs) * u64::from(self.numjobs);
        let writing = self.cells.iter_mut().filter(|cell| cell.spec.order.rw.write);
        let writing: Vec<&mut GridCell> = writing.collect();
        let share = left / (runs * writing.len() as u64).max(1);
        for cell in writing {
            let block = cell.spec.bs_bytes_max();
            let usual = cell.spec.pace.io_bytes.unwrap_or(self.file_bytes);
            cell.spec.pace.io_bytes = Some((usual.min(share) / block).max(1) * block);
        }
    }

    /// Adds a cell, unless its block is larger than the file.
    pub(super) fn add(
        &mut self,
        workload: &'static str,
        suffix: &str,
        way: String,
        cell: Option<Cell>,
        spec: JobSpec,
    ) {
        if spec.bs_bytes_max() <= self.file_bytes {
            let name = format!("{workload}/{suffix}");
            let row = Row {
                name: name.clone(),
                workload: workload.into(),
                way,
                view: Some(View::Operations),
                cell,
                ..Row::default()
            };
            self.cells.push(GridCell { name, workload, row, spec });
        }
    }

    /// Returns a job that lays out one file, and reads one block of it.
    pub(crate) fn layout_job(&self) -> JobSpec {
        self.spec(READ, 4096, 1).with(|job| job.pace.io_bytes = Some(4096))
    }

    /// Returns a job on preallocated, written blocks: direct I/O, through io_uring with everything
    /// registered.
    pub(super) fn spec(&self, rw: Rw, bs_bytes: u64, iodepth: u32) -> JobSpec {
        JobSpec::new("", rw, bs_bytes).with(|job| {
            (job.io.iodepth, job.files.file_bytes) = (iodepth, Some(self.file_bytes));
            job.pace.runtime = Some(self.time);
        })
    }
}

impl GridCell {
    pub(crate) fn jobs(&self, files: &[PathBuf], rate: Option<Rate>) -> Vec<JobSpec> {
        self.spec.clone().with(|job| job.name = self.name.clone()).on_each(files, rate)
    }

    pub(crate) fn due_bytes_max(&self, rate: Rate, time: Duration) -> u64 {
        let bs_bytes = self.spec.bs_bytes_max();
        rate.operations_max(bs_bytes, time).saturating_mul(bs_bytes)
    }
}

pub(super) fn can_poll(target: &Target) -> bool {
    target.device.as_ref().is_ok_and(|device| device.io_poll)
}

/// Formats a size for use in a name: `512k`, `2m`.
pub(super) fn short(bytes: u64) -> String {
    match bytes {
        bytes if bytes.is_multiple_of(1 << 20) => format!("{}m", bytes >> 20),
        bytes if bytes.is_multiple_of(1 << 10) => format!("{}k", bytes >> 10),
        bytes => bytes.to_string(),
    }
}

/// The permissions of a run, which may overwrite the files because it created them.
const OVERWRITE: Permissions = Permissions {
    overwrite: true,
    read_unwritten: false,
    overlap: false,
    fill: false,
    extend: false,
    devices: false,
};

impl Grid {
    /// Returns the plan of the cells.
    pub(super) fn plan(self, speed: Option<&Calibration>) -> Plan<'static> {
        let rows = self.cells.iter().map(|cell| self.row(cell, speed)).collect();
        let (runs, space_bytes) = (self.runs, self.space_bytes());
        Plan {
            runs,
            space_bytes,
            prepared_bytes: space_bytes,
            shares_files: true,
            wants: Wanted::Stream,
            ..Plan::new(self.name, self.question, rows, self)
        }
    }

    /// Returns the specification of a cell's row.
    fn row(&self, cell: &GridCell, speed: Option<&Calibration>) -> RowSpec {
        // A mix of reads and writes may happen to consist of writes only.
        let all = cell.spec.pace.io_bytes.unwrap_or(self.file_bytes) * u64::from(self.numjobs);
        let bytes_max = match self.rate {
            _ if !cell.spec.order.rw.write => 0,
            Some(rate) => cell.due_bytes_max(rate, self.time),
            None => all,
        };
        // Random operations are far slower than a stream, so their time limit ends them.
        let whole = speed.filter(|_| self.rate.is_none() && !cell.spec.order.rw.random);
        let time = whole.map_or(self.time, |speed| {
            let in_flight =
                cell.spec.bs_bytes_max() * u64::from(cell.spec.io.iodepth * self.numjobs);
            speed.time_of(all).min(self.time + speed.time_of(in_flight))
        });
        RowSpec { row: cell.row.clone(), time, bytes_max, ..RowSpec::default() }
    }

    fn space_bytes(&self) -> u64 {
        self.file_bytes * u64::from(self.numjobs)
    }

    fn files(&self, site: &Site) -> Vec<PathBuf> {
        site.job_files("data", self.numjobs)
    }
}

impl Work for Grid {
    fn prepare(&mut self, site: &Site, _: &mut Ticker) -> Result<Prepared, Error> {
        let layout = self.layout_job().on_each(&self.files(site), None);
        site.run_jobs(&layout, OVERWRITE, &mut ())?;
        Ok(Prepared { written_bytes: self.space_bytes(), ..Prepared::default() })
    }

    fn run(&mut self, row: &Row, at: Turn, site: &Site, _: &mut Ticker) -> Result<Repeated, Error> {
        let (files, cell) = (self.files(site), &self.cells[at.row]);
        let group = site.run_jobs(&cell.jobs(&files, self.rate), OVERWRITE, &mut ())?;
        let is_mix = cell.spec.order.rw.read && cell.spec.order.rw.write;
        let of_both = |direction| Row {
            name: format!("{}/{direction}", row.name),
            way: format!("{}: {direction}s", row.way),
            ..row.clone()
        };
        let mut run = Repeated::of(&group, &site.before(&files, &files), |direction, settings| {
            let row = if is_mix { of_both(direction) } else { row.clone() };
            Row { settings, ..row }
        });
        if is_mix {
            run.rows.iter_mut().for_each(ignore_other_half);
        }
        Ok(run)
    }

    fn finish(&mut self, site: &Site) -> Result<(), Error> {
        site.clear_shared(&self.files(site))
    }
}

/// Ignores the device's counter of the other direction, whose bytes are not foreign to the run
/// (M7).
fn ignore_other_half(row: &mut Row) {
    let read = row.direction == Direction::Read;
    for run in &mut row.runs {
        *if read { &mut run.device_written_bytes } else { &mut run.device_read_bytes } = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{Asked, asked};
    use crate::scenarios::{peak, rand};
    use std::collections::HashSet;
    use wrote::device::BlockDevice;
    use wrote_jobs::rate::Amount;
    use wrote_jobs::sample::place;
    use wrote_result::document::Process;

    fn target(io_poll: bool) -> Target {
        let mut device = BlockDevice::default();
        (device.name, device.capacity_bytes) = ("nvme0n1".into(), 1 << 40);
        (device.logical_block_bytes, device.physical_block_bytes) = (512, 4096);
        (device.io_poll, device.nr_requests) = (io_poll, 1023);
        device.transfer_bytes_max = 1 << 20;
        let mut target = place(1 << 40, 1 << 39);
        target.device = Ok(device);
        target
    }

    fn grids(request: &Asked, target: &Target) -> Result<Vec<Grid>, Error> {
        let of = |_: &_, call: &Call| {
            Ok([
                called(peak::WORKLOADS, call, peak::grid)?,
                called(rand::WORKLOADS, call, rand::grid)?,
            ]
            .into_iter()
            .flatten()
            .collect())
        };
        request.plan(target, of)
    }

    fn names(request: &Asked, io_poll: bool) -> Vec<String> {
        let grids = grids(request, &target(io_poll)).unwrap();
        grids.into_iter().flat_map(|grid| grid.cells).map(|cell| cell.name).collect()
    }

    #[test]
    fn no_grid_is_measured_or_made_unless_it_is_asked_for() {
        let tiny = Asked { size_bytes: Some(1000), ..asked(&["ladder"]) };
        assert!(grids(&tiny, &target(true)).unwrap().is_empty());
        assert_eq!(names(&asked(&[]), true), [""; 0]);
        assert_eq!(names(&asked(&["ladder", "stream"]), true), [""; 0]);
    }

    #[test]
    fn a_scenario_is_all_of_its_workloads_and_every_cell_has_a_name_of_its_own() {
        for (scenario, cells) in [("peak", 2 * 3 * 2 * 4), ("rand", 3 * 4)] {
            let names = names(&asked(&[scenario]), true);
            assert_eq!(names.len(), cells);
            assert_eq!(names.iter().collect::<HashSet<_>>().len(), cells);
            assert!(names.iter().all(|name| name.starts_with(&format!("{scenario}/"))));
        }
        let reads = names(&asked(&["peak/read"]), true);
        assert!(reads.len() == 24 && reads.iter().all(|name| name.starts_with("peak/read/")));
    }

    #[test]
    fn cells_are_polled_only_where_the_device_has_poll_queues() {
        let polled = |name: &String| name.ends_with("-polled");
        assert!(names(&asked(&["peak"]), true).iter().any(polled));
        assert!(!names(&asked(&["peak"]), false).iter().any(polled));
    }

    #[test]
    fn a_block_size_or_depth_that_is_asked_for_is_the_only_one() {
        let request = Asked {
            stream_bs_bytes: Some(1 << 20),
            small_bs_bytes: Some(8 << 10),
            iodepth: Some(3),
            ..asked(&["peak", "rand"])
        };
        let grids = grids(&request, &target(false)).unwrap();
        for cell in grids.iter().flat_map(|grid| &grid.cells) {
            let bs_bytes = if cell.name.starts_with("peak") { 1 << 20 } else { 8 << 10 };
            assert_eq!((cell.spec.order.read_bs.most_bytes(), cell.spec.io.iodepth), (bs_bytes, 3));
        }
    }

    #[test]
    fn the_announced_bytes_bound_those_of_the_cells() {
        let request = Asked { numjobs: Some(3), ..asked(&["peak", "rand"]) };
        for grid in grids(&request, &target(true)).unwrap() {
            let files = vec!["a".into(), "b".into(), "c".into()];
            let plan = grid.clone().plan(None);
            let told: u64 = grid
                .cells
                .iter()
                .flat_map(|cell| cell.jobs(&files, None))
                .filter(|job| job.order.rw.write)
                .map(|job| job.pace.io_bytes.unwrap_or(0))
                .sum();
            let written_bytes = told * u64::from(grid.runs) + plan.space_bytes;
            assert!(written_bytes <= plan.written_bytes_max());
            assert!(plan.space_bytes <= 3 << 30);
        }
    }

    #[test]
    fn every_job_of_a_run_has_a_file_and_an_order_of_its_own() {
        let grid = grids(&asked(&["rand"]), &target(false)).unwrap().remove(0);
        let jobs = grid.cells[0].jobs(&["a".into(), "b".into()], None);
        assert_eq!(jobs.len(), 2);
        assert_ne!(jobs[0].files.paths, jobs[1].files.paths);
        assert_ne!(jobs[0].seed, jobs[1].seed);
    }

    #[test]
    fn the_jobs_share_a_runs_rate_and_a_mix_divides_it() {
        let rate = Rate { amount: Amount::OperationsPerS(1000), process: Process::Poisson };
        let request = Asked { rate: Some(rate), numjobs: Some(4), ..asked(&["rand"]) };
        let grid = grids(&request, &target(false)).unwrap().remove(0);
        assert_eq!(grid.time, rate::RUN_TIME);
        let files: Vec<PathBuf> = ["a", "b", "c", "d"].map(PathBuf::from).to_vec();
        for cell in &grid.cells {
            let jobs = cell.jobs(&files, grid.rate);
            let sum = |of: fn(&JobSpec) -> Option<u32>| jobs.iter().filter_map(of).sum::<u32>();
            let (reads, writes) =
                (sum(|job| job.pace.read_rate_iops), sum(|job| job.pace.write_rate_iops));
            let expected = match (cell.spec.order.rw.read, cell.spec.order.rw.write) {
                (true, true) => (700, 300),
                (true, false) => (1000, 0),
                _ => (0, 1000),
            };
            assert_eq!((reads, writes), expected, "{}", cell.name);
            // The job stops only at its time limit.
            assert!(jobs.iter().all(|job| job.pace.time_based && job.pace.io_bytes.is_none()));
        }
    }

    #[test]
    fn a_disk_without_room_is_refused_and_a_file_that_is_too_small_too() {
        let mut full = target(false);
        (full.capacity_bytes, full.free_bytes) = (10 << 30, 1 << 30);
        assert!(grids(&asked(&["rand"]), &full).is_err());
        let tiny = Asked { size_bytes: Some(1000), ..asked(&["rand"]) };
        assert!(matches!(grids(&tiny, &target(false)), Err(Error::Usage(_))));
        let long = Asked { stream_bs_bytes: Some(8 << 20), ..asked(&["peak"]) };
        let long = Asked { size_bytes: Some(4 << 20), ..long };
        assert!(matches!(grids(&long, &target(false)), Err(Error::Usage(_))));
    }
}
