//! The scenario of `wrote fit`: a row for each pattern, alone and beside each neighbour.

use super::FitRequest;
use super::neighbour::{self, Neighbour};
use super::programs::{Pattern, Program};
use crate::burst;
use crate::measured::clear;
use crate::progress::Ticker;
use crate::request::Common;
use crate::rounds::Turn;
use crate::scenario::{Bounds, Call, Listed, Plan, Rows, Scenario, Scope, Site, boxed};
use crate::scenarios::sustained;
use crate::scratch::Scratch;
use std::path::PathBuf;
use std::time::Duration;
use wrote_jobs::buffers::seed;
use wrote_jobs::clock::clocked;
use wrote_jobs::findings::Evidence;
use wrote_jobs::report::Repeated;
use wrote_jobs::spec::{JobSpec, Rw};
use wrote_jobs::steps::{FileSpec, Running, Start, Step, Steps};
use wrote_machine::target::device_of;
use wrote_machine::usage::Usage;
use wrote_machine::watch;
use wrote_result::document::{
    Blocks, Direction, Finding, Flush, Ioengine, Row, Settings, SettingsPair, View,
};
use wrote_result::{Error, units};

const NAME: &str = "fit";
/// The shortest and the longest run.
const RUN: [Duration; 2] = [Duration::from_millis(200), Duration::from_secs(60)];
/// The shortest run on a device with a limit: the kernel lets two of its slices (0.2 s) through at
/// once.
const LIMITED_RUN: Duration = Duration::from_secs(1);
/// The length of a run, as a multiple of the interval of concurrent steps.
const BESIDE_TIMES: f64 = 2.2;
/// The size of the file that uses up a burst before each run.
const DRAIN_BYTES: u64 = 1 << 30;

pub(super) struct Suits(pub FitRequest);

/// Returns the name of a pattern's row, alone or beside a neighbour: `etcd/wal`, `etcd/wal+copy`.
pub(super) fn row_name(
    program: &Program,
    pattern: &Pattern,
    neighbour: Option<Neighbour>,
) -> String {
    let beside = neighbour.map_or(String::new(), |of| format!("+{}", of.as_str()));
    format!("{}/{}{beside}", program.name, pattern.name)
}

impl Scenario for Suits {
    fn name(&self) -> &'static str {
        NAME
    }

    fn catalogue(&self) -> Vec<Listed> {
        Vec::new()
    }

    fn takes_ranks(&self) -> bool {
        false
    }

    fn is_alone(&self) -> bool {
        true
    }

    fn plan(&self, call: &Call) -> Result<Vec<Box<dyn Plan>>, Error> {
        let limits = watch::limits(device_of(call.target));
        let is_limited = limits.iter().any(|limit| limit.of.starts_with("write"));
        let plan = SuitsPlan::new(&self.0, is_limited);
        let (needs, free) = (plan.space_bytes_max(), call.target.free_bytes);
        if needs > free {
            let [needs, free] = [needs, free].map(units::bytes);
            let path = self.0.path.display();
            return Err(Error::Failed(format!("{path}: needs {needs}, and {free} are free")));
        }
        let mut plans = Vec::new();
        if self.0.sustained.is_some() {
            let only = &[sustained::NAME.to_owned()];
            let common = &Common { time: self.0.sustained, ..call.common.clone() };
            let long = sustained::Long { idle: Some(Duration::ZERO) };
            plans = long.plan(&Call { only, common, ..*call })?;
        }
        plans.extend(boxed([plan]));
        Ok(plans)
    }

    fn findings(&self, evidence: &Evidence) -> Vec<Finding> {
        sustained::Long::default().findings(evidence)
    }
}

struct SuitsPlan {
    request: FitRequest,
    /// The shortest run.
    run_min: Duration,
    /// Each row's program, pattern and neighbour.
    rows: Vec<(usize, usize, Option<Neighbour>)>,
    /// The neighbours' folder, if it is a different one.
    elsewhere: Option<Scratch>,
}

impl SuitsPlan {
    fn new(request: &FitRequest, is_limited: bool) -> SuitsPlan {
        let mut rows = Vec::new();
        for (program, of) in request.programs.iter().enumerate() {
            for pattern in 0..of.patterns.len() {
                // Alone and beside a neighbour in turn (M8).
                rows.push((program, pattern, None));
                let beside = request.neighbours.iter();
                rows.extend(beside.map(|neighbour| (program, pattern, Some(*neighbour))));
            }
        }
        let run_min = if is_limited { LIMITED_RUN } else { RUN[0] };
        SuitsPlan { request: request.clone(), run_min, rows, elsewhere: None }
    }

    fn program(&self, row: usize) -> &Program {
        &self.request.programs[self.rows[row].0]
    }

    fn pattern(&self, row: usize) -> &Pattern {
        &self.program(row).patterns[self.rows[row].1]
    }

    fn jobs(&self) -> impl Iterator<Item = &Steps> {
        (0..self.rows.len()).map(|row| &self.pattern(row).job)
    }

    fn time(&self) -> Duration {
        let runs = self.request.runs * self.rows.len() as u32;
        (self.request.time / runs.max(1)).clamp(self.run_min, RUN[1])
    }

    /// Returns the time of a row's run, in which concurrent steps occur at least twice.
    fn time_of(&self, row: usize) -> Duration {
        let beside = self.pattern(row).job.beside.iter().filter_map(|every| every.interval_s);
        let least_s = beside.fold(0.0, f64::max) * BESIDE_TIMES;
        self.time().max(Duration::from_secs_f64(least_s))
    }

    /// Writes right before a run for as long as the run takes, to keep a drive's cache and a
    /// volume's credit used up. Returns the bytes written.
    fn drain(&self, site: &Site) -> Result<u64, Error> {
        if self.request.sustained.is_none() {
            return Ok(0);
        }
        let job = JobSpec {
            files: vec![site.file("drain", 0)],
            file_bytes: Some(DRAIN_BYTES),
            runtime: Some(self.time()),
            time_based: true,
            iodepth: 8,
            latencies: false,
            samples: false,
            ..JobSpec::new("drain", Rw { read: false, write: true, random: false }, 1 << 20)
        };
        burst::use_up(site, &[job])
    }
}

impl Rows for SuitsPlan {
    fn scope(&self) -> Scope {
        let question = "Does this disk suit the program?".into();
        Scope { name: NAME, question, runs: self.request.runs }
    }

    fn rows(&self) -> Vec<String> {
        let name = |row: usize| row_name(self.program(row), self.pattern(row), self.rows[row].2);
        (0..self.rows.len()).map(name).collect()
    }
}

impl Bounds for SuitsPlan {
    fn space_bytes_max(&self) -> u64 {
        let is_beside = !self.request.neighbours.is_empty();
        let beside = if is_beside { neighbour::FILE_BYTES } else { 0 };
        let drain = if self.request.sustained.is_some() { DRAIN_BYTES } else { 0 };
        self.jobs().map(Steps::space_bytes).max().unwrap_or(0) + beside + drain
    }

    /// Runs are limited by time, so the amount depends on the disk.
    fn written_bytes_max(&self) -> u64 {
        u64::MAX
    }

    fn written_bytes(&self) -> Option<u64> {
        None
    }

    fn estimate(&self) -> Duration {
        let drains = if self.request.sustained.is_some() { 2 } else { 1 };
        let round: Duration = (0..self.rows.len()).map(|row| self.time_of(row)).sum();
        round * drains * self.request.runs
    }
}

impl Plan for SuitsPlan {
    fn prepare(&mut self, _: &Site, _: &mut Ticker) -> Result<u64, Error> {
        if let Some(path) = &self.request.neighbour_path {
            self.elsewhere = Some(Scratch::make(path)?);
        }
        Ok(0)
    }

    fn run(&mut self, turn: Turn, site: &Site, _: &mut Ticker) -> Result<Repeated, Error> {
        let (pattern, neighbour) = (self.pattern(turn.row), self.rows[turn.row].2);
        let job = &pattern.job;
        let running = Running::new(job, &|name, set| site.file(name, set), seed())?;
        let drained_bytes = self.drain(site)?;
        let time = self.time_of(turn.row);
        let work = || clocked(&site.timer(), Usage::now, || running.run(time, u64::MAX, site.stop));
        let (done, mut run) = match neighbour {
            None => work()?,
            Some(neighbour) => {
                let folder = self.elsewhere.as_ref().unwrap_or(site.scratch);
                neighbour.beside(&|number| folder.file(NAME, "neighbour", number), work)?
            }
        };
        run.bytes = done.counts.written_bytes;
        run.throughput_bytes_per_s = run.bytes as f64 / run.elapsed_s;
        run.iops = done.transactions as f64 / run.elapsed_s;
        run.iodepth_reached = job.clients;
        run.max_rss_bytes = Some(Usage::now().max_rss_bytes);
        let survives = site.target.survives(wrote::Survives::of_write(job.is_durable(), false));
        let beside = neighbour.map_or(String::new(), |of| format!(", beside {}", of.as_str()));
        let settings = settings(job);
        let program = self.program(turn.row);
        // One table can contain many programs.
        let (workload, of_program) = match self.request.programs.len() {
            1 => (program.name.clone(), String::new()),
            _ => ("programs".into(), format!("{}: ", program.name)),
        };
        let row = Row {
            name: row_name(program, pattern, neighbour),
            workload,
            way: format!("{of_program}{}{beside}", pattern.label),
            view: Some(View::Operations),
            direction: Direction::Write,
            survives: Some(survives),
            settings: SettingsPair {
                asked: settings.clone(),
                effective: settings,
                fallbacks: Vec::new(),
            },
            ..Row::default()
        };
        let row = row.with_run(run);
        let mut run = Repeated::of_transactions(row, done.latencies_ns, done.flushes_ns);
        run.written_bytes += drained_bytes;
        Ok(run)
    }

    fn makes_files(&self, _: usize) -> bool {
        true
    }

    fn clear(&mut self, row: usize, site: &Site) -> Result<(), Error> {
        let job = &self.pattern(row).job;
        let set = |set| job.files.iter().map(move |file| site.file(&file.name, set));
        let files: Vec<PathBuf> = (0..job.sets()).flat_map(set).collect();
        clear(&files, site.scratch.path())
    }

    fn shared_files(&self, site: &Site) -> Vec<PathBuf> {
        self.request.sustained.map(|_| site.file("drain", 0)).into_iter().collect()
    }

    fn finish(&mut self, _: &Site) -> Result<(), Error> {
        self.elsewhere.take().map_or(Ok(()), Scratch::remove)
    }
}

/// Returns the settings of a job of steps, as far as one operation can describe them.
fn settings(job: &Steps) -> Settings {
    let is = |file: fn(&FileSpec) -> bool| job.files.iter().any(file);
    let flushes = |step: fn(&Step) -> bool| job.each.iter().any(step);
    let sync = if is(|file| file.dsync) {
        Flush::ODsyncEach
    } else if flushes(|step| matches!(step, Step::Fdatasync { .. })) {
        Flush::FdatasyncEach
    } else if flushes(|step| matches!(step, Step::Fsync { .. })) {
        Flush::FsyncEach
    } else {
        Flush::None
    };
    let blocks = match job.files[0].start {
        Start::Empty | Start::Absent => Blocks::New,
        Start::Allocated => Blocks::Allocated,
        Start::Zeros | Start::Written => Blocks::Written,
    };
    Settings {
        rw: "write".into(),
        ioengine: Ioengine::Psync,
        bs_bytes: job.transaction_bytes(),
        size_bytes: job.space_bytes(),
        iodepth: 1,
        numjobs: job.clients,
        direct: is(|file| file.direct),
        sync,
        blocks,
        ..Settings::default()
    }
}
