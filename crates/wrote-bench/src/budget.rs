//! Fits runs into the time of a measurement.

use crate::rounds::Turn;
use crate::scenario::{Limits, Plan};
use std::collections::VecDeque;
use std::fmt::Debug;
use std::time::{Duration, Instant};
use wrote_jobs::findings::Shortened;
use wrote_result::units;

/// The fewest runs of a row with an interval. Student's t then has two degrees of freedom. With
/// only one, the interval would span a dozen standard errors, too wide to distinguish anything
/// (M8).
pub const RUNS_MIN: u32 = 3;
/// The fraction of the time reserved for removing files and printing the result: three seconds of
/// sixty.
const AFTER_PART: u32 = 20;
/// Runs are shrunk by at least this factor, as a smaller one would soon need another.
const SHRINK_MIN: f64 = 1.25;

/// The time since the program's start. Tests have their own clocks.
pub trait Clock: Debug {
    /// Returns the time since the program's start.
    fn elapsed(&self) -> Duration;
}

/// The machine's clock, given the program's start.
#[derive(Clone, Copy, Debug)]
pub struct SinceStart(pub Instant);

impl Clock for SinceStart {
    fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}

/// Returns the time at which the last run must be over, of a measurement that keeps `kept` of its
/// time.
pub(crate) fn until(within: Duration, kept: Duration) -> Duration {
    within - within / AFTER_PART - kept
}

/// Orders a plan's runs within its time limit.
///
/// If time is short, it first drops rounds, down to [`RUNS_MIN`], then shrinks runs, and finally
/// leaves out the least important rows.
#[derive(Debug)]
pub(crate) struct Schedule {
    rounds: u32,
    within: Option<Duration>,
    /// The time at which the last run must be over.
    until: Option<Duration>,
    rows: Vec<RowTime>,
    /// The current or next run, and those after it.
    order: VecDeque<Turn>,
    /// The last round that has begun.
    begun: Option<u32>,
    /// Runs were shrunk by this factor.
    shrunk: f64,
}

/// A row's runs and their times.
#[derive(Debug)]
struct RowTime {
    rank: usize,
    runs: u32,
    /// The total times of its last two runs.
    took: [Duration; 2],
    is_left_out: bool,
}

impl RowTime {
    /// Returns the expected time of the next run. A single fast run guarantees nothing.
    fn next(&self) -> Duration {
        self.took[0].max(self.took[1])
    }
}

impl Schedule {
    /// Plans `rounds` rounds.
    pub fn new(plan: &mut dyn Plan, rounds: u32) -> Schedule {
        let (count, order) = (plan.rows().len(), plan.order(rounds).into());
        let limits = plan.limits();
        let row = |row| {
            let (foreseen, rank) = match &limits {
                Some((_, limits)) => (limits.foreseen(row), limits.rank(row)),
                None => (Duration::ZERO, row),
            };
            RowTime { rank, runs: 0, took: [foreseen; 2], is_left_out: false }
        };
        let rows: Vec<RowTime> = (0..count).map(row).collect();
        let within = limits.as_ref().map(|(within, _)| *within);
        let until = limits.map(|(within, limits)| until(within, limits.kept_time()));
        Schedule { rounds, within, until, rows, order, begun: None, shrunk: 1.0 }
    }

    /// Returns the next run at time `now`; `None` when all runs that fit are done.
    pub fn next(&mut self, plan: &mut dyn Plan, now: Duration) -> Option<Turn> {
        if let Some(until) = self.until {
            let (_, limits) = plan.limits().expect("the time is limited");
            self.fit(limits, until.saturating_sub(now));
            let turn = *self.order.front()?;
            if now + self.takes(turn) > until {
                let least = self.least();
                self.order.retain(|turn| turn.round < least);
            }
        }
        let turn = *self.order.front()?;
        self.begun = Some(turn.round);
        Some(turn)
    }

    /// Records that the run took `took`, including creating, flushing and removing its files.
    pub fn is_over(&mut self, took: Duration) {
        let Some(turn) = self.order.pop_front() else { return };
        let row = &mut self.rows[turn.row];
        row.took = [took, if row.runs == 0 { took } else { row.took[0] }];
        row.runs += 1;
    }

    /// Skips the current run.
    pub fn skip(&mut self) {
        self.order.pop_front();
    }

    /// Returns the current run and those after it.
    pub fn ahead(&mut self) -> &[Turn] {
        self.order.make_contiguous()
    }

    /// Returns the time of all remaining runs, if the plan's time is limited.
    pub fn time_left(&self) -> Option<Duration> {
        let time = || self.order.iter().map(|turn| self.rows[turn.row].next()).sum();
        self.within.map(|_| time())
    }

    /// Returns whether the row was left out, having no run that counts.
    pub fn is_left_out(&self, row: usize) -> bool {
        self.rows[row].is_left_out
    }

    /// If the time was too short for every row, restores the rows that had a run: one run is better
    /// than no answer.
    pub fn end(&mut self) {
        if self.rows.iter().all(|row| row.is_left_out) {
            self.rows.iter_mut().for_each(|row| row.is_left_out = row.runs == 0);
        }
    }

    /// Returns the rows that were left out, with reasons.
    pub fn left_out(&self) -> impl Iterator<Item = (usize, String)> {
        let within = self.within.unwrap_or_default().as_secs_f64();
        let reason = move |row: &RowTime| {
            let takes = units::seconds((row.next() * RUNS_MIN).as_secs_f64());
            format!("time budget of {within} s used up; {RUNS_MIN} runs need {takes}")
        };
        let rows = self.rows.iter().enumerate().filter(|(_, row)| row.is_left_out);
        rows.map(move |(number, row)| (number, reason(row)))
    }

    /// Returns what was shortened for lack of time, except rows that were left out.
    pub fn shortened(&self) -> Option<Shortened> {
        let runs = self.rows.iter().filter(|row| !row.is_left_out).map(|row| row.runs);
        let runs_min = runs.min().unwrap_or(self.rounds);
        let is_short = runs_min < self.rounds || self.shrunk > 1.0;
        let (runs_asked, shrunk) = (self.rounds, self.shrunk);
        let of = |within| Shortened { runs_asked, runs_min, shrunk, within };
        self.within.filter(|_| is_short).map(of)
    }

    /// Returns the time needed for this run to be made. The minimum rounds are always made once
    /// planned, because [`Schedule::fit`] has reserved their time.
    fn takes(&self, turn: Turn) -> Duration {
        if turn.round < self.least() {
            return Duration::ZERO;
        }
        let is_first = self.begun != Some(turn.round);
        let of_round = self.order.iter().filter(|other| is_first && other.round == turn.round);
        let whole: Duration = of_round.map(|other| self.rows[other.row].next()).sum();
        // Rows that come last still have their minimum rounds ahead.
        whole.max(self.rows[turn.row].next()) + self.needs()
    }

    fn least(&self) -> u32 {
        RUNS_MIN.min(self.rounds)
    }

    /// Shrinks runs or leaves out rows until the minimum rounds fit into `left`.
    fn fit(&mut self, limits: &mut dyn Limits, left: Duration) {
        while self.needs() > left {
            let wanted = self.needs().as_secs_f64() / left.as_secs_f64().max(0.1);
            let factor = wanted.max(SHRINK_MIN);
            if !limits.shrink(factor) {
                return self.leave_out(left);
            }
            self.shrunk *= factor;
            for (number, row) in self.rows.iter_mut().enumerate() {
                let smaller = limits.shrunk(row.next(), factor);
                row.took = [if row.runs == 0 { limits.foreseen(number) } else { smaller }; 2];
            }
        }
    }

    /// Returns the time of the minimum rounds.
    fn needs(&self) -> Duration {
        let rows = self.rows.iter().filter(|row| !row.is_left_out);
        rows.map(|row| row.next() * self.least().saturating_sub(row.runs)).sum()
    }

    /// Keeps the most important rows that fit into `left`.
    fn leave_out(&mut self, mut left: Duration) {
        let least = self.least();
        let mut rows: Vec<&mut RowTime> =
            self.rows.iter_mut().filter(|row| !row.is_left_out && row.runs < least).collect();
        rows.sort_by_key(|row| row.rank);
        for row in rows {
            let needs = row.next() * (least - row.runs);
            row.is_left_out = needs > left;
            left = if row.is_left_out { left } else { left - needs };
        }
        self.order.retain(|turn| !self.rows[turn.row].is_left_out);
    }
}
