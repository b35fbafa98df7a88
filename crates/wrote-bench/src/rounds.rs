//! The loop that runs rows in turn (M8). Every scenario is measured by it.

use crate::budget::Schedule;
use crate::measured::clear;
use crate::progress::Ticker;
use crate::scenario::{Measured, Plan, Scope, Site};
use wrote_jobs::report::Repeated;
use wrote_result::Error;
use wrote_result::document::{Row, Scenario};

/// Runs of each row by default: enough for an interval, few enough for a minute.
pub const RUNS: u32 = 5;

/// One run of one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// The row's index.
    pub row: usize,
    /// The round, from 0.
    pub round: u32,
}

/// The order of the runs of `rows` rows in `rounds` rounds.
///
/// Every second round runs backwards. No row then always follows the same other row, and a steady
/// drift falls on all rows alike (M8).
pub fn in_turn(rows: usize, rounds: u32) -> Vec<Turn> {
    let of_round = |round: u32| {
        (0..rows).map(move |row| Turn {
            row: if round.is_multiple_of(2) { row } else { rows - 1 - row },
            round,
        })
    };
    (0..rounds).flat_map(of_round).collect()
}

/// The processes that measure together, each a rank. A process that measures alone is [`Alone`].
pub trait Peers: std::fmt::Debug {
    /// The number of this process, from 0.
    fn rank(&self) -> u32;
    /// Returns when every rank has called it. The loop calls it before each run.
    ///
    /// # Errors
    ///
    /// [`Error::Failed`] where a rank is gone.
    fn barrier(&self) -> Result<(), Error>;
    /// Adds up the rows of all ranks.
    ///
    /// # Errors
    ///
    /// [`Error::Failed`] where a rank is gone.
    fn gather(&self, rows: Vec<Row>) -> Result<Vec<Row>, Error>;
}

/// One process: rank 0 of 1.
#[derive(Clone, Copy, Debug, Default)]
pub struct Alone;

impl Peers for Alone {
    fn rank(&self) -> u32 {
        0
    }

    fn barrier(&self) -> Result<(), Error> {
        Ok(())
    }

    fn gather(&self, rows: Vec<Row>) -> Result<Vec<Row>, Error> {
        Ok(rows)
    }
}

impl dyn Plan {
    /// Prepares, runs the rows in turn (M8), and adds up their runs.
    ///
    /// A run's files are removed after it, and shared files at the end. With [`Site::keep`] the
    /// files of the last run that makes files stay, and the shared ones. Where the plan has a
    /// limited time ([`Plan::within`]), less is measured so that it keeps to it.
    ///
    /// # Errors
    ///
    /// [`Error::Interrupted`] when the user asked to stop, else [`Error::Failed`].
    pub fn measure(&mut self, site: &Site, ticker: &mut Ticker) -> Result<Measured, Error> {
        let measured = run_all(self, site, ticker);
        if measured.is_err() {
            // The first error is the one to report; what stays goes with the folder.
            let files = self.shared_files(site);
            let _ = self.finish().and_then(|()| clear(&files, site.scratch.path()));
        }
        measured
    }
}

fn run_all(plan: &mut dyn Plan, site: &Site, ticker: &mut Ticker) -> Result<Measured, Error> {
    let Scope { name, question, runs: rounds } = plan.scope();
    let planned = rounds * plan.rows().len() as u32;
    let mut written_bytes = plan.prepare(site, ticker)?;
    let names = plan.rows();
    ticker.leave_out(planned - rounds * names.len() as u32);
    let mut left_out = plan.left_out();
    for (name, because) in &left_out {
        ticker.note(&format!("{name} is left out: {because}"));
    }
    let mut schedule = Schedule::new(plan, rounds);
    let mut runs: Vec<Repeated> = names.iter().map(|_| Repeated::default()).collect();
    // With `keep`, the row whose files are still there: its run may have been the last.
    let mut kept: Option<usize> = None;
    let mut told = rounds * names.len() as u32;
    while let Some(turn) = schedule.next(plan, site.clock.elapsed()) {
        site.stop.check()?;
        site.peers.barrier()?;
        let began = site.clock.elapsed();
        if let Some(row) = kept.take_if(|_| plan.makes_files(turn.row)) {
            plan.clear(row, site)?;
        }
        let ahead = schedule.ahead().len() as u32;
        ticker.leave_out(told - ahead);
        told = ahead - 1;
        if let Some(time) = plan.time_left(schedule.ahead()).or(schedule.time_left()) {
            ticker.foresee(ahead, time);
        }
        ticker.tick(&names[turn.row]);
        runs[turn.row].add(plan.run(turn, site, ticker)?);
        site.stop.check()?;
        if site.keep && plan.makes_files(turn.row) {
            kept = Some(turn.row);
        } else {
            plan.clear(turn.row, site)?;
        }
        schedule.is_over(site.clock.elapsed().saturating_sub(began));
    }
    ticker.leave_out(told);
    plan.finish()?;
    if !site.keep {
        clear(&plan.shared_files(site), site.scratch.path())?;
    }
    written_bytes += runs.iter().map(|runs| runs.written_bytes).sum::<u64>();
    let given_up: Vec<(usize, String)> = schedule.left_out().collect();
    for (row, because) in &given_up {
        ticker.note(&format!("{} is left out: {because}", names[*row]));
        left_out.push((names[*row].clone(), because.clone()));
    }
    let measured = runs.into_iter().enumerate().filter(|(row, _)| !schedule.is_left_out(*row));
    let rows = site.peers.gather(measured.flat_map(|(_, runs)| runs.rows()).collect())?;
    if let Some((row, because)) = given_up.first().filter(|_| rows.is_empty()) {
        let text = format!(
            "no row can be measured here ({}: {because}); --runs measures in any time",
            names[*row]
        );
        return Err(Error::Failed(text));
    }
    let knee = plan.knee(&rows);
    let scenario = Scenario { name: name.into(), question, rows, knee };
    Ok(Measured { scenario, written_bytes, left_out, shortened: schedule.shortened() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_second_round_is_backwards() {
        // M8
        let order = in_turn(2, 3);
        assert_eq!(order.iter().map(|turn| turn.row).collect::<Vec<_>>(), [0, 1, 1, 0, 0, 1]);
        assert_eq!(order.iter().map(|turn| turn.round).collect::<Vec<_>>(), [0, 0, 1, 1, 2, 2]);
    }
}
