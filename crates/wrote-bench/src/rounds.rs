//! The loop that runs rows in turn (M8), for every scenario.

use crate::calibration::Calibration;
use crate::plan::{Measured, Plan, RUNS_MIN, RowSpec, Turn, Within, in_turn};
use crate::progress::Ticker;
use crate::site::Site;
use itertools::Itertools;
use std::collections::VecDeque;
use std::time::Duration;
use wrote_jobs::findings::Shortened;
use wrote_jobs::machine::foreign::Between;
use wrote_jobs::report::{Repeated, of_all_ranks};
use wrote_result::Error;
#[cfg(test)]
use wrote_result::document::Row;
use wrote_result::document::Run;
use wrote_result::units::{self, some_of};

/// The multiple of its share of the time that a row may take before it gets fewer runs.
const SHARE_TIMES: u32 = 2;

/// The maximum number of names in a line about skipped rows.
const SKIPPED_MAX: usize = 2;

/// The order of a plan's runs within its time limit. Every row is expected to take its slice for
/// its first run, and then as long as the slower of its last two runs.
///
/// If time is short, there are fewer rounds, but at least [`RUNS_MIN`]. A row that took much more
/// than its share then gets fewer runs than the others, but also at least [`RUNS_MIN`]. If not even
/// this minimum of rounds fits, the least important rows get no further runs. At least one row has
/// a run.
///
/// If time is left after all rounds, because fast rows took less than their slices, further rounds
/// run the rows that still fit. These rounds may use the bytes that were announced for their rows,
/// and the bytes that other rows can no longer use.
#[derive(Debug)]
struct Schedule {
    rounds: u32,
    within: Option<Within>,
    /// Whether further rounds run while time is left.
    has_further: bool,
    /// The number of rounds so far, including further ones, and the time until which further rounds
    /// may run.
    begun: u32,
    further_until: Duration,
    /// The announced bytes that belong to no row, or to rows with too few bytes left for another
    /// run.
    spare_bytes: u64,
    rows: Vec<RowTime>,
    /// The current or next run, followed by the later ones.
    order: VecDeque<Turn>,
}

/// A row's runs and their times.
#[derive(Debug)]
struct RowTime {
    importance: usize,
    /// The planned time of the row in a round.
    share: Duration,
    runs: u32,
    /// The times of the row's last two runs, and the total time of all its runs.
    took: [Duration; 2],
    spent: Duration,
    /// The maximum number of bytes of a run, and the announced bytes that have not been written.
    bytes_max: u64,
    bytes_left: u64,
    /// Whether the row gets no further runs because it failed, or is left out as long as the time
    /// seems too short for its minimum of runs.
    is_out: bool,
}

impl RowTime {
    /// Returns the expected time of the next run: the slower of the last two, because a single fast
    /// run guarantees nothing.
    fn next(&self) -> Duration {
        self.took[0].max(self.took[1])
    }
}

/// Returns the order of the runs in `rounds` rounds (M8).
pub(crate) fn order(specs: &[RowSpec], rounds: u32) -> Vec<Turn> {
    let turns = in_turn(specs.len(), 0..rounds);
    let (last, mut order): (Vec<Turn>, Vec<Turn>) = turns.partition(|turn| specs[turn.row].is_last);
    order.extend(last);
    order
}

impl Schedule {
    /// Schedules all runs, each with its planned time as the expected one.
    fn new(
        specs: &[RowSpec],
        plan: &Plan,
        within: Option<Within>,
        speed: Option<&Calibration>,
    ) -> Schedule {
        let row = |row: &RowSpec| {
            let share = row.share(speed);
            RowTime {
                importance: row.importance,
                share,
                runs: 0,
                took: [share; 2],
                spent: Duration::ZERO,
                bytes_max: row.bytes_max,
                bytes_left: row.bytes_max.saturating_mul(plan.runs.into()),
                is_out: false,
            }
        };
        Schedule {
            rounds: plan.runs,
            within,
            // Further rounds must not follow a row that has to run last.
            has_further: !plan.is_sized && !specs.iter().any(|row| row.is_last),
            begun: plan.runs,
            further_until: Duration::MAX,
            spare_bytes: plan.spare_bytes,
            rows: specs.iter().map(row).collect(),
            order: order(specs, plan.runs).into(),
        }
    }

    /// Returns the next run at time `now`; `None` when all runs that fit are done.
    fn next(&mut self, now: Duration) -> Option<Turn> {
        let Some(Within { until, leaves_out, .. }) = self.within else {
            return self.order.front().copied();
        };
        let is_further = self.order.front().is_none_or(|turn| turn.round >= self.rounds);
        let until = if is_further { until.min(self.further_until) } else { until };
        let left = until.saturating_sub(now);
        if self.order.is_empty() && self.has_further {
            self.add_round(left);
        }
        if left >= self.all_ahead() {
            return self.order.front().copied();
        }
        if leaves_out {
            self.leave_out(left);
        }
        while let Some(turn) = self.order.front().copied() {
            if self.fits(turn, left) {
                return Some(turn);
            }
            self.order.pop_front();
        }
        None
    }

    /// Returns whether a run is within the minimum of its row, or takes no time from another run. A
    /// row that was left out before its first run is not started.
    fn fits(&self, turn: Turn, left: Duration) -> bool {
        let row = &self.rows[turn.row];
        let is_over_share = row.spent > row.share * SHARE_TIMES * (turn.round + 1);
        let is_least = row.runs < self.least();
        // Rows that run last still need time for their minimum of runs.
        let is_spare = row.next() + self.needs() <= left;
        match row.is_out {
            true => is_spare && row.runs > 0,
            false => is_least || !is_over_share && is_spare,
        }
    }

    /// Adds a round of the rows that still fit.
    fn add_round(&mut self, left: Duration) {
        for row in self.rows.iter_mut().filter(|row| row.bytes_left < row.bytes_max) {
            self.spare_bytes += std::mem::take(&mut row.bytes_left);
        }
        for turn in in_turn(self.rows.len(), self.begun..self.begun + 1) {
            let row = &self.rows[turn.row];
            let lent = row.bytes_max.saturating_sub(row.bytes_left);
            if !row.is_out && self.spare_bytes >= lent && self.fits(turn, left) {
                self.spare_bytes -= lent;
                self.rows[turn.row].bytes_left += lent;
                self.order.push_back(turn);
            }
        }
        self.begun += 1;
    }

    /// Records that a run took `took`, including creating, flushing and removing its files.
    fn is_over(&mut self, turn: Turn, took: Duration, written_bytes: u64) {
        self.order.pop_front();
        let row = &mut self.rows[turn.row];
        row.bytes_left = row.bytes_left.saturating_sub(written_bytes);
        row.took = [took, if row.runs == 0 { took } else { row.took[0] }];
        row.runs += 1;
        row.spent += took;
    }

    /// Excludes a row that has failed or can't be measured from further runs.
    fn end_row(&mut self, row: usize) {
        (self.rows[row].runs, self.rows[row].is_out) = (self.rounds, true);
        self.order.retain(|turn| turn.row != row);
    }

    /// Returns the time of the remaining runs, within the limit.
    fn time_left(&self, now: Duration) -> Duration {
        let time = self.all_ahead();
        self.within.map_or(time, |within| within.until.saturating_sub(now).min(time))
    }

    /// Returns the time of the remaining runs if none of them is dropped.
    fn all_ahead(&self) -> Duration {
        self.order.iter().map(|turn| self.rows[turn.row].next()).sum()
    }

    /// Returns the rows that had no run due to lack of time, and the reason in words.
    fn left_out(&self) -> (Vec<usize>, String) {
        let within = self.within.map_or(Duration::ZERO, |within| within.asked);
        let reason = format!("{} are too short for them", units::seconds(within.as_secs_f64()));
        let rows = self.rows.iter().enumerate().filter(|(_, row)| row.runs == 0);
        (rows.map(|(number, _)| number).collect(), reason)
    }

    /// Returns how far the number of runs was reduced due to lack of time; `None` if it was not.
    /// Rows that were left out are not counted.
    fn shortened(&self) -> Option<Shortened> {
        let runs = self.rows.iter().filter(|row| row.runs > 0).map(|row| row.runs);
        let runs_min = runs.min().unwrap_or(self.rounds);
        let of =
            |within: Within| Shortened { runs_asked: self.rounds, runs_min, within: within.asked };
        self.within.filter(|_| runs_min < self.rounds).map(of)
    }

    fn least(&self) -> u32 {
        RUNS_MIN.min(self.rounds)
    }

    /// Returns the time that the minimum of rounds still needs.
    fn needs(&self) -> Duration {
        let rows = self.rows.iter().filter(|row| !row.is_out);
        rows.map(|row| row.next() * self.least().saturating_sub(row.runs)).sum()
    }

    /// Keeps the most important rows that fit into `left`. If no row has run, keeps the most
    /// important row in any case. A row that was left out returns as soon as its minimum of runs
    /// fits.
    fn leave_out(&mut self, mut left: Duration) {
        let least = self.least();
        let mut is_kept = self.rows.iter().all(|row| row.runs == 0);
        let mut rows: Vec<&mut RowTime> =
            self.rows.iter_mut().filter(|row| row.runs < least).collect();
        rows.sort_by_key(|row| row.importance);
        for row in rows {
            let needs = row.next() * (least - row.runs);
            row.is_out = needs > left && !is_kept;
            is_kept = false;
            left = if row.is_out { left } else { left.saturating_sub(needs) };
        }
    }
}

/// Measures plans that have the same number of rounds, each on its site: prepares them, runs all
/// their rows in turn (M8), and combines the runs of each row.
///
/// The files of a run are removed after it, and shared files at the end. With [`Site::keep`], the
/// shared files are kept, as are the files of the last run that created any. If a plan has a time
/// limit, fewer runs take place to meet it. `speeds` are the speeds of the disks, and `begin` is
/// the announced time at which the plans begin.
pub(crate) fn measure_in_turn(
    plans: &mut [Plan],
    speeds: &[Calibration],
    begin: Duration,
    sites: &[Site],
    ticker: &mut Ticker,
) -> Result<Vec<Measured>, Error> {
    let sites = plans.iter().zip(sites);
    let sites: Vec<Site> =
        sites.map(|(plan, site)| Site { scenario: plan.name, ..*site }).collect();
    let measured = run_all(plans, speeds, begin, &sites, ticker);
    if measured.is_err() {
        // The first error is the one to report. Whatever remains is removed with the folder.
        let _ = finish(plans, &sites);
    }
    measured
}

fn finish(plans: &mut [Plan], sites: &[Site]) -> Result<(), Error> {
    plans.iter_mut().zip(sites).try_for_each(|(plan, site)| plan.work.finish(site))
}

/// Writes a line about rows that are skipped, if there are any.
fn note_skipped(rows: &[&str], because: &str, ticker: &mut Ticker) {
    if !rows.is_empty() {
        ticker.note(&format!("{} skipped: {because}", some_of(rows, SKIPPED_MAX)));
    }
}

fn run_all(
    plans: &mut [Plan],
    speeds: &[Calibration],
    begin: Duration,
    sites: &[Site],
    ticker: &mut Ticker,
) -> Result<Vec<Measured>, Error> {
    let site = &sites[0];
    // Each row of a plan is followed by the other plans' rows with the same index.
    let longest = plans.iter().map(|plan| plan.rows.len()).max().unwrap_or(0);
    let of_each = |row| (0..plans.len()).map(move |plan| (plan, row));
    let places =
        (0..longest).flat_map(of_each).filter(|(plan, row)| *row < plans[*plan].rows.len());
    let places: Vec<(usize, usize)> = places.collect();
    let specs: Vec<RowSpec> =
        places.iter().map(|(plan, row)| plans[*plan].rows[*row].clone()).collect();
    let names: Vec<String> = specs.iter().map(|spec| spec.row.name.clone()).collect();
    let speed = Some(&speeds[0]);
    let within = plans[0].limit(speed, begin);
    let mut schedule = Schedule::new(&specs, &plans[0], within, speed);
    let mut measured: Vec<Measured> = Vec::new();
    for number in 0..plans.len() {
        let plan = &mut plans[number];
        let prepared = plan.work.prepare(&sites[number], ticker)?;
        let mut left_out = plan.left_out.clone();
        for (row, because) in prepared.left_out {
            left_out.push((plan.rows[row].row.name.clone(), because));
            let is_place = |place: &(usize, usize)| *place == (number, row);
            schedule.end_row(places.iter().position(is_place).expect("it is a row"));
        }
        for because in left_out.iter().map(|(_, because)| because).unique() {
            let rows = left_out.iter().filter(|(_, of)| of == because);
            note_skipped(&rows.map(|(name, _)| &**name).collect::<Vec<_>>(), because, ticker);
        }
        measured.push(plan.measured(prepared.written_bytes, left_out));
    }
    // All ranks must decide alike, so they decide by rank 0's time, which is read when the last
    // rank has arrived. Rank 0 has the sum of all ranks' bytes, so the agreed number is the mean.
    let agreed = |written_bytes: u64| {
        site.peers.agree("the time", written_bytes, |all| {
            Ok((site.clock.elapsed(), all[0] / all.len() as u64))
        })
    };
    let (mut now, _) = agreed(0)?;
    if plans[0].within.is_none() {
        // If a stall in the calibration made the planned preparation too long, the time that the
        // preparation leaves unused is not filled with runs.
        schedule.further_until = now.saturating_add(schedule.all_ahead());
    }
    ticker.begin(schedule.rounds * names.len() as u32);
    let mut runs: Vec<Repeated> = names.iter().map(|_| Repeated::default()).collect();
    // With `keep`, the row whose last run created files that still exist, because it may have been
    // the last run that creates any.
    let mut kept: Option<usize> = None;
    let mut is_interrupted = false;
    let mut between: Vec<Between> = sites.iter().map(|site| Between::new(site.device())).collect();
    while let Some(turn) = schedule.next(now) {
        is_interrupted = site.stop.is_requested();
        if is_interrupted {
            break;
        }
        let makes_files = specs[turn.row].makes_files;
        let clear = |plans: &mut [Plan], row: usize| {
            let (plan, row) = places[row];
            plans[plan].work.clear(row, &sites[plan])
        };
        if let Some(row) = kept.take_if(|_| makes_files) {
            clear(plans, row)?;
        }
        ticker.foresee(schedule.order.len() as u32, schedule.time_left(now));
        ticker.tick(&names[turn.row]);
        let (plan, row) = places[turn.row];
        let (has_failed, written);
        let turn_of_plan = Turn { row, ..turn };
        match judged(&mut plans[plan], turn_of_plan, &sites[plan], ticker, &mut between[plan]) {
            Err(Error::Interrupted) => {
                is_interrupted = true;
                break;
            }
            run => {
                let run = run?;
                (has_failed, written) = (run.rows.is_empty(), run.written_bytes);
                ticker.ran(&run.rows);
                runs[turn.row].add(run);
            }
        }
        if site.keep && makes_files {
            kept = Some(turn.row);
        }
        let (ended, written_bytes) = agreed(written)?;
        let began = std::mem::replace(&mut now, ended);
        schedule.is_over(turn, now.saturating_sub(began), written_bytes);
        if has_failed {
            schedule.end_row(turn.row);
        }
        if schedule.order.front().is_none_or(|next| next.round != turn.round) {
            ticker.so_far(|| runs.iter().cloned().flat_map(Repeated::rows).collect());
        }
    }
    ticker.foresee(0, Duration::ZERO);
    let is_measured = runs.iter().any(|runs| !runs.rows.is_empty());
    if is_interrupted && (site.peers.are_many() || !is_measured) {
        return Err(Error::Interrupted);
    }
    finish(plans, sites)?;
    let (left_out, because) = schedule.left_out();
    if !is_interrupted {
        let rows: Vec<&str> = left_out.iter().map(|row| &*names[*row]).collect();
        note_skipped(&rows, &because, ticker);
        for row in left_out {
            measured[places[row].0].left_out.push((names[row].clone(), because.clone()));
        }
    }
    for ((plan, _), runs) in places.into_iter().zip(runs) {
        measured[plan].written_bytes += runs.written_bytes;
        let rows = runs.rows().into_iter().filter(|row| !plans[plan].work.is_void(row));
        measured[plan].scenario.rows.extend(rows);
    }
    for (plan, of) in plans.iter().zip(&mut measured) {
        let rows = &of.scenario.rows;
        ticker.keep(rows);
        of.scenario.knee = if is_interrupted { None } else { plan.work.knee(rows) };
        of.shortened = schedule.shortened().filter(|_| !is_interrupted);
        (of.burst, of.is_interrupted) = (plan.work.burst(), is_interrupted);
    }
    Ok(measured)
}

/// Performs one run. If the run is to be judged and other programs disturbed it, performs another
/// run in its place, which takes time from the schedule.
fn judged(
    plan: &mut Plan,
    turn: Turn,
    site: &Site,
    ticker: &mut Ticker,
    between: &mut Between,
) -> Result<Repeated, Error> {
    let first = run_together(plan, turn, site, ticker, between)?;
    let mut runs = first.rows.iter().flat_map(|row| &row.runs);
    if !plan.is_judged || !runs.any(Run::is_disturbed) {
        return Ok(first);
    }
    let mut again = run_together(plan, turn, site, ticker, between)?;
    again.written_bytes += first.written_bytes;
    Ok(again)
}

/// Performs one run on all ranks, and removes its files. Returns the combined rows on rank 0, and
/// the rank's own rows on the others.
fn run_together(
    plan: &mut Plan,
    turn: Turn,
    site: &Site,
    ticker: &mut Ticker,
    between: &mut Between,
) -> Result<Repeated, Error> {
    let RowSpec { row, makes_files, has_neighbour, .. } = &plan.rows[turn.row];
    let run = plan.work.run(row, turn, &Site { timed: site.peers, ..*site }, ticker)?;
    let mut run = of_all_ranks(run, site.device().map(|device| &*device.name), site.peers)?;
    // Once its files are removed, the run causes no more writes that the next sample could count.
    if !(site.keep && *makes_files) {
        plan.work.clear(turn.row, site)?;
    }
    if site.peers.are_many() {
        return Ok(plan.work.summed(run));
    }
    let rows = if *has_neighbour { &mut [][..] } else { &mut run.rows };
    between.mark(rows, site.device(), plan.is_judged);
    Ok(run)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Work;
    use crate::sample::{MadeUpClock, measured_by};
    use crate::site::Clock as _;
    use std::rc::Rc;
    use wrote_jobs::machine::foreign::SAMPLES_PART;

    /// A function that returns the time of a run, in seconds.
    type Seconds = fn(Turn) -> f64;

    /// The announced time, as a multiple of the time of the runs.
    const WITH_SAMPLES: f64 = 1.0 + 1.0 / SAMPLES_PART as f64;

    /// The maximum number of bytes of a run.
    const MOST_BYTES: u64 = 1000;

    /// Rows whose runs all take the same number of seconds.
    const EACH: [Seconds; 4] = [|_| 0.1, |_| 1.0, |_| 2.0, |_| 100.0];

    /// A plan whose runs take these seconds, on a clock that only they advance. The runs write the
    /// maximum number of bytes, or the bytes of a slice if they take longer.
    struct MadeUp {
        rows: Vec<Seconds>,
        slice_s: f64,
        slice_bytes: u64,
        clock: Rc<MadeUpClock>,
    }

    impl Work for MadeUp {
        fn run(
            &mut self,
            row: &Row,
            at: Turn,
            _: &Site,
            _: &mut Ticker,
        ) -> Result<Repeated, Error> {
            let took_s = self.rows[at.row](at);
            self.clock.pass(took_s);
            let row = crate::sample::row(&row.name, "power-loss", &[1e9]);
            let mut run = Repeated::one(row, wrote_jobs::histogram());
            run.written_bytes = if took_s < self.slice_s { MOST_BYTES } else { self.slice_bytes };
            Ok(run)
        }
    }

    /// Returns the number of runs of each row, the measurement, and the total time in seconds.
    fn made_up(
        rows: &[Seconds],
        slice_s: f64,
        within: Option<Within>,
    ) -> (Vec<usize>, Measured, f64) {
        let work = (rows, slice_s, MOST_BYTES / 100);
        planned(work, |plan| Plan { within, ..plan })
    }

    /// Like [`made_up`], for runs that write `slice_bytes` in a slice, with a plan that `plan`
    /// changes.
    fn planned(
        (rows, slice_s, slice_bytes): (&[Seconds], f64, u64),
        plan: impl FnOnce(Plan<'static>) -> Plan<'static>,
    ) -> (Vec<usize>, Measured, f64) {
        let clock = Rc::new(MadeUpClock::default());
        // The last row is the most important.
        let spec = |number: usize| RowSpec {
            row: Row { name: format!("made-up/{number}"), ..Row::default() },
            importance: rows.len() - number,
            time: Duration::from_secs_f64(slice_s),
            bytes_max: MOST_BYTES,
            ..RowSpec::default()
        };
        let specs = (0..rows.len()).map(spec).collect();
        let work = MadeUp { rows: rows.to_vec(), slice_s, slice_bytes, clock: clock.clone() };
        let mut plan = plan(Plan::new("made-up", "Is it in time?", specs, work));
        let measured = measured_by(&clock, &mut plan).unwrap();
        assert!(measured.written_bytes <= plan.written_bytes_max());
        let runs = measured.scenario.rows.iter().map(|row| row.runs.len()).collect();
        (runs, measured, clock.elapsed().as_secs_f64())
    }

    fn within(s: u64, leaves_out: bool) -> Option<Within> {
        Some(Within::new(Duration::from_secs(s), Duration::ZERO, leaves_out))
    }

    #[test]
    fn rows_within_their_slices_have_every_run() {
        let (runs, measured, _) = made_up(&[EACH[0]; 17], 0.2, None);
        assert_eq!(runs, [5; 17]);
        assert_eq!((measured.shortened, measured.left_out.len()), (None, 0));
    }

    #[test]
    fn a_disk_slower_than_calibrated_has_fewer_rounds_and_ends_when_it_was_announced() {
        let (runs, measured, took_s) = made_up(&[EACH[1]; 17], 0.6, None);
        // M8: each row has an interval.
        assert!(runs.iter().all(|runs| (3..=4).contains(runs)), "{runs:?}");
        // 85 runs of 0.6 s each, with the time around them.
        assert!((51.0..=85.0 * 0.64 * WITH_SAMPLES).contains(&took_s), "{took_s}");
        assert_eq!(measured.shortened.map(|of| (of.runs_asked, of.runs_min)), Some((5, 3)));
    }

    #[test]
    fn a_time_that_was_asked_for_is_kept_where_it_is_less() {
        let (runs, _, took_s) = made_up(&[EACH[1]; 17], 1.0, within(60, true));
        assert!(runs.iter().all(|runs| (3..=4).contains(runs)), "{runs:?}");
        assert!((51.0..=60.0).contains(&took_s), "{took_s}");
    }

    #[test]
    fn rows_that_do_not_fit_are_left_out_by_importance_and_named() {
        let (runs, measured, took_s) = made_up(&[EACH[2]; 17], 2.0, within(60, true));
        assert!((25.0..=60.0).contains(&took_s), "{took_s}");
        assert!(runs.iter().all(|runs| *runs >= 3), "{runs:?}");
        let left: Vec<&str> = measured.left_out.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(left.len() + runs.len(), 17);
        assert!(left.contains(&"made-up/0") && !left.contains(&"made-up/16"), "{left:?}");
        assert!(measured.left_out[0].1.starts_with("1 min 00 s are too short"));
    }

    #[test]
    fn a_disk_that_is_faster_at_first_has_fewer_rounds_of_all_rows() {
        // The first round is a burst.
        let bursts: Seconds = |turn| if turn.round == 0 { 0.2 } else { 1.0 };
        let (runs, measured, took_s) = made_up(&[bursts; 17], 0.6, None);
        assert!(runs.iter().all(|runs| (3..=4).contains(runs)), "{runs:?}");
        assert!(measured.left_out.is_empty() && took_s <= 85.0 * 0.64, "{took_s}");
    }

    #[test]
    fn a_row_without_time_takes_part_again_when_a_stall_turns_out_to_be_one() {
        // The two most important rows stall, so that three runs of the other rows don't seem to
        // fit.
        let stalls: Seconds = |turn| if turn.round == 0 && turn.row > 6 { 2.0 } else { 0.1 };
        let (runs, measured, _) = made_up(&[stalls; 9], 0.18, within(10, true));
        assert!(runs[..7].iter().all(|runs| *runs >= 3) && runs[8] >= 3, "{runs:?}");
        assert!(measured.left_out.is_empty());
    }

    #[test]
    fn a_slow_row_has_fewer_runs_and_the_others_have_theirs() {
        let slow: Seconds = |_| 1.2;
        let (runs, ..) = made_up(&[|_| 0.1, slow, |_| 0.1], 0.33, None);
        assert_eq!(runs, [5, 3, 5]);
    }

    #[test]
    fn a_stall_changes_one_run_and_not_the_plan() {
        let stalls: Seconds = |turn| if turn.round == 1 { 9.0 } else { 0.1 };
        let (runs, measured, _) = made_up(&[|_| 0.1, stalls, |_| 0.1], 2.0, None);
        assert_eq!((runs[0], runs[2]), (5, 5));
        assert!(runs[1] >= 3 && measured.left_out.is_empty(), "{runs:?}");
    }

    #[test]
    fn without_leave_every_row_has_three_runs_in_any_time() {
        assert_eq!(made_up(&[EACH[3]; 3], 0.1, within(10, false)).0, [3; 3]);
    }

    #[test]
    fn every_run_stands_and_there_is_one_at_least() {
        let (runs, measured, _) = made_up(&[EACH[3]; 3], 0.1, None);
        assert_eq!((runs, measured.left_out.len()), (vec![1], 2));
        // Both rows stall in the second round, and keep the runs that they have.
        let stalls: Seconds = |turn| if turn.round == 1 { 99.0 } else { 0.1 };
        let (runs, measured, _) = made_up(&[stalls; 2], 1.0, None);
        assert_eq!((runs, measured.left_out.len()), (vec![1, 2], 0));
        assert_eq!(measured.shortened.map(|of| of.runs_min), Some(1));
    }

    /// A row whose runs stop after their bytes, and a row whose runs stop after their slice of 0.1
    /// s.
    const ENDS: [Seconds; 2] = [|_| 0.03, |_| 0.12];

    #[test]
    fn the_time_that_fast_rows_leave_is_filled_by_further_rounds_of_the_others() {
        for of_slices in [1, 4, 12] {
            let rows = [vec![ENDS[0]; 17 - of_slices], vec![ENDS[1]; of_slices]].concat();
            let announced_s = 85.0 * 0.12 * WITH_SAMPLES + 1e-6;
            for (within, s) in [(None, announced_s), (within(10, true), 9.5)] {
                let (runs, measured, took_s) = made_up(&rows, 0.1, within);
                let (fast, slow) = runs.split_at(17 - of_slices);
                assert!(fast.iter().all(|runs| *runs == 5), "{runs:?}");
                assert!(slow.iter().all(|runs| *runs > 5), "{runs:?}");
                assert_eq!(measured.shortened, None);
                assert!((0.94 * s..=s).contains(&took_s), "{of_slices} rows: {took_s} of {s}");
            }
        }
    }

    #[test]
    fn further_rounds_write_no_more_than_was_announced() {
        // All runs stop after their bytes.
        let (runs, measured, took_s) = made_up(&[ENDS[0]; 17], 0.1, within(10, true));
        assert_eq!((&runs[..], measured.shortened), (&[5; 17][..], None));
        assert!(took_s < 3.0, "{took_s}");
        // Each run writes half of the maximum number of bytes. After 29 runs, fewer bytes are left
        // than another run might write.
        let half = (&[ENDS[1]; 3][..], 0.1, MOST_BYTES / 2);
        let (runs, ..) = planned(half, |plan| Plan { within: within(60, true), ..plan });
        assert_eq!(runs.iter().sum::<usize>(), 29);
        assert!(runs.iter().all(|runs| *runs >= 9), "{runs:?}");
    }

    #[test]
    fn an_amount_that_was_asked_for_and_rows_that_come_last_have_no_further_rounds() {
        let rows = (&[ENDS[1]; 3][..], 0.1, 1);
        let sized = |plan| Plan { within: within(60, true), is_sized: true, ..plan };
        assert_eq!(planned(rows, sized).0, [5; 3]);
        let last = |mut plan: Plan<'static>| {
            plan.rows[1].is_last = true;
            Plan { within: within(60, true), ..plan }
        };
        assert_eq!(planned(rows, last).0, [5; 3]);
    }

    #[test]
    fn the_time_that_a_preparation_left_is_filled_only_where_a_time_was_asked_for() {
        let rows = (&[ENDS[1]; 3][..], 0.1, 1);
        let long = |within| {
            let prepare = Duration::from_secs(100);
            planned(rows, |plan| Plan { prepare, within, ..plan }).2
        };
        assert!(long(None) <= 15.0 * 0.12 * 1.01);
        assert!((9.0..=9.5).contains(&long(within(10, true))));
    }

    #[test]
    fn a_disk_that_gets_slower_in_further_rounds_keeps_its_time() {
        let slows: Seconds = |turn| 0.1 + f64::from(turn.round) * 0.02;
        let (runs, measured, took_s) = made_up(&[ENDS[0], ENDS[0], slows, slows], 0.1, None);
        assert!(runs.iter().all(|runs| *runs >= 5) && measured.shortened.is_none(), "{runs:?}");
        assert!(took_s <= 20.0 * 0.12 * 1.05 * WITH_SAMPLES, "{took_s}");
    }

    #[test]
    fn every_run_has_the_part_of_other_programs_beside_it() {
        let (_, measured, _) = made_up(&[EACH[0]; 2], 0.1, None);
        let mut runs = measured.scenario.rows.iter().flat_map(|row| &row.runs);
        assert!(runs.all(|run| run.foreign_share.is_some()));
    }

    #[test]
    fn every_second_round_is_backwards() {
        // M8
        let order: Vec<Turn> = in_turn(2, 0..3).collect();
        assert_eq!(order.iter().map(|turn| turn.row).collect::<Vec<_>>(), [0, 1, 1, 0, 0, 1]);
        assert_eq!(order.iter().map(|turn| turn.round).collect::<Vec<_>>(), [0, 0, 1, 1, 2, 2]);
    }
}
