//! The main job: from what was asked to the result document.

use crate::rounds::STREAM_BS_BYTES;
use crate::scenario::{Planned, Site};
use crate::scenarios;
use crate::scenarios::ladder;
use crate::scenarios::ladder::plan::Plan;
use crate::scenarios::ladder::{WAYS, Way};
use crate::scenarios::{append, grid, latency, load, sustained, ways};
use crate::scratch;
use crate::scratch::Scratch;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use wrote::Engine;
use wrote::device::{self, BlockDevice, Target};
use wrote_jobs::data::Data;
use wrote_jobs::findings::Evidence;
use wrote_jobs::rate::{Process, Rate};
use wrote_machine::host;
use wrote_machine::target::{device_of, shown_target};
use wrote_machine::watch as machine;
use wrote_machine::watch::Watch;
use wrote_result::document::{Document, Program, Row, SCHEMA};
use wrote_result::{Error, Stop, units};

/// The generator is measured in pieces of the stream's size, and of this one at most.
const GENERATOR_BS_BYTES_MAX: u64 = 16 << 20;

/// What was asked of a benchmark. Values left `None` are chosen from what lies under the path.
#[derive(Clone, Debug)]
pub struct Request {
    /// The folder to write in. A folder of the run's own is made below it.
    pub path: PathBuf,
    /// Names of scenarios, workloads or rows to measure; all where empty.
    pub only: Vec<String>,
    /// File bytes of one run, over all its threads.
    pub size_bytes: Option<u64>,
    /// Where a run is cut off. By default half a second; a stream of a size that was asked for is
    /// written whole.
    pub time: Option<Duration>,
    /// How many runs of each row.
    pub runs: Option<u32>,
    /// Bytes of one write of the stream.
    pub stream_bs_bytes: Option<u64>,
    /// Bytes of one small write.
    pub small_bs_bytes: Option<u64>,
    /// Writes in flight at once, of the io_uring rows.
    pub iodepth: Option<u32>,
    /// Threads, each with a file of its own.
    pub numjobs: Option<u32>,
    /// Messages of one run of the scenario `append`. By default as many as each way takes in a third of
    /// a second, at most 400 000.
    pub messages: Option<u64>,
    /// The shortest and the longest message of `append`, in bytes.
    pub message_bytes: Option<(u32, u32)>,
    /// How many producers append to a log at once, each number in rows of its own; 4 and 64 where
    /// empty.
    pub producers: Vec<u32>,
    /// What those producers are.
    pub append_as: AppendAs,
    /// How often each text of the scenario `latency` is saved by each way, over all runs; 1000 by
    /// default.
    pub iterations: Option<u32>,
    /// How long those texts are, in bytes; 500, 1000, 2000 and 10 000 where empty.
    pub save_bytes: Vec<u64>,
    /// The rate that every workload is held to (M5); none where the next operation begins when one is
    /// acknowledged.
    pub rate: Option<Rate>,
    /// Instead of measuring what is called for once, do it at rising rates: the scenario `load`.
    pub load_curve: bool,
    /// When the operations of that scenario are due.
    pub load_process: Process,
    /// How long the scenario `sustained` lets the device rest before it looks again.
    pub idle: Option<Duration>,
    /// How fast the disk takes a stream, in bytes per second: filled by the first calibration of the
    /// ladder, and used by every later one of this request and its clones.
    pub speed: Arc<OnceLock<f64>>,
    /// Leave the test files where they are.
    pub keep: bool,
    /// The command line, for the result.
    pub command: Vec<String>,
    /// The commit that the program was built from, for the result.
    pub commit: Option<String>,
}

/// What the producers of the scenario `append` are, where they append to a log of ours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum AppendAs {
    /// Threads, which block.
    #[default]
    Threads,
    /// Tasks of tokio's runtime of several threads, which await.
    Tasks,
}

impl AppendAs {
    /// The word in the result.
    pub fn as_str(self) -> &'static str {
        match self {
            AppendAs::Threads => "threads",
            AppendAs::Tasks => "tasks",
        }
    }
}

impl Request {
    /// The most runs of each row.
    pub const RUNS_MAX: u32 = 1000;
    /// The most writes in flight at once.
    pub const IODEPTH_MAX: u32 = wrote::Options::IODEPTH_MAX;
    /// The most threads.
    pub const NUMJOBS_MAX: u32 = 256;
    /// The most messages of a run of `append`.
    pub const MESSAGES_MAX: u64 = append::MESSAGES_MAX;
    /// The shortest message of `append` that can be told from others, in bytes.
    pub const MESSAGE_BYTES_MIN: u32 = append::BYTES_MIN;
    /// The longest message of `append`, in bytes.
    pub const MESSAGE_BYTES_MAX: u32 = append::BYTES_MAX;
    /// The most producers of `append`.
    pub const PRODUCERS_MAX: u32 = append::PRODUCERS_MAX;

    /// The default benchmark of `path`.
    pub fn new(path: PathBuf) -> Request {
        Request {
            path,
            only: Vec::new(),
            size_bytes: None,
            time: None,
            runs: None,
            stream_bs_bytes: None,
            small_bs_bytes: None,
            iodepth: None,
            numjobs: None,
            messages: None,
            message_bytes: None,
            producers: Vec::new(),
            append_as: AppendAs::default(),
            iterations: None,
            save_bytes: Vec::new(),
            rate: None,
            load_curve: false,
            load_process: Process::Poisson,
            idle: None,
            speed: Arc::default(),
            keep: false,
            command: Vec::new(),
            commit: None,
        }
    }
}

/// What a run is about to do.
#[derive(Clone, Debug)]
pub struct Announcement {
    /// The folder that the run made for its files.
    pub folder: PathBuf,
    /// The most that will be in that folder at any time.
    pub space_bytes_max: u64,
    /// The most that will be written in all.
    pub written_bytes_max: u64,
    /// How many runs there will be.
    pub runs: u32,
    /// About how long they will take.
    pub estimated: Duration,
}

/// How far a run has come.
#[derive(Clone, Debug)]
pub struct Progress {
    /// The row that is being measured now.
    pub row: String,
    /// Runs that are finished.
    pub runs_done: u32,
    /// How far the run is that is under way, from 0 to 1, as far as anyone can tell: short runs say
    /// nothing while they last.
    pub fraction: f64,
    /// Runs in all.
    pub runs: u32,
    /// About how long the rest will take.
    pub left: Duration,
}

/// Is told what a run does while it does it. All methods do nothing by default.
pub trait Observer {
    /// Called once, before the first byte is written.
    fn announce(&mut self, _announcement: &Announcement) {}
    /// Called before each run and after the last; of a long run also a few times a second within it.
    fn progress(&mut self, _progress: &Progress) {}
    /// Something to be said that is no part of the result: a folder that an earlier run left.
    fn note(&mut self, _text: &str) {}
}

/// An observer that says nothing.
impl Observer for () {}

/// Measures, and says what it found.
///
/// The rows are run in turn, every second round backwards (M8), in a folder that is made below
/// [`Request::path`] and removed at the end, on an error, and when `stop` is raised.
///
/// # Errors
///
/// [`Error::Usage`] when what was asked makes no sense, [`Error::Interrupted`] when `stop` was
/// raised, else [`Error::Failed`].
pub fn bench(
    request: &Request,
    stop: &Stop,
    observer: &mut dyn Observer,
) -> Result<Document, Error> {
    let began = Instant::now();
    let started_at = jiff::Timestamp::from_second(jiff::Timestamp::now().as_second())
        .expect("the present is a time");
    scratch::check_folder(&request.path)?;
    let target = device::examine(&request.path)?;
    let planned = planned(request, &target)?;
    let leftovers = tell_leftovers(&request.path, observer);
    let scratch = Scratch::make(&request.path)?;
    let mut shown = shown_target(&target, File::open(scratch.lock_file()).ok().as_ref());
    shown.limits = machine::limits(device_of(&target));
    let announcement = announcement(scratch.path().to_owned(), &planned);
    observer.announce(&announcement);
    let mut ticker = Ticker::new(observer, announcement.runs, announcement.estimated);
    let site = Site { target: &target, scratch: &scratch, stop, keep: request.keep };
    let bs_bytes = request.stream_bs_bytes.unwrap_or(STREAM_BS_BYTES).min(GENERATOR_BS_BYTES_MAX);
    let generator_bytes_per_s = Data::new(0, 0).measure(bs_bytes as usize);
    let watch = Watch::begin(device_of(&target));
    let (mut scenarios, mut written_bytes, mut left_out) = (Vec::new(), 0, Vec::new());
    for scenario in &planned {
        let measured = scenario.measure(&site, &mut ticker)?;
        scenarios.push(measured.scenario);
        written_bytes += measured.written_bytes;
        left_out.extend(measured.left_out);
    }
    let watched = watch.end(device_of(&target));
    ticker.finish();
    let host = host::host(Engine::probe_io_uring().err().unwrap_or_else(|| "yes".into()));
    let rows: Vec<Row> = scenarios.iter().flat_map(|scenario| scenario.rows.clone()).collect();
    if request.keep {
        let folder = scratch.keep();
        observer.note(&format!("the test files are in {}", folder.display()));
    } else {
        scratch.remove()?;
    }
    let evidence = Evidence {
        target: &shown,
        rows: &rows,
        debug_build: cfg!(debug_assertions),
        device_counts: device_of(&target).is_some_and(BlockDevice::counts),
        in_memory: target.in_memory,
        generator_bytes_per_s,
        written_bytes_total: written_bytes,
        memory_bytes: host.memory_bytes,
        host: host.clone(),
        watched,
        overlaps: Vec::new(),
        leftovers,
        left_out,
    };
    let (findings, advice) = (scenarios::findings(&evidence), scenarios::advice(&evidence));
    Ok(Document {
        schema: SCHEMA.into(),
        wrote: Program::this(request.commit.clone()),
        started_at: started_at.to_string(),
        elapsed_s: began.elapsed().as_secs_f64(),
        command: request.command.clone(),
        host,
        target: shown,
        scenarios,
        findings,
        advice,
    })
}

/// What a benchmark will do, with nothing made yet: its folder is the one that is measured.
///
/// # Errors
///
/// [`Error::Usage`] and [`Error::Failed`] as [`bench`], where that can be told before.
pub fn outlook(request: &Request) -> Result<Announcement, Error> {
    scratch::check_folder(&request.path)?;
    let target = device::examine(&request.path)?;
    Ok(announcement(request.path.clone(), &planned(request, &target)?))
}

/// Everything that is called for, in the order in which it is measured.
fn planned(request: &Request, target: &Target) -> Result<Vec<Box<dyn Planned>>, Error> {
    fn boxed<P: Planned + 'static>(plan: P) -> Box<dyn Planned> {
        Box::new(plan)
    }
    if request.load_curve {
        return Ok(load::plans(request, target)?.into_iter().map(boxed).collect());
    }
    refuse_rate_of_whole_files(request)?;
    let ladder = Some(Plan::new(request, target)?).filter(|plan| !plan.ways.is_empty());
    let grids = grid::grids(request, target)?.into_iter().map(boxed);
    let all = [
        ladder.map(boxed),
        ways::Plan::new(request, target)?.map(boxed),
        append::Plan::new(request, target)?.map(boxed),
        latency::Plan::new(request, target)?.map(boxed),
    ];
    // It leaves the device's cache full.
    let last = sustained::Plan::new(request, target)?.map(boxed);
    let all = all.into_iter().flatten().chain(grids).chain(last);
    Ok(all.collect())
}

/// A whole file has no operations that could be due at a rate.
fn refuse_rate_of_whole_files(request: &Request) -> Result<(), Error> {
    match request.only.iter().find(|name| request.rate.is_some() && ways::knows(name)) {
        None => Ok(()),
        Some(name) => Err(Error::Usage(format!(
            "--rate: {name} times whole files, and no single operation that could be due at a time"
        ))),
    }
}

fn announcement(folder: PathBuf, planned: &[Box<dyn Planned>]) -> Announcement {
    Announcement {
        folder,
        // One after the other: each removes its files.
        space_bytes_max: planned.iter().map(|of| of.space_bytes_max()).max().unwrap_or(0),
        written_bytes_max: planned.iter().map(|of| of.written_bytes_max()).sum(),
        runs: planned.iter().map(|of| of.runs_total()).sum(),
        estimated: planned.iter().map(|of| of.estimate()).sum(),
    }
}

/// Counts the runs, and tells the observer before each and after the last.
pub struct Ticker<'a> {
    observer: &'a mut dyn Observer,
    began: Instant,
    runs: u32,
    begun: u32,
    /// When the run under way began.
    run_began: Instant,
    estimated: Duration,
    /// Up to which run it is known better when it will be over, and when.
    foreseen: Option<(u32, Instant)>,
}

impl<'a> Ticker<'a> {
    /// For `runs` runs that will take about `estimated`.
    pub fn new(observer: &'a mut dyn Observer, runs: u32, estimated: Duration) -> Ticker<'a> {
        let began = Instant::now();
        Ticker { observer, began, runs, begun: 0, run_began: began, estimated, foreseen: None }
    }

    /// A run of the row begins.
    pub fn tick(&mut self, row: &str) {
        self.tell(row);
        self.begun += 1;
        self.run_began = Instant::now();
    }

    /// The run of the row that began last is so far, from 0 to 1.
    pub fn within(&mut self, row: &str, fraction: f64) {
        let fraction = fraction.clamp(0.0, 1.0);
        let (runs, runs_done) = (self.runs, self.begun.saturating_sub(1));
        let of_run = match fraction {
            // Too early to tell.
            fraction if fraction < 0.02 => self.estimated.saturating_sub(self.began.elapsed()),
            fraction => self.run_began.elapsed().mul_f64((1.0 - fraction) / fraction),
        };
        let of_others = match runs_done {
            0 => Duration::ZERO,
            _ => (self.run_began - self.began) / runs_done * runs.saturating_sub(self.begun),
        };
        let left = of_run + of_others;
        self.observer.progress(&Progress { row: row.into(), runs_done, runs, fraction, left });
    }

    /// The next `runs` runs will take about so long: they are no more like those before than these are
    /// like each other.
    pub fn foresee(&mut self, runs: u32, time: Duration) {
        self.foreseen = Some((self.begun + runs, Instant::now() + time));
    }

    /// So many runs will not be made.
    pub fn leave_out(&mut self, runs: u32) {
        self.runs = self.runs.saturating_sub(runs);
    }

    /// Something to be said that is no part of the result.
    pub fn note(&mut self, text: &str) {
        self.observer.note(text);
    }

    /// All runs are over.
    pub fn finish(mut self) {
        self.tell("");
    }

    fn tell(&mut self, row: &str) {
        let (runs, runs_done) = (self.runs, self.begun);
        let left = match (runs_done, self.foreseen) {
            (_, Some((until, over))) if runs_done < until => {
                let others = self.estimated / runs.max(1) * runs.saturating_sub(until);
                over.saturating_duration_since(Instant::now()) + others
            }
            (0, _) => self.estimated,
            _ => self.began.elapsed() / runs_done * runs.saturating_sub(runs_done),
        };
        self.observer.progress(&Progress { row: row.into(), runs_done, runs, fraction: 0.0, left });
    }
}

/// Says what killed runs left, and how to remove it.
pub fn tell_leftovers(folder: &Path, observer: &mut dyn Observer) -> Vec<String> {
    let dead = scratch::leftovers(folder).into_iter().filter(|left| !left.alive);
    dead.map(|left| {
        let path = left.path.display().to_string();
        observer.note(&format!(
            "{path} was left by a run that was killed ({}); `wrote clean {}` removes it",
            units::bytes(left.size_bytes),
            folder.display()
        ));
        path
    })
    .collect()
}

/// A row that can be asked for by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// `ladder`, `ways`, `append`, `latency`, `peak`, `rand`, `load`, `sustained`.
    pub scenario: &'static str,
    /// `stream/direct-io_uring`; of a grid a whole workload, `peak/read`; of a log the way whatever the
    /// number of producers, `append/log-no`.
    pub row: &'static str,
    /// The way of writing, in words.
    pub way: &'static str,
    /// What a write survives where nothing falls back; nothing of reads.
    pub survives: Option<wrote::Survives>,
}

/// Everything that `Request::only` may name, in the order in which it is measured.
pub fn catalogue() -> Vec<Listed> {
    let listed = |way: &Way| Listed {
        scenario: ladder::NAME,
        row: way.name,
        way: way.words,
        survives: Some(way.survives_at_best()),
    };
    let of_grids = grid::NAMED.iter().map(|named| Listed {
        scenario: named.scenario,
        row: named.workload,
        way: named.words,
        survives: named.writes.then_some(wrote::Survives::OsCrash),
    });
    let of_files = ways::WAYS.iter().map(|way| Listed {
        scenario: ways::NAME,
        row: way.name,
        way: way.words,
        survives: Some(way.survives_at_best()),
    });
    let of_appends = append::STRATEGIES.iter().map(|strategy| Listed {
        scenario: append::NAME,
        row: strategy.name,
        way: strategy.words,
        survives: Some(strategy.survives_at_best()),
    });
    let ladder = WAYS.iter().map(listed);
    let all = ladder.chain(of_files).chain(of_appends).chain(latency::listed()).chain(of_grids);
    all.chain(sustained::listed()).collect()
}
