//! The requested texts, the number of saves, and the space for them.

use super::{NAME, SaveRow, State, named_size, rows};
use crate::calibration::{Calibration, Wanted};
use crate::plan::{Call, Plan, RUNS, RowSpec};
use crate::scenario::Scenario as _;
use crate::settings::positive;
use itertools::Itertools;
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::time::Duration;
use wrote_jobs::machine::target;
use wrote_jobs::rate::Rate;
use wrote_result::Error;
use wrote_result::document::Flush;
#[cfg(feature = "cli")]
use wrote_result::units;

const QUESTION: &str = "How long does it take to save a small text, with and without sync?";
/// The time of a run, unless the request sets a number of saves, and the minimum number of saves of
/// a run.
const SLICE: Duration = Duration::from_millis(250);
pub(super) const SAVES_MIN: u32 = 10;
/// The maximum total size of the texts that are generated before a run (W8).
const READY_BYTES_MAX: u64 = 16 << 20;
/// The minimum space that a file occupies on most file systems.
pub(super) const BLOCK_BYTES: u64 = 4096;

#[derive(Clone, Debug)]
pub(crate) struct Amounts {
    pub rows: Vec<SaveRow>,
    pub runs: u32,
    pub rate: Option<Rate>,
    /// The number of saves per row, over all runs.
    pub(super) iterations: u32,
    /// The time after which a run stops, unless the request sets a number of saves.
    pub(super) slice: Option<Duration>,
}

impl Amounts {
    /// Plans the requested rows; `None` if there are none. The scenario is measured only on
    /// request, so that the default run is short.
    pub(crate) fn new(asked: &Latency, call: &Call) -> Result<Option<Amounts>, Error> {
        let sizes_bytes = asked.checked_sizes()?;
        let is_called = |row: &SaveRow| call.only.iter().any(|name| row.is_called(name));
        let sizes_named = call.only.iter().filter(|name| asked.knows(name));
        for other in sizes_named.filter_map(|name| named_size(name)) {
            if !sizes_bytes.contains(&other) {
                return Err(Error::Usage(format!(
                    "--only: no text of {other} bytes is saved; add one with --save-size {other}"
                )));
            }
        }
        let rows: Vec<SaveRow> = rows(&sizes_bytes).filter(is_called).collect();
        if rows.is_empty() {
            return Ok(None);
        }
        let iterations = asked.iterations.unwrap_or(ITERATIONS);
        positive("iterations", iterations.into(), ITERATIONS_MAX.into())?;
        // Each run needs at least one save.
        let runs = call.common.runs.unwrap_or(RUNS).min(iterations);
        let rate = call.common.rate;
        let is_counted = asked.iterations.is_some() || rate.is_some();
        let slice = (!is_counted).then(|| call.common.time.unwrap_or(SLICE));
        let amounts = Amounts { rows, runs, rate, iterations, slice };
        target::check_room(amounts.space_bytes(), 0, call.target)?;
        Ok(Some(amounts))
    }

    /// Returns the plan of the rows.
    pub(super) fn plan(self, call: &Call) -> Plan<'static> {
        let spec = |row: &SaveRow| RowSpec {
            row: row.composed(call.target),
            time: self.time_of(row, call.speed),
            // The initial text is included.
            bytes_max: u64::from(self.saves_max() + 1)
                * row.size_bytes.next_multiple_of(BLOCK_BYTES),
            makes_files: true,
            ..RowSpec::default()
        };
        let rows = self.rows.iter().map(spec).collect();
        let (runs, space_bytes, is_whole) = (self.runs, self.space_bytes(), self.slice.is_none());
        let plan = Plan::new(NAME, QUESTION, rows, self);
        Plan { runs, space_bytes, is_whole, wants: Wanted::Files, ..plan }
    }

    fn space_bytes(&self) -> u64 {
        self.rows.iter().map(|row| self.row_space_bytes(row)).max().unwrap_or(0)
    }

    pub(super) fn saves(&self, round: u32) -> u32 {
        self.iterations / self.runs + u32::from(round < self.iterations % self.runs)
    }

    pub(super) fn saves_max(&self) -> u32 {
        self.saves(0)
    }

    /// Returns the number of texts that are generated before a row's run. A run with more saves
    /// repeats them.
    pub(super) fn ready_texts(&self, row: &SaveRow) -> u64 {
        (READY_BYTES_MAX / row.size_bytes).clamp(1, u64::from(self.saves_max()) + 1)
    }

    /// Returns the time of a row's run: its slice, or less if its saves take less time.
    fn time_of(&self, row: &SaveRow, speed: Option<&Calibration>) -> Duration {
        let kind = row.way.kind;
        let flushes = [kind.sync() != Flush::None, kind.syncs_folder(row.state)];
        let flushes = flushes.into_iter().filter(|does| *does).count() as u32;
        let speed = speed.unwrap_or(&Calibration::UNKNOWN);
        let save = speed.file[0] + speed.flush * flushes;
        let each = self.rate.map_or(save, |rate| rate.mean_distance(row.size_bytes));
        let slice = self.slice.map_or(Duration::MAX, |slice| slice.max(each * SAVES_MIN));
        (each * self.saves_max()).min(slice)
    }

    pub(super) fn row_space_bytes(&self, row: &SaveRow) -> u64 {
        let replaces = row.state == State::Existing && !row.way.kind.grows(row.state);
        // The old text and the new one may exist at the same time.
        let texts = if replaces { 2 } else { self.saves_max() + 1 };
        row.size_bytes.next_multiple_of(BLOCK_BYTES) * u64::from(texts)
    }
}

/// The characters of a text. Each carries 6 random bits, because printable characters can't carry
/// 8.
const ALPHABET: &[u8; 64] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 .";

/// Returns `count` consecutive texts, each of `size_bytes` single-byte characters (M2).
pub(super) fn texts(count: u64, size_bytes: u64, seed: u64) -> Vec<u8> {
    let mut bytes = vec![0; (count * size_bytes) as usize];
    Xoshiro256PlusPlus::seed_from_u64(seed).fill_bytes(&mut bytes);
    bytes.iter_mut().for_each(|byte| *byte = ALPHABET[usize::from(*byte % 64)]);
    bytes
}

const SIZES_BYTES: [u64; 4] = [500, 1000, 2000, 10_000];
/// The maximum length of a text. A longer text is not small.
const SIZE_BYTES_MAX: u64 = 1 << 20;
/// The default number of saves of each text by each method, over all runs.
const ITERATIONS: u32 = 1000;
const ITERATIONS_MAX: u32 = 1_000_000;

/// The settings of the scenario `latency`.
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "cli", derive(clap::Args))]
pub struct Latency {
    /// Saves of each text of latency by each way, from 1 to 1000000 [default: 1000]
    #[cfg_attr(feature = "cli", arg(long, value_name = "N",
        value_parser = units::parse_count::<ITERATIONS_MAX>, allow_hyphen_values = true))]
    pub iterations: Option<u32>,

    /// Lengths of the texts of latency [default: 500,1000,2000,10000]
    #[cfg_attr(feature = "cli", arg(long, value_name = "SIZE,..",
        value_delimiter = ',', value_parser = units::parse_size, allow_hyphen_values = true))]
    pub save_size: Vec<u64>,
}

impl Latency {
    /// Returns the distinct lengths of the texts, in the order of the request.
    fn checked_sizes(&self) -> Result<Vec<u64>, Error> {
        let asked = if self.save_size.is_empty() { &SIZES_BYTES[..] } else { &self.save_size };
        asked.iter().try_for_each(|bytes| positive("save-size", *bytes, SIZE_BYTES_MAX))?;
        Ok(asked.iter().copied().unique().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{Asked, asked, place as target};
    use proptest::prelude::*;

    const GIB: u64 = 1 << 30;

    fn planned(request: &Asked) -> Result<Option<Amounts>, Error> {
        request.plan(&target(1 << 40, 1 << 39), |of, call| Amounts::new(&of.latency, call))
    }

    fn plan(request: &Asked) -> Amounts {
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
    fn every_row_is_saved_as_often_as_was_asked() {
        for (iterations, runs) in [(None, None), (Some(7), Some(3)), (Some(2), Some(5))] {
            let plan = plan(&Asked { iterations, runs, ..asked(&["latency/new-500"]) });
            let saves = (0..plan.runs).map(|round| plan.saves(round));
            assert_eq!(saves.clone().sum::<u32>(), iterations.unwrap_or(1000));
            assert!(saves.clone().all(|saves| (1..=plan.saves_max()).contains(&saves)));
        }
        let plan = plan(&asked(&["latency"]));
        assert!((0..plan.runs).all(|round| plan.saves(round) == 200));
    }

    #[test]
    fn sizes_that_were_asked_for_are_the_sizes_each_once() {
        let request = Asked { save_size: vec![777, 1, 777], ..asked(&["latency/new/append"]) };
        let names: Vec<String> = plan(&request).rows.iter().map(SaveRow::name).collect();
        assert_eq!(names, ["latency/new-777/append", "latency/new-1/append"]);
    }

    #[test]
    fn nonsense_is_refused_in_one_line() {
        let of = |request: Asked| match planned(&request) {
            Err(Error::Usage(text)) => assert_eq!(text.lines().count(), 1, "{text}"),
            other => panic!("{other:?}"),
        };
        of(Asked { save_size: vec![500, 0], ..asked(&["latency"]) });
        of(Asked { save_size: vec![SIZE_BYTES_MAX + 1], ..asked(&["latency"]) });
        of(Asked { iterations: Some(0), ..asked(&["latency"]) });
        of(Asked { iterations: Some(ITERATIONS_MAX + 1), ..asked(&["latency"]) });
        of(asked(&["latency/new-777"]));
    }

    #[test]
    fn a_disk_without_room_is_refused_and_a_small_one_will_do() {
        let within = |request: &Asked, free| {
            request.plan(&target(10 * GIB, free), |of, call| Amounts::new(&of.latency, call))
        };
        assert!(within(&asked(&["latency"]), GIB + 4 * (1 << 20)).is_ok());
        let full = within(&asked(&["latency"]), GIB).unwrap_err().to_string();
        assert!(full.ends_with("Free some space first") && full.lines().count() == 1, "{full}");
    }

    proptest! {
        #[test]
        fn no_run_has_more_files_or_texts_than_is_announced(
            iterations in 1..ITERATIONS_MAX,
            runs in 1..1000_u32,
            size_bytes in 1..=SIZE_BYTES_MAX,
        ) {
            // W8
            let request = Asked {
                iterations: Some(iterations),
                runs: Some(runs),
                save_size: vec![size_bytes],
                ..asked(&["latency/wrote-write"])
            };
            let plan = request.plan(&target(0, 0), |of, call| Amounts::new(&of.latency, call));
            let plan = plan.unwrap().unwrap();
            let total: u64 = (0..plan.runs).map(|round| u64::from(plan.saves(round))).sum();
            prop_assert_eq!(total, u64::from(iterations));
            for row in &plan.rows {
                let texts = plan.ready_texts(row);
                prop_assert!(texts == 1 || texts * size_bytes <= READY_BYTES_MAX);
                prop_assert!(plan.space_bytes() >= size_bytes);
            }
        }
    }
}

#[cfg(test)]
mod text_tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn texts_are_printable_and_none_is_like_another() {
        // M2
        let texts = texts(300, 500, 7);
        assert!(texts.iter().all(|byte| (b' '..=b'z').contains(byte)));
        assert_eq!(texts.chunks(500).collect::<HashSet<_>>().len(), 300);
    }

    #[test]
    fn every_character_of_the_alphabet_is_there_once() {
        assert_eq!(ALPHABET.iter().collect::<HashSet<_>>().len(), 64);
    }
}
