//! The progress of a measurement, which is reported to an observer.

use std::path::PathBuf;
use std::time::{Duration, Instant};
use wrote_result::document::{Answer, Row};

/// The plan of a measurement, announced before its first byte.
#[derive(Clone, Debug)]
pub struct Announcement {
    /// The folder that the run created for its files.
    pub folder: PathBuf,
    /// The maximum number of bytes in that folder at any time.
    pub space_bytes_max: u64,
    /// The maximum number of bytes written in total; `u64::MAX` if only time limits them.
    pub written_bytes_max: u64,
    /// The number of runs.
    pub runs: u32,
    /// The estimated time of all runs.
    pub estimated: Duration,
    /// Whether the runs are limited to the estimated time.
    pub is_limited: bool,
}

/// The state of a measurement.
#[derive(Clone, Debug)]
pub struct Progress {
    /// The row being measured.
    pub row: String,
    /// The number of completed runs.
    pub runs_done: u32,
    /// The completed fraction of the current run, from 0 to 1. A short run reports 0 until it ends.
    pub fraction: f64,
    /// The total number of runs.
    pub runs: u32,
    /// The estimated time of the remaining runs.
    pub left: Duration,
    /// The bytes per second and the operations per second of the previous run.
    pub speed: Option<[f64; 2]>,
}

/// A receiver of progress events. Every method does nothing by default.
pub trait Observer {
    /// Called once, before the first byte is written.
    fn announce(&mut self, _announcement: &Announcement) {}
    /// Called before each run and after the last one; during long runs, a few times per second.
    fn progress(&mut self, _progress: &Progress) {}
    /// Called after each round, with the answers so far and their rows.
    fn answers(&mut self, _answers: &[Answer], _rows: &[Row]) {}
    /// Called with a remark that is not part of the result, for example on a folder left by a
    /// killed run.
    fn note(&mut self, _text: &str) {}
}

/// An observer that ignores every event.
impl Observer for () {}

/// A function that computes the answers from rows.
pub type Answering<'a> = &'a dyn Fn(&[Row]) -> Vec<Answer>;

/// Counts runs, and reports the progress before each run and after the last one.
pub struct Ticker<'a> {
    observer: &'a mut dyn Observer,
    answering: Option<Answering<'a>>,
    /// The rows of the scenarios that have finished.
    rows: Vec<Row>,
    runs: u32,
    begun: u32,
    /// The remaining runs of the current scenario. They are included in `runs`.
    ahead: u32,
    /// The estimated mean time of a run, and the estimated end of all runs.
    each: Duration,
    over: Instant,
    speed: Option<[f64; 2]>,
}

impl<'a> Ticker<'a> {
    /// Creates a ticker for `runs` runs, which are estimated to take `estimated` in total.
    pub fn new(observer: &'a mut dyn Observer, runs: u32, estimated: Duration) -> Ticker<'a> {
        let (each, over) = (estimated / runs.max(1), Instant::now() + estimated);
        let rows = Vec::new();
        Ticker {
            observer,
            answering: None,
            rows,
            runs,
            begun: 0,
            ahead: 0,
            each,
            over,
            speed: None,
        }
    }

    /// Returns the ticker, which also reports the answers after each round.
    pub fn answering(self, answers: Answering<'a>) -> Ticker<'a> {
        Ticker { answering: Some(answers), ..self }
    }

    /// Keeps the rows of a finished scenario for [`Ticker::so_far`].
    pub fn keep(&mut self, rows: &[Row]) {
        if self.answering.is_some() {
            self.rows.extend_from_slice(rows);
        }
    }

    /// Reports the answers that follow from these rows, which cover all runs of the scenario so
    /// far, and from the rows of earlier scenarios.
    pub fn so_far(&mut self, rows: impl FnOnce() -> Vec<Row>) {
        let Some(answering) = &self.answering else { return };
        let rows = [self.rows.clone(), rows()].concat();
        self.observer.answers(&answering(&rows), &rows);
    }

    /// Counts a run of `row` that is about to start.
    pub fn tick(&mut self, row: &str) {
        self.report(row, self.begun, 0.0);
        self.begun += 1;
        self.ahead = self.ahead.saturating_sub(1);
    }

    /// Keeps the speed of a run that has finished, as given by the first of its rows.
    pub fn ran(&mut self, rows: &[Row]) {
        let run = rows.first().and_then(|row| row.runs.last());
        self.speed = run.map(|run| [run.throughput_bytes_per_s, run.iops]);
    }

    /// Begins a scenario of `runs` planned runs.
    pub fn begin(&mut self, runs: u32) {
        self.ahead = runs;
    }

    /// Reports the completed fraction of the current run, from 0 to 1.
    pub fn within(&mut self, row: &str, fraction: f64) {
        self.report(row, self.begun.saturating_sub(1), fraction.clamp(0.0, 1.0));
    }

    /// Sets the number of runs that the scenario has left, and their estimated time.
    pub fn foresee(&mut self, runs: u32, time: Duration) {
        self.runs = (self.runs + runs).saturating_sub(self.ahead);
        self.ahead = runs;
        let others = self.runs.saturating_sub(self.begun + runs);
        self.over = Instant::now() + time + self.each * others;
    }

    /// Passes a remark to the observer.
    pub fn note(&mut self, text: &str) {
        self.observer.note(text);
    }

    /// Reports that all runs have finished.
    pub fn finish(mut self) {
        self.over = Instant::now();
        self.report("", self.begun, 0.0);
    }

    fn report(&mut self, row: &str, runs_done: u32, fraction: f64) {
        let (row, left) = (row.into(), self.over.saturating_duration_since(Instant::now()));
        let (runs, speed) = (self.runs, self.speed);
        self.observer.progress(&Progress { row, runs_done, fraction, runs, left, speed });
    }
}
