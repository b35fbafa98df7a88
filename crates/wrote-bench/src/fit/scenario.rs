//! The scenario of `wrote fit`: a row for each pattern, alone and under each background load.

use super::FitRequest;
use super::neighbour::Neighbour;
use super::programs::{Pattern, Program};
use crate::calibration;
use crate::plan::{Call, Plan, Prepared, RUNS_MIN, RowSpec, Turn, Within, Work};
use crate::progress::Ticker;
use crate::scenario::Scenario;
use crate::scenarios::sustained;
use crate::scratch::{self, Scratch};
use crate::settings::Common;
use crate::site::{Site, clear};
use crate::stream::{self, Past, Sizes};
use crate::transactions;
use std::time::Duration;
use wrote::device::{self, Target};
use wrote_jobs::clock::clocked;
use wrote_jobs::findings::{Burst, Evidence};
use wrote_jobs::machine::foreign::SAMPLE;
use wrote_jobs::machine::target;
use wrote_jobs::machine::usage::Usage;
use wrote_jobs::report::Repeated;
use wrote_jobs::steps::Steps;
use wrote_result::Error;
use wrote_result::document::{Finding, Row};

const NAME: &str = "fit";
const QUESTION: &str = "Is this disk good enough for the program?";
/// The minimum and the maximum time of a run.
const RUN: [Duration; 2] = [Duration::from_millis(200), Duration::from_secs(60)];
/// The share of the time that the runs get. The rest is for preparing their files and for
/// finishing.
const RUNS_PART: f64 = 0.9;
/// The minimum length of a run, as a multiple of the longest interval between concurrent steps.
const BESIDE_TIMES: f64 = 2.2;
/// The size of the file that is written before each run to use up a burst.
const DRAIN_BYTES: u64 = 1 << 30;

pub(super) struct Suits(pub FitRequest);

/// Returns the name of a pattern's row, alone or under a background load: `etcd/wal`,
/// `etcd/wal+copy`.
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

    fn is_alone(&self) -> bool {
        true
    }

    fn plan(&self, call: &Call) -> Result<Vec<Plan<'static>>, Error> {
        if let Some(few) = self.0.runs.filter(|runs| *runs < RUNS_MIN) {
            return Err(Error::Usage(format!("--runs {few}: a verdict needs {RUNS_MIN} or more")));
        }
        let runs = Runs::new(&self.0);
        target::check_room(runs.space_bytes(), 0, call.target)?;
        if let Some(path) = &self.0.neighbour_path {
            scratch::check_writable(path)?;
            target::check_room(runs.beside_bytes(), 0, &device::examine(path)?)?;
        }
        let mut plans = Vec::new();
        if self.0.sustained.is_some() {
            let only = &[sustained::NAME.to_owned()];
            let common = &Common { time: self.0.sustained, ..call.common.clone() };
            let long = sustained::Long { idle: Some(Duration::ZERO) };
            plans = long.plan(&Call { only, common, ..*call })?;
        }
        plans.push(runs.plan(call.target));
        Ok(plans)
    }

    fn findings(&self, evidence: &Evidence) -> Vec<Finding> {
        sustained::Long::default().findings(evidence)
    }
}

/// The runs of a request.
struct Runs {
    request: FitRequest,
    /// The time of one run.
    run: Duration,
    /// The time of all runs, if the user did not request a number of runs.
    time: Duration,
    /// The program, the pattern and the background load of each row.
    rows: Vec<(usize, usize, Option<Neighbour>)>,
    /// The runs so far, and the bytes that they wrote.
    past: Vec<Past>,
    written_bytes: u64,
    /// The folder of the background load, if it differs from the program's folder.
    elsewhere: Option<Scratch>,
}

impl Runs {
    fn new(request: &FitRequest) -> Runs {
        let mut rows = Vec::new();
        for (program, of) in request.programs.iter().enumerate() {
            for pattern in 0..of.patterns.len() {
                // Runs alone and runs under a background load take turns (M8).
                rows.push((program, pattern, None));
                let beside = request.neighbours.iter();
                rows.extend(beside.map(|neighbour| (program, pattern, Some(*neighbour))));
            }
        }
        let time = request.time.unwrap_or_else(|| request.usual_time());
        let of_each = |time: Duration| {
            let runs = request.runs.unwrap_or(FitRequest::RUNS) * rows.len() as u32;
            // Using up the burst before a run takes as long as the run.
            let runs = if request.sustained.is_some() { 2 * runs } else { runs };
            let beside = calibration::beside(None, true) + SAMPLE;
            (time.mul_f64(RUNS_PART) / runs).saturating_sub(beside)
        };
        let run = of_each(time).clamp(RUN[0], RUN[1]);
        Runs {
            request: request.clone(),
            run,
            time,
            rows,
            past: Vec::new(),
            written_bytes: 0,
            elsewhere: None,
        }
    }

    /// Returns the plan of the rows. The plan keeps to a requested time. Without one, each row gets
    /// the minimum number of runs, however long they take.
    fn plan(self, target: &Target) -> Plan<'static> {
        let asked = self.time + self.request.sustained.unwrap_or_default();
        let within = Within::new(asked, Duration::ZERO, self.request.time.is_some());
        let rows = (0..self.rows.len()).map(|row| self.spec(row, target)).collect();
        Plan {
            runs: self.runs(),
            within: Some(within),
            is_whole: self.request.runs.is_some(),
            is_judged: true,
            space_bytes: self.space_bytes(),
            ..Plan::new(NAME, QUESTION, rows, self)
        }
    }

    /// Returns the specification of row `number`.
    fn spec(&self, number: usize, target: &Target) -> RowSpec {
        let (program, pattern) = (self.program(number), self.pattern(number));
        let (job, neighbour) = (&pattern.job, self.rows[number].2);
        let beside = neighbour.map_or(String::new(), |of| format!(", beside {}", of.as_str()));
        // One table may contain many programs.
        let (workload, of_program) = match self.request.programs.len() {
            1 => (program.name.clone(), String::new()),
            _ => ("programs".into(), format!("{}: ", program.name)),
        };
        let row = Row {
            name: row_name(program, pattern, neighbour),
            workload,
            way: format!("{of_program}{}{beside}", pattern.label),
            ..transactions::composed(job, pattern.torn, target)
        };
        // Rows without a background load are the most important, followed by rows under the first
        // load.
        let place = self.request.neighbours.iter().position(|of| Some(*of) == neighbour);
        RowSpec {
            row,
            importance: place.map_or(0, |place| 1 + place) * self.rows.len() + number,
            time: self.time_of(number)
                + self.request.sustained.map_or(Duration::ZERO, |_| self.run),
            beside: SAMPLE,
            // A run stops only at its time limit, so the number of bytes depends on the disk.
            bytes_max: u64::MAX,
            makes_files: true,
            has_neighbour: neighbour.is_some(),
            ..RowSpec::default()
        }
    }

    fn space_bytes(&self) -> u64 {
        let is_here = self.request.neighbour_path.is_none();
        let beside = if is_here { self.beside_bytes() } else { 0 };
        let drain = if self.request.sustained.is_some() { DRAIN_BYTES } else { 0 };
        self.jobs().map(Steps::space_bytes).max().unwrap_or(0) + beside + drain
    }

    fn runs(&self) -> u32 {
        self.request.runs.unwrap_or(FitRequest::RUNS)
    }

    /// Returns the maximum number of bytes that the files of a background load occupy.
    fn beside_bytes(&self) -> u64 {
        self.request.neighbours.iter().map(|of| of.space_bytes()).max().unwrap_or(0)
    }

    /// Refuses a requested time that is too short to give each row an interval. `before` is the
    /// time that has passed already.
    fn check_time(&self, before: Duration) -> Result<(), Error> {
        let each = RUN[0] + calibration::beside(None, true) + SAMPLE;
        let runs = RUNS_MIN * self.rows.len() as u32;
        let least = before + (each * runs).div_f64(RUNS_PART);
        let Some(asked) = self.request.time.filter(|time| *time < least) else { return Ok(()) };
        let (asked, enough) = (asked.as_secs_f64(), least.as_secs_f64().ceil());
        Err(Error::Usage(format!(
            "--time {asked}s is too short for {RUNS_MIN} runs of {} rows on this disk; use \
             {enough}s or more",
            self.rows.len()
        )))
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

    /// Returns the length of a row's run, in which each concurrent step occurs at least twice.
    fn time_of(&self, row: usize) -> Duration {
        let beside = self.pattern(row).job.beside.iter().filter_map(|every| every.interval_s);
        let least_s = beside.fold(0.0, f64::max) * BESIDE_TIMES;
        self.run.max(Duration::from_secs_f64(least_s))
    }

    /// Writes for as long as a run takes, right before the run, to keep a drive's cache and a
    /// volume's credit used up. Returns the number of bytes written.
    fn drain(&self, site: &Site) -> Result<u64, Error> {
        if self.request.sustained.is_none() {
            return Ok(0);
        }
        let (bs_bytes, size_bytes) = (1 << 20, DRAIN_BYTES);
        let sizes = Sizes { bs_bytes, size_bytes, iodepth: 8, numjobs: 1, rate: None };
        let mut job = sizes.job("drain");
        job.files.paths = vec![site.file("drain", 0)];
        (job.pace.runtime, job.pace.time_based) = (Some(self.run), true);
        stream::use_up(site, &[job])
    }
}

impl Work for Runs {
    fn prepare(&mut self, site: &Site, _: &mut Ticker) -> Result<Prepared, Error> {
        if self.request.runs.is_none() {
            let sustained = self.request.sustained.unwrap_or_default();
            self.check_time(site.clock.elapsed().saturating_sub(sustained))?;
        }
        if let Some(path) = &self.request.neighbour_path {
            self.elsewhere = Some(Scratch::make(path)?);
        }
        Ok(Prepared {
            left_out: transactions::not_atomic(self.jobs(), site)?,
            ..Prepared::default()
        })
    }

    fn run(&mut self, row: &Row, at: Turn, site: &Site, _: &mut Ticker) -> Result<Repeated, Error> {
        let (pattern, neighbour) = (self.pattern(at.row).clone(), self.rows[at.row].2);
        let running = transactions::ready(&pattern.job, 0, site)?;
        let drained_bytes = self.drain(site)?;
        let time = self.time_of(at.row);
        let work =
            || clocked(&site.timer()?, Usage::now, || running.run(time, u64::MAX, site.stop));
        let timed = match neighbour {
            None => work()?,
            Some(neighbour) => {
                let folder = self.elsewhere.as_ref().unwrap_or(site.scratch);
                neighbour.beside(&|number| folder.file(NAME, "neighbour", number), work)?
            }
        };
        let bytes = timed.0.counts.written_bytes;
        let mut run = transactions::row_of(row, timed, bytes);
        run.written_bytes += drained_bytes;
        let (before_bytes, bytes_per_s) = (self.written_bytes, run.rows[0].throughput());
        self.past.push(Past { row: at.row, before_bytes, bytes_per_s });
        self.written_bytes += run.written_bytes;
        Ok(run)
    }

    fn clear(&mut self, row: usize, site: &Site) -> Result<(), Error> {
        clear(&transactions::files(&self.pattern(row).job, 0, site), site.scratch.path())
    }

    fn finish(&mut self, site: &Site) -> Result<(), Error> {
        site.clear_shared(&[site.file("drain", 0)])?;
        self.elsewhere.take().map_or(Ok(()), Scratch::remove)
    }

    fn burst(&self) -> Option<Burst> {
        stream::dropped(&self.past)
    }
}
