//! A plan: rows, each composed once, and the work that runs them.

use crate::calibration::{self, Calibration, Wanted};
use crate::names::is_below;
use crate::progress::Ticker;
use crate::settings::Common;
use crate::site::Site;
use hdrhistogram::Histogram;
use std::ops::Range;
use std::time::Duration;
use wrote::device::Target;
use wrote_jobs::findings::{Burst, Shortened};
use wrote_jobs::machine::foreign::SAMPLES_PART;
use wrote_jobs::report::Repeated;
use wrote_result::document::{Fallback, Knee, Row, Run, Scenario, Settings, SettingsPair};
use wrote_result::{Error, stats};

/// The default number of runs per row: enough for an interval, and few enough for a minute.
pub const RUNS: u32 = 5;

/// One run of one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// The row's index.
    pub row: usize,
    /// The number of the round, from 0.
    pub round: u32,
}

/// Returns the order of the runs of `rows` rows in these rounds.
///
/// Every second round runs backwards. Thus no row always follows the same other row, and a steady
/// drift affects all rows alike (M8).
pub(crate) fn in_turn(rows: usize, rounds: Range<u32>) -> impl Iterator<Item = Turn> {
    let of_round = move |round: u32| {
        (0..rows).map(move |row| Turn {
            row: if round.is_multiple_of(2) { row } else { rows - 1 - row },
            round,
        })
    };
    rounds.flat_map(of_round)
}

/// The minimum number of runs for a row to have an interval. Student's t then has two degrees of
/// freedom. With only one degree, the interval would span a dozen standard errors, too wide to show
/// any difference (M8).
pub const RUNS_MIN: u32 = 3;

/// The time in which a default run writes the maximum number of bytes of a measurement.
const USUAL_TIME: Duration = Duration::from_secs(12);

/// The divisor of the time and of the bytes of a default run. One quotient goes to the writers of
/// one log, and another to reads.
pub(crate) const PART: u32 = 10;

/// The input of [`Scenario::plan`](crate::scenario::Scenario::plan).
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// The requested names of scenarios, workloads and rows.
    pub only: &'a [String],
    /// The common settings, which have been validated.
    pub common: &'a Common,
    /// The disk under the path.
    pub target: &'a Target,
    /// The time limit from the start to the end, if the request has one.
    pub within: Option<Duration>,
    /// The speed of the disk, once it is calibrated.
    pub speed: Option<&'a Calibration>,
}

impl Call<'_> {
    /// Returns whether the request names no rows and sets no amounts. In this case, the first
    /// screen is measured.
    pub fn is_default(&self) -> bool {
        self.only.is_empty() && !self.common.has_amount()
    }

    /// Returns the maximum number of bytes that a scenario writes. It grows with a time limit that
    /// is longer than usual.
    pub(crate) fn written_bytes_max(&self) -> u64 {
        let bytes = self.common.written_bytes_max(self.target);
        let within = self.within.filter(|_| self.common.wear.is_none());
        let times = within.map_or(1.0, |within| within.div_duration_f64(USUAL_TIME));
        if times > 1.0 { (bytes as f64 * times) as u64 } else { bytes }
    }

    /// Returns whether the request names this row, its workload or its scenario.
    pub fn names(&self, scenario: &str, row: &str) -> bool {
        self.only.iter().any(|name| name == scenario || is_below(row, name))
    }
}

/// The rows of a scenario, which are measured in turn by the loop in the module `rounds`.
pub struct Plan<'a> {
    /// The scenario's name.
    pub name: &'static str,
    /// The question that the rows answer.
    pub question: String,
    /// The rows, in the order of the first round.
    pub rows: Vec<RowSpec>,
    /// The requested rows that can't be measured on this machine, with the reasons.
    pub left_out: Vec<(String, String)>,
    /// The number of runs per row.
    pub runs: u32,
    /// The number of runs in [`Work::prepare`].
    pub runs_before: u32,
    /// The time of [`Work::prepare`], and of the files that first runs lay out, not counting
    /// `prepared_bytes`.
    pub prepare: Duration,
    /// The time limit, if the user asked for one.
    pub within: Option<Within>,
    /// Whether the request fixes an amount, so that every run takes place, however long it takes.
    pub is_whole: bool,
    /// Whether the runs are judged. If so, a run that other programs disturbed is repeated, once.
    pub is_judged: bool,
    /// Whether the request fixes the amount of each run, so that spare time adds no runs.
    pub is_sized: bool,
    /// The maximum number of bytes in the folder at any time.
    pub space_bytes: u64,
    /// The maximum number of bytes that all runs share. They are written as a stream.
    pub prepared_bytes: u64,
    /// The maximum number of bytes that additional rounds may write beyond the announced runs.
    pub spare_bytes: u64,
    /// Whether the rows are jobs on [`Site::job_files`], which ranks may share.
    pub shares_files: bool,
    /// The part of the disk's speed that determines the bytes and the time of the runs.
    pub wants: Wanted,
    /// The work, which performs the runs.
    pub work: Box<dyn Work + 'a>,
}

/// A row of the result, without the figures that its runs will measure.
#[derive(Clone, Debug, Default)]
pub struct RowSpec {
    /// The row's name, workload, words and view, and the worst event that its writes survive.
    pub row: Row,
    /// The rank of the row; 0 is the most important one. If time is short, the least important rows
    /// are left out first.
    pub importance: usize,
    /// The time of a run at the calibrated speed. A run stops when its slice has passed or its
    /// bytes are written, and does not take much longer than this time. Time that is left over goes
    /// to additional runs.
    pub time: Duration,
    /// The additional time that a run takes to prepare and to check.
    pub beside: Duration,
    /// The maximum number of bytes that a run writes; `u64::MAX` if only a time limit ends the run.
    pub bytes_max: u64,
    /// Whether [`Work::clear`] removes files of the row.
    pub makes_files: bool,
    /// Whether the row runs after all other rows, because its runs would disturb theirs.
    pub is_last: bool,
    /// Whether the row measures the disk under a background load.
    pub has_neighbour: bool,
}

impl RowSpec {
    /// Returns the planned time of a run, with everything around it.
    pub(crate) fn share(&self, speed: Option<&Calibration>) -> Duration {
        self.time + self.beside + calibration::beside(speed, self.makes_files)
    }
}

/// The runs of a plan, and the files that they share.
pub trait Work {
    /// Creates everything that the runs share, and measures the figures that determine the amount
    /// of a run.
    ///
    /// # Errors
    ///
    /// [`Error::Failed`], or [`Error::Interrupted`] if the user asked to stop.
    fn prepare(&mut self, _: &Site, _: &mut Ticker) -> Result<Prepared, Error> {
        Ok(Prepared::default())
    }
    /// Performs one timed run of `row`, or of both directions of a row that reads and writes, and
    /// keeps the files of the run. If the result contains no row, `row` has failed: it gets no
    /// further runs, and keeps its earlier ones unless [`Work::is_void`]. Several ranks call this
    /// function at the same time, each with the same number of timed parts.
    ///
    /// # Errors
    ///
    /// Like [`Work::prepare`].
    fn run(
        &mut self,
        row: &Row,
        turn: Turn,
        site: &Site,
        ticker: &mut Ticker,
    ) -> Result<Repeated, Error>;
    /// Removes the files of the row's last run.
    ///
    /// # Errors
    ///
    /// [`Error::Failed`], which names the file that could not be removed.
    fn clear(&mut self, _row: usize, _: &Site) -> Result<(), Error> {
        Ok(())
    }
    /// Releases everything that the runs shared, and removes its files unless the site keeps them.
    ///
    /// # Errors
    ///
    /// Like [`Work::clear`].
    fn finish(&mut self, _: &Site) -> Result<(), Error> {
        Ok(())
    }
    /// Returns whether a row has failed in such a way that its earlier runs don't count.
    fn is_void(&self, _row: &Row) -> bool {
        false
    }
    /// Adds the figures derived from the rows of all ranks to a combined run.
    fn summed(&self, run: Repeated) -> Repeated {
        run
    }
    /// Returns the knee, if the rows form a curve.
    fn knee(&self, _: &[Row]) -> Option<Knee> {
        None
    }
    /// Returns the burst that the disk wrote faster than its sustained rate, if any.
    fn burst(&self) -> Option<Burst> {
        None
    }
}

/// The result of [`Work::prepare`].
#[derive(Debug, Default)]
pub struct Prepared {
    /// The number of bytes that the preparation wrote.
    pub written_bytes: u64,
    /// The indices of rows that can't be measured on this machine, with the reasons.
    pub left_out: Vec<(usize, String)>,
}

impl<'a> Plan<'a> {
    /// Returns a plan of these rows: five runs of each within the announced time, on unshared files
    /// that occupy as much space as the largest run.
    pub fn new(
        name: &'static str,
        question: &str,
        rows: Vec<RowSpec>,
        work: impl Work + 'a,
    ) -> Self {
        let space_bytes = rows.iter().map(|row| row.bytes_max).max().unwrap_or(0);
        Plan {
            name,
            question: question.into(),
            rows,
            left_out: Vec::new(),
            runs: RUNS,
            runs_before: 0,
            prepare: Duration::ZERO,
            within: None,
            is_whole: false,
            is_judged: false,
            is_sized: false,
            space_bytes,
            prepared_bytes: 0,
            spare_bytes: 0,
            shares_files: false,
            wants: Wanted::Flush,
            work: Box::new(work),
        }
    }

    /// Returns the number of all runs.
    pub fn runs_total(&self) -> u32 {
        self.runs_before + self.runs * self.rows.len() as u32
    }

    /// Returns the maximum number of bytes written in total; `u64::MAX` if only time limits them.
    pub fn written_bytes_max(&self) -> u64 {
        let round = self.rows.iter().map(|row| row.bytes_max).fold(0, u64::saturating_add);
        let runs = round.saturating_mul(self.runs.into());
        runs.saturating_add(self.prepared_bytes).saturating_add(self.spare_bytes)
    }

    /// Returns the time at which a plan that begins at `begin` ends: the end of the requested time,
    /// or of all runs. This time is announced, and is kept unless the request fixes an amount.
    pub(crate) fn end(&self, speed: Option<&Calibration>, begin: Duration) -> Duration {
        match self.within.filter(|_| !self.is_whole) {
            Some(within) => within.until.max(begin),
            None => begin.saturating_add(self.time(speed)),
        }
    }

    /// Returns the time of all runs and of their common preparations.
    pub fn time(&self, speed: Option<&Calibration>) -> Duration {
        let round: Duration = self.rows.iter().map(|row| row.share(speed)).sum();
        let shared = speed.map_or(Duration::ZERO, |speed| speed.time_of(self.prepared_bytes));
        let runs = round * self.runs;
        // Plans for a requested time already leave time for the samples.
        let samples = if self.within.is_none() { runs / SAMPLES_PART } else { Duration::ZERO };
        (runs + samples + self.prepare).saturating_add(shared)
    }

    /// Returns whether the runs end within the announced time.
    pub(crate) fn is_limited(&self) -> bool {
        !self.is_whole && self.within.is_none_or(|within| within.leaves_out)
    }

    /// Returns the time limit of a plan that was announced to begin at `begin`: the requested time,
    /// or else the announced time; `None` if the request fixes an amount.
    pub(crate) fn limit(&self, speed: Option<&Calibration>, begin: Duration) -> Option<Within> {
        let announced = || {
            let time = self.time(speed);
            let asked = Duration::from_secs(time.as_millis().div_ceil(1000) as u64);
            Within { asked, until: begin.saturating_add(time), leaves_out: true }
        };
        (!self.is_whole).then(|| self.within.unwrap_or_else(announced))
    }

    /// Returns the result of a scenario before any run.
    pub(crate) fn measured(&self, written_bytes: u64, left_out: Vec<(String, String)>) -> Measured {
        let (name, question) = (self.name.into(), self.question.clone());
        Measured {
            scenario: Scenario { name, question, rows: Vec::new(), knee: None },
            written_bytes,
            left_out,
            shortened: None,
            burst: None,
            is_interrupted: false,
        }
    }
}

/// A time limit. Rounds that don't fit are not run, but each row gets at least [`RUNS_MIN`] runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Within {
    /// The time that was requested or announced.
    pub asked: Duration,
    /// The end of the last run, counted from the start of `wrote`.
    pub until: Duration,
    /// Whether the least important rows are left out if not even the minimum of rounds fits.
    pub leaves_out: bool,
}

/// The divisor of the time that gives the part for removing files and printing the result: three
/// seconds out of sixty.
const AFTER_PART: u32 = 20;

impl Within {
    /// Returns a limit of `asked` from the start of `wrote`. A part `kept` of it is reserved for
    /// later scenarios.
    pub fn new(asked: Duration, kept: Duration, leaves_out: bool) -> Within {
        let until = asked - asked / AFTER_PART - kept;
        Within { asked, until, leaves_out }
    }
}

/// The result of one scenario.
#[derive(Debug)]
pub struct Measured {
    /// The scenario with its rows.
    pub scenario: Scenario,
    /// The total number of file bytes written.
    pub written_bytes: u64,
    /// The requested rows that were not measured, with the reasons.
    pub left_out: Vec<(String, String)>,
    /// The reduction of the number of runs, if time was short.
    pub shortened: Option<Shortened>,
    /// The burst that the disk writes faster than its sustained rate, if any.
    pub burst: Option<Burst>,
    /// Whether the user stopped the scenario, so that rows have fewer runs or are missing.
    pub is_interrupted: bool,
}

/// The result of one run that the scenario timed.
pub struct OneRun {
    /// The figures of the run.
    pub run: Run,
    /// The latency of each operation; empty if the run is one operation.
    pub latencies: Histogram<u64>,
    /// The effective settings, with the depth that was reached.
    pub effective: Settings,
    /// The replacements of requested settings that were not honoured, each with the reason.
    pub fallbacks: Vec<Fallback>,
}

impl OneRun {
    /// Returns the row of the run. `asked` are the requested settings.
    pub fn row(self, row: &Row, asked: Settings) -> Repeated {
        let OneRun { run, latencies, effective, mut fallbacks } = self;
        fallbacks.sort();
        fallbacks.dedup();
        let latency_ns = (!latencies.is_empty()).then(|| stats::latency(&latencies));
        let settings = SettingsPair { asked, effective, fallbacks };
        let row = Row { settings, ..row.clone() }.with_run(Run { latency_ns, ..run });
        Repeated::one(row, latencies)
    }
}
