//! The rounds of the scenario: a first look, every row in turn, and what they add up to.

use super::plan::{LOOK_SAVES, Plan};
use super::save::{Place, save, sync_folder};
use super::text::Texts;
use super::{NAME, QUESTION, Saved, State};
use crate::bench::Ticker;
use crate::measured;
use crate::measured::Measured as OneRun;
use crate::measured::{Named, RowSoFar};
use crate::scenario::{Measured, Planned, Site};
use hdrhistogram::Histogram;
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use wrote_jobs::buffers::seed;
use wrote_jobs::clock::clocked;
use wrote_jobs::rate::Rate;
use wrote_jobs::worker::histogram;
use wrote_jobs::worker::pace::Pace;
use wrote_machine::usage::Usage;
use wrote_result::document::{Row, Run, Scenario};
use wrote_result::{Error, Stop, units};

/// The numbers of the file that a rename replaces another by, and of those that are saved: no other
/// scenario's.
const TEMPORARY: u32 = 6000;
const FIRST_FILE: u32 = 6001;
/// The last of the time until a save is due is not slept through: a sleeper wakes up later than it
/// asked to (`PR_SET_TIMERSLACK`, prctl(2): by 50 us and more), and that would be counted as latency.
const AWAKE: Duration = Duration::from_micros(200);
/// No longer sleep than this, so that a request to stop is heard.
const NAP_MAX: Duration = Duration::from_millis(50);

/// What all runs use.
struct Rounds<'a> {
    plan: &'a Plan,
    site: &'a Site<'a>,
    texts: Texts,
    temporary: PathBuf,
    /// As many as there are texts at once.
    files: Vec<PathBuf>,
}

/// Looks first at how long each way takes, and runs every row in turn, every second round backwards
/// (M8). `keep` leaves the files of the last run, of its last batch, where they are.
pub(super) fn measure(plan: &Plan, site: &Site, ticker: &mut Ticker) -> Result<Measured, Error> {
    let mut rounds = Rounds::new(plan, site);
    let mut written_bytes = 0;
    let mut times = Vec::with_capacity(plan.rows.len());
    for row in &plan.rows {
        let run = rounds.run(row, LOOK_SAVES, None)?.run;
        rounds.clear()?;
        written_bytes += run.bytes;
        times.push(Duration::from_secs_f64(run.elapsed_s / f64::from(LOOK_SAVES)));
    }
    let order: Vec<(usize, u32)> = plan.order().collect();
    let left = time_left(plan, &order, &times);
    ticker.note(&format!(
        "{NAME}: {} saves, about {} at the pace of a first look at each way",
        order.iter().map(|(_, saves)| u64::from(*saves)).sum::<u64>(),
        units::seconds(left.as_secs_f64()),
    ));
    let mut rows: Vec<RowSoFar> = plan.rows.iter().map(|_| RowSoFar::new()).collect();
    for (number, (index, saves)) in order.iter().copied().enumerate() {
        let row = &plan.rows[index];
        ticker
            .foresee(plan.runs_total() - number as u32, time_left(plan, &order[number..], &times));
        ticker.tick(&row.name());
        let measured = rounds.run(row, saves, plan.rate)?;
        written_bytes += measured.run.bytes;
        if plan.rate.is_none() {
            times[index] = Duration::from_secs_f64(measured.run.elapsed_s / f64::from(saves));
        }
        rows[index].add(measured);
        if !(site.keep && number + 1 == order.len()) {
            rounds.clear()?;
        }
    }
    let rows = plan.rows.iter().zip(rows).map(|(row, so_far)| rounds.row(row, so_far)).collect();
    Ok(Measured {
        scenario: Scenario { name: NAME.into(), question: QUESTION.into(), rows, knee: None },
        written_bytes,
        left_out: Vec::new(),
    })
}

/// How long these runs take, where a save of each row takes so long.
fn time_left(plan: &Plan, order: &[(usize, u32)], times: &[Duration]) -> Duration {
    let of =
        |(index, saves): &(usize, u32)| plan.time_of(&plan.rows[*index], *saves, times[*index]);
    order.iter().map(of).sum()
}

impl<'a> Rounds<'a> {
    fn new(plan: &'a Plan, site: &'a Site<'a>) -> Rounds<'a> {
        let batch = |row: &Saved| plan.batch_saves(row);
        let files = plan.rows.iter().map(batch).max().unwrap_or(0);
        let bytes = plan.rows.iter().map(|row| u64::from(batch(row)) * row.size_bytes).max();
        Rounds {
            plan,
            site,
            texts: Texts::new(bytes.unwrap_or(0) as usize, seed()),
            temporary: site.scratch.job_file(TEMPORARY),
            files: (0..files).map(|number| site.scratch.job_file(FIRST_FILE + number)).collect(),
        }
    }

    /// Saves so many texts by a row's way, in batches: texts are made and new files removed between two
    /// of them, outside of the clock. The last batch's files stay.
    fn run(&mut self, row: &Saved, saves: u32, rate: Option<Rate>) -> Result<OneRun, Error> {
        if row.state == State::Existing {
            self.make_old(row)?;
        }
        let mut latencies = histogram();
        let mut run = Run { iodepth_reached: 1, ..Run::default() };
        let batch_saves = self.plan.batch_saves(row);
        let mut left = saves;
        while left > 0 {
            if left < saves && row.state == State::New {
                self.clear()?;
            }
            let count = left.min(batch_saves);
            add(&mut run, self.batch(row, count, rate, &mut latencies)?);
            left -= count;
        }
        run.bytes = row.size_bytes * u64::from(saves);
        run.throughput_bytes_per_s = run.bytes as f64 / run.elapsed_s;
        run.iops = f64::from(saves) / run.elapsed_s;
        run.max_rss_bytes = Some(Usage::now().max_rss_bytes);
        let effective = row.asked(saves.into(), rate);
        Ok(OneRun { run, latencies, effective, fallbacks: Vec::new() })
    }

    /// Saves so many texts, one after the other, or each when it is due.
    fn batch(
        &mut self,
        row: &Saved,
        count: u32,
        rate: Option<Rate>,
        latencies: &mut Histogram<u64>,
    ) -> Result<Run, Error> {
        let (kind, state, stop) = (row.way.kind, row.state, self.site.stop);
        let texts = self.texts.make(count as usize, row.size_bytes as usize);
        let (folder, temporary) = (self.site.scratch.path(), self.temporary.as_path());
        let files = &self.files;
        let mut pace = pace(rate);
        let saves = || {
            let began = Instant::now();
            for (number, text) in texts.enumerate() {
                stop.check()?;
                let path = &files[if state == State::New { number } else { 0 }];
                // M5: in an open loop from the moment at which it should have begun.
                let due = match pace.holds() {
                    true => wait_until(began + Duration::from_nanos(pace.due_ns()), stop)?,
                    false => Instant::now(),
                };
                save(kind, state, Place { path, folder, temporary }, text)?;
                latencies.saturating_record(due.elapsed().as_nanos() as u64);
                pace.count(text.len());
            }
            Ok(())
        };
        clocked(self.site.device(), Usage::now, saves).map(|((), run)| run)
    }

    /// Makes the file that is there before the first save, durable.
    fn make_old(&mut self, row: &Saved) -> Result<(), Error> {
        let path = &self.files[0];
        let text = self.texts.make(1, row.size_bytes as usize).next().expect("one was asked for");
        let made = File::create_new(path)
            .and_then(|mut file| file.write_all(text).and_then(|()| file.sync_all()))
            .and_then(|()| sync_folder(self.site.scratch.path()));
        made.map_err(|error| Error::Failed(format!("{}: {error}", path.display())))
    }

    /// Removes the files, and waits until the file system has let go of them: the writing back of what
    /// was not flushed is nobody else's latency.
    fn clear(&self) -> Result<(), Error> {
        measured::clear(&self.files, self.site.scratch.path())
    }

    fn row(&self, row: &Saved, so_far: RowSoFar) -> Row {
        let named = Named {
            name: &row.name(),
            workload: &row.workload(),
            words: row.words(),
            survives: row.survives(self.site.target),
            asked: row.asked(self.plan.saves_max().into(), self.plan.rate),
        };
        let leaves = row.way.kind.leaves(row.state);
        Row { crash_leaves: Some(leaves.as_str().into()), ..so_far.row(named) }
    }
}

/// When the saves of a batch are due. Each batch begins anew, so that what lies between two of them is
/// nobody's latency.
fn pace(rate: Option<Rate>) -> Pace {
    rate.map_or_else(Pace::default, |rate| Pace::share(rate, 0, 1, wrote_jobs::buffers::seed()))
}

/// Waits for the moment, and gives it back; it may have passed.
fn wait_until(due: Instant, stop: &Stop) -> Result<Instant, Error> {
    loop {
        let left = due.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(due);
        }
        match left.checked_sub(AWAKE) {
            Some(nap) if !nap.is_zero() => std::thread::sleep(nap.min(NAP_MAX)),
            _ => std::hint::spin_loop(),
        }
        stop.check()?;
    }
}

/// Adds a batch to its run.
fn add(run: &mut Run, batch: Run) {
    let sum = |ours: Option<u64>, theirs: Option<u64>| match (ours, theirs) {
        (Some(ours), Some(theirs)) => Some(ours + theirs),
        (ours, theirs) => ours.or(theirs),
    };
    let busiest = [run.cpu_busiest, batch.cpu_busiest].into_iter().flatten();
    run.cpu_busiest = busiest.max_by(|a, b| a.busy_share.total_cmp(&b.busy_share));
    run.elapsed_s += batch.elapsed_s;
    run.cpu_user_s += batch.cpu_user_s;
    run.cpu_system_s += batch.cpu_system_s;
    run.context_switches += batch.context_switches;
    run.device_written_bytes = sum(run.device_written_bytes, batch.device_written_bytes);
    run.device_read_bytes = sum(run.device_read_bytes, batch.device_read_bytes);
}
