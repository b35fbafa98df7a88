//! Which texts are saved how, how often, and what that takes.

use super::{Called, NAME, Saved, State, WAYS, rounds};
use crate::bench::{Request, Ticker};
use crate::rounds::{RUNS, in_turn};
use crate::scenario::{Measured, Planned, Site};
use std::time::Duration;
use wrote::device::Target;
use wrote_jobs::rate::Rate;
use wrote_machine::space;
use wrote_result::{Error, units};

/// How long texts are that nobody asked for otherwise.
const SIZES_BYTES: [u64; 4] = [500, 1000, 2000, 10_000];
/// The longest text: more is no small one.
const SIZE_BYTES_MAX: u64 = 1 << 20;
/// How often each is saved by each way, over all runs.
const ITERATIONS: u32 = 1000;
/// The most that may be asked for.
const ITERATIONS_MAX: u32 = 1_000_000;
/// Saves of the first look at a row, which are not recorded.
pub(super) const LOOK_SAVES: u32 = 5;
/// The most texts that are made at once, and so the most new files that there are at once.
const BATCH_SAVES_MAX: u64 = 256;
/// The most bytes of those texts, unless a single one is longer (W8).
const BATCH_BYTES_MAX: u64 = 16 << 20;
/// What a file takes at least, on most file systems.
const BLOCK_BYTES: u64 = 4096;
/// What is taken for a save without its flushes, and for a flush, before any was seen.
const USUAL_SAVE: Duration = Duration::from_micros(50);
const USUAL_FLUSH: Duration = Duration::from_micros(2500);
/// What a run takes beside its clock: making ready, and clearing up.
const BESIDE: Duration = Duration::from_millis(30);

/// What is measured of the scenario.
#[derive(Clone, Debug)]
pub struct Plan {
    pub rows: Vec<Saved>,
    pub runs: u32,
    pub rate: Option<Rate>,
    /// Saves of a row, over all runs.
    iterations: u32,
}

impl Plan {
    /// The plan of what is called for by name; `None` where nothing is. It is measured only when asked
    /// for: the ladder alone takes a minute.
    pub fn new(request: &Request, target: &Target) -> Result<Option<Plan>, Error> {
        let sizes_bytes = sizes_bytes(request)?;
        let called: Vec<Called> =
            request.only.iter().filter_map(|name| Called::parse(name)).collect();
        check_called(&called, &sizes_bytes)?;
        let is_called = |row: &Saved| called.iter().any(|called| row.is_called(called));
        let rows: Vec<Saved> = all(&sizes_bytes).filter(is_called).collect();
        if rows.is_empty() {
            return Ok(None);
        }
        let iterations = iterations(request)?;
        // No run without a save.
        let runs = request.runs.unwrap_or(RUNS).min(iterations);
        let plan = Plan { rows, runs, rate: request.rate, iterations };
        plan.check_space(target)?;
        Ok(Some(plan))
    }

    /// Refuses files that would leave too little of the disk free.
    fn check_space(&self, target: &Target) -> Result<(), Error> {
        let wanted_bytes = self.space_bytes_max();
        let budget_bytes = match target.capacity_bytes {
            0 => u64::MAX,
            capacity => space::budget(capacity, target.free_bytes),
        };
        if wanted_bytes <= budget_bytes {
            return Ok(());
        }
        Err(Error::Failed(format!(
            "{}: the files of {NAME} take up to {}, and {} may be made there, so that 10 % of the file \
             system or 5 GiB stay free. Free some space, or use fewer --iterations or a smaller \
             --save-size",
            target.path.display(),
            units::bytes(wanted_bytes),
            units::bytes(budget_bytes),
        )))
    }

    /// The rows' indices in the order of their runs (M8), each with the saves of that run: all runs of
    /// a row together have as many as were asked for.
    pub(super) fn order(&self) -> impl Iterator<Item = (usize, u32)> {
        let rows = self.rows.len();
        let in_turn = in_turn(rows, self.runs).into_iter().enumerate();
        in_turn.map(move |(number, index)| (index, self.saves((number / rows) as u32)))
    }

    /// Saves of each row in this round.
    fn saves(&self, round: u32) -> u32 {
        self.iterations / self.runs + u32::from(round < self.iterations % self.runs)
    }

    /// The most saves of a run.
    pub(super) fn saves_max(&self) -> u32 {
        self.saves(0)
    }

    /// How many texts of a row are made and saved before the next are made.
    pub(super) fn batch_saves(&self, row: &Saved) -> u32 {
        let fit = (BATCH_BYTES_MAX / row.size_bytes).clamp(1, BATCH_SAVES_MAX) as u32;
        fit.min(self.saves_max().max(LOOK_SAVES))
    }

    /// How long all saves of a row that are left take, where one takes so long; in an open loop they
    /// are not over before the last is due.
    pub(super) fn time_of(&self, row: &Saved, saves: u32, each: Duration) -> Duration {
        let distance = self.rate.map_or(Duration::ZERO, |rate| rate.mean_distance(row.size_bytes));
        each.max(distance) * saves
    }

    /// What the files of a row take up at most.
    fn row_space_bytes(&self, row: &Saved) -> u64 {
        let text_bytes = row.size_bytes.next_multiple_of(BLOCK_BYTES);
        match (row.way.kind.grows(row.state), row.state) {
            (true, _) => {
                let texts = u64::from(self.saves_max().max(LOOK_SAVES)) + 1;
                (row.size_bytes * texts).next_multiple_of(BLOCK_BYTES)
            }
            (false, State::New) => text_bytes * u64::from(self.batch_saves(row)),
            // The old text and the one that is to take its place.
            (false, State::Existing) => text_bytes * 2,
        }
    }
}

impl Planned for Plan {
    fn runs_total(&self) -> u32 {
        self.runs * self.rows.len() as u32
    }

    /// The most that lies in the folder at once: the files of one run of a row.
    fn space_bytes_max(&self) -> u64 {
        self.rows.iter().map(|row| self.row_space_bytes(row)).max().unwrap_or(0)
    }

    /// Each text, in whole blocks; of an existing file also the one that is there before, once a run.
    fn written_bytes_max(&self) -> u64 {
        let saves = u64::from(self.iterations + LOOK_SAVES + self.runs + 1);
        let of = |row: &Saved| saves * row.size_bytes.next_multiple_of(BLOCK_BYTES);
        self.rows.iter().map(of).sum()
    }

    fn estimate(&self) -> Duration {
        let of = |row: &Saved| {
            let each = USUAL_SAVE + USUAL_FLUSH * row.way.kind.flushes(row.state);
            self.time_of(row, self.iterations, each) + each * LOOK_SAVES
        };
        self.rows.iter().map(of).sum::<Duration>() + BESIDE * self.runs_total()
    }

    fn measure(&self, site: &Site, ticker: &mut Ticker) -> Result<Measured, Error> {
        rounds::measure(self, site, ticker)
    }
}

/// Every row of texts of these sizes.
fn all(sizes_bytes: &[u64]) -> impl Iterator<Item = Saved> {
    let files = |size: &u64| State::ALL.map(|state| (*size, state));
    let rows = |(size_bytes, state)| WAYS.iter().map(move |way| Saved { way, state, size_bytes });
    sizes_bytes.iter().flat_map(files).flat_map(rows)
}

/// The sizes of the texts, each once, in the order in which they were asked for.
fn sizes_bytes(request: &Request) -> Result<Vec<u64>, Error> {
    if request.save_bytes.is_empty() {
        return Ok(SIZES_BYTES.to_vec());
    }
    let mut sizes_bytes = Vec::new();
    for size_bytes in &request.save_bytes {
        if !(1..=SIZE_BYTES_MAX).contains(size_bytes) {
            return Err(Error::Usage(format!(
                "--save-size: {size_bytes} bytes are not from 1 to {SIZE_BYTES_MAX}"
            )));
        }
        if !sizes_bytes.contains(size_bytes) {
            sizes_bytes.push(*size_bytes);
        }
    }
    Ok(sizes_bytes)
}

fn iterations(request: &Request) -> Result<u32, Error> {
    match request.iterations.unwrap_or(ITERATIONS) {
        good @ 1..=ITERATIONS_MAX => Ok(good),
        bad => Err(Error::Usage(format!("--iterations: {bad} is not from 1 to {ITERATIONS_MAX}"))),
    }
}

/// Refuses the name of a size that is not saved.
fn check_called(called: &[Called], sizes_bytes: &[u64]) -> Result<(), Error> {
    let named = called.iter().filter_map(|called| called.size_bytes);
    match named.into_iter().find(|size_bytes| !sizes_bytes.contains(size_bytes)) {
        Some(other) => Err(Error::Usage(format!(
            "--only: no text of {other} bytes is saved; --save-size {other} saves one"
        ))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{asked, place as target};
    use proptest::prelude::*;
    use wrote_jobs::rate::{Amount, Process};

    const GIB: u64 = 1 << 30;

    fn planned(request: &Request) -> Result<Option<Plan>, Error> {
        Plan::new(request, &target(1 << 40, 1 << 39))
    }

    fn plan(request: &Request) -> Plan {
        planned(request).unwrap().unwrap()
    }

    #[test]
    fn the_scenario_is_measured_only_when_it_is_asked_for() {
        assert!(planned(&asked(&[])).unwrap().is_none());
        assert!(planned(&asked(&["ladder", "ways"])).unwrap().is_none());
        assert_eq!(plan(&asked(&["latency"])).rows.len(), 4 * 2 * 9);
    }

    #[test]
    fn a_row_a_way_a_file_and_a_size_may_each_be_named() {
        let count = |name: &str| plan(&asked(&[name])).rows.len();
        assert_eq!(count("latency/existing-500/fs-write"), 1);
        assert_eq!(count("latency/existing-500"), 9);
        assert_eq!(count("latency/existing"), 4 * 9);
        assert_eq!(count("latency/new/wrote-write"), 4);
        assert_eq!(count("latency/wrote-write"), 4 * 2);
        let both = plan(&asked(&["latency/new-500/rename", "latency/rename"]));
        assert_eq!(both.rows.len(), 8);
        assert_eq!(both.rows[0].name(), "latency/new-500/rename");
    }

    #[test]
    fn every_row_is_saved_as_often_as_was_asked_in_turn_and_backwards() {
        // M8
        for (iterations, runs) in [(None, None), (Some(7), Some(3)), (Some(2), Some(5))] {
            let request = Request { iterations, runs, ..asked(&["latency/new-500"]) };
            let plan = plan(&request);
            let order: Vec<(usize, u32)> = plan.order().collect();
            assert_eq!(order.len() as u32, plan.runs_total());
            for row in 0..plan.rows.len() {
                let saves = order.iter().filter(|(index, _)| *index == row).map(|(_, saves)| saves);
                assert_eq!(saves.clone().sum::<u32>(), iterations.unwrap_or(1000));
                assert!(saves.clone().all(|saves| (1..=plan.saves_max()).contains(saves)));
            }
            let rows = plan.rows.len();
            assert_eq!((order[0].0, order[rows].0), (0, rows - 1));
        }
        assert!(plan(&asked(&["latency"])).order().all(|(_, saves)| saves == 200));
    }

    #[test]
    fn sizes_that_were_asked_for_are_the_sizes_each_once() {
        let request = Request { save_bytes: vec![777, 1, 777], ..asked(&["latency/new/append"]) };
        let names: Vec<String> = plan(&request).rows.iter().map(Saved::name).collect();
        assert_eq!(names, ["latency/new-777/append", "latency/new-1/append"]);
    }

    #[test]
    fn what_makes_no_sense_is_refused_in_one_line() {
        let of = |request: Request| match planned(&request) {
            Err(Error::Usage(text)) => assert_eq!(text.lines().count(), 1, "{text}"),
            other => panic!("{other:?}"),
        };
        of(Request { save_bytes: vec![500, 0], ..asked(&["latency"]) });
        of(Request { save_bytes: vec![SIZE_BYTES_MAX + 1], ..asked(&["latency"]) });
        of(Request { iterations: Some(0), ..asked(&["latency"]) });
        of(Request { iterations: Some(ITERATIONS_MAX + 1), ..asked(&["latency"]) });
        of(asked(&["latency/new-777"]));
    }

    #[test]
    fn a_disk_without_room_is_refused_and_a_small_one_will_do() {
        let within = |request: &Request, free| Plan::new(request, &target(10 * GIB, free));
        assert!(within(&asked(&["latency"]), GIB + 4 * (1 << 20)).is_ok());
        let full = within(&asked(&["latency"]), GIB).unwrap_err().to_string();
        assert!(full.contains("--iterations") && full.lines().count() == 1, "{full}");
    }

    #[test]
    fn slow_flushes_and_a_slow_rate_take_long_and_it_is_said() {
        let estimate = |name: &str, rate| plan(&Request { rate, ..asked(&[name]) }).estimate();
        let unsynced = estimate("latency/new-500/fs-write", None);
        assert!(estimate("latency/new-500/rename-fsync", None) > 10 * unsynced);
        let rate = Rate { amount: Amount::OperationsPerS(10), process: Process::Linear };
        let slow = estimate("latency/new-500/fs-write", Some(rate));
        assert!(slow >= Duration::from_secs(100), "{slow:?}");
    }

    proptest! {
        #[test]
        fn no_run_has_more_files_or_texts_than_is_announced(
            iterations in 1..ITERATIONS_MAX,
            runs in 1..1000_u32,
            size_bytes in 1..=SIZE_BYTES_MAX,
        ) {
            // W8
            let request = Request {
                iterations: Some(iterations),
                runs: Some(runs),
                save_bytes: vec![size_bytes],
                ..asked(&["latency/wrote-write"])
            };
            let plan = Plan::new(&request, &target(0, 0)).unwrap().unwrap();
            let total: u64 = (0..plan.runs).map(|round| u64::from(plan.saves(round))).sum();
            prop_assert_eq!(total, u64::from(iterations));
            for row in &plan.rows {
                let batch = u64::from(plan.batch_saves(row));
                prop_assert!(batch >= 1);
                prop_assert!(batch == 1 || batch * size_bytes <= BATCH_BYTES_MAX);
                prop_assert!(plan.space_bytes_max() >= size_bytes);
            }
        }
    }
}
