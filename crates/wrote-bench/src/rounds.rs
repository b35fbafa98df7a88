//! The loop that runs rows in turn (M8). Every scenario uses it.

use crate::budget::Schedule;
use crate::progress::Ticker;
use crate::scenario::{Measured, Plan, Scope, Site};
use std::time::Duration;
use wrote_jobs::clock::Together;
use wrote_jobs::machine::target::device_of;
use wrote_jobs::report::{Facts, Repeated, merged};
use wrote_result::Error;
use wrote_result::document::{Row, Scenario};

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

/// Returns the order of the runs of `rows` rows in `rounds` rounds.
///
/// Every second round runs backwards. Thus no row always follows the same other row, and a steady
/// drift affects all rows alike (M8).
pub fn in_turn(rows: usize, rounds: u32) -> Vec<Turn> {
    let of_round = |round: u32| {
        (0..rows).map(move |row| Turn {
            row: if round.is_multiple_of(2) { row } else { rows - 1 - row },
            round,
        })
    };
    (0..rounds).flat_map(of_round).collect()
}

impl dyn Plan + '_ {
    /// Prepares, runs the rows in turn (M8), and combines their runs.
    ///
    /// A run's files are removed after it, and shared files at the end. With [`Site::keep`], the
    /// shared files stay, and the files of the last run that creates any. If the plan has a time
    /// limit, measures less to meet it.
    ///
    /// # Errors
    ///
    /// [`Error::Interrupted`] if the user asked to stop before any row had a run, else
    /// [`Error::Failed`].
    pub fn measure(&mut self, site: &Site, ticker: &mut Ticker) -> Result<Measured, Error> {
        let measured = run_all(self, site, ticker);
        if measured.is_err() {
            // Report the first error; what remains is removed with the folder.
            let files = self.shared_files(site);
            let _ = self.finish(site).and_then(|()| site.clear(&files));
        }
        measured
    }
}

fn run_all(plan: &mut dyn Plan, site: &Site, ticker: &mut Ticker) -> Result<Measured, Error> {
    let Scope { name, question, runs: rounds } = plan.scope();
    let planned = rounds * plan.rows().len() as u32;
    site.peers.barrier("before the trial runs")?;
    let mut written_bytes = plan.prepare(site, ticker)?;
    let names = plan.rows();
    let mut now = begin(site, &names)?;
    ticker.leave_out(planned - rounds * names.len() as u32);
    let mut left_out = plan.left_out();
    for (name, because) in &left_out {
        ticker.note(&format!("{name} skipped: {because}"));
    }
    let mut schedule = Schedule::new(plan, rounds);
    let mut runs: Vec<Repeated> = names.iter().map(|_| Repeated::default()).collect();
    // With `keep`, the row whose files still exist, as its run may have been the last.
    let mut kept: Option<usize> = None;
    let mut told = rounds * names.len() as u32;
    let mut is_interrupted = false;
    // All ranks decide by rank 0's time, and therefore alike.
    while let Some(turn) = schedule.next(plan, now) {
        is_interrupted = site.stop.is_requested();
        if is_interrupted {
            break;
        }
        if plan.gives_up(turn, now) {
            schedule.skip();
            continue;
        }
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
        match run_together(plan, turn, site, ticker) {
            Err(Error::Interrupted) => {
                is_interrupted = true;
                break;
            }
            run => runs[turn.row].add(run?),
        }
        if site.keep && plan.makes_files(turn.row) {
            kept = Some(turn.row);
        } else {
            plan.clear(turn.row, site)?;
        }
        let took;
        (now, took) = agreed(site, site.clock.elapsed().saturating_sub(began))?;
        schedule.is_over(took);
        if schedule.ahead().first().is_none_or(|next| next.round != turn.round) {
            ticker.so_far(|| runs.iter().cloned().flat_map(Repeated::rows).collect());
        }
    }
    ticker.leave_out(told);
    let is_measured = runs.iter().any(|runs| !runs.rows.is_empty());
    if is_interrupted && (site.peers.are_many() || !is_measured) {
        return Err(Error::Interrupted);
    }
    plan.finish(site)?;
    if !site.keep {
        site.clear(&plan.shared_files(site))?;
    }
    written_bytes += runs.iter().map(|runs| runs.written_bytes).sum::<u64>();
    schedule.end();
    let given_up: Vec<(usize, String)> = schedule.left_out().collect();
    for (row, because) in &given_up {
        ticker.note(&format!("{} skipped: {because}", names[*row]));
        left_out.push((names[*row].clone(), because.clone()));
    }
    let measured = runs.into_iter().enumerate().filter(|(row, _)| !schedule.is_left_out(*row));
    let rows: Vec<Row> = measured.flat_map(|(_, runs)| runs.rows()).collect();
    if let Some((row, because)) = given_up.first().filter(|_| rows.is_empty()) {
        let text = format!(
            "no row can be measured here ({}: {because}); --runs measures without a limit of time",
            names[*row]
        );
        return Err(Error::Failed(text));
    }
    ticker.keep(&rows);
    let knee = if is_interrupted { None } else { plan.knee(&rows) };
    let scenario = Scenario { name: name.into(), question, rows, knee };
    let shortened = schedule.shortened().filter(|_| !is_interrupted);
    let burst = plan.burst();
    Ok(Measured { scenario, written_bytes, left_out, shortened, burst, is_interrupted })
}

/// Refuses ranks that would measure different rows. Returns rank 0's time.
fn begin(site: &Site, names: &[String]) -> Result<Duration, Error> {
    let places = site.peers.places();
    let mine = (names.to_vec(), site.clock.elapsed());
    site.peers.agree("the rows", mine, |all| {
        let (rows, now) = all[0].clone();
        match all.iter().position(|(theirs, _)| *theirs != rows) {
            None => Ok(now),
            Some(rank) => {
                let differs = |name: &&String| !rows.contains(name) || !all[rank].0.contains(name);
                let name = rows.iter().chain(&all[rank].0).find(differs);
                Err(Error::Failed(format!(
                    "rank {rank} on {} would not measure the rows of rank 0: {} is not on both",
                    places.node(rank as u32),
                    name.map_or("their order", String::as_str),
                )))
            }
        }
    })
}

/// Makes one run on all ranks. On rank 0 it returns the combined rows.
fn run_together(
    plan: &mut dyn Plan,
    turn: Turn,
    site: &Site,
    ticker: &mut Ticker,
) -> Result<Repeated, Error> {
    if !site.peers.are_many() {
        return plan.run(turn, site, ticker);
    }
    let together = Together::new(site.peers);
    let run = plan.run(turn, &Site { together: Some(&together), ..*site }, ticker)?;
    let device = device_of(site.target).map_or(String::new(), |device| device.name.clone());
    let facts = Facts { run: run.clone().without_texts(), parts: together.parts(), device };
    let all = site.peers.gather("the end of a run", facts)?;
    match site.peers.is_first() {
        true => plan.summed(merged(all, site.peers.places())?),
        false => Ok(run),
    }
}

/// Returns rank 0's time, and the time of the slowest rank.
fn agreed(site: &Site, took: Duration) -> Result<(Duration, Duration), Error> {
    site.peers.agree("the time", (site.clock.elapsed(), took), |all| {
        let longest = all.iter().map(|(_, took)| *took).max().unwrap_or_default();
        Ok((all[0].0, longest))
    })
}

#[cfg(test)]
mod ranks_tests;

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
