//! Progress of a measurement, reported to an observer.

use std::path::PathBuf;
use std::time::{Duration, Instant};
use wrote_result::document::{Answer, Row};

/// The plan of a measurement, announced before its first byte.
#[derive(Clone, Debug)]
pub struct Announcement {
    /// The folder that the run created for its files.
    pub folder: PathBuf,
    /// The most bytes in that folder at any time.
    pub space_bytes_max: u64,
    /// The most bytes written in total; `u64::MAX` if limited only by time.
    pub written_bytes_max: u64,
    /// The number of runs.
    pub runs: u32,
    /// The time of all runs.
    pub estimated: Duration,
    /// Whether they take no more than that.
    pub is_limited: bool,
    /// The estimated further time if the disk slows down during a long write; usually 0.
    pub estimated_slowed: Duration,
}

/// The state of a measurement.
#[derive(Clone, Debug)]
pub struct Progress {
    /// The row being measured.
    pub row: String,
    /// Completed runs.
    pub runs_done: u32,
    /// The completed fraction of the current run, from 0 to 1. Short runs report 0 until they end.
    pub fraction: f64,
    /// Total runs.
    pub runs: u32,
    /// The estimated time of the remaining runs.
    pub left: Duration,
}

/// Receives progress events. Every method defaults to a no-op.
pub trait Observer {
    /// Called once, before the first byte is written.
    fn announce(&mut self, _announcement: &Announcement) {}
    /// Called before each run and after the last. Long runs call it a few times a second.
    fn progress(&mut self, _progress: &Progress) {}
    /// Receives the answers so far and their rows, after each round.
    fn answers(&mut self, _answers: &[Answer], _rows: &[Row]) {}
    /// Receives a remark that is not part of the result, such as a folder left by a killed run.
    fn note(&mut self, _text: &str) {}
}

/// An observer that ignores every event.
impl Observer for () {}

/// Computes the answers from rows.
pub type Answering<'a> = &'a dyn Fn(&[Row]) -> Vec<Answer>;

/// Counts runs, and reports progress before each run and after the last.
pub struct Ticker<'a> {
    observer: &'a mut dyn Observer,
    answering: Option<Answering<'a>>,
    /// The rows of the scenarios that are over.
    rows: Vec<Row>,
    began: Instant,
    runs: u32,
    begun: u32,
    run_began: Instant,
    estimated: Duration,
    /// A better estimate: up to which run it reaches, and when that run ends.
    foreseen: Option<(u32, Instant)>,
}

impl<'a> Ticker<'a> {
    /// Creates a ticker for `runs` runs, estimated to take `estimated` in all.
    pub fn new(observer: &'a mut dyn Observer, runs: u32, estimated: Duration) -> Ticker<'a> {
        let began = Instant::now();
        let (answering, foreseen, run_began) = (None, None, began);
        let rows = Vec::new();
        Ticker { observer, answering, rows, began, runs, begun: 0, run_began, estimated, foreseen }
    }

    /// Enables reporting the answers after each round.
    pub fn answering(self, answers: Answering<'a>) -> Ticker<'a> {
        Ticker { answering: Some(answers), ..self }
    }

    /// Keeps the rows of a finished scenario, for [`Ticker::so_far`].
    pub fn keep(&mut self, rows: &[Row]) {
        if self.answering.is_some() {
            self.rows.extend_from_slice(rows);
        }
    }

    /// Reports the answers from these rows, which cover all runs so far, and from the rows of
    /// earlier scenarios.
    pub fn so_far(&mut self, rows: impl FnOnce() -> Vec<Row>) {
        let Some(answering) = &self.answering else { return };
        let rows = [self.rows.clone(), rows()].concat();
        self.observer.answers(&answering(&rows), &rows);
    }

    /// Counts a run of `row` that starts now.
    pub fn tick(&mut self, row: &str) {
        self.report(row);
        self.begun += 1;
        self.run_began = Instant::now();
    }

    /// Reports the completed fraction of the current run, from 0 to 1.
    pub fn within(&mut self, row: &str, fraction: f64) {
        let fraction = fraction.clamp(0.0, 1.0);
        let (runs, runs_done) = (self.runs, self.begun.saturating_sub(1));
        // Too early to extrapolate.
        let of_run = if fraction < 0.02 {
            self.estimated.saturating_sub(self.began.elapsed())
        } else {
            self.run_began.elapsed().mul_f64((1.0 - fraction) / fraction)
        };
        let of_others = if runs_done == 0 {
            Duration::ZERO
        } else {
            (self.run_began - self.began) / runs_done * runs.saturating_sub(self.begun)
        };
        let left = of_run + of_others;
        self.observer.progress(&Progress { row: row.into(), runs_done, runs, fraction, left });
    }

    /// Sets the estimate of the next `runs` runs, which may differ from earlier ones.
    pub fn foresee(&mut self, runs: u32, time: Duration) {
        self.foreseen = Some((self.begun + runs, Instant::now() + time));
    }

    /// Removes `runs` runs from the total.
    pub fn leave_out(&mut self, runs: u32) {
        self.runs = self.runs.saturating_sub(runs);
    }

    /// Passes a remark to the observer.
    pub fn note(&mut self, text: &str) {
        self.observer.note(text);
    }

    /// Reports that all runs are over.
    pub fn finish(mut self) {
        self.report("");
    }

    fn report(&mut self, row: &str) {
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
