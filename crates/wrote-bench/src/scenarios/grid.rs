//! Scenarios that are a grid of jobs: what their cells are, and how large.

mod peak;
mod rand;
mod rounds;

use crate::bench::{Request, Ticker};
use crate::scenario::{Measured, Planned, Site};
use std::path::PathBuf;
use std::time::Duration;
use wrote::device::{Backing, Target};
use wrote_jobs::rate;
use wrote_jobs::rate::{Process, Rate};
use wrote_jobs::spec::{JobSpec, Rw};
use wrote_machine::space;
use wrote_machine::target::shown_target;
use wrote_result::{Error, units};

/// The most bytes of the file that cells read and write.
const FILE_BYTES_MAX: u64 = 1 << 30;
/// Runs of each cell.
const RUNS: u32 = 5;
/// What a run takes beside its clock: making ready, and clearing up.
const BESIDE: Duration = Duration::from_millis(60);

/// A scenario whose rows are cells of a grid.
#[derive(Clone, Debug)]
pub struct Grid {
    /// `peak`, `rand`.
    pub name: &'static str,
    /// What it answers.
    pub question: &'static str,
    pub cells: Vec<Cell>,
    /// How often each cell is run.
    pub runs: u32,
    /// Where a run of a cell is cut off.
    pub time: Duration,
    /// Bytes of the file of each job.
    pub file_bytes: u64,
    /// Threads, each with a file of its own.
    pub numjobs: u32,
    /// What the jobs of a run together are held to.
    pub rate: Option<Rate>,
}

/// One cell: a job that every thread of a run does.
#[derive(Clone, Debug)]
pub struct Cell {
    /// Unique in the result: `peak/write/512k-64-registered`.
    pub name: String,
    /// The group in which it is compared: `peak/write`.
    pub workload: &'static str,
    /// In words, at most 25 columns.
    pub words: String,
    /// The job; its files are decided when it is run.
    pub spec: JobSpec,
}

/// A scenario's name, and how its grid is made.
type Make = (&'static str, fn(&Request, &Target) -> Result<Grid, Error>);

/// What `Request::only` may name of the grids: a scenario, or a workload of one.
pub struct Named {
    pub scenario: &'static str,
    pub workload: &'static str,
    pub words: &'static str,
    /// Whether it has writes.
    pub writes: bool,
}

/// The workloads of all grids, in the order in which they are measured.
pub const NAMED: &[Named] = &[peak::READ, peak::WRITE, rand::READ, rand::WRITE, rand::MIX];

/// Whether `name` is a grid's or a workload's of one.
pub fn knows(name: &str) -> bool {
    NAMED.iter().any(|known| name == known.scenario || name == known.workload)
}

/// The grids that are called for by name. They are measured only when asked for: the ladder alone
/// takes a minute.
pub fn grids(request: &Request, target: &Target) -> Result<Vec<Grid>, Error> {
    let called = |name: &str| request.only.iter().any(|only| only == name);
    let is_called = |scenario: &str| {
        NAMED.iter().any(|named| {
            named.scenario == scenario && (called(named.scenario) || called(named.workload))
        })
    };
    let mut grids = Vec::new();
    for (name, make) in [peak::GRID, rand::GRID] {
        if !is_called(name) {
            continue;
        }
        let mut grid = make(request, target)?;
        grid.cells.retain(|cell| called(grid.name) || called(cell.workload));
        if grid.cells.is_empty() {
            let (size, file) = (units::bytes(grid.file_bytes), "the file that each job uses");
            return Err(Error::Usage(format!(
                "--bs: {name}: a block is longer than {file}, {size}"
            )));
        }
        grids.push(grid);
    }
    Ok(grids)
}

impl Grid {
    fn new(
        name: &'static str,
        question: &'static str,
        time: Duration,
        request: &Request,
        target: &Target,
    ) -> Result<Grid, Error> {
        let numjobs = request.numjobs.unwrap_or(1).max(1);
        request.rate.map_or(Ok(()), |rate| rate.check(numjobs, "jobs"))?;
        let budget = match target.capacity_bytes {
            0 => u64::MAX,
            capacity => space::budget(capacity, target.free_bytes),
        };
        let share = budget / u64::from(numjobs);
        let wanted = request.size_bytes.map_or(FILE_BYTES_MAX, |size| size / u64::from(numjobs));
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
        let shown = shown_target(target, None);
        if grid.file_bytes == 0 {
            return Err(Error::Usage(format!("--size: {name} needs at least 1 MiB of each job")));
        }
        space::check(grid.space_bytes_max(), grid.space_bytes_max(), &shown)?;
        Ok(grid)
    }

    /// Adds a cell. A block that is longer than the file makes no sense, and is left out.
    fn add(&mut self, workload: &'static str, suffix: &str, words: String, spec: JobSpec) {
        if spec.read_bs.most_bytes().max(spec.write_bs.most_bytes()) <= self.file_bytes {
            let name = format!("{workload}/{suffix}");
            self.cells.push(Cell { name, workload, words, spec });
        }
    }

    /// Removes what a measurement that failed left of the files.
    pub fn clear(&self, site: &Site) -> Result<(), Error> {
        rounds::clear(self, site)
    }

    /// Jobs that have the files written before anything is measured: each reads one block.
    pub fn layout(&self, files: &[PathBuf]) -> Vec<JobSpec> {
        one_for_each(files, &JobSpec { io_bytes: Some(4096), ..self.spec(READ, 4096, 1) })
    }

    /// A job on blocks that were written before, directly, through io_uring with all registered.
    fn spec(&self, rw: Rw, bs_bytes: u64, iodepth: u32) -> JobSpec {
        JobSpec {
            group_reporting: true,
            iodepth,
            file_bytes: Some(self.file_bytes),
            runtime: Some(self.time),
            ..JobSpec::new("", rw, bs_bytes)
        }
    }
}

impl Planned for Grid {
    fn runs_total(&self) -> u32 {
        self.runs * self.cells.len() as u32
    }

    /// The files' bytes.
    fn space_bytes_max(&self) -> u64 {
        self.file_bytes * u64::from(self.numjobs)
    }

    /// The most that is written: the files once, and what the cells write.
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
        (self.time + BESIDE) * self.runs_total()
    }

    fn measure(&self, site: &Site, ticker: &mut Ticker) -> Result<Measured, Error> {
        rounds::measure(self, site, ticker)
    }
}

impl Cell {
    /// The jobs of a run, one for each file. What all of them together are held to they share; each
    /// then goes on until its time is over.
    pub fn jobs(&self, files: &[PathBuf], rate: Option<Rate>) -> Vec<JobSpec> {
        let spec = JobSpec { name: self.name.clone(), ..self.spec.clone() };
        let mut jobs = one_for_each(files, &spec);
        let count = jobs.len() as u32;
        for (number, job) in (0..).zip(&mut jobs) {
            if let Some(rate) = rate {
                hold(job, rate.share(number, count));
                // At even distances jobs come in turn, and not all at once.
                if rate.process == Process::Linear {
                    job.startdelay = rate.mean_distance(self.bs_bytes()) * number;
                }
            }
        }
        jobs
    }

    /// Bytes of one operation.
    pub fn bs_bytes(&self) -> u64 {
        self.spec.read_bs.most_bytes().max(self.spec.write_bs.most_bytes())
    }

    /// The most bytes that are due within a time.
    pub fn due_bytes_max(&self, rate: Rate, time: Duration) -> u64 {
        rate.operations_max(self.bs_bytes(), time).saturating_mul(self.bs_bytes())
    }
}

/// Holds a job to a rate, of which reads and writes have their parts, until its time is over.
fn hold(job: &mut JobSpec, rate: Rate) {
    let parts = match (job.rw.read, job.rw.write) {
        (true, true) => {
            let reads = rate.percent(job.rwmixread_percent);
            [Some(reads), Some(rate.percent(100 - job.rwmixread_percent))]
        }
        (read, write) => [read.then_some(rate), write.then_some(rate)],
    };
    let [reads, writes] = parts;
    job.read_rate_bytes_per_s = reads.and_then(|rate| rate.bytes_per_s());
    job.write_rate_bytes_per_s = writes.and_then(|rate| rate.bytes_per_s());
    job.read_rate_iops = reads.and_then(|rate| rate.iops());
    job.write_rate_iops = writes.and_then(|rate| rate.iops());
    job.rate_process = rate.process;
    (job.time_based, job.io_bytes) = (true, None);
}

fn one_for_each(files: &[PathBuf], spec: &JobSpec) -> Vec<JobSpec> {
    let job = |(clone, file): (usize, &PathBuf)| JobSpec {
        clone: clone as u32,
        files: vec![file.clone()],
        seed: spec.seed + clone as u64,
        ..spec.clone()
    };
    files.iter().enumerate().map(job).collect()
}

const READ: Rw = Rw { read: true, write: false, random: false };
const WRITE: Rw = Rw { read: false, write: true, random: false };

/// Whether the device below the target has poll queues.
fn can_poll(target: &Target) -> bool {
    matches!(&target.backing, Backing::Block(device) if device.io_poll)
}

/// A size as a part of a name: `512k`, `2m`.
fn short(bytes: u64) -> String {
    match bytes {
        bytes if bytes.is_multiple_of(1 << 20) => format!("{}m", bytes >> 20),
        bytes if bytes.is_multiple_of(1 << 10) => format!("{}k", bytes >> 10),
        bytes => bytes.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use wrote::device::BlockDevice;
    use wrote_jobs::rate::Amount;

    fn target(io_poll: bool) -> Target {
        let device = BlockDevice {
            name: "nvme0n1".into(),
            major: 259,
            minor: 0,
            disks: Vec::new(),
            model: None,
            capacity_bytes: 1 << 40,
            rotational: false,
            scheduler: "none".into(),
            logical_block_bytes: 512,
            physical_block_bytes: 4096,
            write_cache: "write back".into(),
            fua: true,
            io_poll,
            nr_requests: 1023,
            transfer_bytes_max: 1 << 20,
        };
        Target {
            path: "/data".into(),
            mount_point: "/".into(),
            filesystem: "ext4".into(),
            mount_options: Vec::new(),
            capacity_bytes: 1 << 40,
            free_bytes: 1 << 39,
            read_only: false,
            in_memory: false,
            backing: Backing::Block(device),
        }
    }

    fn asked(only: &[&str]) -> Request {
        let only = only.iter().map(|name| name.to_string()).collect();
        Request { only, ..Request::new("/data".into()) }
    }

    fn names(request: &Request, io_poll: bool) -> Vec<String> {
        let grids = grids(request, &target(io_poll)).unwrap();
        grids.into_iter().flat_map(|grid| grid.cells).map(|cell| cell.name).collect()
    }

    #[test]
    fn no_grid_is_measured_or_made_unless_it_is_asked_for() {
        let tiny = Request { size_bytes: Some(1000), ..asked(&["ladder"]) };
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
        let request = Request {
            stream_bs_bytes: Some(1 << 20),
            small_bs_bytes: Some(8 << 10),
            iodepth: Some(3),
            ..asked(&["peak", "rand"])
        };
        let grids = grids(&request, &target(false)).unwrap();
        for cell in grids.iter().flat_map(|grid| &grid.cells) {
            let bs_bytes = if cell.name.starts_with("peak") { 1 << 20 } else { 8 << 10 };
            assert_eq!((cell.spec.read_bs.most_bytes(), cell.spec.iodepth), (bs_bytes, 3));
        }
    }

    #[test]
    fn what_is_announced_bounds_what_the_cells_are_told_to_write() {
        let request = Request { numjobs: Some(3), ..asked(&["peak", "rand"]) };
        for grid in grids(&request, &target(true)).unwrap() {
            let files = vec!["a".into(), "b".into(), "c".into()];
            let told: u64 = grid
                .cells
                .iter()
                .flat_map(|cell| cell.jobs(&files, None))
                .filter(|job| job.rw.write)
                .map(|job| job.io_bytes.unwrap_or(0))
                .sum();
            assert!(
                told * u64::from(grid.runs) + grid.space_bytes_max() <= grid.written_bytes_max()
            );
            assert!(grid.space_bytes_max() <= 3 << 30);
        }
    }

    #[test]
    fn every_job_of_a_run_has_a_file_and_an_order_of_its_own() {
        let grid = grids(&asked(&["rand"]), &target(false)).unwrap().remove(0);
        let jobs = grid.cells[0].jobs(&["a".into(), "b".into()], None);
        assert_eq!(jobs.len(), 2);
        assert_ne!(jobs[0].files, jobs[1].files);
        assert_ne!(jobs[0].seed, jobs[1].seed);
    }

    #[test]
    fn what_a_run_is_held_to_its_jobs_share_and_a_mix_divides() {
        let rate = Rate { amount: Amount::OperationsPerS(1000), process: Process::Poisson };
        let request = Request { rate: Some(rate), numjobs: Some(4), ..asked(&["rand"]) };
        let grid = grids(&request, &target(false)).unwrap().remove(0);
        assert_eq!(grid.time, rate::RUN_TIME);
        let files: Vec<PathBuf> = ["a", "b", "c", "d"].map(PathBuf::from).to_vec();
        for cell in &grid.cells {
            let jobs = cell.jobs(&files, grid.rate);
            let sum = |of: fn(&JobSpec) -> Option<u32>| jobs.iter().filter_map(of).sum::<u32>();
            let (reads, writes) = (sum(|job| job.read_rate_iops), sum(|job| job.write_rate_iops));
            let expected = match (cell.spec.rw.read, cell.spec.rw.write) {
                (true, true) => (700, 300),
                (true, false) => (1000, 0),
                _ => (0, 1000),
            };
            assert_eq!((reads, writes), expected, "{}", cell.name);
            // Nothing but its time ends it.
            assert!(jobs.iter().all(|job| job.time_based && job.io_bytes.is_none()));
        }
    }

    #[test]
    fn a_disk_without_room_is_refused_and_a_file_that_is_too_small_too() {
        let full = Target { capacity_bytes: 10 << 30, free_bytes: 1 << 30, ..target(false) };
        assert!(grids(&asked(&["rand"]), &full).is_err());
        let tiny = Request { size_bytes: Some(1000), ..asked(&["rand"]) };
        assert!(matches!(grids(&tiny, &target(false)), Err(Error::Usage(_))));
        let long = Request { stream_bs_bytes: Some(8 << 20), ..asked(&["peak"]) };
        let long = Request { size_bytes: Some(4 << 20), ..long };
        assert!(matches!(grids(&long, &target(false)), Err(Error::Usage(_))));
    }
}
