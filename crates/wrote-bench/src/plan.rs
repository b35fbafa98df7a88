//! A plan: rows, each composed once, and the work that makes their runs.

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

/// The default number of runs per row: enough for an interval, few enough for a minute.
pub const RUNS: u32 = 5;

/// One run of one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// The row's index.
    pub row: usize,
    /// The round, from 0.
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

/// The fewest runs of a row with an interval. Student's t then has two degrees of freedom. With
/// only one, the interval would span a dozen standard errors, too wide to distinguish anything
/// (M8).
pub const RUNS_MIN: u32 = 3;

/// The time of a default run, in which it writes the maximum number of bytes of a measurement.
const USUAL_TIME: Duration = Duration::from_secs(12);

/// The part of the time and of the bytes of a default run that the writers of one log have, and as
/// much for reads.
pub(crate) const PART: u32 = 10;

/// The input of [`Scenario::plan`](crate::scenario::Scenario::plan).
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// The requested names.
    pub only: &'a [String],
    /// The validated common settings.
    pub common: &'a Common,
    /// The disk under the path.
    pub target: &'a Target,
    /// The time from the start to the end, where the request limits it.
    pub within: Option<Duration>,
    /// The speed of the disk, once calibrated.
    pub speed: Option<&'a Calibration>,
}

impl Call<'_> {
    /// Returns whether the request names neither rows nor amounts: the first screen is measured.
    pub fn is_default(&self) -> bool {
        self.only.is_empty() && !self.common.has_amount()
    }

    /// Returns the maximum number of bytes that a scenario writes, which may be more in a longer
    /// time.
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

/// The rows of a scenario, measured in turn. The module `rounds` has the loop around them.
pub struct Plan<'a> {
    /// The scenario's name.
    pub name: &'static str,
    /// The question that the rows answer.
    pub question: String,
    /// The rows, in their order.
    pub rows: Vec<RowSpec>,
    /// Requested rows that this machine can't measure, with reasons.
    pub left_out: Vec<(String, String)>,
    /// Runs per row.
    pub runs: u32,
    /// The number of runs in [`Work::prepare`].
    pub runs_before: u32,
    /// The time of [`Work::prepare`] and of files that first runs lay out, without
    /// `prepared_bytes`.
    pub prepare: Duration,
    /// The time that was asked for, if there is one.
    pub within: Option<Within>,
    /// Whether the request has an amount, so that every run is made in any time.
    pub is_whole: bool,
    /// Whether its runs are judged: each one that other programs disturbed is made again, once.
    pub is_judged: bool,
    /// Whether the request has an amount of each run, which then takes no longer slice.
    pub is_sized: bool,
    /// The maximum number of bytes in the folder at any time.
    pub space_bytes: u64,
    /// The maximum number of bytes that all runs share, written as a stream.
    pub prepared_bytes: u64,
    /// The maximum number of bytes of further rounds beyond what all runs may write.
    pub spare_bytes: u64,
    /// Whether its rows are jobs on [`Site::job_files`], which ranks may share.
    pub shares_files: bool,
    /// The part of the disk's speed from which the bytes and the time of its runs follow.
    pub wants: Wanted,
    /// Makes the runs.
    pub work: Box<dyn Work + 'a>,
}

/// A row of the result, without the figures that its runs measure.
#[derive(Clone, Debug, Default)]
pub struct RowSpec {
    /// The row's name, workload, words and view, and the event that its writes survive.
    pub row: Row,
    /// 0 is the most important. Where time is short, the others are left out first.
    pub importance: usize,
    /// The time of a run, which ends after its slice or its bytes: at the calibrated speed, and not
    /// much less than it takes. What is left of it are further runs.
    pub time: Duration,
    /// The time that its preparation and its check take besides.
    pub beside: Duration,
    /// The maximum number of bytes that a run writes; `u64::MAX` if only its time ends it.
    pub bytes_max: u64,
    /// Whether [`Work::clear`] removes files of the row.
    pub makes_files: bool,
    /// Whether its runs would disturb the runs of other rows, and come after all of them.
    pub is_last: bool,
    /// Whether the question is about other work on the disk at the same time.
    pub has_neighbour: bool,
}

impl RowSpec {
    /// Returns the planned part of a round.
    pub(crate) fn share(&self, speed: Option<&Calibration>) -> Duration {
        self.time + self.beside + calibration::beside(speed, self.makes_files)
    }
}

/// Makes the runs of a plan, and the files that they share.
pub trait Work {
    /// Creates everything that all runs share, and measures the figures from which the amount of a
    /// run follows.
    ///
    /// # Errors
    ///
    /// [`Error::Failed`], or [`Error::Interrupted`] if the user asked to stop.
    fn prepare(&mut self, _: &Site, _: &mut Ticker) -> Result<Prepared, Error> {
        Ok(Prepared::default())
    }
    /// Makes one timed run of `row`, or of both directions of a row that reads and writes. Without
    /// a row of the run, `row` has failed: it ends with its earlier runs. The run's files stay.
    /// Several ranks run it at once, each with the same number of timed parts.
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
    /// [`Error::Failed`] names a file that could not be removed.
    fn clear(&mut self, _row: usize, _: &Site) -> Result<(), Error> {
        Ok(())
    }
    /// Releases everything that all runs shared, and removes its files, unless the site keeps them.
    ///
    /// # Errors
    ///
    /// Like [`Work::clear`].
    fn finish(&mut self, _: &Site) -> Result<(), Error> {
        Ok(())
    }
    /// Returns whether the earlier runs of a row don't count, as it failed.
    fn is_void(&self, _row: &Row) -> bool {
        false
    }
    /// Adds figures derived from the rows of all ranks to a combined run.
    fn summed(&self, run: Repeated) -> Repeated {
        run
    }
    /// Returns the knee, if the rows form a curve.
    fn knee(&self, _: &[Row]) -> Option<Knee> {
        None
    }
    /// Returns the bytes that the disk wrote faster than its sustained rate.
    fn burst(&self) -> Option<Burst> {
        None
    }
}

/// The outcome of [`Work::prepare`].
#[derive(Debug, Default)]
pub struct Prepared {
    /// The bytes that the run wrote.
    pub written_bytes: u64,
    /// The rows that can't be measured here, by number, with reasons.
    pub left_out: Vec<(usize, String)>,
}

impl<'a> Plan<'a> {
    /// Returns a plan of these rows: five runs of each, within the time announced, on files of
    /// its own, which take as much space as the largest run.
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

    /// Returns the maximum number of bytes written in total; `u64::MAX` if limited only by time.
    pub fn written_bytes_max(&self) -> u64 {
        let round = self.rows.iter().map(|row| row.bytes_max).fold(0, u64::saturating_add);
        let runs = round.saturating_mul(self.runs.into());
        runs.saturating_add(self.prepared_bytes).saturating_add(self.spare_bytes)
    }

    /// Returns the end of a plan that begins at `begin`: by the time that was asked for, or after
    /// all runs. It is announced, and kept unless the request has an amount.
    pub(crate) fn end(&self, speed: Option<&Calibration>, begin: Duration) -> Duration {
        match self.within.filter(|_| !self.is_whole) {
            Some(within) => within.until.max(begin),
            None => begin.saturating_add(self.time(speed)),
        }
    }

    /// Returns the time of all runs and of the preparations that they share.
    pub fn time(&self, speed: Option<&Calibration>) -> Duration {
        let round: Duration = self.rows.iter().map(|row| row.share(speed)).sum();
        let shared = speed.map_or(Duration::ZERO, |speed| speed.time_of(self.prepared_bytes));
        let runs = round * self.runs;
        // Plans for a time that was asked for leave room for the samples themselves.
        let samples = if self.within.is_none() { runs / SAMPLES_PART } else { Duration::ZERO };
        (runs + samples + self.prepare).saturating_add(shared)
    }

    /// Returns whether its runs end in the time that is announced.
    pub(crate) fn is_limited(&self) -> bool {
        !self.is_whole && self.within.is_none_or(|within| within.leaves_out)
    }

    /// Returns the limit of a plan that was announced to begin at `begin`: the time that was asked
    /// for, or else what was announced.
    pub(crate) fn limit(&self, speed: Option<&Calibration>, begin: Duration) -> Option<Within> {
        let announced = || {
            let time = self.time(speed);
            let asked = Duration::from_secs(time.as_millis().div_ceil(1000) as u64);
            Within { asked, until: begin.saturating_add(time), leaves_out: true }
        };
        (!self.is_whole).then(|| self.within.unwrap_or_else(announced))
    }

    /// Returns the result before any run.
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

/// A limit of time. Rounds that don't fit are not made, down to [`RUNS_MIN`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Within {
    /// The time that was asked for or announced.
    pub asked: Duration,
    /// The end of the last run, from the program's start.
    pub until: Duration,
    /// Whether the least important rows are left out if the fewest rounds don't fit either.
    pub leaves_out: bool,
}

/// The fraction of the time reserved for removing files and printing the result: three seconds of
/// sixty.
const AFTER_PART: u32 = 20;

impl Within {
    /// Limits the time from the program's start to `asked`, where `kept` of it is for later
    /// scenarios.
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
    /// Total file bytes written.
    pub written_bytes: u64,
    /// Requested rows that were not measured, with reasons.
    pub left_out: Vec<(String, String)>,
    /// The parts shortened for lack of time.
    pub shortened: Option<Shortened>,
    /// The bytes that the disk writes faster than its sustained rate.
    pub burst: Option<Burst>,
    /// The user stopped it: rows have fewer runs or are missing.
    pub is_interrupted: bool,
}

/// The result of one run timed by the scenario.
pub struct OneRun {
    /// The figures of the run.
    pub run: Run,
    /// The latency of each operation; empty if the run is one operation.
    pub latencies: Histogram<u64>,
    /// The settings in effect, with the depth reached.
    pub effective: Settings,
    /// Each setting that was not honoured, with the reason.
    pub fallbacks: Vec<Fallback>,
}

impl OneRun {
    /// Returns the row of the run, with the requested settings `asked`.
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
