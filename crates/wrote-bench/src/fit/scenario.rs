//! The scenario of `wrote fit`: a row for each pattern, alone and beside each neighbour.

use super::FitRequest;
use super::neighbour::{self, Neighbour};
use super::programs::{Pattern, Program};
use crate::measured::clear;
use crate::progress::Ticker;
use crate::rounds::Turn;
use crate::scenario::{Call, Listed, Plan, Scenario, Scope, Site, boxed};
use crate::scratch::Scratch;
use std::path::PathBuf;
use std::time::Duration;
use wrote::Acknowledged;
use wrote_jobs::buffers::seed;
use wrote_jobs::clock::clocked;
use wrote_jobs::report::Repeated;
use wrote_jobs::steps::{FileSpec, Running, Start, Step, Steps};
use wrote_machine::usage::Usage;
use wrote_result::document::{
    Blocks, Direction, Flush, Ioengine, Row, Settings, SettingsPair, Survives, View,
};
use wrote_result::{Error, units};

const NAME: &str = "fit";
/// The shortest and the longest run.
const RUN: [Duration; 2] = [Duration::from_millis(200), Duration::from_secs(60)];

/// The scenario.
pub(super) struct Suits(pub FitRequest);

/// The name of a pattern's row, alone or beside a neighbour: `etcd/wal`, `etcd/wal+copy`.
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
        let plan = SuitsPlan::new(&self.0);
        let (needs, free) = (plan.space_bytes_max(), call.target.free_bytes);
        if needs > free {
            let [needs, free] = [needs, free].map(units::bytes);
            let path = self.0.path.display();
            return Err(Error::Failed(format!("{path}: needs {needs}, and {free} are free")));
        }
        Ok(boxed([plan]))
    }
}

struct SuitsPlan {
    request: FitRequest,
    /// Each row's program, pattern, and neighbour.
    rows: Vec<(usize, usize, Option<Neighbour>)>,
    /// The folder of the neighbours, where it is another one.
    elsewhere: Option<Scratch>,
}

impl SuitsPlan {
    fn new(request: &FitRequest) -> SuitsPlan {
        let mut rows = Vec::new();
        for (program, of) in request.programs.iter().enumerate() {
            for pattern in 0..of.patterns.len() {
                // Alone and beside a neighbour in turn (M8).
                rows.push((program, pattern, None));
                let beside = request.neighbours.iter();
                rows.extend(beside.map(|neighbour| (program, pattern, Some(*neighbour))));
            }
        }
        SuitsPlan { request: request.clone(), rows, elsewhere: None }
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

    /// The time of one run.
    fn time(&self) -> Duration {
        let runs = self.request.runs * self.rows.len() as u32;
        (self.request.time / runs.max(1)).clamp(RUN[0], RUN[1])
    }
}

impl Plan for SuitsPlan {
    fn scope(&self) -> Scope {
        let question = "Does this disk suit the program?".into();
        Scope { name: NAME, question, runs: self.request.runs }
    }

    fn rows(&self) -> Vec<String> {
        let name = |row: usize| row_name(self.program(row), self.pattern(row), self.rows[row].2);
        (0..self.rows.len()).map(name).collect()
    }

    fn space_bytes_max(&self) -> u64 {
        let is_beside = !self.request.neighbours.is_empty();
        let beside = if is_beside { neighbour::FILE_BYTES } else { 0 };
        self.jobs().map(Steps::space_bytes).max().unwrap_or(0) + beside
    }

    /// Runs are bounded by time: the disk decides.
    fn written_bytes_max(&self) -> u64 {
        u64::MAX
    }

    fn written_bytes(&self) -> Option<u64> {
        None
    }

    fn estimate(&self) -> Duration {
        self.time() * self.request.runs * self.rows.len() as u32
    }

    fn prepare(&mut self, _: &Site, _: &mut Ticker) -> Result<u64, Error> {
        if let Some(path) = &self.request.neighbour_path {
            self.elsewhere = Some(Scratch::make(path)?);
        }
        Ok(0)
    }

    fn run(&mut self, turn: Turn, site: &Site, _: &mut Ticker) -> Result<Repeated, Error> {
        let (pattern, neighbour) = (self.pattern(turn.row), self.rows[turn.row].2);
        let job = &pattern.job;
        let running = Running::new(job, &|name| site.file(name, 0), seed())?;
        let time = self.time();
        let work = || clocked(&site.timer(), Usage::now, || running.run(time, u64::MAX, site.stop));
        let (done, mut run) = match neighbour {
            None => work()?,
            Some(neighbour) => {
                let folder = self.elsewhere.as_ref().unwrap_or(site.scratch);
                neighbour.beside(folder.file(NAME, "neighbour", 0), work)?
            }
        };
        run.bytes = done.counts.written_bytes;
        run.throughput_bytes_per_s = run.bytes as f64 / run.elapsed_s;
        run.iops = done.transactions as f64 / run.elapsed_s;
        run.iodepth_reached = job.clients;
        run.max_rss_bytes = Some(Usage::now().max_rss_bytes);
        let survives = Acknowledged::new()
            .flushed(job.is_durable())
            .flush_reaches_device(site.target.flushes_reach_device())
            .in_memory(site.target.in_memory)
            .survives();
        let beside = neighbour.map_or(String::new(), |of| format!(", beside {}", of.as_str()));
        let settings = settings(job);
        let row = Row {
            name: row_name(self.program(turn.row), pattern, neighbour),
            workload: self.program(turn.row).name.clone(),
            way: format!("{}{beside}", job.words()),
            view: Some(View::Operations),
            direction: Direction::Write,
            survives: Some(Survives::from(survives)),
            settings: SettingsPair {
                asked: settings.clone(),
                effective: settings,
                fallbacks: Vec::new(),
            },
            ..Row::default()
        };
        let row = row.with_run(run);
        Ok(Repeated::of_transactions(row, done.latencies_ns, done.flushes_ns))
    }

    fn makes_files(&self, _: usize) -> bool {
        true
    }

    fn clear(&mut self, row: usize, site: &Site) -> Result<(), Error> {
        let files = self.pattern(row).job.files.iter();
        let files: Vec<PathBuf> = files.map(|file| site.file(&file.name, 0)).collect();
        clear(&files, site.scratch.path())
    }

    fn finish(&mut self, _: &Site) -> Result<(), Error> {
        self.elsewhere.take().map_or(Ok(()), Scratch::remove)
    }
}

/// The settings of a job of steps, as near as one operation describes them.
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
